"""``kill -9`` at random moments of ``cavity train`` on digits, resumed each time: the weights of a run left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX's")


@pytest.fixture
def killing(monkeypatch):
    """The script ``kill_test.py``, which does the same by hand."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "scripts"))
    sys.modules.pop("kill_test", None)
    return import_module("kill_test")


@pytest.mark.slow
def test_killed_twice(killing, tmp_path):
    outcome = killing.kill_test(tmp_path, kills=2, seed=0, quiet=True)
    assert outcome.differences == []
    assert len(outcome.kills) == 2
    assert killing.being_written(tmp_path / "killed") == ()


@pytest.mark.slow
def test_killed_fifty_times(killing, tmp_path):
    outcome = killing.kill_test(tmp_path, kills=50, seed=1, quiet=True)
    assert outcome.differences == []
    assert any(kill.in_writing for kill in outcome.kills)


def test_the_comparison_sees_one_bit(killing, tmp_path):
    """What says that two runs are identical must be able to say that they are not."""
    import shutil

    from cavity.runs import load_checkpoint, save_checkpoint, train
    from cavity.training.trainer import Trainer
    from runs.helpers import tiny

    one = train(tiny(epochs=1), tmp_path / "one")
    other = shutil.copytree(one.path, tmp_path / "other")
    assert killing.differences(one.path, other) == []
    checkpoint, net = load_checkpoint(other / "checkpoint.safetensors"), one.load_network()
    trainer = Trainer(net, "mf")
    checkpoint.restore(net, trainer)
    net.layers[0].field[0, 0] *= 1 + 2**-20
    save_checkpoint(other / "checkpoint.safetensors", net, trainer, config=checkpoint.config, task=checkpoint.task)
    (other / "metrics.jsonl").write_text((other / "metrics.jsonl").read_text().replace("overlap", "overlaps"))
    assert killing.differences(one.path, other) == ["network.layers.0.field", "metrics"]


#: Kills a new run at one sync of a file after another; after each it begins the same run again, and prints how each
#: ended. Every one is a process of its own; they are forked so that torch is imported once.
SAME_AGAIN = """
import json, os, signal, sys, pathlib
from cavity.runs import Config, resume, train

def status(action, *arguments, kill_at=0):
    child = os.fork()
    if child == 0:
        sync, left = os.fsync, [kill_at]
        def counted(descriptor):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            sync(descriptor)
        os.fsync = counted
        try:
            action(*arguments)
        except FileExistsError:
            os._exit(2)
        except BaseException:
            os._exit(3)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

folder, config, points = pathlib.Path(sys.argv[1]), Config.from_toml(sys.argv[2]), int(sys.argv[3])
for point in range(1, points + 1):
    out = folder / str(point)
    killed = status(train, config, out, kill_at=point)
    begun = (out / "checkpoint.safetensors").exists()
    again = status(train, config, out)
    on = 0 if again == 0 else status(resume, out)
    print(json.dumps([killed, begun, again, on]))
"""


@pytest.mark.parametrize("points", [8, pytest.param(40, marks=pytest.mark.slow)])
def test_killed_at_each_of_the_first_writes_the_same_command_begins_again(tmp_path, points):
    """Until there is a checkpoint nothing would be lost; from then on, it says how to go on."""
    from cavity.runs import train
    from runs.helpers import assert_same_outcome, tiny

    whole = train(tiny(epochs=2), tmp_path / "whole")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    words = [tmp_path / "killed", whole.path / "config.toml", points]
    done = subprocess.run(
        [sys.executable, "-c", SAME_AGAIN, *map(str, words)],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(outcomes) == points
    for point, (killed, begun, again, on) in enumerate(outcomes, start=1):
        if killed == -9:
            assert (again, on) == (2 if begun else 0, 0), f"killed at write {point}: {done.stderr}"
        assert_same_outcome(whole.path, tmp_path / "killed" / str(point))
        assert not list((tmp_path / "killed" / str(point)).glob(".*.tmp"))
    assert sum(killed == -9 and not begun for killed, begun, *_ in outcomes) >= 5


def test_the_beginning_of_another_run_is_not_written_over(tmp_path):
    """Only the same run may begin again where one has begun, and only if it has kept nothing."""
    from cavity.runs import train
    from cavity.runs.training import start
    from runs.helpers import tiny

    start(tiny(epochs=1), tmp_path / "run")
    with pytest.raises(FileExistsError, match="exists already: go on with it by --resume"):
        train(tiny(epochs=1, hidden=(13,)), tmp_path / "run")
    train(tiny(epochs=1), tmp_path / "run")
    with pytest.raises(FileExistsError, match="exists already: go on with it by --resume"):
        train(tiny(epochs=1), tmp_path / "run")
    start(tiny(epochs=1), tmp_path / "noted")
    (tmp_path / "noted" / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="exists already"):
        train(tiny(epochs=1), tmp_path / "noted")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.toml").write_text("hidden = [")
    with pytest.raises(FileExistsError, match="exists already"):
        train(tiny(epochs=1), tmp_path / "broken")
