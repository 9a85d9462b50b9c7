"""Networks of one bit a weight, in NumPy alone: no torch is imported.

net = cavity.packed.load("net.cavity")     # written by cavity export --format packed
net.predict(pixels)                        # class indices of samples (samples, features)
net.predict(pixels, names=True)            # the names of the classes
"""

from cavity.packed.description import Description, InputCode, Weights
from cavity.packed.errors import PackedError
from cavity.packed.file import load
from cavity.packed.network import PackedNetwork

__all__ = ["Description", "InputCode", "PackedError", "PackedNetwork", "Weights", "load"]
