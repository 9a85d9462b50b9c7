"""Folders of PNG images by class."""

from __future__ import annotations

import contextlib
import io
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

from cavity import data
from cavity.data import DataError
from data.helpers import undone


def paint(folder, classes=("cat", "dog"), n=5, size=(4, 3), mode="L"):
    """n images per class; every pixel of image i of class k is 20 i + k."""
    for k, name in enumerate(classes):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(n):
            Image.new("L", size, 20 * i + k).convert(mode).save(folder / name / f"{i}.png")


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("1", 1), ("LA", 1), ("RGB", 3), ("RGBA", 3), ("P", 3)])
def test_folder_of_images(tmp_path, mode, channels):
    paint(tmp_path, mode=mode)
    (tmp_path / "cat" / "notes.txt").write_text("not an image")
    dataset = data.load(tmp_path)
    assert dataset.image_shape == (channels, 3, 4)
    assert dataset.classes == ("cat", "dog")
    assert (len(dataset.x_train), len(dataset.x_test)) == (8, 2)
    assert dataset.mean.shape == (1,)
    if mode != "1":
        values = (undone(dataset)[:, 0] * 255).round().int()
        assert (values % 20 == dataset.y_train).all()


def test_folder_with_a_test_set(tmp_path):
    paint(tmp_path / "train", n=3)
    paint(tmp_path / "test", n=2)
    dataset = data.load(tmp_path)
    assert (undone(dataset)[:, 0] * 255).round().tolist() == [0, 20, 40, 1, 21, 41]
    assert dataset.y_test.tolist() == [0, 0, 1, 1]


def test_one_colour_image_makes_all_colour(tmp_path):
    paint(tmp_path)
    Image.new("RGB", (4, 3), (255, 0, 0)).save(tmp_path / "dog" / "red.png")
    dataset = data.load(tmp_path, standardize=False)
    assert dataset.image_shape == (3, 3, 4)
    both = torch.cat([dataset.x_train, dataset.x_test])
    assert ((both[:, :12] == 1) & (both[:, 12:24] == 0)).all(1).sum() == 1


def png(width, height):
    """A PNG that declares a size and holds next to nothing."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def jpeg():
    stream = io.BytesIO()
    Image.new("L", (4, 3)).save(stream, "JPEG")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a readable PNG"),
        (b"\x89PNG\r\n\x1a\n", "not a readable PNG"),
        (png(4, 3)[:-30], "not a readable PNG"),
        (png(5, 3), "5×3, the images before it 4×3"),
        (png(100_000, 100_000), "more than 16,777,216 pixels|not a readable PNG"),
        (png(2**31 - 1, 2**31 - 1), "more than 16,777,216 pixels|not a readable PNG"),
        (jpeg(), "not a readable PNG"),
    ],
    ids=["empty", "signature", "truncated", "size", "large", "huge", "jpeg"],
)
def test_damaged_images(tmp_path, content, reason):
    paint(tmp_path)
    (tmp_path / "dog" / "9.png").write_bytes(content)
    with pytest.raises(DataError, match=rf"9\.png: .*({reason})"):
        data.load(tmp_path)


def test_a_file_larger_than_any_image_is_not_read(tmp_path):
    paint(tmp_path)
    with (tmp_path / "dog" / "9.png").open("wb") as file:
        file.truncate(200 << 20)
    with pytest.raises(DataError, match=r"9\.png: has 209,715,200 bytes"):
        data.load(tmp_path)


def test_a_chunk_that_declares_gigabytes_reserves_none(tmp_path):
    paint(tmp_path)
    path = tmp_path / "dog" / "4.png"
    before, after = path.read_bytes().split(b"IDAT")
    path.write_bytes(before[:-4] + b"\x7f\xff\xff\xffIDAT" + after)
    data.load("random-labels")  # so that imports are not counted
    tracemalloc.start()
    try:
        with contextlib.suppress(DataError):
            data.load(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


def test_sixteen_bits_are_refused(tmp_path):
    paint(tmp_path)
    Image.fromarray(np.full((3, 4), 60_000, np.uint16)).save(tmp_path / "dog" / "9.png")
    with pytest.raises(DataError, match="only 8 bits per channel"):
        data.load(tmp_path)


def test_image_bomb(tmp_path):
    for k in ("a", "b"):
        (tmp_path / k).mkdir()
        for i in range(3):
            (tmp_path / k / f"{i}.png").write_bytes(png(4000, 4000))
    with pytest.raises(DataError, match="declares 96,000,000 bytes"):
        data.load(tmp_path)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda folder: None, "no sub-folders"),
        (lambda folder: (folder / "cat").mkdir(), "holds no PNG"),
        (lambda folder: paint(folder, ("cat",)), "at least two"),
        (lambda folder: (paint(folder / "train"), paint(folder / "test", ("cow",))), "train lacks: cow"),
        (lambda folder: paint(folder, n=1), "too few"),
    ],
)
def test_folders_that_cannot_be_used(tmp_path, make, reason):
    make(tmp_path)
    with pytest.raises(DataError, match=reason):
        data.load(tmp_path)
