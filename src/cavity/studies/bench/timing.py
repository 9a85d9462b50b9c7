"""Time per step, so measured that noise hits all alike: contenders take turns, and the best turn of each counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from cavity.analysis.metrics import EpochRecord
from cavity.baselines.trainer import AnyTrainer
from cavity.studies.bench.contenders import BINARYNET, TUNED, YARDSTICKS, build, corrections_in_use
from cavity.studies.bench.peak import peak_bytes
from cavity.studies.bench.products import BareProducts, needed, operations, wait
from cavity.training.batches import Pair
from cavity.training.callbacks import Callback

#: Steps of each contender before anything is timed: the compiler works in the first, the allocator settles in the next.
WARM_UP = 3


@dataclass(frozen=True)
class Timing:
    """One contender at one batch size. ``product_share`` is the time of the bare products it needs over its own."""

    algorithm: str
    batch_size: int
    seconds_per_step: float
    seconds_per_epoch: float
    ratio: float | None
    #: The same to the BinaryNet tuned by hand.
    ratio_tuned: float | None
    product_share: float
    product_operations: int
    series_orders: list[int]
    #: Whether some of the products are of bfloat16 numbers.
    half_products: bool
    peak_bytes: int | None


class WithinEpoch(Callback):
    """A listener that stops a fit before its epoch is scored: scoring is not what is timed."""

    def on_epoch(self, trainer: Any, record: EpochRecord) -> None:
        raise AssertionError("the fit must be stopped before the epoch ends")


class _Clock(WithinEpoch):
    """The times before and after ``steps`` steps of a fit, which follow one that leads in; then it is stopped."""

    def __init__(self, steps: int, device: torch.device) -> None:
        self.steps, self.device, self.times = steps, device, list[float]()

    def on_step(self, trainer: Any, info: Any) -> None:
        if trainer.batch in (1, self.steps + 1):
            wait(self.device)
            self.times.append(time.perf_counter())
        trainer.stop = trainer.batch > self.steps


def train_seconds(trainer: AnyTrainer, data: Pair, batch_size: int, steps: int) -> float:
    """Seconds per step of ``fit`` on the data, which must hold one batch more than ``steps``: the path of a real run,
    from shuffled indices to new weights."""
    clock = _Clock(steps, data[0].device)
    trainer.fit(data, epochs=trainer.epoch + 1, batch_size=batch_size, callbacks=[clock])
    # The next turn shuffles anew.
    trainer.batch = 0
    started, ended = clock.times
    return (ended - started) / steps


def best_of_turns(
    turns: Mapping[str, Callable[[], float]], repeats: int, tell: Callable[[int], object] = lambda over: None
) -> dict[str, float]:
    """The least that each turn returned, when all were taken one after the other, ``repeats`` times. ``tell`` is told
    how many are over, from 0 on."""
    best = dict.fromkeys(turns, float("inf"))
    tell(0)
    for over, name in enumerate(list(turns) * repeats, start=1):
        best[name] = min(best[name], turns[name]())
        tell(over)
    return best


def ratio(name: str, seconds: Mapping[str, float]) -> float | None:
    """Time over that of the faster BinaryNet, plain or compiled, of the same turns; None if none took part."""
    rivals = [seconds[rival] for rival in YARDSTICKS if rival in seconds]
    return seconds[name] / min(rivals) if rivals else None


def time_contenders(
    names: Sequence[str],
    sizes: Sequence[int],
    data: Pair,
    batch_size: int,
    *,
    steps: int,
    repeats: int,
    seed: int,
    compile: bool,
    tell: Callable[[int], object] = lambda over: None,
) -> list[Timing]:
    """Every contender at one batch size on data (x, y), ``steps`` steps a turn or as many as an epoch holds; ``tell``
    is told how many turns are over."""
    samples, device = len(data[0]), data[0].device
    if samples < 2 * batch_size:
        raise ValueError(f"batch size {batch_size} needs at least {2 * batch_size} samples, the data has {samples}")
    steps = min(steps, samples // batch_size - 1)
    data = data[0][: batch_size * (steps + 1)], data[1][: batch_size * (steps + 1)]
    batch = data[0][:batch_size], data[1][:batch_size]
    fresh = partial(build, sizes=sizes, device=device, seed=seed, compile=compile)

    def stepper(name: str) -> Callable[[], object]:
        return partial(fresh(name).step, *batch)

    trainers = {name: fresh(name) for name in names}
    for trainer in trainers.values():
        for _ in range(WARM_UP):
            trainer.step(*batch)
    products = BareProducts(sizes, batch_size, device)
    turns: dict[str, Callable[[], float]] = {
        name: partial(train_seconds, trainer, data, batch_size, steps) for name, trainer in trainers.items()
    }
    seconds = best_of_turns({**turns, "products": partial(products.turn, steps)}, repeats, tell)
    corrections = {name: corrections_in_use(trainer, batch[0]) for name, trainer in trainers.items()}
    layers = {name: needed(sizes, corrections[name], name not in BINARYNET) for name in names}
    return [
        Timing(
            algorithm=name,
            batch_size=batch_size,
            seconds_per_step=seconds[name],
            seconds_per_epoch=seconds[name] * (samples // batch_size),
            ratio=ratio(name, seconds),
            ratio_tuned=seconds[name] / seconds[TUNED] if TUNED in seconds else None,
            product_share=products.seconds(layers[name]) / seconds[name],
            product_operations=operations(layers[name], batch_size),
            series_orders=[one.order for one in corrections[name]],
            half_products=any(layer.half for layer in layers[name]),
            peak_bytes=peak_bytes(partial(stepper, name), device),
        )
        for name in names
    ]
