"""Packed networks from strangers, with a checksum that fits: a network or PackedError, soon and in little memory."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cavity import packed
from cavity.export import describe
from cavity.packed import Confidence, PackedError
from cavity.packed.file import DIGEST_BYTES, PREAMBLE, dumps
from export.helpers import KINDS, trained, windowed
from fuzzing import altered, as_json, attempt, bounded, damaged
from packed.helpers import resealed

FILES = {kind: dumps(describe(trained(kind))) for kind in KINDS}
FILES["windows"] = dumps(describe(windowed()))
FILES["confident"] = dumps(replace(describe(trained("binary")), confidence=Confidence(200, 7, 180)))


def taken_apart(content: bytes) -> tuple[tuple, dict, bytes]:
    magic, version, length = PREAMBLE.unpack_from(content)
    start = PREAMBLE.size + length
    return (magic, version), json.loads(content[PREAMBLE.size : start]), content[start:-DIGEST_BYTES]


@st.composite
def files(draw) -> bytes:
    """Damaged in the open, damaged with a checksum that fits, or with odd values in the header."""
    content = FILES[draw(st.sampled_from(list(FILES)))]
    kind = draw(st.sampled_from(["open", "sealed", "values", "values"]))
    if kind == "open":
        return draw(damaged(content))
    if kind == "sealed":
        return resealed(draw(damaged(content[:-DIGEST_BYTES])))
    start, header, body = taken_apart(content)
    text = as_json(draw(altered(header))).encode()
    return resealed(PREAMBLE.pack(*start, len(text)) + text + draw(st.just(body) | damaged(body)))


def used(path):
    net = packed.load(path)
    assert net.predict(np.zeros((2, net.n_features_in))).shape == (2,)
    return net


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "net.cavity"


@bounded(2.0)
@given(files())
def test_packed_networks(path, content):
    path.write_bytes(content)
    attempt(used, path, errors=(PackedError,))


def test_memory_is_a_small_multiple_of_the_file(path):
    """The most that a byte can stand for: 8 inputs, each a group of its own and so a word of 64 bits in every row."""
    outputs = 1 << 18
    header = {
        "input": {"kind": "pixels", "groups": [[1, 1]] * 8, "white": 255},
        "statistics": 0,
        "offset_bytes": 4,
        "shift": 0,
        "layers": [{"shape": [outputs, 8], "mask": True, "bias": True}],
        "output": "argmax",
        "classes": [],
    }
    text = as_json(header).encode()
    magic, version, _ = PREAMBLE.unpack_from(FILES["binary"])
    body = bytes(4 * outputs) + bytes(outputs) + b"\xff" * outputs + bytes(outputs)
    path.write_bytes(resealed(PREAMBLE.pack(magic, version, len(text)) + text + body))
    size = path.stat().st_size
    net = attempt(packed.load, path, errors=(), mebibytes=64 * size / 2**20)
    assert net.description.sizes == (8, outputs)


def test_a_header_of_gigabytes_is_not_parsed(path):
    magic, version, _ = PREAMBLE.unpack_from(FILES["binary"])
    text = b"[" + b"{}," * (6 << 20) + b"{}]"
    path.write_bytes(resealed(PREAMBLE.pack(magic, version, len(text)) + text))
    with pytest.raises(PackedError, match="declares a header of"):
        packed.load(path)
