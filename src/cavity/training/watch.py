"""Whether training has run away: judged when it ends, by what was measured on the training data anyway.

A network must not end worse than a constant, which always gives the most frequent class or the mean, nor lose much of
what it had learnt. With the loss ℓ (the fraction of wrong answers, or the mean square of the residuals in units of the
targets' variance), that of a constant ℓ₀, the least so far ℓ* and what chance allows, δ,

    ruined    ℓ > ℓ₀ + δ,   or   NLL > NLL₀ + δ' while ℓ > ℓ₀/2
    lost      ℓ > ℓ* + (ℓ₀ − ℓ*)/3 + δ

A network that all but gives a constant is no trouble: the data may not hold more. Everything is a function of the
records, so that a run that was stopped and resumed is judged as one that was not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cavity.analysis.metrics import BestConstant

if TYPE_CHECKING:
    from cavity.analysis.metrics import EpochRecord

#: What ℓ may be above that of a constant, however many samples there are: a fraction of wrong answers, or of the
#: variance of real targets; and the standard deviations of chance if that is more.
POINTS, VARIANCE, SIGMAS = 0.03, 0.1, 2.0
#: The part of a constant's NLL that the NLL may be above it, and nats over the root of the samples.
LIKELIHOOD, NATS = 1.0, 3.0
#: The part of what had been learnt that may be lost, and standard deviations of chance: ℓ* was the luckiest of many.
LOST, LUCK = 1 / 3, 3.0


class DivergenceWarning(UserWarning):
    """Training has ended with a network that is worse than a constant, or much worse than it was."""


class Level(NamedTuple):
    """How good a network is on training data: point-wise and Bayesian error as in a record, and the NLL."""

    error: float
    error_bayes: float
    nll: float | None = None


def levels(records: Iterable[EpochRecord]) -> list[Level]:
    """Those of the epochs that were measured."""
    return [
        Level(record.train_error, record.train_error_bayes, record.train_nll)
        for record in records
        if record.train_error is not None and record.train_error_bayes is not None
    ]


def trouble(
    constant: BestConstant, samples: float, reached: Sequence[Level], lead: str = "training has diverged"
) -> str | None:
    """What is wrong with a network that has ``reached`` these levels on ``samples`` training samples, in a sentence
    that begins with ``lead`` unless the posterior is sound; None: nothing."""
    # Beside a constant that is never wrong, every network looks bad.
    if not reached or constant.error == 0:
        return None
    last, flat = reached[-1], _loss(constant, constant.error)
    # Comparisons are written so that NaN is trouble.
    noise, least = ((2 / samples) ** 0.5, VARIANCE) if constant.real else ((flat * (1 - flat) / samples) ** 0.5, POINTS)
    most, flat_words = flat + max(least, SIGMAS * noise), _words(constant, constant.error)
    posterior, point = (_words(constant, error) for error in (last.error_bayes, last.error))
    if not _loss(constant, last.error_bayes) <= most:
        return f"{lead}: the training error is {posterior}, that of a constant {flat_words}"
    if not _loss(constant, last.error) <= most:
        return (
            f"the most probable weights are of no use: their training error is {point}, that of a constant "
            f"{flat_words}, and that of the posterior (method='bayes') {posterior}"
        )
    now, best = _loss(constant, last.error_bayes), min(_loss(constant, level.error_bayes) for level in reached)
    if constant.nll is not None and last.nll is not None and now > flat / 2:
        bound = (1 + LIKELIHOOD) * constant.nll + NATS / samples**0.5
        if not last.nll <= bound:
            return f"{lead}: the NLL of the training data is {last.nll:.3g}, that of a constant {constant.nll:.3g}"
    if now > best + LOST * (flat - best) + LUCK * noise:
        before = min(level.error_bayes for level in reached)
        return f"{lead}: the training error is {posterior}, it had been {_words(constant, before)}"
    return None


def _loss(constant: BestConstant, error: float) -> float:
    # A product overflows to infinity, a power to an error.
    relative = error / constant.error if constant.real else 0.0
    return relative * relative if constant.real else error / 100


def _words(constant: BestConstant, error: float) -> str:
    return f"{error:.3g}" if constant.real else f"{error:.1f} %"


def remedy(given: bool) -> str:
    """What to try where training diverges, with numbers of the update that were given or not."""
    if given:
        return (
            "Leave rho, damping and rate out, so that the messages choose the step; or try rho closer to 1, "
            "more damping, a smaller rate or other mini-batches"
        )
    return "Try standardised inputs, other mini-batches, or another kind of weights, activation or algorithm"
