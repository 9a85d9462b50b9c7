"""Parquet by the optional pyarrow, which unpacks whatever a page declares: the pages are looked at first.

Columns of any other type than numbers are refused before they are read, and texts are read as a dictionary: a few bytes
can stand for a long text in millions of rows.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cavity.data.encoding import Table
from cavity.data.errors import damaged, reading
from cavity.data.labels import Words, encode_labels
from cavity.data.packing import check_expansion
from cavity.data.treatment import Treatment
from cavity.util.regular import open_regular, require_regular

if TYPE_CHECKING:
    from cavity.data.tables import Columns, FindLabel, LabelKind

#: Rows that are unpacked at once.
ROWS = 1 << 16
#: Fields of a page's header, in Thrift's compact protocol.
UNPACKED, PACKED = 2, 3
#: Structures within structures: a header has two.
MAX_DEPTH = 8


def scan_parquet(path: Path, find: FindLabel, labels: LabelKind, treatment: Treatment) -> Columns:
    """A parquet file; labels that are numbers are classes in the order of numbers."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(f"{path}: reading parquet needs pyarrow: pip install 'cavity[parquet]'") from error
    from cavity.data.tables import kept_columns, require_few_texts

    with reading(path, "parquet file", OSError, ValueError, TypeError, LookupError, pa.ArrowException):
        require_regular(path)
        with pq.ParquetFile(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
        names, types, rows = list(schema.names), list(schema.types), metadata.num_rows
        target = find(names)
        features = list(kept_columns(path, names, target, treatment))
        texts = [names[number] for number in features if _is_text(path, names[number], types[number], treatment)]
        require_few_texts(path, len(texts))
        if len(set(names)) != len(names) or metadata.num_columns != len(names):
            raise damaged(path, "has columns of the same name, or columns within columns")
        if not features or not rows:
            raise damaged(path, f"holds {rows} rows and {len(features)} features")
        label = target if labels is not None else None
        kept = features if label is None else [*features, label]
        for unpacked in (8 * rows * len(names), _unpacked(path, metadata, kept)):
            check_expansion(path, path.stat().st_size, unpacked)
        read = [*texts, *([names[label]] if label is not None and _holds_text(types[label]) else [])]
        with pq.ParquetFile(path, metadata=metadata, read_dictionary=read) as file:
            wanted = None if label is None else names[label]
            return _read(path, file, [names[number] for number in features], texts, wanted, labels)


def _is_text(path: Path, name: str, kind: Any, treatment: Treatment) -> bool:
    """Whether a feature column is texts; an error for what is neither that nor numbers."""
    import pyarrow as pa

    from cavity.data.tables import no_dates

    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_temporal(value):
        raise damaged(path, f"column {name!r} ({kind}) holds dates or times. {no_dates(name)}")
    if pa.types.is_string(value) or pa.types.is_large_string(value) or name in treatment.texts:
        return True
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        reason = "has other things in it than numbers and texts: leave it out with --drop"
        raise damaged(path, f"column {name!r} ({kind}) {reason} {name}")
    return False


def _read(
    path: Path, file: Any, features: list[str], texts: list[str], label: str | None, labels: LabelKind
) -> Columns:
    """A few rows at a time."""
    from cavity.data.tables import Columns, require_kinds

    x = np.empty((file.metadata.num_rows, len(features)))
    words, numbers, start = Words(path), list[NDArray[np.generic]](), 0
    kinds: dict[str, dict[str, int]] = {name: {} for name in texts}
    for batch in file.iter_batches(ROWS, columns=features if label is None else [*features, label]):
        rows = slice(start, start + batch.num_rows)
        for number, name in enumerate(features):
            column = batch.column(name)
            x[rows, number] = _codes(column, kinds[name]) if name in kinds else _numbers(column)
        if label is not None:
            _add_labels(path, batch.column(label), words, numbers)
        start = rows.stop
    if start != len(x):
        raise damaged(path, f"holds {start} rows, {len(x)} are declared")
    for name, known in kinds.items():
        require_kinds(path, name, list(known), 1)
    # There are no lines: rows are counted from 1.
    lines = np.arange(1, len(x) + 1)
    table = Table(path, features, x, {features.index(name): list(known) for name, known in kinds.items()}, lines)
    infinite = np.argwhere(np.isinf(x))
    if len(infinite):
        row, place = infinite[0]
        raise damaged(path, f"column {features[place]!r}, row {row + 1}: is not a finite number; leave it empty")
    if labels == "numbers":
        if len(words):
            raise damaged(path, f"the label column {label!r} holds texts: --task regression needs numbers")
        return Columns(table, None, np.concatenate(numbers).astype(np.float64))
    if labels is None:
        return Columns(table)
    return Columns(table, words.encoded() if len(words) else encode_labels(path, *numbers))


def _numbers(column: Any) -> NDArray[np.float64]:
    """A column of numbers, NaN where it has none."""
    import pyarrow as pa

    filled = column.cast(pa.float64(), safe=False)
    values: NDArray[np.float64] = filled.to_numpy(zero_copy_only=False)
    return values


def _codes(column: Any, known: dict[str, int]) -> NDArray[np.float64]:
    """A column of texts as their numbers among those that are known, NaN where there is none."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    codes = [known.setdefault(str(word), len(known)) for word in column.dictionary.to_pylist()]
    indices = column.indices.to_numpy(zero_copy_only=False).astype(np.float64)
    present = ~np.isnan(indices)
    result = np.full(len(indices), np.nan)
    result[present] = np.array(codes, np.float64)[indices[present].astype(np.int64)]
    return result


def _add_labels(path: Path, column: Any, words: Words, numbers: list[NDArray[np.generic]]) -> None:
    """Texts as a dictionary and its indices, numbers as they are."""
    import pyarrow as pa

    if column.null_count:
        raise damaged(path, f"{column.null_count} labels are missing")
    if _holds_text(column.type):
        column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        words.extend(column.dictionary.to_pylist(), column.indices.to_numpy())
        return
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    numbers.append(column.to_numpy(zero_copy_only=False))


def _holds_text(kind: Any) -> bool:
    """Whether a column has texts, or a dictionary of them, rather than numbers."""
    import pyarrow as pa

    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_string(value) or pa.types.is_large_string(value):
        return True
    if not (pa.types.is_integer(value) or pa.types.is_floating(value) or pa.types.is_boolean(value)):
        raise TypeError(f"labels of type {kind}")
    return False


def _unpacked(path: Path, metadata: Any, columns: list[int]) -> int:
    """Bytes that the pages of some columns unpack to, as each page itself declares it."""
    total = packed = 0
    with open_regular(path) as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for group in range(metadata.num_row_groups):
            about = metadata.row_group(group)
            for number in columns:
                chunk = about.column(number)
                starts = (chunk.data_page_offset, chunk.dictionary_page_offset)
                start = min(offset for offset in starts if offset)
                packed += chunk.total_compressed_size
                if packed > len(content):
                    raise ValueError("the columns are longer than the file")
                total += sum(_page_sizes(content, start, start + chunk.total_compressed_size))
    return total


def _page_sizes(content: mmap.mmap, position: int, end: int) -> Iterator[int]:
    """The unpacked size of each page between two positions of a file."""
    while position < end:
        header = _Thrift(content, position)
        fields = header.structure()
        packed, unpacked = fields.get(PACKED, -1), fields.get(UNPACKED, -1)
        if packed < 0 or unpacked < 0:
            raise ValueError(f"a page at byte {position} has no size")
        yield unpacked
        position = header.position + packed


class _Thrift:
    """Reads whole numbers from structures of Thrift's compact protocol, and passes over everything else."""

    def __init__(self, content: mmap.mmap, position: int) -> None:
        self.content, self.position = content, position

    def byte(self) -> int:
        self.position += 1
        return self.content[self.position - 1]

    def whole(self) -> int:
        """Seven bits a byte, the lowest first; even numbers are positive, odd ones negative."""
        value, shift, more = 0, 0, True
        while more:
            byte = self.byte()
            value, shift, more = value | (byte & 127) << shift, shift + 7, byte > 127
            if shift > 70:
                raise ValueError("a number of more than 64 bits")
        return value

    def structure(self, depth: int = 0) -> dict[int, int]:
        """The whole numbers among its fields, by the field's number."""
        if depth > MAX_DEPTH:
            raise ValueError("structures are nested too deeply")
        found, number = dict[int, int](), 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else _signed(self.whole())
            value = self.value(head & 15, depth)
            if value is not None:
                found[number] = value
        return found

    def value(self, kind: int, depth: int, listed: bool = False) -> int | None:
        """A whole number, or None for what is passed over."""
        if kind in (1, 2):  # true and false: in a field the kind says it all
            self.position += listed
        elif kind == 3:
            self.position += 1
        elif kind in (4, 5, 6):
            return _signed(self.whole())
        elif kind == 7:
            self.position += 8
        elif kind == 8:
            length = self.whole()
            self.position += length
        elif kind in (9, 10):
            head = self.byte()
            for _ in range(self.whole() if head >> 4 == 15 else head >> 4):
                self.value(head & 15, depth, listed=True)
        elif kind == 12:
            self.structure(depth + 1)
        else:
            raise ValueError(f"a header has a value of kind {kind}")
        return None


def _signed(value: int) -> int:
    return value >> 1 ^ -(value & 1)
