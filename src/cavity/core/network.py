"""Networks: a chain coupling → activation → … → coupling → output. ``mlp`` builds the usual one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from cavity.core import predict
from cavity.core.channels import ACTIVATIONS, OUTPUTS, Activation, Output
from cavity.core.couplings import Coupling, Dense
from cavity.core.couplings.base import check_sizes
from cavity.core.growth import with_outputs
from cavity.core.layer import Layer
from cavity.core.messages import Preactivation
from cavity.core.pools import Pool
from cavity.core.priors import PRIORS, Prior
from cavity.core.state import LayerState, Site
from cavity.core.table import table
from cavity.core.whitening import Whitening

Part = Whitening | Layer | Coupling | Activation | Pool | Output | str


class Network(nn.Module):
    """A chain of layers and channels, e.g. ``Network([Dense(64, 101), "sign", Dense(101, 10), "argmax"])``.

    Couplings are wrapped into a ``Layer`` with binary weights; activations and the output are channels or their names.
    A pool may follow an activation, and a fixed ``Whitening`` of images may come first.
    """

    def __init__(self, chain: Sequence[Part], *, seed: int = 0) -> None:
        super().__init__()
        #: What prepares the inputs and is never learnt; None: nothing does.
        self.front = chain[0] if chain and isinstance(chain[0], Whitening) else None
        chain = chain if self.front is None else chain[1:]
        pools = [place for place, part in enumerate(chain) if isinstance(part, Pool)]
        alternating = [part for part in chain if not isinstance(part, Pool)]
        if len(alternating) < 2 or len(alternating) % 2:
            raise ValueError(
                f"chain must alternate weights and channels and end with an output, got {len(alternating)} parts"
            )
        layers = [_as_layer(part, place) for place, part in enumerate(alternating[::2])]
        self.layers = nn.ModuleList(layers)
        below = zip(alternating[1:-1:2], layers[:-1], strict=True)
        self.activations = tuple(_as_activation(part).at_size(_usual_size(layer)) for part, layer in below)
        self.output = _as_output(alternating[-1])
        #: What pools the units of each activation; None: nothing does.
        self.pools = _pools(chain, pools, len(self.activations))
        _check_chain(layers, self.activations, self.pools)
        if self.front is not None and self.front.output_shape != layers[0].coupling.input_shape:
            gives, takes = self.front.output_shape, layers[0].coupling.input_shape
            raise ValueError(f"layer 0 takes inputs of shape {takes}, but the whitening gives {gives}")
        self.reset(seed)

    def __repr__(self) -> str:
        """A table of the layers, their shapes, weights and products for each sample."""
        return table(self)

    def reset(self, seed: int) -> None:
        """Draw masks and initial posteriors of all layers from one generator."""
        generator = torch.Generator().manual_seed(seed)
        for layer in self.weighted():
            layer.reset(generator)

    def weighted(self) -> list[Layer]:
        """The layers, typed."""
        # Past ModuleList's own iterator: a step asks for them a dozen times.
        return list(self._modules["layers"]._modules.values())  # type: ignore[arg-type,union-attr]

    @property
    def products(self) -> int:
        """Products of a number and a weight that the way up of a sample takes."""
        return sum(layer.field.numel() * layer.coupling.positions for layer in self.weighted())

    @property
    def sites(self) -> tuple[Site, ...]:
        """The chain as message passing sees it, without what is known about the weights."""
        channels: list[Activation | Output] = [*self.activations, self.output]
        below: list[Activation | None] = [None, *self.activations]
        parts = zip(self.weighted(), below, (None, *self.pools), channels, strict=True)
        return tuple(layer.site(under, pool, over) for layer, under, pool, over in parts)

    def states(self) -> tuple[LayerState, ...]:
        """What is known about the weights of each layer."""
        return tuple(layer.state for layer in self.weighted())

    def balance(self, x: Tensor) -> None:
        """Let samples x say how to begin: the filters of a whitening that has none yet, then the thresholds of every
        layer, from the first to the last, such that each preactivation is 0 on average. ``Trainer.fit`` does so before
        its first step."""
        predict.balance(self, x)

    @property
    def balanced(self) -> bool:
        """Whether whitening and thresholds, if there are any, have been started from data."""
        if self.front is not None and not bool(self.front.fitted):
            return False
        return all(bool(layer.threshold.balanced) for layer in self.weighted() if layer.threshold is not None)

    def more_outputs(self, outputs: int, seed: int = 0) -> Network:
        """A copy with that many output units in all. The old ones come first and keep their weights to the last bit;
        the new ones know nothing (``growth.py`` has all that can be done). A trainer of this network goes on with this
        network: make another for the copy."""
        known = self.outputs
        if outputs < known:
            raise ValueError(f"outputs must be at least the {known} that there are, got {outputs}")
        return with_outputs(self, [*range(known), *[None] * (outputs - known)], seed=seed)

    def keep_posterior(self, keep: bool) -> None:
        """Before the weights are made certain (``keep``), keep their posterior for Bayesian prediction; where training
        goes on after that, go back to it."""
        for layer in self.weighted():
            layer.keep_posterior(keep)

    def prepared(self, x: Tensor) -> Tensor:
        """Checked inputs as the first layer takes them."""
        return x if self.front is None else self.front(x)

    @property
    def input_shape(self) -> tuple[int, ...]:
        if self.front is not None:
            return self.front.input_shape
        return self.weighted()[0].coupling.input_shape

    @property
    def outputs(self) -> int:
        """Units of the last layer."""
        return self.weighted()[-1].coupling.outputs

    @property
    def dtype(self) -> torch.dtype:
        return self.weighted()[0].field.dtype

    @property
    def device(self) -> torch.device:
        return self.weighted()[0].field.device

    def snapshot(self) -> list[dict[str, Tensor | None]]:
        """What ``go_back`` takes: references, because training replaces tensors and never changes them."""
        return [dict(part._buffers) for part in self._parts()]

    def go_back(self, before: Sequence[dict[str, Tensor | None]]) -> None:
        """Every layer as it was at a snapshot."""
        for part, buffers in zip(self._parts(), before, strict=True):
            part._buffers.update(buffers)

    def _parts(self) -> list[nn.Module]:
        """Weights and thresholds of all layers."""
        return [part for layer in self.weighted() for part in (layer, layer.threshold) if part is not None]

    def check_inputs(self, x: Tensor) -> Tensor:
        """x in the network's type and shape (samples, *input_shape); the values are looked at on the CPU only."""
        return predict.checked_inputs(self, x)

    def forward(self, x: Tensor) -> Tensor:
        """Last preactivations (samples, outputs) of the most probable weights."""
        return predict.point_preactivations(self, x)

    def predict_moments(self, x: Tensor) -> Preactivation:
        """Mean ω and variance V of the last preactivations under the posterior, in one pass of the moments."""
        return predict.bayesian_preactivations(self, x)

    def predict(self, x: Tensor, method: str = "point") -> Tensor:
        """Labels (±1), classes or real values: of the most probable weights ("point") or the posterior ("bayes")."""
        return predict.predict(self, x, method)

    def predict_proba(self, x: Tensor) -> Tensor:
        """Bayesian class probabilities (samples, classes); a label output gives P(−1), P(+1)."""
        return self.output.probabilities(self.predict_moments(x))


