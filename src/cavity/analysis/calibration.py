"""How honest probabilities are. Probabilities are (samples, classes) with rows that sum to 1, labels class indices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Bins of the expected calibration error, equally wide in confidence: the usual choice.
ECE_BINS = 15
#: Temperatures are looked for between these.
TEMPERATURES = (1e-3, 1e3)
#: Halvings of that interval (in the logarithm): 40 leave a relative error of 1e-11.
HALVINGS = 40


def negative_log_likelihood(probabilities: Tensor, labels: Tensor, counts: Tensor | None = None) -> Tensor:
    """Mean of −log p(label), floored at the smallest positive number so that a certain mistake stays finite; ``counts``
    (samples,) says how often each sample counts."""
    chosen = probabilities.gather(1, labels.unsqueeze(1)).clamp_min(torch.finfo(probabilities.dtype).tiny)
    losses = -torch.log(chosen)
    return losses.mean() if counts is None else (losses.squeeze(1) * counts).sum() / counts.sum()


def brier_score(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Mean of Σ_k (p_k − 𝟙[k = label])², between 0 and 2."""
    truth = torch.nn.functional.one_hot(labels, probabilities.shape[1])
    return (probabilities - truth).square().sum(dim=1).mean()


def expected_calibration_error(probabilities: Tensor, labels: Tensor, bins: int = ECE_BINS) -> Tensor:
    """Σ_b (n_b/n)·|accuracy_b − confidence_b| over bins of equal width in the confidence of the predicted class."""
    diagram = reliability(probabilities, labels, bins)
    return (diagram.samples * (diagram.accuracy - diagram.confidence).nan_to_num().abs()).sum() / len(labels)


def adaptive_calibration_error(probabilities: Tensor, labels: Tensor, bins: int = ECE_BINS) -> Tensor:
    """Σ_b (n_b/n)·|accuracy_b − confidence_b| over bins of equal numbers of samples, in order of confidence.

    Bins of equal width leave most of an accurate model's samples in one bin; these do not.
    """
    confidence, correct = _confidence(probabilities, labels, bins)
    gap = (correct - confidence)[torch.argsort(confidence, stable=True)]
    return torch.stack([part.sum().abs() for part in torch.tensor_split(gap, bins)]).sum() / len(labels)


class Reliability(NamedTuple):
    """One number for each bin of equal width in confidence; mean confidence and accuracy are NaN in an empty bin."""

    confidence: Tensor
    accuracy: Tensor
    samples: Tensor


def reliability(probabilities: Tensor, labels: Tensor, bins: int = ECE_BINS) -> Reliability:
    """The data of a reliability diagram: in each bin ((b−1)/B, b/B] of confidence, how often predictions are right."""
    confidence, correct = _confidence(probabilities, labels, bins)
    place = (confidence * bins).ceil().long().clamp(1, bins) - 1
    count, total, right = (
        torch.zeros(bins, dtype=confidence.dtype, device=confidence.device).index_add_(0, place, values)
        for values in (torch.ones_like(confidence), confidence, correct)
    )
    return Reliability(total / count, right / count, count)


def plot_reliability(diagram: Reliability, axes: Axes | None = None, *, label: str | None = None) -> Axes:
    """Accuracy against confidence beside the diagonal of honest probabilities; the area of a point is its share."""
    if axes is None:
        from matplotlib import pyplot

        axes = pyplot.subplots()[1]
        axes.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    if not axes.lines:
        axes.plot([0, 1], [0, 1], color="gray", linewidth=1, linestyle="--", zorder=1)
    filled = diagram.samples > 0
    confidence, accuracy, count = (values[filled].cpu().numpy() for values in diagram)
    (line,) = axes.plot(confidence, accuracy, linewidth=1, label=label)
    axes.scatter(confidence, accuracy, s=5 + 200 * count / count.sum(), color=line.get_color(), alpha=0.7)
    return axes


def entropy(probabilities: Tensor) -> Tensor:
    """−Σ_k p_k log p_k over the last axis, in nats; not below 0 where a probability is rounded to more than 1."""
    total: Tensor = torch.special.entr(probabilities).sum(dim=-1).clamp_min(0.0)
    return total


def auroc(inside: Tensor, outside: Tensor) -> float:
    """P(score outside > score inside) + ½·P(equal): the area under the curve of telling the two apart by the score."""
    if len(inside) == 0 or len(outside) == 0:
        raise ValueError(f"both sides need samples, got {len(inside)} inside and {len(outside)} outside")
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score([0] * len(inside) + [1] * len(outside), torch.cat([inside, outside]).cpu().numpy()))


def out_of_distribution_auroc(
    inside: Tensor, outside: Tensor, score: Literal["entropy", "confidence"] = "entropy"
) -> float:
    """How well uncertainty tells out-of-distribution inputs (probabilities ``outside``) from usual ones (``inside``).

    ½ is chance, 1 is perfect; ``score`` is the predictive entropy or 1 − max_k p_k.
    """
    if score not in ("entropy", "confidence"):
        raise ValueError(f"score must be 'entropy' or 'confidence', got {score!r}")
    doubts = [entropy(p) if score == "entropy" else -p.amax(dim=1) for p in (inside, outside)]
    return auroc(*doubts)


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    """The T > 0 that minimises the NLL of softmax(z/T) on held-out samples; z is (samples, classes).

    The NLL is convex in 1/T, and its slope Σ_n (E_p[z] − z_label) is bisected. All right beyond doubt, or no better
    than chance: T ends at a bound.
    """
    z = logits.double()
    chosen = z.gather(1, labels.unsqueeze(1)).squeeze(1)
    low, high = (math.log(bound) for bound in TEMPERATURES)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        p = torch.softmax(z / math.exp(middle), dim=1)
        if float(((p * z).sum(dim=1) - chosen).mean()) > 0:
            low = middle
        else:
            high = middle
    return math.exp((low + high) / 2)


def _confidence(probabilities: Tensor, labels: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """Probability of the predicted class, and whether it is the label, as numbers, to be put into ``bins``."""
    if not isinstance(bins, int) or bins < 1:
        raise ValueError(f"bins must be a positive integer, got {bins!r}")
    if probabilities.ndim != 2 or labels.shape != probabilities.shape[:1]:
        raise ValueError(
            "probabilities must be (samples, classes) and labels (samples,), "
            f"got {tuple(probabilities.shape)} and {tuple(labels.shape)}"
        )
    confidence, predicted = probabilities.max(dim=1)
    return confidence, (predicted == labels).to(confidence.dtype)
