"""Sweeps in real processes: they end with the same trials however often they were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import cavity
from cavity.cli import main
from cavity.runs import Config
from cavity.studies.sweep import Space, open_sweep
from cavity.studies.sweep.running import Listener, prepare, work
from cavity.util.files import only_writer
from studies.sweep.helpers import COMMAND, ENVIRONMENT, results, tiny

#: Long enough to be killed on the way.
EPOCHS = 25
OPTIONS = ["--recipe", "paper", "--algorithm", "mf", "--hidden", "15", "--batch-size", "128", "--threads", "1"]
OPTIONS += ["--epochs", str(EPOCHS)]

needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the workers in /proc")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A sweep of one job that was left alone."""
    folder = tmp_path_factory.mktemp("sweep") / "whole"
    assert main(["sweep", *OPTIONS, "--trials", "3", "--quiet", "--out", str(folder)]) == 0
    return open_sweep(folder)


def start(folder, *words):
    return subprocess.Popen(
        [*COMMAND, *words],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        start_new_session=True,
    )


def wait_for(condition, process):
    """Until it holds; the process must still be running then."""
    deadline = time.monotonic() + 100
    while not condition():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline
        # Looking takes time, too: a data base is opened.
        time.sleep(0.1)


def finished(folder):
    return [trial for trial in open_sweep(folder).trials if trial.state != "open"]


def in_the_second(folder):
    """Whether the second trial has had an epoch and will have some more."""
    trials = open_sweep(folder).trials if (folder / "sweep.db").exists() else []
    return [trial.state for trial in trials] == ["complete", "open"] and 0 < len(trials[1].curve) < EPOCHS - 5


def children(pid):
    """The processes that the main thread of a process has started."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def is_alive(pid):
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.slow
@needs_proc
def test_a_sweep_goes_on_after_being_killed(whole, tmp_path):
    folder = tmp_path / "killed"
    with start(tmp_path, *OPTIONS, "--trials", "3", "--out", "killed") as process:
        wait_for(lambda: in_the_second(folder), process)
        workers = children(process.pid)
        process.send_signal(signal.SIGKILL)
    assert len(workers) == 1
    before = finished(folder)
    deadline = time.monotonic() + 30
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, workers))
    assert [trial.number for trial in before] == [0]
    assert (folder / "best.toml").exists()

    assert main(["sweep", "--resume", str(folder), "--quiet"]) == 0
    after = open_sweep(folder).trials
    assert after[0] == before[0]
    assert results(after) == results(whole.trials)
    assert [trial.number for trial in after] == [0, 2, 3]


@needs_proc
def test_ctrl_c_ends_a_sweep_and_says_how_to_go_on(tmp_path):
    with start(tmp_path, *OPTIONS, "--trials", "4", "--out", "stopped") as process:
        wait_for(lambda: (tmp_path / "stopped" / "sweep.db").exists() and children(process.pid), process)
        # As a terminal does it: to the workers, too.
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "go on with: cavity sweep --resume stopped" in said
    assert "Traceback" not in said
    with only_writer(tmp_path / "stopped"):
        pass


def test_what_is_finished_is_not_done_again(whole, capsys):
    before = whole.trials
    assert main(["sweep", "--resume", str(whole.path), "--trials", "3"]) == 0
    assert whole.trials == before
    out = capsys.readouterr().out
    assert "3 trials: 3 complete" in out
    assert "the defaults" in out
    assert f"cavity train --config {whole.path / 'best.toml'}" in out


def test_the_best_configuration_trains_on_the_whole_training_set(whole, tmp_path, capsys):
    best = whole.best
    assert best.value == min(trial.value for trial in whole.trials)
    assert best.value == list(best.curve.values())[-1]
    assert len(best.curve) == EPOCHS
    assert Config.from_toml(whole.path / "best.toml") == whole.best_config
    words = ["train", "--config", str(whole.path / "best.toml"), "--out", str(tmp_path / "best"), "--quiet"]
    assert main([*words, "--epochs", "2"]) == 0
    run = cavity.runs.open_run(tmp_path / "best")
    assert run.finished
    assert (run.config.hidden, run.config.algorithm, run.config.init) == ((15,), "mf", best.values["init"])
    assert run.config.damping == (best.values["damping"],)


@pytest.mark.slow
def test_several_jobs_and_pruning(tmp_path):
    """A single hidden unit cannot tell ten digits apart: it is given up as soon as enough others are known."""
    space = Space(("hidden",), hidden=((1,), (25,), (27,), (29,)))
    sweep = cavity.studies.sweep.run(tiny(epochs=8), space, tmp_path / "pruned", trials=16, jobs=2)
    trials = sweep.trials
    pruned = [trial for trial in trials if trial.state == "pruned"]
    assert len(trials) == 16
    assert sum(trial.state == "complete" for trial in trials) >= 5
    assert pruned
    assert (1,) in [trial.values["hidden"] for trial in pruned]
    assert all(2 <= len(trial.curve) < 8 for trial in pruned)
    assert sweep.best.values["hidden"] != (1,)
    assert not (tmp_path / "pruned" / "errors.txt").exists()


def test_failures_are_shown_and_end_a_sweep_where_nothing_succeeds(tmp_path, capsys):
    # The trainer refuses what a configuration does not know to be wrong.
    words = [*OPTIONS, "--tolerance", "-1", "--trials", "9"]
    assert main(["sweep", *words, "--out", str(tmp_path / "failed"), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert "no trial has succeeded, the last one failed: tolerance must be" in said
    assert said.count("\n") == 1
    assert [trial.state for trial in open_sweep(tmp_path / "failed").trials] == ["failed"] * 3
    assert "Traceback" in (tmp_path / "failed" / "errors.txt").read_text()


class KillInTheSecond(Listener):
    """Kills the worker in the second trial."""

    def advance(self, number, epoch):
        if number == 1 and epoch == 1:
            # Other tests of the same process may have left children of their own.
            lines = {child: Path(f"/proc/{child}/cmdline").read_bytes() for child in children(os.getpid())}
            (worker,) = (child for child, line in lines.items() if b"cavity.studies.sweep" in line)
            os.kill(int(worker), signal.SIGKILL)


@pytest.mark.slow
@needs_proc
def test_a_worker_that_is_killed_costs_one_trial(tmp_path):
    sweep = prepare(tiny(), Space(("rho",)), tmp_path / "murdered", trials=3)
    work(sweep, 1, KillInTheSecond())
    assert [trial.state for trial in sweep.trials] == ["complete", "failed", "complete"]
    assert sweep.trials[1].reason == "its process ended with status -9"


def test_two_processes_do_not_share_a_sweep(whole):
    with only_writer(whole.path), pytest.raises(OSError, match="written by another process"):
        cavity.studies.sweep.resume(whole.path, trials=5)