def _as_layer(part: object, place: int) -> Layer:
    if isinstance(part, Layer):
        return part
    if isinstance(part, Coupling):
        return Layer(part)
    raise TypeError(f"chain[{2 * place}] must be a Layer or a coupling, got {type(part).__name__}")


def _as_activation(part: object) -> Activation:
    if isinstance(part, str | Activation):
        return ACTIVATIONS.make(part)
    raise TypeError(f"activation must be an Activation or one of {', '.join(ACTIVATIONS)}, got {part!r}")


def _usual_size(layer: Layer) -> float:
    """Of a layer's preactivations, for N inputs of variance 1: √N where weights are ±1 or so; real ones are of size
    1/√N."""
    return math.sqrt(layer.field.shape[1]) if layer.prior.polarizes else 1.0


def _as_output(part: object) -> Output:
    if isinstance(part, str | Output):
        return OUTPUTS.make(part)
    raise TypeError(f"output must be an Output or one of {', '.join(OUTPUTS)}, got {part!r}")


def _pools(chain: Sequence[Part], places: Sequence[int], activations: int) -> tuple[Pool | None, ...]:
    """The pool of each activation, from where pools stand in the chain."""
    pools: list[Pool | None] = [None] * activations
    for before, place in enumerate(places):
        # Each activation is the second of a pair, and of the pools before this one each has its own place.
        number, first = divmod(place - before - 1, 2)
        part = chain[place]
        if not isinstance(part, Pool) or not first or not 0 <= number < activations or pools[number] is not None:
            raise ValueError(f"chain[{place}] is {part!r}: a pool must follow an activation, before the next weights")
        pools[number] = part
    return tuple(pools)


