"""1,000 samples of five networks and more: every compiler and every emulated board gives the same answers to the last
bit, and takes no more stack and flash than the header says.

Boards are marked slow; `make embedded` installs what they need and runs them.
"""

from __future__ import annotations

import dataclasses
import re
import shutil

import numpy as np
import pytest
import torch

import cavity
from cavity.export import Inputs, Trained, describe
from cavity.export.c import generate
from cavity.export.footprint import Layout, code_bytes, constant_bytes, stack_bytes
from cavity.packed import Confidence, PackedNetwork
from embedded.footprint import assembly, sizes, stack_usage
from embedded.targets import TARGETS, Target, Unavailable, build, run
from export.conformance import NETWORKS, Answers, answers, expected, model, vectors
from export.helpers import network, raw, samples

#: Boards that have no lanes, and so the sizes of small cores.
SMALL = ("Cortex-M0", "Cortex-M4", "RV32", "AVR")
#: What the compilers' own overhead in section sizes and its alignment may add.
CODE = {"Cortex-M0": 1.0, "Cortex-M4": 1.0, "RV32": 1.6, "AVR": 3.0}
#: Not part of net_predict.
OTHERS = ("selftest", "confidence", "reject", "weight_of", "decay", "classes", "features")


def _gaussian() -> Trained:
    net = cavity.mlp(30, [20], 4, weights="gaussian", seed=3)
    for number, layer in enumerate(net.weighted()):
        layer.mean.normal_(generator=torch.Generator().manual_seed(number))
    return Trained(net, Inputs.pixels(0.3, 0.3))


def _windows(layers: str, shape: tuple[int, int, int], **options) -> Trained:
    """Convolutions; channels of colour have scales of their own."""
    net, area = cavity.network(layers, shape, 4, seed=3, **options), shape[1] * shape[2]
    if "weights" in options:
        for number, layer in enumerate(net.weighted()):
            layer.mean.normal_(generator=torch.Generator().manual_seed(number))
    mean, std = (np.repeat(scales[: shape[0]], area) for scales in ([0.2, 0.4, 0.7], [0.1, 0.25, 0.3]))
    return Trained(net, Inputs.pixels(mean, std))


#: Beyond the five: several chunks, colour channels, no hidden layer, 8-bit weights, and more convolutions.
MORE = {
    "chunks": lambda: Trained(network((300, 40, 10)), Inputs.pixels(0.3, 0.3)),
    "channels": lambda: Trained(
        network((150, 20, 5), density=0.7),
        Inputs.pixels(np.repeat([0.2, 0.4, 0.7], 50), np.repeat([0.1, 0.25, 0.3], 50)),
    ),
    "no hidden layer": lambda: Trained(network((19, 4), bias=True), Inputs.pixels(0.3, 0.3)),
    "table without hidden layer": lambda: Trained(network((45, 4), threshold=True), Inputs.real(3.0, 2.0)),
    "int8": _gaussian,
    "windows": lambda: _windows("conv:16:3,pool:2,conv:24:3,pool:2,dense:21", (1, 16, 16), density=0.6),
    "windows of 8 bits": lambda: _windows("conv:5:3:2:1,pool:2,conv:6:2:1:1,dense:9", (1, 11, 9), weights="gaussian"),
    "windows on channels": lambda: _windows("conv:8:5,pool:2,conv:33:2:1:1,pool:2", (3, 12, 12)),
}


def target_of(name: str) -> Target:
    target = TARGETS[name]
    try:
        target.require()
    except Unavailable as missing:
        pytest.skip(str(missing))
    return target


def written(trained: Trained, folder) -> None:
    header, source = generate(describe(trained), "net", "net.h")
    (folder / "net.h").write_text(header)
    (folder / "net.c").write_text(source)


targets = pytest.mark.parametrize(
    "target",
    [
        pytest.param(name, marks=[] if target.compiler == "gcc" else [pytest.mark.slow])
        for name, target in TARGETS.items()
    ],
)


