"""Channels φ: activations between layers and outputs on top. Adding one is a class and its place in the registry."""

from cavity.core.channels.argmax import ArgMax
from cavity.core.channels.base import Activation, Channel, Output
from cavity.core.channels.gaussian import GaussianOutput, Identity
from cavity.core.channels.piecewise import Absolute, Gate, HardTanh, LeakyReLU, PiecewiseLinear, RelativeGate, Step
from cavity.core.channels.relu import ReLU
from cavity.core.channels.several import Several
from cavity.core.channels.sign import Label, Sign
from cavity.util.registry import Registry

ACTIVATIONS: Registry[Activation] = Registry(
    "activation", Sign, ReLU, Identity, Step, Gate, RelativeGate, LeakyReLU, HardTanh, Absolute
)
OUTPUTS: Registry[Output] = Registry("output", Label, ArgMax, GaussianOutput)

__all__ = [
    "ACTIVATIONS",
    "OUTPUTS",
    "Absolute",
    "Activation",
    "ArgMax",
    "Channel",
    "Gate",
    "GaussianOutput",
    "HardTanh",
    "Identity",
    "Label",
    "LeakyReLU",
    "Output",
    "PiecewiseLinear",
    "ReLU",
    "RelativeGate",
    "Several",
    "Sign",
    "Step",
]
