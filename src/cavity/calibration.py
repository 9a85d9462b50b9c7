"""How honest probabilities are. Probabilities are (samples, classes) with rows that sum to 1, labels class indices."""

from __future__ import annotations

import torch
from torch import Tensor

#: Bins of the expected calibration error, equally wide in confidence: the usual choice.
ECE_BINS = 15


def negative_log_likelihood(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Mean of −log p(label), floored at the smallest positive number so that a certain mistake stays finite."""
    chosen = probabilities.gather(1, labels.unsqueeze(1)).clamp_min(torch.finfo(probabilities.dtype).tiny)
    return -torch.log(chosen).mean()


def brier_score(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Mean of Σ_k (p_k − 𝟙[k = label])², between 0 and 2."""
    truth = torch.nn.functional.one_hot(labels, probabilities.shape[1])
    return (probabilities - truth).square().sum(dim=1).mean()


def expected_calibration_error(probabilities: Tensor, labels: Tensor, bins: int = ECE_BINS) -> Tensor:
    """Σ_b (n_b/n)·|accuracy_b − confidence_b| over bins of equal width in the confidence of the predicted class."""
    confidence, predicted = probabilities.max(dim=1)
    correct = (predicted == labels).to(confidence.dtype)
    place = (confidence * bins).ceil().long().clamp(1, bins) - 1
    gap = torch.zeros(bins, dtype=confidence.dtype, device=confidence.device)
    gap.index_add_(0, place, correct - confidence)
    return gap.abs().sum() / len(labels)
