"""All sections of a page, and those that are tables: the final numbers and the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cavity.report import curves, entropy, pictures
from cavity.report.content import Figure, Section, Table
from cavity.report.summary import RunSummary
from cavity.report.wording import MISSING, counted, duration, error, fixed, percent


def sections(runs: Sequence[RunSummary]) -> list[Section]:
    """What there is to show of these runs; sections without a figure are left out."""
    parts = [curves.learning, curves.layers, pictures.magnetisations, entropy.surroundings]
    parts += [pictures.calibration, pictures.examples]
    parts = [*([comparison] if len(runs) > 1 else []), *parts, pictures.first_layer, configuration]
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
    """The numbers after the last epoch, in the same order for every run."""
    last = run.records[-1] if run.records else None
    seconds = sum(record.seconds for record in run.records)
    free = sum(layer.free_weights for layer in run.layers)
    test_nll = None if last is None else last.test_nll
    ece, brier = (None, None) if run.test is None else (run.test.ece, run.test.brier)

    def final_error(label: str, field: str, about: str) -> Number:
        value = None if last is None else getattr(last, field)
        return Number(label, value, error(value, run.percent), about)

    return [
        final_error("Test error", "test_error", "most probable weights"),
        final_error("Test error, Bayesian", "test_error_bayes", "averaged over the posterior"),
        final_error("Training error", "train_error", "most probable weights"),
        Number("Test NLL", test_nll, fixed(test_nll, 3), "negative log-likelihood"),
        Number("ECE", ece, MISSING if ece is None else percent(ece), "expected calibration error"),
        Number("Brier score", brier, fixed(brier, 3), "squared error of the probabilities"),
        Number("Training time", seconds, duration(seconds), counted(len(run.records), "epoch"), False),
        Number("Weights", free, f"{free:,}".replace(",", "\u202f"), counted(len(run.layers), "layer"), False),
    ]


def comparison(runs: Sequence[RunSummary]) -> Section:
    """The final numbers of several runs in one table, the best of each column marked."""
    numbers = [final_numbers(run) for run in runs]
    head = ("Run", *(number.label for number in numbers[0]), "Epochs", "Polarisation")
    polarised = [" · ".join(fixed(layer.polarization, 2) for layer in run.layers) for run in runs]
    rows = tuple(
        (run.name, *(number.written for number in row), str(len(run.records)), end)
        for run, row, end in zip(runs, numbers, polarised, strict=True)
    )
    marked = frozenset(
        (place, column + 1)
        for column, parts in enumerate(zip(*numbers, strict=True))
        if parts[0].lower_is_better
        for place in _best([part.value for part in parts])
    )
    caption = "The lowest value of each error is marked. Time and size tell whether the comparison is fair."
    figure = Figure("comparison", "Final results", caption, Table(head, rows, marked, coloured=True))
    return Section("summary", "Summary", "Results after the last epoch of each run.", (figure,), 1)


def _best(values: Sequence[float | None]) -> list[int]:
    """Where the lowest value is, if there is something to compare."""
    known = [value for value in values if value is not None]
    if len(known) < 2 or min(known) == max(known):
        return []
    return [place for place, value in enumerate(values) if value == min(known)]


def configuration(runs: Sequence[RunSummary]) -> Section:
    """Every setting of every run, with a mark where they differ."""
    keys = list(dict.fromkeys(key for run in runs for key, _ in run.config))
    settings = [dict(run.config) for run in runs]
    rows = tuple((key, *(values.get(key, MISSING) for values in settings)) for key in keys)
    differing = [place for place, row in enumerate(rows) if len(set(row[1:])) > 1]
    marked = frozenset((place, column) for place in differing for column in range(1, len(runs) + 1))
    text = "The settings of each run; cavity train --config RUN/config.toml trains it again."
    caption = "Settings that differ between the runs are marked." if len(runs) > 1 else "A dash means: not set."
    head = ("Setting", *(run.name for run in runs)) if len(runs) > 1 else ("Setting", "Value")
    table = Table(head, rows, marked, numeric=False)
    return Section("configuration", "Configuration", text, (Figure("settings", "Settings", caption, table),), 1)
