"""Tables with a label column: ``.csv`` by the standard library, ``.parquet`` by the optional pyarrow."""

from __future__ import annotations

import csv
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

from cavity.data.errors import DataError, damaged
from cavity.data.packing import check_expansion
from cavity.data.raw import Raw, encode_labels, split

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LABEL_NAMES = ("label", "target", "y", "class")
DELIMITERS = (",", ";", "\t")


def label_column(path: Path, columns: list[str], label: str | None) -> int:
    """The position of the label column: the one named, or else the one called label, target, y or class."""
    shown = ", ".join(columns[:20]) + (", …" if len(columns) > 20 else "")
    if label is not None:
        if columns.count(label) != 1:
            raise damaged(path, f"has {columns.count(label)} columns called {label!r}; it has {shown}")
        return columns.index(label)
    found = [i for i, name in enumerate(columns) if name.strip().lower() in LABEL_NAMES]
    if len(found) != 1:
        raise damaged(
            path,
            f"has {len(found)} columns called {', '.join(LABEL_NAMES)}; give the label's name as label=…, "
            f"one of {shown}",
        )
    return found[0]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_csv(path: Path, label: str | None) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Features (samples, columns − 1) and labels, as text, of a table with a header line."""
    import numpy as np

    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline(1 << 20)
            delimiter = max(DELIMITERS, key=first.count)
            file.seek(0)
            rows = csv.reader(file, delimiter=delimiter, strict=True)
            columns = next(rows, [])
            if columns and all(_is_number(name) for name in columns):
                raise damaged(path, "the first line holds numbers only; a header with column names is needed")
            target = label_column(path, columns, label)
            values, labels = array("d"), []
            for row in rows:
                if not row:
                    continue
                if len(row) != len(columns):
                    raise damaged(
                        path,
                        f"line {rows.line_num} has {len(row)} fields where the header has {len(columns)}",
                    )
                labels.append(row.pop(target).strip())
                try:
                    values.extend(map(float, row))
                except ValueError as error:
                    raise damaged(path, f"line {rows.line_num}: {error}") from error
    except DataError:
        raise
    except (OSError, ValueError, csv.Error) as error:
        raise damaged(path, f"is not a readable table: {error}") from error
    if not labels or len(columns) < 2:
        raise damaged(path, f"holds {len(labels)} rows and {max(len(columns) - 1, 0)} features")
    if "" in labels:
        raise damaged(path, f"row {labels.index('') + 1} has no label")
    # A NumPy array of text gives every row the room of the longest: one long field must not multiply.
    longest = max(map(len, labels))
    check_expansion(path, path.stat().st_size, 4 * longest * len(labels))
    return np.frombuffer(values, np.float64).reshape(len(labels), -1), np.array(labels)


def read_parquet(path: Path, label: str | None) -> tuple[NDArray[np.float64], NDArray[np.generic]]:
    """Features (samples, columns − 1) and labels, in their own type, of a parquet file."""
    import numpy as np

    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(f"{path}: reading parquet needs pyarrow: pip install 'cavity[parquet]'") from error
    try:
        with pq.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            target = label_column(path, names, label)
            check_expansion(path, path.stat().st_size, 8 * file.metadata.num_rows * len(names))
            table = file.read()
        features = [table.column(i) for i in range(len(names)) if i != target]
        for name, column in zip((n for i, n in enumerate(names) if i != target), features, strict=True):
            if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)) or column.null_count:
                raise damaged(path, f"column {name!r} ({column.type}) has other things in it than numbers")
        labels = table.column(target)
        if pa.types.is_dictionary(labels.type):
            labels = labels.cast(labels.type.value_type)
        if labels.null_count:
            raise damaged(path, f"{labels.null_count} labels are missing")
        is_text = pa.types.is_string(labels.type) or pa.types.is_large_string(labels.type)
        y = np.array(labels.to_pylist(), dtype=np.str_) if is_text else labels.to_numpy()
        if not features or not len(y):
            raise damaged(path, f"holds {len(y)} rows and {len(features)} features")
        return np.stack([column.to_numpy().astype(np.float64) for column in features], axis=1), y
    except DataError:
        raise
    except (OSError, ValueError, TypeError, pa.ArrowException) as error:
        raise damaged(path, f"is not a readable parquet file: {error}") from error


def load_table(path: Path, label: str | None, test_fraction: float, seed: int) -> Raw:
    """A table, split here into training and test rows."""
    read = read_parquet if path.suffix.lower() == ".parquet" else read_csv
    x, labels = read(path, label)
    y, classes = encode_labels(labels, path)
    train, test = split(x, y, test_fraction, seed)
    return Raw(path.stem, train, test, classes, "feature")
