"""``torchrun -m cavity train``: one run folder, the weights of a single process, and no step lost when a rank dies."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
import torch

from cavity.cli import main
from cavity.engine.distributed import timeout
from cavity.runs import load_checkpoint, open_run
from engine.distributed.launch import finished, torchrun, workers
from runs.helpers import TINY_DATA, assert_same_outcome

EPOCHS = 60
#: 4 mini-batches of 31 samples in an epoch, a checkpoint after each.
OPTIONS = (
    *(word for name, value in TINY_DATA.items() for word in ("--data-option", f"{name}={value}")),
    *("--dataset", "teacher-student", "--hidden", "11", "--algorithm", "bp", "--batch-size", "31"),
    *("--threads", "1", "--device", "cpu", "--checkpoint-seconds", "0", "--epochs", str(EPOCHS), "--threshold"),
)
needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the ranks in /proc")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple[Path, str]:
    """A run of two processes that nobody disturbs, and what it says."""
    path = tmp_path_factory.mktemp("runs") / "undisturbed"
    return path, finished(torchrun(2, "-m", "cavity", "train", *OPTIONS, "--out", str(path)))


def assert_same_fields(one: Path, other: Path) -> None:
    """Fields to 1e-5 of the largest, and the same position of the generator."""
    first, second = (load_checkpoint(path / "checkpoint.safetensors") for path in (one, other))
    for name in (name for name in first.network if name.endswith("field")):
        gap = (first.network[name] - second.network[name]).abs().max()
        assert gap <= 1e-5 * first.network[name].abs().max(), name
    assert torch.equal(first.trainer["generator"], second.trainer["generator"])


def wait_for(job, path: Path, epochs: int) -> None:
    """Until so many epochs are done."""
    metrics = path / "metrics.jsonl"
    while job.poll() is None and (not metrics.exists() or metrics.read_text().count("\n") < epochs):
        time.sleep(0.005)


def lives(process: int) -> bool:
    """Whether it has not ended, collected by its parent or not."""
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def kill(job, rank: int, path: Path, epochs: int) -> None:
    """SIGKILL to one rank when so many epochs are done, and a little more."""
    wait_for(job, path, epochs)
    os.kill(workers(job)[rank], signal.SIGKILL)


def test_one_run_is_written_and_it_is_that_of_one_process(undisturbed, tmp_path) -> None:
    path, said = undisturbed
    assert main(["train", *OPTIONS, "--quiet", "--out", str(tmp_path / "alone")]) == 0
    together, alone = open_run(path), open_run(tmp_path / "alone")
    assert [record.test_error for record in together.records] == [record.test_error for record in alone.records]
    assert together.config == alone.config
    assert (path / "report.html").exists()
    assert said.count("test error") == 1, "one process speaks"
    assert_same_fields(path, alone.path)


@pytest.mark.slow
@needs_proc
def test_a_rank_that_dies_stops_the_job_with_a_clear_error(undisturbed, tmp_path) -> None:
    path = tmp_path / "killed"
    job = torchrun(2, "-m", "cavity", "train", *OPTIONS, "--out", str(path))
    kill(job, 0, path, epochs=5)
    said = finished(job, status=1)
    assert "cavity: process 1 of 2 lost contact with the others" in said
    assert "Signal 9 (SIGKILL) received" in said
    assert main(["train", "--quiet", "--resume", str(path)]) == 0, "one process can go on alone"
    assert_same_fields(undisturbed[0], path)


@pytest.mark.slow
@needs_proc
def test_torchrun_restarts_from_the_checkpoint_and_nothing_is_lost(undisturbed, tmp_path) -> None:
    path = tmp_path / "killed"
    job = torchrun(2, "-m", "cavity", "train", *OPTIONS, "--out", str(path), restarts=1)
    kill(job, 1, path, epochs=20)
    said = finished(job)
    assert "lost contact" in said
    assert said.count(f"epoch 1/{EPOCHS}") == 1, "it did not begin anew"
    assert_same_outcome(undisturbed[0], path)
    assert len((path / "metrics.jsonl").read_text().splitlines()) == EPOCHS


@pytest.mark.slow
@needs_proc
def test_a_rank_that_hangs_is_noticed_in_time(tmp_path, monkeypatch) -> None:
    # Processes must have met within the time, on a busy machine too.
    monkeypatch.setenv("CAVITY_TIMEOUT", "15")
    path = tmp_path / "stopped"
    job = torchrun(2, "-m", "cavity", "train", *OPTIONS, "--out", str(path))
    wait_for(job, path, epochs=2)
    ranks = workers(job)
    os.kill(ranks[1], signal.SIGSTOP)
    began = time.monotonic()
    while lives(ranks[0]) and time.monotonic() - began < 100:
        time.sleep(0.1)
    # torchrun would give it half a minute to end by itself.
    os.kill(ranks[1], signal.SIGKILL)
    said = finished(job, status=1)
    assert "cavity: process 0 of 2 has waited 15 s for the others" in said
    assert "CAVITY_TIMEOUT" in said


def test_a_timeout_that_is_none_is_an_error(monkeypatch) -> None:
    for text in ("soon", "0", "-3", "nan", "inf"):
        monkeypatch.setenv("CAVITY_TIMEOUT", text)
        with pytest.raises(ValueError, match=f"CAVITY_TIMEOUT must be a number of seconds > 0, got '{text}'"):
            timeout()
