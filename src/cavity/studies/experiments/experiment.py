"""An experiment: a grid of cells, a function that computes the result of a cell, a table and a plot; and its folder."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from cavity.studies.experiments import EXPERIMENTS, Progress, Request, Size
from cavity.studies.experiments.setup import Setup, summary, trained
from cavity.util.files import only_writer, write_whole
from cavity.util.plain import from_json
from cavity.util.regular import own_folder, read_regular
from cavity.util.text import nearest, shown

DIGEST = 8
#: Where experiments are that share a module; the others are the EXPERIMENT of the module of their name.
MODULES = {"bayesian-binary": "bayesian.BINARY", "bayesian-continuous": "bayesian.CONTINUOUS"}
#: Label, setup and options of each cell, the most important first.
Grid = Iterable[tuple[str, Setup, dict[str, Any]]]


@dataclass(frozen=True)
class Cell:
    """One point of a grid. ``label`` is for display; ``options`` holds what is not part of a setup."""

    label: str
    setup: Setup
    scale: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name of its record: label, seed and a digest of everything."""
        text = json.dumps(self.as_dict(), sort_keys=True)
        return f"{self.label}-{self.setup.seed}-{hashlib.sha256(text.encode()).hexdigest()[:DIGEST]}"

    def as_dict(self) -> dict[str, Any]:
        return {"label": self.label, "scale": self.scale, "setup": self.setup.as_dict(), "options": self.options}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Cell:
        return cls(values["label"], Setup.from_dict(values["setup"]), values["scale"], values["options"])


@dataclass(frozen=True)
class Record:
    """A finished cell: ``result`` is what the experiment's function returned, ``machine`` where it ran."""

    cell: Cell
    result: dict[str, Any]
    machine: str

    def as_dict(self) -> dict[str, Any]:
        return {**self.cell.as_dict(), "machine": self.machine, "result": self.result}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Record:
        return cls(Cell.from_dict(values), values["result"], values["machine"])


#: Records that a table or a figure is made of.
Records = Sequence[Record]


def train_cell(cell: Cell, folder: Path, progress: Progress) -> dict[str, Any]:
    """The result of an experiment that only trains: curves and final values."""
    return summary(*trained(cell.setup, folder, progress))


@dataclass(frozen=True)
class Experiment:
    """``sizes`` are by scale; ``table`` gives Markdown, ``plot`` a figure. Both are made for each data set separately,
    unless ``datasets_beside`` is set."""

    name: str
    sizes: Mapping[str, Size]
    grid: Callable[[Size], Grid]
    table: Callable[[Records], str]
    plot: Callable[[Records], Figure]
    result: Callable[[Cell, Path, Progress], dict[str, Any]] = train_cell
    datasets_beside: bool = False

    def cells(self, request: Request) -> list[Cell]:
        points = self.grid(request.size(self.sizes))
        cells = [Cell(label, setup, request.scale, options) for label, setup, options in points]
        if request.methods is None:
            return cells
        there = {cell.setup.method for cell in cells}
        for method in request.methods:
            if method not in there:
                raise ValueError(f"{self.name} has no method {method!r}{nearest(method, tuple(there))}")
        return [cell for cell in cells if cell.setup.method in request.methods]


def find(name: str) -> Experiment:
    """The experiment of that name; ValueError names the nearest."""
    if name not in EXPERIMENTS:
        raise ValueError(f"there is no experiment {name!r}{nearest(name, tuple(EXPERIMENTS))} (see --list)")
    module, _, variable = MODULES.get(name, f"{name.replace('-', '_')}.EXPERIMENT").partition(".")
    experiment: Experiment = getattr(import_module(f"cavity.studies.experiments.{module}"), variable)
    return experiment


@dataclass(frozen=True)
class Store:
    """The folder of one experiment: ``records/KEY.json`` for each finished cell, ``.work/KEY/`` for an open one.

    A record is written in one rename, so that a cell is either finished or not. ``.work`` hides itself from git.
    """

    folder: Path

    @property
    def records_folder(self) -> Path:
        return self.folder / "records"

    def record_path(self, cell: Cell) -> Path:
        return self.records_folder / f"{cell.key}.json"

    def work_folder(self, cell: Cell) -> Path:
        """Made here, empty or with what an interrupted cell left."""
        return own_folder(self._hidden() / cell.key)

    def _hidden(self) -> Path:
        hidden = own_folder(own_folder(self.folder) / ".work")
        if not os.path.lexists(hidden / ".gitignore"):
            write_whole(hidden / ".gitignore", b"*\n")
        return hidden

    def only_writer(self) -> AbstractContextManager[None]:
        """Hold the folder for this process: two of them would write the same checkpoints."""
        return only_writer(self._hidden())

    def is_finished(self, cell: Cell) -> bool:
        return self.record_path(cell).exists()

    def finish(self, record: Record) -> None:
        """Keep the record, and throw away what the cell needed to go on."""
        self._write(record.cell, json.dumps(record.as_dict(), separators=(",", ":")).encode() + b"\n")
        self.clear(record.cell)

    def clear(self, cell: Cell) -> None:
        """Throw away what a finished cell needed to go on. Another process may be writing down what the cell has said:
        it clears once more."""
        shutil.rmtree(self.work_folder(cell), ignore_errors=True)

    def _write(self, cell: Cell, content: bytes) -> None:
        own_folder(own_folder(self.folder) / self.records_folder.name)
        write_whole(self.record_path(cell), content)

    def adopt(self, cell: Cell, siblings: Sequence[Store]) -> bool:
        """Take over the record of the same cell from an experiment that makes its records in the same way."""
        there = [sibling.record_path(cell) for sibling in siblings if sibling.is_finished(cell)]
        if there:
            self._write(cell, read_regular(there[0]))
        return bool(there)

    def records(self, scale: str) -> list[Record]:
        """All finished cells of a scale, in the order of their names."""
        found = []
        for path in sorted(self.records_folder.glob("*.json")):
            try:
                found.append(Record.from_dict(from_json(read_regular(path).decode())))
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
                raise ValueError(f"{path}: is not a record of an experiment: {shown(error)}") from error
        return [record for record in found if record.cell.scale == scale]


def longest(records: Records) -> list[Record]:
    """Of records that differ only in epochs, seed and label, those with the most epochs, so that averages over seeds
    compare runs of equal length."""

    def same(record: Record) -> str:
        setup = record.cell.setup.replace(epochs=0, seed=0).as_dict()
        return json.dumps({**record.cell.as_dict(), "setup": setup, "label": ""}, sort_keys=True)

    most: dict[str, int] = {}
    for record in records:
        most[same(record)] = max(most.get(same(record), 0), record.cell.setup.epochs)
    return [record for record in records if record.cell.setup.epochs == most[same(record)]]
