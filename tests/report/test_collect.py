"""From networks to numbers, against the engine's own measures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import cavity
from cavity import data
from cavity.analysis import landscape, metrics
from cavity.data import DataNotFound
from cavity.report import collect
from cavity.report.collect import by_certainty, collect_all, config_rows, pixels, summarize
from cavity.runs import Config
from cavity.runs.evaluation import evaluate_numbers
from cavity.runs.matching import Found
from cavity.runs.origin import SESSIONS, present, write_origin


@pytest.fixture(scope="module")
def summary(trained):
    return summarize("digits", trained.config, trained.history, trained.net, trained.dataset)


def test_test_numbers_are_those_of_the_metrics(summary, trained):
    scores = metrics.measure(trained.net, trained.dataset.x_test, trained.dataset.y_test)
    test = summary.test
    assert test.ece == pytest.approx(scores.ece, abs=1e-6)
    assert 100 * (1 - np.trace(test.confusion) / test.samples) == pytest.approx(scores.error_bayes)
    assert test.confusion.sum(axis=1).tolist() == torch.bincount(trained.dataset.y_test).tolist()
    assert summary.records[-1].test_error_bayes == pytest.approx(scores.error_bayes)


def test_layers_are_those_of_the_network(summary, trained):
    expected = landscape.polarization(trained.net).tolist()
    assert [layer.polarization for layer in summary.layers] == pytest.approx(expected, rel=1e-5)
    for layer, part in zip(summary.layers, trained.net.weighted(), strict=True):
        assert layer.shares.sum() == pytest.approx(1.0)
        assert layer.free_weights == part.free_weights
        assert layer.committed == pytest.approx(float((part.mean.abs() > 0.9).double().mean()))
        assert layer.edges[[0, -1]].tolist() == [-1.0, 1.0]


def test_means_a_rounding_beyond_their_bound_are_counted():
    net = cavity.mlp(4, (), 1)
    net.weighted()[0].mean = torch.tensor([[1.0000001, -1.0000001, 0.5, -0.5]])
    (layer,) = summarize("a", Plain(), [], net, None).layers
    assert layer.shares.sum() == pytest.approx(1.0)


def test_most_certain_comes_before_least_certain(summary):
    most, least = summary.test.most_certain, summary.test.least_certain
    wrong = summary.test.certain_mistakes
    falling = [example.probability for example in most]
    assert falling == sorted(falling, reverse=True)
    rising = [example.probability for example in least]
    assert rising == sorted(rising)
    assert rising[-1] < falling[-1]
    assert not any(example.is_right for example in wrong)
    assert [example.probability for example in wrong] == sorted((e.probability for e in wrong), reverse=True)


def test_pictures_are_the_real_test_images(summary, trained):
    x = (trained.dataset.x_test * trained.dataset.std + trained.dataset.mean) * 16
    originals = {tuple(row) for row in load_digits().data.astype(int)}
    for example in summary.test.least_certain:
        sixteenths = np.round(example.pixels.astype(float) * 16 / 255).astype(int)
        assert tuple(sixteenths.reshape(-1)) == tuple(x[example.index].round().int().tolist())
        assert tuple(sixteenths.reshape(-1)) in originals


def test_colour_images_keep_their_channels():
    red = torch.tensor([1.0, 0.0, 0.0])
    assert pixels(red, torch.zeros(1), torch.ones(1), (3, 1, 1)).tolist() == [[[255, 0, 0]]]
    assert pixels(red, torch.tensor([0.5]), torch.tensor([0.5]), (1, 1, 3)).tolist() == [[255, 128, 128]]


def test_doubt_keeps_its_order_where_confidence_has_rounded_to_one():
    probabilities = torch.tensor([[1.0, 1e-30], [1.0, 1e-35], [0.6, 0.4], [1e-20, 1.0]], dtype=torch.float64)
    assert by_certainty(probabilities).tolist() == [1, 0, 3, 2]


def test_bins_are_those_of_the_calibration_error(summary):
    bins, test = summary.test.bins, summary.test
    assert bins.share.sum() == pytest.approx(1.0)
    assert np.nansum(bins.share * bins.accuracy) == pytest.approx(np.trace(test.confusion) / test.samples)
    assert np.nansum(bins.share * np.abs(bins.accuracy - bins.confidence)) == pytest.approx(test.ece, abs=1e-6)
    assert np.array_equal(np.isnan(bins.confidence), bins.share == 0)


def test_first_layer_is_a_picture_without_its_bias(digits):
    net = cavity.mlp(64, (5,), 10, bias=True)
    first = summarize("a", Plain(), [], net, digits).first_layer
    assert first.means.shape == (5, 1, 8, 8)
    assert np.allclose(first.means.reshape(5, 64), net.weighted()[0].mean[:, :64])
    assert (first.bound, first.total) == (1.0, 5)


def test_filters_are_pictures_of_their_kernel(digits):
    net = cavity.Network([cavity.Conv2d((1, 8, 8), 4, 3), "sign", cavity.Dense(4 * 36, 10), "argmax"])
    assert summarize("a", Plain(), [], net, digits).first_layer.means.shape == (4, 1, 3, 3)


def test_filters_on_whitened_patches_are_shown_on_pixels(digits):
    net = cavity.network("white:4:3,conv:5:2,dense:7", (1, 8, 8), 10)
    net.balance(digits.x_train[:200])
    first = summarize("a", Plain(), [], net, digits).first_layer
    assert (first.means.shape, first.whitened) == ((5, 1, 4, 4), True)
    x = digits.x_test[:1].reshape(1, 1, 8, 8)[..., :4, :4]
    filters, layer = net.front.filters.reshape(4, 1, 3, 3), net.weighted()[0]
    through = torch.nn.functional.conv2d(torch.nn.functional.conv2d(x, filters), layer.mean.reshape(5, 4, 2, 2))
    direct = torch.nn.functional.conv2d(x.double(), torch.from_numpy(first.means))
    assert direct.flatten().numpy() == pytest.approx(through.flatten().numpy(), abs=1e-4)


def test_feature_maps_are_the_inputs_of_the_next_layer(digits):
    net = cavity.network("conv:5:3,pool:2,conv:4:2,dense:7", (1, 8, 8), 10, seed=3)
    found = summarize("a", Plain(), [], net, digits)
    assert [maps.maps.shape for maps in found.maps] == [(4, 5, 3, 3), (4, 4, 2, 2)]
    assert [maps.units for maps in found.maps] == ["sign, MaxPool(2)", "sign"]
    assert [int(digits.y_test[index]) for index in found.maps[0].indices] == [0, 1, 2, 3]
    assert [image.shape for image in found.map_images] == [(8, 8)] * 4
    # Against weights drawn from the posterior: units of the first convolution, in the mean over draws.
    generator, layer, x = (
        torch.Generator().manual_seed(0),
        net.weighted()[0],
        digits.x_test[list(found.maps[0].indices)],
    )
    draws = 4000
    w = torch.stack([layer.sample(generator) for _ in range(draws)]).reshape(-1, 1, 3, 3)
    z = torch.nn.functional.conv2d(x.reshape(4, 1, 8, 8), w).reshape(4, draws, 5, 6, 6)
    units = torch.nn.functional.max_pool2d(torch.sign(z).flatten(0, 1), 2).reshape(4, draws, 5, 3, 3)
    # Sums of nine weights are taken for Gaussian and units of a window for independent.
    gap = (units.mean(dim=1).numpy() - found.maps[0].maps) ** 2
    assert gap.mean() < 0.1 * (found.maps[0].maps ** 2).mean()


def test_predicted_numbers_are_those_of_the_evaluation():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(80, 3, generator=generator)
    y = x[:, 0] + 0.1 * torch.randn(80, generator=generator)
    table = data.Dataset(
        x[:50], y[:50], x[50:], y[50:], None, (), torch.zeros(1), torch.ones(1), "t", target=(5.0, 2.0)
    )
    net = cavity.mlp(3, (5,), 1, weights="gaussian", activation="relu", output="gaussian")
    found = summarize("a", Plain(), [], net, table)
    expected = evaluate_numbers(net, table.x_test, table.y_test, (5.0, 2.0))
    assert (found.test, found.percent) == (None, False)
    assert (found.numbers.rmse_bayes, found.numbers.coverage) == (expected.rmse_bayes, expected.coverage)
    assert found.numbers.truth == pytest.approx(2 * y[50:].double().numpy() + 5)
    residual = found.numbers.truth - found.numbers.predicted
    assert np.sqrt(np.mean(residual**2)) == pytest.approx(expected.rmse_bayes, rel=1e-5)
    inside = np.abs(residual) < 1.6449 * found.numbers.spread
    assert inside.mean() == pytest.approx(expected.coverage)


def test_dense_networks_have_no_feature_maps(summary):
    assert summary.maps == ()


def test_weights_without_a_bound_are_scaled_by_the_largest(digits):
    net = cavity.mlp(64, (5,), 10, weights="gaussian")
    found = summarize("a", Plain(), [], net, digits)
    largest = float(net.weighted()[0].mean.abs().max())
    assert found.layers[0].bound is None
    assert found.layers[0].edges[-1] == pytest.approx(largest)
    assert found.first_layer.bound == pytest.approx(largest)


def test_masked_weights_do_not_count(digits):
    net = cavity.mlp(64, (5,), 10, density=0.5)
    layer = summarize("a", Plain(), [], net, None).layers[0]
    assert layer.free_weights == net.weighted()[0].free_weights < 320


def test_two_classes_of_a_label_output():
    dataset = data.load("digits", binary_task=True)
    net = cavity.mlp(64, (5,), 1)
    found = summarize("a", Plain(), [], net, dataset).test
    predicted = net.predict(dataset.x_test, method="bayes")
    assert np.trace(found.confusion) == int((predicted == dataset.y_test).sum())
    assert found.classes == dataset.classes


def test_regression_has_no_classes(digits):
    net = cavity.mlp(64, (5,), 1, output="gaussian")
    found = summarize("a", Plain(), [], net, digits)
    assert found.test is None
    assert not found.percent


def test_tables_have_no_pictures(digits):
    found = summarize("a", Plain(), [], cavity.mlp(64, (5,), 10), replace(digits, image_shape=None))
    assert found.first_layer is None
    assert all(example.pixels is None for example in found.test.most_certain)


def test_a_diverged_network_is_noted(digits):
    net = cavity.mlp(64, (5,), 10)
    net.weighted()[-1].mean = torch.full((10, 5), torch.nan)
    found = summarize("a", Plain(), [], net, digits)
    assert found.test is None
    assert "not finite" in found.notes[0]


@dataclass(frozen=True)
class Plain:
    """Settings of no interest."""


@dataclass(frozen=True)
class Nested:
    """Settings of every kind."""

    hidden: tuple[int, ...] = (101, 51)
    label: str | None = None
    bias: bool = False
    options: SimpleNamespace | dict[str, int] | None = None
    inner: Plain | None = None


def test_settings_are_written_as_people_write_them():
    assert config_rows(Nested(options={"n": 3})) == [
        ("hidden", "101, 51"),
        ("label", "—"),
        ("bias", "no"),
        ("options", "n: 3"),
        ("inner", "—"),
    ]

    @dataclass
    class Numbers:
        rho: tuple[float, ...] = (1 + 1 / 88, 0.9)

    assert config_rows(Numbers()) == [("rho", "1.01136, 0.9")]

    @dataclass
    class Outer:
        model: Nested

    assert ("model.hidden", "101, 51") in config_rows(Outer(Nested()))
    with pytest.raises(TypeError, match="config must be a dataclass, got dict"):
        config_rows({})


class FakeRun:
    """A run without a folder."""

    def __init__(self, path: str, trained, error: Exception | None = None) -> None:
        self.path, self.records = Path(path), trained.history
        self.config = Config(dataset="digits", hidden=(31,), epochs=4, batch_size=50, output="argmax", evaluate_every=1)
        self.trained, self.error = trained, error

    def load_network(self) -> cavity.Network:
        return self.trained.net

    def find_data(self, data_changed: str | None) -> Found:
        assert data_changed is None
        if self.error:
            raise self.error
        return Found(self.trained.dataset)


def test_runs_of_the_same_name_are_told_apart(trained):
    names = [s.name for s in collect_all([FakeRun(path, trained) for path in ("a/run", "b/run", "c/other")])]
    assert names == ["a/run", "b/run", "other"]


def test_the_head_says_what_was_trained_where_and_how_far(trained, tmp_path):
    write_origin(tmp_path, replace(present(0, "cpu", 1), host="a", commit="0123456789abcdef", changed=True))
    write_origin(tmp_path, replace(present(2, "cpu", 1), host="b", commit="0123456789abcdef"))
    (found,) = collect_all([FakeRun(str(tmp_path), trained)])
    facts = dict(found.facts)
    assert (facts["Architecture"], facts["Weights"]) == ("64 → 31 → 10", "2\u202f294 binary")
    assert facts["Training"] == "3 of 4 epochs, mini-batches of 50, seed 0"
    assert facts["Machine"].startswith("a, b (")
    assert facts["Commit"] == "0123456789, with changes that were not committed; then 0123456789"
    assert facts["Begun"].endswith("UTC, resumed 1 time")
    assert not found.finished
    assert found.chosen == {"hidden", "epochs", "batch_size"}


def test_a_run_of_an_older_version_does_not_know_where_it_was_trained(trained, tmp_path):
    (found,) = collect_all([FakeRun(str(tmp_path), trained)])
    assert dict(found.facts)["Machine"] == "not recorded"
    assert found.notes == ()
    (tmp_path / SESSIONS).write_text("no session\n")
    (found,) = collect_all([FakeRun(str(tmp_path), trained)])
    assert dict(found.facts)["Machine"] == "not recorded"
    assert "Where it was trained could not be read" in found.notes[0]


def test_missing_data_leaves_a_note(trained):
    (found,) = collect_all([FakeRun("a", trained, DataNotFound("mnist: put it there"))])
    assert found.test is None
    assert found.data is None
    assert "mnist: put it there" in found.notes[0]
    assert len(found.layers) == 2


def test_other_errors_are_not_swallowed(trained):
    with pytest.raises(ZeroDivisionError):
        collect_all([FakeRun("a", trained, ZeroDivisionError())])


def test_no_runs_is_an_error():
    with pytest.raises(ValueError, match="at least one run"):
        collect_all([])


def test_number_of_examples_and_units(summary):
    assert len(summary.test.most_certain) == len(summary.test.least_certain) == collect.EXAMPLES
    assert len(summary.first_layer.means) == 31
