"""Readers against bytes nobody wrote on purpose: a result or DataError, soon and in little memory."""

from __future__ import annotations

import functools
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import fuzzing
from cavity import data
from cavity.data import DataError
from cavity.data.binary import parse_cifar, parse_idx
from cavity.data.npz import read_npz
from cavity.data.packing import iterate_archive, read_bounded
from cavity.data.registry import Source
from data.helpers import idx, known_file
from fuzzing import bounded, damaged


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    data.load("random-labels")  # so that the time of imports is not that of the first example
    return tmp_path_factory.mktemp("fuzz")


attempt = functools.partial(fuzzing.attempt, errors=(DataError,))


IDX = idx(np.arange(24, dtype=np.uint8).reshape(4, 3, 2))


@bounded()
@given(st.binary(max_size=200) | damaged(IDX))
def test_idx(content):
    result = attempt(parse_idx, content, "f", 3)
    assert result is None or result.size == len(content) - 16


@bounded()
@given(st.binary(max_size=4000) | damaged(bytes(3073 * 2)))
def test_cifar(content):
    result = attempt(parse_cifar, content, "f")
    assert result is None or result[0].nbytes + result[1].nbytes == len(content)


CONTENT = np.random.default_rng(0).integers(0, 4, 5000, dtype=np.uint8).tobytes()


@bounded()
@given(damaged(gzip.compress(CONTENT)) | damaged(lzma.compress(CONTENT)) | st.binary(max_size=100))
def test_packed_files(folder, content):
    (folder / "packed").write_bytes(content)
    result = attempt(read_bounded, folder / "packed", 6000)
    assert result is None or len(result) <= 6001


def make_tar() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name in ("set/a", "set/b"):
            info = tarfile.TarInfo(name)
            info.size = len(CONTENT)
            archive.addfile(info, io.BytesIO(CONTENT))
    return stream.getvalue()


TAR_FILES = (known_file("a", CONTENT), known_file("b", CONTENT))
TAR_SOURCE = Source("tiny", "", ("tiny",), TAR_FILES, (), (), "set.tar")


@bounded()
@given(damaged(make_tar()) | damaged(gzip.compress(make_tar())) | st.binary(max_size=2000))
def test_archives(folder, content):
    (folder / "set.tar").write_bytes(content)
    result = attempt(lambda: dict(iterate_archive(folder / "set.tar", TAR_SOURCE)))
    assert result is None or result == dict.fromkeys(TAR_FILES, CONTENT)


def sealed_tar(block: bytes) -> bytes:
    """A tar whose first header is ``block``, with a checksum that fits, and some content behind it."""
    block = block[:512].ljust(512, b"\0")
    checksum = sum(block[:148]) + 8 * 32 + sum(block[156:])
    return block[:148] + b"%06o\0 " % checksum + block[156:] + make_tar()


@bounded()
@given(damaged(make_tar()[:512]), st.sampled_from(b"0123456789LKSxgX\0"))
def test_archives_with_checksums_that_fit(folder, block, kind):
    (folder / "set.tar").write_bytes(sealed_tar(block[:156] + bytes([kind]) + block[157:]))
    result = attempt(lambda: dict(iterate_archive(folder / "set.tar", TAR_SOURCE)))
    assert result is None or result == dict.fromkeys(TAR_FILES, CONTENT)


def make_npz(save) -> bytes:
    stream = io.BytesIO()
    save(stream, x=np.arange(40.0).reshape(20, 2), y=np.array(["a", "b"] * 10))
    return stream.getvalue()


@bounded()
@given(damaged(make_npz(np.savez)) | damaged(make_npz(np.savez_compressed)) | st.binary(max_size=200))
def test_npz(folder, content):
    (folder / "f.npz").write_bytes(content)
    result = attempt(data.load, folder / "f.npz")
    assert result is None or len(result.x_train) == len(result.y_train)


