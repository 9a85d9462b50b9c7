"""Runs, estimators and networks through the same doors: what is exported is what was measured."""

from __future__ import annotations

import copy
import runpy

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split

import cavity
from cavity import cli
from cavity.export import ExportError, Trained, calibrated, describe, export, measured, of_run, to_c, to_packed
from cavity.export.models import as_trained
from cavity.export.on_data import part_of
from cavity.packed import PackedNetwork, load
from cavity.packed.fitting import fit, loss
from cavity.runs import Config, train
from export.helpers import network, samples, trained


@pytest.fixture(scope="module")
def wine():
    """A classifier with names for its classes and columns, and held-out data."""
    data = load_wine()
    split = train_test_split(data.data, data.target_names[data.target], random_state=0, test_size=0.4)
    options = {"weights": "binary", "activation": "sign", "epochs": 20, "random_state": 0}
    clf = cavity.MessagePassingClassifier((31,), **options).fit(split[0], split[2])
    return clf, split


def test_an_estimator_takes_raw_numbers_and_gives_names(wine, tmp_path) -> None:
    clf, (x, x_test, y, y_test) = wine
    done = clf.export(tmp_path / "model.py", calibrate=(x, y), test=(x_test, y_test))
    net = runpy.run_path(str(done.files[0]))
    guess = net["predict"](x_test, names=True)
    assert done.accuracy == pytest.approx(100 * np.mean(guess == y_test))
    # Standardised in multiples of 1/1024, a sample may lie on the other side of a threshold.
    assert np.mean(guess == clf.predict(x_test, method="point")) > 0.94
    assert net["CLASSES"] == list(clf.classes_)
    assert np.mean(~net["reject"](x)) >= 0.9
    assert f"{done.accuracy:.2f} %" in done.files[0].read_text()
    assert "FEATURE_NAMES" not in net
    named = copy.deepcopy(clf)
    named.feature_names_in_ = np.array(load_wine().feature_names, object)  # as scikit-learn sets it for a data frame
    net = runpy.run_path(str(named.export(tmp_path / "named.py").files[0]))
    assert net["FEATURE_NAMES"] == load_wine().feature_names


@pytest.mark.parametrize("ending", [".c", ".html", ".cavity", ".onnx"])
def test_the_format_is_by_the_ending(ending: str, wine, tmp_path) -> None:
    done = wine[0].export(tmp_path / f"model{ending}")
    assert done.files[-1].name == f"model{ending}"
    assert done.accuracy is None
    assert done.confidence is None


def test_any_function_takes_an_estimator_a_network_or_a_run(wine, tmp_path) -> None:
    clf, (_, x_test, *_) = wine
    assert [path.name for path in to_c(clf, tmp_path / "net.c")] == ["net.h", "net.c"]
    (path,) = to_packed(clf.network_, tmp_path / "bare.cavity")
    standardized = clf.scaler_.transform(x_test)
    assert (
        load(path).predict(standardized) == PackedNetwork(describe(clf.trained_network())).predict(x_test)
    ).mean() > 0.9
    with pytest.raises(ExportError, match="got a StandardScaler"):
        to_packed(clf.scaler_, tmp_path / "no.cavity")


def test_estimators_that_cannot_be_exported_say_why(wine, tmp_path) -> None:
    x, y = load_digits(return_X_y=True)
    relu = cavity.MessagePassingClassifier((5,), epochs=1, random_state=0).fit(x[:60], y[:60])
    with pytest.raises(ExportError, match="activation 0 is ReLU"):
        relu.export(tmp_path / "net.c")
    single = cavity.MessagePassingClassifier((5,), epochs=1, random_state=0).fit(x[:9], np.ones(9))
    with pytest.raises(ExportError, match="a single class"):
        single.export(tmp_path / "net.c")
    for words, reason in (
        ({"path": "net.txt"}, "format must be given"),
        ({"path": "net.c", "format": "pyhton"}, "did you mean python"),
        ({"path": "net.c", "method": "bayes"}, "method does not go with format c"),
        ({"path": "net.c", "inputs": "bytes"}, "inputs must be one of"),
        ({"path": "net.c", "test": (load_wine().data, np.full(178, "beer"))}, "must only hold labels"),
    ):
        with pytest.raises(ValueError, match=reason):
            wine[0].export(**{**words, "path": tmp_path / words["path"]})
    assert list(tmp_path.iterdir()) == []


def test_pixels_of_an_estimator(tmp_path) -> None:
    x, y = load_digits(return_X_y=True)
    options = {"weights": "binary", "activation": "sign", "epochs": 2, "random_state": 0, "standardize": False}
    clf = cavity.MessagePassingClassifier((21,), **options).fit(x[:500], y[:500])
    done = clf.export(tmp_path / "net.cavity", inputs="pixels")
    net = load(done.files[0])
    assert net.description.inputs.white == 255
    assert (net.predict(x[500:600]) == clf.predict(x[500:600], method="point")).mean() > 0.97


