"""Epochs of mini-batches: position, order, time and records of a training run, whatever learns in it.

``cavity.Trainer`` and the baselines share this, so that all see the same batches from the same seed, stop and resume
alike, and leave the same records.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from cavity.analysis.metrics import EpochRecord, is_number
from cavity.core.channels.base import Output
from cavity.training.batches import Batches
from cavity.training.callbacks import Callback

Pair = tuple[Tensor, Tensor]
#: What a step returns, and callbacks are told.
Info = TypeVar("Info")
Source = Batches | Iterable[Pair]

#: Seeds of an epoch's order are drawn below this.
SEED_RANGE = 2**62


class Learner(Protocol):
    """What the loop asks of the thing that is trained."""

    @property
    def output(self) -> Output: ...

    @property
    def outputs(self) -> int: ...

    @property
    def device(self) -> torch.device: ...

    def check_inputs(self, x: Tensor) -> Tensor: ...


class Loop(ABC, Generic[Info]):
    """Where a run is, and how it goes on. ``seed`` is that of all its randomness."""

    net: Learner

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        #: Mini-batches done in all, epochs finished, and mini-batches done of the unfinished epoch.
        self.steps, self.epoch, self.batch = 0, 0, 0
        #: What shuffles the current epoch, and how long its steps have taken so far.
        self.order_seed, self.seconds = 0, 0.0
        #: Whether errors are measured at the end of the current epoch.
        self.measures = True
        #: Set by a callback to end ``fit`` after the current step or epoch.
        self.stop = False
        self.history: list[EpochRecord] = []

    @abstractmethod
    def learn(self, x: Tensor, y: Tensor) -> Info:
        """Learn from one checked mini-batch."""

    def step(self, x: Tensor, y: Tensor) -> Info:
        """Learn from one mini-batch and return its diagnostics.

        x is (samples, *input_shape) floating point; y is ±1 (label), 0…C−1 (argmax) or real (Gaussian output). Where
        several processes train, all are given the whole mini-batch."""
        x, y = self._mine(*self._checked(x, y))
        before = self._snapshot()
        try:
            info = self.learn(x, y)
            self.steps += 1
        except BaseException:
            self._go_back(before)
            raise
        return info

    def _snapshot(self) -> tuple[Any, ...]:
        """All that a step or the end of an epoch may change: a step is done wholly or not at all, whatever interrupts
        it and wherever. Values, and references to what is replaced rather than changed."""
        position = self.steps, self.epoch, self.batch, self.order_seed, self.seconds
        return self.generator.get_state(), position, len(self.history)

    def _go_back(self, before: tuple[Any, ...]) -> None:
        """Undo what has happened since a snapshot."""
        state, (self.steps, self.epoch, self.batch, self.order_seed, self.seconds), records = before
        self.generator.set_state(state)
        del self.history[records:]

    @abstractmethod
    def record(self, train: Pair | None, test: Pair | None) -> EpochRecord:
        """The record of the epoch that has just ended, with errors on what is given."""

    def _checked(self, x: Tensor, y: Tensor) -> Pair:
        """Inputs and labels as the network takes them, on its device."""
        x, y = self.net.check_inputs(x), torch.as_tensor(y)
        self.net.output.check(y, len(x), self.net.outputs)
        if y.device.type == "cpu":
            self.net.output.check_values(y, self.net.outputs)
        # Labels may be bytes on disk; as indices torch wants them in 64 bits.
        return x, y.to(self.net.device, None if y.is_floating_point() else torch.int64)

    def _mine(self, x: Tensor, y: Tensor) -> Pair:
        """What of a checked mini-batch ``learn`` is given: all of it, unless processes share it."""
        return x, y

    def _fit(
        self,
        source: Source,
        epochs: int,
        evaluate_every: int,
        sample: Pair | None,
        validation: Pair | None,
        callbacks: Sequence[Callback],
    ) -> list[EpochRecord]:
        """Go on until ``epochs`` epochs are done in all; errors are measured on ``sample`` and ``validation`` after
        every ``evaluate_every``-th and the last."""
        self.stop = False
        for callback in callbacks:
            callback.on_fit_begin(self)
        while self.epoch < epochs and not self.stop:
            self.measures = (self.epoch + 1) % evaluate_every == 0 or self.epoch + 1 == epochs
            for callback in callbacks:
                callback.on_epoch_begin(self)
            for info in self._rest_of_epoch(source):
                for callback in callbacks:
                    callback.on_step(self, info)
                if self.stop:
                    break
            else:
                self._end_epoch(*((sample, validation) if self.measures else (None, None)))
                for callback in callbacks:
                    callback.on_epoch(self, self.history[-1])
        for callback in callbacks:
            callback.on_fit_end(self)
        return self.history

    def _rest_of_epoch(self, source: Source) -> Iterator[Info]:
        """One step after the other, from where the epoch was left; ``Batches`` have been checked as a whole. What
        shuffles an epoch is drawn with its first step, or not at all."""
        before: tuple[Any, ...] | None = self._snapshot()
        try:
            if self.batch == 0:
                self.order_seed = int(torch.randint(SEED_RANGE, (), generator=self.generator))
                self.seconds = 0.0
            batches = self._batches(source)
            started = time.perf_counter()
            for x, y in batches:
                info = self.learn(x, y)
                self.steps, self.batch = self.steps + 1, self.batch + 1
                self.seconds += time.perf_counter() - started
                before = None
                yield info
                before = self._snapshot()
                started = time.perf_counter()
            if self.batch == 0:
                raise ValueError("train gave no mini-batch")
        except BaseException:
            if before is not None:
                self._go_back(before)
            raise

    def _batches(self, source: Source) -> Iterable[Pair]:
        """The mini-batches of the epoch that are left."""
        if isinstance(source, Batches):
            if self.batch > len(source):
                raise ValueError(f"{self.batch} mini-batches of the epoch are done, but it has {len(source)}")
            return source.epoch(self.order_seed, self.batch)
        return (self._mine(*self._checked(x, y)) for x, y in islice(source, self.batch, None))

    def _end_epoch(self, sample: Pair | None, validation: Pair | None) -> None:
        """Count the epoch and append its record."""
        before = self._snapshot()
        try:
            self.epoch, self.batch = self.epoch + 1, 0
            self.history.append(self.record(sample, validation))
        except BaseException:
            self._go_back(before)
            raise

    def state_dict(self) -> dict[str, Any]:
        """Everything but the network's own state that a resumed run needs to continue exactly."""
        return {
            "generator": self.generator.get_state(),
            "steps": self.steps,
            "epoch": self.epoch,
            "batch": self.batch,
            "order_seed": self.order_seed,
            "seconds": self.seconds,
            "history": [record.as_dict() for record in self.history],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where ``state_dict`` was taken; ValueError or TypeError for what it cannot have given."""
        for name in ("steps", "epoch", "batch", "order_seed"):
            require_count(name, state[name], SEED_RANGE)
        if not (is_number(state["seconds"]) and 0 <= state["seconds"] < math.inf):
            raise ValueError(f"seconds is {str(state['seconds'])[:40]!r}, expected a finite number >= 0")
        history = [EpochRecord.from_values(record) for record in state["history"]]
        if len(history) != state["epoch"]:
            raise ValueError(f"{state['epoch']} epochs are done, but there are records of {len(history)}")
        self.generator.set_state(state["generator"])
        self.steps, self.epoch, self.batch = state["steps"], state["epoch"], state["batch"]
        self.order_seed, self.seconds, self.history = state["order_seed"], state["seconds"], history


def require_count(name: str, value: object, end: int = SEED_RANGE) -> None:
    """ValueError unless it is a whole number from 0 to below ``end``."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < end:
        raise ValueError(f"{name} is {str(value)[:40]!r}, expected a whole number from 0")