def _check_chain(layers: Sequence[Layer], activations: Sequence[Activation], pools: Sequence[Pool | None]) -> None:
    """Each coupling must take what the one before gives, pooled or not; the last one must be dense."""
    for number, (lower, upper) in enumerate(pairwise(layers), start=1):
        gives, takes = lower.coupling.output_shape, upper.coupling.input_shape
        pool = pools[number - 1]
        if pool is not None:
            gives = pool.output_shape(gives)
            pool.units(activations[number - 1])
        flat = torch.Size(gives).numel()
        if takes != gives and takes != (flat,):
            raise ValueError(f"layer {number} takes inputs of shape {takes}, but layer {number - 1} gives {gives}")
    if not isinstance(layers[-1].coupling, Dense):
        raise ValueError(f"the last coupling must be Dense, got {layers[-1].coupling!r}")


def mlp(
    inputs: int,
    hidden: Sequence[int],
    outputs: int,
    *,
    weights: Prior | str = "binary",
    activation: Activation | str = "sign",
    output: Output | str | None = None,
    bias: bool = False,
    density: float = 1.0,
    init: float = 1.0,
    threshold: bool = False,
    seed: int = 0,
) -> Network:
    """A multi-layer perceptron ``inputs``-``hidden``-``outputs``; one output unit is a ±1 label, several an argmax.

    ``bias`` is one more weight for each unit, of the same kind; ``threshold`` a real number, whatever the weights, but
    for a readout of weights that become certain."""
    if isinstance(hidden, str) or not isinstance(hidden, Iterable):
        raise TypeError(f"hidden must be a sequence of widths such as (501,), got {hidden!r}")
    sizes = [inputs, *hidden, outputs]
    check_sizes(inputs=inputs, outputs=outputs, **{f"hidden[{n}]": width for n, width in enumerate(hidden)})
    prior = PRIORS.make(weights, "weights")
    chain: list[Part] = []
    for number, (lower, upper) in enumerate(pairwise(sizes)):
        own = threshold and wants_threshold(prior, first=number == 0, last=number == len(sizes) - 2)
        layer = Layer(Dense(lower, upper, bias=bias), prior, density=density, init=init, threshold=own)
        chain += [layer, activation]
    return Network([*chain[:-1], usual_output(outputs) if output is None else output], seed=seed)


def usual_output(outputs: int) -> str:
    """One output unit is a ±1 label, several are classes."""
    return "label" if outputs == 1 else "argmax"


def wants_threshold(prior: Prior, *, first: bool, last: bool) -> bool:
    """Whether a layer of a network with thresholds has them. A readout of weights that become certain has none:
    training leaves it uncertain, so that an offset which suits its posterior would not suit its most probable
    weights."""
    return first or not last or not prior.polarizes
