"""Confidence in integers: the rule in Python's own numbers, the temperature that scores were drawn with, the file."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cavity.export import describe
from cavity.packed import Confidence, PackedError, PackedNetwork
from cavity.packed.file import DIGEST_BYTES, PREAMBLE, dumps, loads
from cavity.packed.fitting import fit, loss
from export.helpers import samples, trained
from packed.helpers import resealed

LARGEST = (1 << 62) - 1


def by_the_rule(confidence: Confidence, scores: list[int]) -> int:
    """The definition, in numbers that never overflow."""
    both = [-scores[0], scores[0]] if len(scores) == 1 else scores
    places = [min(((max(both) - score) * confidence.multiplier) >> confidence.shift, 63) for score in both]
    total = sum(round(65535 * math.exp(-((place / 12) ** 1.25))) for place in places)
    return (255 * 65535 + total // 2) // total


@given(
    st.integers(1, 255),
    st.integers(0, 56),
    st.lists(st.integers(-LARGEST, LARGEST) | st.integers(-300, 300), min_size=1, max_size=6),
)
def test_the_rule_holds_for_all_scores(multiplier: int, shift: int, scores: list[int]) -> None:
    confidence = Confidence(multiplier, shift)
    assert confidence.of(np.array([scores])).tolist() == [by_the_rule(confidence, scores)]


@given(st.integers(1, 255), st.integers(0, 56))
def test_the_limit_is_where_the_last_step_begins(multiplier: int, shift: int) -> None:
    limit = Confidence(multiplier, shift).limit
    assert limit * multiplier >> shift >= 63
    assert (limit - 1) * multiplier >> shift < 63
    assert shift > 26 or (limit - 1) * multiplier < 1 << 32


@pytest.mark.parametrize("temperature", [20.0, 3e4, 2e11])
@pytest.mark.parametrize("outputs", [1, 5])
def test_the_temperature_of_drawn_classes_is_found(temperature: float, outputs: int) -> None:
    random = np.random.default_rng(0)
    scores = np.rint(temperature * random.normal(0, 2, (20_000, outputs)) * (1 if outputs > 1 else 0.5)).astype(int)
    both = scores if outputs > 1 else np.concatenate([-scores, scores], axis=1)
    logits = -(((both.max(axis=1, keepdims=True) - both) / temperature) ** 1.25)
    classes = (logits + random.gumbel(size=logits.shape)).argmax(axis=1)
    found = fit(scores, classes, coverage=0.8)
    # Steps of 1/12 are rounded down: what is fitted makes up for it. 20,000 samples know T to one per cent.
    assert 12 * 2**found.shift / found.multiplier == pytest.approx(temperature, rel=0.06)
    exact = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    best = -exact[np.arange(len(exact)), classes].mean()
    assert loss(found, scores, np.eye(exact.shape[1])[classes]) == pytest.approx(best, rel=0.005)
    assert 0.8 <= 1 - found.refused(scores).mean() < 0.83


def test_a_few_samples_that_are_all_right_are_no_proof() -> None:
    scores = np.array([[9, 0, 0], [0, 8, 1], [1, 0, 9]])
    few, many = (fit(np.tile(scores, (n, 1)), np.tile([0, 1, 2], n)) for n in (1, 1000))
    assert few.of(scores).max() < 230
    assert many.of(scores).min() > 250


def test_coverage_is_reached_and_not_by_more_than_a_step() -> None:
    confidence, scores = Confidence(128, 5), np.array([[90], [90], [1], [-1], [0], [0]])
    sure = confidence.of(scores).tolist()
    assert sure == [by_the_rule(confidence, row) for row in scores.tolist()]
    wanted = {0.1: sure[0], 1 / 3: sure[0], 0.5: sure[2], 0.6: sure[2], 0.9: sure[4], 1.0: sure[4]}
    assert {share: confidence.covering(scores, share).reject for share in wanted} == wanted
    for bad in (0, 1.1, -1):
        with pytest.raises(ValueError, match="coverage must be"):
            fit(np.zeros((3, 2), np.int64), np.zeros(3, int), coverage=bad)


@pytest.mark.parametrize("name", ["multiplier", "shift", "reject"])
@pytest.mark.parametrize("value", [-1, 256, 1.0, True, "1"])
def test_values_out_of_range_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must be an integer"):
        Confidence(**{"multiplier": 1, "shift": 1, name: value})


@pytest.mark.parametrize("kind", ["binary", "threshold", "label", "real without hidden layer"])
def test_it_is_in_the_file_and_in_predictions(kind: str) -> None:
    model = trained(kind)
    description = dataclasses.replace(describe(model), confidence=Confidence(200, 7, 180))
    content = dumps(description)
    assert PREAMBLE.unpack_from(content)[1] == 3
    net, x = PackedNetwork(loads(content)), samples(model.inputs, description.inputs.features, 60)
    scores = net.scores(x)
    assert (scores == PackedNetwork(describe(model)).scores(x)).all()
    sure = [by_the_rule(Confidence(200, 7), row) for row in scores.tolist()]
    assert net.confidence(x).tolist() == sure
    assert net.reject(x).tolist() == [value < 180 for value in sure]
    assert dumps(net.description) == content


def test_networks_without_it_are_written_as_before_and_say_so() -> None:
    for kind, version in (("binary", 1), ("threshold", 2)):
        content = dumps(describe(trained(kind)))
        assert PREAMBLE.unpack_from(content)[1] == version
        with pytest.raises(ValueError, match="exported without a confidence"):
            PackedNetwork(loads(content)).confidence(np.zeros((1, 13)))


@pytest.mark.parametrize("value", [None, 3, {}, {"multiplier": 0, "shift": 1}, {"multiplier": 1, "odd": 2}])
def test_headers_that_make_no_sense_are_refused(value: object) -> None:
    content = dumps(dataclasses.replace(describe(trained("binary")), confidence=Confidence(1, 1)))
    magic, version, length = PREAMBLE.unpack_from(content)
    header = json.loads(content[PREAMBLE.size : PREAMBLE.size + length]) | {"confidence": value}
    text = json.dumps(header).encode()
    body = content[PREAMBLE.size + length : -DIGEST_BYTES]
    with pytest.raises(PackedError, match="makes no sense"):
        loads(resealed(PREAMBLE.pack(magic, version, len(text)) + text + body))
