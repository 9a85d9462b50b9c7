"""A run knows its data: changed ones are refused with what has changed, and two honest ways lead on."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
import torch

from cavity.cli import main
from cavity.data.fingerprint import Fingerprint, row_codes
from cavity.data.raw import Part, Raw
from cavity.runs import Run, evaluate, open_run, resume, train
from cavity.runs.matching import DataChanged, find_data
from runs.helpers import assert_same_outcome, tiny

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(150, 3))
#: Nothing to learn but the training samples themselves: whoever finds them in the test set is better than chance.
Y = RANDOM.integers(0, 2, 150)


def write(path, x=X, y=Y):
    rows = [",".join([*map(repr, row.tolist()), "yn"[label]]) for row, label in zip(x, y, strict=True)]
    path.write_text("\n".join([",".join("abc"[: x.shape[1]]) + ",label", *rows]) + "\n")


def grown():
    extra = np.random.default_rng(1)
    return np.concatenate([extra.normal(size=(5, 3)), X]), np.concatenate([extra.integers(0, 2, 5), Y])


def trained(folder, **options):
    """A run on the table, which is not finished."""
    path = folder / "table.csv"
    write(path)
    config = tiny(dataset=str(path), data_options=None, hidden=(21,), epochs=2, batch_size=20, **options)
    return train(config, folder / "run")


@pytest.fixture
def run(tmp_path):
    return trained(tmp_path)


def table(run):
    return run.path.parent / "table.csv"


def samples(dataset, part="test"):
    """The rows of a part in their own units."""
    return getattr(dataset, f"x_{part}") * dataset.std + dataset.mean


def test_data_that_have_not_changed_are_taken_as_they_are(run):
    found = find_data(run)
    assert found.notes == ()
    assert len(found.dataset.x_test) == 30


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        (
            *grown(),
            r"155 samples where there were 150 \(5 are new, 0 are gone\), .*\d+ of the 31 test samples were trained",
        ),
        (X[7:], Y[7:], r"143 samples where there were 150 \(0 are new, 7 are gone\)"),
        (X, 1 - Y, "changed: 150 samples have another label"),
        (X, np.where(np.arange(150) == 9, 1 - Y, Y), "1 samples have another label"),
        (X * [1, 2, 1], Y, "150 are new, 150 are gone"),
        (X[:, :2], Y, "2 features where there were 3"),
    ],
    ids=["grown", "shrunk", "labels", "one label", "units", "columns"],
)
def test_changed_data_are_refused_with_what_has_changed(run, x, y, reason, capsys, tmp_path):
    write(table(run), x, y)
    with pytest.raises(DataChanged, match=reason):
        run.load_dataset()
    resumed, out = ["train", "--epochs", "3", "--resume"], str(tmp_path / "p.csv")
    for command in (["evaluate"], ["entropy"], ["predict", "--out", out], ["report"], resumed):
        assert main([*command, str(run.path)]) == 2, command
        assert "have changed" in capsys.readouterr().err


def test_another_split_is_another_test_set(run):
    config = run.path / "config.toml"
    config.write_text(config.read_text().replace("data_seed = 0", "data_seed = 1"))
    found = find_data(open_run(run.path))
    assert found.notes == (
        "the samples are in another order or in other parts than in training; they are taken as they were",
    )
    assert torch.equal(samples(found.dataset), samples(find_data(run).dataset))


def test_the_order_of_a_table_does_not_matter(tmp_path):
    """Sorted otherwise, a run goes on to the same weights, bit for bit."""
    for name in ("whole", "moved"):
        (tmp_path / name).mkdir()
    whole, moved = trained(tmp_path / "whole"), trained(tmp_path / "moved")
    order = np.random.default_rng(3).permutation(150)
    write(table(moved), X[order], Y[order])
    for each in (whole, moved):
        resume(each.path, epochs=3)
    assert_same_outcome(whole.path, moved.path)


def accuracy(run, dataset):
    net = run.load_network()
    return evaluate(net, dataset.x_test, dataset.y_test, dataset.classes).accuracy


def rows(x):
    """Samples as a sorted list, to be compared in any order."""
    return sorted(map(tuple, np.round(x.double().numpy(), 3).tolist()))


def test_the_original_test_set_is_found_in_a_table_that_has_grown(run):
    before = run.load_dataset()
    write(table(run), *grown())
    after = run.load_dataset(data_changed="original")
    assert rows(after.x_test) == rows(before.x_test)
    assert accuracy(run, after) == pytest.approx(accuracy(run, before))


def test_what_was_never_trained_on_is_the_old_test_set_and_what_is_new(run):
    before = run.load_dataset()
    write(table(run), *grown())
    found = find_data(run, "unseen")
    assert len(found.dataset.x_test) == len(before.x_test) + 5
    assert set(rows(before.x_test)) < set(rows(found.dataset.x_test))
    assert not set(rows(before.x_train)) & set(rows(found.dataset.x_test))
    assert "5 are new" in found.notes[0]


def test_ways_on_by_the_command_line(run, capsys, tmp_path):
    write(table(run), *grown())
    for way, samples_there in (("original", 30), ("unseen", 35)):
        assert main(["evaluate", str(run.path), "--data-changed", way]) == 0
        written = capsys.readouterr()
        assert f"{samples_there} samples" in written.out
        assert "5 are new" in written.err
        out = tmp_path / f"{way}.csv"
        assert main(["predict", str(run.path), "--data-changed", way, "--out", str(out)]) == 0
        assert len(out.read_text().splitlines()) == samples_there + 1
        assert main(["report", str(run.path), "--data-changed", way]) == 0
        assert "5 are new" in (run.path / "report.html").read_text()
        capsys.readouterr()
        assert main(["entropy", str(run.path), "--data-changed", way, "--samples", "9", "--distances", "0.1"]) in (0, 1)
        written = capsys.readouterr()
        assert "9 samples" in written.out
        assert "5 are new" in written.err
    assert main(["evaluate", str(run.path), "--data-changed", "original", "--dataset", str(table(run))]) == 2


def test_a_test_set_of_ones_own_that_was_trained_on_is_noticed(run, capsys):
    write(table(run), *grown())
    assert main(["evaluate", str(run.path), "--dataset", str(table(run))]) == 0
    assert "was trained on" in capsys.readouterr().err


def test_classes_that_the_network_does_not_know(run):
    write(table(run))
    table(run).write_text(table(run).read_text() + "1,2,3,a\n4,5,6,a\n")
    assert len(run.load_dataset(data_changed="original").x_test) == 30
    with pytest.raises(DataChanged, match="2 samples are of classes that the network does not know"):
        run.load_dataset(data_changed="unseen")


def test_a_name_of_data_commands_no_terminal(run):
    other = table(run).rename(run.path.parent / "\x1b[2J.csv")
    write(other, *grown())
    moved = Run(run.path, run.config.replace(dataset=str(other)))
    with pytest.raises(DataChanged, match=r"\\x1b\[2J\.csv: the data of") as caught:
        moved.load_dataset()
    assert "\x1b" not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX's")
def test_a_pipe_in_the_place_of_the_checkpoint_is_not_waited_for(run):
    (run.path / "checkpoint.safetensors").unlink()
    os.mkfifo(run.path / "checkpoint.safetensors")
    with pytest.raises(OSError, match="is a named pipe, not a file"):
        run.load_dataset()


def test_generated_data_are_tied_by_their_options(tmp_path):
    run = train(tiny(), tmp_path / "run")
    config = run.path / "config.toml"
    config.write_text(config.read_text().replace("data_seed = 0", "data_seed = 1"))
    with pytest.raises(DataChanged, match="data_seed is not what the network was trained with"):
        open_run(run.path).load_dataset()


def test_equal_samples_are_counted():
    """Codes are compared as lists in which a sample may be there several times."""
    x, y = np.array([[0], [0], [0], [1], [1], [2]], np.uint8), np.array([0, 0, 1, 1, 0, 1])
    before = Raw("d", Part(x[:4], y[:4]), Part(x[4:], y[4:]), ("a", "b"), "feature")
    after = Raw("d", Part(x[:3], y[:3]), Part(x[3:4], 1 - y[3:4]), ("a", "b"), "feature")
    told = ", ".join(Fingerprint.of(before).differences(Fingerprint.of(after)))
    assert told.startswith("4 samples where there were 6 (0 are new, 2 are gone)")


def test_a_fingerprint_takes_no_time_to_speak_of():
    """Of 60,000 images of 784 bytes, in seconds of the processor."""
    x = np.random.default_rng(0).integers(0, 256, (60_000, 784), dtype=np.uint8)
    began = time.process_time()
    codes = row_codes(x)
    assert time.process_time() - began < 2
    assert len(np.unique(codes)) == len(codes)
