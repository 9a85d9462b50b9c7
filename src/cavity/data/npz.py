"""NumPy's ``.npz`` without pickle and without trust: every size is checked before it is believed."""

from __future__ import annotations

import math
import warnings
import zipfile
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from cavity.data.errors import damaged, reading
from cavity.data.labels import encode_labels
from cavity.data.packing import check_expansion
from cavity.data.raw import Part, Raw, Samples, split
from cavity.util.regular import open_regular

MAX_HEADER = 10_000
CHANNEL_COUNTS = (1, 3, 4)
SPLIT = ("x_train", "y_train", "x_test", "y_test")


def _read_member(path: Path, name: str, stream: IO[bytes], size: int) -> NDArray[np.generic]:
    """One array; its declared shape must account for exactly the bytes of the member."""
    version = npy.read_magic(stream)
    reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if reader is None:
        raise damaged(path, f"array {name!r} has format version {version}, expected 1.0 or 2.0")
    with warnings.catch_warnings():
        # NumPy comments on old spellings of types; whoever reads the file cannot change them.
        warnings.simplefilter("ignore")
        shape, fortran, dtype = reader(stream, max_header_size=MAX_HEADER)
    if dtype.hasobject or dtype.kind not in "biufUS" or dtype.itemsize == 0:
        raise damaged(path, f"array {name!r} holds {dtype}; only numbers and text are read")
    wanted = math.prod(shape) * dtype.itemsize
    if any(length < 0 for length in shape) or wanted != size - stream.tell():
        raise damaged(path, f"array {name!r} declares shape {shape} of {dtype}, which is not what it holds")
    content = stream.read(wanted)
    if len(content) != wanted:
        raise damaged(path, f"array {name!r} is truncated")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")


def read_npz(path: Path) -> dict[str, NDArray[np.generic]]:
    """All arrays of an archive by lower-case name."""
    arrays: dict[str, NDArray[np.generic]] = {}
    # zipfile, Python's parser and NumPy raise a different exception in nearly every place, MemoryError for a header
    # nested too deeply among them; memory itself is bounded by check_expansion.
    with reading(path, ".npz file", Exception), open_regular(path) as file, zipfile.ZipFile(file) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        check_expansion(path, path.stat().st_size, sum(member.file_size for member in members))
        for member in members:
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise damaged(path, f"{member.filename!r} is packed by method {member.compress_type}, not by NumPy")
            name = member.filename.removesuffix(".npy").lower()
            if name in arrays:
                raise damaged(path, f"holds two arrays called {name!r}")
            with archive.open(member) as stream:
                arrays[name] = _read_member(path, name, stream, member.file_size)
    return arrays


def _flat(path: Path, name: str, x: NDArray[np.generic]) -> tuple[Samples, tuple[int, int, int] | None]:
    """Samples as (samples, features), and the image shape where the array has more than two dimensions."""
    if x.dtype.kind not in "biuf" or x.ndim not in (2, 3, 4) or 0 in x.shape:
        expected = "(samples, features), (samples, height, width) or these with channels before or after"
        raise damaged(path, f"array {name!r} has shape {x.shape} of {x.dtype}, expected numbers as {expected}")
    values: Samples = x if x.dtype == np.uint8 else x.astype(np.float32 if x.dtype.itemsize <= 2 else np.float64)
    if x.ndim == 2:
        return values, None
    if x.ndim == 3:
        values = values[:, None]
    elif x.shape[1] not in CHANNEL_COUNTS and x.shape[3] in CHANNEL_COUNTS:
        values = values.transpose(0, 3, 1, 2)
    channels, height, width = values.shape[1:]
    return values.reshape(len(values), -1), (channels, height, width)


def load_npz(path: Path, test_fraction: float, seed: int) -> Raw:
    """``x_train, y_train, x_test, y_test``, or ``x, y`` (of either case) to be split here."""
    arrays = read_npz(path)
    if all(name in arrays for name in SPLIT):
        (x_train, shape), (x_test, test_shape) = (_flat(path, k, arrays[k]) for k in ("x_train", "x_test"))
        if shape != test_shape or x_train.shape[1] != x_test.shape[1] or x_train.dtype != x_test.dtype:
            raise damaged(path, "x_train and x_test differ in shape or type")
        y_train, y_test = np.ravel(arrays["y_train"]), np.ravel(arrays["y_test"])
        _check_lengths(path, x_train, y_train)
        _check_lengths(path, x_test, y_test)
        kinds = {y_train.dtype.kind, y_test.dtype.kind}
        if len(kinds) == 2 and kinds & set("US"):
            raise damaged(path, "y_train and y_test differ in type")
        y, classes = encode_labels(path, y_train, y_test)
        train, test = Part(x_train, y[: len(x_train)]), Part(x_test, y[len(x_train) :])
    elif "x" in arrays and "y" in arrays:
        x, shape = _flat(path, "x", arrays["x"])
        _check_lengths(path, x, arrays["y"])
        y, classes = encode_labels(path, arrays["y"])
        train, test = split(x, y, test_fraction, seed)
    else:
        raise damaged(path, f"holds {', '.join(arrays) or 'no arrays'}; expected x and y, or {', '.join(SPLIT)}")
    is_bytes = shape is not None and train.x.dtype == np.uint8
    return Raw(path.stem, train, test, classes, "overall" if shape else "feature", shape, 255.0 if is_bytes else 1.0)


def _check_lengths(path: Path, x: Samples, y: NDArray[np.generic]) -> None:
    if y.ndim not in (1, 2) or len(y) != len(x):
        raise damaged(path, f"{len(x)} samples but labels of shape {y.shape}")
