"""Training of baselines, with the same loop, batches, seeds and records as ``cavity.Trainer``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from cavity.analysis.calibration import expected_calibration_error, negative_log_likelihood
from cavity.analysis.landscape import mean_overlap
from cavity.analysis.metrics import EpochRecord, percent_wrong, train_sample
from cavity.baselines.classifier import Classifier
from cavity.core.couplings.base import check_sizes
from cavity.training.batches import Batches
from cavity.training.callbacks import Callback
from cavity.training.loop import Loop, Pair


class BaselineTrainer(Loop[Tensor]):
    """Epochs and records around one abstract ``learn``, which returns the loss, 0-dimensional and still on the
    device. ``seed`` shuffles the batches."""

    net: Classifier

    @abstractmethod
    def optimizer_state(self) -> dict[str, Any]:
        """What the optimiser remembers between steps."""

    @abstractmethod
    def load_optimizer_state(self, state: dict[str, Any]) -> None:
        """Continue where ``optimizer_state`` was taken."""

    def fit(
        self,
        train: tuple[Tensor, Tensor],
        *,
        epochs: int,
        validation: tuple[Tensor, Tensor] | None = None,
        batch_size: int | None = 128,
        evaluate_every: int = 1,
        callbacks: Sequence[Callback] = (),
    ) -> list[EpochRecord]:
        """Train on (x, y) until ``epochs`` epochs are done in all, and return the history; calling again continues.
        Errors are measured after every ``evaluate_every``-th epoch and the last."""
        check_sizes(epochs=epochs, evaluate_every=evaluate_every)
        source = Batches(*self._checked(*train), batch_size)
        held_out = None if validation is None else self._checked(*validation)
        sample = train_sample(source.x, source.y)
        return self._fit(source, epochs, evaluate_every, sample, held_out, callbacks)

    def record(self, train: Pair | None, test: Pair | None) -> EpochRecord:
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
            # Over existing weights only: a masked one is 0.
            polarization=[float(w.square().sum() / (w != 0).sum().clamp_min(1)) for w in weights],
            overlap=[float(mean_overlap(w)) for w in weights],
        )

    def _error(self, x: Tensor, y: Tensor, method: str = "point") -> float:
        predicted = self.net.predict(x, method)
        return percent_wrong(predicted, y.reshape(predicted.shape))

    def _columns(self, y: Tensor) -> Tensor:
        """Labels as columns of ``predict_proba``: ±1 become 0 and 1."""
        return (y.reshape(-1) > 0).long() if self.net.outputs == 1 else y

    def state_dict(self) -> dict[str, Any]:
        """Everything, apart from the network's state, that a resumed run needs to continue exactly."""
        return {**super().state_dict(), "optimizer": self.optimizer_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where ``state_dict`` was taken."""
        super().load_state_dict(state)
        self.load_optimizer_state(state["optimizer"])
