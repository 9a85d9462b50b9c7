"""cavity export, from a run's folder to files."""

from __future__ import annotations

import numpy as np
import pytest

import cavity
from cavity import cli
from cavity.runs import Config, open_run, train
from export.helpers import compiled, run_c
from runs.helpers import tiny


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "digits"
    return train(Config(dataset="digits", hidden=(21,), algorithm="mf", epochs=1, threads=1, device="cpu"), folder)


@pytest.fixture(scope="module")
def pixels(digits) -> np.ndarray:
    """The test set of digits as scikit-learn has it, 0 to 16."""
    data = digits.load_dataset()
    return np.rint((data.x_test * data.std + data.mean).numpy() * 16).astype(np.uint8)


def exported(run, path, *options: str) -> int:
    return cli.main(["export", str(run.path), "--out", str(path), *options])


def test_all_formats_agree(digits, pixels, tmp_path, capsys) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    assert exported(digits, tmp_path / "net.cavity", "--format", "packed") == 0
    assert exported(digits, tmp_path / "net.c", "--format", "c") == 0
    assert exported(digits, tmp_path / "net.onnx", "--format", "onnx") == 0
    assert "net.cavity (" in capsys.readouterr().out
    packed = cavity.packed.load(tmp_path / "net.cavity")
    guess = packed.predict(pixels)
    assert (guess == digits.load_network().predict(digits.load_dataset().x_test).numpy()).mean() > 0.99
    assert packed.classes == tuple("0123456789")
    assert (run_c(compiled(tmp_path), pixels) == guess).all()
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    assert (session.run(["class"], {"x": pixels})[0] == guess).all()


def test_probabilities(digits, pixels, tmp_path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    assert exported(digits, tmp_path / "p.onnx", "--format", "onnx", "--method", "bayes") == 0
    session = onnxruntime.InferenceSession(tmp_path / "p.onnx", providers=["CPUExecutionProvider"])
    expected = digits.load_network().predict_proba(digits.load_dataset().x_test).numpy()
    np.testing.assert_allclose(session.run(None, {"x": pixels})[0], expected, rtol=0, atol=1e-5)


def test_tables_go_in_as_numbers(tmp_path) -> None:
    run = train(tiny(epochs=1), tmp_path / "run")
    assert exported(run, tmp_path / "net.cavity", "--format", "packed") == 0
    x = run.load_dataset().x_test
    expected = (run.load_network().predict(x) > 0).numpy()
    assert (cavity.packed.load(tmp_path / "net.cavity").predict(x.numpy()) == expected).all()


FILES = [
    ("packed", "net"),
    ("c", "net.c"),
    ("c", "net.h"),
    ("onnx", "net.onnx"),
    ("python", "net.py"),
    ("html", "x.html"),
]


@pytest.mark.parametrize(("form", "name"), FILES)
def test_what_is_there_is_kept_unless_forced(form: str, name: str, digits, tmp_path, capsys) -> None:
    (tmp_path / name).write_text("precious")
    out = tmp_path / (name[:-2] + ".c" if name.endswith(".h") else name)
    assert exported(digits, out, "--format", form) == 2
    assert "--force" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "precious"
    assert exported(digits, out, "--format", form, "--force") == 0
    assert b"precious" not in (tmp_path / name).read_bytes()


def test_errors_name_what_is_wrong(digits, tmp_path, capsys) -> None:
    for words, reason in (
        (["--format", "packed", "--out", str(tmp_path)], "is a folder"),
        (["--format", "packed", "--out", str(tmp_path / "no" / "net")], "is not a folder"),
        (["--format", "packed", "--prefix", "x", "--out", "net"], "--prefix goes with --format c or arduino only"),
        (["--format", "c", "--method", "bayes", "--out", "net.c"], "--method goes with --format onnx only"),
        (["--format", "zip", "--out", "net"], "invalid choice"),
        (["--format", "c", "--prefix", "1x", "--out", str(tmp_path / "net.c")], "prefix must be"),
    ):
        assert cli.main(["export", str(digits.path), *words]) == 2
        assert reason in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_cannot_be_exported_says_why(tmp_path, capsys) -> None:
    run = train(tiny(epochs=1, activation="relu"), tmp_path / "run")
    assert exported(run, tmp_path / "net", "--format", "packed") == 2
    assert "activation 0 is ReLU" in capsys.readouterr().err
    assert not (tmp_path / "net").exists()


def test_images_in_an_array_file_need_a_word(digits, tmp_path, capsys) -> None:
    random = np.random.default_rng(0)
    np.savez(tmp_path / "own.npz", x=random.integers(0, 256, (60, 6, 6), dtype=np.uint8), y=np.arange(60) % 3)
    config = Config(dataset=str(tmp_path / "own.npz"), hidden=(9,), epochs=1, batch_size=16, threads=1, device="cpu")
    run = open_run(train(config, tmp_path / "run").path)
    assert exported(run, tmp_path / "net", "--format", "packed") == 2
    assert "--inputs pixels" in capsys.readouterr().err
    assert exported(run, tmp_path / "net", "--format", "packed", "--inputs", "pixels") == 0
    assert cavity.packed.load(tmp_path / "net").description.inputs.white == 255
    with pytest.raises(ValueError, match="inputs must be one of"):
        cavity.export.Trained.of(run, inputs="bytes")
