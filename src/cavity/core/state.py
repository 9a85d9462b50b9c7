"""What a layer is, and what is known about it, as values: a sweep takes states and returns new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cavity.core.channels.base import Channel, Units
from cavity.core.couplings.base import Coupling
from cavity.core.messages import Fields, Moments, Preactivation, Response, Target, relayout
from cavity.core.pools import Pooling
from cavity.core.priors.base import Prior


@dataclass(frozen=True)
class Site:
    """A layer's place in the chain: its coupling and prior, the units below (None at the first layer) and the channel
    above; which precisions it sends, those of the paper or their ``fisher`` part; and whether discrete weights are sent
    the ``bare`` gradient (``core/fisher.py`` has both). No tensors, and nothing that changes.

    A layer with thresholds has a second coupling into the same preactivations, whose only input is 1: z = Σ w x + b.
    It is a site of its own, so that the algorithms treat b as one more edge and need not know of it."""

    coupling: Coupling
    prior: Prior
    below: Units | None
    channel: Channel[Any]
    fisher: bool = False
    bare: bool = False
    threshold: Site | None = None
    #: What pools the units of the activation below into the units that the coupling sees; None: nothing does.
    pooling: Pooling | None = None

    def counting(self, counts: Tensor) -> Site:
        """The same place for samples that count that often, (samples,)."""
        threshold = None if self.threshold is None else self.threshold.counting(counts)
        return replace(self, coupling=self.coupling.counting(counts), threshold=threshold)

    def sending(self, fisher: bool, bare: bool = False) -> Site:
        """The same place with messages of that kind."""
        threshold = None if self.threshold is None else self.threshold.sending(fisher, bare)
        return replace(self, fisher=fisher, bare=bare, threshold=threshold)


class Focusing(NamedTuple):
    """y replicas of the weights coupled with strength γ (Baldassi et al. 2016)."""

    replicas: float
    gamma: float


class Rule(NamedTuple):
    """The numbers of one layer's update. ρ and the rate may change at every step; what is compiled takes them as
    0-dimensional tensors and is made anew where one of the others changes."""

    #: ρ, the power of the posterior that is the next prior.
    rho: Tensor | float = 1.0
    #: e, the factor on the evidence (H, G); if ``relative`` it is κ, and e follows from what the messages measure.
    rate: Tensor | float = 1.0
    relative: bool = False
    #: T, the mini-batches of evidence that the posterior holds at most: older evidence decays by e/T; None: all of it.
    horizon: Tensor | float | None = None
    #: λ₀ of a Gaussian weight without evidence, for each input of its unit; of a threshold, in units of its scale.
    precision: float = 0.0
    #: α, the part of the old mean that stays.
    damping: float = 0.0
    #: r, internal reinforcement.
    reinforcement: float = 0.0
    focusing: Focusing | None = None
    #: The numbers of the layer's thresholds, if it has any; None: ρ = e = 1.
    threshold: Rule | None = None
    #: How often each sample of the mini-batch counts, (samples,); None: once.
    counts: Tensor | None = None


class LayerState(NamedTuple):
    """All that is known about one layer. The first six outlive a mini-batch; the others belong to its iterations."""

    #: (h, λ), natural parameters of the posterior.
    natural: Fields
    #: (m, σ), damped: where the next sweep starts from.
    moments: Moments
    #: Which weights there are (outputs, columns); None: all.
    mask: Tensor | None = None
    #: The columns that the mask leaves to each unit, if they are few, (outputs, d).
    columns: Tensor | None = None
    #: What is known about the thresholds, (outputs, 1) each; None: there are none.
    threshold: LayerState | None = None
    #: Of thresholds, the size of the preactivations they are added to, 0-dimensional; of weights None.
    scale: Tensor | None = None
    #: (h, λ) before the mini-batch.
    start: Fields | None = None
    #: (B, A) that the layer sent to its inputs in the iteration before.
    down: Fields | None = None
    #: What the algorithm remembers of the iteration before.
    previous: Any = None
    #: e of the iteration before.
    rate: Tensor | float = 1.0
    rule: Rule = Rule()

    def begin(self, rule: Rule) -> LayerState:
        """The state at the start of a mini-batch: no message has been sent yet."""
        threshold = None if self.threshold is None else self.threshold.begin(rule.threshold or Rule())
        return self._replace(start=self.natural, down=None, previous=None, rule=rule, threshold=threshold)

    def reinforced(self, r: float) -> LayerState:
        """The state with that internal reinforcement."""
        return self if self.rule.reinforcement == r else self._replace(rule=self.rule._replace(reinforcement=r))

    @property
    def begins(self) -> bool:
        """Whether this is the first iteration on its mini-batch."""
        return self.natural is self.start


def weights_and_thresholds(layers: Sequence[LayerState]) -> list[LayerState]:
    """Of all layers."""
    return [part for layer in layers for part in (layer, layer.threshold) if part is not None]


def largest_move(before: Sequence[LayerState], after: Sequence[LayerState]) -> Tensor:
    """Largest |m_new − m_old| of a weight or threshold, 0-dimensional; NaN if one of them is."""
    pairs = zip(weights_and_thresholds(before), weights_and_thresholds(after), strict=True)
    return torch.stack([(new.moments.mean - old.moments.mean).abs().max() for old, new in pairs]).max()


class Up(NamedTuple):
    """What the way up leaves at one layer: inputs (x̂, Δ), preactivation (ω, V), the (ω, V) of the layer below that the
    inputs came from (None at the first layer), how many variances were raised to the floor, and the (ω, V) of the layer
    below before it was pooled."""

    inputs: Moments
    pre: Preactivation
    below: Preactivation | None
    floored: Tensor
    unpooled: Preactivation | None = None


class Factor(NamedTuple):
    """The factors on top of one layer: a channel, what it was told from above, and (ω, V)."""

    channel: Channel[Any]
    message: Fields | Target
    pre: Preactivation
    #: g_kn and Γ_kn at the full preactivation, where the layer needs both.
    known_response: Response | None = None

    @property
    def gradient(self) -> Tensor:
        """g_kn at the full preactivation."""
        known = self.known_response
        return self.channel.gradient(self.message, self.pre) if known is None else known.gradient

    @property
    def response(self) -> Response:
        """g_kn and Γ_kn at the full preactivation."""
        known = self.known_response
        return self.channel.response(self.message, self.pre) if known is None else known

    def by_edge(self, coupling: Coupling) -> Factor:
        """One row per factor and a last axis for the edges: tensors (factors, outputs, 1)."""

        def lay(tensor: Tensor) -> Tensor:
            return coupling.factors(tensor).unsqueeze(2)

        return Factor(self.channel, relayout(self.message, lay), Preactivation(*map(lay, self.pre)))

    def chunk(self, rows: slice) -> Factor:
        """The factors of some rows only."""
        message = relayout(self.message, lambda tensor: tensor[rows])
        return Factor(self.channel, message, Preactivation(self.pre.mean[rows], self.pre.variance[rows]))

    def gradient_without(self, edge: Tensor) -> Tensor:
        """g_{kn→i}: the gradient at ω_kn − edge, where edge is m x̂ of each edge (factors, outputs, columns)."""
        return self.channel.gradient(self.message, Preactivation(self.pre.mean - edge, self.pre.variance))
