"""Groups of every width, and so words of every size, against sums of integers."""

from __future__ import annotations

import numpy as np
import pytest

from cavity.packed import Description, InputCode, PackedNetwork, Weights, network
from cavity.packed.description import word_bytes

WIDTHS = {1: (1,) * 5, 2: (9, 15, 12), 4: (20, 30), 8: (40, 64, 70)}


@pytest.mark.parametrize("size", WIDTHS)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("count", [network.popcount, network._count_by_table], ids=["NumPy 2", "NumPy 1"])
def test_scores_are_the_sums_of_all_groups(size, masked, count, monkeypatch):
    monkeypatch.setattr(network, "popcount", count)
    widths = WIDTHS[size]
    assert word_bytes(widths) == size
    random, features = np.random.default_rng(size), sum(widths)
    sign, above = random.random((7, features)) < 0.5, random.random((3, 7)) < 0.5
    mask = random.random((7, features)) < 0.6 if masked else None
    factors, offsets = random.integers(1, 9, len(widths)), random.integers(-99, 99, 7)
    code = InputCode("pixels", tuple(zip(widths, factors.tolist(), strict=True)), white=15)
    net = PackedNetwork(Description(code, (Weights(sign, mask), Weights(above)), offsets, 0, "argmax"))
    q = random.integers(0, 16, (20, features))
    weights = np.where(sign, 1, -1) * (1 if mask is None else mask)
    hidden = np.where((q * np.repeat(factors, widths)) @ weights.T - offsets >= 0, 1, -1)
    assert np.array_equal(net.scores(q.astype(np.uint8)), hidden @ np.where(above, 1, -1).T)
