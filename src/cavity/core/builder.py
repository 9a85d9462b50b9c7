"""From an architecture in words to a network."""

from __future__ import annotations

import math
from typing import cast

from cavity.core.architecture import Row, rows
from cavity.core.channels import Activation, Output
from cavity.core.couplings import Conv2d, Coupling, Dense
from cavity.core.layer import Layer
from cavity.core.network import Network, Part, usual_output, wants_threshold
from cavity.core.pools import AveragePool, MaxPool
from cavity.core.priors import PRIORS, Prior
from cavity.core.whitening import Whitening


def network(
    layers: str,
    input_shape: int | tuple[int, ...],
    outputs: int,
    *,
    weights: Prior | str = "binary",
    activation: Activation | str = "sign",
    output: Output | str | None = None,
    bias: bool = False,
    threshold: bool = False,
    density: float = 1.0,
    init: float = 1.0,
    seed: int = 0,
) -> Network:
    """A network in words, e.g. ``network("conv:64:5:2,pool:2,dense:501", (1, 28, 28), 10)``.

    Args:
        layers: the layers below the readout, from the first to the last: ``conv:CHANNELS:KERNEL[:STRIDE[:PADDING]]``,
            ``pool:SIZE`` (the largest of each window), ``average:SIZE``, ``dense:UNITS``; first perhaps
            ``white:COMPONENTS:KERNEL[:STRIDE]``, whitened patches; a name, "lenet" or "cnv"; or "none".
        input_shape: (channels, height, width) of images, or the number of inputs.
        outputs: units of the readout: one for each class, or a single one for a ±1 label.
        weights: a kind of weights or its name, for all layers.
        activation: of all units but the readout's.
        output: what is on top; by default a label for one unit and an argmax for several.
        bias: one more weight for every unit, of the same kind as the others.
        threshold: a real number added to the sum of every unit or channel. A readout of weights that become certain
            has none: it stays uncertain itself, so that a number which suits its posterior would not suit its most
            probable weights.
        density: the fraction of the weights that exist.
        init: the paper's ε.
        seed: of masks and initial weights.
    """
    shape = (input_shape,) if isinstance(input_shape, int) else tuple(input_shape)
    prior = PRIORS.make(weights, "weights")
    chain: list[Part] = []
    found = rows(layers, shape, outputs)
    for row in found:
        if row.stage.kind == "white":
            chain.append(Whitening(_image(row), row.stage.size, row.stage.kernel, row.stage.stride))
            continue
        if row.stage.kind in POOLS:
            chain.append(POOLS[row.stage.kind](row.stage.size))
            continue
        first = not any(isinstance(part, Layer) for part in chain)
        own = threshold and wants_threshold(prior, first=first, last=row is found[-1])
        layer = Layer(coupling_of(row, bias), prior, density=density, init=init, threshold=own)
        chain += [layer, activation]
    return Network([*chain[:-1], usual_output(outputs) if output is None else output], seed=seed)


def _image(row: Row) -> tuple[int, int, int]:
    return cast(tuple[int, int, int], row.takes)


POOLS = {"pool": MaxPool, "average": AveragePool}


def coupling_of(row: Row, bias: bool = False) -> Coupling:
    """The coupling of a dense or convolutional row."""
    stage = row.stage
    if stage.kind == "dense":
        return Dense(math.prod(row.takes), stage.size, bias=bias)
    return Conv2d(_image(row), stage.size, stage.kernel, stage.stride, stage.padding, bias=bias)
