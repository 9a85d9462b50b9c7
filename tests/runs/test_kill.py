"""``kill -9`` at random moments of ``cavity train`` on digits, resumed each time: the weights of a run left alone."""

from __future__ import annotations

import os
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
