"""The products counted as needed against those that a step really does, as torch counts them."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import cavity
from cavity.baselines import BinaryNet, BinaryNetTrainer
from cavity.studies.bench.products import BareProducts, Corrections, needed, operations

BATCH = 64
CPU = torch.device("cpu")


def batch(sizes):
    x = torch.randn(BATCH, sizes[0])
    return x, (torch.randint(sizes[-1], (BATCH,)) if sizes[-1] > 1 else 2 * torch.randint(2, (BATCH,)) - 1)


def trainer(name, sizes, order):
    inputs, *hidden, outputs = sizes
    if name == "binarynet":
        return BinaryNetTrainer(BinaryNet(inputs, hidden, outputs))
    options = {"accuracy": order} if name in ("bp", "bpi") else {}
    return cavity.Trainer(cavity.mlp(inputs, hidden, outputs), name, compile=False, **options)


@pytest.mark.parametrize("sizes", [[40, 31, 21, 5], [40, 31, 1]])
@pytest.mark.parametrize(("name", "order"), [("binarynet", 0), ("mf", 0), ("amp", 1), ("bpi", 2), ("bp", 2), ("bp", 4)])
def test_a_step_does_what_is_needed_and_no_more(name, order, sizes):
    # ArgMax has no edges that could be taken out of it.
    coupled = [Corrections()] if sizes[-1] > 1 else [Corrections(order)]
    layers = needed(sizes, [Corrections(order)] * (len(sizes) - 2) + coupled, name != "binarynet")
    learner = trainer(name, sizes, order)
    with FlopCounterMode(display=False) as counter:
        learner.step(*batch(sizes))
    done, bare = counter.get_total_flops(), operations(layers, BATCH)
    # Row sums of the weights, for a constant second moment, are products with a single sample.
    row_sums = sum(2 * layer.outputs * layer.inputs for layer in layers)
    assert bare <= done <= bare + row_sums


def test_a_series_needs_a_product_more_for_each_order():
    layers = needed([40, 31, 21, 5], [Corrections(3), Corrections(2, half=True), Corrections()], True)
    assert [tuple(layer) for layer in layers] == [(31, 40, 2, 0, 4, 0), (21, 31, 2, 3, 3, 2), (5, 21, 2, 1, 1, 0)]
    assert layers[1].counts == (2, 1, 1, 0, 2, 2)


def test_bare_products_are_timed_as_often_as_needed(monkeypatch):
    monkeypatch.setattr("cavity.studies.bench.products.half_pays", lambda *_: False)
    sizes = [40, 31, 5]
    bare = BareProducts(sizes, BATCH, CPU)
    with FlopCounterMode(display=False) as counter:
        total = bare.turn(3)
    # One to warm up and three timed, of each kind and layer.
    assert counter.get_total_flops() == 4 * 3 * 2 * BATCH * (40 * 31 + 31 * 5)
    assert total > 0
    bare.best = [[1.0, 10.0, 100.0], [1000.0, 10000.0, 100000.0]]
    assert (
        bare.seconds(needed(sizes, [Corrections()] * 2, True)) == 2 * 1 + 0 * 10 + 1 * 100 + 2 * 1000 + 10000 + 100000
    )


def test_products_in_half_precision_count_with_their_own_time(monkeypatch):
    monkeypatch.setattr("cavity.studies.bench.products.half_pays", lambda *_: True)
    bare = BareProducts([40, 31, 1], BATCH, CPU)
    bare.turn(1)
    bare.best = [[1.0, 10.0, 100.0, 0.1, 0.2, 0.3], [2.0, 20.0, 200.0, 0.4, 0.5, 0.6]]
    layers = needed([40, 31, 1], [Corrections(3, half=True), Corrections(1, half=True)], True)
    assert bare.seconds(layers) == pytest.approx(2 * 1 + 100 + 3 * 0.3 + 2 * 2 + 20 + 200 + 0.5 + 0.6)
