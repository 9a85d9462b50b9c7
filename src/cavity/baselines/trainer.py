"""Training of baselines, with the same loop, batches, seeds and records as ``cavity.Trainer``; and the update rules of
those that descend a gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from cavity.analysis.calibration import expected_calibration_error, negative_log_likelihood
from cavity.analysis.landscape import mean_overlap
from cavity.analysis.metrics import EpochRecord, percent_wrong, train_sample
from cavity.baselines.classifier import Classifier, require_above, require_one
from cavity.training.batches import Batches, Pair
from cavity.training.loop import Loop, Source
from cavity.training.schedules import SCHEDULES, Function
from cavity.training.trainer import BALANCE_SAMPLES, Trainer


class BaselineTrainer(Loop[Tensor]):
    """Epochs and records around one abstract ``learn``, which returns the loss, 0-dimensional and still on the
    device. ``seed`` shuffles the batches."""

    net: Classifier
    #: What the optimiser remembers between steps, changed in place.
    slots: Sequence[Tensor] = ()

    def begin(self, x: Tensor) -> None:
        """Told some of the training inputs before ``fit`` goes on. Most methods have no use for that."""

    def end_task(self, x: Tensor, y: Tensor) -> None:
        """Told that a task is over, and given samples (x, y) of it. Most methods have no use for that."""

    def _prepare(self, source: Source, sample: Pair | None, epochs: int, evaluate_every: int) -> None:
        if not isinstance(source, Batches):
            raise TypeError("train must be a pair (x, y) of tensors: baselines take no iterables")
        self.begin(train_sample(source.x, source.y, BALANCE_SAMPLES)[0])

    def record(self, train: Pair | None, test: Pair | None) -> EpochRecord:
        """Bayesian errors are those of a baseline with a posterior, else None; NLL and ECE are of its probabilities."""
        nll = ece = None
        if test is not None:
            # Labels as columns of the probabilities: ±1 become 0 and 1.
            labels = (test[1].reshape(-1) > 0).long() if self.net.outputs == 1 else test[1]
            probabilities = self.net.predict_proba(test[0])
            nll = float(negative_log_likelihood(probabilities, labels))
            ece = float(expected_calibration_error(probabilities, labels))
        weights = self.net.mean_weights()
        return EpochRecord(
            epoch=self.epoch,
            train_error=self._error(train, "point"),
            test_error=self._error(test, "point"),
            train_error_bayes=self._error(train, "bayes") if self.net.bayesian else None,
            test_error_bayes=self._error(test, "bayes") if self.net.bayesian else None,
            test_nll=nll,
            test_ece=ece,
            seconds=self.seconds,
            # Over existing weights only: a masked one is 0.
            polarization=[float(w.square().sum() / (w != 0).sum().clamp_min(1)) for w in weights],
            overlap=[float(mean_overlap(w)) for w in weights],
        )

    def _error(self, data: Pair | None, method: str) -> float | None:
        if data is None:
            return None
        predicted = self.net.predict(data[0], method)
        return percent_wrong(predicted, data[1].reshape(predicted.shape))

    def state_dict(self) -> dict[str, Any]:
        """Everything, apart from the network's state, that a resumed run needs to continue exactly."""
        return {**super().state_dict(), "optimizer": {"memory": [tensor.clone() for tensor in self.slots]}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where ``state_dict`` was taken."""
        super().load_state_dict(state)
        for own, saved in zip(self.slots, state["optimizer"].get("memory", ()), strict=True):
            own.copy_(saved)


#: Whatever trains a network: by message passing, or one of its rivals.
AnyTrainer = Trainer | BaselineTrainer


class Optimizer(ABC):
    """Changes weights in place, then clips them. ``lr`` is the step size, ``bound`` the largest |w|.

    Not one of ``torch.optim``, which would split the compiled graph of a training step in two.
    """

    def __init__(self, lr: float, bound: float) -> None:
        require_above("lr", lr)
        self.lr, self.bound = lr, bound

    def start(self, weights: Sequence[Tensor]) -> list[Tensor]:
        """The initial slots."""
        return []

    @abstractmethod
    def update(
        self, weights: Sequence[Tensor], gradients: Sequence[Tensor], slots: Sequence[Tensor], factor: Tensor | None
    ) -> None:
        """One update and clipping; ``slots`` are changed in place, ``factor`` that a schedule puts on the step size."""

    def descend(
        self, loss: Tensor, weights: Sequence[Tensor], slots: Sequence[Tensor], factor: Tensor | None = None
    ) -> Tensor:
        """One update by the gradient of ``loss``, which is returned without its graph."""
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            self.update(weights, gradients, slots, factor)
        return loss.detach()


class SGD(Optimizer):
    """w ← clip(w − lr·∂L/∂w)."""

    def update(
        self, weights: Sequence[Tensor], gradients: Sequence[Tensor], slots: Sequence[Tensor], factor: Tensor | None
    ) -> None:
        for w, gradient in zip(weights, gradients, strict=True):
            # Not add_ with alpha=-lr: torch 2.13 compiles that, on the result of a product, as if alpha were 1.
            w.sub_(gradient if factor is None else gradient * factor, alpha=self.lr).clamp_(-self.bound, self.bound)


class Adam(Optimizer):
    """Kingma and Ba's rule with its usual constants; slots: the step count, then mean and mean square by layer."""

    DECAY: ClassVar[tuple[float, float]] = (0.9, 0.999)
    EPSILON: ClassVar[float] = 1e-8

    def start(self, weights: Sequence[Tensor]) -> list[Tensor]:
        moments = [torch.zeros_like(w, requires_grad=False) for w in weights for _ in self.DECAY]
        return [torch.zeros((), device=weights[0].device), *moments]

    def update(
        self, weights: Sequence[Tensor], gradients: Sequence[Tensor], slots: Sequence[Tensor], factor: Tensor | None
    ) -> None:
        first, second = self.DECAY
        count = slots[0].add_(1)
        rate = (self.lr if factor is None else self.lr * factor) / (1 - first**count)
        unbias = (1 - second**count).rsqrt()
        pairs = zip(slots[1::2], slots[2::2], strict=True)
        for w, gradient, (mean, square) in zip(weights, gradients, pairs, strict=True):
            mean.lerp_(gradient, 1 - first)
            square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
            step = mean / (square.sqrt().mul_(unbias)).add_(self.EPSILON)
            self.move(w, step.mul_(rate))

    def move(self, w: Tensor, step: Tensor) -> None:
        """Take ``step`` off the weights of a layer, in place."""
        w.sub_(step).clamp_(-self.bound, self.bound)


OPTIMIZERS: dict[str, type[Optimizer]] = {"sgd": SGD, "adam": Adam}


class GradientTrainer(BaselineTrainer):
    """Updates ``net.weights`` by an optimiser, or by that of a name, with the step size ``lr`` or its default, times a
    schedule (``training/schedules.py``) over a call of ``fit``; None is constant."""

    DEFAULT_LR: ClassVar[dict[str, float]]
    #: The largest |w|.
    BOUND: ClassVar[float]

    def __init__(
        self,
        net: Classifier,
        optimizer: str | Optimizer = "adam",
        *,
        lr: float | None = None,
        schedule: str | Function | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(seed)
        self.net = net
        self.optimizer = optimizer if isinstance(optimizer, Optimizer) else self._named(optimizer, lr)
        self.slots = self.optimizer.start(list(cast(nn.ParameterList, net.weights)))
        self.schedule = SCHEDULES.make(schedule) if isinstance(schedule, str) else schedule

    def _named(self, optimizer: str, lr: float | None) -> Optimizer:
        require_one("optimizer", optimizer, list(OPTIMIZERS))
        return OPTIMIZERS[optimizer](self.DEFAULT_LR[optimizer] if lr is None else lr, self.BOUND)

    @property
    def factor(self) -> Tensor | None:
        """What the schedule puts on the step size of the next step; None where there is none."""
        if self.schedule is None or self.run_steps is None:
            return None
        return torch.tensor(self.schedule(self.fraction), device=self.net.device)
