"""Layers of binary weights and binary units that a gradient passes straight through.

A layer forms unscaled sums z = w_b x of its inputs x, with w_b = ±1 (0 where masked); N of them reach a unit. Units are

    sign:  x' = sign(z/√N),          taken to have the derivative 1 for |z/√N| ≤ 1, else 0;
    gate:  x' = 1[|z/√N| > 1],       taken to have the derivative ½ sign(z) for |z/√N| ≤ 2, else 0.

The gate is 1 + ½ sign(z/√N − 1) − ½ sign(z/√N + 1), so its derivative is what that of sign makes of this sum. The last
layer has no units: its z/√N are the logits. sign(0) = +1.

1/√N never costs a pass over the weights: a unit ignores it, and the backward pass applies it to the gradient of z.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

ACTIVATIONS = ("sign", "gate")
#: The |z/√N| above which a gate is 1.
GATE = 1.0


class _BinaryWeights(torch.autograd.Function):
    """magnitude·sign(w), with the gradient passed straight through, whatever the size of w."""

    @staticmethod
    def forward(ctx: Any, w: Tensor, magnitude: Tensor) -> Tensor:
        # One pass, where comparing and choosing would take two. A weight is never −0: it starts as +0 or not 0 at all,
        # and a difference that vanishes is +0.
        return torch.copysign(magnitude, w)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0], None


class _BinaryActivation(torch.autograd.Function):
    """sign(z) of unscaled sums z (samples, outputs), with ∂/∂z = scale where |scale·z| ≤ 1, that is |z| < window."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, scale: float, window: float) -> Tensor:
        ctx.save_for_backward(z)
        ctx.scale, ctx.window = scale, window
        # A product's sum starts from +0, so that a vanishing z is +0 and its sign +1.
        return torch.copysign(z.new_ones(()), z)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (z,) = ctx.saved_tensors
        passed: Tensor = torch.ops.aten.hardtanh_backward(gradients[0], z, -ctx.window, ctx.window)
        return passed.mul_(ctx.scale), None, None


class _GateActivation(torch.autograd.Function):
    """1[|z| > threshold] of unscaled sums z (samples, outputs), with ∂/∂z = ½ scale·sign(z) where |z| < window."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, scale: float, window: float, threshold: float) -> Tensor:
        ctx.save_for_backward(z)
        ctx.scale, ctx.window = scale, window
        return (z.abs() > threshold).to(z.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        (z,) = ctx.saved_tensors
        passed: Tensor = torch.ops.aten.hardtanh_backward(gradients[0], z, -ctx.window, ctx.window)
        return passed.mul_(z.sign()).mul_(0.5 * ctx.scale), None, None, None


def just_above(value: float) -> float:
    """The next float32 after ``value``, so that < with it means ≤ with ``value``."""
    return float(torch.nextafter(torch.tensor(value), torch.tensor(math.inf)))


def binary_weights(w: Tensor, magnitude: Tensor) -> Tensor:
    """magnitude·sign(w), differentiable straight through."""
    binary: Tensor = _BinaryWeights.apply(w, magnitude)  # type: ignore[no-untyped-call]
    return binary


def binary_activation(z: Tensor, scale: float, window: float) -> Tensor:
    """sign(scale·z), differentiable straight through where |z| < window."""
    binary: Tensor = _BinaryActivation.apply(z, scale, window)  # type: ignore[no-untyped-call]
    return binary


def gate_activation(z: Tensor, scale: float, window: float, threshold: float) -> Tensor:
    """1[|z| > threshold], differentiable straight through where |z| < window."""
    gate: Tensor = _GateActivation.apply(z, scale, window, threshold)  # type: ignore[no-untyped-call]
    return gate


class Layer(NamedTuple):
    """The constants of a layer: |w_b| (1, or a mask (outputs, inputs)), 1/√N, the |z| where the gradient ends, and the
    |z| above which a gate is 1; None for sign units."""

    magnitude: Tensor
    scale: float
    window: float
    threshold: float | None


def layer_constants(inputs: float, activation: str) -> tuple[float, float, float | None]:
    """Scale, window and threshold of units that see that many inputs (the mean number, in a sparse layer)."""
    root = math.sqrt(inputs)
    if activation == "sign":
        return 1 / root, just_above(root), None
    return 1 / root, just_above(2 * GATE * root), GATE * root


class Sums(NamedTuple):
    """What goes into a layer, (samples, inputs), and its sums z, (samples, outputs)."""

    inputs: Tensor
    z: Tensor


def layer_sums(weights: Sequence[Tensor], layers: Sequence[Layer], x: Tensor) -> list[Sums]:
    """The sums of each layer with its ``weights`` as they are (outputs, inputs); x is (samples, inputs)."""
    passed: list[Sums] = []
    for w, layer in zip(weights[:-1], layers[:-1], strict=True):
        passed.append(Sums(x, nn.functional.linear(x, w)))
        x = _units(passed[-1].z, layer)
    return [*passed, Sums(x, nn.functional.linear(x, weights[-1]))]


def _units(z: Tensor, layer: Layer) -> Tensor:
    if layer.threshold is None:
        return binary_activation(z, layer.scale, layer.window)
    return gate_activation(z, layer.scale, layer.window, layer.threshold)


def logits(weights: Sequence[Tensor], layers: Sequence[Layer], x: Tensor) -> Tensor:
    """z^L/√N (samples, outputs) of inputs x (samples, inputs), with the weights' signs."""
    return layer_sums(all_binary(weights, layers), layers, x)[-1].z * layers[-1].scale


def all_binary(weights: Sequence[Tensor], layers: Sequence[Layer]) -> list[Tensor]:
    """w_b of each layer, differentiable straight through."""
    return [binary_weights(w, layer.magnitude) for w, layer in zip(weights, layers, strict=True)]
