"""Samples without labels for a trained network: tables, arrays and images, standardised as its training data were.

x, names = read_samples("new.csv", run.load_checkpoint().task)
run.load_network().predict_proba(x)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cavity.data.errors import damaged
from cavity.data.images import read_images
from cavity.data.npz import read_npz
from cavity.data.tables import label_column, scan
from cavity.data.treatment import Treatment

if TYPE_CHECKING:
    from cavity.runs.task import Task

SUFFIXES = (".npz", ".csv", ".parquet", ".png")
#: Largest value of 8-bit images, whose unit is the brightness between 0 and 1.
WHITE = 255.0


class Numbers(Sequence[str]):
    """Names of samples that have none: their numbers from 0, each written when it is asked for."""

    def __init__(self, samples: int) -> None:
        self._numbers = range(samples)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        found = self._numbers[index]
        return str(found) if isinstance(found, int) else list(map(str, found))


class Samples(NamedTuple):
    """x (samples, features), standardised, and a name for each: its file, or its number from 0."""

    x: Tensor
    names: Sequence[str]


def read_samples(path: str | os.PathLike[str], task: Task) -> Samples:
    """``.npz`` with an array ``x``, ``.csv`` or ``.parquet`` with a column per feature, PNG images or a folder of them.

    A label column is passed over. Numbers are in the units of the training data; 8-bit images become 0…1 first.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder")
    suffix = path.suffix.lower()
    names: Sequence[str]
    if path.is_dir() or suffix == ".png":
        files = [path] if path.is_file() else sorted(file for file in path.rglob("*.png") if file.is_file())
        names = [str(file.relative_to(path)) if path.is_dir() else file.name for file in files]
        values = _images(path, files, task)
    elif suffix in SUFFIXES:
        values = _array(path, task) if suffix == ".npz" else _table(path, task)
        names = Numbers(len(values))
    else:
        raise damaged(path, f"cannot be read: expected a folder of PNG images, or a file in {', '.join(SUFFIXES)}")
    if values.shape[1:] != (task.inputs,):
        raise damaged(path, f"has samples of {values[0].size} numbers, the network takes {task.inputs}")
    with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused below
        x = torch.from_numpy(values.astype(np.float32))
    if not bool(torch.isfinite(x).all()):
        raise damaged(path, "holds numbers that are missing or not finite")
    return Samples(task.standardize(x), names)


def _array(path: Path, task: Task) -> NDArray[Any]:
    arrays = read_npz(path)
    name = next((name for name in ("x", "x_test") if name in arrays), None)
    if name is None:
        raise damaged(path, f"holds {', '.join(arrays) or 'no arrays'}; expected x")
    x: NDArray[Any] = arrays[name]
    if x.dtype.kind not in "biuf" or x.ndim < 2 or len(x) == 0:
        raise damaged(path, f"array {name!r} has shape {x.shape} of {x.dtype}, expected numbers (samples, features)")
    if task.image_shape is not None:
        channels, height, width = task.image_shape
        if x.shape[1:] == (height, width, channels) and channels > 1:
            x = x.transpose(0, 3, 1, 2)
        if x.dtype == np.uint8:
            x = x / WHITE
    return x.reshape(len(x), -1)


def _label(path: Path, columns: list[str], task: Task) -> int | None:
    """The column that is no feature, if there is one more than the network takes."""
    if len(columns) == task.inputs:
        return None
    if len(columns) == task.inputs + 1:
        return label_column(path, columns, None)
    raise damaged(path, f"has {len(columns)} columns, the network takes {task.inputs}")


def _table(path: Path, task: Task) -> NDArray[np.float64]:
    """Columns are found by their names; numbers alone, if the table has other names, by their places."""
    encoding, missing = task.encoding, list[str]()
    wanted = [] if encoding is None else [one.name for one in encoding.columns]

    def find(columns: list[str]) -> int | None:
        there = set(wanted).intersection(columns)
        missing.extend(name for name in wanted if name not in there)
        if encoding is not None and (encoding.texts or not missing):
            return None
        return _label(path, columns, task)

    table = scan(path, find, None, Treatment(fitted=encoding)).table
    if encoding is not None and encoding.texts and missing:
        raise damaged(path, f"has no column {missing[0]!r}, which the network takes")
    if table.words and (encoding is None or missing):
        number = min(table.words)
        raise damaged(path, f"column {table.names[number]!r} holds texts, the network takes numbers")
    return table.x if encoding is None else encoding.apply(table)


def _images(path: Path, files: list[Path], task: Task) -> NDArray[np.float64]:
    """(samples, channels · height · width), brightness between 0 and 1."""
    if task.image_shape is None:
        raise damaged(path, f"holds images, but the network was trained on tables of {task.inputs} numbers")
    if not files:
        raise damaged(path, "holds no PNG images")
    if task.image_shape[0] not in (1, 3):
        raise damaged(path, f"holds PNG images, but the network takes images of {task.image_shape[0]} channels")
    return read_images(files, task.image_shape)[0] / WHITE
