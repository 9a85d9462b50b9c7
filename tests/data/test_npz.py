"""A user's arrays: split, labels of any kind, images, and files that lie about themselves."""

from __future__ import annotations

import pickle
import struct
import sys
import zipfile

import numpy as np
import pytest
import torch

from cavity import data
from cavity.data import DataError
from cavity.data.npz import read_npz
from data.helpers import undone

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(3, 2, (50, 4))
Y = np.arange(50) % 3


@pytest.mark.parametrize("names", [("x", "y"), ("X", "y")])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_is_split_and_standardised(tmp_path, names, save):
    save(tmp_path / "mine.npz", **dict(zip(names, (X, Y), strict=True)))
    dataset = data.load(tmp_path / "mine.npz")
    assert dataset.name == "mine"
    assert dataset.image_shape is None
    assert dataset.classes == ("0", "1", "2")
    assert (len(dataset.x_train), len(dataset.x_test)) == (40, 10)
    together = torch.cat([undone(dataset), undone(dataset, "test")])
    assert torch.allclose(together.sort(0).values, torch.tensor(X).float().sort(0).values, atol=1e-5)
    assert dataset.x_train.mean(0).abs().max() < 1e-6
    assert (dataset.x_train.std(0, correction=0) - 1).abs().max() < 1e-6


def test_npz_with_its_own_test_set(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, x_train=X[:30], y_train=Y[:30], x_test=X[30:], y_test=Y[30:])
    dataset = data.load(path)
    assert torch.allclose(undone(dataset, "test"), torch.tensor(X[30:]).float(), atol=1e-5)
    assert dataset.y_test.tolist() == Y[30:].tolist()


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array([10, 9, 10, 9, 2, 2]), ("2", "9", "10")),
        (np.array([1.0, -1.0] * 3), ("-1", "1")),
        (np.array([0.5, 1.5] * 3), ("0.5", "1.5")),
        (np.array([True, False] * 3), ("False", "True")),
        (np.array(["dog", "cat", "dog"] * 2), ("cat", "dog")),
        (np.array(["10", "9"] * 3), ("9", "10")),
        (np.array([b"b", b"a"] * 3), ("a", "b")),
        (np.array([[3], [4]] * 3), ("3", "4")),
    ],
)
def test_labels_of_any_kind_become_indices(tmp_path, labels, classes):
    np.savez(tmp_path / "f.npz", x_train=X[:6], y_train=labels, x_test=X[6:12], y_test=labels)
    dataset = data.load(tmp_path / "f.npz")
    assert dataset.classes == classes
    said = [str(label.decode() if isinstance(label, bytes) else label) for label in labels.ravel().tolist()]
    named = [dataset.classes[i] for i in dataset.y_train]
    assert [name.removesuffix(".0") for name in said] == named


@pytest.mark.parametrize(
    ("shape", "image_shape"),
    [((6, 5, 4), (1, 5, 4)), ((6, 3, 5, 4), (3, 5, 4)), ((6, 5, 4, 3), (3, 5, 4))],
)
def test_npz_images(tmp_path, shape, image_shape):
    x = RANDOM.integers(0, 256, shape, dtype=np.uint8)
    np.savez(tmp_path / "f.npz", x_train=x, y_train=[0, 1] * 3, x_test=x, y_test=[0, 1] * 3)
    dataset = data.load(tmp_path / "f.npz", standardize=False)
    assert dataset.image_shape == image_shape
    first = x[0].transpose(2, 0, 1) if shape[-1] == 3 else x[0]
    assert np.allclose(dataset.x_train[0].numpy(), first.ravel() / 255, atol=1e-7)


def npz(tmp_path, **arrays):
    np.savez(tmp_path / "f.npz", **arrays)
    return tmp_path / "f.npz"


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"a": X}, "holds a; expected x and y"),
        ({"x": X, "y": Y[:-1]}, "50 samples but labels of shape"),
        ({"x": X, "y": np.zeros((50, 3))}, "labels have shape"),
        ({"x": X, "y": np.zeros(50)}, "at least two"),
        ({"x": X, "y": np.where(Y > 0, 1.0, np.nan)}, "not finite"),
        ({"x": X, "y": X[:, 0]}, "a number, not a class"),
        ({"x": X, "X": X, "y": Y}, "two arrays"),
        ({"x": X[:, 0], "y": Y}, "expected numbers as"),
        ({"x": X.astype(str), "y": Y}, "expected numbers as"),
        ({"x": X.astype(complex), "y": Y}, "only numbers and text"),
        ({"x": X[:0], "y": Y[:0]}, "expected numbers as"),
        ({"x": np.where(X > 4, np.nan, X), "y": Y}, "not a finite number"),
        ({"x": X * 1e300, "y": Y}, "too large"),
        ({"x_train": X, "y_train": Y, "x_test": X[:, :3], "y_test": Y}, "differ in shape"),
        ({"x_train": X, "y_train": Y, "x_test": X, "y_test": Y.astype(str)}, "differ in type"),
    ],
)
def test_npz_that_cannot_be_used(tmp_path, arrays, reason):
    with pytest.raises(DataError, match=reason):
        data.load(npz(tmp_path, **arrays))


class Bomb:
    """An object whose unpickling leaves a trace."""

    def __reduce__(self):
        return exec, ("import sys; sys.unpickled = True",)


def test_npz_never_unpickles(tmp_path):
    path = npz(tmp_path, x=X, y=np.array([Bomb()] * 50, dtype=object))
    assert b"sys.unpickled" in path.read_bytes()
    with pytest.raises(DataError, match="holds object"):
        data.load(path)
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(DataError, match="not a readable"):
        data.load(path)
    assert not hasattr(sys, "unpickled")


def zipped(tmp_path, content: bytes, **options):
    path = tmp_path / "f.npz"
    with zipfile.ZipFile(path, "w", **options) as archive:
        archive.writestr("x.npy", content)
    return path


def npy(shape, dtype="<f8", body=b"") -> bytes:
    header = str({"descr": dtype, "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (npy((10**6, 10**6)), "which is not what it holds"),
        (npy((10**30,)), "which is not what it holds"),
        (npy((-1, -8), body=bytes(64)), "which is not what it holds"),
        (npy((2, 2), body=bytes(31)), "which is not what it holds"),
        (npy((2, 2), "|O", bytes(32)), "only numbers"),
        (npy((2, 2), "|V8", bytes(32)), "only numbers"),
        (npy((2, 2), "nonsense", bytes(32)), "not a readable"),
        (npy((2, "a")), "not a readable"),
        (b"\x93NUMPY\x07\x00", "version"),
        (b"rubbish", "not a readable"),
        (b"", "not a readable"),
    ],
)
def test_damaged_npz(tmp_path, content, reason):
    with pytest.raises(DataError, match=rf"f\.npz: .*{reason}"):
        read_npz(zipped(tmp_path, content))


def test_npz_bomb(tmp_path):
    side = 3000
    content = npy((side, side), body=bytes(8 * side * side))
    path = zipped(tmp_path, content, compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1 << 20
    with pytest.raises(DataError, match=r"declares 72,\d+,\d+ bytes"):
        read_npz(path)
