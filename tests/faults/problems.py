"""Networks and mini-batches at the edge: a description that hypothesis draws and shrinks, and what it builds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from hypothesis import strategies as st
from torch import Tensor

import cavity
from cavity.core import channels
from cavity.core.messages import Fields, Moments

INPUTS, CLASSES = 6, 3
OUTPUTS = {"label": 1, "argmax": CLASSES, "gaussian": 2}
ALGORITHMS = ("bp", "bpi", "mf", "amp")
PRIORS = ("binary", "gaussian", "ternary")
ACTIVATIONS = tuple(channels.ACTIVATIONS)
DTYPES = {"float32": torch.float32, "float64": torch.float64}
#: What is stored when the step begins, by the size of |h| (and λ); "drawn" is what a new network holds.
STATES = {"drawn": None, "undecided": 0.0, "polarised": 50.0, "near the bound": 9e17, "beyond the bound": 1e30}


@dataclass(frozen=True)
class Problem:
    """A network, its stored state, and a mini-batch."""

    algorithm: str = "bp"
    prior: str = "binary"
    activation: str = "sign"
    output: str = "label"
    hidden: tuple[int, ...] = (4,)
    bias: bool = False
    mask: str = "none"
    dtype: str = "float32"
    inner_iterations: int = 1
    rho: float = 1.0
    damping: float = 0.8
    state: str = "drawn"
    inputs: str = "normal"
    scale: float = 1.0
    labels: str = "random"
    target_scale: float = 1.0
    samples: int = 5
    seed: int = 0

    def network(self) -> cavity.Network:
        sizes = (INPUTS, *self.hidden, OUTPUTS[self.output])
        generator = torch.Generator().manual_seed(self.seed)
        chain: list = []
        for lower, upper in pairwise(sizes):
            coupling = cavity.Dense(lower, upper, bias=self.bias)
            shape = coupling.outputs, coupling.columns
            chain += [cavity.Layer(coupling, self.prior, mask=self._mask(shape, generator)), self.activation]
        net = cavity.Network([*chain[:-1], self.output], seed=self.seed).to(DTYPES[self.dtype])
        if STATES[self.state] is not None:
            for layer in net.weighted():
                write_fields(layer, *self._fields(layer, generator))
        return net

    def _mask(self, shape: tuple[int, int], generator: torch.Generator) -> Tensor | None:
        if self.mask == "none":
            return None
        mask = torch.rand(shape, generator=generator) < 0.5
        if self.mask == "a unit without inputs":
            mask[0] = False
        return mask

    def _fields(self, layer: cavity.Layer, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """h = ±size and λ of the same size, which is what ρ > 1 makes of both; a Gaussian weight needs λ > 0."""
        size = STATES[self.state]
        assert size is not None
        signs = torch.sign(torch.randn(layer.shape, generator=generator))
        share = torch.rand(layer.shape, generator=generator)
        return size * signs, (size if self.prior == "gaussian" else size * (2 * share - 1)) + torch.zeros(layer.shape)

    def trainer(self, net: cavity.Network) -> cavity.Trainer:
        return cavity.Trainer(
            net,
            self.algorithm,
            rho=self.rho,
            damping=self.damping,
            inner_iterations=self.inner_iterations,
            compile=False,
        )

    def batch(self) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(self.seed + 1)
        x = torch.randn((self.samples, INPUTS), generator=generator, dtype=torch.float64)
        if self.inputs == "constant":
            x = x[:1, :1].expand_as(x)
        elif self.inputs == "zero":
            x = torch.zeros_like(x)
        elif self.inputs == "mostly zero":
            x = x * (torch.rand(x.shape, generator=generator) < 0.3)
        elif self.inputs == "duplicated":
            x = x[:1].expand_as(x)
        return (self.scale * x).to(DTYPES[self.dtype]), self._targets(generator)

    def _targets(self, generator: torch.Generator) -> Tensor:
        """Of duplicated samples, random ones contradict each other."""
        if self.output == "gaussian":
            y = torch.randn((self.samples, OUTPUTS["gaussian"]), generator=generator)
            return self.target_scale * (y[:1].expand_as(y) if self.labels == "one class" else y)
        classes = torch.randint(CLASSES, (self.samples,), generator=generator)
        if self.labels == "one class":
            classes = classes[:1].expand_as(classes)
        return classes if self.output == "argmax" else 2 * (classes % 2) - 1

    @property
    def is_tame(self) -> bool:
        """Whether nothing excuses an error: weights that cannot diverge, and numbers as data have them."""
        return self.prior != "gaussian" and 1e-6 <= self.scale <= 1e6 and self.target_scale <= 1e3


def write_fields(layer: cavity.Layer, field: Tensor, precision: Tensor) -> None:
    """Store natural parameters and the moments that belong to them."""
    field, precision = field.to(layer.field), precision.to(layer.field)
    if layer.mask is not None:
        field = field * layer.mask
    natural = Fields(field, precision if layer.prior.uses_precision else None)
    mean, variance = layer.prior.moments(natural)
    assert variance is not None
    if layer.mask is not None:
        mean, variance = mean * layer.mask, variance * layer.mask
    layer.set_state(natural, Moments(mean, variance))


def snapshot(net: cavity.Network) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in net.state_dict().items()}


def unchanged(net: cavity.Network, before: dict[str, Tensor]) -> bool:
    return all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


POWERS = st.sampled_from([0, 0, 0, 0, -30, -12, -6, -3, 3, 6, 9, 12, 15, 20, 30, 37])

PROBLEMS = st.builds(
    Problem,
    algorithm=st.sampled_from(ALGORITHMS),
    prior=st.sampled_from(PRIORS),
    activation=st.sampled_from(ACTIVATIONS),
    output=st.sampled_from(tuple(OUTPUTS)),
    hidden=st.sampled_from([(), (4,), (5, 3)]),
    bias=st.booleans(),
    mask=st.sampled_from(["none", "none", "half", "a unit without inputs"]),
    dtype=st.sampled_from(tuple(DTYPES)),
    inner_iterations=st.sampled_from([1, 1, 2, 3]),
    rho=st.sampled_from([1.0, 1.0001, 1.1]) | st.floats(1e-6, 1.1),
    damping=st.sampled_from([0.0, 0.8]) | st.floats(0, 0.99),
    state=st.sampled_from(tuple(STATES)),
    inputs=st.sampled_from(["normal", "normal", "constant", "zero", "mostly zero", "duplicated"]),
    scale=POWERS.map(lambda power: 10.0**power),
    labels=st.sampled_from(["random", "one class"]),
    target_scale=st.sampled_from([1.0, 1.0, 1e3, 1e15, 1e30]),
    samples=st.sampled_from([1, 2, 5, 9]),
    seed=st.integers(0, 10**6),
)
