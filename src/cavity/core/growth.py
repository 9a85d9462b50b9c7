"""Networks that grow: more outputs, or more inputs, where the stream brings what nobody had named.

What is known stays as it is to the last bit. A new row of the readout knows nothing: its weights begin close to 0 on
average and as uncertain as ever, so that the unit's preactivation is 0 ± √N and wins only where no other does. New
columns of the first layer begin like those of a new network, because hidden units must differ from each other.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cavity.core.channels import Output
from cavity.core.couplings import Dense
from cavity.core.layer import KEPT, Layer
from cavity.core.messages import Fields, Moments

if TYPE_CHECKING:
    from cavity.core.network import Network

#: Fields of a new row, in units of those that a new layer begins with: not 0, because even weights would all be +1
#: where the most probable ones are asked for.
UNTOLD = 0.1
#: What a second posterior is a copy of.
PRESENT = ("field", "precision", "mean", "variance")


def with_outputs(net: Network, rows: Sequence[int | None], *, output: Output | None = None, seed: int = 0) -> Network:
    """A copy of ``net`` whose output k is the old output rows[k], or a new one where that is None. ``output`` takes the
    place of the channel on top."""
    grown, old = copy.deepcopy(net), net.weighted()[-1]
    coupling = _dense(old, "the last layer")
    inputs = coupling.columns - coupling.bias
    new = _blank(old, Dense(inputs, len(rows), bias=coupling.bias), seed)
    natural = Fields(UNTOLD * new.field, new.precision)
    m, sigma = old.prior.moments(natural)
    assert sigma is not None
    new.set_state(natural, Moments(m, sigma) if new.mask is None else Moments(m * new.mask, sigma * new.mask))
    _fill(new, old, _checked(rows, old.shape[0], "rows", "outputs"), dim=0)
    grown.layers[-1] = new
    grown.output = grown.output if output is None else output
    return grown


def with_inputs(net: Network, columns: Sequence[int | None], *, seed: int = 0) -> Network:
    """A copy of ``net`` whose input i is the old input columns[i], or a new one where that is None; a bias stays. An
    activation that knows the usual size of its preactivations keeps the one it has."""
    grown, old = copy.deepcopy(net), net.weighted()[0]
    coupling = _dense(old, "the first layer")
    if net.front is not None:
        raise ValueError("a network whose inputs are whitened takes no new ones")
    new = _blank(old, Dense(len(columns), coupling.outputs, bias=coupling.bias), seed)
    places = _checked(columns, coupling.columns - coupling.bias, "columns", "inputs")
    _fill(new, old, [*places, coupling.columns - 1] if coupling.bias else places, dim=1)
    grown.layers[0] = new
    return grown


def _dense(layer: Layer, where: str) -> Dense:
    if not isinstance(layer.coupling, Dense):
        raise ValueError(f"{where} must be dense to grow, it is {layer.coupling!r}")
    return layer.coupling


def _checked(places: Sequence[int | None], known: int, name: str, what: str) -> Sequence[int | None]:
    """ValueError unless every old place is taken once."""
    taken = sorted(place for place in places if place is not None)
    if taken != list(range(known)):
        raise ValueError(f"{name} must name each of the {known} {what} once, and None for new ones, got {list(places)}")
    return places


def _blank(old: Layer, coupling: Dense, seed: int) -> Layer:
    """A layer like ``old`` of another size, as it begins."""
    threshold = old.threshold is not None
    new = Layer(coupling, old.prior, density=old.density, init=old.init, threshold=threshold)
    new.to(old.field)
    new.reset(torch.Generator().manual_seed(seed))
    return new


def _fill(new: Layer, old: Layer, places: Sequence[int | None], dim: int) -> None:
    """Give ``new`` what ``old`` knows, at its places along ``dim``."""
    moved = torch.tensor([k for k, place in enumerate(places) if place is not None], device=old.field.device)
    source = torch.tensor([place for place in places if place is not None], device=old.field.device)

    def placed(fresh: Tensor, known: Tensor) -> Tensor:
        return fresh.index_copy(dim, moved, known.index_select(dim, source))

    if old.mask is not None and new.mask is None:
        new.mask = torch.ones(new.shape, dtype=torch.bool, device=old.field.device)
    _copy(new, old, placed)
    new._count()
    if old.threshold is not None and new.threshold is not None:
        same = placed if dim == 0 else _known
        _copy(new.threshold, old.threshold, same)
        for name in ("scale", "balanced"):
            new.threshold._buffers[name] = old.threshold._buffers[name]


def _copy(new: Layer, old: Layer, placed: Callable[[Tensor, Tensor], Tensor]) -> None:
    """All posteriors, and the mask."""
    fresh, known = dict(new._buffers), old._buffers
    for name, present in zip((*PRESENT, "mask", *KEPT), (*PRESENT, "mask", *PRESENT), strict=True):
        here, there = fresh[present], known[name]
        new._buffers[name] = None if here is None or there is None else placed(here, there)
    new._buffers["temperature"] = known["temperature"]


def _known(fresh: Tensor, known: Tensor) -> Tensor:
    return known
