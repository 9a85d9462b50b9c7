"""Peak memory of steps whose memory is known."""

from __future__ import annotations

from functools import partial

import pytest
import torch

import cavity
from cavity.studies.bench.peak import peak_bytes

CPU = torch.device("cpu")
MEGA = torch.zeros(1 << 20)
SIZE = MEGA.numel() * MEGA.element_size()


def temporaries():
    """Two at once, three times over."""
    for _ in range(3):
        first = MEGA.clone()
        second = first.clone()
        del first, second


class Replaces:
    """A step that makes a new state and lets go of the old one."""

    def __init__(self, free_first):
        self.state, self.free_first = MEGA.clone(), free_first

    def __call__(self):
        if self.free_first:
            self.state = None
        self.state = MEGA.clone()


def test_released_memory_is_not_counted_twice():
    assert peak_bytes(lambda: temporaries, CPU) == 2 * SIZE


def test_what_is_given_back_first_makes_room():
    assert peak_bytes(partial(Replaces, free_first=False), CPU) == SIZE
    assert peak_bytes(partial(Replaces, free_first=True), CPU) == 0


def test_only_the_second_call_counts():
    kept = []

    def step():
        kept.append(torch.zeros((1 << 20) if not kept else (1 << 10)))

    assert peak_bytes(lambda: step, CPU) == (1 << 10) * 4


@pytest.mark.parametrize("algorithm", ["bp", "bpi"])
def test_a_step_of_bp_holds_no_tensor_of_samples_by_units_by_inputs(algorithm):
    """784-501-501-10 at batch 1024: a K×N×M tensor of the first layer would be 1.6 GB. The step looks at its series."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(1024, 784, generator=generator), torch.randint(10, (1024,), generator=generator)

    def make():
        trainer = cavity.Trainer(cavity.mlp(784, (501, 501), 10), algorithm, compile=False)
        return partial(trainer.step, x, y)

    assert 10e6 < peak_bytes(make, CPU) < 200e6
