"""Networks with one bit per weight, using NumPy only: torch is not imported.

net = cavity.packed.load("net.cavity")     # written by cavity export --format packed
net.predict(pixels)                        # class indices of samples (samples, features)
net.predict(pixels, names=True)            # class names
"""

from cavity.packed.description import Description, InputCode, Weights
from cavity.packed.file import PackedError, load
from cavity.packed.network import PackedNetwork

__all__ = ["Description", "InputCode", "PackedError", "PackedNetwork", "Weights", "load"]
