"""Images as they might have been: mirrored and moved at random, anew for every mini-batch.

What is drawn follows from the seed of the epoch and the number of the mini-batch alone, so that a run that is resumed
in the middle of an epoch goes on with the same images, and several processes share them. One look-up moves and mirrors
a whole mini-batch: pixel (r, c) of a new image is pixel (r + dy, c + dx) of the old one, or the nearest at its border.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cavity.training.recipes import Changes

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Two numbers that make a seed of a seed and a number: any odd factor spreads neighbours over all seeds.
FACTOR, SEEDS = 0x9E3779B97F4A7C15, 2**63


class Augmentation:
    """Mirrors half of all images left to right if ``flip``, and moves them by up to ``shift`` pixels in each direction.

    ``shape`` is (channels, height, width); images may be flat.
    """

    def __init__(self, shape: Sequence[int], *, flip: bool = False, shift: int = 0) -> None:
        if len(shape) != 3:
            raise ValueError(f"augmentation is for images of shape (channels, height, width), got {tuple(shape)}")
        if shift < 0:
            raise ValueError(f"shift must be a number of pixels >= 0, got {shift}")
        self.shape, self.flip, self.shift = tuple(shape), flip, shift

    @classmethod
    def of(cls, text: str | None, shape: Sequence[int] | None) -> Augmentation | None:
        """From words such as ``flip,shift:2``; None for None."""
        if text is None:
            return None
        if shape is None:
            raise ValueError(f"augment is {text!r}, but the data are no images")
        return cls(shape, **Changes.parse(text)._asdict())

    def __call__(self, x: Tensor, seed: int, number: int, samples: int, part: slice) -> Tensor:
        """Images x of mini-batch ``number``, which are the ``part`` of its ``samples``; the shape stays."""
        generator = torch.Generator().manual_seed((seed ^ (FACTOR * (number + 1))) % SEEDS)
        _, height, width = self.shape
        moves = torch.randint(-self.shift, self.shift + 1, (samples, 2), generator=generator)[part].to(x.device)
        rows, columns = (
            (torch.arange(side, device=x.device) + moves[:, which, None]).clamp_(0, side - 1)
            for which, side in ((0, height), (1, width))
        )
        if self.flip:
            mirrored = (torch.rand(samples, generator=generator) < 0.5)[part].to(x.device)
            columns = torch.where(mirrored[:, None], columns.flip(1), columns)
        place = (rows[:, :, None] * width + columns[:, None, :]).flatten(1)
        pixels = x.reshape(len(x), self.shape[0], height * width)
        return pixels.gather(2, place[:, None].expand_as(pixels)).reshape(x.shape)
