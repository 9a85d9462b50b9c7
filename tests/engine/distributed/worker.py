"""One of several processes: trains every case together with the others and saves what it ends with, and what it is told
where the processes do not agree."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

import cavity
from engine.distributed.cases import CASES, batches, dense, trained


def refusal(seed: int) -> str:
    """The error of a fit that begins with networks of different seeds."""
    x, y = batches(36)[0]
    try:
        cavity.Trainer(dense("binary", seed=seed), "mf", distributed=True).fit((x, y), epochs=1)
    except ValueError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, iterations = Path(sys.argv[1]), int(sys.argv[2])
    results = {name: trained(name, iterations, distributed=True) for name in CASES}
    rank = int(os.environ["RANK"])
    torch.save({**results, "refusal": refusal(seed=rank)}, folder / f"{rank}.pt")
