"""Images that are mirrored and moved: pixel by pixel, by seed, and the same for all who share a mini-batch."""

from __future__ import annotations

import pytest
import torch

from cavity.training.augmentation import Augmentation
from cavity.training.batches import Batches
from cavity.training.recipes import Changes

SHAPE = (2, 4, 5)


def images(samples: int) -> torch.Tensor:
    return torch.arange(samples * 40.0).reshape(samples, *SHAPE)


def moved(image: torch.Tensor, dy: int, dx: int, mirrored: bool) -> torch.Tensor:
    """One pixel after the other."""
    result = torch.empty_like(image)
    for c in range(2):
        for row in range(4):
            for column in range(5):
                source = 4 - column if mirrored else column
                result[c, row, column] = image[c, min(max(row + dy, 0), 3), min(max(source + dx, 0), 4)]
    return result


def test_every_image_is_one_of_those_it_may_become() -> None:
    x, change = images(60), Augmentation(SHAPE, flip=True, shift=2)
    found = change(x, 5, 3, 60, slice(None))
    seen = set()
    for image, new in zip(x, found, strict=True):
        ways = [
            (dy, dx, mirrored)
            for dy in range(-2, 3)
            for dx in range(-2, 3)
            for mirrored in (False, True)
            if torch.equal(moved(image, dy, dx, mirrored), new)
        ]
        assert len(ways) == 1
        seen.update(ways)
    assert {mirrored for *_, mirrored in seen} == {False, True}
    assert {dy for dy, _, _ in seen} == {dx for _, dx, _ in seen} == {-2, -1, 0, 1, 2}


def test_flat_images_and_parts_are_the_same_images() -> None:
    x, change = images(9), Augmentation(SHAPE, flip=True, shift=1)
    whole = change(x, 7, 0, 9, slice(None))
    assert torch.equal(change(x.flatten(1), 7, 0, 9, slice(None)), whole.flatten(1))
    for part in (slice(0, 4), slice(4, 9)):
        assert torch.equal(change(x[part], 7, 0, 9, part), whole[part])


def test_mini_batches_differ_and_an_epoch_can_be_entered_anywhere() -> None:
    batches = Batches(images(20), torch.arange(20), 5, augment=Augmentation(SHAPE, flip=True, shift=2))
    whole = list(batches.epoch(11))
    for number, (x, y) in enumerate(batches.epoch(11, start=2), start=2):
        assert torch.equal(x, whole[number][0])
        assert torch.equal(y, whole[number][1])
    plain = list(Batches(images(20), torch.arange(20), 5).epoch(11))
    assert [y.tolist() for _, y in plain] == [y.tolist() for _, y in whole]
    assert not any(torch.equal(x, old) for (x, _), (old, _) in zip(whole, plain, strict=True))
    change = Augmentation(SHAPE, flip=True, shift=2)
    first, second, other = (change(images(30), *draw, 30, slice(None)) for draw in ((1, 0), (1, 1), (2, 0)))
    assert not torch.equal(first, second)
    assert not torch.equal(first, other)


def test_words() -> None:
    assert Changes.parse("flip") == (True, 0)
    assert Changes.parse("shift:3, flip") == (True, 3)
    assert Augmentation.of(None, None) is None
    for text in ("", "shift", "shift:", "shift:x", "flip:2", "turn", "shift:1,", "shift:1234"):
        with pytest.raises(ValueError, match="augment must be flip, shift:PIXELS"):
            Changes.parse(text)
    with pytest.raises(ValueError, match="the data are no images"):
        Augmentation.of("flip", None)
    with pytest.raises(ValueError, match=r"\(channels, height, width\)"):
        Augmentation((28, 28))
