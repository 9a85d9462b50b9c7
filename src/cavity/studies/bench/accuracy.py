"""Time to accuracy: seconds of training until the test error is first at or below a given one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor

from cavity.analysis.metrics import percent_wrong
from cavity.studies.bench.contenders import build, title_of
from cavity.studies.bench.timing import WithinEpoch

#: Looks at the test error in an epoch.
LOOKS = 10

Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class TimeToAccuracy:
    """``seconds`` and ``steps`` are None if the error was never reached; ``error`` is the last one seen, in percent."""

    algorithm: str
    batch_size: int
    target: float
    seconds: float | None
    steps: int | None
    error: float
    epochs: int


class _Watch(WithinEpoch):
    """Looks at the test error every few steps and ends a fit at the target, or with the epoch. Looking is not training,
    and the trainer's clock does not run then."""

    def __init__(self, target: float, test: Pair, steps_per_epoch: int) -> None:
        self.target, self.test, self.steps_per_epoch = target, test, steps_per_epoch
        self.every = max(1, steps_per_epoch // LOOKS)
        self.error, self.seconds, self.epochs, self.reached = 100.0, 0.0, 0, False
        self._finished_epochs = 0.0

    def on_step(self, trainer: Any, info: Any) -> None:
        if trainer.batch % self.every == 0:
            predicted = trainer.net.predict(self.test[0])
            self.error = percent_wrong(predicted, self.test[1].reshape(predicted.shape))
            self.seconds = self._finished_epochs + trainer.seconds
            self.reached = self.error <= self.target
        ended = trainer.batch == self.steps_per_epoch
        if ended:
            self._finished_epochs += trainer.seconds
            self.epochs += 1
        trainer.stop = self.reached or ended


def time_to_accuracy(
    names: Sequence[str],
    sizes: Sequence[int],
    train: Pair,
    test: Pair,
    *,
    target: float,
    batch_size: int,
    epochs: int,
    seed: int,
    compile: bool,
    tell: Callable[[str], object] = lambda text: None,
) -> list[TimeToAccuracy]:
    """Every contender on the same data and batches, an epoch each in turn, until it is there or ``epochs`` are done;
    ``tell`` is told where each stands."""
    fresh = partial(build, sizes=sizes, device=train[0].device, seed=seed, compile=compile)
    # What is compiled is compiled before the clock starts, on trainers that are thrown away.
    for name in names:
        fresh(name).step(train[0][:batch_size], train[1][:batch_size])
    trainers = {name: fresh(name) for name in names}
    watches = {name: _Watch(target, test, len(train[0]) // batch_size) for name in names}
    for epoch in range(1, epochs + 1):
        for name in names:
            if not watches[name].reached:
                trainers[name].fit(train, epochs=1, batch_size=batch_size, callbacks=[watches[name]])
                trainers[name].batch = 0
                tell(f"{title_of(name)}: {watches[name].error:.2f} % in epoch {epoch}")
    rows = []
    for name, watch in watches.items():
        seconds, steps = (watch.seconds, trainers[name].steps) if watch.reached else (None, None)
        rows.append(TimeToAccuracy(name, batch_size, target, seconds, steps, watch.error, watch.epochs))
    return rows
