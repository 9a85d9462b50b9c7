"""Channels φ: activations between layers and outputs on top. One module of pure functions for each."""

from cavity.channels.argmax import ArgMax
from cavity.channels.base import Activation, Channel, Output
from cavity.channels.gaussian import GaussianOutput, Identity
from cavity.channels.relu import ReLU
from cavity.channels.sign import Label, Sign

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
