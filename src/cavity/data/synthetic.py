"""Generated data: teacher–student, random labels, and the hidden manifold of Goldt et al. (2020).

Everything comes from ``seed``; the teacher, the training set and the test set have streams of their own, so
that more training samples change neither the teacher nor the test set.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cavity.data.raw import Part, Raw, Statistics
from cavity.util.text import shown

_TEACHER, _TRAIN, _TEST, _FEATURES = range(4)
_CHOICES = {
    "inputs": ("gaussian", "binary"),
    "teacher": ("binary", "gaussian"),
    "nonlinearity": ("sign", "tanh", "relu"),
}


def _stream(seed: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng([seed, purpose])


def _draw(kind: str, random: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float32]:
    """Independent entries of mean 0 and variance 1: normal ("gaussian") or ±1 ("binary")."""
    if kind == "binary":
        return (2 * random.integers(0, 2, shape, dtype=np.int8) - 1).astype(np.float32)
    return random.standard_normal(shape, dtype=np.float32)


def _sign(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """The sign, with sign(0) = +1."""
    return np.where(x >= 0, np.float32(1), np.float32(-1))


def draw_teacher(
    n_inputs: int, *, hidden: tuple[int, ...] = (), n_classes: int = 2, teacher: str = "binary", seed: int = 0
) -> list[NDArray[np.float32]]:
    """The teacher's weights, one (outputs, inputs) matrix per layer; the last has one row for two classes."""
    widths = (n_inputs, *hidden, 1 if n_classes == 2 else n_classes)
    random = _stream(seed, _TEACHER)
    return [_draw(teacher, random, (outputs, inputs)) for inputs, outputs in itertools.pairwise(widths)]


def teach(weights: list[NDArray[np.float32]], x: NDArray[np.float32]) -> NDArray[np.int64]:
    """The teacher's class of every sample: h ← sign(W h), in the last layer 1[W h ≥ 0] or argmax W h.

    Of equal scores, frequent where few ±1 units meet ±1 weights, the first wins.
    """
    for matrix in weights[:-1]:
        x = _sign(x @ matrix.T)
    scores = x @ weights[-1].T
    if scores.shape[1] == 1:
        return (scores[:, 0] >= 0).astype(np.int64)
    return np.asarray(scores.argmax(axis=1), np.int64)


@dataclass(frozen=True)
class Generator:
    """What all generators have in common; ``sample`` draws one part from a stream of its own."""

    name: ClassVar[str]
    statistics: ClassVar[Statistics] = "none"
    n_features: int = 501
    n_train: int = 5000
    n_test: int = 1000
    n_classes: int = 2

    def __post_init__(self) -> None:
        """Every option against what it may be: choices by name, counts from 1, classes from 2, noise in 0…1."""
        for option in (field.name for field in fields(self)):
            value, where = getattr(self, option), f"{self.name}: {option}"
            if option in _CHOICES:
                if value not in _CHOICES[option]:
                    raise ValueError(f"{where} is {value!r}, expected one of {', '.join(_CHOICES[option])}")
            elif option == "noise":
                if not 0 <= value <= 1:
                    raise ValueError(f"{where} is {value}, expected a probability")
            else:
                least = 2 if option == "n_classes" else 1
                for number in value if option == "teacher_hidden" else (value,):
                    if isinstance(number, bool) or not isinstance(number, int) or number < least:
                        raise ValueError(f"{where} is {value!r}, expected whole numbers from {least}")

    def sample(self, seed: int, purpose: int, n: int) -> Part:
        raise NotImplementedError

    def generate(self, seed: int) -> Raw:
        train, test = self.sample(seed, _TRAIN, self.n_train), self.sample(seed, _TEST, self.n_test)
        classes = ("-1", "+1") if self.n_classes == 2 else tuple(map(str, range(self.n_classes)))
        return Raw(self.name, train, test, classes, self.statistics)


