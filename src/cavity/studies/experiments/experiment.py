"""An experiment: a grid of cells, a function that computes the result of a cell, a table and a plot."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from cavity.studies.experiments import EXPERIMENTS
from cavity.studies.experiments.scale import Request, Size
from cavity.studies.experiments.setup import Setup
from cavity.studies.experiments.training import Progress, summary, trained
from cavity.util.text import nearest

DIGEST = 8
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
    table: Callable[[Sequence[Record]], str]
    plot: Callable[[Sequence[Record]], Figure]
    result: Callable[[Cell, Path, Progress], dict[str, Any]] = train_cell
    datasets_beside: bool = False

    def cells(self, request: Request) -> list[Cell]:
        points = self.grid(request.size(self.sizes))
        return [Cell(label, setup, request.scale, options) for label, setup, options in points]


def find(name: str) -> Experiment:
    """The experiment of that name; ValueError names the nearest."""
    if name not in EXPERIMENTS:
        raise ValueError(f"there is no experiment {name!r}{nearest(name, tuple(EXPERIMENTS))} (see --list)")
    module = import_module(f"cavity.studies.experiments.{name.replace('-', '_')}")
    experiment: Experiment = module.EXPERIMENT
    return experiment


def longest(records: Sequence[Record]) -> list[Record]:
    """Of records that differ only in epochs, seed and label, those with the most epochs, so that averages over seeds
    compare runs of equal length."""

    def same(record: Record) -> str:
        setup = record.cell.setup.replace(epochs=0, seed=0).as_dict()
        return json.dumps({**record.cell.as_dict(), "setup": setup, "label": ""}, sort_keys=True)

    most: dict[str, int] = {}
    for record in records:
        most[same(record)] = max(most.get(same(record), 0), record.cell.setup.epochs)
    return [record for record in records if record.cell.setup.epochs == most[same(record)]]
