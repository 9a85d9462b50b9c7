"""The idx files of the MNIST family and the batches of CIFAR-10, whole and damaged."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from cavity.data import DataError
from cavity.data.binary import parse_cifar, parse_idx
from data.helpers import idx

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(5,), (5, 3, 2)])
def test_idx_round_trip(shape):
    values = RANDOM.integers(0, 256, shape, dtype=np.uint8)
    assert np.array_equal(parse_idx(idx(values), "f", len(shape)), values)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "header"),
        (idx(np.zeros((2, 2), np.uint8)), "expected 00000803"),
        (b"\0\0\x0d\x03" + bytes(12), "expected 00000803"),
        (
            struct.pack(">HBB3I", 0, 8, 3, 2, 3, 4) + bytes(23),
            r"declares \(2, 3, 4\) = 24 values but holds 23",
        ),
        (struct.pack(">HBB3I", 0, 8, 3, *[2**32 - 1] * 3) + bytes(8), "declares"),
    ],
)
def test_damaged_idx(content, reason):
    with pytest.raises(DataError, match=f"the-file: .*{reason}"):
        parse_idx(content, "the-file", 3)


def test_cifar_records():
    records = RANDOM.integers(0, 256, (3, 3073), dtype=np.uint8)
    records[:, 0] = [1, 9, 4]
    images, labels = parse_cifar(records.tobytes(), "f")
    assert labels.tolist() == [1, 9, 4]
    assert images.shape == (3, 3, 32, 32)
    assert images[2, 1, 0, 5] == records[2, 1 + 1024 + 5]


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "0 bytes"), (bytes(3072), "multiple"), (b"\x0a" + bytes(3072), "label 10")]
)
def test_damaged_cifar(content, reason):
    with pytest.raises(DataError, match=f"the-file: .*{reason}"):
        parse_cifar(content, "the-file")
