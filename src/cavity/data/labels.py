"""Labels of every kind as class indices and names.

A label is kept once, however many samples have it and however long the longest is, and there are at most
``MAX_CLASSES``: memory follows from the size of a file, not from what is written in it.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cavity.data.errors import DataError, damaged

#: More different labels than this are numbers to be predicted, or names of samples.
MAX_CLASSES = 1 << 16
#: Class indices 0…C−1 (samples,) and the C names.
Encoded: TypeAlias = "tuple[NDArray[np.int64], tuple[str, ...]]"


class Words:
    """Labels that are texts, one sample after the other."""

    def __init__(self, path: str | Path) -> None:
        self._path, self._known, self._codes = path, dict[str, int](), array("i")

    def __len__(self) -> int:
        return len(self._codes)

    def add(self, word: str) -> None:
        """The label of the next sample."""
        self._codes.append(self._code(word))

    def extend(self, words: Sequence[str], indices: NDArray[np.integer]) -> None:
        """The labels ``words[indices]`` of the next samples."""
        codes = np.array([self._code(word) for word in words], np.int32)
        self._codes.frombytes(codes[indices].tobytes())

    def _code(self, word: str) -> int:
        code = self._known.setdefault(word, len(self._known))
        if code >= MAX_CLASSES:
            raise _too_many(self._path)
        return code

    def encoded(self) -> Encoded:
        """Classes in the order of numbers or else of the alphabet."""
        names = list(self._known)
        if len(names) < 2:
            raise damaged(self._path, f"{len(names)} class(es) among the labels, expected at least two")
        order = sorted(range(len(names)), key=names.__getitem__)
        with contextlib.suppress(ValueError):  # numbers by their value ("2" before "10"), other names as they stand
            order = sorted(order, key=lambda i: (float(names[i]), names[i]))
        rank = np.empty(len(names), np.int64)
        rank[order] = np.arange(len(names))
        return rank[np.frombuffer(self._codes, np.int32)], tuple(names[i] for i in order)


def encode_labels(path: str | Path, *parts: NDArray[np.generic]) -> Encoded:
    """Classes of labels in one or several arrays, which are taken one behind the other."""
    parts = tuple(part[:, 0] if part.ndim == 2 and part.shape[1] == 1 else part for part in parts)
    for part in parts:
        if part.ndim != 1 or part.dtype.kind not in "biufUS":
            raise damaged(path, f"labels have shape {part.shape} and type {part.dtype}, expected one per sample")
    if not {part.dtype.kind for part in parts} & set("US"):
        parts = (_numbers(path, np.concatenate(parts)),)
    words = Words(path)
    # Texts are never put into one array: it would give each the room of the longest.
    for part in parts:
        values, indices = np.unique(part, return_inverse=True)
        if part.dtype.kind == "f" and len(values) > len(part) // 2:
            raise damaged(path, f"{len(values)} different labels for {len(part)} samples: a number, not a class?")
        if len(values) > MAX_CLASSES:
            raise _too_many(path)
        try:
            listed = values.tolist()
        except ValueError as error:
            raise damaged(path, f"some labels are not text: {error}") from error
        names = [v.decode("utf-8", "backslashreplace") if isinstance(v, bytes) else str(v) for v in listed]
        words.extend(names, indices.reshape(-1))
    return words.encoded()


def _numbers(path: str | Path, labels: NDArray[np.generic]) -> NDArray[np.generic]:
    """Numbers as they are, or whole ones if they are whole."""
    if labels.dtype.kind == "f":
        if not np.isfinite(labels).all():
            raise damaged(path, "some labels are missing or not finite")
        if (labels == np.floor(labels)).all() and np.abs(labels).max(initial=0) < 2**53:
            return labels.astype(np.int64)
    return labels


def _too_many(path: str | Path) -> DataError:
    return damaged(path, f"has more than {MAX_CLASSES:,} different labels: numbers, not classes?")
