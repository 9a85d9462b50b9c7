"""One cell in its own process: ``python -m cavity.studies.experiments.cell NAME FOLDER``, the cell in JSON on stdin.

Each line on stdout is "epochs done, epochs in all"; whatever the experiment prints goes to stderr. When stdin closes,
the process that asked is gone, and so is this one: its checkpoint stays.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from cavity.studies.experiments.experiment import Cell, Experiment, Record, find
from cavity.studies.experiments.store import Store
from cavity.util.processes import lines_from_parent

if TYPE_CHECKING:
    from cavity.studies.experiments.training import Progress


def compute(experiment: Experiment, cell: Cell, store: Store, progress: Progress) -> None:
    """Make the cell's result, on from where it was interrupted, and keep it."""
    import torch

    from cavity.studies.bench.machine import describe

    result = experiment.result(cell, store.work_folder(cell), progress)
    store.finish(Record(cell, result, str(describe(torch.device("cpu")))))


def main() -> None:
    name, folder = sys.argv[1:]
    cell = Cell.from_dict(json.loads(lines_from_parent().get()))
    parent = sys.stdout

    def tell(done: int, total: int) -> None:
        print(done, total, file=parent, flush=True)

    with redirect_stdout(sys.stderr):
        compute(find(name), cell, Store(Path(folder)), tell)


if __name__ == "__main__":
    main()
