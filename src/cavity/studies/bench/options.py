"""What a benchmark is asked to measure: one field for each option of ``cavity bench``, with its help text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


def option(default: Any, text: str, metavar: str | None = None) -> Any:
    return field(default=default, metadata={"help": text, "metavar": metavar})


@dataclass(frozen=True)
class Options:
    """The options of ``cavity bench``, by the same names; what each means is in its help text."""

    batch_size: Sequence[int] = option((1, 16, 128, 1024), "batch sizes (default: 1,16,128,1024)", "N,N")
    hidden: Sequence[int] = option((501, 501), "widths of the hidden layers (default: 501,501)", "N,N")
    algorithms: Sequence[str] | None = option(
        None, "algorithms, binarynet, binarynet-compiled, binarynet-tuned (default: all these), bp-exact", "A,A"
    )
    dataset: str | None = option(None, "a data set by name or path, or random (default: as above)", "NAME")
    data_dir: str | None = option(None, "folder searched first for data (default: $CAVITY_DATA, else a cache)", "DIR")
    two_class: bool = option(False, "odd against even classes, one output unit")
    device: str = option("cpu", "cpu, cuda, …")
    threads: int | None = option(None, "threads of torch (default: torch's choice)", "N")
    repeats: int = option(8, "turns of each algorithm (default: 8)", "N")
    steps: int | None = option(None, "steps in a turn (default: 512, so that each checks the series once)", "N")
    eager: bool = option(False, "compile nothing")
    seed: int = option(0, "seed of networks and batches (default: 0)", "N")
    whole_run: bool = option(False, "also time a whole run of each, metrics and all")
    epochs: int = option(30, "epochs of a whole run (default: 30)", "N")
    time_to_accuracy: float | None = option(
        None, "of whole runs, also the time to this test error, in %% (default: not measured)", "ERROR"
    )
