"""Checkpoints: one safetensors file with everything a run needs to go on exactly where it was.

Tensors: ``network.…`` (field, precision, mean, variance, mask of each layer), ``generator`` and ``trainer.…`` (what an
optimiser remembers, for baselines), ``mean`` and ``std`` of the data and ``data.…`` (codes of its samples). Metadata:
format, version, the configuration, the trainer's position and metrics, what the data are, and a SHA-256 of the whole
file in which its own digits count as zeros. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from cavity.core.channels import GaussianOutput
from cavity.runs.task import Task
from cavity.training.callbacks import Callback
from cavity.util.files import write_whole
from cavity.util.plain import from_json
from cavity.util.regular import open_regular
from cavity.util.text import shown

if TYPE_CHECKING:
    from cavity.analysis.metrics import EpochRecord
    from cavity.core.pasp import StepInfo
    from cavity.training.loop import Loop
    from cavity.training.trainer import Trainer

FORMAT, VERSION = "cavity checkpoint", "1"
BLANK = "0" * 64
#: No header of ours is near this; a longer one is not worth reading into memory.
MAX_HEADER = 1 << 26
LENGTH_BYTES = 8
#: What values of the wrong kind, shape or depth raise, where the checksum fits because a stranger wrote it.
UNREADABLE = (SafetensorError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RuntimeError)
#: What every trainer has always written.
POSITION = ("generator", "steps", "epoch", "batch", "order_seed", "seconds", "history")
AnyPath = str | os.PathLike[str]
Values = Mapping[str, Any]
#: Stands in the trainer's plain state for a tensor that is kept beside it; its value is the tensor's name.
LIFTED = "tensor"


class CheckpointError(ValueError):
    """A checkpoint is truncated, altered, of another kind or of another run; the file was not touched."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checkpoint that was read and found whole."""

    path: Path
    network: Mapping[str, Tensor]
    trainer: Values
    config: Values
    task: Task | None
    #: The variance of the noise on labels that are numbers.
    noise: float | None = None

    def restore(self, net: nn.Module, trainer: Loop[Any] | None = None) -> None:
        """Put the state into a network, and a trainer, built like those that were saved."""
        try:
            self._require_kinds(net)
            net.load_state_dict(dict(self.network))
            output = getattr(net, "output", None)
            if self.noise is not None and isinstance(output, GaussianOutput):
                output.noise = GaussianOutput(self.noise).noise
            if trainer is not None:
                if missing := [name for name in POSITION if name not in self.trainer]:
                    raise ValueError(f"the trainer's {missing[0]} is not in it")
                trainer.load_state_dict(_filled(dict(self.trainer), trainer.state_dict()))
        except UNREADABLE as error:
            reason = shown(" ".join(str(error).split()))
            raise CheckpointError(f"{self.path}: does not fit the network it is loaded into: {reason}") from error

    def _require_kinds(self, net: nn.Module) -> None:
        """ValueError where a tensor would be converted between real numbers and anything else without a word."""
        for name, own in net.state_dict().items():
            saved = self.network.get(name, own)
            if saved.is_floating_point() != own.is_floating_point() or saved.is_complex():
                raise ValueError(f"{name} is of type {saved.dtype}, the network's of {own.dtype}")


def _filled(saved: Any, fresh: Any) -> Any:
    """The state in a checkpoint and, for what its version did not have, that of a trainer that has done nothing."""
    if isinstance(saved, dict) and isinstance(fresh, dict):
        return {**fresh, **{name: _filled(value, fresh.get(name)) for name, value in saved.items()}}
    if isinstance(saved, list) and isinstance(fresh, list) and len(saved) == len(fresh):
        return [_filled(*pair) for pair in zip(saved, fresh, strict=True)]
    return saved


def save_checkpoint(
    path: AnyPath, net: nn.Module, trainer: Loop[Any], *, config: Values | None = None, task: Task | None = None
) -> None:
    """Write everything to ``path`` in one rename; whatever goes wrong, the file that was there before is kept."""
    state = trainer.state_dict()
    tensors = {f"network.{name}": _plain(tensor) for name, tensor in net.state_dict().items()}
    tensors["generator"] = _plain(state.pop("generator"))
    state = _lift(state, "trainer", tensors)
    about = None
    if task is not None:
        found, about = task.parts()
        tensors |= {name: _plain(tensor) for name, tensor in found.items()}
        output = getattr(net, "output", None)
        if isinstance(output, GaussianOutput):
            about["noise"] = output.noise
    texts = {"config": config or {}, "trainer": state, "task": about}
    metadata = {"format": FORMAT, "version": VERSION, "sha256": BLANK}
    metadata |= {name: json.dumps(value) for name, value in texts.items()}
    content = safetensors.torch.save(tensors, metadata)
    digest = hashlib.sha256(content).hexdigest()
    size = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")
    header = content[:size].replace(_entry(BLANK), _entry(digest), 1)
    write_whole(Path(path), header + content[size:])