@targets
@pytest.mark.parametrize("name", [*NETWORKS, *MORE])
def test_every_target_says_the_same(name: str, target: str, tmp_path) -> None:
    if name in MORE:
        trained = dataclasses.replace(MORE[name](), confidence=Confidence(200, 9, 120))
        x = samples(trained.inputs, describe(trained).inputs.features, 100)
        wanted = expected(describe(trained), x)
    else:
        trained, x, wanted = model(name), vectors(name), answers(name)
    net = describe(trained)
    written(trained, tmp_path)
    outputs = net.sizes[-1]
    found = run(target_of(target), tmp_path, raw(net, x), outputs, Layout.of(net).score_bits // 8)
    wanted.require(Answers(found.scores, found.classes, found.confidences))
    assert (found.rejected == PackedNetwork(net).reject(x)).all()
    assert found.selftest == 0
    if target in SMALL:
        # Measured on the board; what lies between main's own frame and the call is not the network's.
        assert 0 < found.stack <= stack_bytes(net).small + 16


@targets
@pytest.mark.parametrize("optimize", ["-Os", "-O3"])
@pytest.mark.parametrize("name", [*NETWORKS, "chunks", "channels", "int8", "windows"])
def test_the_stack_is_what_the_header_says(name: str, optimize: str, target: str, tmp_path) -> None:
    trained = MORE[name]() if name in MORE else model(name)
    written(trained, tmp_path)
    claimed = stack_bytes(describe(trained))
    used = stack_usage(target_of(target), tmp_path, optimize)
    if target in SMALL:
        assert used <= claimed.small
        assert claimed.small <= 1.25 * used + 128
    else:
        assert used <= claimed.lanes


@pytest.mark.slow
@pytest.mark.parametrize("target", SMALL)
@pytest.mark.parametrize("name", [*NETWORKS, "chunks", "channels", "int8", "windows"])
def test_flash_is_what_the_header_says(name: str, target: str, tmp_path) -> None:
    trained = MORE[name]() if name in MORE else model(name)
    written(trained, tmp_path)
    net = describe(trained)
    parts = {
        part: size for part, size in sizes(target_of(target), tmp_path).items() if not any(o in part for o in OTHERS)
    }
    code = sum(size for part, size in parts.items() if part.startswith("text"))
    assert sum(parts.values()) - code == constant_bytes(net)
    assert not any(part.startswith(("data", "bss")) for part in parts)
    claimed = code_bytes(net) * CODE[target]
    assert code <= claimed
    if target.startswith("Cortex"):
        assert claimed <= 1.4 * code


@pytest.mark.parametrize(
    ("target", "instruction"),
    [
        ("x86 AVX2", "vpshufb"),
        ("x86 popcnt", "popcnt"),
        pytest.param("AArch64 NEON", "tbl", marks=pytest.mark.slow),
        pytest.param("Cortex-M55", r"vldrb\.u8\s+q\d, \[r\d+, q\d\]", marks=pytest.mark.slow),
    ],
)
def test_the_kernel_is_the_one_for_the_processor(target: str, instruction: str, tmp_path) -> None:
    """Equal answers do not tell whether wide registers found them."""
    written(model("dense"), tmp_path)
    assert re.search(rf"\b{instruction}", assembly(target_of(target), tmp_path))


def test_the_selftest_finds_a_changed_weight(tmp_path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc here")
    trained = dataclasses.replace(MORE["int8"](), confidence=Confidence(200, 9, 120))
    written(trained, tmp_path)
    source = (tmp_path / "net.c").read_text()
    head, tail = source.split("net_weight1[80] NET_FLASH = {\n  ", 1)
    first, rest = tail.split(",", 1)
    (tmp_path / "net.c").write_text(f"{head}net_weight1[80] NET_FLASH = {{\n  {-int(first) or 1},{rest}")
    x = samples(trained.inputs, 30, 10)
    assert run(target_of("x86 portable"), tmp_path, x, 4, 4).selftest == 1


@pytest.mark.slow
def test_nothing_but_predict_is_linked(tmp_path) -> None:
    """Self-test, confidence and names cost nothing where they are not called."""
    written(model("dense"), tmp_path)
    main = '#include "net.h"\n#include "host.h"\nstatic net_input sample[NET_INPUTS];\nint main(void)\n{\n'
    (tmp_path / "only.c").write_text(main + "  return net_predict(sample) + (int)host_count();\n}\n")
    program = build(target_of("Cortex-M0"), tmp_path, "net.c", "only.c")
    content = program.read_bytes()
    assert b"net_predict" in content
    assert not any(name in content for name in (b"net_selftest", b"net_confidence", b"net_decay", b"net_classes"))
