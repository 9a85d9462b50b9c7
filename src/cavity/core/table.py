"""A network as a table: its layers, their shapes, how many weights they have, and the products that a sample costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cavity.core.couplings import Conv2d, Coupling

if TYPE_CHECKING:
    from cavity.core.network import Network

HEAD = ("layer", "gives", "weights", "products per sample")


def table(net: Network) -> str:
    """One line for each layer, one for each activation with its pool, and the sums."""
    lines: list[Sequence[str]] = [HEAD, ("input", _shape(net.input_shape), "", "")]
    if net.front is not None:
        lines.append((f"whitening {_coupling(net.front.coupling)[5:]}", _shape(net.front.output_shape), "fixed", ""))
    weights = products = 0
    names = [*(activation.name for activation in net.activations), net.output.name]
    tops = zip(names, (*net.pools, None), strict=True)
    for layer, (name, pool) in zip(net.weighted(), tops, strict=True):
        cost = layer.free_weights * layer.coupling.positions
        weights, products = weights + layer.free_weights, products + cost
        gives = layer.coupling.output_shape
        known = f"{layer.free_weights:,} {layer.prior.name}"
        known += f" + {layer.shape[0]:,} thresholds" if layer.threshold is not None else ""
        lines.append((_coupling(layer.coupling), _shape(gives), known, f"{cost:,}"))
        above = name if pool is None else f"{name}, {pool!r}"
        lines.append((f"  {above}", _shape(gives if pool is None else pool.output_shape(gives)), "", ""))
    lines.append(("total", "", f"{weights:,}", f"{products:,}"))
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    rows = ("  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip() for line in lines)
    return "\n".join(rows)


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _coupling(coupling: Coupling) -> str:
    if not isinstance(coupling, Conv2d):
        return f"dense {math.prod(coupling.input_shape)} to {coupling.outputs}"
    text = f"conv {_shape(coupling.kernel)}"
    text += f", stride {_side(coupling.stride)}" if coupling.stride != (1, 1) else ""
    return text + (f", padding {_side(coupling.padding)}" if coupling.padding != (0, 0) else "")


def _side(pair: tuple[int, int]) -> str:
    return str(pair[0]) if pair[0] == pair[1] else _shape(pair)