@dataclass(frozen=True)
class RandomLabels(Generator):
    """x iid, y uniform and independent of x: there is nothing to learn but the training set itself.

    ``inputs``: "gaussian" or "binary" entries of x. The test error stays at chance.
    """

    name = "random-labels"
    n_train: int = 250
    inputs: str = "gaussian"

    def sample(self, seed: int, purpose: int, n: int) -> Part:
        random = _stream(seed, purpose)
        x = _draw(self.inputs, random, (n, self.n_features))
        return Part(x, random.integers(0, self.n_classes, n))


@dataclass(frozen=True)
class Taught(Generator):
    """Labels by a teacher, a network with ±1 (or normal) weights and sign units.

    ``teacher``: its weights, "binary" or "gaussian". ``teacher_hidden``: widths of its hidden layers, none for a
    perceptron. ``noise``: probability that a training label is wrong; test labels are right.
    """

    teacher: str = "binary"
    teacher_hidden: tuple[int, ...] = ()
    noise: float = 0.0

    def _labels(
        self, x: NDArray[np.float32], seed: int, purpose: int, random: np.random.Generator
    ) -> NDArray[np.int64]:
        """The teacher's classes of x (samples, inputs), some of them replaced by one of the other classes."""
        options: dict[str, Any] = {"hidden": self.teacher_hidden, "n_classes": self.n_classes, "teacher": self.teacher}
        y = teach(draw_teacher(x.shape[1], seed=seed, **options), x)
        if purpose == _TEST:
            return y
        shift = random.integers(1, self.n_classes, len(y))
        return np.where(random.random(len(y)) < self.noise, (y + shift) % self.n_classes, y)


@dataclass(frozen=True)
class TeacherStudent(Taught):
    """x iid, y = teacher(x). ``inputs``: "gaussian" or "binary" entries of x."""

    name = "teacher-student"
    inputs: str = "gaussian"

    def sample(self, seed: int, purpose: int, n: int) -> Part:
        random = _stream(seed, purpose)
        x = _draw(self.inputs, random, (n, self.n_features))
        return Part(x, self._labels(x, seed, purpose, random))


@dataclass(frozen=True)
class HiddenManifold(Taught):
    """x = f(F c/√D) with latent c ∈ ℝᴰ and features F (n_features, D), both normal; y = teacher(c).

    The labels depend on the latent coordinates alone. ``n_latent`` is D; ``nonlinearity`` is f: "sign", "tanh", "relu".
    """

    name = "hidden-manifold"
    statistics = "overall"
    n_features: int = 784
    n_latent: int = 20
    nonlinearity: str = "sign"
    teacher: str = "gaussian"

    def sample(self, seed: int, purpose: int, n: int) -> Part:
        random = _stream(seed, purpose)
        features = _draw("gaussian", _stream(seed, _FEATURES), (self.n_features, self.n_latent))
        c = _draw("gaussian", random, (n, self.n_latent))
        u = c @ features.T / np.float32(math.sqrt(self.n_latent))
        x = _sign(u) if self.nonlinearity == "sign" else np.tanh(u) if self.nonlinearity == "tanh" else np.maximum(u, 0)
        return Part(x, self._labels(c, seed, purpose, random))


GENERATORS: dict[str, type[Generator]] = {one.name: one for one in (TeacherStudent, RandomLabels, HiddenManifold)}


def option_names(name: str) -> tuple[str, ...]:
    """The options a generator takes."""
    return tuple(field.name for field in fields(GENERATORS[name]))


def generate(name: str, seed: int, options: dict[str, Any]) -> Raw:
    """The data of a generator; an unknown option is an error that lists those there are."""
    unknown = sorted(set(options) - set(option_names(name)))
    if unknown:
        raise TypeError(f"{name} has no option {shown(', '.join(unknown))}; it has {', '.join(option_names(name))}")
    if "teacher_hidden" in options:
        options = {**options, "teacher_hidden": tuple(options["teacher_hidden"])}
    return GENERATORS[name](**options).generate(seed)
