"""Which runs are one experiment with several seeds, and what is chosen."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cavity import data
from cavity.report.seeds import groups, mean_and_spread
from cavity.report.settings import chosen
from cavity.runs import Config
from cavity.runs.config import completed
from report.helpers import summary


def run(name, **config):
    return summary(name, config=tuple(config.items()))


@pytest.mark.parametrize(
    ("names", "common"),
    [
        (("mf-seed0", "mf-seed1"), "mf"),
        (("digits-1", "digits-12"), "digits"),
        (("a_s1", "a_s2"), "a"),
        (("0", "1"), "0"),
        (("seeds/1", "seeds/2"), "seeds"),
        (("first", "second"), "first"),
    ],
)
def test_groups_are_named_by_what_their_runs_have_in_common(names, common):
    (group,) = groups([run(name, seed=str(n)) for n, name in enumerate(names)])
    assert (group.name, group.places) == (common, (0, 1))


def test_runs_that_differ_in_more_than_their_seeds_are_apart():
    runs = [run("a0", seed="0", bias="no"), run("a1", seed="1", bias="yes"), run("a2", seed="2", bias="no")]
    assert [group.places for group in groups(runs)] == [(0, 2), (1,)]
    threads = [run("a", seed="0", threads="1"), run("b", seed="1", threads="2")]
    assert [group.places for group in groups(threads)] == [(0, 1)]
    assert [group.places for group in groups([summary("a", config=()), summary("b", config=())])] == [(0,), (1,)]


def test_groups_of_the_same_name_are_told_apart():
    runs = [run(f"x-{n}", seed=str(n), bias=bias) for n, bias in enumerate(("no", "no", "yes", "yes"))]
    assert [group.name for group in groups(runs)] == ["x (x-0)", "x (x-2)"]


def test_mean_and_spread_are_numpy_s():
    values = [1.0, None, 4.0, math.nan, 2.5]
    assert mean_and_spread(values) == pytest.approx((2.5, np.std([1.0, 4.0, 2.5], ddof=1)))
    assert mean_and_spread([None]) is None
    mean, spread = mean_and_spread([3.0])
    assert mean == 3.0
    assert math.isnan(spread)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, set()),
        ({"epochs": 7}, {"epochs"}),
        ({"hidden": (201, 201), "batch_size": 64}, set()),
        ({"hidden": (51,), "seed": 3}, {"hidden", "seed"}),
        ({"recipe": "paper"}, {"recipe"}),
        ({"recipe": "paper", "epochs": 3}, {"recipe", "epochs"}),
        ({"rho": (1.001, 0.9), "hidden": (51,)}, {"rho", "hidden"}),
        ({"layers": "conv:4:3,dense:15", "threshold": True}, {"layers", "threshold"}),
        ({"threads": 1, "device": "cpu"}, set()),
    ],
)
def test_chosen_is_what_would_be_another_without_it(options, names):
    digits = data.load("digits")
    sizes = len(digits.x_train), len(digits.x_test), digits.n_features, digits.n_classes
    config = completed(Config(**options), *sizes, digits.image_shape)
    assert chosen(config, digits) == names
