"""Curves over epochs: errors and calibration, then polarisation and overlaps of the layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from cavity.report.content import Figure, Line, Lines, Section
from cavity.report.summary import RunSummary
from cavity.report.wording import error, fixed

if TYPE_CHECKING:
    from cavity.analysis.metrics import EpochRecord

Metric = Callable[["EpochRecord"], float | None]


def line(name: str, runs: Sequence[RunSummary], place: int, metric: Metric, colour: int, **about: bool) -> Line:
    """One metric of the run at ``place`` over the epochs that have it."""
    points = [(record.epoch, value) for record in runs[place].records if (value := metric(record)) is not None]
    epochs, values = zip(*points, strict=True) if points else ((), ())
    return Line(name, epochs, values, colour, run=place, **about)


def figure(
    key: str, title: str, caption: str, y_label: str, lines: Iterable[Line], top: float | None = None
) -> list[Figure]:
    """A figure of the lines that have a finite value; an empty list if none has."""
    drawn = tuple(one for one in lines if np.isfinite(one.values).any())
    return [Figure(key, title, caption, Lines(y_label, drawn, top))] if drawn else []


def percentage(name: str) -> Metric:
    """A fraction of a record in percent."""
    return lambda record: None if getattr(record, name) is None else 100 * getattr(record, name)


def learning(runs: Sequence[RunSummary]) -> Section:
    """Errors of train and test, point-wise and Bayesian, and the quality of the probabilities."""
    text = (
        "Point-wise predictions (solid) use the most probable weights; Bayesian ones (dashed) average over the "
        "posterior, and are usually better while the weights are undecided."
    )
    alone = len(runs) == 1

    def each(metric: Metric) -> list[Line]:
        return [line("test" if alone else run.name, runs, place, metric, place) for place, run in enumerate(runs)]

    nll = "Punishes confident mistakes: if it rises while the error falls, the network is becoming overconfident."
    ece = "The average gap between confidence and accuracy; 0 is perfect calibration."
    time = "Training only, without evaluation. A steady rise is worth a look; single peaks are usually the machine's."
    figures = [
        *_errors(runs),
        *figure("nll", "Negative log-likelihood", nll, "NLL (nats)", each(attrgetter("test_nll"))),
        *figure("ece", "Expected calibration error", ece, "ECE (%)", each(percentage("test_ece"))),
        *(figure("seconds", "Time per epoch", time, "seconds", each(attrgetter("seconds"))) if alone else ()),
    ]
    return Section("learning", "Learning curves", text, tuple(figures))


def _errors(runs: Sequence[RunSummary]) -> list[Figure]:
    """Test and training errors in one figure of one run, or in a figure each of several."""
    unit = "error (%)" if all(run.percent for run in runs) else "root mean square error"

    def both(part: str, name: str, place: int, colour: int) -> list[Line]:
        bayes = attrgetter(f"{part}_error_bayes")
        dashed = line(f"{name}, Bayesian", runs, place, bayes, colour, dashed=True, in_legend=len(runs) == 1)
        return [line(name, runs, place, attrgetter(f"{part}_error"), colour), dashed]

    if len(runs) == 1:
        run = runs[0]
        caption = (
            "If the test curve rises while the training curve falls, the network overfits; if both are flat, longer "
            "training will not help."
        )
        tested = [(r.test_error, r.epoch) for r in run.records if r.test_error is not None]
        if tested:
            lowest, epoch = min(tested)
            caption += f" The lowest test error, {error(lowest, run.percent)}, was reached in epoch {epoch}."
        return figure("error", "Error", caption, unit, [*both("test", "test", 0, 0), *both("train", "train", 0, 1)])
    test = "Solid: point-wise; dashed: Bayesian. Compare where the curves end and how soon they get there."
    train = "A run that is low here but high on the test set has overfitted."
    figures = []
    for part, title, caption in (("test", "Test error", test), ("train", "Training error", train)):
        lines = [one for place, run in enumerate(runs) for one in both(part, run.name, place, place)]
        figures += figure(f"{part}-error", title, caption, unit, lines)
    return figures


def layers(runs: Sequence[RunSummary]) -> Section:
    """Polarisation and overlap of each layer, and how many values a floor or the bound clamped, if it did any."""
    text = (
        "The polarisation ⟨m²⟩ of a layer goes from 0, where every weight is undecided, to 1, where every weight has "
        "settled on a sign. The overlap ⟨q_ab⟩ says how similar the units of a layer are to each other."
    )
    grown = "A layer close to 1 has stopped learning; in one that stays low, many weights are undecided."
    if len(runs) == 1 and runs[0].records:
        ends = ", ".join(fixed(q, 2) for q in runs[0].records[-1].polarization)
        grown += f" Final values, from the first layer to the last: {ends}."
    apart = "Near 0, the units of a layer are unrelated; above 0 they resemble each other, below 0 they are opposed."
    clamped = (
        "The fraction of variances, gains and weights that were clamped to stay finite. A few are harmless; many mean "
        "that the weights are certain and have stopped learning or, if they are Gaussian, that their means diverge."
    )
    lines = (
        line("all layers" if len(runs) == 1 else run.name, runs, place, percentage("clamped"), place)
        for place, run in enumerate(runs)
        if any(record.clamped for record in run.records)
    )
    figures = [
        *_by_layer(runs, "polarisation", "polarization", grown, "⟨m²⟩", top=1.0),
        *_by_layer(runs, "overlap", "overlap", apart, "⟨q_ab⟩"),
        *figure("clamped", "Clamped values", clamped, "clamped (%)", lines),
    ]
    return Section("layers", "Polarisation and overlaps", text, tuple(figures), 2 if len(runs) == 1 else 3)


def _by_layer(
    runs: Sequence[RunSummary], key: str, field: str, caption: str, y_label: str, top: float | None = None
) -> list[Figure]:
    """All layers of one run in one figure, or one figure per layer of several; ``top`` is for weights within ±1."""

    def curve(name: str, place: int, number: int, colour: int) -> Line:
        def metric(record: EpochRecord) -> float | None:
            return next(iter(getattr(record, field)[number : number + 1]), None)

        return line(name, runs, place, metric, colour)

    def highest(chosen: Sequence[int]) -> float | None:
        bounds = {run.layers[number].bound for run in runs for number in chosen if number < len(run.layers)}
        return top if bounds == {1.0} else None

    numbers, title = range(max(len(run.layers) for run in runs)), key.capitalize()
    if len(runs) == 1:
        lines = [curve(layer.name, 0, number, number) for number, layer in enumerate(runs[0].layers)]
        return figure(key, title, caption, y_label, lines, highest(numbers))
    figures = []
    for number in numbers:
        lines = [curve(run.name, place, number, place) for place, run in enumerate(runs)]
        name = f"{title}, layer {number + 1}"
        figures += figure(f"{key}-{number + 1}", name, caption, y_label, lines, highest([number]))
    return figures
