"""A network as a folder that is an Arduino library, a PlatformIO library and a Zephyr module, with an example sketch.

The C is that of ``c.py``; what is around it is in ``library/``.
"""

from __future__ import annotations

import json
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from cavity.export.c import checked_prefix, generate
from cavity.export.footprint import stack_bytes
from cavity.export.integers import describe
from cavity.export.trained import Trained
from cavity.packed.description import Description
from cavity.util.version import __version__

AUTHOR = "The cavity authors"
#: File in the folder → its template in ``library/``; ``NAME`` is the prefix.
FILES = {
    "library.properties": "library.properties",
    "keywords.txt": "keywords.txt",
    "README.md": "README.md",
    "examples/NAME/NAME.ino": "example.ino",
    "zephyr/CMakeLists.txt": "CMakeLists.txt",
    "zephyr/Kconfig": "Kconfig",
}


def library(trained: Trained, prefix: str) -> dict[str, str]:
    """Every file by its name within the folder."""
    net, name = describe(trained), checked_prefix(prefix)
    header, source = generate(net, name, f"{name}.h", features=trained.features, tested=trained.tested)
    values = _values(trained, net, name, header)
    layout: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    environment = Environment(loader=PackageLoader("cavity.export", "library"), undefined=StrictUndefined, **layout)
    rendered = {
        file.replace("NAME", name): environment.get_template(f"{template}.j2").render(values)
        for file, template in FILES.items()
    }
    return {
        f"src/{name}.h": header,
        f"src/{name}.c": source,
        **rendered,
        "library.json": json.dumps(_platformio(values), indent=2) + "\n",
        "zephyr/module.yml": f"name: {name}\nbuild:\n  cmake: zephyr\n  kconfig: zephyr/Kconfig\n",
    }


def _values(trained: Trained, net: Description, name: str, header: str) -> dict[str, Any]:
    """What the files say about a network: nothing in it is a text that a stranger has written."""
    fixed, n = net.inputs.fixed, net.inputs.features
    functions = ["predict", "scores", "best", "selftest"] + (["confidence", "reject"] if net.confidence else [])
    return {
        "p": name,
        "P": name.upper(),
        "version": __version__,
        "author": AUTHOR,
        "sizes": "-".join(map(str, net.sizes)),
        "digest": header.partition(f'{name.upper()}_MODEL "')[2].partition('"')[0],
        "accuracy": "" if trained.accuracy is None else f", right on {trained.accuracy:.2f} % of its test set",
        "about": f"{n} pixels from 0 to {net.inputs.white}" if fixed is None else f"{n} numbers in fixed point",
        "inputs": n,
        "white": net.inputs.white,
        "bits": None if fixed is None else fixed.bits.tolist(),
        "classes": net.classes,
        "confidence": net.confidence,
        "functions": functions,
        "stack": stack_bytes(net).small,
    }


def _platformio(values: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": values["p"],
        "version": "1.0.0",
        "description": f"A neural network of {values['sizes']} units in whole numbers: no heap, no floating point",
        "authors": [{"name": AUTHOR}],
        "license": "MIT",
        "frameworks": "*",
        "platforms": "*",
        "headers": f"{values['p']}.h",
        "export": {"include": ["src", "examples", "library.json", "README.md"]},
    }
