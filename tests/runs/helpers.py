"""A run that trains in a moment, and what two runs must have in common."""

from __future__ import annotations

from pathlib import Path

import torch

from cavity.runs import Config, load_checkpoint

#: 4 mini-batches of 30 samples in an epoch.
TINY_DATA = {"n_features": 21, "n_train": 130, "n_test": 40}


def tiny(**options) -> Config:
    """Two classes of random inputs, a small network, three epochs."""
    defaults = {
        "dataset": "teacher-student",
        "data_options": TINY_DATA,
        "hidden": (11,),
        "algorithm": "mf",
        "batch_size": 30,
        "epochs": 3,
        "threads": 1,
        "device": "cpu",
    }
    return Config(**{**defaults, **options})


def assert_same_outcome(one: Path, other: Path) -> None:
    """The same state of network and trainer to the last bit, and the same metrics but for the time they took."""
    first, second = (load_checkpoint(path / "checkpoint.safetensors") for path in (one, other))
    assert first.network.keys() == second.network.keys()
    for name, tensor in first.network.items():
        assert torch.equal(tensor, second.network[name]), name
    states = [dict(checkpoint.trainer) for checkpoint in (first, second)]
    generators = [state.pop("generator") for state in states]
    assert torch.equal(*generators)
    for state in states:
        state.pop("seconds")
        for record in state["history"]:
            record.pop("seconds")
    assert states[0] == states[1]
