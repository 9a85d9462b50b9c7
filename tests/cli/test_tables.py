"""From a CSV to predictions at the terminal: texts, gaps and numbers."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from cavity.cli import main


def write(path, numbers: bool) -> None:
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["rooms", "area", "kind", "target"])
        for _ in range(300):
            rooms, area, kind = rng.integers(1, 7), rng.normal(80, 20), rng.choice(["flat", "house"])
            price = area + 20 * rooms + 50 * (kind == "house") + rng.normal(0, 8)
            label = f"{price:.2f}" if numbers else ("dear" if price > 175 else "cheap")
            writer.writerow([rooms, "" if rng.random() < 0.05 else f"{area:.1f}", kind, label])


NETWORK = ["--hidden", "31", "--weights", "gaussian", "--activation", "relu", "--bias", "--quiet"]


@pytest.mark.parametrize("numbers", [False, True])
def test_a_table_as_it_comes(tmp_path, monkeypatch, capsys, numbers: bool) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "t.csv", numbers)
    task = ["--task", "regression"] if numbers else []
    assert main(["train", "--dataset", "t.csv", *task, *NETWORK, "--epochs", "10", "--out", "run"]) == 0
    assert main(["train", "--resume", "run", "--epochs", "12", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    if numbers:
        assert found["r2"] > 0.9
        assert 0.75 < found["coverage"] <= 1
    else:
        assert found["accuracy_bayes"] > 85
    (tmp_path / "new.csv").write_text("kind,area,rooms\nhouse,120,6\nflat,,1\n")
    assert main(["predict", "run", "--input", "new.csv", "--out", "p.csv"]) == 0
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
    if numbers:
        assert float(rows[0]["prediction"]) > float(rows[1]["prediction"]) + 50
        assert float(rows[0]["std"]) > 0
    else:
        assert [row["prediction"] for row in rows] == ["dear", "cheap"]
    assert main(["report", "run"]) == 0
    assert main(["predict", "run", "--input", "t.csv", "--out", "q.npz"]) == 0


def test_labels_that_are_numbers_are_never_classes_in_silence(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "t.csv", numbers=True)
    assert main(["train", "--dataset", "t.csv", *NETWORK, "--out", "run"]) != 0
    assert "--task regression" in capsys.readouterr().err
