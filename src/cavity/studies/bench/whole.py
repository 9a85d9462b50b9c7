"""Whole runs: what a default run takes from its first step to its last, metrics and all, and when it first reaches an
error. Contenders take turns, an epoch each, so that noise hits all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from cavity.analysis.metrics import EpochRecord
from cavity.runs.measuring import interval
from cavity.studies.bench.contenders import build, title_of
from cavity.studies.bench.timing import ratio
from cavity.training.batches import Pair
from cavity.training.callbacks import Callback

#: The algorithm whose interval of measuring all contenders share.
USUAL = "mf"


@dataclass(frozen=True)
class WholeRun:
    """One contender. ``seconds`` are all of its run, ``ratio`` is to BinaryNet's. Errors are the last, in percent; the
    times to ``target`` are of training alone, None if it was never reached."""

    algorithm: str
    batch_size: int
    epochs: int
    seconds: float
    ratio: float | None
    error: float
    error_bayes: float | None
    target: float | None
    seconds_to_target: float | None
    seconds_to_target_bayes: float | None


class _Watch(Callback):
    """Counts the time of one epoch after the other, and ends each call of ``fit`` with its epoch."""

    def __init__(self, target: float | None) -> None:
        self.target = target
        self.seconds, self.trained, self._started = 0.0, 0.0, 0.0
        self.reached: dict[str, float] = {}

    def on_epoch_begin(self, trainer: Any) -> None:
        self._started = time.perf_counter()

    def on_epoch(self, trainer: Any, record: EpochRecord) -> None:
        self.seconds += time.perf_counter() - self._started
        self.trained += record.seconds
        for name in ("test_error", "test_error_bayes"):
            error = getattr(record, name)
            if self.target is not None and error is not None and error <= self.target:
                self.reached.setdefault(name, self.trained)
        trainer.stop = True


def whole_runs(
    names: Sequence[str],
    sizes: Sequence[int],
    train: Pair,
    test: Pair,
    *,
    target: float | None,
    batch_size: int,
    epochs: int,
    seed: int,
    compile: bool,
    tell: Callable[[str], object] = lambda text: None,
) -> list[WholeRun]:
    """Every contender on the same data and batches; ``tell`` is told where each stands. Errors are measured as often as
    ``cavity train`` does, or after every epoch where there is a target."""
    fresh = partial(build, sizes=sizes, device=train[0].device, seed=seed, compile=compile)
    # What is compiled is compiled before the clock starts, on trainers that are thrown away.
    for name in names:
        fresh(name).step(train[0][:batch_size], train[1][:batch_size])
    weights = sum(lower * upper for lower, upper in pairwise(sizes))
    every = 1 if target is not None else interval(USUAL, len(train[0]), len(test[0]), weights)
    trainers = {name: fresh(name) for name in names}
    watches = {name: _Watch(target) for name in names}
    for epoch in range(1, epochs + 1):
        for name, trainer in trainers.items():
            options: dict[str, Any] = {"batch_size": batch_size, "evaluate_every": every, "callbacks": [watches[name]]}
            trainer.fit(train, epochs=epochs, validation=test, **options)
            tell(f"{title_of(name)}: epoch {epoch} of {epochs}, {watches[name].seconds:.0f} s so far")
    seconds = {name: watch.seconds for name, watch in watches.items()}
    rows = []
    for name, watch in watches.items():
        last = trainers[name].history[-1]
        assert last.test_error is not None
        rows.append(
            WholeRun(
                algorithm=name,
                batch_size=batch_size,
                epochs=epochs,
                seconds=watch.seconds,
                ratio=ratio(name, seconds),
                error=last.test_error,
                error_bayes=last.test_error_bayes,
                target=target,
                seconds_to_target=watch.reached.get("test_error"),
                seconds_to_target_bayes=watch.reached.get("test_error_bayes"),
            )
        )
    return rows
