"""How much memory reading a file takes, measured in a process of its own.

As a script it imports all readers once and then reads each file in a fork of itself, so that no case can use what
another has freed; ``peaks`` runs it and returns what each took at its peak.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

#: Lets a stranger's error be told from ours: the readers' documented errors are all of these.
DOCUMENTED = (ValueError, OSError)
TABLE = Path("/proc/self/status")
#: What no file of some megabytes may take; a process that computes longer is ended by the system.
LIMIT_SECONDS = 20


class Peak(NamedTuple):
    """Bytes beyond what the process had before, and what came out: ``read`` or the kind of error and its message."""

    grown: int
    outcome: str


def readers() -> dict[str, Callable[[str], Any]]:
    """Every reader of untrusted files by a name, ready to be called with a path."""
    import torch

    import cavity.packed
    from cavity import data
    from cavity.runs import Config, load_checkpoint, open_run, read_samples
    from cavity.runs.folder import load_data
    from cavity.runs.task import Task
    from cavity.studies.experiments.experiment import Store

    if importlib.util.find_spec("pyarrow") is not None:
        importlib.import_module("pyarrow.parquet")
    data.load("random-labels")
    one = torch.ones(1)

    def samples(inputs: int, shape: tuple[int, int, int] | None = None) -> Callable[[str], Any]:
        return lambda path: read_samples(path, Task(inputs, ("a", "b"), shape, one, one))

    return {
        "data": lambda path: load_data(Config(dataset=path)),  # ``data.load``, and the fingerprint for a run
        "samples-1": samples(1),
        "samples-2": samples(2),
        "samples-wide": samples(1_000_000),
        "samples-image": samples(16, (1, 4, 4)),
        "packed": cavity.packed.load,
        "checkpoint": load_checkpoint,
        "network": lambda path: open_run(path).load_network(),
        "records": lambda path: open_run(path).records,
        "experiment": lambda path: Store(Path(path)).records("smoke"),
    }


def peaks(cases: Iterable[tuple[str, Path]]) -> list[Peak]:
    """What reading each (reader, path) takes."""
    listed = json.dumps([[reader, str(path)] for reader, path in cases])
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
    command = [sys.executable, __file__, listed]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return [Peak(*json.loads(line)) for line in done.stdout.splitlines()]


def _resident(field: str) -> int:
    lines = TABLE.read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def _child(read: Callable[[str], Any], path: str) -> Peak:
    Path("/proc/self/clear_refs").write_text("5")
    before = _resident("VmRSS")
    try:
        result: Any = read(path)
        outcome = "read"
    except DOCUMENTED as error:
        result, outcome = None, f"{type(error).__name__}: {str(error)[:200]}"
    grown = _resident("VmHWM") - before
    del result
    return Peak(grown, outcome)


def _forked(read: Callable[[str], Any], path: str) -> Peak:
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_SECONDS, LIMIT_SECONDS))
        try:
            os.write(send, json.dumps(_child(read, path)).encode())
        except BaseException as error:  # shown in the place of a result; the parent must not go on twice
            os.write(send, json.dumps([0, f"undocumented {type(error).__name__}: {str(error)[:200]}"]).encode())
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as stream:
        content = stream.read()
    os.waitpid(child, 0)
    return Peak(*json.loads(content or b'[0, "undocumented end of the process, or too slow"]'))


def main() -> None:
    known = readers()
    for reader, path in json.loads(sys.argv[1]):
        print(json.dumps(_forked(known[reader], path)), flush=True)


if __name__ == "__main__":
    main()
