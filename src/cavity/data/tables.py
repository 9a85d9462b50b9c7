"""Tables with a label column: ``.csv`` here by the standard library, ``.parquet`` by the optional pyarrow."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cavity.data.errors import damaged, reading
from cavity.data.labels import Encoded, Words
from cavity.data.raw import Raw, split
from cavity.util.regular import open_regular

LABEL_NAMES = ("label", "target", "y", "class")
DELIMITERS = (",", ";", "\t")

#: Of the names of all columns, which is the label, if any; the others are features.
FindLabel: TypeAlias = Callable[[list[str]], "int | None"]
#: Features (samples, features), and classes if labels were asked for.
Columns: TypeAlias = "tuple[NDArray[np.float64], Encoded | None]"


def label_column(path: Path, columns: list[str], label: str | None) -> int:
    """The position of the label column: the one named, or else the one called label, target, y or class."""
    shown = ", ".join(columns[:20]) + (", …" if len(columns) > 20 else "")
    if label is not None:
        if columns.count(label) != 1:
            raise damaged(path, f"has {columns.count(label)} columns called {label!r}; it has {shown}")
        return columns.index(label)
    found = [i for i, name in enumerate(columns) if name.strip().lower() in LABEL_NAMES]
    if len(found) != 1:
        hint = f"give the label's name as label=…, one of {shown}"
        raise damaged(path, f"has {len(found)} columns called {', '.join(LABEL_NAMES)}; {hint}")
    return found[0]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def scan_csv(path: Path, find: FindLabel, with_labels: bool) -> Columns:
    """A table with a header line, a row at a time."""
    with reading(path, "table", OSError, ValueError, csv.Error), open_regular(path) as raw:
        file = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        first = file.readline(1 << 20)
        delimiter = max(DELIMITERS, key=first.count)
        file.seek(0)
        rows = csv.reader(file, delimiter=delimiter, strict=True)
        columns = next(rows, [])
        target, width = find(columns), len(columns)
        del first, columns  # a row of a million columns is held twice otherwise
        values, labels = array("d"), Words(path)
        for row in filter(None, rows):
            if len(row) != width:
                raise damaged(path, f"line {rows.line_num} has {len(row)} fields where the header has {width}")
            label = None if target is None else row.pop(target).strip()
            if with_labels:
                if not label:
                    raise damaged(path, f"row {len(labels) + 1} has no label")
                labels.add(label)
            try:
                values.extend(map(float, row))
            except ValueError as error:
                raise damaged(path, f"line {rows.line_num}: {error}") from error
    features = width if target is None else width - 1
    if not values:
        raise damaged(path, f"holds {len(labels)} rows and {features} features")
    x = np.frombuffer(values, np.float64).reshape(-1, features)
    return x, labels.encoded() if with_labels else None


def load_table(path: Path, label: str | None, test_fraction: float, seed: int) -> Raw:
    """A table, split here into training and test rows; every column but the label is a feature."""
    is_parquet = path.suffix.lower() == ".parquet"

    def find(columns: list[str]) -> int:
        if not is_parquet and columns and all(_is_number(name) for name in columns):
            raise damaged(path, "the first line holds numbers only; a header with column names is needed")
        return label_column(path, columns, label)

    x, labels = scan(path, find, with_labels=True)
    assert labels is not None
    y, classes = labels
    train, test = split(x, y, test_fraction, seed)
    return Raw(path.stem, train, test, classes, "feature")


def scan(path: Path, find: FindLabel, with_labels: bool) -> Columns:
    """A table of either kind."""
    if path.suffix.lower() != ".parquet":
        return scan_csv(path, find, with_labels)
    from cavity.data.parquet import scan_parquet

    return scan_parquet(path, find, with_labels)
