"""Networks with one bit per weight, using NumPy only: torch is not imported.

net = cavity.packed.load("net.cavity")     # written by cavity export --format packed
net.predict(pixels)                        # class indices of samples (samples, features)
net.predict(pixels, names=True)            # class names
net.confidence(pixels)                     # how sure each is, from 0 to 255
"""

from cavity.packed.confidence import Confidence
from cavity.packed.description import Description, InputCode, Weights
from cavity.packed.file import PackedError, load
from cavity.packed.learning import Learner, Learning
from cavity.packed.network import PackedNetwork
from cavity.packed.windows import Convolution, MaxPool, Windows

__all__ = [
    "Confidence",
    "Convolution",
    "Description",
    "InputCode",
    "Learner",
    "Learning",
    "MaxPool",
    "PackedError",
    "PackedNetwork",
    "Weights",
    "Windows",
    "load",
]
