"""Turns, ratios and the clock inside a fit."""

from __future__ import annotations

import time

import pytest
import torch

from cavity.baselines import BinaryNet, BinaryNetTrainer
from cavity.data import load
from cavity.studies.bench import timing
from cavity.studies.bench.contenders import NEED_COMPILER, build, names
from cavity.studies.bench.idiomatic import IdiomaticBinaryNet, IdiomaticTrainer
from cavity.studies.bench.timing import best_of_turns, ratio, time_contenders, train_seconds

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def test_turns_are_interleaved_and_the_best_counts():
    taken, times = [], {"a": iter([3.0, 1.0, 2.0]), "b": iter([5.0, 7.0, 4.0])}

    def turn(name):
        taken.append(name)
        return next(times[name])

    best = best_of_turns({name: lambda name=name: turn(name) for name in times}, 3)
    assert best == {"a": 1.0, "b": 4.0}
    assert taken == ["a", "b"] * 3


def test_the_ratio_is_to_the_faster_binarynet():
    assert ratio("mf", {"binarynet": 4.0, "binarynet-compiled": 2.0, "mf": 3.0}) == 1.5
    assert ratio("mf", {"binarynet": 2.0, "binarynet-compiled": 4.0, "mf": 3.0}) == 1.5
    assert ratio("binarynet", {"binarynet": 4.0, "binarynet-compiled": 2.0}) == 2.0
    assert ratio("mf", {"bp": 1.0, "mf": 3.0}) is None


def test_the_yardstick_learns_what_the_tuned_binarynet_learns():
    """The same start, data and steps: only the order of floating-point operations differs."""
    tuned = BinaryNetTrainer(BinaryNet(20, (15, 15), 3, seed=1), seed=1)
    plain = IdiomaticTrainer(IdiomaticBinaryNet(20, (15, 15), 3, seed=1), compile=False, seed=1)
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        x, y = torch.randn(16, 20, generator=generator), torch.randint(3, (16,), generator=generator)
        torch.testing.assert_close(plain.step(x, y), tuned.step(x, y))
    for one, other in zip(plain.net.parameters(), tuned.net.parameters(), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", ["binarynet", "mf"])
def test_the_clock_counts_its_steps_and_nothing_else(name, digits, monkeypatch):
    """Each step sleeps 10 ms, a score would raise: ten timed steps after one that leads in, twice."""
    trainer = build(name, [64, 11, 10], CPU, seed=0, compile=False)
    plain = trainer.learn

    def slow(x, y):
        time.sleep(0.01)
        return plain(x, y)

    monkeypatch.setattr(trainer, "learn", slow)
    data = digits.x_train[: 11 * 32], digits.y_train[: 11 * 32]
    for turn in (1, 2):
        assert train_seconds(trainer, data, 32, 10) >= 0.01
        assert trainer.steps == 11 * turn
        assert trainer.history == []


def test_measure_covers_every_algorithm(digits):
    runnable = [name for name in names() if name not in NEED_COMPILER]
    data = digits.x_train, digits.y_train
    found = time_contenders(runnable, [64, 11, 10], data, 32, steps=2, repeats=2, seed=0, compile=False)
    assert [row.algorithm for row in found] == runnable
    fastest = found[0].seconds_per_step
    for row in found:
        assert row.ratio == row.seconds_per_step / fastest
        assert row.seconds_per_epoch == pytest.approx(row.seconds_per_step * (len(digits.x_train) // 32))
        assert 0 < row.product_share < 1
        assert row.peak_bytes >= 32 * 11 * 4
    operations = {row.algorithm: row.product_operations for row in found}
    assert operations["binarynet"] < operations["mf"] < operations["amp"]


def test_the_turns_that_are_over_are_told():
    told = []
    best = best_of_turns({"a": lambda: 2.0, "b": lambda: 1.0}, 2, told.append)
    assert (best, told) == ({"a": 2.0, "b": 1.0}, [0, 1, 2, 3, 4])


def test_too_large_a_batch_is_refused(digits):
    data = digits.x_train[:50], digits.y_train[:50]
    with pytest.raises(ValueError, match="batch size 32 needs at least 64 samples, the data has 50"):
        time_contenders(["mf"], [64, 11, 10], data, 32, steps=2, repeats=1, seed=0, compile=False)


def test_the_clock_refuses_to_cross_an_epoch(digits):
    trainer = build("binarynet", [64, 11, 10], CPU, seed=0, compile=False)
    with pytest.raises(AssertionError, match="before the epoch ends"):
        timing.train_seconds(trainer, (digits.x_train[:64], digits.y_train[:64]), 32, 2)
