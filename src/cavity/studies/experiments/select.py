"""Selecting records for tables and plots."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cavity.studies.experiments.experiment import Cell, Record
from cavity.studies.experiments.table import Measured, measured

if TYPE_CHECKING:
    from cavity.studies.experiments.training import Progress

Key = TypeVar("Key", bound=Hashable)


def groups(records: Sequence[Record], key: Callable[[Record], Key]) -> dict[Key, list[Record]]:
    """Records by ``key``, in order of first occurrence."""
    found: dict[Key, list[Record]] = {}
    for record in records:
        found.setdefault(key(record), []).append(record)
    return found


def by_variant(records: Sequence[Record], names: Iterable[str]) -> dict[str, list[Record]]:
    """Records of each existing variant, in the order of ``names``."""
    found = groups(records, lambda record: str(record.cell.options["variant"]))
    return {name: found[name] for name in names if name in found}


def by_width(records: Sequence[Record]) -> dict[int, list[Record]]:
    """Records by the width of the hidden layers, the smallest first."""
    return dict(sorted(groups(records, lambda record: record.cell.setup.hidden[0]).items()))


def where(records: Sequence[Record], **wanted: Any) -> list[Record]:
    """The records whose setups have these values."""
    return [r for r in records if all(getattr(r.cell.setup, name) == value for name, value in wanted.items())]


def final(records: Sequence[Record], name: str) -> Measured | None:
    """Mean and standard deviation over seeds of a value after the last epoch."""
    return measured(record.result["final"][name] for record in records)


def train_cell(cell: Cell, folder: Path, progress: Progress) -> dict[str, Any]:
    """The result of an experiment that only trains: curves and final values."""
    from cavity.studies.experiments.training import summary, trained

    return summary(*trained(cell.setup, folder, progress))
