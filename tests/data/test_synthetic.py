"""The statistics of generated data, and what the labels depend on."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from cavity import data
from cavity.data.synthetic import GENERATORS, draw_teacher, option_names, teach


def sigmas(values: torch.Tensor, mean: float, variance: float) -> float:
    """How many standard errors the mean of independent values is away from what it should be."""
    return abs(values.double().mean().item() - mean) / math.sqrt(variance / values.numel())


@pytest.mark.parametrize("name", ["teacher-student", "random-labels"])
@pytest.mark.parametrize("inputs", ["gaussian", "binary"])
def test_inputs_are_independent_with_mean_0_and_variance_1(name, inputs):
    x = data.load(name, n_train=2000, n_features=100, inputs=inputs, seed=1).x_train
    assert sigmas(x, 0, 1) < 4
    if inputs == "binary":
        assert set(x.unique().tolist()) == {-1.0, 1.0}
    else:
        assert sigmas(x**2, 1, 2) < 4
        assert sigmas(x**4, 3, 96) < 4
    correlation = (x.T @ x / len(x)).fill_diagonal_(0)
    assert correlation.abs().max() < 6 / math.sqrt(len(x))


def test_teacher_labels_are_those_of_the_teacher():
    dataset = data.load("teacher-student", n_features=51, seed=3)
    (weights,) = draw_teacher(51, seed=3)
    assert weights.shape == (1, 51)
    assert set(np.unique(weights)) == {-1.0, 1.0}
    for x, y in ((dataset.x_train, dataset.y_train), (dataset.x_test, dataset.y_test)):
        assert torch.equal(y, (x @ torch.from_numpy(weights[0]) >= 0).long())
    assert dataset.classes == ("-1", "+1")


def test_the_two_class_task_gives_signs():
    dataset = data.load("teacher-student", binary_task=True, seed=3)
    (weights,) = draw_teacher(501, seed=3)
    assert torch.equal(dataset.y_test, torch.where(dataset.x_test @ torch.from_numpy(weights[0]) >= 0, 1, -1))


@pytest.mark.parametrize("hidden", [(), (7,), (9, 45)])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_deep_teachers_and_many_classes(hidden, n_classes):
    options = {"n_features": 31, "n_classes": n_classes}
    dataset = data.load("teacher-student", teacher_hidden=list(hidden), seed=2, **options)
    weights = draw_teacher(31, hidden=hidden, n_classes=n_classes, seed=2)
    h = dataset.x_train.double()
    for matrix in weights[:-1]:
        h = torch.where(h @ torch.from_numpy(matrix).double().T >= 0, 1.0, -1.0).double()
    scores = h @ torch.from_numpy(weights[-1]).double().T
    expected = (scores[:, 0] >= 0).long() if n_classes == 2 else scores.argmax(1)
    assert torch.equal(dataset.y_train, expected)
    assert dataset.n_classes == n_classes
    assert set(dataset.y_train.tolist()) == set(range(n_classes))


@pytest.mark.parametrize("n_classes", [2, 5])
def test_noise_flips_training_labels_only(n_classes):
    options = {"n_train": 10_000, "n_features": 51, "n_classes": n_classes, "seed": 4}
    clean, noisy = (data.load("teacher-student", noise=noise, **options) for noise in (0.0, 0.3))
    assert torch.equal(clean.x_train, noisy.x_train)
    assert torch.equal(clean.y_test, noisy.y_test)
    wrong = clean.y_train != noisy.y_train
    assert sigmas(wrong.double(), 0.3, 0.21) < 4
    shift = (noisy.y_train - clean.y_train)[wrong] % n_classes
    counts = torch.bincount(shift, minlength=n_classes)[1:] / wrong.sum()
    assert (counts - 1 / (n_classes - 1)).abs().max() < 0.04


def test_random_labels_are_balanced_and_independent_of_the_inputs():
    dataset = data.load("random-labels", n_train=20_000, n_features=20, n_classes=4, seed=5)
    share = torch.bincount(dataset.y_train) / 20_000
    assert (share - 0.25).abs().max() < 4 * math.sqrt(0.25 * 0.75 / 20_000)
    for k in range(4):
        means = dataset.x_train[dataset.y_train == k].mean(0)
        assert means.abs().max() < 5 / math.sqrt(5000)


def manifold(nonlinearity: str) -> torch.Tensor:
    options = {"n_latent": 8, "n_features": 300, "n_train": 4000, "standardize": False, "seed": 6}
    return data.load("hidden-manifold", nonlinearity=nonlinearity, **options).x_train.double()


def test_hidden_manifold_has_the_latent_dimension_and_unit_variance():
    """u = F c/√D is recovered from x = tanh u where float32 has not saturated: rank D, E u² = 1."""
    x = manifold("tanh")
    u = torch.atanh(x[x.abs().max(1).values < 0.9999])
    singular = torch.linalg.svdvals(u)
    assert len(u) > 300
    assert singular[8] < 1e-3 * singular[7]
    second_moment = torch.atanh(x.clamp(-0.99999, 0.99999)).square().mean().item()
    assert abs(second_moment - 1) < 4 * math.sqrt(2 / (300 * 8) + 2 / (4000 * 8))


@pytest.mark.parametrize(("nonlinearity", "f"), [("sign", torch.sign), ("relu", torch.relu)])
def test_hidden_manifold_nonlinearities(nonlinearity, f):
    """The same seed gives the same u whatever f is, and tanh shows u."""
    x = manifold("tanh")
    unsaturated = x.abs() < 0.99
    expected = f(torch.atanh(x[unsaturated]))
    assert torch.allclose(manifold(nonlinearity)[unsaturated], expected, atol=1e-4)


def test_hidden_manifold_labels_come_from_the_latent_coordinates():
    """With f = tanh the latent c can be solved for, and the teacher says the same of it as the labels."""
    dataset = data.load("hidden-manifold", n_latent=5, n_train=500, nonlinearity="tanh", seed=7, standardize=False)
    random_features = np.random.default_rng([7, 3]).standard_normal((784, 5), dtype=np.float32)
    x = dataset.x_test.double()
    keep = x.abs().max(1).values < 0.9999
    u = torch.atanh(x[keep])
    c = torch.linalg.lstsq(torch.from_numpy(random_features).double(), u.T * math.sqrt(5)).solution.T
    assert sigmas(c[:, 0], 0, 1) < 5
    labels = teach(draw_teacher(5, teacher="gaussian", seed=7), c.float().numpy())
    assert (torch.from_numpy(labels) == dataset.y_test[keep]).double().mean() > 0.995
    assert keep.sum() > 100


def test_hidden_manifold_is_standardised_by_one_mean_and_std():
    dataset = data.load("hidden-manifold", nonlinearity="relu", n_train=500)
    assert dataset.mean.shape == (1,)
    assert abs(dataset.x_train.double().mean()) < 1e-6
    assert abs(dataset.x_train.double().std(correction=0) - 1) < 1e-6


@pytest.mark.parametrize("name", list(GENERATORS))
def test_same_seed_same_data_other_seed_other_data(name):
    first, again, other = (data.load(name, seed=seed, n_train=50, n_test=20) for seed in (1, 1, 2))
    for part in ("x_train", "y_train", "x_test", "y_test"):
        assert torch.equal(getattr(first, part), getattr(again, part))
    assert not torch.equal(first.x_train, other.x_train)


@pytest.mark.parametrize("name", list(GENERATORS))
def test_more_training_samples_change_neither_teacher_nor_test_set(name):
    small, large = (data.load(name, n_train=n, n_test=30, standardize=False) for n in (20, 200))
    assert torch.equal(small.x_test, large.x_test)
    assert torch.equal(small.y_test, large.y_test)


@pytest.mark.parametrize("name", list(GENERATORS))
def test_unknown_options_are_answered_with_the_known_ones(name):
    with pytest.raises(TypeError, match=rf"{name} has no option n_trian; it has .*n_train"):
        data.load(name, n_trian=3)
    assert {"n_features", "n_train", "n_test", "n_classes"} <= set(option_names(name))


def test_options_where_nothing_is_generated():
    with pytest.raises(TypeError, match="digits takes no option n_train"):
        data.load("digits", n_train=3)


@pytest.mark.parametrize(
    "option",
    [
        {"n_train": 0},
        {"n_train": 2.5},
        {"n_features": True},
        {"n_classes": 1},
        {"noise": 1.5},
        {"noise": float("nan")},
        {"inputs": "uniform"},
        {"teacher": "ternary"},
        {"teacher_hidden": (3, 0)},
    ],
)
def test_impossible_options(option):
    with pytest.raises(ValueError, match=rf"teacher-student: {next(iter(option))} is .*, expected"):
        data.load("teacher-student", **option)
