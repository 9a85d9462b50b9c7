"""From what a mini-batch has taught to the layers of a network, unless a field is not finite."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from cavity.core.messages import Fields, Moments
from cavity.core.network import Network
from cavity.core.pasp import State


class NonFiniteField(FloatingPointError):
    """A field became NaN or infinite; the network still holds the state before that step.

    Devices other than the CPU are asked at the end of an epoch of ``fit``; until then the network does not change."""


def write(net: Network, state: State, largest: Tensor, step: int, failed: Tensor | None) -> Tensor | None:
    """Write the posterior that ``step`` has led to, unless a field is not finite: then the layers keep what they have.

    On the CPU that is an error at once. Another device is not made to wait for the answer: it takes the old state or
    the new by itself, notes the step in ``failed`` (layers,), which is returned, and takes nothing more after it.
    """
    layers = [part for layer in net.weighted() for part in (layer, layer.threshold) if part is not None]
    posteriors = [part for new in state.layers for part in (new, new.threshold) if part is not None]
    if largest.device.type == "cpu":
        raise_non_finite([0 if math.isfinite(h) else step for h in largest.tolist()])
        for layer, new in zip(layers, posteriors, strict=True):
            layer.set_state(new.natural, new.moments)
        return failed
    failed = torch.zeros_like(largest) if failed is None else failed
    finite, sound = torch.isfinite(largest), failed.sum() == 0
    keep = sound & finite.all()
    for layer, new in zip(layers, posteriors, strict=True):
        natural = Fields(*choose(keep, new.natural, layer.natural))
        layer.set_state(natural, Moments(*choose(keep, new.moments, layer.moments)))
    return torch.where(sound & ~finite, float(step), failed)


def raise_non_finite(steps: Sequence[float]) -> None:
    """``steps`` is the step in which each layer's field stopped being finite, 0 if it is."""
    for number, step in enumerate(steps):
        if step:
            raise NonFiniteField(
                f"the field of layer {number} became non-finite in step {int(step)}; the network holds the state "
                "before it. Try rho closer to 1, more damping, or standardised inputs"
            )


def choose(
    keep: Tensor, new: tuple[Tensor, Tensor | None], old: tuple[Tensor, Tensor | None]
) -> tuple[Tensor, Tensor | None]:
    """``new`` where the 0-dimensional ``keep`` is true, else ``old``, decided on the device."""
    second = None if new[1] is None or old[1] is None else torch.where(keep, new[1], old[1])
    return torch.where(keep, new[0], old[0]), second