HEADERS = st.dictionaries(st.sampled_from(["descr", "fortran_order", "shape", "extra"]), st.just(0))
SHAPES = st.lists(st.integers(-(2**70), 2**70) | st.integers(0, 4), max_size=40).map(tuple)
DTYPES = st.sampled_from(["<f8", "|u1", "<U4", "|S3", "|O", "<M8[s]", "<c16", "|V0", "<U0", "f,f", "<f16", ">i8"])


@bounded()
@given(SHAPES, DTYPES | st.text(max_size=10), st.booleans(), HEADERS, st.binary(max_size=64))
def test_npz_headers(folder, shape, dtype, fortran, extra, body):
    header = repr({**extra, "descr": dtype, "fortran_order": fortran, "shape": shape}).encode("utf-8") + b"\n"
    content = b"\x93NUMPY\x02\x00" + struct.pack("<I", len(header)) + header + body
    with zipfile.ZipFile(folder / "h.npz", "w") as archive:
        archive.writestr("x.npy", content)
    result = attempt(read_npz, folder / "h.npz")
    assert result is None or result["x"].nbytes == len(body)


CELL = st.sampled_from(["1", "2.5", "-3e2", "nan", "inf", "1e400", "a", "", '"', "label", "y", ",", "\0", "é"])
TABLE = st.lists(st.lists(CELL, max_size=4).map(",".join), max_size=12).map("\n".join)


@bounded()
@given(TABLE.map(str.encode) | damaged(b"a,b,label\n" + b"1,2,x\n3,4,y\n" * 10) | st.binary(max_size=100))
def test_csv(folder, content):
    (folder / "t.csv").write_bytes(content)
    result = attempt(data.load, folder / "t.csv")
    assert result is None or bool(result.x_train.isfinite().all())


def make_png(mode: str) -> bytes:
    stream = io.BytesIO()
    image = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(6, 8)).convert(mode)
    image.save(stream, "PNG", pnginfo=None)
    return stream.getvalue()


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


SIZES = st.sampled_from([0, 1, 6, 8, 4096, 2**16, 2**31 - 1, 2**32 - 1])
HEAD = st.builds(
    lambda *values: chunk(b"IHDR", struct.pack(">IIBBBBB", *values)),
    *(SIZES, SIZES, st.sampled_from([1, 8, 16, 3]), st.sampled_from([0, 2, 3, 4, 6, 9])),
    *(st.sampled_from([0, 1]) for _ in range(3)),
)
BODY = st.binary(max_size=60) | st.sampled_from([zlib.compress(bytes(n)) for n in (48, 54, 150, 10**6)])
KINDS = [b"IDAT", b"PLTE", b"tRNS", b"iCCP", b"zTXt", b"iTXt", b"tEXt", b"acTL", b"fcTL", b"fdAT", b"eXIf", b"gAMA"]
CHUNKS = st.lists(st.builds(chunk, st.sampled_from(KINDS), BODY), max_size=5).map(b"".join)
PNG = st.builds(lambda head, rest: b"\x89PNG\r\n\x1a\n" + head + rest + chunk(b"IEND", b""), HEAD, CHUNKS)


@bounded()
@given(damaged(make_png("L")) | damaged(make_png("P")) | damaged(make_png("RGBA")) | PNG | st.binary(max_size=100))
def test_png(folder, content):
    for name in ("a", "b"):
        (folder / "images" / name).mkdir(parents=True, exist_ok=True)
        for i in range(2):
            (folder / "images" / name / f"{i}.png").write_bytes(make_png("L"))
    (folder / "images" / "b" / "2.png").write_bytes(content)
    result = attempt(data.load, folder / "images")
    assert result is None or result.n_features in (48, 144)


def make_parquet() -> bytes:
    pa = pytest.importorskip("pyarrow", reason="reading parquet needs pyarrow")
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    columns = {"a": np.arange(40.0), "b": np.arange(40), "label": ["x", "y"] * 20}
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


@bounded(0.5)
@given(st.data())
def test_parquet(folder, choice):
    (folder / "t.parquet").write_bytes(choice.draw(damaged(make_parquet())))
    result = attempt(data.load, folder / "t.parquet")
    assert result is None or bool(result.x_train.isfinite().all())
