"""What classifier and regressor share: parameters, inputs, training, prediction."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import wraps
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from cavity.analysis import metrics
from cavity.analysis.uncertainty import draw_weights, predict_with
from cavity.core.channels import GaussianOutput
from cavity.core.network import Network
from cavity.core.priors import PRIORS
from cavity.estimator.listeners import KeepBest, display
from cavity.estimator.stream import REMEMBERED, Stream
from cavity.estimator.tempering import FEWEST, choose_temperature
from cavity.runs.building import build_network, build_trainer
from cavity.runs.config import Config, input_shape
from cavity.training.batches import Batches
from cavity.training.callbacks import Callback
from cavity.training.loop import Pair
from cavity.training.plans import Annealed
from cavity.training.recipes import STREAMS, TABLES, Recipe
from cavity.training.schedules import Cosine
from cavity.training.trainer import Trainer

if TYPE_CHECKING:
    from cavity.core.channels import Output


#: The temperature is chosen after this part of the epochs, on samples held back until then.
HELD_BACK = 0.7


def positive(name: str, value: object) -> int:
    """``value`` as an int, NumPy's too; ValueError by ``name`` if it is no whole number of at least 1."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    return int(value)


#: The least and the largest size of a number whose square can be summed in float64.
SMALLEST, LARGEST = 1e-150, 1e150


def refuse_masked(**arrays: object) -> None:
    """ValueError for a masked array: what it hides would be taken for data."""
    for name, array in arrays.items():
        if isinstance(array, np.ma.MaskedArray):
            raise ValueError(f"{name} must not be a masked array: fill it, or leave out what it masks")


def widths(hidden: object) -> tuple[int, ...]:
    """The hidden layers as a tuple; ValueError if they are no sequence of widths."""
    if isinstance(hidden, str) or not isinstance(hidden, Sequence | np.ndarray):
        raise ValueError(f"hidden must be a sequence of widths such as (501,), got {hidden!r}")
    return tuple(positive("a width in hidden", width) for width in hidden)


Method = TypeVar("Method", bound=Callable[..., Any])


def all_or_nothing(method: Method) -> Method:
    """A ``fit`` or ``partial_fit`` that fails, or is interrupted, leaves the estimator as it was."""

    @wraps(method)
    def wrapped(self: MessagePassingEstimator, *args: Any, **kwargs: Any) -> Any:
        attributes = dict(self.__dict__)
        # What is changed in place, not replaced.
        network, stream = attributes.get("network_"), copy.copy(attributes.get("stream_"))
        layers, noise = (None, None) if network is None else (network.snapshot(), _noise(network))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            self.__dict__ = attributes
            if network is not None:
                attributes["stream_"] = stream
                network.go_back(layers)
                if noise is not None:
                    network.output.noise = noise
            raise

    return wrapped  # type: ignore[return-value]


