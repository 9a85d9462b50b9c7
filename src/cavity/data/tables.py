"""Tables with a label column: ``.csv`` by the standard library, ``.parquet`` by the optional pyarrow."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cavity.data.errors import damaged, reading
from cavity.data.packing import check_expansion
from cavity.data.raw import Raw, encode_labels, split
from cavity.util.regular import open_regular, require_regular

LABEL_NAMES = ("label", "target", "y", "class")
DELIMITERS = (",", ";", "\t")

#: Of the names of all columns, which are the features, and which is the label, if any.
Choose: TypeAlias = Callable[[list[str]], tuple[list[int], int | None]]
#: Features (samples, features), and labels (samples,) if a label was chosen.
Columns: TypeAlias = "tuple[NDArray[np.float64], NDArray[np.generic] | None]"


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


def scan_csv(path: Path, choose: Choose) -> Columns:
    """A table with a header line; its labels are text."""
    with reading(path, "table", OSError, ValueError, csv.Error), open_regular(path) as raw:
        file = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        first = file.readline(1 << 20)
        delimiter = max(DELIMITERS, key=first.count)
        file.seek(0)
        rows = csv.reader(file, delimiter=delimiter, strict=True)
        columns = next(rows, [])
        features, target = choose(columns)
        values, labels = array("d"), []
        for row in filter(None, rows):
            if len(row) != len(columns):
                found = f"line {rows.line_num} has {len(row)} fields"
                raise damaged(path, f"{found} where the header has {len(columns)}")
            if target is not None:
                labels.append(row[target].strip())
            try:
                values.extend(float(row[number]) for number in features)
            except ValueError as error:
                raise damaged(path, f"line {rows.line_num}: {error}") from error
    if not values:
        raise damaged(path, f"holds {len(labels)} rows and {len(features)} features")
    x = np.frombuffer(values, np.float64).reshape(-1, len(features))
    if target is None:
        return x, None
    if "" in labels:
        raise damaged(path, f"row {labels.index('') + 1} has no label")
    # A NumPy array of text gives every row the room of the longest: one long field must not multiply.
    check_expansion(path, path.stat().st_size, 4 * max(map(len, labels)) * len(labels))
    return x, np.array(labels)


def scan_parquet(path: Path, choose: Choose) -> Columns:
    """A parquet file; its labels keep their type.

    Columns of any other type than numbers are refused before they are read, and texts are read as a dictionary: a few
    bytes can stand for a long text in millions of rows.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(f"{path}: reading parquet needs pyarrow: pip install 'cavity[parquet]'") from error
    with reading(path, "parquet file", OSError, ValueError, TypeError, LookupError, pa.ArrowException):
        require_regular(path)
        schema = pq.read_schema(path)
        names, types = list(schema.names), list(schema.types)
        features, target = choose(names)
        for number in features:
            if not (pa.types.is_integer(types[number]) or pa.types.is_floating(types[number])):
                raise damaged(path, f"column {names[number]!r} ({types[number]}) has other things in it than numbers")
        texts = [names[target]] if target is not None and _holds_text(types[target]) else []
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            rows = file.metadata.num_rows
            check_expansion(path, path.stat().st_size, 8 * rows * len(names))
            if not features or not rows:
                raise damaged(path, f"holds {rows} rows and {len(features)} features")
            kept = features if target is None else [*features, target]
            table = file.read(columns=[names[number] for number in kept])
        columns = [table.column(names[number]) for number in features]
        for number, column in zip(features, columns, strict=True):
            if column.null_count:
                raise damaged(path, f"column {names[number]!r} lacks {column.null_count} numbers")
        x = np.stack([column.to_numpy().astype(np.float64) for column in columns], axis=1)
        return x, None if target is None else _labels(path, table.column(names[target]))


def _holds_text(kind: Any) -> bool:
    """Whether a column has texts, or a dictionary of them, rather than numbers."""
    import pyarrow as pa

    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_string(value) or pa.types.is_large_string(value):
        return True
    if not (pa.types.is_integer(value) or pa.types.is_floating(value) or pa.types.is_boolean(value)):
        raise TypeError(f"labels of type {kind}")
    return False


def _labels(path: Path, column: Any) -> NDArray[np.generic]:
    """Numbers as they are; of texts only the dictionary is ever written out, until it is known how long they are."""
    import pyarrow as pa

    if column.null_count:
        raise damaged(path, f"{column.null_count} labels are missing")
    if not _holds_text(column.type):
        column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        numbers: NDArray[np.generic] = column.to_numpy()
        return numbers
    whole = column.dictionary_encode().combine_chunks()
    words = whole.dictionary.to_pylist()
    check_expansion(path, path.stat().st_size, 4 * max(map(len, words)) * len(whole))
    texts: NDArray[np.generic] = np.array(words, dtype=np.str_)[whole.indices.to_numpy()]
    return texts


def load_table(path: Path, label: str | None, test_fraction: float, seed: int) -> Raw:
    """A table, split here into training and test rows; every column but the label is a feature."""
    is_parquet = path.suffix.lower() == ".parquet"

    def choose(columns: list[str]) -> tuple[list[int], int]:
        if not is_parquet and columns and all(_is_number(name) for name in columns):
            raise damaged(path, "the first line holds numbers only; a header with column names is needed")
        target = label_column(path, columns, label)
        return [number for number in range(len(columns)) if number != target], target

    x, labels = (scan_parquet if is_parquet else scan_csv)(path, choose)
    assert labels is not None
    y, classes = encode_labels(labels, path)
    train, test = split(x, y, test_fraction, seed)
    return Raw(path.stem, train, test, classes, "feature")
