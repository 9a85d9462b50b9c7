"""Whole runs: what they take, and when they reach an error."""

import time

import pytest

import cavity
from cavity.studies.bench import whole


@pytest.fixture(scope="module")
def digits():
    return cavity.data.load("digits")


def run(digits, names, sizes, **options):
    train, test = (digits.x_train, digits.y_train), (digits.x_test, digits.y_test)
    values = {"target": None, "batch_size": 256, "epochs": 3, "seed": 0, "compile": False, **options}
    return whole.whole_runs(names, sizes, train, test, **values)


def test_a_run_in_turns_is_the_run_itself(digits):
    """Stopping after every epoch changes nothing: the schedule is that of the whole run."""
    _, row = run(digits, ["binarynet", "mf"], [64, 21, 10])
    net = cavity.mlp(64, (21,), 10)
    data = (digits.x_train, digits.y_train), (digits.x_test, digits.y_test)
    last = cavity.Trainer(net, "mf", compile=False).fit(data[0], validation=data[1], epochs=3, batch_size=256)[-1]
    assert (row.error, row.error_bayes) == (last.test_error, last.test_error_bayes)


def test_measuring_counts_in_a_run_and_not_in_the_time_to_a_target(digits, monkeypatch):
    """Measuring takes 0.2 s a time here, far longer than training."""
    looks, inner = [], cavity.Trainer.record

    def slow(*args):
        looks.append(1)
        time.sleep(0.2)
        return inner(*args)

    monkeypatch.setattr(cavity.Trainer, "record", slow)
    (row,) = run(digits, ["mf"], [64, 21, 10], target=100.0)
    assert len(looks) == 3
    assert row.seconds > 0.6
    assert 0 < row.seconds_to_target < 0.2


def test_what_is_never_reached_is_said(digits):
    names = ["binarynet", "mf"]
    rows = run(digits, names, [64, 5, 10], target=0.0)
    assert [row.algorithm for row in rows] == names
    assert [(row.seconds_to_target, row.seconds_to_target_bayes) for row in rows] == [(None, None)] * 2
    assert rows[0].ratio == 1.0
    assert rows[1].ratio == pytest.approx(rows[1].seconds / rows[0].seconds)
