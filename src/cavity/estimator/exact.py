"""Networks in float64, for predictions: a row's must not depend on the rows around it, and rounding does.

A copy is kept as long as its network, and made anew where what the network holds has been replaced or changed. For one
row, making it takes longer than the prediction.
"""

from __future__ import annotations

import copy
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor

from cavity.core.network import Network

#: What was copied and the copy. The tensors are kept so that no other can have their place in memory.
_copies: WeakKeyDictionary[Network, tuple[list[Any], list[Tensor], Network]] = WeakKeyDictionary()


def in_float64(network: Network) -> Network:
    """``network`` with the same posterior in float64."""
    tensors = [tensor for part in network.snapshot() for tensor in part.values() if tensor is not None]
    state: list[Any] = [network.output.noise, *((id(tensor), tensor._version) for tensor in tensors)]
    known = _copies.get(network)
    if known is None or known[0] != state:
        known = _copies[network] = state, tensors, copy.deepcopy(network).double()
    return known[2]
