"""A layer of uncertain weights, with or without thresholds: what outlives a mini-batch, and never a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from cavity.core.channels import Activation, Channel
from cavity.core.couplings import Constant, Coupling, free_columns, random_mask
from cavity.core.messages import Fields, Moments, Preactivation
from cavity.core.pools import Pool, Pooling
from cavity.core.priors import PRIORS, Gaussian, Prior
from cavity.core.state import LayerState, Site

#: Names of a layer's second posterior.
KEPT = ("kept_field", "kept_precision", "kept_mean", "kept_variance")
#: Buffers that a layer may have or not.
OPTIONAL = (*KEPT, "temperature")

#: Layers with less than this part of their weights are evaluated by a list of them where all edges are gone through.
SPARSE = 0.5


#: Standard deviation of a threshold at the start, in units of the preactivations it is added to: from the data it is
#: known to about a tenth of their spread where a unit should begin.
FIRST_SPREAD = 0.1


class Layer(nn.Module):
    """Uncertain weights of one coupling.

    ``weights`` is a prior or its name; ``density`` < 1 keeps a random fraction of the weights, ``mask`` (outputs,
    columns) says which; ``init`` is the paper's ε. With ``threshold``, z = Σ w x + b with a real b for each unit or
    channel, whatever the kind of weights.

    Known weights of a layer are (outputs, columns), or (outputs, columns + 1) with the thresholds in the last column.
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
        threshold: bool = False,
    ) -> None:
        super().__init__()
        if not 0 < density <= 1:
            raise ValueError(f"density must be in (0, 1], got {density}")
        if mask is not None and density != 1:
            raise ValueError(f"give mask or density, not both: density is {density}")
        self.coupling = coupling
        self.prior = PRIORS.make(weights, "weights")
        self.density, self.init = density, init
        self.threshold = Threshold(coupling) if threshold else None
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
        if self.threshold is not None:
            size = (self.mean.square() + self.variance).sum(dim=1).mean().sqrt()
            self.threshold.begin(torch.zeros_like(self.mean[:, 0]), size, balanced=False)

    def site(self, below: Activation | None, pool: Pool | None, channel: Channel[Any]) -> Site:
        """The layer's place between two channels, without what is known about its weights."""
        threshold = None if self.threshold is None else self.threshold.site(None, None, channel)
        if below is None or pool is None:
            return Site(self.coupling, self.prior, below, channel, threshold=threshold)
        pooling = Pooling(pool, below)
        return Site(self.coupling, self.prior, pool.units(below), channel, threshold=threshold, pooling=pooling)

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
        # Past Module's own __getattr__, which takes as long as a small layer for all these names.
        of, part = self._buffers, self._modules.get("threshold")
        natural, moments = Fields(of["field"], of["precision"]), Moments(of["mean"], of["variance"])  # type: ignore[arg-type]
        threshold = part.state if isinstance(part, Threshold) else None
        return LayerState(natural, moments, of["mask"], of["columns"], threshold)

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
        threshold = None if self.threshold is None else self.threshold.posterior
        return LayerState(Fields(self.kept_field, self.kept_precision), kept, self.mask, self.columns, threshold)

    def keep_posterior(self, keep: bool) -> None:
        """Keep the present posterior beside what the weights become; or go back to it and keep none."""
        buffers = self._buffers
        if keep == (buffers["kept_mean"] is not None):
            return
        if not keep:
            self.set_state(*self._learnt()[:2])
        present = (*self.natural, *self.moments) if keep else (None,) * len(KEPT)
        buffers.update(zip(KEPT, present, strict=True))
        if self.threshold is not None:
            self.threshold.keep_posterior(keep)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Make room for a second posterior where the state has one, and drop it where it has none."""
        for name in OPTIONAL:
            saved = state_dict.get(prefix + name)
            self._buffers[name] = None if saved is None else torch.empty_like(saved, device=self.field.device)
        super()._load_from_state_dict(state_dict, prefix, *args)

    @property
    def known_shape(self) -> tuple[int, int]:
        """(outputs, columns) of known weights, thresholds included."""
        outputs, columns = self.shape
        return outputs, columns + (self.threshold is not None)

    def apply_known(self, w: Tensor, x: Tensor) -> Tensor:
        """z = Σ w x + b for known weights (outputs, columns [+ 1]) and inputs x (samples, *input_shape)."""
        z = self.coupling.apply(w[:, : self.coupling.columns], x)
        if self.threshold is None:
            return z
        # Added last: sums of signs are whole numbers, and stay exact.
        return z + self.threshold.coupling.apply(w[:, -1:], z.new_ones(1, 1))

    def known_moments(self) -> tuple[Tensor, Tensor]:
        """m and σ of the posterior that Bayesian prediction uses, thresholds included."""
        parts = [part.moments for part in (self.posterior, self.posterior.threshold) if part is not None]
        return torch.cat([m for m, _ in parts], 1), torch.cat([sigma for _, sigma in parts if sigma is not None], 1)

    def point(self) -> Tensor:
        """The most probable weights, 0 where masked."""
        return self._known(self.prior.point(self.natural, self.mean), lambda threshold: threshold.point())

    def sample(self, generator: torch.Generator) -> Tensor:
        """One draw of the weights from the posterior, 0 where masked."""
        w = self.prior.sample(*self.posterior[:2], generator)
        return self._known(w, lambda threshold: threshold.sample(generator))

    def _known(self, w: Tensor, known: Callable[[Threshold], Tensor]) -> Tensor:
        w = w if self.mask is None else w * self.mask
        return w if self.threshold is None else torch.cat([w, known(self.threshold)], dim=1)

    def extra_repr(self) -> str:
        return f"{self.coupling!r}, weights={self.prior.name!r}" + ("" if self.mask is None else ", masked")


class Threshold(Layer):
    """Real offsets b (outputs, 1) of the units of another coupling: a layer of its own whose only input is 1."""

    scale: Tensor
    balanced: Tensor

    def __init__(self, beside: Coupling) -> None:
        super().__init__(Constant(beside), Gaussian())
        #: The size of the preactivations, which steps and the prior 𝒩(0, scale²) are measured by.
        self.register_buffer("scale", torch.ones(()))
        #: Whether the data have said where to begin.
        self.register_buffer("balanced", torch.tensor(False))

    @property
    def state(self) -> LayerState:
        return super().state._replace(scale=self.scale)

    def begin(self, mean: Tensor, scale: Tensor, *, balanced: bool) -> None:
        """Start at b = mean (outputs,), for preactivations of that size."""
        b, s = mean.to(self.field).unsqueeze(1), scale.to(self.field)
        variance = (FIRST_SPREAD * s).square().expand_as(b).clone()
        self.set_state(Fields(b / variance, variance.reciprocal()), Moments(b, variance))
        buffers = self._buffers
        buffers["scale"], buffers["balanced"] = s, torch.full_like(self.balanced, balanced)

    def balance(self, pre: Preactivation) -> None:
        """Start so that each unit's preactivation is 0 on average over samples and positions, given the (ω, V) of some
        samples with the present thresholds."""
        omega, V = (tensor.transpose(0, 1).flatten(1) for tensor in pre)
        omega, V = omega - self.mean, V - self.variance
        self.begin(-omega.mean(dim=1), (omega.square() + V).mean().sqrt(), balanced=True)


def _checked_mask(mask: Tensor, shape: tuple[int, int]) -> Tensor:
    if tuple(mask.shape) != shape:
        raise ValueError(f"mask must have shape {shape} (outputs, columns), got {tuple(mask.shape)}")
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean, got {mask.dtype}")
    return mask.clone()
