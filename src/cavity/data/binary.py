"""Readers for the two published binary formats: idx (the MNIST family) and CIFAR-10's batches."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cavity.data.errors import damaged
from cavity.data.registry import CIFAR_10

UNSIGNED_BYTE = 8
CIFAR_SHAPE = (3, 32, 32)


def parse_idx(content: bytes, path: str | Path, dimensions: int) -> NDArray[np.uint8]:
    """An idx array of unsigned bytes with the given number of dimensions; a view, nothing is copied.

    Layout: two zero bytes, the type (8), the number of dimensions d, d big-endian 32-bit sizes, the values.
    """
    header = 4 + 4 * dimensions
    if len(content) < header:
        raise damaged(path, f"ends inside the idx header ({len(content)} of {header} bytes)")
    magic = bytes((0, 0, UNSIGNED_BYTE, dimensions))
    if content[:4] != magic:
        expected = f"{magic.hex()} (idx, unsigned bytes, {dimensions} dimensions)"
        raise damaged(path, f"starts with {content[:4].hex()}, expected {expected}")
    shape = struct.unpack_from(f">{dimensions}I", content, 4)
    size = math.prod(shape)
    if size != len(content) - header:
        raise damaged(path, f"declares {shape} = {size} values but holds {len(content) - header}")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def parse_cifar(content: bytes, path: str | Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """A CIFAR-10 batch as images (samples, 3, 32, 32) and labels (samples,); views, nothing is copied.

    Each record is one label byte, then the red, green and blue planes of 32×32 bytes each.
    """
    record = 1 + math.prod(CIFAR_SHAPE)
    if not content or len(content) % record:
        raise damaged(path, f"holds {len(content)} bytes, not a multiple of {record}")
    records = np.frombuffer(content, np.uint8).reshape(-1, record)
    labels = records[:, 0]
    if labels.max() >= len(CIFAR_10.classes):
        raise damaged(path, f"holds label {labels.max()}, expected 0 to {len(CIFAR_10.classes) - 1}")
    return records[:, 1:].reshape(-1, *CIFAR_SHAPE), labels