def _noise(network: Network) -> float | None:
    """The variance that a regressor follows."""
    return network.output.noise if isinstance(network.output, GaussianOutput) else None


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
    compile: bool | Literal["auto"] = False
    random_state: int | np.random.RandomState | None = None
    verbose: bool = False
    network_: Network = field(init=False)
    image_shape_: tuple[int, int, int] | None = field(init=False)
    n_features_in_: int = field(init=False)

    @abstractmethod
    def _output(self) -> tuple[int, Output | str]:
        """Units of the last layer, and the channel on top of it."""

    def _listeners(self, x: Tensor, y: Tensor) -> list[Callback]:
        """What else listens to a fit, on the training data."""
        return []

    def _start(self, X: NDArray[np.float64]) -> None:
        """A fresh network, and the standardisation of ``X``."""
        if self.standardize:
            size = np.abs(X)
            self._require_finite(size <= LARGEST, "too large to be standardised")
            lost = (size.max(axis=0) < SMALLEST) & (size > 0)
            self._require_finite(~lost, "too small to be standardised, like the others of its column")
        self.seed_ = _seed(self.random_state)
        self.scaler_ = StandardScaler().fit(X) if self.standardize else None
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

    def _trainer(self) -> Trainer:
        """A trainer of the network; another seed each time it goes on."""
        auto = self.rho is None and self.damping is None
        return build_trainer(
            Config(inner_iterations=self.inner_iterations, seed=self.seed_ + self.n_steps_),
            self.network_,
            algorithm=self.algorithm,
            rate="auto" if auto else 1.0,
            rho=self.rho if auto or self.rho is not None else 1.0,
            damping=self.damping,
            compile=self.compile,
        )

    def _batch_size(self, samples: int, recipe: Recipe) -> int:
        return recipe.batch_size(samples) if self.batch_size is None else positive("batch_size", self.batch_size)

    def _train(self, x: Tensor, y: Tensor, labels: NDArray[Any] | None = None) -> None:
        """All epochs, or as many as early stopping wants, and then the best state. Samples are held out for that, or
        until the temperature is chosen, by class where ``labels`` are given."""
        calibrates, epochs = self._calibrates(len(x)), positive("epochs", self.epochs)
        train, held = self._held_out(len(x), labels, calibrates)
        aside = None if held is None else (x[held], y[held])
        trainer = self._trainer()
        trainer.watch = False
        with display(self.verbose, epochs, len(self._batches(x, y))) as shown:
            if self.early_stopping or aside is None:
                x, y = x[train], y[train]
                best = self._fit(trainer, x, y, epochs, aside, shown)
            else:
                plan, first = trainer.plan, max(1, round(HELD_BACK * epochs))
                if isinstance(plan, Annealed):
                    trainer.plan = replace(plan, schedule=Cosine(end=epochs / first))
                best = self._fit(trainer, x[train], y[train], first, None, shown)
                trainer.plan = plan
            if calibrates and aside is not None:
                choose_temperature(self.network_, *aside)
            if trainer.epoch < epochs and not self.early_stopping:
                best = self._fit(trainer, x, y, epochs, None, shown)
        self.n_steps_, self.n_epochs_ = trainer.steps, trainer.epoch
        self._complain(trainer.trouble(metrics.train_sample(x, y), best))

    def _batches(self, x: Tensor, y: Tensor) -> Batches:
        certain = any(layer.prior.polarizes for layer in self.network_.weighted())
        return Batches(x, y, self._batch_size(len(x), STREAMS if certain else self._recipe))

    def _fit(
        self, trainer: Trainer, x: Tensor, y: Tensor, epochs: int, validation: Pair | None, shown: list[Callback]
    ) -> int | None:
        """Go on until ``epochs`` epochs are done in all; with a validation set, take the best of them and say which."""
        best = KeepBest("test_nll", positive("patience", self.patience))
        # The best state comes first: the noise it keeps is the one that its NLL was measured with.
        listeners = [*([] if validation is None else [best]), *self._listeners(x, y), *shown]
        self.history_ = trainer.fit(
            (x, y),
            epochs=epochs,
            validation=validation,
            batch_size=self._batches(x, y).batch_size,
            evaluate_every=1 if self.verbose or self.early_stopping else epochs,
            callbacks=listeners,
        )
        best.restore(self.network_)
        return best.best_epoch or None

    def _pass_once(self, x: Tensor, y: Tensor) -> None:
        """Every sample once, the last incomplete mini-batch too: the posterior so far is the prior. Nobody knows how
        long a stream will be, so that nothing is annealed."""
        if not self.network_.balanced:
            self.network_.balance(x)
        trainer = self._trainer()
        order = torch.randperm(len(x), generator=trainer.generator)
        for index in torch.split(order, self._batch_size(len(x), STREAMS)):
            trainer.step(x[index], y[index])
        self.n_steps_, self.n_epochs_ = self.n_steps_ + trainer.steps, self.n_epochs_ + 1
        looked_at = order[:REMEMBERED]
        self.stream_.add(metrics.measure(self.network_, x[looked_at], y[looked_at]), y[looked_at])
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

    def _held_out(
        self, samples: int, labels: NDArray[Any] | None, calibrates: bool = False
    ) -> tuple[NDArray[np.intp], NDArray[np.intp] | None]:
        """Indices to train and to validate on; by class where ``labels`` are given and every class is large enough."""
        if not (self.early_stopping or calibrates):
            return np.arange(samples), None
        held = max(1, round(self.validation_fraction * samples))
        if not 0 < self.validation_fraction < 1 or held >= samples:
            raise ValueError(
                f"validation_fraction must be in (0, 1) and leave a sample to train on, got {self.validation_fraction} "
                f"of n_samples = {samples}"
            )
        if labels is not None:
            counts = np.unique(labels, return_counts=True)[1]
            labels = labels if counts.min() >= 2 and len(counts) <= min(held, samples - held) else None
        split = train_test_split(np.arange(samples), test_size=held, random_state=self.seed_, stratify=labels)
        return split[0], split[1]

    def _exact(self) -> Network:
        """The network in float64, for predictions: a row's must not depend on the rows around it, and rounding does."""
        return copy.deepcopy(self.network_).double()

    def _inputs(self, X: NDArray[np.float64]) -> Tensor:
        """Standardised, in float64; the values fit into the network's float32."""
        if self.scaler_ is not None:
            with warnings.catch_warnings():
                # A value beyond float64 after scaling is reported below, by its place.
                warnings.simplefilter("ignore", RuntimeWarning)
                X = self.scaler_.transform(X)
        self._require_finite(np.abs(X) <= np.finfo(np.float32).max, "too large for float32")
        return torch.from_numpy(np.ascontiguousarray(X))

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

    def _checked(self, X: ArrayLike) -> Tensor:
        """Inputs of a prediction; ValueError for a wrong width or what is not finite."""
        check_is_fitted(self, "network_")
        refuse_masked(X=X)
        array = validate_data(self, self._flat(X, reset=False), dtype=np.float64, ensure_all_finite=False, reset=False)
        self._require_finite(np.isfinite(array), "NaN or infinity (inf)")
        return self._inputs(array)

    def _require_finite(self, good: NDArray[np.bool_], problem: str) -> None:
        """ValueError with the place of the first value that is not ``good``, (samples, features)."""
        if not good.all():
            row, column = np.argwhere(~good)[0]
            raise ValueError(
                f"X must hold finite numbers in its {good.shape[1]} columns: row {row}, column {column} is {problem}"
            )

    def sample(self, n: int = 1, random_state: int | None = None) -> list[list[NDArray[np.float32]]]:
        """``n`` draws of all weights from the posterior, each a list of (outputs, inputs), with one more column for a
        bias and one for thresholds where there are any.

        ``predict_with(X, draw)`` predicts with one of them.
        """
        check_is_fitted(self, "network_")
        draws = draw_weights(self.network_, n, self._generator(random_state))
        return [[w.numpy() for w in draw] for draw in draws]

    def _predict_with(self, X: ArrayLike, weights: Sequence[NDArray[np.float32]]) -> Tensor:
        """What the network gives with these weights instead of its own."""
        return predict_with(self._exact(), [torch.as_tensor(w).double() for w in weights], self._checked(X))

    def _generator(self, random_state: int | None) -> torch.Generator:
        """For draws of weights: seeded by ``random_state``, or by the estimator's own."""
        return torch.Generator().manual_seed(self.seed_ if random_state is None else _seed(random_state))


def _seed(random_state: int | np.random.RandomState | None) -> int:
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
