"""Calibration against figures made by hand, scikit-learn, and probabilities that are honest by construction."""

from __future__ import annotations

import math

import matplotlib
import pytest
import torch
from sklearn.metrics import roc_auc_score

from cavity.analysis import calibration

matplotlib.use("Agg")

#: Four predictions of class 0 with these confidences; the first and the last are right.
P = torch.tensor([[0.6, 0.4], [0.62, 0.38], [0.9, 0.1], [1.0, 0.0]], dtype=torch.float64)
LABELS = torch.tensor([0, 1, 1, 0])


def honest(samples: int, classes: int = 4, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (samples, classes) times ``scale``, and labels drawn from softmax of the unscaled ones."""
    generator = torch.Generator().manual_seed(3)
    z = 2 * torch.randn(samples, classes, generator=generator, dtype=torch.float64)
    return scale * z, torch.multinomial(torch.softmax(z, dim=1), 1, generator=generator).squeeze(1)


def test_reliability_by_hand() -> None:
    diagram = calibration.reliability(P, LABELS, bins=5)
    assert diagram.samples.tolist() == [0, 0, 1, 1, 2]
    assert diagram.confidence[2:].tolist() == pytest.approx([0.6, 0.62, 0.95])
    assert diagram.accuracy[2:].tolist() == [1.0, 0.0, 0.5]
    assert diagram.confidence[:2].isnan().all()


def test_reliability_in_two_bins_and_with_empty_ones() -> None:
    p = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.5, 0.5]], dtype=torch.float64)
    found = calibration.reliability(p, torch.tensor([0, 1, 1, 0]), bins=2)
    assert found.samples.tolist() == [1, 3]
    assert found.confidence.tolist() == pytest.approx([0.5, 0.8])
    assert found.accuracy.tolist() == pytest.approx([1.0, 2 / 3])
    sure = calibration.reliability(torch.tensor([[1.0, 0.0]]), torch.tensor([0]), bins=3)
    assert sure.accuracy[:2].isnan().all()
    assert sure.samples.tolist() == [0, 0, 1]


def test_calibration_errors_by_hand() -> None:
    equal_width = (0.4 + 0.62 + abs(-0.9 + 0)) / 4
    assert float(calibration.expected_calibration_error(P, LABELS, bins=5)) == pytest.approx(equal_width)
    equal_number = (abs(1 - 0.6 - 0.62) + abs(1 - 0.9 - 1.0)) / 4
    assert float(calibration.adaptive_calibration_error(P, LABELS, bins=2)) == pytest.approx(equal_number)


def test_adaptive_error_sees_what_one_wide_bin_hides() -> None:
    """In one wide bin, too bold and too shy cancel; two bins of equal number keep them apart."""
    p = torch.tensor([[0.991, 0.009]] * 100 + [[0.999, 0.001]] * 100)
    labels = torch.tensor([0] * 100 + [1] + [0] * 99)
    wide = float(calibration.expected_calibration_error(p, labels, bins=10))
    fine = float(calibration.adaptive_calibration_error(p, labels, bins=2))
    assert wide == pytest.approx(0.0, abs=1e-4)
    assert fine == pytest.approx(0.009, abs=1e-4)


@pytest.mark.parametrize("error", [calibration.expected_calibration_error, calibration.adaptive_calibration_error])
def test_honest_probabilities_have_no_calibration_error_and_bold_ones_do(error) -> None:
    z, labels = honest(40_000)
    assert float(error(torch.softmax(z, dim=1), labels)) < 0.01
    assert float(error(torch.softmax(3 * z, dim=1), labels)) > 0.05


@pytest.mark.parametrize("scale", [0.25, 1.0, 5.0])
def test_temperature_undoes_a_scale(scale: float) -> None:
    z, labels = honest(40_000, scale=scale)
    assert calibration.fit_temperature(z, labels) == pytest.approx(scale, rel=0.03)


def test_temperature_is_where_the_likelihood_is_largest() -> None:
    z, labels = honest(500, scale=2.0)
    best = calibration.fit_temperature(z, labels)
    nll = [
        float(calibration.negative_log_likelihood(torch.softmax(z / t, dim=1), labels))
        for t in (best, 0.99 * best, 1.01 * best)
    ]
    assert nll[0] < min(nll[1:])


def test_auroc_agrees_with_scikit_learn_also_where_scores_tie() -> None:
    generator = torch.Generator().manual_seed(0)
    inside, outside = (torch.randint(0, 12, (n,), generator=generator) + shift for n, shift in ((300, 0), (200, 2)))
    expected = roc_auc_score([0] * 300 + [1] * 200, torch.cat([inside, outside]).numpy())
    assert float(calibration.auroc(inside, outside)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("score", ["entropy", "confidence"])
def test_out_of_distribution_inputs_that_are_doubted_are_told_apart(score) -> None:
    sure, unsure = torch.tensor([[0.99, 0.01], [0.05, 0.95]]), torch.tensor([[0.5, 0.5], [0.6, 0.4]])
    assert float(calibration.out_of_distribution_auroc(sure, unsure, score)) == 1.0
    assert float(calibration.out_of_distribution_auroc(unsure, sure, score)) == 0.0
    assert float(calibration.out_of_distribution_auroc(sure, sure, score)) == 0.5


def test_entropy_is_between_nothing_and_the_logarithm_of_the_classes() -> None:
    p = torch.tensor([[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    assert calibration.entropy(p).tolist() == pytest.approx([0.0, math.log(3)])


def test_the_plot_shows_the_bins_that_hold_samples() -> None:
    from matplotlib import pyplot

    axes = calibration.plot_reliability(calibration.reliability(P, LABELS, bins=5), label="model")
    diagonal, line = axes.lines
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata())
    assert list(line.get_xdata()) == pytest.approx([0.6, 0.62, 0.95])
    assert list(line.get_ydata()) == [1.0, 0.0, 0.5]
    assert calibration.plot_reliability(calibration.reliability(P, LABELS), axes) is axes
    assert len(axes.lines) == 3
    pyplot.close("all")


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="bins must be a positive integer, got 0"):
        calibration.reliability(P, LABELS, bins=0)
    with pytest.raises(ValueError, match=r"got \(4, 2\) and \(3,\)"):
        calibration.expected_calibration_error(P, LABELS[:3])
    with pytest.raises(ValueError, match="score must be 'entropy' or 'confidence', got 'margin'"):
        calibration.out_of_distribution_auroc(P, P, "margin")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got 0 inside and 4 outside"):
        calibration.auroc(P[:0, 0], P[:, 0])
