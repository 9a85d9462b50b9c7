"""One door to all data: a name, or the path of a user's own file or folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cavity.data.errors import DataNotFound, damaged
from cavity.data.places import Folder
from cavity.data.readers import Request
from cavity.data.registry import DEFAULT, SOURCES, names, split_name
from cavity.data.treatment import USUAL, Treatment
from cavity.util.paths import expanded
from cavity.util.text import nearest, shown

if TYPE_CHECKING:
    from cavity.data.dataset import Dataset
    from cavity.data.raw import Raw

SUFFIXES = (".npz", ".csv", ".parquet")


def load(
    name_or_path: str | os.PathLike[str] = DEFAULT,
    *,
    binary_task: bool = False,
    data_dir: Folder = None,
    standardize: bool = True,
    seed: int = 0,
    test_fraction: float = 0.2,
    label: str | None = None,
    table: Treatment = USUAL,
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
    table             what is done with its columns and labels (``cavity.data.Treatment``): texts
                      become columns of 0 and 1, gaps are filled, labels are classes
    permutation       seed of a pixel permutation, the same for both parts; a name such as
                      ``permuted-mnist`` permutes with ``seed`` where none is given
    generator_options the fields of the generator's class in ``cavity.data.synthetic``
    ================= ==============================================================================
    """
    if seed < 0 or (permutation is not None and permutation < 0):
        raise ValueError(f"seed is {seed} and permutation is {permutation}, expected whole numbers from 0")
    raw = read(
        name_or_path,
        data_dir=data_dir,
        seed=seed,
        test_fraction=test_fraction,
        label=label,
        table=table,
        **generator_options,
    )
    return prepare(
        raw, name_or_path, binary_task=binary_task, standardize=standardize, seed=seed, permutation=permutation
    )


def read(
    name_or_path: str | os.PathLike[str],
    *,
    data_dir: Folder,
    seed: int,
    test_fraction: float,
    label: str | None,
    table: Treatment = USUAL,
    **generator_options: Any,
) -> Raw:
    """The first half of ``load``: samples in the units of their source."""
    text = os.fspath(name_or_path)
    source = SOURCES.get(split_name(text)[0])
    if generator_options and (source is None or not source.generated):
        raise TypeError(
            f"{shown(text)} takes no option {shown(', '.join(generator_options))}; only generators have options"
        )
    if source is None:
        return _load_path(text, label, test_fraction, seed, table)
    if label is not None:
        raise TypeError(f"label is {label!r}, but {shown(text)} has no label column; only tables have")
    return source.read(source, Request(data_dir, seed, test_fraction, generator_options))


def prepare(
    raw: Raw,
    name_or_path: str | os.PathLike[str],
    *,
    binary_task: bool,
    standardize: bool,
    seed: int,
    permutation: int | None = None,
) -> Dataset:
    """The second half of ``load``: tensors, standardised and permuted."""
    from cavity.data.standardize import finish

    if permutation is None and split_name(os.fspath(name_or_path))[1]:
        permutation = seed
    dataset = finish(raw, binary_task=binary_task, standardize=standardize)
    return dataset if permutation is None else dataset.permuted(permutation)


def _load_path(text: str, label: str | None, test_fraction: float, seed: int, table: Treatment) -> Raw:
    from cavity.data import images, npz, tables

    path = expanded(text)
    if not path.exists():
        hint = nearest(str(path), names())
        raise DataNotFound(f"{shown(path)}: neither a file or folder nor a known data set ({', '.join(names())}){hint}")
    suffix = path.suffix.lower() if path.is_file() else ""
    if suffix in (".csv", ".parquet"):
        return tables.load_table(path, label, test_fraction, seed, table)
    if table.task == "regression":
        raise TypeError(f"task is 'regression', but {shown(path)} is not a table; only .csv and .parquet are")
    if label is not None:
        raise TypeError(f"label is {label!r}, but {shown(path)} has no label column; only .csv and .parquet have")
    if path.is_dir():
        return images.load_folder(path, test_fraction, seed)
    if suffix == ".npz":
        return npz.load_npz(path, test_fraction, seed)
    raise damaged(path, f"cannot be read: expected a folder of images, or a file in {', '.join(SUFFIXES)}")
