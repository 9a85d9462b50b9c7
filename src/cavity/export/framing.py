"""How objects lie in the images of a data set, so that what somebody draws can be scaled and centred likewise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

#: Brightness, from that of the ground, at which a pixel belongs to the object.
INK = 0.25
#: More images than this say no more.
ENOUGH = 2000
#: The part of a canvas that people fill.
FILLED = 0.75
#: The widest pen, as a part of the canvas, with which one can still write.
THICKEST = 0.12
#: A line of width t and length l in any direction has an area of tl and a total variation of 2l · 4/π.
ROUND = 4 / np.pi


@dataclass(frozen=True)
class Framing:
    """The longer side of an object in pixels, what of it is in the middle, whether the ground is dark, and the width of
    its lines as a part of the canvas on which it is drawn."""

    size: float
    centre: Literal["mass", "box"] = "mass"
    dark: bool = True
    pen: float = 0.08


def usual(height: int, width: int) -> Framing:
    """Where there are no images to look at: as in MNIST, 20 pixels of 28."""
    return Framing(min(height, width) * 20 / 28)


def framing(images: NDArray[Any], white: int) -> Framing:
    """What images (samples, height, width) of brightness 0 to ``white`` have in common."""
    samples, height, width = images.shape
    grey = images[:: -(-samples // ENOUGH)] / white
    border = np.concatenate([grey[:, [0, -1]].reshape(-1), grey[:, :, [0, -1]].reshape(-1)])
    dark = bool(np.median(border) < 0.5)
    ink = grey if dark else 1 - grey
    there = ink[(ink > INK).any(axis=(1, 2))]
    if len(there) == 0:
        return usual(height, width)
    spans = [_span(np.any(there > INK, axis=axis)) for axis in (1, 2)]
    sides = [stop - start for start, stop in spans]
    size = float(np.median(np.maximum(*sides)))
    boxes = [(start + stop) / 2 - length / 2 for (start, stop), length in zip(spans, (width, height), strict=True)]
    total = there.sum(axis=(1, 2))
    masses = [
        there.sum(axis=axis) @ (np.arange(length) + 0.5) / total - length / 2
        for axis, length in ((1, width), (2, height))
    ]
    steady = {"mass": np.square(masses).mean(), "box": np.square(boxes).mean()}
    variation = sum(np.abs(np.diff(there, axis=axis)).sum(axis=(1, 2)) for axis in (1, 2))
    line = float(np.median(2 * ROUND * total / variation))
    return Framing(size, "mass" if steady["mass"] < steady["box"] else "box", dark, min(THICKEST, FILLED * line / size))


def _span(seen: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first True of each row, and one beyond the last."""
    return seen.argmax(axis=1), seen.shape[1] - seen[:, ::-1].argmax(axis=1)
