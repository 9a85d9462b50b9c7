"""A stream of tasks: what is measured, and that it goes on exactly where it was stopped."""

from __future__ import annotations

import pytest
import torch

from cavity.data import Dataset
from cavity.studies.experiments import Request
from cavity.studies.experiments.permuted_stream import EXPERIMENT, FOREIGN, foreign_auroc, learn, result, spans
from cavity.studies.experiments.setup import build, load
from cavity.training.callbacks import Callback


class Stopped(Exception):
    pass


class StopAt(Callback):
    """Ends a run in its step of that number."""

    def __init__(self, step):
        self.step = step

    def on_step(self, trainer, info):
        if trainer.steps == self.step:
            raise Stopped


@pytest.mark.parametrize("cell", EXPERIMENT.cells(Request("smoke")), ids=lambda cell: cell.label)
@pytest.mark.parametrize("step", [2, 4])
def test_a_stream_goes_on_where_it_was_stopped(cell, step, tmp_path):
    base = load(cell.setup)
    whole = build(cell.setup, base)
    learn(whole, cell.setup, base, tmp_path / "whole", lambda done, total: None)
    cut = build(cell.setup, base)
    with pytest.raises(Stopped):
        learn(cut, cell.setup, base, tmp_path / "cut", lambda done, total: None, [StopAt(step)], seconds=0.0)
    again = build(cell.setup, base)
    learn(again, cell.setup, base, tmp_path / "cut", lambda done, total: None)
    for one, other in zip(whole.net.state_dict().values(), again.net.state_dict().values(), strict=True):
        assert torch.equal(one, other)


def test_every_task_is_measured_when_it_is_new_and_at_the_end(tmp_path):
    cell = EXPERIMENT.cells(Request("smoke", methods=("mf",)))[1]
    found = result(cell, tmp_path, lambda done, total: None)
    assert len(found["new"]) == len(found["last_bayes"]) == cell.options["tasks"] == 3
    assert found["new_bayes"][-1] == found["last_bayes"][-1]
    assert found["new_bayes"][0] != found["last_bayes"][0]
    assert found["foreign_auroc"] is None


def test_means_over_the_last_tasks():
    assert spans(list(range(30))) == [27.0, 19.5, None]


def test_foreign_images_are_in_the_units_and_the_order_of_the_task(monkeypatch):
    """Images of the data set itself, taken for foreign ones, cannot be told from the task's."""
    cell = EXPERIMENT.cells(Request("smoke", methods=("mf",)))[0]
    base = load(cell.setup.replace(samples=None))
    trainer = build(cell.setup, base)
    task = base.permuted(3)
    for index in torch.arange(1000).split(50):
        trainer.step(task.x_train[index], task.y_train[index])
    assert foreign_auroc(trainer, base, 3) is None
    monkeypatch.setitem(FOREIGN, "digits", "digits")
    assert foreign_auroc(trainer, base, 3) == 50.0
    # In the order of another task they are foreign indeed.
    monkeypatch.setattr(Dataset, "order", lambda self, seed: torch.arange(64).flip(0))
    monkeypatch.setattr(Dataset, "permuted", lambda self, seed: task)
    assert foreign_auroc(trainer, base, 3) > 55
