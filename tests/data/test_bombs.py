"""Small files that stand for much: refused, or read in time and memory that their size explains."""

from __future__ import annotations

import functools
import io
import os
import struct
import time
import zipfile
import zlib

import numpy as np
import pytest

import fuzzing
from cavity import data
from cavity.data import DataError
from cavity.data.raw import stratified_split
from data.test_fuzz import chunk

attempt = functools.partial(fuzzing.attempt, errors=())
#: What is unpacked freely (see ``cavity.data.packing``), and some room for the libraries.
MEBIBYTES = 64 + 16


def test_a_zip_that_lies_about_its_sizes(tmp_path):
    """The sizes in the directory are small; what is packed is not."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", bytes(200 << 20))
    content = stream.getvalue().replace(struct.pack("<I", 200 << 20), struct.pack("<I", 1000))
    (tmp_path / "lie.npz").write_bytes(content)
    with pytest.raises(DataError):
        attempt(data.load, tmp_path / "lie.npz", mebibytes=MEBIBYTES)


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_arrays_packed_as_numpy_never_does(tmp_path, method):
    with zipfile.ZipFile(tmp_path / "f.npz", "w", method) as archive:
        archive.writestr("x.npy", b"\x93NUMPY")
    with pytest.raises(DataError, match="is packed by method"):
        data.load(tmp_path / "f.npz")


@pytest.mark.parametrize("text", ["-" * 9000 + "1", "(" * 9000, "[" * 90 + "]" * 90, "~" * 9000 + "1", "{" * 150])
def test_headers_of_arrays_that_are_nested_too_deeply(tmp_path, text):
    header = text.encode() + b"\n"
    with zipfile.ZipFile(tmp_path / "f.npz", "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", len(header)) + header)
    with pytest.raises(DataError, match="not a readable"):
        attempt(data.load, tmp_path / "f.npz", mebibytes=MEBIBYTES)


def png(width: int, height: int, *chunks: bytes) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(chunks) + chunk(b"IEND", b"")


@pytest.fixture
def image(tmp_path):
    """A function that puts a picture among others of 4×4 pixels."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for number in range(3):
            row = zlib.compress(bytes(5) * 4)
            (tmp_path / name / f"{number}.png").write_bytes(png(4, 4, chunk(b"IDAT", row)))

    def add(content: bytes):
        (tmp_path / "a" / "0.png").write_bytes(content)
        return tmp_path

    return add


def test_images_that_declare_what_they_do_not_hold(image):
    assert len(data.load(image(png(4, 4, chunk(b"IDAT", zlib.compress(bytes(20)))))).x_train) == 5
    for size in ((1 << 16, 1 << 16), ((1 << 31) - 1, 4), (4, 100_000_000), (0, 0)):
        with pytest.raises(DataError, match=r"0\.png"):
            attempt(data.load, image(png(*size, chunk(b"IDAT", zlib.compress(bytes(20))))), mebibytes=MEBIBYTES)


def test_images_with_texts_and_profiles_that_unpack_to_much(image):
    bomb = zlib.compress(bytes(100 << 20), 9)
    for kind, start in ((b"zTXt", b"a\0\0"), (b"iTXt", b"a\0\1\0\0\0"), (b"iCCP", b"a\0\0")):
        folder = image(png(4, 4, chunk(kind, start + bomb), chunk(b"IDAT", zlib.compress(bytes(20)))))
        with pytest.raises(DataError, match=r"0\.png: is not a readable PNG"):
            attempt(data.load, folder, mebibytes=MEBIBYTES)


def test_many_images_that_unpack_to_much(tmp_path):
    rows = zlib.compress(bytes(4001) * 4000, 9)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for number in range(5):
            (tmp_path / name / f"{number}.png").write_bytes(png(4000, 4000, chunk(b"IDAT", rows)))
    with pytest.raises(DataError, match="declares 160,000,000 bytes of content"):
        attempt(data.load, tmp_path, mebibytes=MEBIBYTES)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX's")
