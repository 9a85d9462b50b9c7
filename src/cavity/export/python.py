"""A network as one Python file that needs NumPy alone: the weights are in it, and its integers are those of every other
export. Its text is ``model.py.j2``."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from cavity.export.integers import describe
from cavity.export.matrices import factors, inputs_code, largest_score, packed_matrix, stages
from cavity.export.trained import Trained
from cavity.packed.confidence import TABLE
from cavity.packed.fixed import LARGEST_RAW, SHIFT
from cavity.util.version import __version__

#: Characters of a weight's text, or of a list, in a line.
WIDTH = 96
#: Integers up to this are exact in float64, whose products are many times faster.
EXACT = 1 << 53


def module(trained: Trained, name: str) -> str:
    """The file's text; ``name`` is what its help calls it."""
    layout: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    environment = Environment(loader=PackageLoader("cavity.export", ""), undefined=StrictUndefined, **layout)
    environment.filters.update(wrapped=_wrapped, listed=_listed)
    net = describe(trained)
    code, layers = net.inputs, stages(net)
    return environment.get_template("model.py.j2").render(
        name="".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name),
        net=net,
        code=code,
        version=__version__,
        accuracy=trained.accuracy,
        classes=list(net.classes),
        features=list(trained.features),
        inputs=inputs_code(net),
        factors=code.groups if len(set(factors(net))) > 1 else [],
        exact=largest_score(net) < EXACT,
        stages=[
            (packed_matrix(stage.weights, "85"), stage.scale, stage.bias.tolist(), stage.geometry) for stage in layers
        ],
        shared=any(stage.windows for stage in layers),
        confidence=net.confidence,
        table=TABLE.tolist(),
        largest_raw=LARGEST_RAW,
        shift=SHIFT,
    )


def _wrapped(text: str) -> str:
    """A long text as string literals in lines; base 85 has neither quotes nor backslashes."""
    parts = [text[start : start + WIDTH] for start in range(0, len(text), WIDTH)]
    return "\n".join(f'            "{part}"' for part in parts)


def _listed(values: list[Any], indent: int = 4) -> str:
    """A list of numbers or strings, in lines where it is long."""
    text = ascii(values)
    if len(text) <= WIDTH:
        return text
    lines, space = [""], " " * indent
    for value in values:
        item = f"{value!a}, "
        if lines[-1] and len(lines[-1]) + len(item) > WIDTH:
            lines.append("")
        lines[-1] += item
    return "[\n" + "".join(f"{space}{line.rstrip()}\n" for line in lines) + " " * (indent - 4) + "]"
