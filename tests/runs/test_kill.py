"""``kill -9`` at random moments of ``cavity train`` on digits, resumed each time: the weights of a run left alone."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time

import pytest

from cavity.cli import main
from cavity.runs import Config, resume, train
from runs.helpers import assert_same_outcome

DIGITS = Config(dataset="digits", binary_task=True, hidden=(21,), threads=1, device="cpu")
OPTIONS = ("--quiet", "--checkpoint-seconds", "0")


@pytest.fixture(scope="module")
def processes():
    """New processes for ``cavity``, from a server that has imported what takes long."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["cavity.cli.train", "cavity.runs.training", "sklearn.datasets"])
    return context


def kill_while_training(processes, arguments, path, delay):
    """SIGKILL some time after the run has begun to write; returns False if it had ended by then."""
    marks = (path / "checkpoint.safetensors", path / "config.toml")

    def times():
        return [mark.stat().st_mtime_ns if mark.exists() else None for mark in marks]

    before = times()
    process = processes.Process(target=main, args=(["train", *OPTIONS, *arguments],))
    process.start()
    try:
        while process.is_alive() and times() == before:
            time.sleep(0.001)
        time.sleep(delay)
    finally:
        process.kill()
        process.join()
    return process.exitcode == -signal.SIGKILL


def killed_again_and_again(processes, tmp_path, kills, epochs, seed):
    """A checkpoint is written at every step, so that many of the kills hit the writing of one."""
    chance = random.Random(seed)
    whole = train(DIGITS.replace(epochs=epochs), tmp_path / "whole")
    path = tmp_path / "killed"
    start = ["--config", str(whole.path / "config.toml"), "--out", str(path)]
    killed = kill_while_training(processes, start, path, chance.uniform(0, 0.1))
    for _ in range(kills - 1):
        killed += kill_while_training(processes, ["--resume", str(path)], path, chance.uniform(0, 0.1))
    assert killed == kills
    resume(path)
    assert_same_outcome(whole.path, path)
    assert len((path / "metrics.jsonl").read_text().splitlines()) == epochs


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX's")
def test_killed_a_few_times(processes, tmp_path):
    killed_again_and_again(processes, tmp_path, kills=5, epochs=12, seed=0)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX's")
def test_killed_fifty_times(processes, tmp_path):
    killed_again_and_again(processes, tmp_path, kills=50, epochs=120, seed=1)
