"""Channels φ: activations between layers and outputs on top. One module of pure functions for each."""

from cavity.core.channels.argmax import ArgMax
from cavity.core.channels.base import Activation, Channel, Output
from cavity.core.channels.gaussian import GaussianOutput, Identity
from cavity.core.channels.relu import ReLU
from cavity.core.channels.sign import Label, Sign

ACTIVATIONS: dict[str, type[Activation]] = {"sign": Sign, "relu": ReLU, "identity": Identity}
OUTPUTS: dict[str, type[Output]] = {"label": Label, "argmax": ArgMax, "gaussian": GaussianOutput}

__all__ = [
    "ACTIVATIONS",
    "OUTPUTS",
    "Activation",
    "ArgMax",
    "Channel",
    "GaussianOutput",
    "Identity",
    "Label",
    "Output",
    "ReLU",
    "Sign",
]
