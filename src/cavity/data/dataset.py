"""A data set ready for training: torch tensors, standardised, with what is needed to undo it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cavity.data.registry import PERMUTED
from cavity.util.text import shown

if TYPE_CHECKING:
    from torch import Tensor

    from cavity.data.encoding import Encoding
    from cavity.data.fingerprint import Fingerprint


@dataclass(frozen=True, eq=False, repr=False)
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
    #: Which samples these are, where a run has to know it.
    fingerprint: Fingerprint | None = None
    #: What was done with the columns of a table.
    encoding: Encoding | None = None
    #: Of regression, mean and std of the labels: ``y * std + mean`` is the label in its own units, and y float32.
    target: tuple[float, float] | None = None
    #: Names of a table's columns, where it has them.
    features: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """What it holds, in a few lines: the tensors would fill the screen and say less."""
        shape = "" if self.image_shape is None else f", images of {' x '.join(map(str, self.image_shape))}"
        lines = {
            "samples": f"{len(self.x_train):,} for training, {len(self.x_test):,} for tests",
            "inputs": f"{self.n_features:,} numbers{shape}" + (f": {_listed(self.features)}" if self.features else ""),
        }
        if self.target is None:
            lines["classes"] = f"{self.n_classes}: {_listed(self.classes)}"
        else:
            mean, std = self.target
            lines["labels"] = f"numbers, mean {mean:.4g}, standard deviation {std:.4g}"
        return "\n".join([f"Dataset {shown(self.name)}", *(f"  {name:<8} {text}" for name, text in lines.items())])

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
        x_train, y_train = _some("n_train", n_train, (self.x_train, self.y_train), [seed, 0])
        x_test, y_test = _some("n_test", n_test, (self.x_test, self.y_test), [seed, 1])
        return replace(self, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test, fingerprint=None)

    def order(self, seed: int) -> Tensor:
        """The features (features,) in the order that ``permuted(seed)`` gives them."""
        import numpy as np
        import torch

        channels = self.image_shape[0] if self.image_shape else 1
        pixels = self.n_features // channels
        starts = np.arange(channels)[:, None] * pixels
        return torch.from_numpy((starts + np.random.default_rng(seed).permutation(pixels)).reshape(-1))

    def permuted(self, seed: int) -> Dataset:
        """The same samples with their pixels (or features) in another order, one order for train and test.

        In colour images the channels of a pixel move together, so that each channel stays a channel.
        """
        order = self.order(seed)
        per_feature = self.mean.numel() == self.n_features
        return replace(
            self,
            x_train=self.x_train[:, order],
            x_test=self.x_test[:, order],
            mean=self.mean[order] if per_feature else self.mean,
            std=self.std[order] if per_feature else self.std,
            features=tuple(self.features[place] for place in order.tolist()) if self.features else (),
            name=PERMUTED + self.name.removeprefix(PERMUTED),
        )


#: So many letters of names are shown.
SHOWN_LETTERS = 60


def _listed(names: Sequence[str]) -> str:
    """The first names with commas, and an ellipsis where there are more."""
    kept: list[str] = []
    for name in map(shown, names):
        if len(", ".join([*kept, name])) > SHOWN_LETTERS:
            return ", ".join([*kept, "…"])
        kept.append(name)
    return ", ".join(kept)


def _some(argument: str, wanted: int | None, part: tuple[Tensor, Tensor], seed: list[int]) -> tuple[Tensor, Tensor]:
    """As many random samples and labels of a part as are ``wanted``; ``argument`` is what errors call it."""
    import numpy as np

    x, y = part
    if wanted is None:
        return x, y
    if not 0 <= wanted <= len(x):
        raise ValueError(f"{argument} is {wanted}, expected 0 to {len(x)}, the samples there are")
    chosen = np.random.default_rng(seed).permutation(len(x))[:wanted]
    return x[chosen], y[chosen]
