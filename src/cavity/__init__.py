"""Neural networks trained by message passing: ±1 weights with honest probabilities.

Importing this package is cheap: torch is imported with the first name that needs it.
"""

from typing import TYPE_CHECKING

from cavity.util.lazy import lazy
from cavity.util.version import __version__

if TYPE_CHECKING:
    from cavity.core.builder import network
    from cavity.core.channels import (
        Absolute,
        ArgMax,
        Gate,
        GaussianOutput,
        HardTanh,
        Identity,
        Label,
        LeakyReLU,
        PiecewiseLinear,
        RelativeGate,
        ReLU,
        Sign,
        Step,
    )
    from cavity.core.couplings import Conv2d, Dense
    from cavity.core.layer import Layer
    from cavity.core.network import Network, mlp
    from cavity.core.pools import AveragePool, MaxPool
    from cavity.core.priors import Atoms, Binary, Gaussian, Ternary
    from cavity.core.whitening import Whitening
    from cavity.estimator import MessagePassingClassifier, MessagePassingRegressor
    from cavity.training.trainer import Trainer
    from cavity.training.watch import DivergenceWarning
    from cavity.training.writing import NonFiniteField

__all__ = [
    "Absolute",
    "ArgMax",
    "Atoms",
    "AveragePool",
    "Binary",
    "Conv2d",
    "Dense",
    "DivergenceWarning",
    "Gate",
    "Gaussian",
    "GaussianOutput",
    "HardTanh",
    "Identity",
    "Label",
    "Layer",
    "LeakyReLU",
    "MaxPool",
    "MessagePassingClassifier",
    "MessagePassingRegressor",
    "Network",
    "NonFiniteField",
    "PiecewiseLinear",
    "ReLU",
    "RelativeGate",
    "Sign",
    "Step",
    "Ternary",
    "Trainer",
    "Whitening",
    "__version__",
    "mlp",
    "network",
]

_HOME = {
    "cavity.core.builder": ("network",),
    "cavity.core.channels": (
        "Absolute",
        "ArgMax",
        "Gate",
        "GaussianOutput",
        "HardTanh",
        "Identity",
        "Label",
        "LeakyReLU",
        "PiecewiseLinear",
        "ReLU",
        "RelativeGate",
        "Sign",
        "Step",
    ),
    "cavity.core.couplings": ("Conv2d", "Dense"),
    "cavity.estimator": ("MessagePassingClassifier", "MessagePassingRegressor"),
    "cavity.core.layer": ("Layer",),
    "cavity.core.network": ("Network", "mlp"),
    "cavity.core.pools": ("AveragePool", "MaxPool"),
    "cavity.core.priors": ("Atoms", "Binary", "Gaussian", "Ternary"),
    "cavity.core.whitening": ("Whitening",),
    "cavity.training.trainer": ("Trainer",),
    "cavity.training.writing": ("NonFiniteField",),
    "cavity.training.watch": ("DivergenceWarning",),
}
#: Modules that people use by name, and where they live.
_MODULES = {
    "calibration": "cavity.analysis.calibration",
    "callbacks": "cavity.training.callbacks",
    "data": "cavity.data",
    "entropy": "cavity.analysis.entropy",
    "export": "cavity.export",
    "landscape": "cavity.analysis.landscape",
    "metrics": "cavity.analysis.metrics",
    "packed": "cavity.packed",
    "report": "cavity.report",
    "runs": "cavity.runs",
    "sweep": "cavity.studies.sweep",
    "uncertainty": "cavity.analysis.uncertainty",
}

__getattr__, __dir__ = lazy(__name__, {name: home for home, names in _HOME.items() for name in names}, _MODULES)
