"""From the columns of a table to numbers: gaps are filled, texts become columns of 0 and 1 or numbers.

What is fitted to the training rows is kept as plain values, which are stored with a run as JSON and applied to every
table that its network is shown later. Numbers are never copied as a whole: a table of millions of short rows, or of
millions of columns, takes what its cells take.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cavity.data.errors import damaged
from cavity.data.treatment import ENCODINGS, Treatment

#: More different texts than this in a column are names, not kinds.
MOST_KINDS = 256
#: Cells whose statistics are made at once.
CELLS = 1 << 18


@dataclass(frozen=True)
class Table:
    """Feature columns as they were read: x (rows, columns) with NaN for gaps and numbers of texts; ``words`` are the
    texts of a column by their numbers, and ``lines`` says where each row stands in its file."""

    path: Path
    names: list[str]
    x: NDArray[np.float64]
    words: dict[int, list[str]]
    lines: NDArray[np.int64]

    def word(self, row: int, column: int) -> str:
        """What stands in a cell of a column of texts."""
        return self.words[column][int(self.x[row, column])]


@dataclass(frozen=True, slots=True)
class Column:
    """How one column becomes features; ``fill`` takes the place of a gap."""

    name: str
    kind: str
    fill: float | str
    categories: tuple[str, ...] = ()

    @property
    def features(self) -> list[str]:
        return [f"{self.name}={text}" for text in self.categories] if self.kind == "one-hot" else [self.name]

    @property
    def width(self) -> int:
        """How many features it becomes."""
        return len(self.categories) if self.kind == "one-hot" else 1

    def apply(self, table: Table, number: int, out: NDArray[np.float64]) -> None:
        """Features into ``out`` (rows, width). A text that no training row had is no kind (one-hot) or −1 (ordinal)."""
        values = table.x[:, number]
        if self.kind == "number":
            out[:, 0] = values
            out[np.isnan(values), 0] = self.fill
            return
        known = {text: place for place, text in enumerate(self.categories)}
        # The last is for gaps.
        places = np.array([known.get(text, -1) for text in (*table.words.get(number, ()), str(self.fill))])
        codes = places[np.where(np.isnan(values), len(places) - 1, values).astype(np.int64)]
        if self.kind == "ordinal":
            out[:, 0] = codes
        else:
            rows = np.flatnonzero(codes >= 0)
            out[:] = 0
            out[rows, codes[rows]] = 1


@dataclass(frozen=True)
class Encoding:
    """What is done with every column of a table, in the order of the features."""

    columns: tuple[Column, ...]
    label: str | None = None

    @classmethod
    def fit(cls, table: Table, rows: NDArray[np.integer[Any]], treatment: Treatment, label: str | None) -> Encoding:
        """What some rows of a table say about its columns."""
        if treatment.impute == "none":
            _require_no_gap(table)
        for number in table.words:
            many = len(table.words[number])
            if treatment.encode == "one-hot" and many > MOST_KINDS:
                name = table.names[number]
                raise _wrong(
                    table,
                    number,
                    f"has {many} different texts: names, not kinds? Leave it out with --drop {name}, or number "
                    "them with --encode ordinal",
                )
        columns = [
            _text_column(table, rows, number, treatment.encode)
            if number in table.words
            else Column(table.names[number], "number", fill)
            for number, fill in enumerate(_fills(table, rows, treatment.impute))
        ]
        return cls(tuple(columns), label)

    def apply(self, table: Table) -> NDArray[np.float64]:
        """Features (rows, features) of a table that has these columns, in whatever order, and perhaps others. Numbers
        alone under other names are taken by their places, as many as there are.

        Where nothing but gaps is to be changed they are filled in the table itself.
        """
        places = self._places(table)
        for column, number in zip(self.columns, places, strict=False) if table.words else ():
            if column.kind == "number" and number in table.words:
                row = int(np.argmin(np.isnan(table.x[:, number])))
                word = table.word(row, number)
                reason = f"line {table.lines[row]}: {word!r} is not a number, as those of the training rows were"
                raise _wrong(table, number, reason)
        if isinstance(places, range) and not self.texts:
            if len(places) == len(self.columns):
                for number in np.flatnonzero(np.isnan(table.x).any(axis=0)).tolist():
                    values = table.x[:, number]
                    values[np.isnan(values)] = self.columns[number].fill
            return table.x
        out, start = np.empty((len(table.x), self.width)), 0
        for column, number in zip(self.columns, places, strict=True):
            column.apply(table, number, out[:, start : start + column.width])
            start += column.width
        return out

    def _places(self, table: Table) -> Sequence[int]:
        """Where the columns stand in a table: a range if they are all of it, in their order."""
        if len(table.names) == len(self.columns) and all(
            one.name == name for one, name in zip(self.columns, table.names, strict=True)
        ):
            return range(len(table.names))
        known, found = {one.name for one in self.columns}, dict[str, int]()
        for number, name in enumerate(table.names):
            if name in found:
                raise _not_one(table, name)
            if name in known:
                found[name] = number
        missing = next((one.name for one in self.columns if one.name not in found), None)
        if missing is None:
            return [found[one.name] for one in self.columns]
        if self.texts or table.words:
            raise _not_one(table, missing)
        return range(len(table.names))

    @property
    def width(self) -> int:
        """How many features there are."""
        return sum(column.width for column in self.columns)

    @property
    def features(self) -> list[str]:
        """The names of the features."""
        return [name for column in self.columns for name in column.features]

    @property
    def texts(self) -> list[str]:
        """The columns that are texts."""
        return [column.name for column in self.columns if column.kind != "number"]

    def as_values(self) -> dict[str, Any]:
        """Plain values for JSON."""
        columns = [[one.name, one.kind, one.fill, list(one.categories)] for one in self.columns]
        return {"columns": columns, "label": self.label}

    @classmethod
    def from_values(cls, values: Any) -> Encoding:
        """From what ``as_values`` gave, or a stranger wrote: ValueError for anything else."""
        try:
            columns = tuple(
                Column(str(name), str(kind), fill, tuple(map(str, kinds)))
                for name, kind, fill, kinds in values["columns"]
            )
            label = values["label"]
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"the table's columns are {str(values)[:60]!r}") from error
        for column in columns:
            is_number = isinstance(column.fill, float | int) and math.isfinite(column.fill)
            good = (
                is_number if column.kind == "number" else column.kind in ENCODINGS and column.fill in column.categories
            )
            if not good:
                raise ValueError(f"the column {column.name[:40]!r} of kind {column.kind[:20]!r} has no such fill")
        return cls(columns, None if label is None else str(label))


def _fills(table: Table, rows: NDArray[np.integer[Any]], impute: str) -> list[float]:
    """What takes the place of a gap in each column, the mean or the median of the rows that have a value; it means
    nothing for texts. A few columns at a time."""
    fills, width = list[float](), max(1, CELLS // len(rows))
    for start in range(0, len(table.names), width):
        part = table.x[rows, start : start + width]
        there = np.count_nonzero(~np.isnan(part), axis=0)
        if not there.all():
            number = start + int(np.argmin(there > 0))
            raise _wrong(table, number, "has no value in the training rows: leave it out with --drop")
        if impute == "mean":
            with np.errstate(over="ignore"):  # whoever standardises them tells that they are too large
                fills += np.nanmean(part, axis=0).tolist()
        else:
            part.sort(axis=0)  # NaN are behind all numbers
            places = np.arange(part.shape[1])
            fills += (part[(there - 1) // 2, places] / 2 + part[there // 2, places] / 2).tolist()
    return fills


def _text_column(table: Table, rows: NDArray[np.integer[Any]], number: int, encode: str) -> Column:
    """The texts that some rows have; the most frequent one, of several the first, takes the place of a gap."""
    values, words = table.x[rows, number], table.words[number]
    counts = np.bincount(values[~np.isnan(values)].astype(np.int64))
    kinds = sorted(words[code] for code in np.flatnonzero(counts))
    return Column(table.names[number], encode, words[int(counts.argmax())], tuple(kinds))


def _require_no_gap(table: Table) -> None:
    for number in np.flatnonzero(np.isnan(table.x).any(axis=0)).tolist():
        if number not in table.words:
            line = table.lines[np.isnan(table.x[:, number]).argmax()]
            raise _wrong(table, number, f"line {line}: has no value: fill it, or use --impute median")


def _not_one(table: Table, name: str) -> Exception:
    return damaged(table.path, f"has {table.names.count(name)} columns called {name!r}, which the network takes")


def _wrong(table: Table, number: int, reason: str) -> Exception:
    return damaged(table.path, f"column {table.names[number]!r}{', ' if reason.startswith('line') else ' '}{reason}")
