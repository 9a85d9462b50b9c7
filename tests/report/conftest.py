"""What the tests of the report share: a small network trained on digits."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

import cavity
from cavity import data


@dataclass(frozen=True)
class Settings:
    """Stands for a run's configuration."""

    dataset: str = "digits"
    hidden: tuple[int, ...] = (31,)


@dataclass(frozen=True)
class Trained:
    """A network, its history and its data."""

    net: cavity.Network
    history: list
    dataset: data.Dataset
    config: Settings = Settings()


@pytest.fixture(scope="session")
def digits() -> data.Dataset:
    return data.load("digits")


@pytest.fixture(scope="session")
def trained(digits) -> Trained:
    net = cavity.mlp(64, (31,), 10, seed=0)
    trainer = cavity.Trainer(net, "bp", seed=0)
    part = digits.subset(n_train=600)
    history = trainer.fit(
        (part.x_train, part.y_train), epochs=3, batch_size=50, validation=(digits.x_test, digits.y_test)
    )
    return Trained(net, history, digits)


@pytest.fixture(autouse=True)
def one_thread():
    """The networks here are small: more threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
