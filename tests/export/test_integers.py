"""Exact integers against rational arithmetic, and against the engine."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import cavity
from cavity.analysis.metrics import class_index
from cavity.export import ExportError, Inputs, Trained, describe
from cavity.export.integers import _folded
from cavity.packed import PackedNetwork
from cavity.packed.description import Weights
from export.helpers import KINDS, exact_classes, near_zero, network, samples, trained


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_agrees_with_rational_arithmetic(kind: str) -> None:
    model = trained(kind)
    x = samples(model.inputs, model.net.input_shape[0], 60)
    assert (PackedNetwork(describe(model)).predict(x) == exact_classes(model.net, model.inputs, x)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_agrees_with_the_engine_where_rounding_cannot_decide(kind: str) -> None:
    model = trained(kind, seed=1)
    x = samples(model.inputs, model.net.input_shape[0], 300)
    standardized = torch.from_numpy((x / (model.inputs.white or 1) - model.inputs.mean) / model.inputs.std).float()
    told = ~near_zero(model.net, standardized, model.inputs.white is not None)
    assert told.sum() > 100
    guess = class_index(model.net, model.net.predict(standardized)).numpy()
    assert (PackedNetwork(describe(model)).predict(x) == guess)[told].all()


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 70), min_size=2, max_size=4).filter(lambda sizes: sizes[-1] < 12),
    weights=st.sampled_from(["binary", "ternary"]),
    density=st.sampled_from([1.0, 0.5]),
    bias=st.booleans(),
    white=st.sampled_from([1, 16, 255]),
    mean=st.floats(0, 1, width=32),
    std=st.floats(0.0625, 2, width=32),
    seed=st.integers(0, 1000),
)
def test_any_network_agrees_with_rational_arithmetic(sizes, weights, density, bias, white, mean, std, seed) -> None:
    """Few inputs and a mean of few digits: sums of exactly 0 are frequent here."""
    net = network(tuple(sizes), seed, weights=weights, density=density, bias=bias)
    model = Trained(net, Inputs.pixels(mean, std, white))
    x = samples(model.inputs, sizes[0], 12, seed)
    if len(sizes) == 2 and sizes[-1] > 1:  # scores that are compared are rounded to 2^-16 of a grey level
        mean = round(mean * 256) / 256
        model = Trained(net, Inputs.pixels(mean, 0.5 if bias else std, white))
    assert (PackedNetwork(describe(model)).predict(x) == exact_classes(net, model.inputs, x)).all()


def test_a_sum_of_zero_is_plus_one() -> None:
    net = network((2, 1))
    net.weighted()[0].mean[:] = torch.tensor([[0.5, -0.5]])
    packed = PackedNetwork(describe(Trained(net, Inputs.pixels(0.5, 0.1))))
    assert packed.scores([[7, 7], [7, 8]]).ravel().tolist() == [0, -1]
    assert packed.predict([[7, 7], [7, 8]]).tolist() == [1, 0]


def test_channels_of_different_width_stay_whole_numbers() -> None:
    net = network((3 * 50, 20, 5))
    inputs = Inputs.pixels(np.repeat([0.2, 0.4, 0.7], 50), np.repeat([0.1, 0.25, 0.3], 50))
    description = describe(Trained(net, inputs))
    assert [width for width, _ in description.inputs.groups] == [50, 50, 50]
    assert description.inputs.groups[0][1] == 1 << 24
    x = samples(inputs, 150, 100)
    assert (PackedNetwork(description).predict(x) == exact_classes(net, inputs, x)).all()


def test_what_cannot_be_exported_says_what_and_why() -> None:
    real = Inputs.real()
    refused = {
        "activation 0 is ReLU": cavity.mlp(3, [3], 2, activation="relu"),
        "layer 1 has atoms weights": cavity.Network(
            [cavity.Dense(3, 3), "sign", cavity.Layer(cavity.Dense(3, 2), cavity.Atoms([-2, 1])), "argmax"]
        ),
        "output is GaussianOutput": cavity.mlp(3, [3], 1, output="gaussian"),
        "output is 2 labels": cavity.mlp(3, [3], 2, output="label"),
    }
    for reason, net in refused.items():
        with pytest.raises(ExportError, match=reason):
            describe(Trained(net, real))
    with pytest.raises(ExportError, match="mean and std of 4 features, the network takes 3"):
        describe(Trained(cavity.mlp(3, [3], 2), Inputs.real(np.zeros(4), np.ones(4))))
    with pytest.raises(ExportError, match="17 different std"):
        describe(Trained(cavity.mlp(17, [3], 2), Inputs.pixels(np.zeros(17), np.arange(1.0, 18))))
    with pytest.raises(ExportError, match="only networks trained by message passing"):
        describe(Trained(torch.nn.Linear(3, 2), real))


def test_inputs_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="white must be"):
        Inputs.pixels(0, 1, 256)
    with pytest.raises(ValueError, match="std finite and > 0"):
        Inputs.real(0, 0)
    with pytest.raises(ValueError, match="equal lengths"):
        Inputs.real([0, 1], [1])


@pytest.mark.parametrize("seed", range(5))
def test_thresholds_of_scores_decide_as_their_fractions_do(seed: int) -> None:
    """Over all signs of seven inputs, for thresholds so small that sums are often equal without them."""
    random = np.random.default_rng(seed)
    w = random.choice([-1, 1], (6, 7))
    biases = [Fraction(int(number), 8) for number in random.integers(-16, 17, 6)]
    x = np.array(list(product((-1, 1), repeat=7)))
    exact = [[int(row[k]) + biases[k] for k in range(6)] for row in x @ w.T]
    compared = _folded(Weights(w > 0), biases, True)
    scores = ((x @ w.T) << compared.shift) + compared.bias
    assert scores.argmax(axis=1).tolist() == [max(range(6), key=lambda k: (row[k], -k)) for row in exact]
    alone = _folded(Weights(w > 0), biases, False)
    signs = (x @ w.T) + (0 if alone.bias is None else alone.bias) >= 0
    assert signs.tolist() == [[number >= 0 for number in row] for row in exact]
