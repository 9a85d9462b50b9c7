"""A scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from cavity.analysis.uncertainty import Uncertainty, predictive_entropy
from cavity.core.channels import Several
from cavity.core.growth import with_outputs
from cavity.estimator.base import MessagePassingEstimator
from cavity.estimator.checks import RandomState
from cavity.estimator.exact import in_float64
from cavity.estimator.naming import FEWEST_UNITS, Classes, PerClass, rows_of, united
from cavity.estimator.samples import Rows, dropped, merged
from cavity.estimator.undoing import all_or_nothing
from cavity.estimator.weighing import ClassWeight, class_counts, sample_counts
from cavity.export.doors import Exported, export
from cavity.export.targets import AnyPath
from cavity.export.trained import WHITE, ExportError, Inputs, Trained

Entropies = Uncertainty[NDArray[np.float64]]


@dataclass(repr=False, eq=False)
class MessagePassingClassifier(ClassifierMixin, Classes, MessagePassingEstimator):  # type: ignore[misc]
    """A network trained by message passing, for labels of any type.

    The defaults suit tabular data: one hidden layer of 201 ReLU units with real (Gaussian) weights.
    ``weights="binary"`` gives ±1 weights, which can be exported as bits. It suits wide data such as images, because a
    ±1 weight cannot ignore a noisy feature.

    X may be sparse: it is made dense a mini-batch at a time. y may have several columns, each with classes of its own,
    or be a matrix of labels that are there or not (0 and 1).

    Parameters
    ----------
    hidden : widths of the hidden layers. For ±1 weights odd ones, so that a sum of votes is never 0.
    weights : a kind of weights by name, such as "gaussian" or "binary" (docs/names.md lists them all).
    activation : of the hidden units, by name. ReLU costs about three times as much as sign.
    algorithm : message passing by name. The cheapest is the default because with real weights and several epochs the
        others are more certain of themselves, and no more accurate.
    epochs : passes over the data.
    batch_size : samples per mini-batch; None means half of the data, and 1024 at most; 32 at most in
        ``partial_fit``.
    rho : the posterior is raised to this power to become the next prior; one number, or one per layer. None means 1 for
        Gaussian weights and in ``partial_fit``; else 0.9 for the last layer, and a value that polarises the weights
        within ``epochs`` for the others.
    damping : how much of the old weight means is kept; one number, or one per layer.
    memory : for streams, in samples: what ``partial_fit`` learnt that long ago has faded to 1/e, so that it follows
        data that change. It suits weights of a few values. ``math.inf`` never forgets, which has its price: each sample
        moves little, because all samples to come must find room, and weights that are certain hardly follow a change.
        None lets the messages choose each step, as ``fit`` does. It takes the place of rho and damping; ``fit`` ignores
        it.
    inner_iterations : message passing iterations per mini-batch.
    bias : whether units have a bias; None means only with Gaussian weights.
    threshold : whether units have a real threshold, whatever the weights; it begins where the data balance them.
    layers : instead of ``hidden``, what the network is made of, such as "conv:16:3,pool:2,dense:65" (docs/names.md). X
        are then images (samples, channels, height, width), or rows.
    image_shape : (channels, height, width) of images that are given as rows.
    density : fraction of the weights that exist.
    init : spread of the initial weights.
    standardize : whether to scale inputs to mean 0 and variance 1, with the statistics of the first call of ``fit`` or
        ``partial_fit``.
    early_stopping : hold out ``validation_fraction`` of the samples, stop when their NLL has not improved for
        ``patience`` epochs, and keep the best epoch.
    calibrate : with real weights, choose on ``validation_fraction`` of the samples how sure predictions are. They are
        held back for the first part of the epochs only; nothing is chosen on fewer than 10 of them.
    warm_start : whether ``fit`` goes on from the network of the call before, with its standardisation and classes.
    compile : whether to use torch.compile; "auto" does if the run is long enough for it to pay.
    random_state : seed of the initial weights, the order of samples and the validation split: an int, or NumPy's
        ``RandomState`` or ``Generator``.
    verbose : show the progress of ``fit``, with the time left.
    class_weight : how often a sample of each class counts: a dict (1 for classes it leaves out), or "balanced", which
        makes all classes count alike; of several targets also a list of dicts.

    Attributes
    ----------
    classes_ (of several targets a list; of labels that are there or not their numbers), n_features_in_,
    feature_names_in_ (for data with column names), network_ (a ``cavity.Network``), scaler_ (a ``StandardScaler`` or
    None), history_ (one ``cavity.metrics.EpochRecord`` per epoch of ``fit``, with errors of the last one only unless
    ``verbose`` or ``early_stopping``), n_steps_, n_epochs_.
    """

    class_weight: ClassWeight = field(default=None, kw_only=True)
    classes_: Any = field(init=False, repr=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> MessagePassingClassifier:
        """Train on X (samples, features) and labels y (samples,) or (samples, targets), from scratch unless
        ``warm_start``. A sample counts ``sample_weight`` times: 2 is as good as two copies, 0 leaves it out."""
        goes_on = self._goes_on()
        X, y, counts = self._labelled(X, y, sample_weight, reset=not goes_on)
        numbers = self._numbers(y) if goes_on else self._name_classes(y)
        counts = class_counts(self.class_weight, self._classes, numbers, counts)
        X, numbers, counts = merged(*dropped(X, numbers, counts))
        if not goes_on:
            self._start(X, counts)
        self._train(self._samples(X, self._target(numbers), counts), None if self._several else numbers[:, 0])
        return self

    @all_or_nothing
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | Sequence[ArrayLike] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> MessagePassingClassifier:
        """One pass over (X, y) with the current posterior as the prior; no earlier data are kept.

        ``classes`` are what may occur beside the labels of y (of several targets, a list for each). What the first call
        did not name may come later: its unit is added then, and the weights of the others stay as they are. Where
        the first call does name them, its y must keep to them. It also fixes the standardisation from its own X, so
        give it more than a few samples, or standardise the data yourself.
        """
        first = not hasattr(self, "network_")
        X, y, counts = self._labelled(X, y, sample_weight, reset=first)
        if isinstance(self.class_weight, str):
            raise ValueError(f"class_weight={self.class_weight!r} needs all of the data: give partial_fit a dict")
        if first and classes is not None:
            self._know_classes(y, classes)
        elif first:
            self._name_classes(y)
        else:
            self._add_classes(y, classes)
        numbers = self._numbers(y)
        counts = class_counts(self.class_weight, self._classes, numbers, counts)
        X, numbers, counts = dropped(X, numbers, counts)
        if first:
            self._start(X, counts)
        self._pass_once(self._samples(X, self._target(numbers), counts))
        return self

    def predict(self, X: ArrayLike, method: str = "bayes") -> NDArray[Any]:
        """Labels (samples,) or (samples, targets), from the posterior ("bayes") or from the most probable weights
        ("point").

        "bayes" agrees with ``predict_proba``, "point" with a network exported as bits.
        """
        if method != "bayes":
            return self._labels(self._predicted(X, lambda x: in_float64(self.network_).predict(x, method)))
        p = self._proba(X)
        if not self._several:
            return self._labels(p.argmax(dim=1))
        return self._labels(torch.stack([part.argmax(dim=1) for part in self._blocks(p)], dim=1))

    def predict_proba(self, X: ArrayLike) -> PerClass:
        """Bayesian probabilities (samples, classes), in the order of ``classes_``, from one pass of the moments; of
        several targets a list of them, of labels that are there or not P(there) (samples, labels)."""
        return self._per_class(self._proba(X))

    def predict_log_proba(self, X: ArrayLike) -> PerClass:
        """The logarithm of ``predict_proba``."""
        p = self._proba(X)
        return self._per_class(torch.log(p))

    def decision_function(self, X: ArrayLike) -> PerClass:
        """log p₁/p₀ (samples,) of two classes, log p (samples, classes) of more; of several targets a list, of labels
        that are there or not (samples, labels). A probability of 0 counts as the smallest number."""
        log_p = torch.log(self._proba(X).clamp_min(torch.finfo(torch.float64).tiny))
        blocks = [_log_odds(part) for part in (self._blocks(log_p) if self._several else [log_p])]
        if self._indicator:
            return np.stack(blocks, axis=1)
        return blocks if self._several else blocks[0]

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The fraction of samples, each as often as it counts, whose labels are all right."""
        check_is_fitted(self, "network_")
        if self._several:
            right = np.all(np.asarray(y) == self.predict(X), axis=1)
            return float(np.average(right, weights=sample_counts(sample_weight, right)))
        return float(super().score(X, y, sample_weight))

    def predictive_entropy(self, X: ArrayLike, n: int = 30, random_state: RandomState = None) -> Entropies:
        """Entropy of the predictions (samples,) in nats, as (total, aleatoric, epistemic), from ``n`` weight draws.

        The epistemic part is the mutual information of label and weights; see ``cavity.uncertainty``.
        """
        check_is_fitted(self, "network_")
        if self._several:
            raise ValueError("predictive_entropy is for one target, not several")

        def parts(x: Tensor) -> Tensor:
            if len(self.classes_) == 1:
                return x.new_zeros(len(x), 3)
            return torch.stack(
                predictive_entropy(in_float64(self.network_), x, n, self._generator(random_state)), dim=1
            )

        return Uncertainty(*self._predicted(X, parts).numpy().T)

    def predict_with(self, X: ArrayLike, weights: Sequence[NDArray[np.float32]]) -> NDArray[Any]:
        """Labels (samples,) predicted with the given weights, such as one draw of ``sample``."""
        return self._labels(self._predict_with(X, weights))

    def trained_network(self, inputs: str = "real") -> Trained:
        """The network with its standardisation and the names of classes and columns, as ``cavity.export`` takes it.

        ``inputs`` "pixels" says that X are whole numbers from 0 to 255.
        """
        check_is_fitted(self, "network_")
        if len(self.classes_) < FEWEST_UNITS:
            raise ExportError(f"a classifier of a single class, {self.classes_[0]}, cannot be exported")
        scaler = self.scaler_
        mean, std = (0.0, 1.0) if scaler is None else (scaler.mean_, scaler.scale_)
        kinds = {"real": Inputs.real, "pixels": lambda m, s: Inputs.pixels(np.divide(m, WHITE), np.divide(s, WHITE))}
        if inputs not in kinds:
            raise ValueError(f"inputs must be one of {', '.join(kinds)}, got {inputs!r}")
        names = tuple(map(str, getattr(self, "feature_names_in_", ())))
        classes = tuple(map(str, self.classes_))
        return Trained(self.network_, kinds[inputs](mean, std), classes, names, self.image_shape_)

    def export(
        self,
        path: AnyPath,
        format: str | None = None,
        *,
        calibrate: tuple[ArrayLike, ArrayLike] | None = None,
        test: tuple[ArrayLike, ArrayLike] | None = None,
        inputs: str = "real",
        **options: Any,
    ) -> Exported:
        """Write the most probable weights as C, a Python file, a page, an Arduino library, packed bits or ONNX.

        The format is by the path's ending, unless ``format`` says it. ``calibrate`` are (X, y) for its confidence, best
        ones that it was not fitted on; ``test`` are (X, y) for the accuracy of exactly what is exported, which is
        returned. ``inputs`` "pixels" says that X are whole numbers from 0 to 255. Other ``options`` are those of
        ``cavity.export.export``. Only sign units can be exported: ``activation="sign"``.
        """
        trained = self.trained_network(inputs)
        fitted, tested = (None if pair is None else self._pair(*pair) for pair in (calibrate, test))
        return export(trained, path, format, calibrate=fitted, test=tested, **options)

    def _pair(self, X: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Samples as rows, and their class indices."""
        rows, labels, _ = self._labelled(X, y, None, reset=False)
        array = rows if isinstance(rows, np.ndarray) else rows.toarray()
        if len(unknown := np.setdiff1d(labels, self.classes_)):
            raise ValueError(f"y must only hold labels from classes {self.classes_}, got {unknown}")
        return array, np.searchsorted(self.classes_, labels)

    def _proba(self, X: ArrayLike) -> Tensor:
        """Probabilities of all output units."""
        check_is_fitted(self, "network_")
        p = self._predicted(X, lambda x: in_float64(self.network_).predict_proba(x))
        if self._several:
            return p
        p = p[:, : len(self.classes_)]
        return p / p.sum(dim=1, keepdim=True)

    def _output(self) -> tuple[int, str | Several]:
        units = self._units()
        return sum(units), Several(units) if self._several else "argmax"

    def _add_classes(self, y: NDArray[Any], classes: Any) -> None:
        """Take the labels of y, and of a list, that are not known yet, and give each a unit."""
        if self._indicator or (y.ndim == 2) != self._several:
            return
        columns = y.T if self._several else [y]
        listed = [[]] * len(columns) if classes is None else classes if self._several else [classes]
        if not len(listed) == len(columns) == len(self._classes):
            raise ValueError(f"classes and y must have {len(self._classes)} targets, got {len(listed)}, {len(columns)}")
        old, units = self._classes, self._units()
        new = [united(*lists) for lists in zip(old, columns, listed, strict=True)]
        if all(len(now) == len(before) for now, before in zip(new, old, strict=True)):
            return
        self.classes_ = new if self._several else new[0]
        rows = rows_of(old, new, units, self._units())
        output = self._output()[1]
        channel = output if isinstance(output, Several) else None
        self.network_ = with_outputs(self.network_, rows, output=channel, seed=self.seed_ + self.n_steps_)
        self.stream_ = self.stream_.with_classes(rows)

    def _labelled(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, reset: bool
    ) -> tuple[Rows, NDArray[Any], NDArray[np.float64] | None]:
        """Checked inputs, labels and counts, without the samples that count 0 times."""
        array, labels, counts = self._checked(X, y, sample_weight, reset)
        check_classification_targets(labels)
        return dropped(array, labels, counts)


def _log_odds(log_p: Tensor) -> NDArray[np.float64]:
    """log p₁/p₀ of two classes, log p of any other number."""
    return ((log_p[:, 1] - log_p[:, 0]) if log_p.shape[1] == 2 else log_p).numpy()
