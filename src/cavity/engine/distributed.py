"""Several processes that train one network: each takes its share of every mini-batch, and the fields are added up.

A weight's field is a sum over samples, H_ki = Σ_n x̂_in g_{kn→i} and likewise G_ki. Split the samples over processes,
add the parts, and every process holds what a single one would have computed; the update that follows is elementwise and
the same everywhere. Nothing else about the weights travels.

The processes are started by ``torchrun`` and talk through ``torch.distributed``: gloo on the CPU, NCCL on GPUs.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from cavity.core.messages import Fields, Preactivation, Target, relayout

if TYPE_CHECKING:
    from cavity.core.channels.base import Output

Value = TypeVar("Value")

#: What torchrun tells each process that it starts.
NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
#: The environment may say how many seconds a process waits for the others before it takes them for hung. It must be
#: longer than what one does alone while the others wait: downloading data, compiling, measuring errors.
TIMEOUT, DEFAULT_TIMEOUT = "CAVITY_TIMEOUT", 1800.0


class Digest(str):
    """What stands for the content of tensors: it is compared, and not shown."""


class LostProcess(ConnectionError):
    """Another process of the job died or stopped answering."""


def digest_of(tensors: Iterable[Tensor]) -> Digest:
    """SHA-256 of shapes, types and bytes."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(str((tensor.shape, tensor.dtype)).encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().data)
    return Digest(digest.hexdigest())


def timeout() -> float:
    """Seconds that a process waits for the others."""
    text = os.environ.get(TIMEOUT, str(DEFAULT_TIMEOUT))
    with contextlib.suppress(ValueError):
        if math.isfinite(float(text)) and float(text) > 0:
            return float(text)
    raise ValueError(f"{TIMEOUT} must be a number of seconds > 0, got {text!r}")


def launched() -> bool:
    """Whether torchrun started this process."""
    return dist.is_available() and dist.is_torchelastic_launched()


