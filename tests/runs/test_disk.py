"""Runs on a full disk and on one that can only be read: a clear error, and nothing lost that was there."""

from __future__ import annotations

import shutil
from collections import deque

import pytest

from cavity.cli import main
from cavity.runs import load_checkpoint, open_run, resume, train
from disks import FILLER, small_disk
from runs.helpers import assert_same_outcome, tiny


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk") as made:
        yield made


@pytest.fixture
def run(disk):
    """A run of one epoch on the small disk."""
    return train(tiny(epochs=1, rho=(1.0, 0.9)), disk.path / "run")


@pytest.fixture
def whole(tmp_path):
    """The same run for three epochs, on a disk with room."""
    return train(tiny(epochs=3, rho=(1.0, 0.9)), tmp_path / "whole")


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


def pages(path) -> int:
    return -(-path.stat().st_size // 4096)


def test_every_file_of_a_run_may_be_the_one_that_has_no_room(disk, run, whole):
    """With 0, 1, 2 … pages free it is the configuration or the checkpoint that cannot be written."""
    before, failed, copy = contents(run.path), set(), disk.path.with_name("copy")
    for free in range(2 * pages(run.path / "checkpoint.safetensors") + 4):
        disk.fill(free)
        try:
            resume(run.path, epochs=3, checkpoint_seconds=0)
            break
        except OSError as error:
            message = str(error)
        assert "could not be written (No space left on device)" in message
        failed |= {name for name in before if f"/{name} could not" in message}
        # What is there is whole: a run that goes on to the same end when there is room again.
        assert not [path for path in run.path.iterdir() if path.suffix == ".tmp"]
        load_checkpoint(run.path / "checkpoint.safetensors")
        shutil.copytree(run.path, copy)
        resume(copy, epochs=3)
        assert_same_outcome(whole.path, copy)
        assert [record.epoch for record in open_run(copy).records] == [1, 2, 3]
        shutil.rmtree(copy)
    else:
        pytest.fail("the run never fitted")
    assert failed == {"config.toml", "checkpoint.safetensors"}
    disk.empty()
    assert_same_outcome(whole.path, run.path)


def test_metrics_that_break_off_within_a_line(disk, run):
    disk.fill()
    record = run.records[0]
    endless = (run.append_record(record) for _ in iter(int, 1))
    with pytest.raises(OSError, match=r"metrics\.jsonl could not be written \(No space left on device\)"):
        deque(endless, maxlen=0)
    text = (run.path / "metrics.jsonl").read_text()
    assert not text.endswith("\n")
    assert open_run(run.path).records == [record] * text.count("\n")
    disk.empty()
    resume(run.path, epochs=2)
    assert [record.epoch for record in open_run(run.path).records] == [1, 2]


def test_the_command_says_which_file_and_stops(disk, run, capsys):
    before = contents(run.path)
    disk.fill()
    assert main(["train", "--quiet", "--resume", str(run.path), "--epochs", "2"]) == 2
    assert capsys.readouterr().err == (
        f"cavity: {run.path}/config.toml could not be written (No space left on device); what it held before is kept\n"
    )
    assert contents(run.path) == before


def test_a_new_run_without_room(disk, capsys):
    disk.fill()
    assert main(["train", "--quiet", "--dataset", "digits", "--epochs", "1", "--out", str(disk.path / "new")]) == 2
    assert "config.toml could not be written (No space left on device)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (["report", "RUN"], "run/report.html"),
        (["report", "RUN", "--out", "OUT", "--force"], "out"),
        (["export", "RUN", "--inputs", "real", "--format", "packed", "--out", "OUT", "--force"], "out"),
        (["export", "RUN", "--inputs", "real", "--format", "c", "--out", "OUT.c", "--force"], "out.h"),
        (["predict", "RUN", "--out", "OUT.csv", "--force"], "out.csv"),
    ],
    ids=["report", "report elsewhere", "packed", "c", "predictions"],
)
def test_what_a_command_writes(disk, run, capsys, arguments, file):
    """The file that was there is kept, and there is no half of the new one."""
    target = disk.path / file
    target.write_text("what was there")
    words = [word.replace("RUN", str(run.path)).replace("OUT", str(disk.path / "out")) for word in arguments]
    disk.fill()
    assert main(words) == 2
    assert f"{target} could not be written (No space left on device)" in capsys.readouterr().err
    with disk.read_only():
        assert main(words) == 2
        assert f"{target} could not be written (Read-only file system)" in capsys.readouterr().err
    assert target.read_text() == "what was there"
    disk.empty()
    assert sorted(path.name for path in disk.path.rglob("*") if path.suffix == ".tmp") == []
    assert main(words) == 0
    assert target.read_text(errors="replace") != "what was there"


def test_a_folder_that_can_only_be_read(disk, run, tmp_path, capsys):
    """Nothing can be trained there; all that only reads works as ever."""
    before = contents(run.path)
    with disk.read_only():
        assert main(["train", "--quiet", "--resume", str(run.path), "--epochs", "2"]) == 2
        assert f"{run.path}/.lock: Read-only file system" in capsys.readouterr().err
        assert main(["train", "--quiet", "--dataset", "digits", "--out", str(disk.path / "new")]) == 2
        assert f"{disk.path}/new: Read-only file system" in capsys.readouterr().err
        assert main(["evaluate", str(run.path)]) == 0
        assert main(["predict", str(run.path), "--out", str(tmp_path / "predictions.csv")]) == 0
        assert main(["report", str(run.path), "--out", str(tmp_path / "report.html")]) == 0
        out = ["--out", str(tmp_path / "net.cavity")]
        assert main(["export", str(run.path), "--inputs", "real", "--format", "packed", *out]) == 0
    assert contents(run.path) == before
    assert not (disk.path / FILLER).exists()
