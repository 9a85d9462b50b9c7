"""BinaryNet with elastic weight consolidation (Kirkpatrick et al., "Overcoming catastrophic forgetting in neural
networks", PNAS 114, 2017) in its online form (Schwarz et al., "Progress & Compress", ICML 2018).

At the end of a task the weights w become the centre w*, and what they matter is added to that of the tasks before:

    F ← γF + F_task,     F_task,i = mean over x of Σ_c p(c | x) (∂ log p(c | x)/∂w_i)²,     w* ← w,

the diagonal of the Fisher matrix. Springs then hold the weights while the next task is learnt,

    L = cross-entropy + (strength/2) Σ_i F_i (w_i − w*_i)².

w are BinaryNet's continuous weights, and derivatives pass signs straight through. F grows with every task unless γ < 1;
strength 0 is BinaryNet. The sum over c is exact, so labels are not needed and nothing is drawn at random. (Schwarz et
al. write γF in the springs; that is another strength.)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cavity.baselines.binarynet import BinaryNet, BinaryNetTrainer
from cavity.baselines.classifier import cross_entropy, require_above
from cavity.baselines.compiled import Stepper
from cavity.baselines.straight_through import Layer, all_binary, layer_sums, logits
from cavity.baselines.trainer import Optimizer
from cavity.core.predict import BATCH
from cavity.training.schedules import Function

#: The best of a few on permuted MNIST with 100 hidden units (``docs/api/baselines.md``).
STRENGTH, DECAY = 100.0, 0.7


def fisher(net: BinaryNet, x: Tensor) -> list[Tensor]:
    """Mean over samples x (samples, inputs) of Σ_c p(c) (∂ log p(c)/∂w)², (outputs, inputs) for each layer.

    A sample's derivative is ∂/∂z_k times its input x_i, so that the squares need no derivative for each sample and
    weight: Σ_n (∂_kn x_in)² is a product of matrices.
    """
    totals = [torch.zeros_like(w, requires_grad=False) for w in net.weights]
    for part in torch.split(x, BATCH):
        sums = layer_sums(all_binary(list(net.weights), net.layers), net.layers, part)
        log_p = _log_probabilities(sums[-1].z * net.scales[-1])
        squares = [torch.zeros_like(level.z, requires_grad=False) for level in sums]
        for of_class in log_p.unbind(dim=1):
            p = of_class.detach().exp().unsqueeze(1)
            slopes = torch.autograd.grad(of_class.sum(), [level.z for level in sums], retain_graph=True)
            for square, slope in zip(squares, slopes, strict=True):
                square.addcmul_(p, slope.square())
        for total, square, level in zip(totals, squares, sums, strict=True):
            total.addmm_(square.T, level.inputs.detach().square(), alpha=1 / len(x))
    return totals


def _log_probabilities(z: Tensor) -> Tensor:
    """(samples, classes) of logits; a label's classes are −1 and +1."""
    if z.shape[1] > 1:
        return torch.log_softmax(z, dim=1)
    return nn.functional.logsigmoid(torch.cat([-z, z], dim=1))


def elastic_step(
    x: Tensor,
    y: Tensor,
    weights: Sequence[Tensor],
    layers: Sequence[Layer],
    slots: Sequence[Tensor],
    optimizer: Optimizer,
    factor: Tensor | None,
    strength: float,
    importance: Sequence[Tensor],
    centres: Sequence[Tensor],
) -> Tensor:
    """BinaryNet's step with the springs' energy added to the loss."""
    springs = zip(weights, importance, centres, strict=True)
    energy = sum((F * (w - centre).square()).sum() for w, F, centre in springs)
    loss = cross_entropy(logits(weights, layers, x), y) + 0.5 * strength * energy
    return optimizer.descend(loss, weights, slots, factor)


class ElasticTrainer(BinaryNetTrainer):
    """Trains a BinaryNet; ``end_task`` fastens its weights where they are.

    Args:
        strength: of the springs; 0 has none.
        decay: γ, what is left of the tasks before at the end of a task.
        optimizer, lr, schedule, compile, seed: as in ``BinaryNetTrainer``.
    """

    def __init__(
        self,
        net: BinaryNet,
        optimizer: str = "adam",
        *,
        strength: float = STRENGTH,
        decay: float = DECAY,
        lr: float | None = None,
        schedule: str | Function | None = None,
        compile: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(net, optimizer, lr=lr, schedule=schedule, seed=seed)
        require_above("strength", strength, least_too=True)
        if not 0 <= decay <= 1:
            raise ValueError(f"decay must be from 0 to 1, got {decay!r}")
        self.strength, self.decay = strength, decay
        self._step = Stepper(elastic_step, compile)
        self.importance = [torch.zeros_like(w, requires_grad=False) for w in net.weights]
        self.centres = [w.detach().clone() for w in net.weights]
        #: The optimiser's own part; the whole is what a resumed run needs.
        self.moments = list(self.slots)
        self.slots = [*self.moments, *self.importance, *self.centres]

    def learn(self, x: Tensor, y: Tensor) -> Tensor:
        springs = self.strength, self.importance, self.centres
        weights, layers = list(self.net.weights), self.net.layers
        return self._step(x, y, weights, layers, self.moments, self.optimizer, self.factor, *springs)

    def end_task(self, x: Tensor, y: Tensor) -> None:
        """F ← γF + the Fisher diagonal on x (samples, inputs), a sample of the task or all of it; w* ← w."""
        x, _ = self._checked(x, y)
        new = fisher(self.net, x)
        with torch.no_grad():
            for F, of_task, centre, w in zip(self.importance, new, self.centres, self.net.weights, strict=True):
                F.mul_(self.decay).add_(of_task)
                centre.copy_(w)
