"""A data set ready for training: torch tensors, standardised, with what is needed to undo it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cavity.data.registry import PERMUTED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test samples.

    ========== ======= =============================================================================
    x_train    float32 (samples, features), images flattened as (channels, height, width)
    y_train    int64   (samples,): class indices 0…C−1, or ±1 for the two-class task
    x_test     float32 like x_train
    y_test     int64   like y_train
    mean, std  float32 (1,) or (features,): ``x * std + mean`` is the sample in its own units,
                       for images the brightness between 0 and 1
    ========== ======= =============================================================================

    ``image_shape`` is (channels, height, width), or None for a table; ``classes`` are the names, in the order
    of the indices, or those of −1 and +1.
    """

    x_train: Tensor
    y_train: Tensor
    x_test: Tensor
    y_test: Tensor
    image_shape: tuple[int, int, int] | None
    classes: tuple[str, ...]
    mean: Tensor
    std: Tensor
    name: str

    @property
    def n_features(self) -> int:
        """The length of one flattened sample."""
        return int(self.x_train.shape[1])

    @property
    def n_classes(self) -> int:
        """The number of classes; 2 for the two-class task."""
        return len(self.classes)

    def subset(self, n_train: int | None = None, n_test: int | None = None, seed: int = 0) -> Dataset:
        """``n_train`` and ``n_test`` random samples, without repetition; None keeps a part as it is.

        The standardisation stays that of the whole training set.
        """
        train = _choice("n_train", n_train, len(self.x_train), [seed, 0])
        test = _choice("n_test", n_test, len(self.x_test), [seed, 1])
        x_train, y_train = (t if train is None else t[train] for t in (self.x_train, self.y_train))
        x_test, y_test = (t if test is None else t[test] for t in (self.x_test, self.y_test))
        return replace(self, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)

    def permuted(self, seed: int) -> Dataset:
        """The same samples with their pixels (or features) in another order, one order for train and test.

        In colour images the channels of a pixel move together, so that each channel stays a channel.
        """
        import torch

        order = torch.from_numpy(pixel_order(self.n_features, self.image_shape, seed))
        per_feature = self.mean.numel() == self.n_features
        return replace(
            self,
            x_train=self.x_train[:, order],
            x_test=self.x_test[:, order],
            mean=self.mean[order] if per_feature else self.mean,
            std=self.std[order] if per_feature else self.std,
            name=PERMUTED + self.name.removeprefix(PERMUTED),
        )


def _choice(argument: str, wanted: int | None, there: int, seed: list[int]) -> NDArray[np.int64] | None:
    import numpy as np

    if wanted is None:
        return None
    if not 0 <= wanted <= there:
        raise ValueError(f"{argument} is {wanted}, expected 0 to {there}, the samples there are")
    return np.random.default_rng(seed).permutation(there)[:wanted]


def pixel_order(n_features: int, image_shape: tuple[int, int, int] | None, seed: int) -> NDArray[np.int64]:
    """A random order of all features (features,) that treats the channels of an image alike."""
    import numpy as np

    channels = image_shape[0] if image_shape else 1
    order = np.random.default_rng(seed).permutation(n_features // channels)
    starts = np.arange(channels)[:, None] * (n_features // channels)
    return (starts + order).reshape(-1)
