"""Networks: a chain coupling → activation → … → coupling → output, with what outlives a mini-batch.

A ``Layer`` holds the posterior of its weights: natural parameters (h, λ), mean m, variance σ and a fixed mask. It never
holds messages. ``Network`` chains layers with channels; ``mlp`` builds the usual one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from cavity.core import predict
from cavity.core.channels import ACTIVATIONS, OUTPUTS, Activation, Output
from cavity.core.couplings import Coupling, Dense, free_columns, random_mask
from cavity.core.couplings.base import check_sizes
from cavity.core.messages import Fields, Moments, Preactivation
from cavity.core.priors import PRIORS, Prior
from cavity.core.state import LayerState, Site

#: Names of a layer's second posterior.
KEPT = ("kept_field", "kept_precision", "kept_mean", "kept_variance")
#: Buffers that a layer may have or not.
OPTIONAL = (*KEPT, "temperature")

#: Layers with less than this part of their weights are evaluated by a list of them where all edges are gone through.
SPARSE = 0.5


class Layer(nn.Module):
    """Uncertain weights of one coupling.

    ``weights`` is a prior or its name; ``density`` < 1 keeps a random fraction of the weights, ``mask`` (outputs,
    columns) says which; ``init`` is the paper's ε.
    """

    field: Tensor
    precision: Tensor | None
    mean: Tensor
    #: The posterior before the weights were made certain, for Bayesian prediction; None: it is the one above.
    kept_field: Tensor | None
    kept_precision: Tensor | None
    kept_mean: Tensor | None
    kept_variance: Tensor | None
    #: T, 0-dimensional: Bayesian prediction takes the posterior to the power 1/T; None is 1.
    temperature: Tensor | None
    mask: Tensor | None
    #: The columns that the mask leaves to each unit, if they are few (``couplings.masks.free_columns``).
    columns: Tensor | None
    variance: Tensor

    def __init__(
        self,
        coupling: Coupling,
        weights: Prior | str = "binary",
        *,
        density: float = 1.0,
        mask: Tensor | None = None,
        init: float = 1.0,
    ) -> None:
        super().__init__()
        if not 0 < density <= 1:
            raise ValueError(f"density must be in (0, 1], got {density}")
        if mask is not None and density != 1:
            raise ValueError(f"give mask or density, not both: density is {density}")
        self.coupling = coupling
        self.prior = PRIORS.make(weights, "weights")
        self.density, self.init = density, init
        self.register_buffer("mask", None if mask is None else _checked_mask(mask, self.shape))
        blank = torch.zeros(self.shape)
        self.register_buffer("field", blank)
        self.register_buffer("precision", blank.clone() if self.prior.uses_precision else None)
        self.register_buffer("columns", None, persistent=False)
        self.register_buffer("mean", blank.clone())
        self.register_buffer("variance", blank.clone())
        for name in OPTIONAL:
            self.register_buffer(name, None)
        self.register_load_state_dict_post_hook(Layer._count)  # type: ignore[no-untyped-call]

    @property
    def shape(self) -> tuple[int, int]:
        """(outputs, columns) of the weights."""
        return self.coupling.outputs, self.coupling.columns

    def reset(self, generator: torch.Generator) -> None:
        """Draw mask (if there is a density) and initial posterior anew."""
        if self.density < 1:
            drawn = random_mask(self.shape, self.density, generator)
            assert drawn is not None
            self.mask = drawn.to(self.field.device)
        self._count()
        drawn_natural = self.prior.initial(self.shape, self.init, generator)
        h, precision = drawn_natural
        h = h.to(self.field) if self.mask is None else h.to(self.field) * self.mask
        natural = Fields(h, None if precision is None else precision.to(self.field))
        moments = self.prior.moments(natural)
        assert moments.variance is not None
        if self.mask is not None:
            moments = Moments(moments.mean * self.mask, moments.variance * self.mask)
        self.set_state(natural, moments)

    def _count(self, *_: object) -> None:
        """Count what the mask leaves: whenever it changes, never in a step, because counting waits for the device."""
        self._free = self.field.numel() if self.mask is None else int(self.mask.sum())
        # What few edges are left is evaluated edge by edge; a list of most of them would be no shorter.
        sparse = self.mask is not None and self._free < SPARSE * self.field.numel()
        self.columns = free_columns(self.mask) if self.mask is not None and sparse else None

    @property
    def free_weights(self) -> int:
        """How many weights the mask leaves."""
        return self._free

    @property
    def natural(self) -> Fields:
        """(h, λ), the posterior that the last mini-batch left."""
        return Fields(self.field, self.precision)

    @property
    def moments(self) -> Moments:
        """(m, σ), the damped state that the next pass starts from."""
        return Moments(self.mean, self.variance)

    @property
    def state(self) -> LayerState:
        """The posterior as message passing sees it."""
        return LayerState(self.natural, self.moments, self.mask, self.columns)

    def set_state(self, natural: Fields, moments: Moments) -> None:
        """Replace the posterior; tensors handed out before keep their values."""
        # Written past Module's own __setattr__, whose checks of four names per layer show in the time of a step.
        buffers = self._buffers
        buffers["field"], buffers["precision"] = natural
        buffers["mean"], buffers["variance"] = moments

    @property
    def posterior(self) -> LayerState:
        """What Bayesian prediction uses: the posterior that was kept, or the present one, to the power 1/T."""
        learnt, T = self._learnt(), self.temperature
        if T is None:
            return learnt
        (h, precision), (m, sigma) = learnt.natural, learnt.moments
        assert precision is not None
        assert sigma is not None
        return learnt._replace(natural=Fields(h / T, precision / T), moments=Moments(m, sigma * T))

    def temper(self, temperature: float) -> None:
        """Let Bayesian prediction take the posterior of real weights to the power 1/T: the same means, T times the
        variances."""
        if self.prior.polarizes:
            raise ValueError(f"only real weights keep their means when tempered, these are {self.prior.name}")
        self.temperature = torch.tensor(float(temperature), device=self.field.device)

    def _learnt(self) -> LayerState:
        """The posterior before the weights were made certain, or the present one."""
        if self.kept_mean is None:
            return self.state
        assert self.kept_field is not None
        kept = Moments(self.kept_mean, self.kept_variance)
        return LayerState(Fields(self.kept_field, self.kept_precision), kept, self.mask, self.columns)

    def keep_posterior(self, keep: bool) -> None:
        """Keep the present posterior beside what the weights become; or go back to it and keep none."""
        if keep == (self.kept_mean is not None):
            return
        buffers = self._buffers
        if not keep:
            self.set_state(*self._learnt()[:2])
        present = (*self.natural, *self.moments) if keep else (None,) * len(KEPT)
        buffers.update(zip(KEPT, present, strict=True))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Make room for a second posterior where the state has one, and drop it where it has none."""
        for name in OPTIONAL:
            saved = state_dict.get(prefix + name)
            self._buffers[name] = None if saved is None else torch.empty_like(saved, device=self.field.device)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def point(self) -> Tensor:
        """The most probable weights, 0 where masked."""
        w = self.prior.point(self.natural, self.mean)
        return w if self.mask is None else w * self.mask

    def sample(self, generator: torch.Generator) -> Tensor:
        """One draw of the weights from the posterior, 0 where masked."""
        w = self.prior.sample(*self.posterior[:2], generator)
        return w if self.mask is None else w * self.mask

    def extra_repr(self) -> str:
        return f"{self.coupling!r}, weights={self.prior.name!r}" + ("" if self.mask is None else ", masked")


