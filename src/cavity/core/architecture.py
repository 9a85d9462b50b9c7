"""Networks in words: ``conv:64:5:2,pool:2,dense:501`` is read here, and every shape it leads to; torch is not needed.

    white:COMPONENTS:KERNEL[:STRIDE]        whitened patches of the image, fixed; first only
    dense:UNITS                             every unit sees every input
    conv:CHANNELS:KERNEL[:STRIDE[:PADDING]] square kernels over an image
    pool:SIZE                               the largest unit of each window of SIZE by SIZE
    average:SIZE                            their mean

The readout, a dense layer with a unit for each output, comes last by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from cavity.util.text import nearest

#: Architectures that have a name.
NAMED = {
    "lenet": "conv:32:5,pool:2,conv:64:5,pool:2,dense:501",
    "cnv": "conv:64:3,conv:64:3,pool:2,conv:128:3,conv:128:3,pool:2,conv:256:3,conv:256:3,dense:512,dense:512",
}
#: What each kind takes, in order, and how many of it must be given.
KINDS = {
    "dense": (("units",), 1),
    "conv": (("channels", "kernel", "stride", "padding"), 2),
    "white": (("components", "kernel", "stride"), 2),
    "pool": (("size",), 1),
    "average": (("size",), 1),
}
#: Kinds that have no weights to learn.
FIXED = ("white", "pool", "average")
#: Kinds that pool, which must follow units of an image.
POOLING = ("pool", "average")
#: No layer that anybody trains is larger, and memory is never asked for what a mistaken digit describes.
LARGEST = 1 << 20
#: Each layer takes kilobytes, however small it is.
DEEPEST = 256

Shape = tuple[int, ...]


class Stage(NamedTuple):
    """One part of the text: its kind and numbers, as they were written."""

    text: str
    kind: str
    size: int
    kernel: int = 0
    stride: int = 1
    padding: int = 0

    def output_shape(self, shape: Shape) -> Shape:
        """What it makes of inputs in that shape; ValueError says why it cannot."""
        if self.kind == "dense":
            return (self.size,)
        if len(shape) != 3:
            raise ValueError("it needs an image (channels, height, width)")
        if self.kind in ("conv", "white"):
            sides = [(side + 2 * self.padding - self.kernel) // self.stride + 1 for side in shape[1:]]
            channels = self.size
        else:
            sides, channels = [side // self.size for side in shape[1:]], shape[0]
        if min(sides) < 1:
            raise ValueError(f"it is larger than {shape[1]} by {shape[2]}")
        return (channels, *sides)

    def weights(self, shape: Shape) -> int:
        """Weights on inputs of that shape, fixed ones included."""
        if self.kind == "dense":
            return self.size * math.prod(shape)
        return 0 if self.kind in POOLING else self.size * shape[0] * self.kernel**2


def parse(layers: str) -> tuple[Stage, ...]:
    """The stages of a text or of a named architecture; "none" has none. ValueError says which part is wrong."""
    if not isinstance(layers, str):
        raise TypeError(f"layers must be text such as conv:64:5:2,pool:2,dense:501, got {layers!r}")
    text = NAMED.get(layers.strip(), layers)
    if text.strip() == "none":
        return ()
    parts = text.split(",")
    if len(parts) > DEEPEST:
        raise ValueError(f"layers: there are {len(parts)}, expected at most {DEEPEST}")
    stages = [_stage(part.strip()) for part in parts]
    for before, stage in zip([None, *stages], stages, strict=False):
        if stage.kind in POOLING and (before is None or before.kind != "conv"):
            raise ValueError(f"layers: {stage.text} must follow a convolution")
        if stage.kind == "white" and before is not None:
            raise ValueError(f"layers: {stage.text} must come first")
    return tuple(stages)


def _stage(text: str) -> Stage:
    kind, *numbers = text.split(":")
    if kind not in KINDS:
        hint = nearest(kind, [*KINDS, *NAMED])
        raise ValueError(f"layers: {text!r} is neither one of {', '.join(KINDS)} nor {' or '.join(NAMED)}{hint}")
    names, fewest = KINDS[kind]
    if not fewest <= len(numbers) <= len(names):
        form = ":".join([kind, *(name.upper() for name in names[:fewest])])
        more = "".join(f"[:{name.upper()}]" for name in names[fewest:])
        raise ValueError(f"layers: {text!r} must be {form}{more}")
    values = []
    for name, number in zip(names, numbers, strict=False):
        least = 0 if name == "padding" else 1
        if not number.isascii() or not number.isdigit() or not least <= len(number) < 9 or int(number) > LARGEST:
            raise ValueError(f"layers: {name} of {text!r} must be a whole number up to {LARGEST}, got {number!r}")
        if int(number) < least:
            raise ValueError(f"layers: {name} of {text!r} must be at least {least}, got {number}")
        values.append(int(number))
    return Stage(text, kind, *values)


def dense(hidden: Sequence[int]) -> str:
    """``501,501`` as layers."""
    return ",".join(f"dense:{width}" for width in hidden) or "none"


def depth(layers: str) -> int:
    """Layers with weights, the readout included."""
    return 1 + sum(stage.kind not in FIXED for stage in parse(layers))


def needs_images(layers: str) -> bool:
    """Whether the first layer looks at an image."""
    return any(stage.kind != "dense" for stage in parse(layers)[:1])


class Row(NamedTuple):
    """One stage in a network: what it takes and gives, and how many weights it has."""

    stage: Stage
    takes: Shape
    gives: Shape
    weights: int


def rows(layers: str, input_shape: Shape, outputs: int) -> list[Row]:
    """Every stage with its shapes, the readout last; ValueError shows the shape at every layer up to what does not
    fit."""
    shape = tuple(input_shape)
    found: list[Row] = []
    for stage in (*parse(layers), Stage("readout", "dense", outputs)):
        try:
            gives = stage.output_shape(shape)
        except ValueError as error:
            way = " -> ".join([f"input {tuple(input_shape)}", *(f"{row.stage.text} {row.gives}" for row in found)])
            raise ValueError(f"layers: {stage.text} does not fit, {error}: {way} -> {stage.text}") from None
        found.append(Row(stage, shape, gives, stage.weights(shape)))
        shape = gives
    return found


def weights(layers: str, input_shape: Shape, outputs: int) -> int:
    """Weights of the network, biases, thresholds and masks aside."""
    return sum(row.weights for row in rows(layers, input_shape, outputs))
