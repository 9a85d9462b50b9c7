"""The command as a user calls it, on a network small enough to take no time."""

from __future__ import annotations

import json
import platform

import pytest
import torch

import cavity.data
from cavity.cli import main
from cavity.studies.bench import paper, plot, running
from cavity.studies.bench.contenders import names
from cavity.studies.bench.table import describe, processor

SMALL = ["bench", "--eager", "--dataset", "digits", "--hidden", "7", "--steps", "2", "--repeats", "1", "--threads", "1"]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """One run with everything, and its files."""
    folder = tmp_path_factory.mktemp("bench")
    words = [*SMALL, "--batch-size", "16,32", "--time-to-accuracy", "60", "--epochs", "3"]
    before = torch.get_num_threads()
    assert main([*words, "--json", str(folder / "bench.json"), "--plot", str(folder / "bench.png")]) == 0
    assert torch.get_num_threads() == before
    return folder


@pytest.mark.slow
def test_the_json_holds_every_measurement(results):
    found = json.loads((results / "bench.json").read_text())
    assert set(found) == {
        "schema",
        "machine",
        "dataset",
        "network",
        "steps",
        "repeats",
        "timings",
        "whole_runs",
    }
    assert (found["dataset"], found["network"]) == ("digits", [64, 7, 10])
    order = ["binarynet", "mf", "amp", "bpi", "bp"]
    assert [(row["batch_size"], row["algorithm"]) for row in found["timings"]] == [
        (size, name) for size in (16, 32) for name in order
    ]
    for row in found["timings"]:
        (rival,) = [
            other["seconds_per_step"]
            for other in found["timings"]
            if other["algorithm"] == "binarynet" and other["batch_size"] == row["batch_size"]
        ]
        assert row["ratio"] == pytest.approx(row["seconds_per_step"] / rival)
        assert set(row) == {
            "algorithm",
            "batch_size",
            "seconds_per_step",
            "seconds_per_epoch",
            "ratio",
            "ratio_tuned",
            "product_share",
            "product_operations",
            "series_orders",
            "half_products",
            "peak_bytes",
        }
    assert [row["algorithm"] for row in found["whole_runs"]] == order


@pytest.mark.slow
def test_the_machine_is_named_by_cores_and_model_only(results):
    text = (results / "bench.json").read_text()
    assert set(json.loads(text)["machine"]) == {"processor", "cores", "threads", "device", "torch"}
    assert platform.node() not in text
    assert str(describe(torch.device("cpu"))).startswith(f"{describe(torch.device('cpu')).cores} × {processor()}, ")


@pytest.mark.slow
def test_the_plot_is_a_picture(results):
    assert (results / "bench.png").read_bytes().startswith(b"\x89PNG")


def test_the_papers_figures_are_all_drawn():
    drawn = plot.paper_curves()
    assert drawn["bp"] == [(1, 118.0), (16, 7.5), (128, 2.5), (1024, 2.5)]
    assert set(drawn) == set(paper.SECONDS_PER_EPOCH) <= set(names())


def test_the_table_has_a_row_for_each_algorithm(capsys):
    assert main([*SMALL, "--batch-size", "16", "--algorithms", "binarynet,mf"]) == 0
    out = capsys.readouterr().out
    assert "64-7-10, digits" in out
    rows = [line.split() for line in out.splitlines() if line.split()[:1] == ["16"]]
    assert [row[1] for row in rows] == ["BinaryNet", "MF"]
    # batch, name, ms/step, two ratios, share with its sign, peak: no series is used on so small a network.
    (_, _, ours, one, to_tuned, _, percent, _), (_, _, theirs, found, *_) = rows
    assert (one, to_tuned, percent) == ("1.00", "–", "%")
    assert float(found) == pytest.approx(float(theirs) / float(ours), rel=0.02)


def test_two_classes_have_one_output(tmp_path):
    target = tmp_path / "bench.json"
    assert main([*SMALL, "--batch-size", "16", "--algorithms", "mf", "--two-class", "--json", str(target)]) == 0
    found = json.loads(target.read_text())
    assert found["network"] == [64, 7, 1]
    assert found["timings"][0]["ratio"] is None


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--batch-size", "0"], "expected positive whole numbers with commas, got '0'"),
        (["--hidden", "a"], "expected positive whole numbers with commas, got 'a'"),
        (["--algorithms", "mf,sgd"], "there is no algorithm 'sgd'; there are binarynet"),
        (["--repeats", "1,2"], "expected a positive whole number, got '1,2'"),
        (["--algorithms", "binarynet-compiled"], "nothing is left when nothing is compiled"),
        (["--batch-size", "5000"], "batch size 5000 needs at least 10000 samples"),
    ],
)
def test_mistakes_are_explained(words, complaint, capsys):
    assert main([*SMALL, *words]) == 2
    assert complaint in capsys.readouterr().err


def test_random_numbers_stand_in_for_absent_data(monkeypatch, capsys):
    monkeypatch.setattr(running, "SHAPE", (300, 784, 10))
    monkeypatch.setattr(cavity.data, "available", lambda data_dir: [])
    data = running.dataset(None, None, two_class=False)
    assert (data.name, tuple(data.x_train.shape), data.n_classes) == ("random", (300, 784), 10)
    assert set(data.y_train.tolist()) == set(range(10))
    two = running.dataset("random", None, two_class=True)
    assert (set(two.y_train.tolist()), two.n_classes) == ({-1, 1}, 2)
    assert main(["bench", "--eager", "--time-to-accuracy", "10"]) == 2
    assert "random numbers: give --dataset" in capsys.readouterr().err


def test_found_data_is_preferred(monkeypatch):
    entry = cavity.data.Entry("fashion-mnist", "", present=True)
    monkeypatch.setattr(cavity.data, "available", lambda data_dir: [entry])
    monkeypatch.setattr(cavity.data, "load", lambda name, **options: (name, options))
    assert running.dataset(None, "there", True) == ("fashion-mnist", {"data_dir": "there", "binary_task": True})


@pytest.mark.parametrize("option", ["--json", "--plot"])
def test_what_is_named_is_not_overwritten(option, tmp_path, capsys):
    taken = tmp_path / "taken"
    taken.write_text("mine")
    assert main([*SMALL, option, str(taken)]) == 2
    assert "--force" in capsys.readouterr().err
    assert taken.read_text() == "mine"
