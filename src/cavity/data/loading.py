"""One door to all data: a name, or the path of a user's own file or folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cavity.data.errors import DataNotFound, damaged
from cavity.data.places import Folder
from cavity.data.registry import CIFAR_10, DEFAULT, SOURCES, Source, names, split_name
from cavity.util.text import nearest

if TYPE_CHECKING:
    from cavity.data.dataset import Dataset
    from cavity.data.raw import Raw

SUFFIXES = (".npz", ".csv", ".parquet")
DIGITS_SPLIT_SEED = 0


def load(
    name_or_path: str | os.PathLike[str] = DEFAULT,
    *,
    binary_task: bool = False,
    data_dir: Folder = None,
    standardize: bool = True,
    seed: int = 0,
    test_fraction: float = 0.2,
    label: str | None = None,
    permutation: int | None = None,
    **generator_options: Any,
) -> Dataset:
    """A data set by name (see ``available``), or the path of a user's own (npz, csv, parquet, folder of PNG).

    ================= ==============================================================================
    binary_task       two classes: odd indices become +1, even ones −1
    data_dir          searched first, and where downloads go
    standardize       subtract the training set's mean and divide by its std; without it, images are
                      between 0 and 1 and tables as they are
    seed              of generators and splits; what has a test set of its own, and digits, is fixed
    test_fraction     the share of digits, or of a user's data without a test set, that becomes one
    label             the label column of a table, by default label, target, y or class
    permutation       seed of a pixel permutation, the same for both parts; a name such as
                      ``permuted-mnist`` permutes with ``seed`` where none is given
    generator_options the fields of the generator's class in ``cavity.data.synthetic``
    ================= ==============================================================================
    """
    from cavity.data.standardize import finish

    if seed < 0 or (permutation is not None and permutation < 0):
        raise ValueError(f"seed is {seed} and permutation is {permutation}, expected whole numbers from 0")
    text = os.fspath(name_or_path)
    name, is_permuted = split_name(text)
    if generator_options and name not in _generators():
        raise TypeError(f"{text} takes no option {', '.join(generator_options)}; only generators have options")
    if name in names():
        if label is not None:
            raise TypeError(f"label is {label!r}, but {text} has no label column; only tables have")
        raw = _load_known(name, data_dir, seed, test_fraction, generator_options)
    else:
        raw = _load_path(Path(text).expanduser(), label, test_fraction, seed)
    dataset = finish(raw, binary_task=binary_task, standardize=standardize)
    if permutation is None and is_permuted:
        permutation = seed
    return dataset if permutation is None else dataset.permuted(permutation)


def _generators() -> tuple[str, ...]:
    from cavity.data.synthetic import GENERATORS

    return tuple(GENERATORS)


def _load_known(name: str, data_dir: Folder, seed: int, test_fraction: float, generator_options: dict[str, Any]) -> Raw:
    if name == "digits":
        return _load_digits(test_fraction)
    if name == CIFAR_10.name:
        return _load_cifar(data_dir)
    if name in SOURCES:
        return _load_idx(SOURCES[name], data_dir)
    from cavity.data.synthetic import generate

    return generate(name, seed, generator_options)


def _load_path(path: Path, label: str | None, test_fraction: float, seed: int) -> Raw:
    if not path.exists():
        hint = nearest(str(path), names())
        raise DataNotFound(f"{path}: neither a file or folder nor a known data set ({', '.join(names())}){hint}")
    suffix = path.suffix.lower()
    if path.is_file() and suffix in (".csv", ".parquet"):
        from cavity.data.tables import load_table

        return load_table(path, label, test_fraction, seed)
    if label is not None:
        raise TypeError(f"label is {label!r}, but {path} has no label column; only .csv and .parquet have")
    if path.is_dir():
        from cavity.data.images import load_folder

        return load_folder(path, test_fraction, seed)
    if path.is_file() and suffix == ".npz":
        from cavity.data.npz import load_npz

        return load_npz(path, test_fraction, seed)
    raise damaged(path, f"cannot be read: expected a folder of images, or a file in {', '.join(SUFFIXES)}")


def _load_digits(test_fraction: float) -> Raw:
    """scikit-learn's digits; the split depends on nothing but ``test_fraction``."""
    import numpy as np
    from sklearn.datasets import load_digits

    from cavity.data.raw import Raw, split

    bunch = load_digits()
    y = bunch.target.astype(np.int64)
    train, test = split(bunch.data.astype(np.uint8), y, test_fraction, DIGITS_SPLIT_SEED)
    return Raw("digits", train, test, tuple(str(i) for i in range(10)), "overall", (1, 8, 8), 16.0)


def _load_idx(source: Source, data_dir: Folder) -> Raw:
    import numpy as np

    from cavity.data.binary import parse_idx
    from cavity.data.raw import Part, Raw
    from cavity.data.store import contents

    files = contents(source.name, data_dir)
    parts, shape = [], (0, 0)
    for stem in ("train", "t10k"):
        images = parse_idx(files[f"{stem}-images-idx3-ubyte"], f"{source.name}/{stem}-images", 3)
        labels = parse_idx(files[f"{stem}-labels-idx1-ubyte"], f"{source.name}/{stem}-labels", 1)
        shape = images.shape[1], images.shape[2]
        parts.append(Part(images.reshape(len(images), -1), labels.astype(np.int64)))
    return Raw(source.name, parts[0], parts[1], source.classes, "overall", (1, *shape), 255.0)


def _load_cifar(data_dir: Folder) -> Raw:
    import numpy as np

    from cavity.data.binary import CIFAR_SHAPE, parse_cifar
    from cavity.data.raw import Part, Raw
    from cavity.data.store import contents

    files = contents(CIFAR_10.name, data_dir)
    batches = {name: parse_cifar(content, f"cifar-10/{name}") for name, content in files.items()}
    parts = []
    for prefix in ("data_batch", "test_batch"):
        chosen = [batches[file.name] for file in CIFAR_10.files if file.name.startswith(prefix)]
        images = np.concatenate([x.reshape(len(x), -1) for x, _ in chosen])
        parts.append(Part(images, np.concatenate([y for _, y in chosen]).astype(np.int64)))
    return Raw(CIFAR_10.name, parts[0], parts[1], CIFAR_10.classes, "channel", CIFAR_SHAPE, 255.0)
