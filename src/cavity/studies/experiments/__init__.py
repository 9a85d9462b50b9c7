"""Every table and figure of the paper, one small module each, at one of three scales: the paper's, a reduced one, or a
smoke test.

Importing this package is cheap: an experiment's module is imported when it is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

#: Name → what it shows in a line.
EXPERIMENTS: dict[str, str] = {
    "table-datasets": (
        "test and training errors of BinaryNet, BP, AMP and MF on three data sets, two-class and multi-class"
    ),
    "table-annealed": (
        "errors, NLL and ECE of the annealed recipe on the same six tasks, beside BinaryNet with and without a schedule"
    ),
    "convolutions": (
        "convolutional networks of ±1 weights on three data sets: MF, BP, and BinaryNet with batch normalisation"
    ),
    "curves-architectures": (
        "learning curves on Fashion-MNIST for several architectures and batch sizes, epochs to a given error"
    ),
    "sparsity": "test error against the fraction of masked weights, MNIST",
    "bayesian-binary": "point-wise and Bayesian error with binary weights, two-class MNIST: BP, EBP, gradient descent",
    "bayesian-continuous": (
        "point-wise and Bayesian error with continuous weights, two-class MNIST: BP, EBP, gradient descent"
    ),
    "bayesian-multiclass": (
        "point-wise and Bayesian error with ten classes: what rho and damping make the Bayesian one reliably better"
    ),
    "continual": "six permuted MNIST tasks in sequence: BP, BinaryNet, and MF with a memory",
    "permuted-stream": (
        "a long stream of permuted MNIST tasks, one epoch each, without task boundaries: what is kept of the last ones"
    ),
    "argmax-versions": "the paper's two argmax outputs and the exact one",
    "local-energy": "training error against the fraction of flipped weights",
    "polarization": "polarisation and overlaps of each layer beside the errors",
    "initialization": "distribution of the initial magnetisations",
    "fixed-hyperparameters": "what rho = 1 and damping 0.8 everywhere lose against the tuned values",
    "timing": "time per epoch against batch size",
}
#: Appended to a data set's name: odd classes against even ones.
TWO_CLASS = "-two-class"
SCALES = ("smoke", "laptop", "paper")
#: Told (epochs done, epochs in all) after each epoch.
Progress = Callable[[int, int], None]
#: Training and test samples of a smoke test.
SMOKE_SAMPLES = (400, 200)


@dataclass(frozen=True)
class Size:
    """``width`` is that of the hidden layers, unless the experiment varies it; ``samples`` None means all data;
    ``options`` are those that only this experiment has."""

    epochs: int
    seeds: int
    datasets: tuple[str, ...]
    width: int = 501
    samples: tuple[int, int] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """What the command line asks for; None keeps the scale's own value."""

    scale: str = "paper"
    seeds: int | None = None
    epochs: int | None = None
    datasets: tuple[str, ...] | None = None
    #: Of all cells, only those of these methods.
    methods: tuple[str, ...] | None = None
    #: For the experiments that have them.
    hidden: int | None = None
    tasks: int | None = None
    memory: float | None = None

    def size(self, sizes: Mapping[str, Size]) -> Size:
        """The size of the scale, with the user's changes; ValueError for one that the experiment does not have."""
        given: dict[str, Any] = {"seeds": self.seeds, "epochs": self.epochs, "datasets": self.datasets}
        size = sizes[self.scale]
        wanted: dict[str, Any] = {"tasks": self.tasks, "memory": self.memory}
        if self.hidden is not None and "widths" in size.options:
            wanted["widths"] = (self.hidden,)
        else:
            given["width"] = self.hidden
        changes = {name: value for name, value in wanted.items() if value is not None}
        for name in changes:
            if name not in size.options:
                raise ValueError(f"this experiment has no --{name}")
        values = {name: value for name, value in given.items() if value is not None}
        return replace(size, **values, options={**size.options, **changes})


def smoke(*, two_class: bool = False, epochs: int = 2, width: int = 21, **options: Any) -> Size:
    """A few hundred of scikit-learn's digits; no download is needed."""
    dataset = "digits" + (TWO_CLASS if two_class else "")
    return Size(epochs, 1, (dataset,), width, SMOKE_SAMPLES, options)
