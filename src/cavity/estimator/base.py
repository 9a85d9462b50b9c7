"""What classifier and regressor share: parameters, inputs, training, prediction."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from torch import Tensor

from cavity.analysis import metrics
from cavity.analysis.uncertainty import draw_weights, predict_with
from cavity.core.channels import GaussianOutput
from cavity.core.network import Network
from cavity.core.predict import BATCH
from cavity.core.priors import PRIORS
from cavity.estimator.checks import (
    RandomState,
    positive,
    refuse_masked,
    require_finite,
    require_scalable,
    seed_of,
    widths,
)
from cavity.estimator.exact import in_float64
from cavity.estimator.listeners import KeepBest, display
from cavity.estimator.samples import AT_ONCE, Rows, Samples, SparseRows, Standardizer, held_out
from cavity.estimator.stream import REMEMBERED, Stream
from cavity.estimator.tempering import FEWEST, choose_temperature, wanted_count
from cavity.estimator.training import SampleTrainer
from cavity.estimator.weighing import sample_counts
from cavity.runs.building import build_network, trainer_options
from cavity.runs.config import Config, input_shape
from cavity.training.callbacks import Callback
from cavity.training.plans import Annealed
from cavity.training.recipes import STREAMS, TABLES, Recipe
from cavity.training.schedules import Cosine
from cavity.util.threads import suited

if TYPE_CHECKING:
    from cavity.core.channels import Output


#: Samples are held back until the second of these parts of the epochs, and looked at after each.
LOOKS = (0.2, 0.7)


@dataclass(repr=False, eq=False)
class MessagePassingEstimator(BaseEstimator):  # type: ignore[misc]
    """The common part; see ``MessagePassingClassifier`` for the parameters."""

    #: What decides the mini-batches of a fit.
    _recipe: ClassVar[Recipe] = TABLES
    hidden: Sequence[int] = TABLES.hidden
    _: KW_ONLY
    weights: str = TABLES.weights
    activation: str = TABLES.activation
    algorithm: str = TABLES.algorithm
    epochs: int = TABLES.epochs
    batch_size: int | None = None
    rho: float | Sequence[float] | None = None
    damping: float | Sequence[float] | None = None
    memory: float | None = None
    inner_iterations: int = TABLES.inner_iterations
    bias: bool | None = None
    threshold: bool = False
    layers: str | None = None
    image_shape: Sequence[int] | None = None
    density: float = 1.0
    init: float = TABLES.init
    standardize: bool = True
    early_stopping: bool = False
    calibrate: bool = True
    validation_fraction: float = 0.1
    patience: int = 5
    warm_start: bool = False
    compile: bool | Literal["auto"] = False
    random_state: RandomState = None
    verbose: bool = False
    network_: Network = field(init=False)
    image_shape_: tuple[int, int, int] | None = field(init=False)
    n_features_in_: int = field(init=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags

    @abstractmethod
    def _output(self) -> tuple[int, Output | str]:
        """Units of the last layer, and the channel on top of it."""

    def _listeners(self, samples: Samples) -> list[Callback]:
        """What else listens to a fit, on the training data."""
        return []

    def _goes_on(self) -> bool:
        """Whether ``fit`` goes on from the network of the call before."""
        return self.warm_start and hasattr(self, "network_")

    def _start(self, X: Rows, counts: NDArray[np.float64] | None) -> None:
        """A fresh network, and the standardisation of ``X``."""
        self.seed_ = seed_of(self.random_state)
        self.scaler_ = Standardizer.fit(X, counts) if self.standardize else None
        outputs, output = self._output()
        prior = PRIORS.make(self.weights, "weights")
        # Real weights can set a threshold. A ±1 bias is one vote among many and makes their number even: none.
        bias = not prior.polarizes if self.bias is None else bool(self.bias)
        config = Config(
            hidden=widths(self.hidden) if self.layers is None else None,
            layers=self.layers,
            bias=bias,
            threshold=bool(self.threshold),
            density=self.density,
            init=self.init,
            seed=self.seed_,
        )
        shape = input_shape(config, self.n_features_in_, self.image_shape_)
        self.network_ = build_network(config, shape, outputs, weights=prior, activation=self.activation, output=output)
        self.n_steps_, self.n_epochs_ = 0, 0
        self.stream_ = Stream.of(None if isinstance(output, GaussianOutput) else outputs)

    def _trainer(self, memory: float | None = None) -> SampleTrainer:
        """A trainer of the network, for a stream where ``memory`` is given; another seed each time it goes on."""
        auto = self.rho is None and self.damping is None
        config = Config(inner_iterations=self.inner_iterations, seed=self.seed_ + self.n_steps_)
        chosen = {
            "algorithm": self.algorithm,
            "rate": "auto" if auto else 1.0 if memory is None else None,
            "rho": self.rho if auto or self.rho is not None or memory is not None else 1.0,
            "damping": self.damping,
            "memory": memory,
            "compile": self.compile,
        }
        return SampleTrainer(self.network_, **{**trainer_options(config), **chosen})

    def _batch_size(self, samples: int) -> int:
        """Samples of a mini-batch of ``fit``."""
        certain = any(layer.prior.polarizes for layer in self.network_.weighted())
        recipe = STREAMS if certain else self._recipe
        return recipe.batch_size(samples) if self.batch_size is None else positive("batch_size", self.batch_size)

    def _checked(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, reset: bool, **checks: Any
    ) -> tuple[Rows, NDArray[Any], NDArray[np.float64] | None]:
        """Inputs, targets and counts of a ``fit`` or ``partial_fit``."""
        refuse_masked(X=X, y=y)
        given = self._flat(X, reset)
        array, target = validate_data(
            self, given, y, dtype=np.float64, accept_sparse="csr", multi_output=True, reset=reset, **checks
        )
        if reset and self.standardize:
            require_scalable(array)
        if target.ndim == 2 and target.shape[1] == 1:
            target = column_or_1d(target, warn=True)
        return array, target, sample_counts(sample_weight, array)

    def _samples(self, X: Rows, y: Tensor, counts: NDArray[np.float64] | None) -> Samples:
        """Checked samples as the network takes them. One pass over the numbers is not worth a second thread, for which
        it would have to wait beside other work."""
        with suited(0):
            dense = isinstance(X, np.ndarray)
            x = self.network_.check_inputs(self._inputs(X)) if dense else self._sparse(X, torch.float32)
        return Samples(x, y, None if counts is None else torch.from_numpy(counts).to(torch.float32))

    def _train(self, samples: Samples, labels: NDArray[Any] | None = None) -> None:
        """All epochs, or as many as early stopping wants, and then the best state. Samples are held out for that, or
        until the temperature is chosen, by class where ``labels`` are given."""
        calibrates, epochs = self._calibrates(len(samples)), positive("epochs", self.epochs)
        train = held = None
        if self.early_stopping or calibrates:
            train, held = held_out(len(samples), self.validation_fraction, labels, self.seed_)
        trainer, before = self._trainer(), self.n_steps_
        size = self._batch_size(len(samples))
        with self._threads(size), display(self.verbose, epochs, max(1, len(samples) // size)) as shown:
            aside = None if held is None else samples.take(held)
            if self.early_stopping or aside is None:
                samples = samples if train is None else samples.take(train)
                best = self._fit(trainer, samples, epochs, aside, shown)
            else:
                assert train is not None
                best = self._fit_looking(trainer, samples.take(train), aside, epochs, shown)
            if calibrates and aside is not None:
                choose_temperature(self.network_, *aside.dense())
            if trainer.epoch < epochs and not self.early_stopping:
                best = self._fit(trainer, samples, epochs, None, shown)
        self.n_steps_, self.n_epochs_ = before + trainer.steps, trainer.epoch
        self._complain(trainer.judge(samples, best))

    def _fit_looking(
        self, trainer: SampleTrainer, samples: Samples, aside: Samples, epochs: int, shown: list[Callback]
    ) -> int | None:
        """The epochs for which samples are held back. Early on, those say how often a posterior of classes counts each
        sample."""
        plan, best = trainer.plan, None
        for done in dict.fromkeys(max(1, round(part * epochs)) for part in LOOKS):
            if isinstance(plan, Annealed):
                if trainer.epoch and not self.network_.output.curvature_stays:
                    plan = replace(plan, count=plan.count * wanted_count(self.network_, *aside.dense()))
                trainer.plan = replace(plan, schedule=Cosine(end=epochs / done))
            best = self._fit(trainer, samples, done, None, shown)
        trainer.plan = plan
        return best

    def _fit(
        self, trainer: SampleTrainer, samples: Samples, epochs: int, validation: Samples | None, shown: list[Callback]
    ) -> int | None:
        """Go on until ``epochs`` epochs are done in all; with a validation set, take the best of them and say which."""
        best = KeepBest("test_nll", positive("patience", self.patience))
        # The best state comes first: the noise it keeps is the one that its NLL was measured with.
        listeners = [*([] if validation is None else [best]), *self._listeners(samples), *shown]
        self.history_ = trainer.fit_samples(
            samples,
            epochs=epochs,
            validation=validation,
            batch_size=self._batch_size(len(samples)),
            evaluate_every=1 if self.verbose or self.early_stopping else positive("epochs", self.epochs),
            callbacks=listeners,
        )
        best.restore(self.network_)
        return best.best_epoch or None

    def _pass_once(self, samples: Samples) -> None:
        """Every sample once, the last incomplete mini-batch too: the posterior so far is the prior. Nobody knows how
        long a stream will be, so that nothing is annealed."""
        trainer, counts = self._trainer(self.memory), samples.counts
        order = torch.randperm(len(samples), generator=trainer.generator)
        looked_at = samples.take(order[:REMEMBERED].numpy()).dense()[:2]
        if not self.network_.balanced:
            self.network_.balance(samples.x if isinstance(samples.x, Tensor) else looked_at[0])
        given = self.batch_size
        if given is None and self.memory is not None:
            # Rates that belong to a memory do not ask for many steps.
            given = STREAMS.usual_batch
        size = STREAMS.batch_size(len(samples)) if given is None else positive("batch_size", given)
        with self._threads(size):
            for index in torch.split(order, size):
                trainer.counts = None if counts is None else counts[index]
                trainer.step(samples.x[index], samples.y[index])
        self.n_steps_, self.n_epochs_ = self.n_steps_ + trainer.steps, self.n_epochs_ + 1
        if samples.y.ndim == 1:
            self.stream_.add(metrics.measure(self.network_, *looked_at), looked_at[1])
            wrong = self.stream_.trouble()
            self._complain(None if wrong is None else f"{wrong}. {trainer.remedy}")

    def _complain(self, text: str | None) -> None:
        if text is not None:
            # Where ``fit`` or ``partial_fit`` was called.
            warnings.warn(text, ConvergenceWarning, stacklevel=5)

    def _calibrates(self, samples: int) -> bool:
        """Whether there is a temperature to choose, and enough samples to choose it."""
        real = not self.network_.weighted()[-1].prior.polarizes
        return self.calibrate and real and self.epochs > 1 and round(self.validation_fraction * samples) >= FEWEST

    def _inputs(self, X: NDArray[np.float64]) -> Tensor:
        """Standardised, in float64; the values fit into the network's float32."""
        moved = Standardizer(self.scaler_)(X)
        require_finite(np.abs(moved) <= np.finfo(np.float32).max, "too large for float32")
        return torch.from_numpy(np.require(moved, requirements=["C", "W"]))

    def _sparse(self, X: Rows, dtype: torch.dtype) -> SparseRows:
        """The same of sparse rows, where they are made dense."""
        scale = 1.0 if self.scaler_ is None else self.scaler_.scale_[X.indices]
        require_finite(np.abs(X.data / scale) <= np.finfo(np.float32).max, "too large for float32", X)
        return SparseRows(X, Standardizer(self.scaler_), dtype)

    def _flat(self, X: ArrayLike, reset: bool) -> ArrayLike:
        """Images (samples, channels, height, width) as rows, where ``layers`` may look at images; the first ones, or
        ``image_shape``, say how large they are."""
        if reset:
            given = self.image_shape
            if given is not None and len(given) != 3:
                raise ValueError(f"image_shape must be (channels, height, width), got {given!r}")
            self.image_shape_ = None if given is None else (int(given[0]), int(given[1]), int(given[2]))
        if self.layers is None or np.ndim(X) != 4:
            return X
        images = np.asarray(X)
        if reset:
            self.image_shape_ = (images.shape[1], images.shape[2], images.shape[3])
        elif images.shape[1:] != self.image_shape_:
            raise ValueError(f"X must hold images of shape {self.image_shape_}, got {images.shape[1:]}")
        return images.reshape(len(images), -1)

    def _predicted(self, X: ArrayLike, function: Callable[[Tensor], Tensor]) -> Tensor:
        """``function`` of the checked inputs of a prediction, part by part where they are sparse; ValueError for a
        wrong width or what is not finite."""
        check_is_fitted(self, "network_")
        refuse_masked(X=X)
        array = self._validated(X)
        if isinstance(array, np.ndarray):
            require_finite(np.isfinite(array), "NaN or infinity (inf)")
            with self._threads(min(len(array), BATCH)):
                return function(self._inputs(array))
        require_finite(np.isfinite(array.data), "NaN or infinity (inf)", array)
        rows = self._sparse(array, torch.float64)
        with self._threads(BATCH):
            return torch.cat([function(rows[start : start + AT_ONCE]) for start in range(0, len(rows), AT_ONCE)])

    def _threads(self, samples: int) -> AbstractContextManager[None]:
        """As many threads as that many samples at once are worth."""
        return suited(samples * self.network_.products)

    def _validated(self, X: ArrayLike) -> Rows:
        """Inputs (samples, features) of a prediction. What needs no change is not asked at length: for one row,
        scikit-learn's questions take as long as the prediction."""
        if isinstance(X, np.ndarray) and type(X) is np.ndarray and not hasattr(self, "feature_names_in_"):
            fits = X.dtype == np.float64 and X.shape[1:] == (self.n_features_in_,) and len(X) > 0
            if fits:
                return X
        given = self._flat(X, reset=False)
        valid: Rows = validate_data(
            self, given, dtype=np.float64, accept_sparse="csr", ensure_all_finite=False, reset=False
        )
        return valid

    def sample(self, n: int = 1, random_state: RandomState = None) -> list[list[NDArray[np.float32]]]:
        """``n`` draws of all weights from the posterior, each a list of (outputs, inputs), with one more column for a
        bias and one for thresholds where there are any.

        ``predict_with(X, draw)`` predicts with one of them.
        """
        check_is_fitted(self, "network_")
        draws = draw_weights(self.network_, n, self._generator(random_state))
        return [[w.numpy() for w in draw] for draw in draws]

    def _predict_with(self, X: ArrayLike, weights: Sequence[NDArray[np.float32]]) -> Tensor:
        """What the network gives with these weights instead of its own."""
        check_is_fitted(self, "network_")
        known = [torch.as_tensor(w).double() for w in weights]
        return self._predicted(X, lambda x: predict_with(in_float64(self.network_), known, x))

    def _generator(self, random_state: RandomState) -> torch.Generator:
        """For draws of weights: seeded by ``random_state``, or by the estimator's own."""
        return torch.Generator().manual_seed(self.seed_ if random_state is None else seed_of(random_state))
