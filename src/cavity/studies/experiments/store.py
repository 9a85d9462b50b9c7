"""Where an experiment keeps what it found: ``records/KEY.json`` for each finished cell, ``.work/KEY/`` for an open one.

A record is written in one rename, so that a cell is either finished or not. ``.work`` hides itself from git.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from cavity.studies.experiments.experiment import Cell, Record
from cavity.util.files import only_writer, write_whole
from cavity.util.plain import from_json


@dataclass(frozen=True)
class Store:
    """The folder of one experiment."""

    folder: Path

    @property
    def records_folder(self) -> Path:
        return self.folder / "records"

    def record_path(self, cell: Cell) -> Path:
        return self.records_folder / f"{cell.key}.json"

    def work_folder(self, cell: Cell) -> Path:
        """Made here, empty or with what an interrupted cell left."""
        work = self._hidden() / cell.key
        work.mkdir(exist_ok=True)
        return work

    def _hidden(self) -> Path:
        hidden = self.folder / ".work"
        hidden.mkdir(parents=True, exist_ok=True)
        (hidden / ".gitignore").write_text("*\n", encoding="utf-8")
        return hidden

    def only_writer(self) -> AbstractContextManager[None]:
        """Hold the folder for this process: two of them would write the same checkpoints."""
        return only_writer(self._hidden())

    def is_finished(self, cell: Cell) -> bool:
        return self.record_path(cell).exists()

    def finish(self, record: Record) -> None:
        """Keep the record, and throw away what the cell needed to go on."""
        self._write(record.cell, json.dumps(record.as_dict(), separators=(",", ":")).encode() + b"\n")
        shutil.rmtree(self.work_folder(record.cell))

    def _write(self, cell: Cell, content: bytes) -> None:
        self.records_folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.record_path(cell), content)

    def adopt(self, cell: Cell, siblings: Sequence[Store]) -> bool:
        """Take over the record of the same cell from an experiment that makes its records in the same way."""
        for sibling in siblings:
            if sibling.is_finished(cell):
                self._write(cell, sibling.record_path(cell).read_bytes())
                return True
        return False

    def records(self, scale: str) -> list[Record]:
        """All finished cells of a scale, in the order of their names."""
        found = []
        for path in sorted(self.records_folder.glob("*.json")):
            try:
                found.append(Record.from_dict(from_json(path.read_text(encoding="utf-8"))))
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
                raise ValueError(f"{path}: is not a record of an experiment: {error}") from error
        return [record for record in found if record.cell.scale == scale]
