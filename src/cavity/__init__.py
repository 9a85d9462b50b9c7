"""Neural networks trained by message passing: ±1 weights with honest probabilities.

Importing this package is cheap: torch is imported with the first name that needs it.
"""

from typing import TYPE_CHECKING

from cavity._lazy import lazy

if TYPE_CHECKING:
    from cavity.channels import ArgMax, GaussianOutput, Identity, Label, ReLU, Sign
    from cavity.couplings import Conv2d, Dense
    from cavity.estimator import MessagePassingClassifier, MessagePassingRegressor
    from cavity.network import Layer, Network, mlp
    from cavity.priors import Atoms, Binary, Gaussian, Ternary
    from cavity.trainer import NonFiniteField, Trainer

__version__ = "0.1.0"

__all__ = [
    "ArgMax",
    "Atoms",
    "Binary",
    "Conv2d",
    "Dense",
    "Gaussian",
    "GaussianOutput",
    "Identity",
    "Label",
    "Layer",
    "MessagePassingClassifier",
    "MessagePassingRegressor",
    "Network",
    "NonFiniteField",
    "ReLU",
    "Sign",
    "Ternary",
    "Trainer",
    "mlp",
]

_HOME = {
    "cavity.channels": ("ArgMax", "GaussianOutput", "Identity", "Label", "ReLU", "Sign"),
    "cavity.couplings": ("Conv2d", "Dense"),
    "cavity.estimator": ("MessagePassingClassifier", "MessagePassingRegressor"),
    "cavity.network": ("Layer", "Network", "mlp"),
    "cavity.priors": ("Atoms", "Binary", "Gaussian", "Ternary"),
    "cavity.trainer": ("NonFiniteField", "Trainer"),
}
_MODULES = (
    "calibration",
    "callbacks",
    "data",
    "export",
    "landscape",
    "metrics",
    "packed",
    "report",
    "runs",
    "sweep",
    "uncertainty",
)

__getattr__, __dir__ = lazy(__name__, {name: home for home, names in _HOME.items() for name in names}, _MODULES)
