"""Training of a baseline: the same fit → epoch → step, batches, seeds and records as ``cavity.Trainer``."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from cavity.baselines.classifier import Classifier
from cavity.calibration import expected_calibration_error, negative_log_likelihood
from cavity.data.batches import Batches
from cavity.landscape import mean_overlap
from cavity.metrics import EpochRecord, percent_wrong, train_sample
from cavity.trainer import SEED_RANGE


class Listener(Protocol):
    """What ``fit`` calls; every ``cavity.callbacks.Callback`` is one."""

    def on_step(self, trainer: Any, info: Any) -> None: ...

    def on_epoch(self, trainer: Any, record: EpochRecord) -> None: ...


class BaselineTrainer(ABC):
    """Epochs and records around one abstract step. ``seed`` shuffles the batches."""

    net: Classifier

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
    def _step(self, x: Tensor, y: Tensor) -> Tensor:
        """Learn from one checked mini-batch and return its loss, 0-dimensional and still on the device."""

    @abstractmethod
    def optimizer_state(self) -> dict[str, Any]:
        """What the optimiser remembers between steps."""

    @abstractmethod
    def load_optimizer_state(self, state: dict[str, Any]) -> None:
        """Continue where ``optimizer_state`` was taken."""

    def step(self, x: Tensor, y: Tensor) -> Tensor:
        """Learn from one mini-batch, x (samples, inputs) and y ±1 or 0…C−1; returns the loss before the update."""
        loss = self._step(*self._checked(x, y))
        self.steps += 1
        return loss

    def fit(
        self,
        train: tuple[Tensor, Tensor],
        *,
        epochs: int,
        validation: tuple[Tensor, Tensor] | None = None,
        batch_size: int | None = 128,
        evaluate_every: int = 1,
        callbacks: Sequence[Listener] = (),
    ) -> list[EpochRecord]:
        """Train on (x, y) until ``epochs`` epochs are done in all, and return the history; calling again continues.
        Errors are measured after every ``evaluate_every``-th epoch and the last."""
        for name, value in (("epochs", epochs), ("evaluate_every", evaluate_every)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}")
        source = Batches(*self._checked(*train), batch_size)
        held_out = None if validation is None else self._checked(*validation)
        sample = train_sample(source.x, source.y)
        self.stop = False
        while self.epoch < epochs and not self.stop:
            self.measures = (self.epoch + 1) % evaluate_every == 0 or self.epoch + 1 == epochs
            self._epoch(source, sample, held_out, callbacks)
        return self.history

    def _checked(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        x, y = self.net.check_inputs(x), torch.as_tensor(y)
        self.net.output.check(y, len(x), self.net.outputs)
        if y.device.type == "cpu":
            self.net.output.check_values(y, self.net.outputs)
        return x, y.to(self.net.device)

    def _epoch(
        self,
        source: Batches,
        sample: tuple[Tensor, Tensor],
        validation: tuple[Tensor, Tensor] | None,
        callbacks: Sequence[Listener],
    ) -> None:
        """The rest of the current epoch, then its record."""
        if self.batch == 0:
            self.order_seed = int(torch.randint(SEED_RANGE, (), generator=self.generator))
            self.seconds = 0.0
        started = time.perf_counter()
        for x, y in source.epoch(self.order_seed, self.batch):
            loss = self._step(x, y)
            self.steps, self.batch = self.steps + 1, self.batch + 1
            self.seconds += time.perf_counter() - started
            for callback in callbacks:
                callback.on_step(self, loss)
            if self.stop:
                return
            started = time.perf_counter()
        self.epoch, self.batch = self.epoch + 1, 0
        self.history.append(self._record(*((sample, validation) if self.measures else (None, None))))
        for callback in callbacks:
            callback.on_epoch(self, self.history[-1])

    def _record(self, train: tuple[Tensor, Tensor] | None, test: tuple[Tensor, Tensor] | None) -> EpochRecord:
        """Bayesian errors are those of a baseline with a posterior, else None; NLL and ECE are of its probabilities."""
        nll = ece = None
        if test is not None:
            probabilities, labels = self.net.predict_proba(test[0]), self._columns(test[1])
            nll = float(negative_log_likelihood(probabilities, labels))
            ece = float(expected_calibration_error(probabilities, labels))
        weights = self.net.mean_weights()
        return EpochRecord(
            epoch=self.epoch,
            train_error=None if train is None else self._error(*train),
            test_error=None if test is None else self._error(*test),
            train_error_bayes=self._error(*train, "bayes") if self.net.bayesian and train is not None else None,
            test_error_bayes=self._error(*test, "bayes") if self.net.bayesian and test is not None else None,
            test_nll=nll,
            test_ece=ece,
            seconds=self.seconds,
            polarization=[float(w.square().mean()) for w in weights],
            overlap=[float(mean_overlap(w)) for w in weights],
        )

    def _error(self, x: Tensor, y: Tensor, method: str = "point") -> float:
        predicted = self.net.predict(x, method)
        return percent_wrong(predicted, y.reshape(predicted.shape))

    def _columns(self, y: Tensor) -> Tensor:
        """Labels as columns of ``predict_proba``: ±1 become 0 and 1."""
        return (y.reshape(-1) > 0).long() if self.net.outputs == 1 else y

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
            "optimizer": self.optimizer_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where ``state_dict`` was taken."""
        self.generator.set_state(state["generator"])
        self.steps, self.epoch, self.batch = state["steps"], state["epoch"], state["batch"]
        self.order_seed, self.seconds = state["order_seed"], state["seconds"]
        self.history = [EpochRecord(**record) for record in state["history"]]
        self.load_optimizer_state(state["optimizer"])
