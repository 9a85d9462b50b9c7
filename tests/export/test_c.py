"""The C99 source: it compiles without a warning and computes what the packed network computes."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest

from cavity.export import ExportError, Inputs, Trained, describe, to_c
from cavity.export.c import prefix_of
from cavity.packed import PackedNetwork
from export.helpers import KINDS, compiled, network, raw, run_c, samples, trained


def check(model: Trained, folder, *flags: str) -> None:
    to_c(model, folder / "net.c")
    description = describe(model)
    x = samples(model.inputs, description.inputs.features, 200)
    assert (run_c(compiled(folder, *flags), raw(description, x)) == PackedNetwork(description).predict(x)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_computes_what_the_packed_network_does(kind: str, tmp_path) -> None:
    check(trained(kind), tmp_path)


@pytest.mark.parametrize("kind", ["wide", "sparse with bias", "real"])
def test_the_portable_source_does_too(kind: str, tmp_path) -> None:
    check(trained(kind), tmp_path, "-DNET_PORTABLE")


@pytest.mark.parametrize("kind", ["sparse with bias", "real"])
def test_nothing_is_undefined(kind: str, tmp_path) -> None:
    check(trained(kind), tmp_path, "-fsanitize=undefined,address", "-fno-sanitize-recover")


@pytest.mark.parametrize("flags", [[], ["-DNET_PORTABLE"]])
def test_more_inputs_than_tables_are_held_at_once(flags: list[str], tmp_path) -> None:
    check(Trained(network((1500, 40, 3)), Inputs.pixels(0.3, 0.2)), tmp_path, *flags)


@pytest.mark.parametrize("flags", [[], ["-DNET_PORTABLE"]])
def test_channels(flags: list[str], tmp_path) -> None:
    inputs = Inputs.pixels(np.repeat([0.2, 0.4, 0.7], 50), np.repeat([0.1, 0.25, 0.3], 50))
    check(Trained(network((150, 20, 5), density=0.7), inputs), tmp_path, *flags)


def test_no_float_no_heap_and_every_name_prefixed(tmp_path) -> None:
    header, source = to_c(trained("sparse with bias"), tmp_path / "x.c", prefix="digit")
    text = header.read_text() + source.read_text()
    code = re.sub(r"/\*.*?\*/|\"[^\"]*\"", "", text, flags=re.DOTALL)
    assert not re.search(r"\b(float|double|malloc|calloc|free)\b", code)
    defined = re.findall(r"^(?:static |DIGIT_INLINE |extern )[^;{=]*?(\w+)[\[(]", code, re.MULTILINE)
    defined += re.findall(r"^(?:#define|int|void) (\w+)", code, re.MULTILINE)
    assert len(defined) > 10
    assert [name for name in defined if not name.lower().startswith("digit_") and name != "__attribute__"] == []


def test_class_names_of_any_letters(tmp_path) -> None:
    names = ('quote" and \\', "T-shirt/top??/", "Ölkanne 🛢\n*/")
    to_c(Trained(network((5, 3)), Inputs.pixels(0.5, 0.5), names), tmp_path / "net.c")
    main = '#include <stdio.h>\n#include "net.h"\nint main(void)\n{\n  int k;\n  for (k = 0; k < NET_CLASSES; ++k)\n'
    main += '    printf("%s|", net_classes[k]);\n  return 0;\n}\n'
    done = subprocess.run([compiled(tmp_path, main=main)], capture_output=True, check=True)
    assert done.stdout.decode() == "".join(f"{name}|" for name in names)
    with pytest.raises(ExportError, match="too long for a C string"):
        to_c(Trained(network((5, 2)), Inputs.pixels(0.5, 0.5), ("a" * 5000, "b")), tmp_path / "long.c")


def test_prefixes() -> None:
    assert [prefix_of(stem) for stem in ("net", "my-net.v2", "7segments", "_x", "ü")] == [
        "net",
        "my_net_v2",
        "net_7segments",
        "net__x",
        "net__",
    ]
    for bad in ("", "7", "_x", "a-b", "a" * 41, "ü", "a\n"):
        with pytest.raises(ValueError, match="prefix must be"):
            to_c(trained("binary"), "never.c", prefix=bad)
    with pytest.raises(ValueError, match="printable ASCII"):
        to_c(trained("binary"), 'a"b.c')
    with pytest.raises(ValueError, match=r"must end in \.c"):
        to_c(trained("binary"), "net.cpp")
