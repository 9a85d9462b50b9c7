"""Selecting records for tables and plots."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from cavity.studies.experiments.experiment import Record
from cavity.studies.experiments.table import Measured, measured, number

Key = TypeVar("Key", bound=Hashable)


def groups(records: Sequence[Record], key: Callable[[Record], Key]) -> dict[Key, list[Record]]:
    """Records by ``key``, in order of first occurrence."""
    found: dict[Key, list[Record]] = {}
    for record in records:
        found.setdefault(key(record), []).append(record)
    return found


def by(records: Sequence[Record], name: str, order: Iterable[Any] | None = None) -> dict[Any, list[Record]]:
    """Records by a value of their setup or their options: those in ``order`` that there are, or all of them sorted."""
    found = groups(records, lambda record: _values(record)[name])
    return {key: found[key] for key in (sorted(found) if order is None else order) if key in found}


def where(records: Sequence[Record], **wanted: Any) -> list[Record]:
    """The records whose setups or options have these values."""
    return [record for record in records if wanted.items() <= _values(record).items()]


def _values(record: Record) -> dict[str, Any]:
    return {**vars(record.cell.setup), **record.cell.options}


def final(records: Sequence[Record], name: str) -> Measured | None:
    """Mean and standard deviation over seeds of a value after the last epoch."""
    return measured(record.result["final"][name] for record in records)


def finals(records: Sequence[Record], *names: str, digits: int = 3) -> list[str]:
    """Final values for a table: errors with two digits after the point, others with ``digits``."""
    return [number(final(records, name), 2 if "error" in name else digits) for name in names]
