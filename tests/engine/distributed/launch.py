"""torchrun as the tests use it: one machine, a port that is free, one thread for each process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def environment() -> dict[str, str]:
    paths = [str(ROOT / "src"), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def torchrun(processes: int, *words: str, restarts: int = 0) -> subprocess.Popen[str]:
    """Starts the job; what all its processes say comes out together."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--monitor-interval", "0.1"]
    return subprocess.Popen(
        [*launcher, "--nproc-per-node", str(processes), "--max-restarts", str(restarts), *words],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(job: subprocess.Popen[str], status: int = 0, seconds: float = 200.0) -> str:
    """What the job said until it ended with that status; it is stopped when it takes too long."""
    try:
        said, _ = job.communicate(timeout=seconds)
    finally:
        job.kill()
    assert job.returncode == status, said
    return said


def workers(job: subprocess.Popen[str]) -> dict[int, int]:
    """The process of each rank that lives (Linux)."""
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    found = {}
    for child in children:
        variables = Path(f"/proc/{child}/environ").read_bytes().decode().split("\0")
        named = dict(variable.split("=", 1) for variable in variables if "=" in variable)
        if "RANK" in named:
            found[int(named["RANK"])] = int(child)
    return found
