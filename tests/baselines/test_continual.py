"""What all baselines share that are built for tasks in sequence: exact resumption and compiled steps."""

from __future__ import annotations

import pytest
import torch

from baselines.helpers import batch
from cavity.baselines import BayesBinaryNet, BayesBiNNTrainer, BinaryNet, ElasticTrainer, MetaplasticTrainer
from cavity.engine.compiling import compiler_problem
from cavity.runs import load_checkpoint, save_checkpoint

KINDS = ("bayesbinn", "ewc", "metaplastic")


def fresh(kind, activation="sign", **options):
    if kind == "bayesbinn":
        return BayesBiNNTrainer(BayesBinaryNet(20, (31,), 5, activation=activation), **options)
    trainer = {"ewc": ElasticTrainer, "metaplastic": MetaplasticTrainer}[kind]
    return trainer(BinaryNet(20, (31,), 5, activation=activation), **options)


def stream(trainer, tasks):
    """Three mini-batches of each task, and its end."""
    for task in tasks:
        for seed in range(3):
            trainer.step(*batch(5, seed=10 * task + seed))
        trainer.end_task(*batch(5, seed=10 * task))


@pytest.mark.parametrize("activation", ["sign", "gate"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_between_tasks_continues_exactly(kind, activation, tmp_path):
    whole = fresh(kind, activation, seed=3)
    stream(whole, (0, 1))
    whole.step(*batch(5, seed=99))
    save_checkpoint(tmp_path / "half", whole.net, whole)
    stream(whole, (2, 3))
    again = fresh(kind, activation, seed=4)
    load_checkpoint(tmp_path / "half").restore(again.net, again)
    stream(again, (2, 3))
    assert again.steps == whole.steps == 13
    for one, other in zip(whole.slots, again.slots, strict=True):
        assert torch.equal(one, other)
    for one, other in zip(whole.net.weights, again.net.weights, strict=True):
        assert torch.equal(one, other)


@pytest.mark.slow
@pytest.mark.skipif(compiler_problem() is not None, reason="nothing can be compiled here")
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_steps_are_the_eager_ones(kind):
    """At so small a rate that no rounding error can flip a sign within these steps and send the two runs apart."""
    one, other = fresh(kind, "gate", lr=1e-6), fresh(kind, "gate", lr=1e-6, compile=True)
    for seed in range(3):
        x, y = batch(5, seed=seed)
        torch.testing.assert_close(one.step(x, y), other.step(x, y))
        one.end_task(x, y)
        other.end_task(x, y)
    for a, b, start in zip(one.net.weights, other.net.weights, fresh(kind).net.weights, strict=True):
        assert (a - start).detach().abs().max() > 1e-6
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)
