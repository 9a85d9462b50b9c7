"""BinaryNet as in the paper's appendix "SGD implementation".

Continuous weights w in [−1, 1] are kept and updated; both passes use w_b = sign(w) and activations sign(z):

    z^ℓ = sign(w^ℓ) x^ℓ / √N_ℓ,     x^{ℓ+1} = sign(z^ℓ),     L = cross-entropy of z^L

with no bias and no batch normalisation. In a sparse layer, N_ℓ counts the inputs that a unit sees. The derivative of
sign is taken as 1 for arguments in [−1, 1] and as 0 elsewhere (straight-through); clipping keeps every weight in [−1,
1]. sign(0) = +1.

It is written for speed, because message passing is measured against it. 1/√N never costs a pass over the weights (a
sign ignores it, and the backward pass applies it to the gradient of z), no gradient of the inputs is computed, and a
step can be compiled as one graph: forward, backward and update.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from cavity.baselines.classifier import Classifier, cross_entropy, initial_weights
from cavity.baselines.trainer import GradientTrainer, Optimizer
from cavity.training.schedules import Function

#: Network and batch shapes for which a compiled step is kept; a grid soon exceeds the compiler's default of eight.
COMPILED_SHAPES = 64


class _BinaryWeights(torch.autograd.Function):
    """magnitude·sign(w), with the gradient passed straight through: clipped weights never leave [−1, 1]."""

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


class Layer(NamedTuple):
    """The constants of a layer: |w_b| (1, or a mask (outputs, inputs)), 1/√N, and the |z| where the gradient ends."""

    magnitude: Tensor
    scale: float
    window: float


def logits(weights: Sequence[Tensor], layers: Sequence[Layer], x: Tensor) -> Tensor:
    """z^L (samples, outputs) of inputs x (samples, inputs)."""
    for w, layer in zip(weights[:-1], layers[:-1], strict=True):
        z = nn.functional.linear(x, binary_weights(w, layer.magnitude))
        x = binary_activation(z, layer.scale, layer.window)
    return nn.functional.linear(x, binary_weights(weights[-1], layers[-1].magnitude)) * layers[-1].scale


class BinaryNet(Classifier):
    """A perceptron ``inputs``-``hidden``-``outputs`` with binary weights and activations.

    One output unit is a ±1 label, several are classes. ``density`` < 1 keeps a random fraction of the weights.
    """

    def __init__(
        self, inputs: int, hidden: Sequence[int], outputs: int, *, density: float = 1.0, seed: int = 0
    ) -> None:
        super().__init__(inputs, hidden, outputs)
        self.weights = nn.ParameterList()
        for number, (w, mask) in enumerate(initial_weights(self.shapes, density, seed)):
            self.weights.append(w)
            self.register_buffer(f"magnitude_{number}", torch.ones(()) if mask is None else mask)
        # N is what a unit sees: with all inputs counted, a sparse network would have logits too small to learn from.
        roots = [math.sqrt(density * columns) for _, columns in self.shapes]
        self.scales, self.windows = [1 / root for root in roots], list(map(just_above, roots))

    @property
    def layers(self) -> list[Layer]:
        """The constants of each layer."""
        magnitudes = (self.get_buffer(f"magnitude_{number}") for number in range(len(self.weights)))
        return [Layer(*parts) for parts in zip(magnitudes, self.scales, self.windows, strict=True)]

    def logits(self, x: Tensor) -> Tensor:
        return logits(list(self.weights), self.layers, x)

    @torch.no_grad()
    def point_weights(self) -> list[Tensor]:
        return [binary_weights(w, layer.magnitude) for w, layer in zip(self.weights, self.layers, strict=True)]


def training_step(
    weights: Sequence[Tensor],
    layers: Sequence[Layer],
    memory: Sequence[Tensor],
    optimizer: Optimizer,
    x: Tensor,
    y: Tensor,
    factor: Tensor | None = None,
) -> Tensor:
    """Forward, backward and update on one mini-batch; returns the loss before the update."""
    return optimizer.descend(cross_entropy(logits(weights, layers, x), y), weights, memory, factor)


class BinaryNetTrainer(GradientTrainer):
    """Trains a BinaryNet by "sgd" (lr 10) or "adam" (lr 0.001).

    ``compile=True`` compiles the whole step for each new batch size, which takes seconds and needs a C++ compiler.
    """

    net: BinaryNet
    DEFAULT_LR: ClassVar = {"sgd": 10.0, "adam": 0.001}
    BOUND = 1.0

    def __init__(
        self,
        net: BinaryNet,
        optimizer: str = "sgd",
        *,
        lr: float | None = None,
        schedule: str | Function | None = None,
        compile: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(net, list(net.weights), optimizer, lr, seed, schedule)
        self.compile = compile
        self._step = _compiled_step() if compile else training_step
        self._sizes_met: set[int] = set()

    def learn(self, x: Tensor, y: Tensor) -> Tensor:
        new = self.compile and len(x) not in self._sizes_met
        self._sizes_met.add(len(x))
        with _compiling() if new else nullcontext():
            return self._step(list(self.net.weights), self.net.layers, self.memory, self.optimizer, x, y, self.factor)


@cache
def _compiled_step() -> Callable[..., Tensor]:
    """The compiled step, one for all trainers; it stays one graph where this torch can trace autograd."""
    compiled: Callable[..., Tensor] = torch.compile(training_step, dynamic=False, fullgraph=_traces_autograd())
    return compiled


def _traces_autograd() -> bool:
    return hasattr(torch._dynamo.config, "trace_autograd_ops")


@contextmanager
def _compiling() -> Iterator[None]:
    """Compiler settings for tracing a step, without torch's own deprecation warnings."""
    one_graph: dict[str, Any] = {"trace_autograd_ops": True} if _traces_autograd() else {}
    with warnings.catch_warnings(), torch._dynamo.config.patch(recompile_limit=COMPILED_SHAPES, **one_graph):
        for message in (".*torch.jit.script_method", ".*should not be instantiated"):
            warnings.filterwarnings("ignore", message=message, category=DeprecationWarning)
        yield
