"""Put links, pipes, devices and folders in the place of every file that a command reads or writes, and run it.

    python scripts/hostile_folders.py

Each case is one command on a folder in which one name is something else: a link to a file outside (with the content
that the file should have, so that the command comes far), another name of such a file, a link to nothing, a named pipe,
a socket, a device, a folder, or links to these. The command must end with status 0 or 2, without waiting and without a
traceback, and nothing outside the folder may have changed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

#: Names in the folder of a run that some version of cavity reads, writes, locks or makes.
RUN = ("config.toml", "metrics.jsonl", "checkpoint.safetensors", "report.html", ".lock", "tensorboard")
OLD = tuple(f".{name}.tmp" for name in RUN[:3])
RESULTS = ("", "records", ".work", ".work/.gitignore", ".work/.lock", "table.md")
PICTURES = ("initialization.png", "initialization.svg")
SWEEP = (
    "sweep.toml",
    "sweep.db",
    "sweep.db-journal",
    "sweep.db-wal",
    "best.toml",
    "errors.txt",
    ".lock",
    ".sweep.db.tmp",
)
TINY = {"n_features": 21, "n_train": 130, "n_test": 40}
#: What hangs, hangs for ever; on a busy machine a command takes its time.
SECONDS = 300
NAME = "initialization"


class Hung(BaseException):
    """A command did not end."""


def named_socket(path: Path, outside: Path) -> None:
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(path.parent)  # the path of a socket must be short
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


#: What can be in the place of a file; ``outside`` holds the file itself, a folder and a pipe.
KINDS: dict[str, Callable[[Path, Path], object]] = {
    "link to a file": lambda path, outside: path.symlink_to(outside / "file"),
    "another name of a file": lambda path, outside: os.link(outside / "file", path),
    "link to nothing": lambda path, outside: path.symlink_to(outside / "nothing"),
    "link to itself": lambda path, outside: path.symlink_to(path),
    "pipe": lambda path, outside: os.mkfifo(path),
    "link to a pipe": lambda path, outside: path.symlink_to(outside / "pipe"),
    "socket": named_socket,
    "link to a device": lambda path, outside: path.symlink_to("/dev/zero"),
    "folder": lambda path, outside: path.mkdir(),
    "link to a folder": lambda path, outside: path.symlink_to(outside / "folder"),
}


@dataclass(frozen=True)
class Case:
    """A command (``RUN``, ``OUT`` and the like stand for folders) and what is in the place of a file in ``place``."""

    place: str
    name: str
    kind: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} as {self.place}/{self.name}: cavity {' '.join(self.command)}"


def cases(folder: Path) -> list[Case]:
    """Every kind in the place of every name, for every command that comes near it; ``folder`` holds the originals."""
    found = []

    def add(place: str, names: Sequence[str], *commands: str) -> None:
        found.extend(Case(place, n, kind, tuple(c.split())) for n in names for kind in KINDS for c in commands)

    resume, again = "train --quiet --resume run --epochs 2", "train --quiet --config run/config.toml --out run --force"
    export = "export run --format packed --inputs real --out out/n"
    add("run", RUN[:3], "evaluate run", "predict run --out out/p.csv", export, "report run", resume, again)
    add("run", ("report.html", ".report.html.tmp"), "report run")
    add("run", ("sessions.jsonl",), "report run", resume, again)
    add("run", (".lock", *OLD), resume)
    add("run", (".lock", "tensorboard", "report.html"), again)
    if find_spec("tensorboard"):
        add("run", ("tensorboard",), "train --quiet --resume run --epochs 2 --tensorboard")
    add("out", ("r.html",), "report run --out out/r.html")
    add("out", sorted(path.name for path in (folder / "plots").iterdir())[:1], "report run --plots out")
    add("out", ("p.csv",), "predict run --out out/p.csv")
    add("out", ("p.npz",), "predict run --out out/p.npz")
    add("out", ("n.c", "n.h"), "export run --format c --inputs real --out out/n.c --force")
    for suffix in ("csv", "npz", "png", "parquet"):
        add(
            "in",
            (f"x.{suffix}",),
            f"predict run --input in/x.{suffix} --out out/p.csv",
            f"evaluate run --dataset in/x.{suffix}",
        )
    add("in", ("best.toml",), "train --quiet --config in/best.toml --out out/new --epochs 1")
    (record, *_) = sorted(path.name for path in (folder / "results" / NAME / "records").iterdir())
    work = f".work/{record.removesuffix('.json')}"
    again = f"reproduce {NAME} --scale smoke --out results"
    add(f"results/{NAME}", (*RESULTS, *PICTURES, f"records/{record}"), f"{again} --tables")
    add(f"results/{NAME}", (*RESULTS, f"records/{record}", work, f"{work}/checkpoint.safetensors"), f"{again} --jobs 0")
    if (folder / "sweep").exists():
        add("sweep", (*SWEEP, "sweep.png", "sweep.svg"), "sweep --resume sweep --quiet")
    return found


def prepare(folder: Path, sweeps: bool = True) -> None:
    """The originals: a run, its figures, results of an experiment and, unless that is too slow, a finished sweep."""
    from cavity.report import write_plots
    from cavity.runs import Config, train
    from cavity.studies.experiments.running import Request, reproduce

    tiny = Config(dataset="teacher-student", data_options=TINY, hidden=(11,), algorithm="mf", batch_size=30, threads=1)
    run = train(tiny.replace(epochs=1, device="cpu"), folder / "run")
    write_plots([run], folder / "plots")
    for name in ("in", "out"):
        (folder / name).mkdir()
    shutil.copy(run.path / "config.toml", folder / "in" / "best.toml")
    with contextlib.redirect_stdout(io.StringIO()):
        reproduce(NAME, Request("smoke"), folder / "results", jobs=0)
    if sweeps and find_spec("optuna"):
        from cavity.studies import sweep

        short = tiny.replace(epochs=1, device="cpu")
        sweep.run(short, sweep.Space(("init",)), folder / "sweep", trials=1)


def place(case: Case, folder: Path, outside: Path) -> None:
    """Put something in the place of a file. A record that is computed again makes room for its work folder."""
    path = folder / case.place / case.name
    (outside / "folder").mkdir(parents=True)
    (outside / "folder" / "kept").write_text("keep")
    os.mkfifo(outside / "pipe")
    (outside / "file").write_bytes(path.read_bytes() if path.is_file() else b"keep")
    if ".work/" in case.name and not case.name.endswith((".gitignore", ".lock")):
        (folder / case.place / "records" / f"{Path(case.name).parts[1]}.json").unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, outside / "folder", dirs_exist_ok=True)
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    KINDS[case.kind](path, outside)


def snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    """All that a command could change, but for the count of a file's names."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (about.st_mode, about.st_ino, about.st_size, about.st_mtime_ns, content)
    return found


