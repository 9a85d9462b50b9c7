"""``cavity evaluate`` and ``cavity predict`` on a small run."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import torch

from cavity.cli import main
from cavity.runs import Config, open_run, train


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Three classes along a line, in units far from standard ones."""
    path = tmp_path_factory.mktemp("data") / "own.csv"
    random = np.random.default_rng(0)
    rows = ["u,v,w,label"]
    for number in range(300):
        kind = number % 3
        values = 1000 + 300 * kind + 50 * random.standard_normal(3)
        rows.append(",".join(f"{value:.3f}" for value in values) + f",{'abc'[kind]}")
    path.write_text("\n".join(rows))
    return path


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    config = Config(dataset=str(table), hidden=(15,), algorithm="mf", epochs=10, batch_size=20, bias=True)
    return train(config, tmp_path_factory.mktemp("runs") / "run")


def evaluated(capsys, *words):
    assert main(["evaluate", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_it_agrees_with_the_last_record(run, capsys):
    result, last = evaluated(capsys, run.path), run.records[-1]
    assert result["accuracy"] == pytest.approx(100 - last.test_error)
    assert result["accuracy_bayes"] == pytest.approx(100 - last.test_error_bayes)
    assert result["nll"] == pytest.approx(last.test_nll, rel=1e-5)
    assert result["ece"] == pytest.approx(last.test_ece, abs=1e-6)
    assert np.sum(result["confusion"]) == result["samples"] == 60
    assert result["classes"] == ["a", "b", "c"]
    assert evaluated(capsys, run.path, "--part", "train")["samples"] == 240


def test_tables_for_people(run, capsys):
    assert main(["evaluate", str(run.path)]) == 0
    text = capsys.readouterr().out
    assert "60 samples" in text
    assert f"{100 - run.records[-1].test_error:.2f} %" in text
    assert "Brier score" in text
    assert all(f"\n{name}  " in text for name in "abc")
    assert "confusion matrix of the posterior" in text
    assert main(["evaluate", str(run.path), "--confusion", "point"]) == 0
    assert "confusion matrix of the most probable weights, as exported" in capsys.readouterr().out


def test_other_data_in_the_standardisation_of_the_run(run, table, capsys, tmp_path):
    """Half of the table has other means; standardised by its own it would be another problem."""
    lines = table.read_text().splitlines()
    part = tmp_path / "part.csv"
    part.write_text("\n".join([lines[0], *(line for line in lines[1:] if line[-1] != "a" or line[0] == "9")]))
    result = evaluated(capsys, run.path, "--dataset", part, "--part", "train")
    whole = evaluated(capsys, run.path, "--part", "train")
    assert whole["accuracy_bayes"] > 90
    assert result["accuracy_bayes"] > 90
    assert main(["evaluate", str(run.path), "--dataset", "digits"]) == 2
    assert "digits has 64 features in 10 classes, the run was trained on 3 in 3" in capsys.readouterr().err


def test_predictions_as_table_and_as_arrays(run, table, capsys, tmp_path):
    lines = table.read_text().splitlines()
    new = tmp_path / "new.csv"
    new.write_text("\n".join(line.rsplit(",", 1)[0] for line in lines[:31]))
    for name in ("p.csv", "p.npz"):
        assert main(["predict", str(run.path), "--input", str(new), "--out", str(tmp_path / name)]) == 0
        assert capsys.readouterr().out == f"30 predictions in {tmp_path / name}\n"
    arrays = np.load(tmp_path / "p.npz")
    x = torch.tensor([[float(v) for v in line.split(",")[:3]] for line in lines[1:31]])
    task = open_run(run.path).load_checkpoint().task
    expected = run.load_network().predict_proba(task.standardize(x))
    np.testing.assert_allclose(arrays["probabilities"], expected.numpy(), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(arrays["probabilities"].sum(axis=1), 1, rtol=1e-5)
    classes = arrays["classes"].tolist()
    with (tmp_path / "p.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["sample"] for row in rows] == [str(i) for i in range(30)]
    assert [row["prediction"] for row in rows] == [classes[i] for i in arrays["prediction"]]
    assert [row["pointwise"] for row in rows] == [classes[i] for i in arrays["pointwise"]]
    written = np.array([[float(row[f"p({name})"]) for name in classes] for row in rows])
    np.testing.assert_allclose(written, arrays["probabilities"], rtol=1e-5)
    right = sum(row["prediction"] == "abc"[i % 3] for i, row in enumerate(rows))
    assert right >= 27


def test_predictions_for_the_test_set(run, capsys, tmp_path):
    assert main(["predict", str(run.path), "--out", str(tmp_path / "p.npz")]) == 0
    arrays = np.load(tmp_path / "p.npz")
    wrong = 100 * np.mean(arrays["prediction"] != run.load_dataset().y_test.numpy())
    assert wrong == pytest.approx(run.records[-1].test_error_bayes)


def test_predict_says_what_is_wrong(run, capsys, tmp_path):
    assert main(["predict", str(run.path), "--out", str(tmp_path / "p.txt")]) == 2
    assert "--out must end in .csv or .npz" in capsys.readouterr().err
    assert main(["predict", str(run.path), "--input", "none.csv", "--out", str(tmp_path / "p.csv")]) == 2
    assert "none.csv: there is no such file" in capsys.readouterr().err
    assert main(["predict", str(run.path)]) == 2
    assert "--out" in capsys.readouterr().err


def test_predictions_are_overwritten_by_force_alone(run, tmp_path, capsys):
    """The rule of export and train, checked before anything is computed."""
    out = tmp_path / "p.csv"
    out.write_text("mine\n")
    assert main(["predict", str(run.path), "--out", str(out)]) == 2
    assert "p.csv already exists: choose another name, or overwrite it with --force" in capsys.readouterr().err
    assert out.read_text() == "mine\n"
    assert main(["predict", str(run.path), "--out", str(out), "--force"]) == 0
    assert out.read_text().startswith("sample,prediction,")
    assert main(["predict", str(run.path), "--out", str(tmp_path / "none" / "p.csv")]) == 2
    assert "is not a folder: create it first" in capsys.readouterr().err