def join() -> Team:
    """The team of this process; the first call meets the other processes and waits for them."""
    if not dist.is_available():
        raise RuntimeError("this build of torch has no torch.distributed: distributed training needs it")
    if not dist.is_initialized():
        missing = [name for name in NEEDED if name not in os.environ]
        if missing:
            raise RuntimeError(
                f"distributed training is started by torchrun, which sets {missing[0]}: "
                "torchrun --nproc-per-node 2 script.py"
            )
        timeout()  # before anybody waits
        try:
            _meet("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise LostProcess(f"process {os.environ['RANK']} could not meet the others: {reason}") from error
    return Team(dist.get_rank(), dist.get_world_size())


def _meet(backend: str) -> None:
    """Initialise torch.distributed as it would by itself, but with a store of its own for each attempt.

    torchrun keeps one store through all its restarts, where a process would find the address of one that died. Only
    on one machine do all processes count the restarts alike; on several, docs/scaling.md says what to set.
    """
    attempt = _restarts() if os.environ.get("GROUP_WORLD_SIZE", "1") == "1" else 0
    limit = timedelta(seconds=timeout())
    store, rank, size = next(rendezvous("env://", timeout=limit))
    # Threads of the transport that still run when the interpreter goes would abort the process.
    atexit.register(leave)
    own = PrefixStore(f"attempt {attempt}", store)
    dist.init_process_group(backend, store=own, rank=rank, world_size=size, timeout=limit)


def _restarts() -> int:
    """How often torchrun has started this process anew."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def leave() -> None:
    """Part from the other processes in good order; done by itself when the process ends."""
    if dist.is_initialized():
        dist.destroy_process_group()


@dataclass(frozen=True)
class Team:
    """The processes of a job as one of them sees it. All of them must call the same methods in the same order."""

    rank: int
    size: int

    @property
    def leads(self) -> bool:
        """Whether this process measures, writes and speaks for all."""
        return self.rank == 0

    def restarted(self) -> bool:
        """Whether torchrun has started the job again after a process died; machines count by themselves."""
        return self.any(_restarts() > 0)

    def device(self, device: torch.device) -> torch.device:
        """A GPU of its own for each process of a machine; any other device as it is."""
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if device.type == "cuda" else device

    def portion(self, samples: int) -> Portion:
        """This process's part of a mini-batch of ``samples``: parts are consecutive and differ by one sample at most.

        Where there are fewer samples than processes, those left over go through the first one and add nothing.
        """
        each, more = divmod(samples, self.size)
        start = self.rank * each + min(self.rank, more)
        part = slice(start, start + each + (self.rank < more))
        idle = part.start == part.stop
        return Portion(self, samples, slice(0, 1) if idle else part, idle)

    def part(self, samples: int) -> slice:
        """Which of the samples of a mini-batch this process goes through."""
        return self.portion(samples).part

    def wait(self) -> None:
        """Go on when all have come here."""
        with self._contact():
            dist.barrier()

    @contextlib.contextmanager
    def leader_first(self) -> Iterator[None]:
        """The first process of each machine goes through the block before the others, who find what it has fetched."""
        first = int(os.environ.get("LOCAL_RANK", self.rank)) == 0
        if not first:
            self.wait()
        yield
        if first:
            self.wait()

    def told(self, find: Callable[[], Value]) -> Value:
        """What the leader finds, in every process."""
        box = [find() if self.leads else None]
        with self._contact():
            dist.broadcast_object_list(box, src=0)
        assert box[0] is not None
        return box[0]

    def any(self, here: bool) -> bool:
        """Whether it is so in any process."""
        return bool(self.largest(torch.tensor([float(here)])))

    def largest(self, values: Tensor) -> Tensor:
        """The entrywise maximum over all processes."""
        with self._contact():
            dist.all_reduce(values, dist.ReduceOp.MAX)
        return values

    def require_same(self, facts: Mapping[str, object]) -> None:
        """ValueError in all processes unless the facts are the same in all of them; it says what differs."""
        mine = {name: fact if isinstance(fact, Digest) else repr(fact) for name, fact in facts.items()}
        found: list[dict[str, str]] = [{}] * self.size
        with self._contact():
            dist.all_gather_object(found, mine)
        first = found[0]
        for rank, theirs in enumerate(found):
            differing = [name for name in {**first, **theirs} if first.get(name) != theirs.get(name)]
            if differing:
                said = ", ".join(_difference(name, theirs.get(name), first.get(name)) for name in differing)
                raise ValueError(
                    f"process {rank} of {self.size} starts with {said}: all must be given the same data, settings, "
                    "seeds and checkpoint"
                )

    @contextlib.contextmanager
    def _contact(self) -> Iterator[None]:
        """Errors of the transport, in words."""
        try:
            yield
        except RuntimeError as error:
            if "timed out" in str(error).lower():
                raise LostProcess(
                    f"process {self.rank} of {self.size} has waited {timeout():g} s for the others: one of them hangs "
                    f"or does something else. {TIMEOUT} in the environment sets the seconds"
                ) from error
            raise LostProcess(
                f"process {self.rank} of {self.size} lost contact with the others: one of them died or was stopped. "
                "Go on from the last checkpoint: torchrun does so by itself with --max-restarts, "
                "cavity train with --resume"
            ) from error


def _difference(what: str, theirs: str | None, first: str | None) -> str:
    if isinstance(theirs, Digest) or isinstance(first, Digest):
        return f"{what} other than process 0's"
    return f"{what} {theirs} where process 0 has {first}"


class Pending:
    """A sum over the processes that is on its way."""

    def __init__(self, team: Team, fields: Sequence[Fields]) -> None:
        self._team, self._fields = team, fields
        # One message for all, so that a layer costs one all-reduce.
        tensors = [tensor.reshape(-1) for pair in fields for tensor in pair if tensor is not None]
        self._sum = tensors[0].contiguous() if len(tensors) == 1 else torch.cat(tensors)
        with team._contact():
            self._work = dist.all_reduce(self._sum, async_op=True)

    def wait(self) -> list[Fields]:
        """(H, G) of all samples, of each pair that was given."""
        with self._team._contact():
            self._work.wait()
        sizes = [tensor.numel() for pair in self._fields for tensor in pair if tensor is not None]
        parts = iter(torch.split(self._sum, sizes))

        def summed(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else next(parts).view(tensor.shape)

        return [Fields(next(parts).view(field.shape), summed(precision)) for field, precision in self._fields]


@dataclass(frozen=True)
class Portion:
    """One process's part of a mini-batch of ``samples``; ``idle`` if there was none left for it."""

    team: Team
    samples: int
    part: slice
    idle: bool

    def add(self, *fields: Fields) -> Pending:
        """Begin to add each (H, G) of this part to those of the others; the tensors are overwritten."""
        if self.idle:
            zero = [relayout(pair, torch.zeros_like) for pair in fields]
            return Pending(self.team, [pair for pair in zero if isinstance(pair, Fields)])
        return Pending(self.team, fields)

    def target(self, output: Output, y: Tensor, pre: Preactivation, generator: torch.Generator | None) -> Target:
        """The target of this part, from the labels y of all samples: noise is drawn for all of them, so that each
        sample gets the same whoever goes through it."""
        mean, variance = (tensor[:1].expand(self.samples, *tensor.shape[1:]) for tensor in pre)
        whole = output.target(y, Preactivation(mean, variance), generator)
        part = relayout(whole, lambda tensor: tensor[self.part])
        assert isinstance(part, Target)
        return part