@contextlib.contextmanager
def within(seconds: int) -> Iterator[None]:
    def late(number: int, frame: object) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Outcome(NamedTuple):
    """What is wrong, or nothing; whether the command refused; what it said on stderr."""

    wrong: str
    refused: bool
    said: str


def attempt(case: Case, originals: Path, scratch: Path) -> Outcome:
    """Run a case in a fresh copy."""
    from cavity.cli import main

    folder, outside = scratch / "folder", scratch / "outside"
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(originals, folder)
    outside.mkdir()
    place(case, folder, outside)
    before, said, here = snapshot(outside), io.StringIO(), os.getcwd()
    os.chdir(folder)
    try:
        with within(SECONDS), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            status = main(case.command)
    except Hung:
        return Outcome("it hung", False, said.getvalue())
    except Exception as error:
        return Outcome(f"it raised {type(error).__name__}: {error}", False, said.getvalue())
    finally:
        os.chdir(here)
    text, wrong = said.getvalue(), ""
    if status not in (0, 2):
        wrong = f"it ended with status {status}"
    elif status == 2 and not text.startswith("cavity: "):
        wrong = "it did not say why"
    elif snapshot(outside) != before:
        wrong = "something outside the folder has changed"
    return Outcome(wrong, status == 2, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, help="so many cases, drawn at random (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="what each command said")
    args = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        originals = Path(name) / "originals"
        prepare(originals)
        every = cases(originals)
        chosen = every if args.cases is None else random.Random(args.seed).sample(every, args.cases)
        outcomes = []
        for case in chosen:
            outcomes.append(outcome := attempt(case, originals, Path(name) / "scratch"))
            if outcome.wrong or args.verbose:
                print(f"{case}\n    {outcome.wrong or 'well'}: {outcome.said.strip()}", flush=True)
    refused, wrong = sum(outcome.refused for outcome in outcomes), sum(bool(outcome.wrong) for outcome in outcomes)
    seconds = time.monotonic() - began
    print(f"{len(chosen)} cases in {seconds:.0f} s: {refused} refused, {len(chosen) - refused} done, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
