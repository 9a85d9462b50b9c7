"""Small bitmaps as PNG data URIs."""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cavity.report.palette import NEGATIVE, POSITIVE
from cavity.report.summary import Floats

Bytes = NDArray[np.uint8]


def png_uri(pixels: Bytes) -> str:
    """``data:image/png;base64,…`` of (height, width), (height, width, 3) or (height, width, 4) bytes."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode("ascii")


def weights_picture(means: Floats, bound: float) -> Bytes:
    """Weights of one unit (channels, height, width) within ±bound as bytes.

    Three channels become a colour picture (grey is 0); otherwise the mean over the channels becomes (height, width, 4):
    blue below 0, orange above, the more opaque the larger.
    """
    scaled = np.clip(means / bound, -1.0, 1.0)
    if len(scaled) == 3:
        return np.round(127.5 * (1 + np.moveaxis(scaled, 0, -1))).astype(np.uint8)
    flat = scaled.mean(axis=0)
    colours = np.where((flat > 0)[..., None], np.array(POSITIVE), np.array(NEGATIVE)).astype(np.uint8)
    opacity = np.round(255 * np.abs(flat)).astype(np.uint8)
    return np.concatenate([colours, opacity[..., None]], axis=-1)
