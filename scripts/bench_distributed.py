"""Weak scaling: how many samples per second several processes train, with one thread and a fixed batch for each.

Three kinds of steps take turns: one process trains alone while the others wait; all of them train the same network on a
batch as many times as large ("together"); and they do so with an all-reduce that does nothing ("silent"), which shows
what the processes cost each other without talking. Random numbers for data; each time is the best of the repeats, of
the slowest process.

    python scripts/bench_distributed.py --json docs/data/distributed.json
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist

import cavity
from cavity.core.algorithms import skeleton, together

SIZES = (784, 501, 501, 10)
#: Numbers of the messages whose all-reduce is timed by itself.
MESSAGES = (1, 1_000, 10_000, 100_000, 250_000, 400_000, 1_000_000)


class Done:
    """An all-reduce that is over."""

    def wait(self) -> None:
        pass


def silence(*_: Any, **__: Any) -> Done:
    return Done()


def batch(processes: int, each: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    samples = processes * each
    x = torch.randn((samples, SIZES[0]), generator=generator)
    return x, torch.randint(SIZES[-1], (samples,), generator=generator)


def trainer(algorithm: str, compiled: bool, distributed: bool) -> cavity.Trainer:
    net = cavity.mlp(SIZES[0], SIZES[1:-1], SIZES[-1])
    return cavity.Trainer(net, algorithm, compile=compiled, distributed=distributed)


def seconds_per_call(call: Callable[[], object], calls: int) -> float:
    """The slowest process's mean."""
    dist.barrier()
    started = time.perf_counter()
    for _ in range(calls):
        call()
    took = torch.tensor([(time.perf_counter() - started) / calls], dtype=torch.float64)
    dist.all_reduce(took, dist.ReduceOp.MAX)
    return float(took)


@contextlib.contextmanager
def timed(parts: dict[str, list[float]]) -> Iterator[None]:
    """Note how long the way up, each layer's way down and each update take."""

    def note(module: Any, name: str, label: Callable[..., str]) -> Any:
        function = getattr(module, name)

        def call(*args: Any) -> Any:
            started = time.perf_counter()
            result = function(*args)
            parts[label(*args)].append(time.perf_counter() - started)
            return result

        return mock.patch.object(module, name, call)

    def layer(prefix: str, site: Any) -> str:
        return f"{prefix} {site.coupling.columns}x{site.coupling.outputs}"

    with (
        note(skeleton, "sweep_up", lambda *_: "up"),
        note(together, "layer_messages", lambda _, site, *rest: layer("down", site)),
        note(together, "learnt", lambda site, *rest: layer("update", site)),
    ):
        yield


def work(options: argparse.Namespace) -> dict[str, Any]:
    """In each process of a job."""
    run = trainer(options.algorithm, options.compile, distributed=True)
    single = trainer(options.algorithm, options.compile, distributed=False)
    team = run.team
    assert team is not None
    x, y = run._checked(*batch(team.size, options.batch_size))
    mine, labels = x[team.part(len(x))], y[team.part(len(x))]
    silent = mock.patch.object(dist, "all_reduce", silence)

    def alone() -> None:
        if team.leads:
            single._step(mine, labels)

    def together_() -> None:
        run._step(mine, y)

    def silently() -> None:
        with silent:
            run._step(mine, y)

    found: dict[str, list[float]] = defaultdict(list)
    for repeat in range(options.repeats + 1):
        for name, step in (("alone", alone), ("together", together_), ("silent", silently)):
            seconds = seconds_per_call(step, options.steps)
            if repeat:
                found[name].append(seconds)
    parts: dict[str, list[float]] = defaultdict(list)
    with silent, timed(parts):
        for _ in range(options.steps):
            run._step(mine, y)
    talks = {}
    for numbers in MESSAGES:
        tensor = torch.zeros(numbers)
        times = [seconds_per_call(lambda t=tensor: dist.all_reduce(t), 10) for _ in range(options.repeats)]
        talks[str(4 * numbers)] = min(times)
    return {
        "seconds": {mode: min(times) for mode, times in found.items()},
        "parts": {name: sorted(times)[len(times) // 2] for name, times in parts.items()},
        "all_reduce": talks,
    }


def job(processes: int, arguments: list[str]) -> dict[str, Any]:
    """Start the processes and hear the first."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    done = subprocess.run([*launcher, __file__, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithm", default="mf", choices=("bp", "bpi", "mf", "amp"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=128, help="samples of each process")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if "RANK" in os.environ:
        result = work(options)
        if dist.get_rank() == 0:
            print(json.dumps(result))
        return
    found = job(options.processes, sys.argv[1:])
    alone, together_, silent = (found["seconds"][kind] for kind in ("alone", "together", "silent"))
    print(f"one process: {1e3 * alone:.2f} ms a step of {options.batch_size}")
    print(f"{options.processes} processes: {1e3 * together_:.2f} ms, without talking {1e3 * silent:.2f} ms")
    print(f"{options.processes * alone / together_:.2f} times the samples per second")
    if options.json:
        settings = {name: getattr(options, name) for name in ("algorithm", "processes", "batch_size", "compile")}
        options.json.write_text(json.dumps({**settings, "sizes": SIZES, **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
