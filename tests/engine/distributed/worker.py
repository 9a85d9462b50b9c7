"""One of several processes: trains every case together with the others and saves what it ends with, and what it is told
where the processes do not agree."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch

import cavity
from engine.distributed.cases import CASES, batches, dense, trained

#: What the second process has otherwise, and the words that say so.
OTHERWISE: dict[str, dict[str, Any]] = {
    "a network other than process 0's": {"seed": 1},
    "training inputs other than process 0's": {"shift": 1.0},
    "training labels other than process 0's": {"roll": 1},
    "rho (1.5, 1.5, 1.5) where process 0 has (1.0, 1.0, 1.0)": {"rho": 1.5},
    "damping (0.0, 0.0, 0.0) where process 0 has (0.8, 0.8, 0.8)": {"damping": 0.0},
    "algorithm ('bp', {}) where process 0 has ('mf', {})": {"algorithm": "bp"},
    "batch_size 3 where process 0 has 4": {"batch_size": 3},
    "epochs 2 where process 0 has 1": {"epochs": 2},
}


def refusal(
    seed: int = 0,
    algorithm: str = "mf",
    rho: float = 1.0,
    damping: float = 0.8,
    batch_size: int = 4,
    epochs: int = 1,
    shift: float = 0.0,
    roll: int = 0,
) -> str:
    """The error of a fit with these settings."""
    x, y = batches(36)[0]
    trainer = cavity.Trainer(dense("binary", seed=seed), algorithm, rho=rho, damping=damping, distributed=True)
    try:
        trainer.fit((x + shift, y.roll(roll)), epochs=epochs, batch_size=batch_size)
    except ValueError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, iterations = Path(sys.argv[1]), int(sys.argv[2])
    results = {name: trained(name, iterations, distributed=True) for name in CASES}
    rank = int(os.environ["RANK"])
    refusals = {words: refusal(**(other if rank == 1 else {})) for words, other in OTHERWISE.items()}
    torch.save({**results, "refusals": refusals}, folder / f"{rank}.pt")
