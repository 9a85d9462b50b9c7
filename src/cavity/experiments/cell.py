"""One cell in a process of its own: ``python -m cavity.experiments.cell NAME FOLDER``, with the cell in JSON on stdin.

Each line on stdout is "epochs done, epochs in all". When stdin closes, the process that asked is gone, and so is this
one: its checkpoint stays.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from cavity.experiments.experiment import Cell, Experiment, Record, find
from cavity.experiments.store import Store

if TYPE_CHECKING:
    from cavity.experiments.training import Progress

ORPHANED = 130


def compute(experiment: Experiment, cell: Cell, store: Store, progress: Progress) -> None:
    """Make the cell's result, on from where it was interrupted, and keep it."""
    import torch

    from cavity.bench.machine import describe

    result = experiment.result(cell, store.work_folder(cell), progress)
    store.finish(Record(cell, result, str(describe(torch.device("cpu")))))


def _tell(done: int, total: int) -> None:
    print(done, total, flush=True)


def _end_with_parent() -> None:
    """Wait until stdin closes."""
    # Not sys.stdin: a thread that holds its lock would block the interpreter's own end.
    while os.read(0, 1024):
        pass
    os._exit(ORPHANED)


def main() -> None:
    name, folder = sys.argv[1:]
    cell = Cell.from_dict(json.loads(_first_line()))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    compute(find(name), cell, Store(Path(folder)), _tell)


def _first_line() -> str:
    """Read byte by byte, so that nothing is left in a buffer."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            raise ValueError("stdin closed before it held a cell")
        line += byte
    return line.decode()


if __name__ == "__main__":
    main()
