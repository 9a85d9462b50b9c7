"""The file of a packed network: round trip, damage, and no torch."""

from __future__ import annotations

import dataclasses
import json
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cavity import packed
from cavity.export import Inputs, Trained, describe, to_packed
from cavity.packed import PackedError
from cavity.packed.file import DIGEST_BYTES, PREAMBLE, dumps, loads
from export.helpers import KINDS, network, samples, trained
from packed.helpers import resealed

WHOLE = dumps(describe(trained("sparse with bias")))


def with_header(**changes) -> bytes:
    """WHOLE with another header, and a checksum that fits."""
    magic, version, length = PREAMBLE.unpack_from(WHOLE)
    start = PREAMBLE.size
    header = json.loads(WHOLE[start : start + length]) | changes
    text = json.dumps(header).encode()
    return resealed(PREAMBLE.pack(magic, version, len(text)) + text + WHOLE[start + length : -DIGEST_BYTES])


@pytest.mark.parametrize("kind", KINDS)
def test_a_network_comes_back_as_it_was(kind: str, tmp_path) -> None:
    model = trained(kind)
    [path] = to_packed(model, tmp_path / "net.cavity")
    net, before = packed.load(path), describe(model)
    x = samples(model.inputs, net.n_features_in, 50)
    assert (net.scores(x) == packed.PackedNetwork(before).scores(x)).all()
    assert net.description.sizes == before.sizes
    assert net.classes == model.classes
    assert dumps(net.description) == path.read_bytes()


def test_a_weight_takes_one_bit(tmp_path) -> None:
    [path] = to_packed(Trained(network((784, 501, 501, 10)), Inputs.pixels(0.3, 0.4)), tmp_path / "net.cavity")
    weights = (784 * 501 + 501 * 501 + 501 * 10) / 8
    assert weights < path.stat().st_size < 1.05 * weights


def test_it_loads_and_predicts_without_torch(tmp_path) -> None:
    model = trained("binary")
    [path] = to_packed(model, tmp_path / "net.cavity")
    x = samples(model.inputs, 13, 20)
    np.save(tmp_path / "x.npy", x)
    code = (
        "import sys, numpy, cavity\n"
        f"guess = cavity.packed.load({str(path)!r}).predict(numpy.load({str(tmp_path / 'x.npy')!r}))\n"
        "assert 'torch' not in sys.modules, 'torch was imported'\n"
        "print(*guess)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [int(word) for word in done.stdout.split()] == packed.load(path).predict(x).tolist()


def test_names_and_shapes(tmp_path) -> None:
    model = trained("binary")
    net = packed.load(to_packed(model, tmp_path / "net.cavity")[0])
    x = samples(model.inputs, 13, 9)
    assert net.predict(x, names=True).tolist() == [model.classes[k] for k in net.predict(x)]
    assert (net.predict(x.reshape(9, 13, 1)) == net.predict(x.astype(np.float64))).all()
    assert "13-7-5-3" in repr(net)


def test_bad_samples_are_refused() -> None:
    pixels = packed.PackedNetwork(describe(trained("binary", white=16)))
    real = packed.PackedNetwork(describe(trained("real")))
    for bad, reason in (
        (np.zeros((2, 12)), "takes 13 columns"),
        (np.zeros(13), "takes 13 columns"),
        (np.zeros((0, 13)), "takes 13 columns"),
        (np.full((1, 13), np.nan), "13 columns"),
        (np.full((1, 13), 0.5), "whole pixel values from 0 to 16"),
        (np.full((1, 13), 17), "from 0 to 16, got 17"),
        (np.full((1, 13), -1), "from 0 to 16, got -1"),
        (np.full((1, 13), "a"), "must hold numbers"),
    ):
        with pytest.raises(ValueError, match=reason):
            pixels.predict(bad)
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"finite.*23 columns"):
            real.predict(np.full((1, 23), value))
    nameless = packed.PackedNetwork(dataclasses.replace(describe(trained("binary")), classes=()))
    with pytest.raises(ValueError, match="without class names"):
        nameless.predict(np.zeros((1, 13)), names=True)


