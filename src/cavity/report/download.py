"""The numbers of a page as CSV files within it, which spreadsheets open without running anything."""

from __future__ import annotations

import base64
import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import fields
from itertools import accumulate

from cavity.analysis.metrics import LISTED, EpochRecord
from cavity.report.overview import final_numbers
from cavity.report.summary import RunSummary
from cavity.report.wording import printable

#: What makes a spreadsheet take a cell for a formula, or a cell's beginning for the end of the one before.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def cell(value: object) -> str:
    """A number as it is, nothing for what is missing; a text that might be a formula begins with an apostrophe."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, int | float):
        return repr(value)
    words = printable(str(value))
    return f"'{words}" if words.lstrip(" \u00a0").startswith(FORMULA) or words.startswith("'") else words


def written(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The text of a CSV file."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerows([list(map(cell, row)) for row in (head, *rows)])
    return stream.getvalue()


def epochs_csv(runs: Sequence[RunSummary]) -> str:
    """A row for each epoch of each run: everything that was measured, and the training time so far."""
    plain = [item.name for item in fields(EpochRecord) if item.name not in LISTED]
    layers = max((len(run.layers) for run in runs), default=0)
    listed = [(name, number) for name in LISTED for number in range(layers)]
    head = ["run", *plain, "elapsed_seconds", *(f"{name}_layer_{number + 1}" for name, number in listed)]
    rows = [
        [
            run.name,
            *(getattr(record, name) for name in plain),
            elapsed,
            *(next(iter(getattr(record, name)[number : number + 1]), None) for name, number in listed),
        ]
        for run in runs
        for record, elapsed in zip(run.records, accumulate(one.seconds for one in run.records), strict=True)
    ]
    return written(head, rows)


def runs_csv(runs: Sequence[RunSummary]) -> str:
    """A row for each run: its final numbers, what it is, and all its settings."""
    facts = list(dict.fromkeys(label for run in runs for label, _ in run.facts))
    settings = list(dict.fromkeys(key for run in runs for key, _ in run.config))
    numbers = [final_numbers(run) for run in runs]
    head = ["run", "data", *(number.label for number in numbers[0]), "Epochs", *facts, *settings]
    rows = [
        [
            run.name,
            run.data,
            *(number.value for number in row),
            len(run.records),
            *(dict(run.facts).get(label) for label in facts),
            *(dict(run.config).get(key) for key in settings),
        ]
        for run, row in zip(runs, numbers, strict=True)
    ]
    return written(head, rows)


def csv_uri(text: str) -> str:
    """``data:text/csv;base64,…``; the mark at the beginning says UTF-8 to spreadsheets."""
    return "data:text/csv;charset=utf-8;base64," + base64.b64encode(text.encode("utf-8-sig")).decode("ascii")
