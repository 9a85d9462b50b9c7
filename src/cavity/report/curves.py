"""Curves over epochs: errors and calibration, then polarisation and overlaps of the layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cavity.report.content import Figure, Line, Lines, Section
from cavity.report.summary import RunSummary
from cavity.report.wording import error, fixed

if TYPE_CHECKING:
    from cavity.analysis.metrics import EpochRecord

Metric = Callable[["EpochRecord"], float | None]
EPOCH = "epoch"


def line(
    name: str, run: RunSummary, metric: Metric, colour: int, *, dashed: bool = False, in_legend: bool = True
) -> Line:
    """One metric of one run over the epochs that have it."""
    points = [(record.epoch, value) for record in run.records if (value := metric(record)) is not None]
    epochs, values = zip(*points, strict=True) if points else ((), ())
    return Line(name, epochs, values, colour, dashed, in_legend)


def figure(
    key: str, title: str, caption: str, y_label: str, lines: Sequence[Line], top: float | None = None
) -> list[Figure]:
    """A figure of the lines that have a finite value; an empty list if none has."""
    drawn = tuple(one for one in lines if any(value is not None and math.isfinite(value) for value in one.y))
    return [Figure(key, title, caption, Lines(EPOCH, y_label, drawn, top))] if drawn else []


def learning(runs: Sequence[RunSummary]) -> Section:
    """Errors of train and test, point-wise and Bayesian, and how honest the probabilities are."""
    text = (
        "Point-wise predictions (solid) use the most probable weights; Bayesian ones (dashed) average over the "
        "posterior, and are usually better while the weights are undecided."
    )
    errors = _errors_of_one(runs[0]) if len(runs) == 1 else _errors_of_several(runs)
    return Section("learning", "Learning curves", text, (*errors, *_probabilities(runs)))


def _unit(runs: Sequence[RunSummary]) -> str:
    return "error (%)" if all(run.percent for run in runs) else "root mean square error"


def _errors_of_one(run: RunSummary) -> list[Figure]:
    lines = [
        line("test", run, lambda r: r.test_error, 0),
        line("test, Bayesian", run, lambda r: r.test_error_bayes, 0, dashed=True),
        line("train", run, lambda r: r.train_error, 1),
        line("train, Bayesian", run, lambda r: r.train_error_bayes, 1, dashed=True),
    ]
    caption = (
        "A test curve that rises while the training curve falls is overfitting; both flat means longer will not help."
    )
    tested = [(r.test_error, r.epoch) for r in run.records if r.test_error is not None]
    if tested:
        lowest, epoch = min(tested)
        caption += f" The lowest test error, {error(lowest, run.percent)}, came in epoch {epoch}."
    return figure("error", "Error", caption, _unit([run]), lines)


def _errors_of_several(runs: Sequence[RunSummary]) -> list[Figure]:
    def both(point: Metric, bayes: Metric) -> list[Line]:
        pairs = [
            (
                line(run.name, run, point, colour),
                line(f"{run.name}, Bayesian", run, bayes, colour, dashed=True, in_legend=False),
            )
            for colour, run in enumerate(runs)
        ]
        return [one for pair in pairs for one in pair]

    test = "Solid: point-wise, dashed: Bayesian. Compare the ends of the curves, and how soon they get there."
    train = "A run that is low here and high on the test set has overfitted."
    return [
        *figure(
            "test-error", "Test error", test, _unit(runs), both(lambda r: r.test_error, lambda r: r.test_error_bayes)
        ),
        *figure(
            "train-error",
            "Training error",
            train,
            _unit(runs),
            both(lambda r: r.train_error, lambda r: r.train_error_bayes),
        ),
    ]


def _probabilities(runs: Sequence[RunSummary]) -> list[Figure]:
    def each(metric: Metric) -> list[Line]:
        name = "test" if len(runs) == 1 else ""
        return [line(name or run.name, run, metric, colour) for colour, run in enumerate(runs)]

    nll = "Punishes confident mistakes: if it rises while the error falls, the network has become too sure of itself."
    ece = "The gap between how sure the network is and how often it is right; 0 is honest."
    seconds = "Message passing alone, without measuring. A steady rise is worth a look; single peaks are the machine's."
    figures = [
        *figure("nll", "Negative log-likelihood", nll, "NLL (nats)", each(lambda r: r.test_nll)),
        *figure(
            "ece", "Calibration error", ece, "ECE (%)", each(lambda r: None if r.test_ece is None else 100 * r.test_ece)
        ),
    ]
    if len(runs) == 1:
        figures += figure(
            "seconds", "Time per epoch", seconds, "seconds", [line("training", runs[0], lambda r: r.seconds, 0)]
        )
    return figures


def layers(runs: Sequence[RunSummary]) -> Section:
    """Polarisation and overlap of each layer: all layers of one run in one figure, or one figure per layer."""
    text = (
        "The polarisation ⟨m²⟩ of a layer goes from 0, where every weight is undecided, to 1, where all have chosen a "
        "sign. The overlap compares the units of a layer with each other."
    )
    panels = [*(_layers_of_one(runs[0]) if len(runs) == 1 else _layers_of_several(runs)), *_clamped(runs)]
    return Section("layers", "Polarisation and overlaps", text, tuple(panels), 2 if len(runs) == 1 else 3)


def _polarization(number: int) -> Metric:
    return lambda r: r.polarization[number] if number < len(r.polarization) else None


def _overlap(number: int) -> Metric:
    return lambda r: r.overlap[number] if number < len(r.overlap) else None


def _top(runs: Sequence[RunSummary], number: int | None = None) -> float | None:
    """1 where m² cannot exceed 1, else None."""
    chosen = [layer for run in runs for place, layer in enumerate(run.layers) if number in (None, place)]
    return 1.0 if chosen and all(layer.bound == 1 for layer in chosen) else None


def _layers_of_one(run: RunSummary) -> list[Figure]:
    numbers = range(len(run.layers))
    grown = "A layer that nears 1 has stopped learning; one that stays low is still spread over many weights."
    if run.records:
        ends = ", ".join(fixed(q, 2) for q in run.records[-1].polarization)
        grown += f" At the end, from the first layer on: {ends}."
    apart = "Near 0, the units of a layer are unlike each other; above it they copy, below it they avoid each other."
    return [
        *figure(
            "polarisation",
            "Polarisation",
            grown,
            "⟨m²⟩",
            [line(run.layers[n].name, run, _polarization(n), n) for n in numbers],
            _top([run]),
        ),
        *figure(
            "overlap",
            "Overlap of units",
            apart,
            "⟨q_ab⟩",
            [line(run.layers[n].name, run, _overlap(n), n) for n in numbers],
        ),
    ]


def _clamped(runs: Sequence[RunSummary]) -> list[Figure]:
    """How often a floor or the bound acted, for the runs in which any did."""
    caption = (
        "Variances, gains and weights that needed a floor or the bound to stay finite. A few are harmless; many mean "
        "that the weights are certain and learn no more, or, of Gaussian weights, that their means diverge."
    )
    acted = [(n, run) for n, run in enumerate(runs) if any(record.clamped for record in run.records)]
    lines = [
        line(
            "all layers" if len(runs) == 1 else run.name,
            run,
            lambda r: None if r.clamped is None else 100 * r.clamped,
            n,
        )
        for n, run in acted
    ]
    return figure("clamped", "Clamped", caption, "entries (%)", lines)


def _layers_of_several(runs: Sequence[RunSummary]) -> list[Figure]:
    depth = max(len(run.layers) for run in runs)
    figures = []
    for n in range(depth):
        lines = [line(run.name, run, _polarization(n), colour) for colour, run in enumerate(runs)]
        caption = "Which run decides sooner? Near 1, this layer has stopped learning."
        title = f"Polarisation, layer {n + 1}"
        figures += figure(f"polarisation-{n + 1}", title, caption, "⟨m²⟩", lines, _top(runs, n))
    for n in range(depth):
        lines = [line(run.name, run, _overlap(n), colour) for colour, run in enumerate(runs)]
        caption = "Above 0, units of this layer become copies of each other."
        figures += figure(f"overlap-{n + 1}", f"Overlap, layer {n + 1}", caption, "⟨q_ab⟩", lines)
    return figures
