"""Mini-batches: from tensors in memory, by index, with no copies but the batch itself; or as an iterable has them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral

import torch
from torch import Tensor

from cavity.analysis.metrics import TRAIN_SAMPLES
from cavity.training.augmentation import Augmentation

Pair = tuple[Tensor, Tensor]


class Batches:
    """Shuffled mini-batches of (x, y) held on one device; the last incomplete one of an epoch is dropped.

    ``batch_size=None``, or one at least as large as the data, gives the full batch. With ``part``, which says what
    slice of a number of samples to take, a batch has the inputs of that part only, and all labels. ``augment`` changes
    images at random.
    """

    def __init__(
        self,
        x: Tensor,
        y: Tensor,
        batch_size: int | None,
        part: Callable[[int], slice] | None = None,
        augment: Augmentation | None = None,
    ) -> None:
        if len(x) != len(y):
            raise ValueError(f"x and y must hold as many samples as each other, got {len(x)} and {len(y)}")
        whole = isinstance(batch_size, Integral) and not isinstance(batch_size, bool)
        if batch_size is not None and not (whole and batch_size >= 1):
            raise ValueError(f"batch_size must be a positive integer or None for the full batch, got {batch_size!r}")
        self.x, self.y = x, y
        self.batch_size = len(x) if batch_size is None else min(int(batch_size), len(x))
        self.part = slice(None) if part is None else part(self.batch_size)
        self.augment = augment

    def __len__(self) -> int:
        return len(self.x) // self.batch_size

    def epoch(self, order_seed: int, start: int = 0) -> Iterator[Pair]:
        """The batches of the epoch that ``order_seed`` shuffles, from batch number ``start`` on."""
        if len(self) == 1 and self.batch_size == len(self.x):
            if start == 0:
                yield self._changed(self.x[self.part], order_seed, 0), self.y
            return
        generator = torch.Generator().manual_seed(order_seed)
        order = torch.randperm(len(self.x), generator=generator).to(self.x.device)
        for number in range(start, len(self)):
            index = order[number * self.batch_size : (number + 1) * self.batch_size]
            yield self._changed(self.x[index[self.part]], order_seed, number), self.y[index]

    def _changed(self, x: Tensor, order_seed: int, number: int) -> Tensor:
        """The inputs of a batch as they are learnt from."""
        return x if self.augment is None else self.augment(x, order_seed, number, self.batch_size, self.part)


class Recent(Iterable[Pair]):
    """Hands mini-batches on and keeps the last of them, about as many samples as training errors are measured on."""

    def __init__(self, batches: Iterable[Pair]) -> None:
        self.batches = batches
        self.kept: deque[Pair] = deque()
        self._samples = 0

    def __iter__(self) -> Iterator[Pair]:
        for x, y in self.batches:
            self.kept.append((x, y))
            self._samples += len(x)
            while self._samples - len(self.kept[0][0]) >= TRAIN_SAMPLES:
                self._samples -= len(self.kept.popleft()[0])
            yield x, y
