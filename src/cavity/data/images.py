"""A folder of PNG images by class: ``<class>/*.png``, or the same below ``train/`` and ``test/``."""

from __future__ import annotations

import io
import itertools
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cavity.data.errors import damaged, reading
from cavity.data.labels import Words
from cavity.data.packing import check_expansion
from cavity.data.raw import Part, Raw, split
from cavity.util.regular import read_regular

GREY = ("1", "L", "LA")
COLOUR = ("RGB", "RGBA", "P", "PA")
MAX_PIXELS = 4096 * 4096
MAX_FILE = 128 << 20


def _list(folder: Path) -> list[tuple[Path, str]]:
    """Every PNG file with the name of its class, in the order of their names; other files are passed over."""
    pairs = []
    for class_folder in sorted(path for path in folder.iterdir() if path.is_dir() and path.name[0] != "."):
        files = sorted(path for path in class_folder.iterdir() if path.suffix.lower() == ".png" and path.is_file())
        if not files:
            raise damaged(class_folder, "holds no PNG images; every sub-folder is taken for a class")
        pairs += [(path, class_folder.name) for path in files]
    if not pairs:
        raise damaged(folder, "holds no sub-folders with PNG images, one per class")
    return pairs


def _decode(
    path: Path, mode: str | None, size: tuple[int, int] | None, whose: str
) -> tuple[str, tuple[int, int], bytes]:
    """Mode, size and, where a ``mode`` to convert to is given, the pixels of one PNG image; ``whose`` size it must have
    is said in the error."""
    from PIL import Image

    # Pillow's decoders raise a different exception in nearly every place; all of them mean a damaged file.
    with reading(path, "PNG image", Exception):
        if path.stat().st_size > MAX_FILE:
            raise damaged(path, f"has {path.stat().st_size:,} bytes, more than {MAX_FILE:,}")
        # From memory: a file object reserves what a damaged chunk declares, up to 4 GiB, before it reads.
        with Image.open(io.BytesIO(read_regular(path)), formats=("PNG",)) as image:
            if math.prod(image.size) > MAX_PIXELS:
                raise damaged(path, f"is {image.width}×{image.height}, more than {MAX_PIXELS:,} pixels")
            if image.mode not in GREY + COLOUR:
                raise damaged(path, f"has pixels of type {image.mode}; only 8 bits per channel are read")
            if size is not None and image.size != size:
                raise damaged(path, f"is {image.width}×{image.height}, {whose} {size[0]}×{size[1]}")
            return image.mode, image.size, image.convert(mode).tobytes() if mode is not None else b""


def read_images(
    paths: list[Path], shape: tuple[int, int, int] | None = None
) -> tuple[NDArray[np.uint8], tuple[int, int, int]]:
    """All images as (samples, channels · height · width), and their (channels, height, width).

    ``shape`` is what they must have, of 1 or 3 channels; by default they are grey if all of them are, else in colour.
    """
    whose = "the images before it" if shape is None else "the network takes"
    size = None if shape is None else (shape[2], shape[1])
    modes, packed = set(), 0
    for path in paths:
        mode, size, _ = _decode(path, None, size, whose)
        modes.add(mode)
        packed += path.stat().st_size
    assert size is not None
    width, height = size
    channels = shape[0] if shape is not None else 1 if modes <= set(GREY) else 3
    mode = "L" if channels == 1 else "RGB"
    check_expansion(paths[0].parent, packed, len(paths) * channels * height * width)
    images = np.empty((len(paths), channels, height, width), np.uint8)
    for image, path in zip(images, paths, strict=True):
        pixels = np.frombuffer(_decode(path, mode, size, whose)[2], np.uint8)
        image[:] = pixels.reshape(height, width, channels).transpose(2, 0, 1)
    return images.reshape(len(paths), -1), (channels, height, width)


def load_folder(folder: Path, test_fraction: float, seed: int) -> Raw:
    """Images by class, split here unless the folder has ``train`` and ``test`` in it."""
    given = [folder / "train", folder / "test"]
    lists = [_list(path) for path in (given if all(path.is_dir() for path in given) else [folder])]
    unseen = {name for _, name in lists[-1]} - {name for _, name in lists[0]}
    if unseen:
        raise damaged(folder, f"test has classes that train lacks: {', '.join(sorted(unseen))}")
    paths, names = zip(*itertools.chain(*lists), strict=True)
    labels = Words(folder)
    for name in names:
        labels.add(name)
    y, classes = labels.encoded()
    x, shape = read_images(list(paths))
    if len(lists) == 2:
        n_train = len(lists[0])
        train, test = Part(x[:n_train], y[:n_train]), Part(x[n_train:], y[n_train:])
    else:
        train, test = split(x, y, test_fraction, seed)
    return Raw(folder.name, train, test, classes, "overall", shape, 255.0)
