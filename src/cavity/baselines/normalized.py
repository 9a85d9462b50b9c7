"""BinaryNet with batch normalisation, convolutional or not (Courbariaux, Hubara, Soudry, El-Yaniv and Bengio,
"Binarized neural networks", 2016), on the architectures of ``cavity.network``.

Continuous weights w in [−1, 1] are kept and updated. Both passes use their signs, and in each layer

    z = sign(w) x,     a = γ(z − μ)/s + β,     x' = sign(a),

with the mean μ and the standard deviation s of each unit or channel over the mini-batch. The largest a of a window is
what max pooling keeps, and its sign is that of the window's largest unit. The gradient passes a sign straight through
where |a| ≤ 1. The a of the last layer are the logits.

For prediction μ and s are averages over the mini-batches so far, and everything is folded into thresholds:

    sign(γ(z − μ)/s + β) = sign(z' + b),     z' = sign(γ) z,     b = βs/|γ| − sign(γ) μ

so that the network is one of ±1 weights, sign units and thresholds, but for a factor and an offset of each class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cavity.baselines.classifier import Classifier, cross_entropy, initial_weights
from cavity.baselines.compiled import Stepper
from cavity.baselines.straight_through import binary_activation, binary_weights, just_above
from cavity.baselines.trainer import Adam, GradientTrainer
from cavity.core.architecture import Row, rows
from cavity.core.builder import coupling_of
from cavity.core.couplings import Coupling
from cavity.core.whitening import Whitening
from cavity.training.schedules import Function

#: The part of the averages that a mini-batch replaces, and what is added to variances; both are usual.
MOMENTUM, EPSILON = 0.1, 1e-5
#: |a| up to which the gradient passes a sign.
WINDOW = just_above(1.0)
#: |γ| counts as at least this much: a unit with γ = 0 has a threshold that no sum reaches.
LEAST_SCALE = 1e-12


class Stage(NamedTuple):
    """A layer and what pools its units: "pool", "average" or "", in windows of ``size``. No tensors."""

    coupling: Coupling
    pool: str = ""
    size: int = 0


class Normalization(NamedTuple):
    """γ, β and the averages of μ and s² of a layer, (outputs,) each."""

    scale: Tensor
    offset: Tensor
    mean: Tensor
    variance: Tensor


class NormalizedBinaryNet(Classifier):
    """A network in words, as ``cavity.network`` takes them, with binary weights, sign units and batch normalisation.

    ``layers`` are those below the readout, e.g. "conv:64:5:2,pool:2,dense:501"; ``input_shape`` is (channels, height,
    width) of images or the number of inputs; one output unit is a ±1 label, several are classes.
    """

    def __init__(self, layers: str, input_shape: int | tuple[int, ...], outputs: int, *, seed: int = 0) -> None:
        shape = (input_shape,) if isinstance(input_shape, int) else tuple(input_shape)
        super().__init__(math.prod(shape), (), outputs)
        found = rows(layers, shape, outputs)
        self.input_shape = shape
        self.front = _whitening(found[0])
        self.stages = _stages(found)
        self.shapes = [(stage.coupling.outputs, stage.coupling.columns) for stage in self.stages]
        self.weights, self.scales, self.offsets = (nn.ParameterList() for _ in range(3))
        for number, (w, _) in enumerate(initial_weights(self.shapes, 1.0, seed)):
            self.weights.append(w)
            self.scales.append(nn.Parameter(torch.ones(len(w))))
            self.offsets.append(nn.Parameter(torch.zeros(len(w))))
            self.register_buffer(f"mean_{number}", torch.zeros(len(w)))
            self.register_buffer(f"variance_{number}", torch.ones(len(w)))

    @property
    def normalizations(self) -> list[Normalization]:
        """What normalises each layer."""
        found = []
        for number, (scale, offset) in enumerate(zip(self.scales, self.offsets, strict=True)):
            averages = self.get_buffer(f"mean_{number}"), self.get_buffer(f"variance_{number}")
            found.append(Normalization(scale, offset, *averages))
        return found

    def prepared(self, x: Tensor) -> Tensor:
        """Checked inputs (samples, inputs) as the first layer takes them."""
        x = x.reshape(len(x), *self.input_shape)
        return x if self.front is None else self.front(x)

    def logits(self, x: Tensor) -> Tensor:
        x = self.prepared(x)
        *below, last = zip(self.stages, self.point_weights(), strict=True)
        for (stage, w), b in zip(below, self.thresholds(), strict=True):
            z = stage.coupling.apply(w, _flat(stage, x))
            x = _pooled_signs(stage, z + b.reshape(-1, *(1 for _ in z.shape[2:])))
        scale, offset, mean, variance = self.normalizations[-1]
        return F.batch_norm(last[0].coupling.apply(last[1], _flat(last[0], x)), mean, variance, scale, offset)

    @torch.no_grad()
    def point_weights(self) -> list[Tensor]:
        """±1, with the signs of γ in all layers but the last."""
        *below, last = [binary_weights(w, torch.ones_like(w[0, 0])) for w in self.weights]
        signs = [torch.where(normal.scale < 0, -1.0, 1.0).to(last) for normal in self.normalizations]
        return [*(w * sign[:, None] for w, sign in zip(below, signs, strict=False)), last]

    @torch.no_grad()
    def thresholds(self) -> list[Tensor]:
        """b (outputs,) of all layers but the last."""
        found = []
        for scale, offset, mean, variance in self.normalizations[:-1]:
            centre = torch.where(scale < 0, -mean, mean)
            found.append(offset * (variance + EPSILON).sqrt() / scale.abs().clamp_min(LEAST_SCALE) - centre)
        return found


def normalized_logits(
    weights: Sequence[Tensor], normalizations: Sequence[Normalization], stages: Sequence[Stage], x: Tensor
) -> Tensor:
    """a of the last layer (samples, outputs) for prepared inputs, normalised by the mini-batch's own statistics, which
    the averages take in."""
    for place, (stage, w, normal) in enumerate(zip(stages, weights, normalizations, strict=True), start=1):
        scale, offset, mean, variance = normal
        z = stage.coupling.apply(binary_weights(w, torch.ones_like(w[0, 0])), _flat(stage, x))
        a = F.batch_norm(z, mean, variance, scale, offset, training=True, momentum=MOMENTUM, eps=EPSILON)
        x = a if place == len(stages) else _pooled_signs(stage, a)
    return x


def _pooled_signs(stage: Stage, a: Tensor) -> Tensor:
    """Signs of a, pooled. Max pooling comes first, which gives the same and lets the gradient pass to the largest."""
    signs = binary_activation(F.max_pool2d(a, stage.size) if stage.pool == "pool" else a, 1.0, WINDOW)
    return F.avg_pool2d(signs, stage.size) if stage.pool == "average" else signs


def _flat(stage: Stage, x: Tensor) -> Tensor:
    """Units as the layer takes them: an image, or in a row."""
    return x.reshape(len(x), *stage.coupling.input_shape)


def _stages(found: Sequence[Row]) -> list[Stage]:
    stages: list[Stage] = []
    for row in found:
        if row.stage.kind in ("pool", "average"):
            stages[-1] = stages[-1]._replace(pool=row.stage.kind, size=row.stage.size)
        elif row.stage.kind != "white":
            stages.append(Stage(coupling_of(row)))
    return stages


def _whitening(first: Row) -> Whitening | None:
    stage = first.stage
    if stage.kind != "white":
        return None
    return Whitening(cast(tuple[int, int, int], first.takes), stage.size, stage.kernel, stage.stride)


def training_step(
    x: Tensor,
    y: Tensor,
    weights: Sequence[Tensor],
    normalizations: Sequence[Normalization],
    stages: Sequence[Stage],
    slots: tuple[Sequence[Tensor], Sequence[Tensor]],
    optimizers: tuple[Adam, Adam],
    factor: Tensor | None = None,
) -> Tensor:
    """Forward, backward and update of the weights, then of γ and β; returns the loss before the update."""
    loss = cross_entropy(normalized_logits(weights, normalizations, stages, x), y)
    others = [part for normal in normalizations for part in normal[:2]]
    gradients = torch.autograd.grad(loss, [*weights, *others])
    with torch.no_grad():
        optimizers[0].update(weights, gradients[: len(weights)], slots[0], factor)
        optimizers[1].update(others, gradients[len(weights) :], slots[1], factor)
    return loss.detach()


class NormalizedTrainer(GradientTrainer):
    """Trains a NormalizedBinaryNet by Adam with step size ``lr`` times a schedule, by default a cosine over the run.

    ``lr`` is 0.01 by default, which was better than 0.003 on held-out images (``docs/api/baselines.md``).

    ``compile=True`` compiles the whole step for each new batch size, which takes seconds and needs a C++ compiler.
    """

    net: NormalizedBinaryNet
    DEFAULT_LR: ClassVar = {"adam": 0.01}
    BOUND = 1.0

    def __init__(
        self,
        net: NormalizedBinaryNet,
        *,
        lr: float | None = None,
        schedule: str | Function | None = "cosine",
        compile: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(net, lr=lr, schedule=schedule, seed=seed)
        others = [part for normal in net.normalizations for part in normal[:2]]
        #: γ and β are not clipped.
        self.free = Adam(self.optimizer.lr, math.inf)
        self._split = len(self.slots)
        self.slots = [*self.slots, *self.free.start(others)]
        self._step = Stepper(training_step, compile)

    def begin(self, x: Tensor) -> None:
        """Compute the whitening, if there is one and nothing has."""
        front = self.net.front
        if front is not None and not bool(front.fitted):
            front.fit(x.reshape(len(x), *self.net.input_shape))

    def learn(self, x: Tensor, y: Tensor) -> Tensor:
        net = self.net
        slots = self.slots[: self._split], self.slots[self._split :]
        optimizers = cast(Adam, self.optimizer), self.free
        x = net.prepared(x)
        return self._step(x, y, list(net.weights), net.normalizations, net.stages, slots, optimizers, self.factor)