def test_a_pipe_among_images_is_passed_over(image):
    folder = image(png(4, 4, chunk(b"IDAT", zlib.compress(bytes(20)))))
    os.mkfifo(folder / "b" / "9.png")
    assert len(data.load(folder).x_train) == 5


def test_as_many_classes_as_samples_take_no_longer():
    """Searched for one by one they would take minutes."""
    y = np.arange(400_000) // 2
    began = time.process_time()
    train, test = stratified_split(y, 0.2, 0)
    assert time.process_time() - began < 15
    assert sorted([*train, *test]) == list(range(len(y)))


def test_the_split_is_what_a_search_for_each_class_gives():
    y = np.random.default_rng(0).integers(0, 7, 100)
    random = np.random.default_rng(3)
    expected = [random.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
    counts = np.cumsum([len(members) for members in expected])
    tests = np.diff(np.round(counts * 0.2).astype(int), prepend=0)
    train = np.concatenate([members[n:] for members, n in zip(expected, tests, strict=True)])
    assert sorted(stratified_split(y, 0.2, 3)[0]) == sorted(train)


def test_a_long_label_does_not_multiply(tmp_path):
    """In an array of text every row would have room for the longest: 16 GB."""
    (tmp_path / "t.csv").write_text("a,label\n" + "1,b\n2,c\n" * 20_000 + f"3,{'d' * 100_000}\n")
    assert attempt(data.load, tmp_path / "t.csv", mebibytes=MEBIBYTES).classes == ("b", "c", "d" * 100_000)


def test_codes_for_the_terminal_are_not_passed_on(tmp_path):
    (tmp_path / "t.csv").write_text("a\x1b[2J,b\n1,2\n")
    with pytest.raises(DataError) as caught:
        data.load(tmp_path / "t.csv")
    assert "\x1b" not in str(caught.value)
    assert "a\\x1b[2J" in str(caught.value)


@pytest.fixture
def write_parquet(tmp_path):
    """A function that writes columns, of which texts may be a dictionary."""
    pa = pytest.importorskip("pyarrow", reason="reading parquet needs pyarrow")
    import pyarrow.parquet as pq

    def write(**columns):
        pq.write_table(pa.table(columns), tmp_path / "t.parquet")
        return tmp_path / "t.parquet"

    return write


def test_parquet_with_a_long_text_in_every_row(write_parquet):
    """A gigabyte of labels in a megabyte; the text is kept once."""
    pa = pytest.importorskip("pyarrow")
    words = ["a" * (1 << 19), "b"]
    texts = pa.DictionaryArray.from_arrays(pa.array(np.arange(2000, dtype=np.int32) % 2), words)
    path = write_parquet(a=np.zeros(2000), label=texts)
    assert path.stat().st_size < 1 << 20
    assert attempt(data.load, path, mebibytes=MEBIBYTES).classes == tuple(words)


def test_parquet_with_a_long_text_in_many_rows_is_held_once(write_parquet):
    pa = pytest.importorskip("pyarrow")
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2000, np.int32)), ["a" * (1 << 19)])
    found = attempt(data.load, write_parquet(a=texts, label=np.arange(2000) % 2), mebibytes=MEBIBYTES)
    assert found.n_features == 1


@pytest.mark.parametrize("kind", ["string", "large_string", "dictionary"])
def test_parquet_with_labels_of_every_kind(write_parquet, kind):
    pa = pytest.importorskip("pyarrow")
    labels = pa.array(["even", "odd"] * 20)
    labels = labels.dictionary_encode() if kind == "dictionary" else labels.cast(kind)
    dataset = data.load(write_parquet(a=np.arange(40.0), label=labels))
    assert dataset.classes == ("even", "odd")
    assert (dataset.x_train[:, 0] * dataset.std + dataset.mean).round().long().remainder(
        2
    ).tolist() == dataset.y_train.tolist()
