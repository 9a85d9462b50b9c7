"""The tensors a data set ends as: standardised, two-class, permuted, thinned out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cavity import data
from cavity.data.raw import Part, Raw, stratified_split
from cavity.data.standardize import finish

RANDOM = np.random.default_rng(0)


@pytest.fixture(scope="module")
def digits():
    return data.load()


def colour(statistics, dtype=np.uint8, image_shape=(3, 4, 5)):
    """40 + 20 random colour images; the channels differ in brightness and contrast."""
    x = RANDOM.integers(0, [[50], [150], [256]], (60, 3, 20)).reshape(60, -1).astype(dtype)
    y = np.arange(60) % 4
    return Raw("c", Part(x[:40], y[:40]), Part(x[40:], y[40:]), tuple("abcd"), statistics, image_shape, 255.0)


def test_digits_are_the_default_and_need_no_file(digits, world):
    assert digits.name == "digits"
    assert digits.x_train.shape == (1438, 64)
    assert digits.x_test.shape == (359, 64)
    assert digits.image_shape == (1, 8, 8)
    assert digits.classes == tuple("0123456789")
    assert (digits.n_features, digits.n_classes) == (64, 10)
    assert digits.x_train.dtype == digits.mean.dtype == digits.std.dtype == torch.float32
    assert digits.y_train.dtype == torch.int64


def test_the_split_of_digits_is_fixed_and_stratified(digits):
    again = data.load("digits", seed=5)
    assert torch.equal(again.x_train, digits.x_train)
    share = torch.bincount(digits.y_test) / (torch.bincount(digits.y_train) + torch.bincount(digits.y_test))
    assert (share - 0.2).abs().max() < 0.005


def test_digits_are_whole_and_the_parts_disjoint(digits):
    from sklearn.datasets import load_digits

    both = torch.cat([digits.x_train, digits.x_test]) * digits.std + digits.mean
    rows = np.rint(both.numpy() * 16).astype(int)
    assert sorted(map(tuple, rows)) == sorted(map(tuple, load_digits().data.astype(int)))


def test_the_two_class_task_is_odd_against_even(digits):
    binary = data.load("digits", binary_task=True)
    assert torch.equal(binary.y_train, torch.where(digits.y_train % 2 == 1, 1, -1))
    assert torch.equal(binary.y_test, torch.where(digits.y_test % 2 == 1, 1, -1))
    assert binary.classes == ("even", "odd")
    assert binary.n_classes == 2


def test_two_classes_keep_their_names_in_the_two_class_task(tmp_path):
    np.savez(tmp_path / "f.npz", x=RANDOM.normal(size=(20, 2)), y=["no", "yes"] * 10)
    assert data.load(tmp_path / "f.npz", binary_task=True).classes == ("no", "yes")


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_one_mean_and_std_overall(dtype):
    raw = colour("overall", dtype)
    dataset = finish(raw, binary_task=False, standardize=True)
    assert dataset.mean.shape == dataset.std.shape == (1,)
    assert np.isclose(dataset.mean.item(), raw.train.x.mean(dtype=np.float64) / 255, rtol=1e-6)
    assert np.isclose(dataset.std.item(), raw.train.x.std(dtype=np.float64) / 255, rtol=1e-6)
    expected = (raw.test.x - raw.train.x.mean(dtype=np.float64)) / raw.train.x.std(dtype=np.float64)
    assert np.allclose(dataset.x_test.numpy(), expected, atol=1e-6)


def test_one_mean_and_std_per_channel():
    raw = colour("channel")
    dataset = finish(raw, binary_task=False, standardize=True)
    assert dataset.mean.shape == dataset.std.shape == (60,)
    channels = raw.train.x.reshape(40, 3, 20) / 255
    assert np.allclose(dataset.mean.reshape(3, 20).numpy(), channels.mean((0, 2))[:, None], rtol=1e-6)
    assert np.allclose(dataset.std.reshape(3, 20).numpy(), channels.std((0, 2))[:, None], rtol=1e-6)
    standard = dataset.x_train.reshape(40, 3, 20)
    assert standard.mean((0, 2)).abs().max() < 1e-6
    assert (standard.std((0, 2), correction=0) - 1).abs().max() < 1e-6


@pytest.mark.parametrize("statistics", ["overall", "channel"])
@pytest.mark.parametrize("standardize", [True, False])
def test_standardisation_can_be_undone(statistics, standardize):
    raw = colour(statistics)
    dataset = finish(raw, binary_task=False, standardize=standardize)
    assert np.allclose((dataset.x_test * dataset.std + dataset.mean).numpy(), raw.test.x / 255, atol=1e-6)
    if not standardize:
        assert np.allclose(dataset.x_test.numpy(), raw.test.x / 255, atol=1e-7)


@pytest.mark.parametrize("constant", [0.1, 0.0, -1e30, 1e-40])
def test_constant_features_become_zero(constant):
    x = RANDOM.normal(size=(30, 2))
    x[:, 1] = constant
    y = np.arange(30) % 2
    raw = Raw("t", Part(x[:20], y[:20]), Part(x[20:], y[20:]), ("a", "b"), "feature")
    dataset = finish(raw, binary_task=False, standardize=True)
    assert dataset.std[1] == 1
    assert (dataset.x_train[:, 1] == 0).all()
    assert (dataset.x_test[:, 1] == 0).all()


def test_features_far_from_zero_keep_their_precision():
    x = 1.7e9 + RANDOM.normal(size=(200, 1))
    y = np.arange(200) % 2
    raw = Raw("t", Part(x, y), Part(x, y), ("a", "b"), "feature")
    dataset = finish(raw, binary_task=False, standardize=True)
    assert np.allclose(dataset.x_train.numpy(), (x - x.mean()) / x.std(), atol=1e-5)


@pytest.mark.parametrize("test_fraction", [0.1, 0.2, 0.5])
def test_split_is_disjoint_complete_and_of_the_size_asked_for(test_fraction):
    y = np.repeat(np.arange(7), [1, 2, 3, 17, 17, 30, 31])
    train, test = stratified_split(y, test_fraction, 0)
    assert sorted([*train, *test]) == list(range(len(y)))
    assert len(test) == round(test_fraction * len(y))
    assert set(y[train]) == set(y)
    for k in range(7):
        assert abs((y[test] == k).sum() - test_fraction * (y == k).sum()) <= 1


def test_splits_follow_the_seed():
    y = np.arange(100) % 3
    first, again, other = (stratified_split(y, 0.2, seed)[1].tolist() for seed in (1, 1, 2))
    assert first == again
    assert sorted(first) != sorted(other)


@pytest.mark.parametrize("test_fraction", [0, 1, -0.5, 2, float("nan")])
def test_impossible_fractions(test_fraction):
    with pytest.raises(ValueError, match="test_fraction is"):
        data.load("digits", test_fraction=test_fraction)


@pytest.mark.parametrize("options", [{"seed": -1}, {"permutation": -1}])
def test_impossible_seeds(options):
    with pytest.raises(ValueError, match="expected whole numbers from 0"):
        data.load("digits", **options)


def test_subset(digits):
    small = digits.subset(100, 50, seed=1)
    assert (len(small.x_train), len(small.y_train), len(small.x_test), len(small.y_test)) == (
        100,
        100,
        50,
        50,
    )
    rows = {tuple(x.tolist()): y for x, y in zip(digits.x_train, digits.y_train.tolist(), strict=True)}
    assert all(rows[tuple(x.tolist())] == y for x, y in zip(small.x_train, small.y_train.tolist(), strict=True))
    assert len({tuple(x.tolist()) for x in small.x_train}) == 100
    assert torch.equal(small.x_train, digits.subset(100, seed=1).x_train)
    assert not torch.equal(small.x_train, digits.subset(100, seed=2).x_train)
    assert torch.equal(digits.subset(100).x_test, digits.x_test)
    assert torch.equal(small.mean, digits.mean)


@pytest.mark.parametrize(("n_train", "n_test"), [(1439, 1), (1, 360), (-1, 1)])
def test_subset_larger_than_the_set(digits, n_train, n_test):
    with pytest.raises(ValueError, match=r"n_(train|test) is .*, expected 0 to (1438|359)"):
        digits.subset(n_train, n_test)


def test_permutation_is_the_same_for_both_parts(digits):
    permuted = digits.permuted(3)
    order = np.random.default_rng(3).permutation(64)
    assert torch.equal(permuted.x_train, digits.x_train[:, order])
    assert torch.equal(permuted.x_test, digits.x_test[:, order])
    assert torch.equal(permuted.y_train, digits.y_train)
    assert permuted.name == "permuted-digits"
    assert not torch.equal(permuted.x_train, digits.permuted(4).x_train)


@pytest.mark.parametrize("options", [{"permutation": 3}, {"seed": 3}, {"permutation": 3, "seed": 8}])
def test_permuted_by_name(digits, options):
    assert torch.equal(data.load("permuted-digits", **options).x_train, digits.permuted(3).x_train)


def test_permutation_seed_alone_permutes(digits):
    assert torch.equal(data.load("digits", permutation=3).x_train, digits.permuted(3).x_train)


def test_channels_are_permuted_alike_and_the_statistics_with_them():
    raw = colour("channel")
    dataset = finish(raw, binary_task=False, standardize=True)
    permuted = dataset.permuted(1)
    order = np.random.default_rng(1).permutation(20)
    undone = (permuted.x_train * permuted.std + permuted.mean).reshape(40, 3, 20).numpy()
    assert np.allclose(undone, raw.train.x.reshape(40, 3, 20)[:, :, order] / 255, atol=1e-6)
    table = finish(colour("feature", image_shape=None), binary_task=False, standardize=True)
    shuffled = table.permuted(1)
    whole = np.random.default_rng(1).permutation(60)
    assert torch.allclose(
        shuffled.x_train * shuffled.std + shuffled.mean, (table.x_train * table.std + table.mean)[:, whole]
    )