def test_class_indices_are_checked() -> None:
    model = trained("binary")
    x = samples(model.inputs, 13, 10)
    for y in (np.zeros(9, int), np.zeros(10), np.full(10, 3), np.full(10, -1)):
        with pytest.raises(ValueError, match="y must"):
            calibrated(model, x, y)
    right = PackedNetwork(describe(model)).predict(x)
    assert measured(model, x, right).accuracy == 100
    assert measured(model, x, (right + 1) % 3).tested == (0, 10)


def test_what_was_seen_in_training_counts_for_less(digits) -> None:
    """With labels alone it would be too sure: the test set says so."""
    model, data = Trained.of(digits), digits.load_dataset()
    seen, test = (part_of(model, data, part) for part in ("train", "test"))
    sure, modest = (calibrated(model, *seen, seen=known).confidence for known in (False, True))
    scores, truth = PackedNetwork(describe(model)).scores(test.x), np.eye(10)[test.y]
    assert modest.multiplier / 2**modest.shift < sure.multiplier / 2**sure.shift
    assert loss(modest, scores, truth) < loss(sure, scores, truth)
    best = loss(fit(scores, test.y), scores, truth)
    assert loss(modest, scores, truth) < 1.05 * best


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "digits"
    return train(Config(dataset="digits", hidden=(31,), algorithm="mf", epochs=12, threads=1, device="cpu"), folder)


def test_a_run_is_measured_on_its_own_test_set(digits, tmp_path, capsys) -> None:
    assert cli.main(["export", str(digits.path), "--out", str(tmp_path / "net.cavity"), "--coverage", "0.8"]) == 0
    said = capsys.readouterr().out
    data = digits.load_dataset()
    net = load(tmp_path / "net.cavity")
    pixels = np.rint((data.x_test * data.std + data.mean).numpy() * 16).astype(np.uint8)
    right = int((net.predict(pixels) == data.y_test.numpy()).sum())
    assert f"accuracy of what was exported: {100 * right / 359:.2f} % ({right} of 359 test samples)" in said
    assert f"below {net.description.confidence.reject} a class is refused" in said
    assert cli.main(["export", str(digits.path), "--out", str(tmp_path / "p.onnx"), "--method", "bayes"]) == 0
    bayes = 100 - digits.records[-1].test_error_bayes
    assert f"accuracy of what was exported: {bayes:.2f} %" in capsys.readouterr().out


@pytest.fixture
def table(tmp_path):
    random = np.random.default_rng(0)
    x = random.normal(0, 1, (200, 4)) * [1, 10, 0.1, 5] + [0, 100, 3, -7]
    y = ["low" if row[0] + row[1] / 10 < 10 else "high" for row in x]
    path = tmp_path / "own.csv"
    rows = [",".join([*(f"{value:.4f}" for value in row), name]) for row, name in zip(x, y, strict=True)]
    path.write_text("\n".join(["a,b,c,d e,label", *rows]))
    config = Config(dataset=str(path), hidden=(15,), epochs=5, batch_size=20, threads=1, device="cpu")
    return train(config, tmp_path / "run"), path


def test_names_of_columns_reach_what_is_exported(table, tmp_path) -> None:
    model, notes = of_run(table[0])
    assert notes == ()
    assert model.features == ("a", "b", "c", "d e")
    net = runpy.run_path(str(export(model, tmp_path / "net.py").files[0]))
    assert net["FEATURE_NAMES"] == ["a", "b", "c", "d e"]
    assert sorted(net["CLASSES"]) == ["high", "low"]


def test_a_run_without_its_data_is_exported_with_a_word(table, tmp_path, capsys) -> None:
    run, path = table
    other = path.rename(tmp_path / "elsewhere.csv")
    assert cli.main(["export", str(run.path), "--out", str(tmp_path / "net.cavity")]) == 0
    said = capsys.readouterr()
    assert "exported without accuracy and confidence" in said.out + said.err
    assert load(tmp_path / "net.cavity").description.confidence is None
    words = ["export", str(run.path), "--out", str(tmp_path / "sure.cavity"), "--calibrate", str(other)]
    assert cli.main(words) == 0
    said = capsys.readouterr()
    assert "exported without accuracy, because" in said.out + said.err
    assert load(tmp_path / "sure.cavity").description.confidence is not None
    assert cli.main([*words[:-1], "digits", "--force"]) == 2
    assert "has 64 features in 10 classes" in capsys.readouterr().err


def test_inputs_of_a_bare_network_are_standardised_already() -> None:
    net = network((6, 5, 3))
    x = np.random.default_rng(0).integers(-2, 3, (50, 6)).astype(np.float64)
    assert (PackedNetwork(describe(as_trained(net))).predict(x) == net.predict(torch.from_numpy(x)).numpy()).all()
