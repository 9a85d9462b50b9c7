"""A classifier and a regressor for river's streams: ``learn_one``, ``predict_one`` and ``predict_proba_one``.

    from cavity.estimator.river import StreamClassifier

They need river: ``pip install "cavity[river]"``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from cavity.core.channels import GaussianOutput
from cavity.estimator.checks import seed_of, widths
from cavity.estimator.naming import FEWEST_UNITS
from cavity.estimator.online import OnlineNetwork, Running
from cavity.estimator.regressor import FIRST_NOISE, GUESSED, SMALLEST_NOISE
from cavity.training.settings import checked_memory

try:
    from river import base
except ImportError as error:
    raise ImportError("learning one sample at a time needs river: pip install 'cavity[river]'") from error

Features = dict[Hashable, Any]


class _Stream:
    """Parameters of both."""

    def __init__(
        self,
        hidden: Sequence[int] = (101,),
        weights: str = "binary",
        activation: str = "sign",
        algorithm: str = "mf",
        memory: float = 10_000.0,
        standardize: bool = True,
        seed: int | None = None,
    ) -> None:
        self.hidden, self.weights, self.activation, self.algorithm = hidden, weights, activation, algorithm
        self.memory, self.standardize, self.seed = memory, standardize, seed
        self._online: OnlineNetwork | None = None
        self._begin()

    def _begin(self) -> None:
        """What else there is before the first sample."""

    def _network(self, outputs: int, output: GaussianOutput | str) -> OnlineNetwork:
        return OnlineNetwork(
            widths(self.hidden),
            self.weights,
            self.activation,
            self.algorithm,
            checked_memory(self.memory),
            output,
            outputs,
            bool(self.standardize),
            seed_of(self.seed),
        )


class StreamClassifier(_Stream, base.Classifier):
    """A network trained by message passing on one sample after the other.

    Features and classes may appear at any time, and each gets its weights when it does; what is absent counts as its
    mean. A step takes the time of a few hundred NumPy calls for ±1 weights with sign or gate units under mean field;
    anything else goes through PyTorch, which takes about ten times as long.

    Parameters
    ----------
    hidden
        Widths of the hidden layers. For ±1 weights odd ones, so that a sum of votes is never 0.
    weights
        A kind of weights by name, such as "binary" or "ternary".
    activation
        Of the hidden units, by name: "sign", "relative-gate" or any other.
    algorithm
        Message passing by name.
    memory
        What was learnt that many samples ago has faded to 1/e. ``math.inf`` never forgets: it learns slowly, because
        all samples to come must find room, and hardly follows a change.
    standardize
        Whether features are brought to mean 0 and variance 1, by what has been seen so far.
    seed
        Of the initial weights.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from cavity.estimator.river import StreamClassifier
    >>> model = StreamClassifier(seed=0)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())  # doctest: +SKIP
    """

    def _begin(self) -> None:
        #: Which unit is whose.
        self._units: dict[Any, int] = {}

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Features, y: Any) -> None:
        """Learn one sample."""
        if self._online is None:
            self._online = self._network(FEWEST_UNITS, "argmax")
        online, known = self._online, y in self._units
        online.widen(x)
        if not known:
            self._units[y] = len(self._units)
            if len(self._units) > online.outputs:
                online.more_outputs(len(self._units))
        online.learn(x, self._units[y])

    def predict_proba_one(self, x: Features, **kwargs: Any) -> dict[Any, float]:
        """P of every class that has been seen."""
        if self._online is None or self._online.net is None:
            return {}
        p = self._online.probabilities(x)[: len(self._units)]
        total = float(p.sum())
        # A unit that stands for no class may have it all.
        shares = (p / total).tolist() if total > 0 else [1 / len(p)] * len(p)
        return dict(zip(self._units, shares, strict=True))


class StreamRegressor(_Stream, base.Regressor):
    """A network trained by message passing on y = z + noise, one sample after the other.

    The parameters are those of ``StreamClassifier``. The target is standardised by what has been seen so far, and the
    variance ν of its noise follows the residuals e = t − ω: before it is learnt, a sample has E[noise²] =
    (eν/(V + ν))² + Vν/(V + ν).
    """

    def _begin(self) -> None:
        self._target = Running()
        self._target.widen(1)

    def learn_one(self, x: Features, y: float) -> None:
        """Learn one sample."""
        if not math.isfinite(y):
            raise ValueError(f"y must be finite, got {y!r}")
        if self._online is None:
            self._online = self._network(1, GaussianOutput(FIRST_NOISE))
        self._online.widen(x)
        values = np.array([float(y)])
        self._target.add(values)
        t = float(self._target.scaled(values)[0])
        omega, V = (float(part[0]) for part in self._online.learn(x, t))
        output = self._output()
        share = output.noise / (V + output.noise)
        found = ((t - omega) * share) ** 2 + V * share
        before = min(float(self._target.count[0]) + GUESSED, self.memory)
        output.noise = max((before * output.noise + found) / (before + 1), SMALLEST_NOISE)

    def predict_one(self, x: Features) -> float:
        """The mean of y."""
        mean, deviation = float(self._target.mean[0]), math.sqrt(float(self._target.square[0]))
        if self._online is None or self._online.net is None:
            return mean
        omega, _ = self._online.preactivations(x)
        return mean + deviation * float(omega[0])

    def _output(self) -> GaussianOutput:
        assert self._online is not None
        assert self._online.net is not None
        output = self._online.net.output
        assert isinstance(output, GaussianOutput)
        return output
