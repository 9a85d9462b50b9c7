"""Which samples a data set has, and which part each is in: what ties a run to its data.

A sample has a code of 64 bits, from its numbers in the units of the source, and one of 32 bits from the name of its
class. So samples are found again in another order, in another part, with another label or among others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cavity.data.raw import Part, Raw, Samples

#: Rows whose codes are made at once.
ROWS = 4096
#: Odd, and without a pattern in its bits: spreads 32 bits over 64.
SPREAD = np.int64(-7046029254386353131)
Codes64 = NDArray[np.int64]


class Codes(NamedTuple):
    """Codes of the samples of a part and of their labels, (samples,)."""

    rows: Codes64
    labels: NDArray[np.int32]

    @property
    def pairs(self) -> Codes64:
        """A code for sample and label together."""
        return self.rows + self.labels.astype(np.int64) * SPREAD

    def equals(self, other: Codes) -> bool:
        return np.array_equal(self.rows, other.rows) and np.array_equal(self.labels, other.labels)


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """The samples of both parts, and the names of all classes."""

    train: Codes
    test: Codes
    classes: tuple[str, ...]

    @classmethod
    def of(cls, raw: Raw) -> Fingerprint:
        if raw.classes:
            names = np.array([_code(name.encode("utf-8", "surrogatepass"), 4) for name in raw.classes], np.int32)
            labels = [names[part.y] for part in (raw.train, raw.test)]
        else:
            # Of numbers, the labels themselves; single precision is what is learnt.
            labels = [part.y.astype("<f4").view("<i4").astype(np.int32) for part in (raw.train, raw.test)]
        train, test = (Codes(row_codes(part.x), of) for part, of in zip((raw.train, raw.test), labels, strict=True))
        return cls(train, test, raw.classes)

    @property
    def all(self) -> Codes:
        """Training samples, and behind them those of the test set."""
        rows, labels = (self.train.rows, self.test.rows), (self.train.labels, self.test.labels)
        return Codes(np.concatenate(rows), np.concatenate(labels))

    def equals(self, other: Fingerprint) -> bool:
        """The same samples with the same labels in the same order and parts."""
        return self.classes == other.classes and self.train.equals(other.train) and self.test.equals(other.test)

    def differences(self, now: Fingerprint) -> Iterator[str]:
        """What is different now, in words."""
        before, after = self.all, now.all
        common = _in_common(before.rows, after.rows)
        new, gone = len(after.rows) - common, len(before.rows) - common
        if new or gone:
            yield f"{len(after.rows)} samples where there were {len(before.rows)} ({new} are new, {gone} are gone)"
        if self.classes != now.classes:
            yield f"{len(now.classes)} classes where there were {len(self.classes)}, or other names of classes"
        if relabelled := common - _in_common(before.pairs, after.pairs):
            yield f"{relabelled} samples have another label"
        if seen := int(_moved(now.test, self.train, self.test).sum()):
            yield f"{seen} of the {len(now.test.rows)} test samples were trained on"
        if lost := int(_moved(now.train, self.test, self.train).sum()):
            yield f"{lost} samples of the test set are now for training"


def row_codes(x: Samples) -> Codes64:
    """A code for each row of x (samples, features), the same on every machine."""
    x = np.ascontiguousarray(x, x.dtype.newbyteorder("<"))
    codes = np.empty(len(x), np.int64)
    for start in range(0, len(x), ROWS):
        codes[start : start + ROWS] = [_code(row.data, 8) for row in x[start : start + ROWS]]
    return codes


def _code(content: Any, size: int) -> int:
    return int.from_bytes(blake2b(content, digest_size=size).digest(), "little", signed=True)


def _moved(now: Codes, there: Codes, not_there: Codes) -> NDArray[np.bool_]:
    """Which samples of a part were in another one before, and only there."""
    return np.isin(now.rows, there.rows) & ~np.isin(now.rows, not_there.rows)


def _in_common(one: Codes64, other: Codes64) -> int:
    """How many codes two lists have in common, each as often as both have it."""
    (ours, our_counts), (theirs, their_counts) = (np.unique(codes, return_counts=True) for codes in (one, other))
    _, here, there = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    return int(np.minimum(our_counts[here], their_counts[there]).sum())


def as_before(raw: Raw, now: Fingerprint, before: Fingerprint) -> Raw | None:
    """The same samples in the order and the parts that they had before; None if there are others, or labels changed."""
    ours, theirs = now.all.pairs, before.all.pairs
    if now.classes != before.classes or not np.array_equal(np.sort(ours), np.sort(theirs)):
        return None
    place = np.empty(len(theirs), np.int64)
    place[np.argsort(theirs, kind="stable")] = np.argsort(ours, kind="stable")
    cut = len(before.train.rows)
    return _taken(raw, place[:cut], place[cut:])


def original(raw: Raw, now: Fingerprint, before: Fingerprint) -> Raw:
    """The samples of each part that are still there, with the labels that they have now."""
    rows = now.all.rows
    return _taken(raw, _still_there(rows, before.train.rows), _still_there(rows, before.test.rows))


def unseen(raw: Raw, now: Fingerprint, before: Fingerprint) -> Raw:
    """For training the samples that are still there, for testing all that were never trained on, old and new."""
    rows = now.all.rows
    return _taken(raw, _still_there(rows, before.train.rows), np.flatnonzero(~np.isin(rows, before.train.rows)))


def _still_there(rows: Codes64, wanted: Codes64) -> NDArray[np.int64]:
    """Positions of the wanted codes among ``rows``, of equal ones as many as are wanted."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    rank = np.arange(len(rows)) - np.searchsorted(ordered, ordered)
    codes, counts = np.unique(wanted, return_counts=True)
    found = np.minimum(np.searchsorted(codes, ordered), len(codes) - 1)
    return np.sort(order[rank < np.where(codes[found] == ordered, counts[found], 0)])


def _taken(raw: Raw, train: NDArray[np.int64], test: NDArray[np.int64]) -> Raw:
    """The samples at these positions of both parts, one behind the other, as new parts."""
    x, y = (np.concatenate(pair) for pair in ((raw.train.x, raw.test.x), (raw.train.y, raw.test.y)))
    return replace(raw, train=Part(x[train], y[train]), test=Part(x[test], y[test]))