def test_numbers_beyond_their_bits_are_cut() -> None:
    """At 32 standard deviations, and in older files at 32 bits."""
    code = describe(trained("real")).inputs
    assert code.encode(np.full((1, 23), [[1e30]])).max() == 2**15 - 1
    assert code.encode(np.full((1, 23), [[-1e30]])).min() == -(2**15) + 1
    real = packed.InputCode("real", ((23, 1),), mean=np.zeros(23), std=np.ones(23))
    assert real.encode(np.full((1, 23), [[1e30]])).max() == 2**31 - 1
    assert real.encode(np.full((1, 23), [[-1e30]])).min() == -(2**31)
    tiny = dataclasses.replace(real, std=np.full(23, 1e-300))
    assert tiny.encode(np.full((1, 23), [[1e30]])).max() == 2**31 - 1


def test_the_table_counts_like_the_processor() -> None:
    from cavity.packed.network import _count_by_table

    words = np.random.default_rng(0).integers(0, 2**64, (5, 7), dtype=np.uint64)
    words[0, :2] = 0, 2**64 - 1
    expected = [[int(word).bit_count() for word in row] for row in words]
    assert _count_by_table(words).tolist() == expected


def test_many_samples_are_done_in_parts() -> None:
    model = trained("wide")
    net = packed.PackedNetwork(describe(model))
    x = samples(model.inputs, 531, 3 * net._samples_at_once + 1)
    assert (net.predict(x) == [net.predict(row[None])[0] for row in x]).all()


def test_other_files_and_versions_are_refused(tmp_path) -> None:
    path = tmp_path / "net.cavity"
    for content, reason in (
        (b"", "cut short"),
        (b"PK\x03\x04 something else entirely", "is not a packed network"),
        (WHOLE[:10], "cut short"),
        (WHOLE[:100], "cut short"),
        (WHOLE[:-1], "does not match its SHA-256"),
        (WHOLE + b"\0", "does not match its SHA-256"),
        (resealed(struct.pack("<8sII", WHOLE[:8], 5, 0)), "version 5; this cavity reads 4 at most"),
    ):
        path.write_bytes(content)
        with pytest.raises(PackedError, match=reason) as caught:
            packed.load(path)
        assert str(path) in str(caught.value)
    with pytest.raises(FileNotFoundError):
        packed.load(tmp_path / "nothing")


@pytest.mark.parametrize(
    "changes",
    [
        {"layers": []},
        {"layers": [{"shape": [1 << 30, 33], "mask": True, "bias": True}]},
        {"layers": [{"shape": [10, 33], "mask": True, "bias": False}]},
        {"layers": "many"},
        {"output": "argmin"},
        {"output": ["argmax"]},
        {"shift": -1},
        {"shift": True},
        {"offset_bytes": 5},
        {"offset_bytes": 8},
        {"classes": ["one"]},
        {"classes": 7},
        {"input": {"kind": "sound", "groups": [[33, 1]], "white": 255}},
        {"input": {"kind": "pixels", "groups": [[33, 0]], "white": 255}},
        {"input": {"kind": "pixels", "groups": [[33, 1 << 30]], "white": 255}, "shift": 32},
        {"input": {"kind": "pixels", "groups": [[33, 1]], "white": 300}},
        {"input": {"kind": "pixels", "groups": [[1 << 31, 1]], "white": 255}},
        {"input": {"kind": "real", "groups": [[33, 1]], "white": 0}, "statistics": 33},
        {"input": {"kind": "real", "groups": [[33, 1]], "white": 0}, "statistics": 2},
        {"input": None},
    ],
)
def test_headers_that_make_no_sense_are_refused(changes) -> None:
    with pytest.raises(PackedError, match="makes no sense"):
        loads(with_header(**changes))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_any_altered_byte_is_noticed(place: int, change: int) -> None:
    altered = bytearray(WHOLE)
    altered[place] ^= change
    with pytest.raises(PackedError):
        loads(bytes(altered))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(WHOLE) - 1))
def test_any_cut_is_noticed(length: int) -> None:
    with pytest.raises(PackedError):
        loads(WHOLE[:length])


@settings(max_examples=100, deadline=None)
@given(st.integers(PREAMBLE.size, len(WHOLE) - DIGEST_BYTES - 1), st.binary(max_size=8))
def test_altered_files_with_a_good_checksum_are_networks_or_refused(place: int, insert: bytes) -> None:
    content = WHOLE[:place] + insert + WHOLE[place + len(insert) : -DIGEST_BYTES]
    try:
        description = loads(resealed(content))
    except PackedError:
        return
    assert len(packed.PackedNetwork(description).predict(np.zeros((2, description.inputs.features)))) == 2
