"""The Python file: the same integers as the packed network, with NumPy alone, as a module and as a program."""

from __future__ import annotations

import dataclasses
import runpy
import subprocess
import sys

import numpy as np
import pytest

from cavity.export import Inputs, Trained, describe, to_python
from cavity.packed import Confidence, PackedNetwork
from export.helpers import KINDS, network, samples, trained

SURE = Confidence(200, 7, 180)
HOSTILE = ('"""\n\\', "'''; import os", "Ölkanne 🛢\x1b[31m")


def check(model: Trained, folder) -> dict:
    net = runpy.run_path(str(to_python(model, folder / "net.py")[0]))
    packed = PackedNetwork(describe(model))
    x = samples(model.inputs, packed.n_features_in, 100)
    assert (net["scores"](x) == packed.scores(x)).all()
    assert (net["predict"](x) == packed.predict(x)).all()
    assert (net["confidence"](x) == packed.confidence(x)).all()
    assert (net["reject"](x) == packed.reject(x)).all()
    assert np.allclose(net["probabilities"](x).sum(axis=1), 1)
    return net


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_computes_what_the_packed_network_does(kind: str, tmp_path) -> None:
    check(dataclasses.replace(trained(kind), confidence=SURE), tmp_path)


def test_sums_that_no_float_holds(tmp_path) -> None:
    """Colours have factors of 24 bits, and scores that are compared 16 more."""
    inputs = Inputs.pixels(np.repeat([0.2, 0.4, 0.7], 50), np.repeat([0.1, 0.25, 0.3], 50))
    model = Trained(network((150, 5), density=0.7), inputs, confidence=Confidence(200, 50, 180))
    assert check(model, tmp_path)["_NUMBER"] is np.int64


def test_weights_of_eight_bits(tmp_path) -> None:
    net = network((20, 9, 4), weights="gaussian", activation="sign")
    check(Trained(net, Inputs.pixels(0.3, 0.2), confidence=SURE), tmp_path)


def test_names_cannot_break_out(tmp_path) -> None:
    inputs = Inputs.real(np.zeros(5), np.ones(5))
    model = Trained(network((5, 3)), inputs, HOSTILE, features=(*HOSTILE, "a", "b"))
    net = runpy.run_path(str(to_python(model, tmp_path / "ü }} name.py")[0]))
    assert tuple(net["CLASSES"]) == HOSTILE
    assert tuple(net["FEATURE_NAMES"]) == (*HOSTILE, "a", "b")
    assert net["predict"](np.zeros((1, 5)), names=True)[0] in HOSTILE
    assert "confidence" not in net


def run(path, rows: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, path], input=rows, capture_output=True, text=True, timeout=60, check=False)


def test_it_runs_as_a_program(tmp_path) -> None:
    model = dataclasses.replace(trained("real"), confidence=SURE)
    (path,) = to_python(model, tmp_path / "net")
    assert path.name == "net.py"
    x = samples(model.inputs, 23, 20)
    packed = PackedNetwork(describe(model))
    header = ",".join(f"f{i}" for i in range(23))
    done = run(path, header + "\n\n" + "\n".join(",".join(map(repr, row)) for row in x.tolist()) + "\n")
    assert done.stderr == ""
    expected = [
        f"{name}\t{sure / 255:.3f}" + ("\tdoubtful" if doubtful else "")
        for name, sure, doubtful in zip(
            packed.predict(x, names=True), packed.confidence(x), packed.reject(x), strict=True
        )
    ]
    assert done.stdout.splitlines() == expected
    for rows, reason in (
        ("1 2 3\n", "line 1: X must be numbers of shape (samples, 23)"),
        ("a\nb\n", "line 2: could not convert"),
        (" ".join(["nan"] * 23) + "\n", "line 1: X must be finite"),
    ):
        failed = run(path, rows)
        assert failed.returncode == 1
        assert reason in failed.stderr
        assert "Traceback" not in failed.stderr


def test_it_needs_numpy_alone(tmp_path) -> None:
    (path,) = to_python(trained("binary"), tmp_path / "net.py")
    allowed = {"numpy", "base64", "zlib", "sys"}
    code = path.read_text()
    imported = {line.split()[1] for line in code.splitlines() if line.startswith(("import ", "from "))}
    assert imported == allowed
    with pytest.raises(ValueError, match=r"must end in \.py"):
        to_python(trained("binary"), tmp_path / "net.txt")
    with pytest.raises(FileExistsError, match="already exists"):
        to_python(trained("binary"), path)
    to_python(trained("label"), path, force=True)
    assert path.read_text() != code


def test_bad_samples_are_refused(tmp_path) -> None:
    net = runpy.run_path(str(to_python(trained("binary", white=16), tmp_path / "net.py")[0]))
    for bad in (
        np.zeros(13),
        np.zeros((0, 13)),
        np.zeros((2, 12)),
        np.full((1, 13), 17),
        np.full((1, 13), 0.5),
        [["a"] * 13],
    ):
        with pytest.raises(ValueError, match="X must"):
            net["predict"](bad)
