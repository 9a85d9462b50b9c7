"""Mini-batches from tensors in memory, by index: no workers, no copies but the batch itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral

import torch
from torch import Tensor

from cavity.training.augmentation import Augmentation


class Batches:
    """Shuffled mini-batches of (x, y) held on one device; the last incomplete one of an epoch is dropped.

    ``batch_size=None``, or one at least as large as the data, gives the full batch. With ``part``, which says what
    slice of so many samples to take, a batch has the inputs of that part only, and all labels. ``augment`` changes
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

    def epoch(self, order_seed: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
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
