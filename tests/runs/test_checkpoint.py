"""Checkpoints: nothing lost, nothing altered unnoticed, nothing unpickled, nothing half written."""

from __future__ import annotations

import errno
import os
import pickle
import random

import pytest
import safetensors.torch
import torch

import cavity
from cavity.core.priors import PRIORS
from cavity.runs import CheckpointError, SaveCheckpoint, load_checkpoint, save_checkpoint
from cavity.runs.task import Task

X = torch.randn(24, 6, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0).long()


def trained(weights="binary", steps=2, seed=1, **options):
    net = cavity.mlp(6, (5,), 2, weights=weights, seed=seed, **options)
    trainer = cavity.Trainer(net, "mf", reinforcement=0.1, reinforcement_step=0.1, seed=seed)
    for _ in range(steps):
        trainer.step(X, Y)
    return net, trainer


@pytest.fixture
def saved(tmp_path):
    net, trainer = trained(density=0.5)
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, net, trainer)
    return path


@pytest.mark.parametrize("weights", PRIORS)
@pytest.mark.parametrize("density", [1.0, 0.5])
def test_everything_comes_back(tmp_path, weights, density):
    net, trainer = trained(weights, density=density, bias=True)
    trainer.fit((X, Y), epochs=1, validation=(X, Y), batch_size=8)
    task = Task(6, ("no", "yes"), (1, 2, 3), torch.tensor([0.5]), torch.tensor([2.0]))
    path = tmp_path / "c.safetensors"
    save_checkpoint(path, net, trainer, config={"epochs": 3}, task=task)

    other, resumed = trained(weights, steps=0, seed=2, density=density, bias=True)
    checkpoint = load_checkpoint(path)
    checkpoint.restore(other, resumed)
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name
    ours, theirs = trainer.state_dict(), resumed.state_dict()
    assert torch.equal(ours.pop("generator"), theirs.pop("generator"))
    assert ours == theirs
    assert checkpoint.config == {"epochs": 3}
    assert checkpoint.task is not None
    assert (checkpoint.task.inputs, checkpoint.task.classes, checkpoint.task.image_shape) == (
        6,
        ("no", "yes"),
        (1, 2, 3),
    )
    assert torch.equal(checkpoint.task.standardize(torch.tensor([2.5])), torch.tensor([1.0]))
    trainer.step(X, Y)
    resumed.step(X, Y)
    assert torch.equal(net.layers[0].field, other.layers[0].field)


def test_it_is_plain_safetensors(saved):
    tensors = safetensors.torch.load_file(saved)
    assert {"network.layers.0.field", "network.layers.0.mask", "generator"} <= tensors.keys()


def test_any_altered_byte_is_noticed(saved):
    content = saved.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    places = {0, 7, 8, header - 1, header, len(content) - 1, *range(8, header, 7)}
    places |= set(random.Random(0).sample(range(header, len(content)), 40))
    for place in places:
        altered = bytearray(content)
        altered[place] ^= 1
        saved.write_bytes(altered)
        with pytest.raises(CheckpointError, match=r"checkpoint\.safetensors: "):
            load_checkpoint(saved)
        assert saved.read_bytes() == altered


def test_any_truncation_is_noticed(saved):
    content = saved.read_bytes()
    for length in [0, 1, 7, 8, 9, 100, *range(200, len(content), 97), len(content) - 1]:
        saved.write_bytes(content[:length])
        with pytest.raises(CheckpointError):
            load_checkpoint(saved)
        assert saved.stat().st_size == length


def test_appended_bytes_are_noticed(saved):
    saved.write_bytes(saved.read_bytes() + b"\0")
    with pytest.raises(CheckpointError, match="SHA-256"):
        load_checkpoint(saved)


class Bomb:
    """Unpickling it leaves a trace."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_foreign_files_are_refused_and_never_unpickled(tmp_path):
    path, trace = tmp_path / "c.safetensors", tmp_path / "trace"
    plain = safetensors.torch.save({"a": torch.zeros(3)})
    others = safetensors.torch.save({"a": torch.zeros(3)}, {"format": "pt", "version": "1"})
    newer = safetensors.torch.save({"a": torch.zeros(3)}, {"format": "cavity checkpoint", "version": "99"})
    deep = b"[" * 100_000
    nested = len(deep).to_bytes(8, "little") + deep
    for content in (pickle.dumps(Bomb(trace)), b"", b"hello", plain, others, newer, nested, b"\xff" * 100):
        path.write_bytes(content)
        with pytest.raises(CheckpointError):
            load_checkpoint(path)
        assert path.read_bytes() == content
    torch.save(Bomb(trace), path)
    with pytest.raises(CheckpointError):
        load_checkpoint(path)
    assert not trace.exists()


def test_a_checkpoint_of_another_network(saved):
    net = cavity.mlp(6, (7,), 2)
    before = net.layers[0].field.clone()
    with pytest.raises(CheckpointError, match="does not fit the network"):
        load_checkpoint(saved).restore(net)
    assert torch.equal(net.layers[0].field, before)


@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_a_full_disk_keeps_the_last_one(saved, monkeypatch, where):
    before = saved.read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, where, fail)
    with pytest.raises(OSError, match=r"could not be written \(No space left on device\); what it held before is kept"):
        save_checkpoint(saved, *trained(steps=1))
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_a_callback_of_ones_own_training(tmp_path):
    _, trainer = trained(steps=0)
    path = tmp_path / "c.safetensors"
    seen = []

    class Watch(SaveCheckpoint):
        def save(self, trainer):
            super().save(trainer)
            seen.append((trainer.epoch, trainer.batch))

    trainer.fit((X, Y), epochs=2, batch_size=8, callbacks=[Watch(path, seconds=0)])
    assert seen == [(0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3), (2, 0)]
    seen.clear()
    trainer.fit((X, Y), epochs=3, batch_size=8, callbacks=[Watch(path, seconds=1000)])
    assert seen == [(3, 0)]
    with pytest.raises(ValueError, match="seconds must be >= 0, got -1"):
        SaveCheckpoint(path, seconds=-1)
