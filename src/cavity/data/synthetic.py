"""Generated data: teacher–student, random labels, and the hidden manifold of Goldt et al. (2020).

Everything comes from ``seed``; the teacher, the training set and the test set have streams of their own, so
that more training samples change neither the teacher nor the test set.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from cavity.data.raw import Part, Raw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TEACHER, _TRAIN, _TEST, _FEATURES = range(4)
_CHOICES = {
    "inputs": ("gaussian", "binary"),
    "teacher": ("binary", "gaussian"),
    "nonlinearity": ("sign", "tanh", "relu"),
}


def _stream(seed: int, purpose: int) -> np.random.Generator:
    import numpy as np

    return np.random.default_rng([seed, purpose])


def _draw(kind: str, random: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float32]:
    """Independent entries of mean 0 and variance 1: normal ("gaussian") or ±1 ("binary")."""
    import numpy as np

    if kind == "binary":
        return (2 * random.integers(0, 2, shape, dtype=np.int8) - 1).astype(np.float32)
    return random.standard_normal(shape, dtype=np.float32)


def _sign(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """The sign, with sign(0) = +1."""
    import numpy as np

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
    import numpy as np

    for matrix in weights[:-1]:
        x = _sign(x @ matrix.T)
    scores = x @ weights[-1].T
    if scores.shape[1] == 1:
        return (scores[:, 0] >= 0).astype(np.int64)
    return np.asarray(scores.argmax(axis=1), np.int64)


def _flip(y: NDArray[np.int64], noise: float, n_classes: int, random: np.random.Generator) -> NDArray[np.int64]:
    """With probability ``noise`` a label is replaced by one of the other classes."""
    import numpy as np

    shift = random.integers(1, n_classes, len(y))
    return np.where(random.random(len(y)) < noise, (y + shift) % n_classes, y)


def _check(options: Any) -> None:
    """Every option against what it may be: choices by name, counts from 1, classes from 2, noise in 0…1."""
    for field in fields(options):
        value, where = getattr(options, field.name), f"{options.name}: {field.name}"
        if field.name in _CHOICES:
            if value not in _CHOICES[field.name]:
                raise ValueError(f"{where} is {value!r}, expected one of {', '.join(_CHOICES[field.name])}")
        elif field.name == "noise":
            if not 0 <= value <= 1:
                raise ValueError(f"{where} is {value}, expected a probability")
        else:
            least = 2 if field.name == "n_classes" else 1
            for number in value if field.name == "teacher_hidden" else (value,):
                if isinstance(number, bool) or not isinstance(number, int) or number < least:
                    raise ValueError(f"{where} is {value!r}, expected whole numbers from {least}")


def _class_names(n_classes: int) -> tuple[str, ...]:
    return ("-1", "+1") if n_classes == 2 else tuple(str(i) for i in range(n_classes))


@dataclass(frozen=True)
class TeacherStudent:
    """x iid, y = teacher(x): a network with ±1 (or normal) weights and sign units gives the labels.

    ``inputs``: "gaussian" or "binary" entries of x. ``teacher``: its weights, likewise. ``teacher_hidden``:
    widths of its hidden layers, none for a perceptron. ``noise``: probability that a training label is wrong.
    """

    name: ClassVar[str] = "teacher-student"
    n_features: int = 501
    n_train: int = 5000
    n_test: int = 1000
    n_classes: int = 2
    inputs: str = "gaussian"
    teacher: str = "binary"
    teacher_hidden: tuple[int, ...] = ()
    noise: float = 0.0

    def __post_init__(self) -> None:
        _check(self)

    def generate(self, seed: int) -> Raw:
        """Training labels with noise, test labels without."""
        weights = draw_teacher(
            self.n_features,
            hidden=self.teacher_hidden,
            n_classes=self.n_classes,
            teacher=self.teacher,
            seed=seed,
        )
        parts = []
        for purpose, n, noise in ((_TRAIN, self.n_train, self.noise), (_TEST, self.n_test, 0.0)):
            random = _stream(seed, purpose)
            x = _draw(self.inputs, random, (n, self.n_features))
            parts.append(Part(x, _flip(teach(weights, x), noise, self.n_classes, random)))
        return Raw(self.name, parts[0], parts[1], _class_names(self.n_classes), "none")


@dataclass(frozen=True)
class RandomLabels:
    """x iid, y uniform and independent of x: there is nothing to learn but the training set itself.

    ``inputs``: "gaussian" or "binary" entries of x. The test error stays at chance.
    """

    name: ClassVar[str] = "random-labels"
    n_features: int = 501
    n_train: int = 250
    n_test: int = 1000
    n_classes: int = 2
    inputs: str = "gaussian"

    def __post_init__(self) -> None:
        _check(self)

    def generate(self, seed: int) -> Raw:
        """Inputs and labels, both at random."""
        parts = []
        for purpose, n in ((_TRAIN, self.n_train), (_TEST, self.n_test)):
            random = _stream(seed, purpose)
            x = _draw(self.inputs, random, (n, self.n_features))
            parts.append(Part(x, random.integers(0, self.n_classes, n)))
        return Raw(self.name, parts[0], parts[1], _class_names(self.n_classes), "none")


@dataclass(frozen=True)
class HiddenManifold:
    """x = f(F c/√D) with latent c ∈ ℝᴰ and features F (n_features, D), both normal; y = teacher(c).

    The labels depend on the latent coordinates alone. ``n_latent`` is D, ``nonlinearity`` f is "sign", "tanh"
    or "relu"; ``teacher``, ``teacher_hidden`` and ``noise`` as for the teacher–student data.
    """

    name: ClassVar[str] = "hidden-manifold"
    n_features: int = 784
    n_latent: int = 20
    n_train: int = 5000
    n_test: int = 1000
    n_classes: int = 2
    nonlinearity: str = "sign"
    teacher: str = "gaussian"
    teacher_hidden: tuple[int, ...] = ()
    noise: float = 0.0

    def __post_init__(self) -> None:
        _check(self)

    def _inputs(self, c: NDArray[np.float32], features: NDArray[np.float32]) -> NDArray[np.float32]:
        """f(F c/√D), shapes (samples, D) and (n_features, D) → (samples, n_features)."""
        import numpy as np

        u: NDArray[np.float32] = c @ features.T / np.float32(math.sqrt(self.n_latent))
        if self.nonlinearity == "sign":
            return _sign(u)
        if self.nonlinearity == "tanh":
            return np.tanh(u)
        return np.maximum(u, np.float32(0))

    def generate(self, seed: int) -> Raw:
        """Training labels with noise, test labels without."""
        features = _draw("gaussian", _stream(seed, _FEATURES), (self.n_features, self.n_latent))
        weights = draw_teacher(
            self.n_latent,
            hidden=self.teacher_hidden,
            n_classes=self.n_classes,
            teacher=self.teacher,
            seed=seed,
        )
        parts = []
        for purpose, n, noise in ((_TRAIN, self.n_train, self.noise), (_TEST, self.n_test, 0.0)):
            random = _stream(seed, purpose)
            c = _draw("gaussian", random, (n, self.n_latent))
            y = _flip(teach(weights, c), noise, self.n_classes, random)
            parts.append(Part(self._inputs(c, features), y))
        return Raw(self.name, parts[0], parts[1], _class_names(self.n_classes), "overall")


GENERATORS: dict[str, type[TeacherStudent] | type[RandomLabels] | type[HiddenManifold]] = {
    generator.name: generator for generator in (TeacherStudent, RandomLabels, HiddenManifold)
}


def option_names(name: str) -> tuple[str, ...]:
    """The options a generator takes."""
    return tuple(field.name for field in fields(GENERATORS[name]))


def generate(name: str, seed: int, options: dict[str, Any]) -> Raw:
    """The data of a generator; an unknown option is an error that lists those there are."""
    unknown = sorted(set(options) - set(option_names(name)))
    if unknown:
        raise TypeError(f"{name} has no option {', '.join(unknown)}; it has {', '.join(option_names(name))}")
    if "teacher_hidden" in options:
        options = {**options, "teacher_hidden": tuple(options["teacher_hidden"])}
    return GENERATORS[name](**options).generate(seed)
