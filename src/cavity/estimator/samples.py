"""Samples to learn from: rows, dense or sparse, their targets, and how often each counts.

Sparse rows are made dense a mini-batch at a time. Rows that are the same, target included, are one sample that counts
as often as there are rows: what is learnt is the same, and a weight of n is exactly n copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import Tensor

#: Inputs (samples, features) as scikit-learn hands them on: an array of float64, or a CSR matrix of SciPy, which has no
#: types to name.
Rows: TypeAlias = Any
#: Sparse rows that are made dense at once where there is no mini-batch.
AT_ONCE = 4096


class Standardizer:
    """(X − mean)/scale of every feature; sparse rows have the same done to them when they are made dense."""

    def __init__(self, scaler: StandardScaler | None) -> None:
        self.scaler = scaler

    @classmethod
    def fit(cls, X: Rows, counts: NDArray[np.float64] | None) -> StandardScaler:
        """The statistics of X, where rows count that often."""
        # A mean cannot be taken off sparse rows as a whole, but it is measured all the same.
        return StandardScaler(with_mean=not sparse.issparse(X)).fit(X, sample_weight=counts)

    def __call__(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.scaler is None:
            return X
        # A value beyond float64 after scaling is reported later, by its place.
        with np.errstate(all="ignore"):
            moved: NDArray[np.float64] = (X - self.scaler.mean_) / self.scaler.scale_
        return moved


class SparseRows:
    """Standardised rows of a sparse matrix, dense where they are asked for."""

    device = torch.device("cpu")

    def __init__(self, X: Rows, standardize: Standardizer, dtype: torch.dtype) -> None:
        self.X, self.standardize, self.dtype = X, standardize, dtype

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        rows: Any = self.X[index.numpy() if isinstance(index, Tensor) else index]
        return torch.from_numpy(self.standardize(rows.toarray())).to(self.dtype)

    def take(self, index: NDArray[np.intp]) -> SparseRows:
        """Some rows, still sparse."""
        return SparseRows(self.X[index], self.standardize, self.dtype)


@dataclass(frozen=True)
class Samples:
    """Rows x (samples, features), targets y (samples, …) and how often each counts, (samples,); None: once."""

    x: Tensor | SparseRows
    y: Tensor
    counts: Tensor | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, index: NDArray[np.intp]) -> Samples:
        """Some of them; sparse rows stay sparse."""
        at = torch.from_numpy(np.asarray(index, dtype=np.int64))
        x = self.x[at] if isinstance(self.x, Tensor) else self.x.take(index)
        return Samples(x, self.y[at], None if self.counts is None else self.counts[at])

    def dense(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """x, y and counts as tensors."""
        return self.x if isinstance(self.x, Tensor) else self.x[:], self.y, self.counts

    def some(self, most: int) -> Samples:
        """All, or that many of them, always the same."""
        if len(self) <= most:
            return self
        return self.take(torch.randperm(len(self), generator=torch.Generator().manual_seed(0))[:most].numpy())

    def parts(self) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        """All of them as dense tensors, one after the other where they are sparse."""
        if isinstance(self.x, Tensor):
            yield self.dense()
            return
        for start in range(0, len(self), AT_ONCE):
            yield self.take(np.arange(start, min(start + AT_ONCE, len(self)))).dense()


def merged(
    X: Rows, y: NDArray[Any], counts: NDArray[np.float64] | None
) -> tuple[Rows, NDArray[Any], NDArray[np.float64] | None]:
    """Rows of (X, y) that are the same as one that counts as often. Where there are any, or counts, the order is that
    of the rows as words, their first numbers first: it must not matter how they were mixed."""
    if not isinstance(X, np.ndarray):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    # Rows that are the same have the same sum. Only those with a sum in common must be compared.
    sums, group, size = np.unique(np.asarray(X.sum(axis=1)).ravel(), return_inverse=True, return_counts=True)
    tied = np.flatnonzero(size[group] > 1)
    same = np.unique(_as_bytes(X, y, tied), return_inverse=True)[1]
    if counts is None and len(set(same.tolist())) == len(tied):
        return X, y, None
    group[tied] = len(sums) + same
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    total = np.bincount(group, weights=counts).astype(np.float64)
    order = _as_words(X, y, first)
    return X[first[order]], y[first[order]], total[order]


def _as_bytes(X: Rows, y: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
    """Some rows of (X, y) as strings of bytes, the same if and only if the rows are."""
    targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)[rows] + 0.0
    if isinstance(X, np.ndarray):
        # Of 0 and −0, adding 0 makes the same bytes.
        both = np.ascontiguousarray(np.hstack([X[rows] + 0.0, targets]))
        return both.view(np.dtype((np.void, both.shape[1] * both.itemsize))).ravel()
    part, words = X[rows], np.empty(len(rows), dtype=object)
    for n, (start, end) in enumerate(zip(part.indptr[:-1], part.indptr[1:], strict=True)):
        columns = part.indices[start:end].astype(np.int64)
        words[n] = columns.tobytes() + part.data[start:end].tobytes() + targets[n].tobytes()
    return words


def _as_words(X: Rows, y: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """The order of some rows, no two of them the same: by their first column, then their second, and at last y."""
    if not isinstance(X, np.ndarray):
        return np.argsort(_as_bytes(X, y, rows), kind="stable")
    rank, open_ = np.zeros(len(rows), dtype=np.int64), np.arange(len(rows))
    for column in (*X.T, *np.asarray(y, dtype=np.float64).reshape(len(y), -1).T):
        values = column[rows[open_]]
        if values.min() == values.max():
            continue
        order = np.lexsort((values, rank[open_]))
        at = open_[order]
        new = np.r_[True, (np.diff(values[order]) != 0) | (np.diff(rank[at]) != 0)]
        starts = np.flatnonzero(new)
        length = np.diff(np.r_[starts, len(at)])
        # Of those that were tied the first keeps its rank, and each gets that of the first that is like it.
        begins = np.flatnonzero(np.r_[True, np.diff(rank[at]) != 0])
        within = np.arange(len(at)) - begins[np.cumsum(np.r_[True, np.diff(rank[at]) != 0]) - 1]
        rank[at] += np.repeat(within[starts], length)
        open_ = at[np.repeat(length, length) > 1]
        if not len(open_):
            break
    return np.argsort(rank, kind="stable")


def held_out(
    samples: int, fraction: float, labels: NDArray[Any] | None, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices to train and to validate on; by class where ``labels`` are given and every class is large enough."""
    held = max(1, round(fraction * samples))
    if not 0 < fraction < 1 or held >= samples:
        raise ValueError(
            f"validation_fraction must be in (0, 1) and leave a sample to train on, got {fraction} "
            f"of n_samples = {samples}"
        )
    if labels is not None:
        counts = np.unique(labels, return_counts=True)[1]
        labels = labels if counts.min() >= 2 and len(counts) <= min(held, samples - held) else None
    train, test = train_test_split(np.arange(samples), test_size=held, random_state=seed, stratify=labels)
    return train, test


def dropped(
    X: Rows, y: NDArray[Any], counts: NDArray[np.float64] | None
) -> tuple[Rows, NDArray[Any], NDArray[np.float64] | None]:
    """Without the samples that count 0 times; None where each of the others counts once."""
    if counts is None:
        return X, y, None
    kept = np.flatnonzero(counts)
    left = counts[kept]
    if len(kept) < len(counts):
        X, y = X[kept], y[kept]
    return X, y, None if (left == 1).all() else left
