"""The way of a mini-batch: from ``Trainer.step`` to the first product it is a short walk."""

import traceback
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import cavity
from cavity.core.algorithms import ALGORITHMS

HOME = Path(cavity.__file__).parent


class FirstProduct(TorchDispatchMode):
    """Notes which of our functions are on the stack at the first matrix product."""

    names: list[str] | None = None

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if self.names is None and function is torch.ops.aten.mm.default:
            self.names = [frame.name for frame in traceback.extract_stack() if HOME in Path(frame.filename).parents]
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_at_most_seven_frames_lie_between_a_step_and_its_first_product(algorithm):
    trainer = cavity.Trainer(cavity.mlp(20, (11,), 3), algorithm)
    with FirstProduct() as first:
        trainer.step(torch.randn(8, 20), torch.arange(8) % 3)
    assert first.names is not None
    assert first.names[0] == "step"
    assert len(first.names) <= 7, first.names
