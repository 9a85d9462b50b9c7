"""One cell in a process of its own: ``python -m cavity.studies.experiments.cell NAME FOLDER``, for ``running.py``.

The cell comes as a message from the parent; [epochs done, epochs in all] goes back after each epoch. When the parent is
gone, this process ends, and its checkpoint stays.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from cavity.studies.bench.table import describe
from cavity.studies.experiments import Progress
from cavity.studies.experiments.experiment import Cell, Experiment, Record, Store, find
from cavity.util.processes import Parent


def compute(experiment: Experiment, cell: Cell, store: Store, progress: Progress) -> None:
    """Make the cell's result, on from where it was interrupted, and keep it."""
    result = experiment.result(cell, store.work_folder(cell), progress)
    store.finish(Record(cell, result, str(describe(torch.device("cpu")))))


def main() -> None:
    name, folder = sys.argv[1:]
    parent = Parent()
    cell = Cell.from_dict(parent.receive())
    compute(find(name), cell, Store(Path(folder)), lambda done, total: parent.send([done, total]))


if __name__ == "__main__":
    main()
