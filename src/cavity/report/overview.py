"""All sections of a page, and those that compare runs: the final numbers, run by run and over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cavity.report import configuration, curves, entropy, pictures
from cavity.report.content import Figure, Section, Table
from cavity.report.seeds import groups, has_seeds, mean_and_spread
from cavity.report.summary import RunSummary
from cavity.report.wording import MISSING, counted, duration, error, fixed, percent, thin

#: Numbers that are shares of 1, shown in percent.
SHARES = ("ECE", "Coverage")


def sections(runs: Sequence[RunSummary]) -> list[Section]:
    """What there is to show of these runs; sections without a figure are left out."""
    parts = [curves.learning, curves.layers, pictures.magnetisations, entropy.surroundings]
    parts += [pictures.calibration, pictures.examples, pictures.first_layer, pictures.feature_maps]
    parts = [*([comparison] if len(runs) > 1 else []), *parts, configuration.configuration]
    return [section for part in parts if (section := part(runs)).figures]


@dataclass(frozen=True)
class Number:
    """A final number of a run: what it is, how it is written, and a word about it."""

    label: str
    value: float | None
    written: str
    about: str
    lower_is_better: bool = True


def final_numbers(run: RunSummary) -> list[Number]:
    """The numbers after the last epoch that was measured, in the same order for every run."""
    measured = [record for record in run.records if record.test_error is not None or record.train_error is not None]
    last = (measured or [None])[-1]  # type: ignore[list-item]
    seconds = sum(record.seconds for record in run.records)
    free = sum(layer.free_weights for layer in run.layers)
    test_nll = None if last is None else last.test_nll

    def final_error(label: str, field: str, about: str) -> Number:
        value = None if last is None else getattr(last, field)
        name, more = (label, "") if run.percent else (label.replace("error", "RMSE"), ", in standard deviations")
        return Number(name, value, error(value, run.percent), about + more)

    return [
        final_error("Test error", "test_error", "most probable weights"),
        final_error("Test error, Bayesian", "test_error_bayes", "averaged over the posterior"),
        final_error("Training error", "train_error", "most probable weights"),
        Number("Test NLL", test_nll, fixed(test_nll, 3), "negative log-likelihood"),
        *(_of_probabilities(run) if run.percent else _of_numbers(run)),
        Number("Training time", seconds, duration(seconds), counted(len(run.records), "epoch"), False),
        Number("Weights", free, thin(free), counted(len(run.layers), "layer"), False),
    ]


def _of_probabilities(run: RunSummary) -> list[Number]:
    ece, brier = (None, None) if run.test is None else (run.test.ece, run.test.brier)
    return [
        Number("ECE", ece, MISSING if ece is None else percent(ece), "expected calibration error"),
        Number("Brier score", brier, fixed(brier, 3), "squared error of the probabilities"),
    ]


def _of_numbers(run: RunSummary) -> list[Number]:
    r2, coverage = (None, None) if run.numbers is None else (run.numbers.r2, run.numbers.coverage)
    told = MISSING if coverage is None else percent(coverage)
    return [
        Number("R²", r2, fixed(r2, 3), "part of the variance explained", False),
        Number("Coverage", coverage, told, "labels within 90\u00a0% intervals", False),
    ]


def comparison(runs: Sequence[RunSummary]) -> Section:
    """The final numbers of several runs in one table, the best of each column marked; means over seeds in another; and
    what was trained where."""
    numbers = [final_numbers(run) for run in runs]
    head = ("Run", *(number.label for number in numbers[0]), "Epochs", "Polarisation")
    polarised = [" · ".join(fixed(layer.polarization, 2) for layer in run.layers) for run in runs]
    rows = tuple(
        (run.name, *(number.written for number in row), str(len(run.records)), end)
        for run, row, end in zip(runs, numbers, polarised, strict=True)
    )
    values = tuple(
        (
            None,
            *(number.value for number in row),
            float(len(run.records)),
            run.layers[0].polarization if run.layers else None,
        )
        for run, row in zip(runs, numbers, strict=True)
    )
    marked = frozenset(
        (place, column + 1)
        for column, parts in enumerate(zip(*numbers, strict=True))
        if parts[0].lower_is_better
        for place in _best([part.value for part in parts])
    )
    caption = "The lowest value of each error is marked. Time and size tell whether the comparison is fair."
    table = Table(head, rows, marked, runs=tuple(range(len(runs))), values=values)
    figures = [Figure("comparison", "Final results", caption, table), *over_seeds(runs), *_origins(runs)]
    text = "Results after the last epoch of each run. Select the head of a column to sort by it."
    return Section("summary", "Summary", text, tuple(figures), 1)


def over_seeds(runs: Sequence[RunSummary]) -> list[Figure]:
    """Means and standard deviations of runs that differ in their seeds; nothing where no two do."""
    found = groups(runs)
    if not has_seeds(found):
        return []
    numbers = [final_numbers(run) for run in runs]
    chosen = [place for place, number in enumerate(numbers[0]) if number.label != "Weights"]
    labels = [numbers[0][column].label for column in chosen]
    rows, values = [], []
    for group in found:
        cells = [mean_and_spread([numbers[place][column].value for place in group.places]) for column in chosen]
        words = [_with_spread(numbers[0][column].label, cell) for column, cell in zip(chosen, cells, strict=True)]
        rows.append((group.name, str(len(group.places)), *words))
        values.append((None, float(len(group.places)), *(None if cell is None else cell[0] for cell in cells)))
    head = ("Runs", "Seeds", *labels)
    caption = "Mean ± standard deviation over runs that differ in nothing but their seeds."
    places = tuple(group.places[0] for group in found)
    table = Table(head, tuple(rows), runs=places, values=tuple(values))
    return [Figure("seeds", "Mean over seeds", caption, table)]


def _with_spread(label: str, cell: tuple[float, float] | None) -> str:
    """``4.21 ± 0.13 %``."""
    if cell is None:
        return MISSING
    (mean, spread), factor, digits, unit = cell, 1.0, 3, ""
    if label in SHARES or "error" in label:
        factor, digits, unit = (100.0 if label in SHARES else 1.0), 2, "\u00a0%"
    elif "RMSE" in label:
        digits = 4
    elif label == "Training time":
        digits, unit = 1, "\u00a0s"
    around = "" if math.isnan(spread) else f"\u00a0±\u00a0{fixed(factor * spread, digits)}"
    return f"{fixed(factor * mean, digits)}{around}{unit}"


def shared_facts(runs: Sequence[RunSummary]) -> list[tuple[str, str]]:
    """What is true of all runs, names and values."""
    return [fact for fact in runs[0].facts if all(fact in run.facts for run in runs)]


def _origins(runs: Sequence[RunSummary]) -> list[Figure]:
    """In what the runs differ that were trained, and where, a row for each; nothing where they do not."""
    shared = {label for label, _ in shared_facts(runs)}
    labels = list(dict.fromkeys(label for run in runs for label, _ in run.facts if label not in shared))
    if not labels:
        return []
    rows = tuple((run.name, *(dict(run.facts).get(label, MISSING) for label in labels)) for run in runs)
    caption = "Where the runs differ; what they have in common is at the head of the page."
    table = Table(("Run", *labels), rows, numeric=False, runs=tuple(range(len(runs))))
    return [Figure("origins", "What was trained, and where", caption, table)]


def _best(values: Sequence[float | None]) -> list[int]:
    """Where the lowest value is, if there is something to compare."""
    known = [value for value in values if value is not None]
    if len(known) < 2 or min(known) == max(known):
        return []
    return [place for place, value in enumerate(values) if value == min(known)]
