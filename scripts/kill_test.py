"""Kill ``cavity train`` with SIGKILL again and again, resume it each time, and compare with a run left alone.

    python scripts/kill_test.py --kills 50 --seed 0

Every process is a real one. It writes a checkpoint after every step, so that many kills hit the writing of one; half of
the kills wait, after a random time, until a file is being written. After each of them the checkpoint that is there must
be whole. The last process is left alone to finish; then all weights, the trainer's state and the metrics must be those
of the undisturbed run to the last bit, but for the seconds that were taken.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKPOINT, METRICS, CONFIG = "checkpoint.safetensors", "metrics.jsonl", "config.toml"
DIGITS = ("--dataset", "digits", "--binary-task", "--hidden", "21", "--threads", "1", "--device", "cpu")
#: The longest a process is let train before the kill, in seconds.
LONGEST = 0.5
#: More than a process gets through in that time, so that no run ends before its last kill.
EPOCHS_PER_KILL = 5
#: Few kills may all come late: the run is as long as for this many.
FEWEST_KILLS = 6
#: How often the folder is looked at while the right moment is waited for.
TICK = 0.0005


@dataclass(frozen=True)
class Kill:
    """Where a run was when it was killed."""

    epoch: int
    batch: int
    in_writing: tuple[str, ...]
    cut_line: bool

    def __str__(self) -> str:
        where = f"epoch {self.epoch}, batch {self.batch}" if self.epoch >= 0 else "before the first checkpoint"
        left = f", while it wrote {', '.join(self.in_writing)}" if self.in_writing else ""
        return where + left + (", within a line of the metrics" if self.cut_line else "")


@dataclass(frozen=True)
class Outcome:
    """All kills, and what differs from the undisturbed run: nothing, if all is well."""

    kills: list[Kill]
    differences: list[str]
    seconds: float

    def summary(self) -> str:
        total, writing = len(self.kills), sum(bool(kill.in_writing) for kill in self.kills)
        places = len({(kill.epoch, kill.batch) for kill in self.kills})
        verdict = f"DIFFERENT: {'; '.join(self.differences)}" if self.differences else "identical"
        return (
            f"{total} kills at {places} different steps in {self.seconds:.0f} s; {writing} of them while a file was "
            f"being written; a whole checkpoint after {total} of {total}; final weights, trainer and metrics: {verdict}"
        )


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "cavity", "train", "--quiet", *arguments]


def being_written(folder: Path) -> tuple[str, ...]:
    """The temporary files in a folder: each is on its way to its name."""
    return tuple(sorted(path.name for path in folder.glob(".*.tmp")))


def kill_once(arguments: list[str], folder: Path, chance: random.Random) -> Kill:
    """Start a process, and kill it a random time after it has begun to write; RuntimeError if it ended before."""
    marks = (folder / CHECKPOINT, folder / CONFIG)

    def times() -> list[int | None]:
        return [mark.stat().st_mtime_ns if mark.exists() else None for mark in marks]

    before, delay, aimed = times(), chance.uniform(0, LONGEST), chance.random() < 0.5
    every_step = command(*arguments, "--checkpoint-seconds", "0")
    with subprocess.Popen(every_step, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and times() == before:
            time.sleep(TICK)
        end = time.monotonic() + delay
        while process.poll() is None and (time.monotonic() < end or (aimed and not being_written(folder))):
            time.sleep(TICK)
        process.kill()
    if process.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the run ended with status {process.returncode} before it was killed")
    return state(folder)


def state(folder: Path) -> Kill:
    """What a killed run left; CheckpointError unless its checkpoint is whole."""
    from cavity.runs import load_checkpoint

    epoch = batch = -1
    if (folder / CHECKPOINT).exists():
        trainer = load_checkpoint(folder / CHECKPOINT).trainer
        epoch, batch = trainer["epoch"], trainer["batch"]
    metrics = (folder / METRICS).read_bytes() if (folder / METRICS).exists() else b""
    return Kill(epoch, batch, being_written(folder), bool(metrics) and not metrics.endswith(b"\n"))


def without_seconds(value: Any) -> Any:
    """Plain values without the time that was taken, which is never the same."""
    if isinstance(value, dict):
        return {name: without_seconds(item) for name, item in value.items() if name != "seconds"}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value


def differences(one: Path, other: Path) -> list[str]:
    """The names of what differs between two finished runs."""
    from safetensors.numpy import load_file

    from cavity.runs import load_checkpoint

    first, second = (load_file(run / CHECKPOINT) for run in (one, other))
    found = sorted(first.keys() ^ second.keys())
    found += [name for name in first if name in second and first[name].tobytes() != second[name].tobytes()]
    states = []
    for run in (one, other):
        trainer = dict(load_checkpoint(run / CHECKPOINT).trainer)
        trainer.pop("generator")
        states.append(without_seconds(trainer))
    found += ["trainer"] if states[0] != states[1] else []
    lines = [(run / METRICS).read_text().splitlines() for run in (one, other)]
    records = [[without_seconds(json.loads(line)) for line in part] for part in lines]
    return found + (["metrics"] if records[0] != records[1] else [])


def kill_test(folder: Path, kills: int, seed: int, quiet: bool = False) -> Outcome:
    """``kills`` processes killed in ``folder``, one after the other, and one that finishes."""
    chance, started = random.Random(seed), time.monotonic()
    whole, killed = folder / "whole", folder / "killed"
    epochs = str(EPOCHS_PER_KILL * max(kills, FEWEST_KILLS))
    subprocess.run(command(*DIGITS, "--epochs", epochs, "--out", str(whole)), check=True, stdout=subprocess.DEVNULL)
    seen = []
    for number in range(1, kills + 1):
        first = ["--config", str(whole / CONFIG), "--out", str(killed)]
        seen.append(kill_once(first if number == 1 else ["--resume", str(killed)], killed, chance))
        if not quiet:
            print(f"kill {number} of {kills}: {seen[-1]}", flush=True)
    subprocess.run(command("--resume", str(killed)), check=True, stdout=subprocess.DEVNULL)
    return Outcome(seen, differences(whole, killed), time.monotonic() - started)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kill-test-") as folder:
        outcome = kill_test(Path(folder), args.kills, args.seed)
    print(outcome.summary())
    return 1 if outcome.differences else 0


if __name__ == "__main__":
    sys.exit(main())
