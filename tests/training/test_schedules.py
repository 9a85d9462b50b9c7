"""Schedules are functions of the fraction of training that is done."""

import itertools

import pytest

from cavity.training.schedules import SCHEDULES, Cosine, OneCycle, Steps


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_a_factor_that_never_grows_after_its_warm_up(name):
    schedule = SCHEDULES.make(name)
    factors = [schedule(t / 100) for t in range(10, 101)]
    assert all(0 <= later <= earlier <= 1 for earlier, later in itertools.pairwise(factors))


def test_a_cosine_ends_at_its_floor_and_stays_there():
    schedule = Cosine(floor=0.1, end=0.8)
    assert schedule(0.0) == 1
    assert schedule(0.4) == pytest.approx(0.5)
    assert schedule(0.8) == schedule(1.0) == 0.1


def test_one_cycle_rises_first():
    schedule = OneCycle(start=0.2, warm=0.25)
    assert schedule(0.0) == pytest.approx(0.2)
    assert schedule(0.25) == pytest.approx(1.0)
    assert schedule(1.0) == pytest.approx(0.0)


def test_steps_multiply():
    schedule = Steps(at=(0.5, 0.75), factor=0.1)
    assert [schedule(t) for t in (0.0, 0.5, 0.9)] == pytest.approx([1, 0.1, 0.01])