def _lift(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """``value`` with a reference for each tensor in it, which goes to ``tensors``."""
    if isinstance(value, Tensor):
        tensors[name] = _plain(value)
        return {LIFTED: name}
    if isinstance(value, dict):
        return {key: _lift(item, f"{name}.{key}", tensors) for key, item in value.items()}
    if isinstance(value, list):
        return [_lift(item, f"{name}.{number}", tensors) for number, item in enumerate(value)]
    return value


def _lower(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    """``_lift`` undone, in place."""
    if isinstance(value, dict) and value.keys() == {LIFTED}:
        return tensors[value[LIFTED]]
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            value[key] = _lower(value[key], tensors)
    return value


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu").contiguous()


def _entry(digest: str) -> bytes:
    """The digest as it stands in the header."""
    return f'"sha256":"{digest}"'.encode()


def load_checkpoint(path: AnyPath) -> Checkpoint:
    """Read and verify a checkpoint; CheckpointError says what is wrong with it."""
    path = Path(path)
    with open_regular(path) as stream:
        length = stream.read(LENGTH_BYTES)
        size = int.from_bytes(length, "little")
        if len(length) < LENGTH_BYTES or size > min(MAX_HEADER, os.fstat(stream.fileno()).st_size):
            raise CheckpointError(f"{path}: is not a checkpoint of cavity, or was cut short")
        head = stream.read(size)
        metadata = _metadata(path, head)
        stream.seek(0)
        content = stream.read()
    digest = metadata.get("sha256", "")
    # A digest with anything but ASCII in it cannot even be looked for.
    found = hashlib.sha256(length + (head.replace(_entry(digest), _entry(BLANK), 1) if digest.isascii() else head))
    found.update(memoryview(content)[LENGTH_BYTES + size :])
    if found.hexdigest() != digest:
        raise CheckpointError(f"{path}: its content does not match its SHA-256; it was cut short or altered")
    del head
    try:
        return _assembled(path, safetensors.torch.load(content), metadata)
    except UNREADABLE as error:
        raise CheckpointError(f"{path}: is not a readable checkpoint: {shown(error)}") from error


def _metadata(path: Path, head: bytes) -> dict[str, str]:
    """The texts in the header, if it is one of ours."""
    try:
        metadata = from_json(head)["__metadata__"]
        kind, version = metadata["format"], metadata["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{path}: is not a checkpoint of cavity, or was altered") from error
    if kind != FORMAT:
        raise CheckpointError(f"{path}: is not a checkpoint of cavity but {kind!r}")
    if version != VERSION:
        raise CheckpointError(f"{path}: is a checkpoint of version {version!r}, this is cavity for version {VERSION}")
    return {str(name): str(text) for name, text in metadata.items()}


def _assembled(path: Path, tensors: dict[str, Tensor], metadata: Mapping[str, str]) -> Checkpoint:
    about = from_json(metadata["task"])
    prefix = "network."
    return Checkpoint(
        path=path,
        network={name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)},
        trainer={**_lower(from_json(metadata["trainer"]), tensors), "generator": tensors["generator"].to(torch.uint8)},
        config=from_json(metadata["config"]),
        task=None if about is None else Task.from_parts(tensors, about),
        noise=None if about is None or about.get("noise") is None else float(about["noise"]),
    )


class SaveCheckpoint(Callback):
    """Saves after every epoch, and within an epoch when ``seconds`` have passed since the last time.

    When a checkpoint is written changes nothing in what is trained: every one of them resumes to the same weights.
    """

    def __init__(
        self, path: AnyPath, *, seconds: float = 30.0, config: Values | None = None, task: Task | None = None
    ) -> None:
        if not seconds >= 0:
            raise ValueError(f"seconds must be >= 0, got {seconds}")
        self.path, self.seconds, self.config, self.task = Path(path), seconds, config, task
        self.last = time.monotonic()

    def save(self, trainer: Trainer) -> None:
        """Write a checkpoint now."""
        save_checkpoint(self.path, trainer.net, trainer, config=self.config, task=self.task)
        self.last = time.monotonic()

    def on_step(self, trainer: Trainer, info: StepInfo) -> None:
        if time.monotonic() - self.last >= self.seconds:
            self.save(trainer)

    def on_epoch(self, trainer: Trainer, record: EpochRecord) -> None:
        self.save(trainer)
