"""From a trained network to what a device starts learning from (``packed/learning.py``), with classes to come.

Hidden weights start as certain as the device can hold them, ±3: the features that were learnt stay, and units that are
close to changing sides learn, in directions of which the known classes make little use (``directions.py``). Readout
weights keep how certain training left them, relative to each other. Those of a new class are all but undecided, and
oppose what the known classes have in common, so that the class does not win before it has been learnt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from cavity.core.channels import ArgMax
from cavity.core.messages import Fields, Moments
from cavity.core.network import Network, mlp
from cavity.core.priors import Binary
from cavity.export.directions import directions
from cavity.export.on_data import standardised
from cavity.export.trained import ExportError, Trained, require_exportable
from cavity.packed.gaussian import COARSE, FINE, LIMIT, RATE, REACH
from cavity.packed.learning import LARGEST_INPUT, LARGEST_RATE, Learner, Learning

#: Where the median |h| of the readout starts, and |h| of a new class.
READOUT_START, FAINT = 4.0, 0.05
#: Rates of the hidden layer, and of the readout of known and new classes; with directions of the known classes, and
#: without. scripts/learn_on_device.py says how they were chosen.
STEERED, PLAIN = (1.2, 0.01, 0.5), (0.3, 0.01, 0.25)
#: How many directions of the pixels and of the hidden units are left alone.
DIRECTIONS = 12, 16
#: Leads are bounded by twice what tables know.
WIDEST = 2 * (REACH >> COARSE)
#: More would overflow 32 bits.
MOST_CLASSES, MOST_HIDDEN = 100, 1 << 14
#: Fraction bits of x, at least and at most.
FEWEST_BITS, MOST_BITS = 4, 8


@dataclass(frozen=True)
class Learn:
    """How an exported network learns.

    ``rates`` are e of the hidden layer, and of the readout weights of known and of new classes; None means ``STEERED``,
    or ``PLAIN`` for a network without directions. ``new_classes`` are names of classes to come; names that the network
    has already start anew. A label that leads by ``margin`` standard deviations has nothing to teach.
    """

    rates: tuple[float, float, float] | None = None
    new_classes: tuple[str, ...] = ()
    margin: float = 1.0

    def __post_init__(self) -> None:
        rates = STEERED if self.rates is None else self.rates
        if not (len(rates) == 3 and all(0 <= rate <= LARGEST_RATE for rate in rates)):
            raise ValueError(f"rates must be three numbers from 0 to {LARGEST_RATE}, got {rates}")
        if not 0 <= self.margin <= WIDEST:
            raise ValueError(f"margin must be a number from 0 to {WIDEST}, got {self.margin}")
        if len(set(self.new_classes)) < len(self.new_classes):
            raise ValueError(f"new_classes must be different names, got {', '.join(self.new_classes)}")


def grown(trained: Trained, learn: Learn) -> Trained:
    """The network with output units for the new classes it does not have yet."""
    require_learnable(trained)
    names = named(trained)
    more = [name for name in learn.new_classes if name not in names]
    if not more:
        return trained
    hidden, readout = trained.net.weighted()
    opposed = -torch.sign(readout.mean.sum(dim=0)) * FAINT
    h = torch.cat([readout.field, opposed.expand(len(more), -1)])
    m = torch.cat([readout.mean, torch.tanh(opposed).expand(len(more), -1)])
    net = mlp(hidden.shape[1], (hidden.shape[0],), len(h))
    below, above = net.weighted()
    below.set_state(hidden.natural, hidden.moments)
    above.set_state(Fields(h, None), Moments(m, 1 - m.square()))
    return replace(trained, net=net, classes=(*names, *more))


def learning(trained: Trained, learn: Learn) -> Learning:
    """What the device needs; ``trained`` has the new classes already."""
    require_learnable(trained)
    hidden, readout = (layer.point() for layer in trained.net.weighted())
    h = trained.net.weighted()[1].field.abs().double()
    new = torch.tensor([name in learn.new_classes for name in named(trained)])
    known = h[~new]
    if not len(known):
        raise ExportError("all classes are new: at least one must have been learnt")
    size = torch.where(new.unsqueeze(1), FAINT, h * (READOUT_START / max(float(known.median()), 1e-12)))
    start = _fields(hidden, torch.full_like(hidden, math.inf)), _fields(readout, size)
    none = np.zeros((0, hidden.shape[1]), np.int8), np.zeros((0, readout.shape[1]), np.int8)
    kept, usual = (none, PLAIN) if trained.directions is None else (trained.directions, STEERED)
    rate, of_known, of_new = (round(rate * (1 << RATE)) for rate in learn.rates or usual)
    class_rates = np.where(new.numpy(), of_new, of_known).astype(np.int32)
    slope, centre, shift, bits = _inputs(trained, hidden.shape[1])
    white, mean = trained.inputs.white, Fraction(float(trained.inputs.mean[0]))
    assert white is not None
    # The thresholds of the packed network, for whatever number of weights is +1.
    sums = range(-hidden.shape[1], hidden.shape[1] + 1, 2)
    thresholds = np.array([math.ceil(white * mean * total) for total in sums], np.int32)
    margin = round(learn.margin * (1 << COARSE))
    return Learning(white, slope, centre, shift, bits, thresholds, rate, class_rates, margin, kept, start)


def steered(trained: Trained, x: ArrayLike) -> Trained:
    """The same with the directions of which samples x of its classes make most use, as inputs of each layer: a device
    that learns new classes leaves these alone."""
    require_learnable(trained)
    x = np.asarray(x)
    v = standardised(trained, x.reshape(len(x), -1))
    units = np.where(v @ trained.net.weighted()[0].point().double().numpy().T >= 0, 1.0, -1.0)
    return replace(trained, directions=(directions(v, DIRECTIONS[0]), directions(units, DIRECTIONS[1])))


def learner(trained: Trained, learn: Learn | None = None) -> Learner:
    """The network as a device would go on training it, with NumPy: ``learn_one(pixels, label)``, ``predict(X)``."""
    learn = Learn() if learn is None else learn
    return Learner(learning(grown(trained, learn), learn))


def _fields(signs: Tensor, size: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.int16]]:
    """|h| = size in units of 2^-12 with these signs; a field of 0 would count as +1."""
    h = (size * (1 << FINE)).clamp(1, LIMIT).round()
    return (h * signs).to(torch.int16).numpy()


def _inputs(trained: Trained, features: int) -> tuple[int, int, int, int]:
    """(slope, centre, shift, bits) of x = (pixel/white − mean)/std, with as many bits as its sums have room for."""
    inputs = trained.inputs
    assert inputs.white is not None
    mean, std = float(inputs.mean[0]), float(inputs.std[0])
    largest = min(max(abs(mean), abs(1 - mean)) / std, LARGEST_INPUT)
    # Σ m x and Σ σ x² in units of 2^-(12 + bits), m and σ up to 1.
    most = features * max(largest, largest**2, 1.0)
    bits = min(MOST_BITS, 30 - FINE - math.ceil(math.log2(most)))
    if bits < FEWEST_BITS:
        raise ExportError(f"{features} inputs of up to {largest:.1f} std are too many to learn in 32 bits")
    # slope·white and centre have 29 bits at most.
    size = max(1 / std, abs(mean) / std) * (1 << bits)
    shift = max(0, min(16, 29 - math.ceil(math.log2(size))))
    unit = 2.0 ** (bits + shift)
    return round(unit / (inputs.white * std)), round(-unit * mean / std + 2.0 ** (shift - 1)), shift, bits


def named(trained: Trained) -> tuple[str, ...]:
    """Names of the classes, or their numbers."""
    return trained.classes or tuple(map(str, range(trained.net.outputs)))


def require_learnable(trained: Trained) -> None:
    """ExportError unless a device can go on training the network."""
    net = trained.net
    require_exportable(net, " with learning")
    layers = net.weighted()
    problem = _problem(net)
    if problem is None and trained.inputs.white is None:
        problem = "its inputs are real numbers, not pixels"
    if problem is None and len(trained.inputs.mean) > 1:
        problem = "its inputs have a mean and std of each feature, not one of all pixels"
    if problem is None and layers[0].shape[0] > MOST_HIDDEN:
        problem = f"it has {layers[0].shape[0]} hidden units: at most {MOST_HIDDEN} fit"
    if problem is None and net.outputs > MOST_CLASSES:
        problem = f"it has {net.outputs} classes: at most {MOST_CLASSES} fit"
    if problem is not None:
        raise ExportError(
            f"this network cannot learn on a device: {problem}. What can is one hidden layer of sign units with an "
            "argmax, all weights ±1, no biases and thresholds"
        )


def _problem(net: Network) -> str | None:
    """What keeps the network itself from learning on a device."""
    layers = net.weighted()
    if len(layers) != 2:
        return f"it has {len(layers) - 1} hidden layers"
    if not isinstance(net.output, ArgMax):
        return f"its output is {type(net.output).__name__}"
    for number, layer in enumerate(layers):
        if not isinstance(layer.prior, Binary):
            return f"layer {number} has {layer.prior.name} weights"
        if layer.mask is not None:
            return f"layer {number} is sparse"
        if layer.threshold is not None or layer.coupling.columns != layer.coupling.input_shape[0]:
            return f"layer {number} has thresholds or biases"
    return None
