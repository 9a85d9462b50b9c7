"""How the data sets that are known by name are read. Importing it is cheap."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from cavity.data.raw import Raw
    from cavity.data.registry import Source

DIGITS_SPLIT_SEED = 0


class Request(NamedTuple):
    """What ``load`` was asked for; ``options`` are those of a generator."""

    data_dir: str | os.PathLike[str] | None
    seed: int
    test_fraction: float
    options: dict[str, Any]


def read_generated(source: Source, request: Request) -> Raw:
    from cavity.data.synthetic import generate

    return generate(source.name, request.seed, request.options)


def read_digits(source: Source, request: Request) -> Raw:
    """scikit-learn's digits; the split depends on nothing but ``test_fraction``."""
    import numpy as np
    from sklearn.datasets import load_digits

    from cavity.data.raw import Raw, split

    bunch = load_digits()
    y = bunch.target.astype(np.int64)
    train, test = split(bunch.data.astype(np.uint8), y, request.test_fraction, DIGITS_SPLIT_SEED)
    return Raw(source.name, train, test, source.classes, "overall", (1, 8, 8), 16.0)


def read_idx(source: Source, request: Request) -> Raw:
    """MNIST and its likes."""
    import numpy as np

    from cavity.data.binary import parse_idx
    from cavity.data.raw import Part, Raw
    from cavity.data.store import contents

    files = contents(source.name, request.data_dir)
    parts = []
    for stem in ("train", "t10k"):
        images = parse_idx(files[f"{stem}-images-idx3-ubyte"], f"{source.name}/{stem}-images", 3)
        labels = parse_idx(files[f"{stem}-labels-idx1-ubyte"], f"{source.name}/{stem}-labels", 1)
        parts.append(Part(images.reshape(len(images), -1), labels.astype(np.int64)))
    height, width = images.shape[1:]
    return Raw(source.name, parts[0], parts[1], source.classes, "overall", (1, height, width), 255.0)


def read_cifar(source: Source, request: Request) -> Raw:
    import numpy as np

    from cavity.data.binary import CIFAR_SHAPE, parse_cifar
    from cavity.data.raw import Part, Raw
    from cavity.data.store import contents

    files = contents(source.name, request.data_dir)
    parts = []
    for prefix in ("data_batch", "test_batch"):
        names = [file.name for file in source.files if file.name.startswith(prefix)]
        images, labels = zip(*(parse_cifar(files[name], f"cifar-10/{name}") for name in names), strict=True)
        x = np.concatenate(images)
        parts.append(Part(x.reshape(len(x), -1), np.concatenate(labels).astype(np.int64)))
    return Raw(source.name, parts[0], parts[1], source.classes, "channel", CIFAR_SHAPE, 255.0)
