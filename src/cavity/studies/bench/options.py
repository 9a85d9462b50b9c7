"""What a benchmark is asked to measure. Importing this is cheap: the command line reads its defaults here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """The options of ``cavity bench``, by the same names.

    Args:
        batch_size: Batch sizes, measured one after the other.
        hidden: Widths of the hidden layers.
        algorithms: Names of contenders; None for the usual ones.
        dataset: A data set by name or path, or "random"; None for Fashion-MNIST if it is on this machine.
        data_dir: Folder searched first for data.
        two_class: Odd against even classes, one output unit.
        device: Where to compute.
        threads: Threads of torch; None leaves them as they are.
        repeats: Turns of each contender.
        steps: Steps in a turn; None for the interval at which the series is checked.
        eager: Compile nothing.
        seed: Seed of networks and batches.
        time_to_accuracy: Also train each contender to this test error, in percent.
        epochs: Epochs after which that is given up.
    """

    batch_size: Sequence[int] = (1, 16, 128, 1024)
    hidden: Sequence[int] = (501, 501)
    algorithms: Sequence[str] | None = None
    dataset: str | None = None
    data_dir: str | None = None
    two_class: bool = False
    device: str = "cpu"
    threads: int | None = None
    repeats: int = 8
    steps: int | None = None
    eager: bool = False
    seed: int = 0
    time_to_accuracy: float | None = None
    epochs: int = 20
