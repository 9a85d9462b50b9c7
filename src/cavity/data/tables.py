"""Tables with a label column: ``.csv`` here by the standard library, ``.parquet`` by the optional pyarrow.

A column is numbers if all that stands in it is, and texts if none is; anything else is an error that names the line.
Whatever the texts are, a cell takes eight bytes.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cavity.data.encoding import Encoding, Table
from cavity.data.errors import damaged, reading
from cavity.data.labels import MAX_CLASSES, Encoded, Words
from cavity.data.raw import Part, Raw, parted, parted_numbers
from cavity.data.treatment import USUAL, Treatment
from cavity.util.regular import open_regular

LABEL_NAMES = ("label", "target", "y", "class")
DELIMITERS = (",", ";", "\t")
#: What stands for a value that is missing, in small letters.
GAPS = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
#: 2024-05-31, 31.5.2024, 5/31/24, each perhaps with a time behind it.
DATE = re.compile(r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([ T]\d{1,2}:\d{2}.*)?")
#: With more different labels than this, and more than a tenth of the samples, whole numbers are measurements too.
MANY_LABELS = 50

#: Names of more columns than this are of no use to anybody.
MOST_NAMES = 4096
#: More columns of texts than this are no table; each takes far more memory than its cells.
MOST_TEXTS = 4096
#: Of the names of all columns, which is the label, if any; the others are features.
FindLabel: TypeAlias = Callable[[list[str]], "int | None"]
#: What labels are: classes, numbers, or of no interest.
LabelKind: TypeAlias = Literal["classes", "numbers"] | None


class Columns(NamedTuple):
    """The features of a table, and its classes or numbers if they were asked for."""

    table: Table
    classes: Encoded | None = None
    numbers: NDArray[np.float64] | None = None


def label_column(path: Path, columns: list[str], label: str | None) -> int:
    """The position of the label column: the one named, or else the one called label, target, y or class."""
    shown = ", ".join(columns[:20]) + (", …" if len(columns) > 20 else "")
    if label is not None:
        if columns.count(label) != 1:
            raise damaged(path, f"has {columns.count(label)} columns called {label!r}; it has {shown}")
        return columns.index(label)
    found = [i for i, name in enumerate(columns) if name.strip().lower() in LABEL_NAMES]
    if len(found) != 1:
        hint = f"say which one is the label with --label (label=… in Python), one of {shown}"
        raise damaged(path, f"has {len(found)} columns called {', '.join(LABEL_NAMES)}; {hint}")
    return found[0]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class Cells:
    """The feature columns of a table while it is read, a row at a time."""

    def __init__(self, path: Path, names: list[str], text: Sequence[str]) -> None:
        self.path, self.names = path, names
        self.forced = {column for column, name in enumerate(names) if name in text} if text else set[int]()
        self.values, self.lines = array("d"), array("q")
        #: Only of columns that have texts: nobody has to pay for millions of columns in a header.
        self.words: dict[int, dict[str, int]] = {}
        #: The first line on which a column has a number, and a text; zeros take no memory before they are changed.
        self.first_number, self.first_text = (np.zeros(len(names), np.int64).data for _ in range(2))
        self.all_numbers = 0

    def add(self, row: Sequence[str], line: int) -> None:
        """The next row."""
        self.lines.append(line)
        if not self.forced:
            before = len(self.values)
            try:
                self.values.extend(map(float, row))
            except ValueError:
                del self.values[before:]
            else:
                self.all_numbers = self.all_numbers or line
                return
        self.values.extend(self._value(column, cell.strip(), line) for column, cell in enumerate(row))

    def _value(self, column: int, cell: str, line: int) -> float:
        if cell.lower() in GAPS:
            return np.nan
        if column not in self.forced:
            try:
                value = float(cell)
            except ValueError:
                pass
            else:
                self.first_number[column] = self.first_number[column] or line
                return value
        self.first_text[column] = self.first_text[column] or line
        if column not in self.words:
            require_few_texts(self.path, len(self.words) + 1)
            self.words[column] = {}
        words = self.words[column]
        code = words.setdefault(cell, len(words))
        if code >= MAX_CLASSES:
            name = self.names[column]
            raise damaged(self.path, f"column {name!r} has over {MAX_CLASSES:,} texts: leave it out with --drop {name}")
        return float(code)

    def table(self) -> Table:
        """All rows; an error by column and line where a column is neither numbers nor kinds."""
        x = np.frombuffer(self.values, np.float64).reshape(len(self.lines), -1)
        lines = np.frombuffer(self.lines, np.int64)
        for column, words in sorted(self.words.items()):
            if column not in self.forced:
                number_line = self.first_number[column] or self.all_numbers
                require_kinds(self.path, self.names[column], list(words), self.first_text[column], number_line)
        infinite = np.argwhere(np.isinf(x))
        if len(infinite):
            row, column = infinite[0]
            name = self.names[column]
            raise damaged(self.path, f"column {name!r}, line {lines[row]}: is not a finite number; leave it empty")
        words_of = {column: list(words) for column, words in sorted(self.words.items())}
        return Table(self.path, self.names, x, words_of, lines)


def require_few_texts(path: Path, columns: int) -> None:
    """DataError for more columns of texts than ``MOST_TEXTS``."""
    if columns > MOST_TEXTS:
        raise damaged(path, f"has over {MOST_TEXTS:,} columns of texts: leave some out with --drop")


def require_kinds(path: Path, name: str, words: Sequence[str], line: int, number_line: int = 0) -> None:
    """DataError for texts among numbers, and for dates."""
    if number_line:
        raise damaged(
            path,
            f"column {name!r}, line {line}: {words[0][:40]!r} is not a number, unlike line {number_line}: correct it, "
            f"leave it empty, or take the column as text with --text {name}",
        )
    if all(DATE.fullmatch(word) for word in words):
        raise damaged(path, f"column {name!r}, line {line}: {words[0]!r} is a date. {no_dates(name)}")


def no_dates(name: str) -> str:
    return f"A date is not a number: make columns of it such as month or weekday, or leave it out with --drop {name}"


def scan_csv(path: Path, find: FindLabel, labels: LabelKind, treatment: Treatment = USUAL) -> Columns:
    """A table with a header line, a row at a time."""
    with reading(path, "table", OSError, ValueError, csv.Error), open_regular(path) as raw:
        file = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        first = file.readline(1 << 20)
        delimiter = max(DELIMITERS, key=first.count)
        file.seek(0)
        rows = csv.reader(file, delimiter=delimiter, strict=True)
        columns = next(rows, [])
        target, width = find(columns), len(columns)
        kept = kept_columns(path, columns, target, treatment)
        features = len(kept)
        # The usual case, of which a row of a million columns is not copied.
        only_label = features == width - (target is not None)
        if only_label and target is not None:
            del columns[target]
        cells = Cells(path, columns if only_label else [columns[n] for n in kept], treatment.texts)
        del first, columns
        words, numbers = Words(path), array("d")
        for row in filter(None, rows):
            if len(row) != width:
                raise damaged(path, f"line {rows.line_num} has {len(row)} fields where the header has {width}")
            label = "" if target is None else row[target].strip()
            if labels is not None and not label:
                raise damaged(path, f"row {len(cells.lines) + 1} (line {rows.line_num}) has no label")
            if labels == "classes":
                words.add(label)
            elif labels == "numbers":
                numbers.append(real_label(path, label, rows.line_num))
            if only_label and target is not None:
                del row[target]
            cells.add(row if only_label else [row[n] for n in kept], rows.line_num)
        if not cells.values:
            raise damaged(path, f"holds {len(cells.lines)} rows and {features} features")
        table = cells.table()
    encoded = words.encoded() if labels == "classes" else None
    return Columns(table, encoded, np.frombuffer(numbers, np.float64) if labels == "numbers" else None)


def real_label(path: Path, text: str, line: int) -> float:
    """A label of regression."""
    if not _is_number(text) or not np.isfinite(float(text)):
        raise damaged(path, f"line {line}: the label {text[:40]!r} is not a number, which --task regression needs")
    return float(text)


def kept_columns(path: Path, columns: list[str], target: int | None, treatment: Treatment) -> Sequence[int]:
    """The positions of the features; names in options must be those of columns. Where the columns of an earlier table
    are all there, they are all that is looked at."""
    if treatment.fitted is not None:
        known = {one.name for one in treatment.fitted.columns}
        every = bool(known.difference(columns))
        return array("q", (n for n, name in enumerate(columns) if n != target and (every or name in known)))
    shown = ", ".join(columns[:20]) + (", …" if len(columns) > 20 else "")
    for option in ("text", "drop"):
        for name in treatment.named(option):
            if name not in columns:
                raise damaged(path, f"has no column {name!r}, which --{option} names; it has {shown}")
    dropped = treatment.named("drop")
    return array("q", (n for n, name in enumerate(columns) if n != target and name not in dropped))


def load_table(path: Path, label: str | None, test_fraction: float, seed: int, treatment: Treatment = USUAL) -> Raw:
    """A table, split here into training and test rows; every column but the label is a feature."""
    is_parquet = path.suffix.lower() == ".parquet"
    found: list[str] = []
    names: tuple[str, ...] = ()

    def find(columns: list[str]) -> int:
        if not is_parquet and columns and all(_is_number(name) for name in columns):
            raise damaged(path, "the first line holds numbers only; a header with column names is needed")
        place = label_column(path, columns, label)
        found.append(columns[place])
        return place

    real = treatment.task == "regression"
    table, classes, numbers = scan(path, find, "numbers" if real else "classes", treatment)
    if real:
        assert numbers is not None
        rows = parted_numbers(len(numbers), test_fraction, seed)
        y: NDArray[np.float64] | NDArray[np.int64] = numbers
    else:
        assert classes is not None
        y, names = classes
        if treatment.task is None:
            require_classes(path, found[0], names, len(y))
        rows = parted(y, test_fraction, seed)
    encoding = treatment.fitted or Encoding.fit(table, rows[0], treatment, found[0])
    x = encoding.apply(table)
    train, test = (Part(x[part], y[part]) for part in rows)
    named = encoding.features if x.shape[1] == encoding.width <= MOST_NAMES else []
    return Raw(path.stem, train, test, names, "feature", encoding=encoding, features=tuple(named))


def require_classes(path: Path, label: str, names: Sequence[str], samples: int) -> None:
    """DataError that asks what is wanted, for labels that look like measurements."""
    if not all(map(_is_number, names)):
        return
    whole = all(float(name) == np.floor(float(name)) for name in names)
    if len(names) > (2 if not whole else max(MANY_LABELS, samples // 10)):
        raise damaged(
            path,
            f"the label column {label!r} holds {len(names)} different numbers: to predict a number use --task "
            "regression, and if each is a class of its own --task classification",
        )


def scan(path: Path, find: FindLabel, labels: LabelKind, treatment: Treatment = USUAL) -> Columns:
    """A table of either kind."""
    if path.suffix.lower() != ".parquet":
        return scan_csv(path, find, labels, treatment)
    from cavity.data.parquet import scan_parquet

    return scan_parquet(path, find, labels, treatment)
