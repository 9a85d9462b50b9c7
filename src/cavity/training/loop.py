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

from cavity.analysis.metrics import EpochRecord, is_number, train_sample
from cavity.core.channels.base import Output
from cavity.core.couplings.base import check_sizes
from cavity.engine.distributed import Team
from cavity.training.augmentation import Augmentation
from cavity.training.batches import Batches, Pair, Recent
from cavity.training.callbacks import Callback

#: What a step returns, and callbacks are told.
Info = TypeVar("Info")
Source = Batches | Recent

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
    #: The processes that train together, None where this is the only one.
    team: Team | None = None

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
        #: Mini-batches of the whole run and of an epoch, while ``fit`` goes on and knows them.
        self.run_steps: int | None = None
        self.epoch_steps: int | None = None

    @property
    def fraction(self) -> float:
        """How much of the training that ``fit`` was asked for is done; 0 where that is not known."""
        if self.run_steps is None or self.epoch_steps is None:
            return 0.0
        return min(1.0, (self.epoch * self.epoch_steps + self.batch) / self.run_steps)

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
        return (x, y) if self.team is None else (x[self.team.part(len(x))], y)

    def fit(
        self,
        train: Pair | Iterable[Pair],
        *,
        epochs: int,
        validation: Pair | None = None,
        batch_size: int | None = 128,
        evaluate_every: int = 1,
        callbacks: Sequence[Callback] = (),
        augment: Augmentation | None = None,
    ) -> list[EpochRecord]:
        """Train until ``epochs`` epochs are done in all, and return the history.

        ``train`` is a pair (x, y) of tensors, moved to the network's device once, or an iterable of mini-batches such
        as a DataLoader; ``batch_size=None`` is full-batch mode, else an incomplete last mini-batch is left out. Calling
        again continues, in mid-epoch if need be: an iterable is gone through anew up to there. Thresholds that no data
        have balanced yet are started from training samples, or the first mini-batch of an iterable. ``compile="auto"``
        does not compile for an iterable, whose length it does not know. On glibc, the process's allocator is told to
        keep what a step frees for the next one (``engine/allocation.py``), unless the environment has tuned it.
        ``augment`` changes the images of every mini-batch at random, and is for tensors only.
        Errors are measured after every ``evaluate_every``-th epoch and the last; other records have None there.
        A ``DivergenceWarning`` says if the network ends worse than a constant on its own training data, or has lost
        much of what it had learnt. Baselines take tensors only, and give no warning.
        """
        check_sizes(epochs=epochs, evaluate_every=evaluate_every)
        if augment is not None and not isinstance(train, tuple):
            raise ValueError("augment is for a pair (x, y) of tensors: an iterable must change its mini-batches itself")
        source: Source
        if isinstance(train, tuple):
            part = None if self.team is None else self.team.part
            source = Batches(*self._checked(*train), batch_size, part, augment)
        else:
            source = Recent(train)
        held_out = None if validation is None else self._checked(*validation)
        sample = train_sample(source.x, source.y) if isinstance(source, Batches) else None
        self._prepare(source, sample, epochs, evaluate_every)
        trains = self.epoch < epochs
        history = self._fit(source, epochs, evaluate_every, sample, held_out, callbacks)
        if trains:
            self._finish(source, sample)
        return history

    @abstractmethod
    def _prepare(self, source: Source, sample: Pair | None, epochs: int, evaluate_every: int) -> None:
        """Before the first mini-batch of a call of ``fit``; ``sample`` is what training errors are measured on."""

    def _finish(self, source: Source, sample: Pair | None) -> None:
        """After the last, if there was one."""

    def _leave(self) -> None:
        """However a fit has ended: single steps after it belong to no schedule."""
        self.epoch_steps = self.run_steps = None

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
        try:
            if isinstance(source, Batches):
                self.epoch_steps, self.run_steps = len(source), epochs * len(source)
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
        finally:
            self._leave()
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
