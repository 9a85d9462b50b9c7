"""What ``print`` shows of a trainer, and what is said where it is given no network."""

from __future__ import annotations

import math

import pytest
import torch

import cavity


def test_a_trainer_is_a_few_lines():
    trainer = cavity.Trainer(cavity.mlp(4, (3,), 1), "mf")
    assert str(trainer).splitlines() == [
        "Trainer",
        "  network    2 layers from 4 to 1, 15 binary weights",
        "  algorithm  mf",
        "  update     the messages choose the rate, which is annealed, then weights become certain",
        "  done       0 epochs, 0 steps",
    ]
    x = torch.randn((200, 4), generator=torch.Generator().manual_seed(0))
    (record,) = trainer.fit((x, torch.where(x[:, 0] > 0, 1, -1)), epochs=1, batch_size=100)
    *_, done, errors = str(trainer).splitlines()
    assert done == "  done       1 epoch, 2 steps"
    assert errors.startswith(f"  errors     train {record.train_error:.3g} % (Bayesian {record.train_error_bayes:.3g})")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rho": (1.0, 0.9)}, "rate 1, rho 1 0.9, damping 0.8"),
        ({"memory": math.inf}, "a stream, nothing is forgotten"),
        ({"memory": 2e4}, "a stream, a memory of 20,000 samples"),
        ({"schedule": "cosine"}, "the messages choose the rate, times a schedule"),
    ],
)
def test_every_plan_has_words(options, words):
    assert f"  update     {words}\n" in str(cavity.Trainer(cavity.mlp(4, (3,), 1), **options))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (torch.nn.Linear(3, 2), r"net must be a cavity.Network, got a Linear: make one, e.g. by cavity.mlp"),
        (cavity.Network, "got the class Network"),
        (cavity.MessagePassingClassifier(), "got a MessagePassingClassifier, which trains itself: call its fit"),
    ],
)
def test_what_is_no_network_is_named(wrong, message):
    with pytest.raises(TypeError, match=message):
        cavity.Trainer(wrong)


def test_a_convolution_in_the_manner_of_torch_is_told_the_difference():
    with pytest.raises(TypeError, match=r"image_shape must be \(channels.*got 1: .*e.g. Conv2d\(\(1, 28, 28\), 8, 3\)"):
        cavity.Conv2d(1, 8, 3)