def _checked_mask(mask: Tensor, shape: tuple[int, int]) -> Tensor:
    if tuple(mask.shape) != shape:
        raise ValueError(f"mask must have shape {shape} (outputs, columns), got {tuple(mask.shape)}")
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean, got {mask.dtype}")
    return mask.clone()


class Network(nn.Module):
    """A chain of layers and channels, e.g. ``Network([Dense(64, 101), "sign", Dense(101, 10), "argmax"])``.

    Couplings are wrapped into a ``Layer`` with binary weights; activations and the output are channels or their names.
    """

    def __init__(self, chain: Sequence[Layer | Coupling | Activation | Output | str], *, seed: int = 0) -> None:
        super().__init__()
        if len(chain) < 2 or len(chain) % 2:
            raise ValueError(
                f"chain must alternate weights and channels and end with an output, got {len(chain)} parts"
            )
        layers = [_as_layer(part, place) for place, part in enumerate(chain[::2])]
        self.layers = nn.ModuleList(layers)
        self.activations = tuple(_as_activation(part) for part in chain[1:-1:2])
        self.output = _as_output(chain[-1])
        _check_chain(layers)
        self.reset(seed)

    def reset(self, seed: int) -> None:
        """Draw masks and initial posteriors of all layers from one generator."""
        generator = torch.Generator().manual_seed(seed)
        for layer in self.weighted():
            layer.reset(generator)

    def weighted(self) -> list[Layer]:
        """The layers, typed."""
        return [layer for layer in self.layers if isinstance(layer, Layer)]

    @property
    def sites(self) -> tuple[Site, ...]:
        """The chain as message passing sees it, without what is known about the weights."""
        channels: list[Activation | Output] = [*self.activations, self.output]
        below: list[Activation | None] = [None, *self.activations]
        parts = zip(self.weighted(), below, channels, strict=True)
        return tuple(Site(layer.coupling, layer.prior, under, over) for layer, under, over in parts)

    def states(self) -> tuple[LayerState, ...]:
        """What is known about the weights of each layer."""
        return tuple(layer.state for layer in self.weighted())

    def keep_posterior(self, keep: bool) -> None:
        """Before the weights are made certain (``keep``), keep their posterior for Bayesian prediction; where training
        goes on after that, go back to it."""
        for layer in self.weighted():
            layer.keep_posterior(keep)

    @property
    def input_shape(self) -> tuple[int, ...]:
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


def _as_output(part: object) -> Output:
    if isinstance(part, str | Output):
        return OUTPUTS.make(part)
    raise TypeError(f"output must be an Output or one of {', '.join(OUTPUTS)}, got {part!r}")


def _check_chain(layers: Sequence[Layer]) -> None:
    """Each coupling must take what the one before gives; the last one must be dense."""
    for number, (lower, upper) in enumerate(pairwise(layers), start=1):
        gives, takes = lower.coupling.output_shape, upper.coupling.input_shape
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
    seed: int = 0,
) -> Network:
    """A multi-layer perceptron ``inputs``-``hidden``-``outputs``; one output unit is a ±1 label, several an argmax."""
    if isinstance(hidden, str) or not isinstance(hidden, Iterable):
        raise TypeError(f"hidden must be a sequence of widths such as (501,), got {hidden!r}")
    sizes = [inputs, *hidden, outputs]
    check_sizes(inputs=inputs, outputs=outputs, **{f"hidden[{n}]": width for n, width in enumerate(hidden)})
    if output is None:
        output = "label" if outputs == 1 else "argmax"
    chain: list[Layer | Coupling | Activation | Output | str] = []
    for lower, upper in pairwise(sizes):
        chain += [Layer(Dense(lower, upper, bias=bias), weights, density=density, init=init), activation]
    return Network([*chain[:-1], output], seed=seed)
