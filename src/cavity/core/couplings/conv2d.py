"""Two-dimensional convolution: one set of weights shared over the positions of an image."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.grad import conv2d_input, conv2d_weight

from cavity.core.couplings.base import Coupling, check_sizes

#: Height and width, or one number for both.
Sides = int | tuple[int, int]


def pair(name: str, value: Sides) -> tuple[int, int]:
    """(height, width), from one integer for both or from a pair."""
    sizes = (value, value) if isinstance(value, int) else tuple(value)
    if len(sizes) != 2 or not all(isinstance(size, int) for size in sizes):
        raise ValueError(f"{name} must be one integer or two (height, width), got {value!r}")
    return sizes[0], sizes[1]


class Conv2d(Coupling):
    """Weights (channels out, channels in · kernel height · kernel width [+ 1]), columns in the order of ``unfold``.

    Every output position of every sample is a separate factor; the field of a weight is the sum over all of them.
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        outputs: int,
        kernel: Sides,
        stride: Sides = 1,
        padding: Sides = 0,
        bias: bool = False,
    ) -> None:
        if isinstance(image_shape, int):
            raise TypeError(
                f"image_shape must be (channels, height, width), got {image_shape!r}: unlike torch's, this convolution "
                f"must know the size of its images, e.g. Conv2d(({image_shape}, 28, 28), {outputs!r}, {kernel!r})"
            )
        if len(image_shape) != 3:
            raise ValueError(f"image_shape must be (channels, height, width), got {image_shape!r}")
        channels, height, width = image_shape
        self.kernel, self.stride = pair("kernel", kernel), pair("stride", stride)
        self.padding = pair("padding", padding)
        check_sizes(outputs=outputs, channels=channels, height=height, width=width)
        check_sizes(kernel=min(self.kernel), stride=min(self.stride))
        if min(self.padding) < 0:
            raise ValueError(f"padding must be >= 0, got {padding}")
        out = tuple(
            (size + 2 * pad - k) // step + 1
            for size, pad, k, step in zip((height, width), self.padding, self.kernel, self.stride, strict=True)
        )
        if min(out) < 1:
            raise ValueError(f"kernel {self.kernel} does not fit into image_shape {image_shape} with padding {padding}")
        self.bias = bias
        self.outputs = outputs
        self.columns = channels * self.kernel[0] * self.kernel[1] + bias
        self.input_shape = (channels, height, width)
        self.output_shape = (outputs, *out)

    def __repr__(self) -> str:
        return (
            f"Conv2d({self.input_shape}, {self.outputs}, kernel={self.kernel}, stride={self.stride}, "
            f"padding={self.padding}, bias={self.bias})"
        )

    def _filters(self, w: Tensor) -> Tensor:
        return self.without_constant(w).reshape(self.outputs, self.input_shape[0], *self.kernel)

    def apply(self, w: Tensor, x: Tensor, constant: float = 1.0) -> Tensor:
        offset = constant * w[:, -1] if self.bias else None
        return F.conv2d(x, self._filters(w), offset, stride=self.stride, padding=self.padding)

    def back_to_inputs(self, w: Tensor, g: Tensor) -> Tensor:
        shape = (len(g), *self.input_shape)
        inputs: Tensor = conv2d_input(  # type: ignore[no-untyped-call]
            shape, self._filters(w), g, stride=self.stride, padding=self.padding
        )
        return inputs

    def back_to_weights(self, g: Tensor, x: Tensor, constant: float = 1.0) -> Tensor:
        g = self.counted(g)
        shape = (self.outputs, self.input_shape[0], *self.kernel)
        filters: Tensor = conv2d_weight(  # type: ignore[no-untyped-call]
            x, shape, g, stride=self.stride, padding=self.padding
        )
        fields = filters.flatten(1)
        return torch.cat([fields, constant * g.sum((0, 2, 3)).unsqueeze(1)], dim=1) if self.bias else fields

    def gather(self, x: Tensor) -> Tensor:
        patches = F.unfold(x, self.kernel, stride=self.stride, padding=self.padding)
        return patches.transpose(1, 2).flatten(0, 1)

    def scatter(self, rows: Tensor) -> Tensor:
        patches = torch.unflatten(rows, 0, (-1, self.positions)).transpose(1, 2)
        return F.fold(patches, self.input_shape[1:], self.kernel, stride=self.stride, padding=self.padding)

    def factors(self, z: Tensor) -> Tensor:
        return z.permute(0, 2, 3, 1).flatten(0, 2)

    def preactivations(self, rows: Tensor) -> Tensor:
        return torch.unflatten(rows, 0, (-1, *self.output_shape[1:])).permute(0, 3, 1, 2)
