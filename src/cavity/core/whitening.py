"""A fixed first layer for images: patches, whitened by their own statistics, and never learnt.

    x'_c = Σ_i F_ci (p_i − μ_i),   F = (Λ + ε)^{-1/2} Uᵀ

p is a patch of the image, μ and UΛUᵀ are mean and covariance of patches of training images. The largest components come
first; they have variance 1 and are uncorrelated, which natural pixels are far from.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cavity.core.couplings import Conv2d

#: ε relative to the mean eigenvalue: what is fainter is mostly noise, and is not blown up.
FAINT = 0.01


class Whitening(nn.Module):
    """``components`` numbers for each patch of ``kernel`` by ``kernel`` pixels, taken every ``stride`` pixels.

    ``Trainer.fit`` computes it from training images before its first step; it is part of the network's state.
    """

    filters: Tensor
    centre: Tensor
    fitted: Tensor

    def __init__(self, image_shape: tuple[int, int, int], components: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        # A coupling knows the shapes and how to cut patches; its weights are the filters.
        self.coupling = Conv2d(image_shape, components, kernel, stride)
        size = self.coupling.columns
        if components > size:
            raise ValueError(f"components must be at most the {size} numbers of a patch, got {components}")
        self.register_buffer("filters", torch.eye(components, size))
        self.register_buffer("centre", torch.zeros(size))
        #: Whether images have said what the filters are; before that they are single pixels.
        self.register_buffer("fitted", torch.tensor(False))

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self.coupling.input_shape

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.coupling.output_shape

    def fit(self, x: Tensor) -> None:
        """Compute the filters from images x (samples, *input_shape)."""
        patches = self.coupling.gather(x.double())
        centre = patches.mean(dim=0)
        covariance = (patches - centre).T @ (patches - centre) / len(patches)
        values, vectors = torch.linalg.eigh(covariance)
        # Ascending, and of either sign: the largest first, its largest entry positive.
        values, vectors = values.flip(0)[: len(self.filters)], vectors.flip(1).T[: len(self.filters)]
        largest = vectors.gather(1, vectors.abs().argmax(dim=1, keepdim=True))
        vectors = vectors * torch.where(largest < 0, -1.0, 1.0)
        faint = FAINT * covariance.diagonal().mean()
        scaled = vectors / (values + faint).clamp_min(torch.finfo(torch.float32).tiny).sqrt()[:, None]
        self.filters, self.centre = scaled.to(self.filters), centre.to(self.centre)
        self.fitted = torch.ones_like(self.fitted)

    def forward(self, x: Tensor) -> Tensor:
        """Images (samples, *input_shape) → (samples, *output_shape)."""
        filters = self.filters.reshape(self.coupling.outputs, self.input_shape[0], *self.coupling.kernel)
        return F.conv2d(x, filters, -(self.filters @ self.centre), stride=self.coupling.stride)
