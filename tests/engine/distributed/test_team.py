"""Shares of a mini-batch, and what is said where there is no team. No other process is needed."""

from __future__ import annotations

import pytest
import torch

import cavity
from cavity.core.messages import Fields
from cavity.engine.distributed import NEEDED, Team


@pytest.mark.parametrize("samples", [1, 2, 3, 7, 8, 100])
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_the_shares_are_the_mini_batch(samples, size) -> None:
    portions = [Team(rank, size).portion(samples) for rank in range(size)]
    taken = [number for portion in portions if not portion.idle for number in range(samples)[portion.part]]
    assert taken == list(range(samples))
    lengths = {len(range(samples)[portion.part]) for portion in portions}
    assert max(lengths) - min(lengths) <= 1
    assert sum(portion.idle for portion in portions) == max(0, size - samples)
    assert all(portion.part == slice(0, 1) for portion in portions if portion.idle)


def test_noise_is_drawn_for_all_samples_whoever_has_them() -> None:
    output, y = cavity.ArgMax("sampled"), torch.tensor([0, 2, 1, 1, 0])
    pre = [torch.randn(5, 3), torch.ones(5, 3)]
    whole = output.target(y, cavity.core.messages.Preactivation(*pre), torch.Generator().manual_seed(3))
    for rank in range(2):
        portion = Team(rank, 2).portion(5)
        mine = cavity.core.messages.Preactivation(*(tensor[portion.part] for tensor in pre))
        part = portion.target(output, y, mine, torch.Generator().manual_seed(3))
        assert torch.equal(part.labels, y[portion.part])
        assert torch.equal(part.noise, whole.noise[portion.part])


def test_without_torchrun_it_is_an_error(monkeypatch) -> None:
    for name in NEEDED:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RuntimeError, match="started by torchrun, which sets RANK"):
        cavity.Trainer(cavity.mlp(3, (), 1), "mf", distributed=True)


def test_a_transport_that_fails_is_a_lost_process(monkeypatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("Connection closed by peer")

    monkeypatch.setattr("torch.distributed.all_reduce", fail)
    with pytest.raises(ConnectionError, match="process 1 of 2 lost contact"):
        Team(1, 2).portion(4).add(Fields(torch.zeros(2, 2), None))
