"""Same seed, same machine, same threads: two processes write the same bytes, but for the seconds they took."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Wide enough that two threads do share the work: algorithm, weights and threads of each run.
RUNS = {
    "bp-binary": ("bp", "binary", 1),
    "mf-binary": ("mf", "binary", 2),
    "mf-gaussian": ("mf", "gaussian", 1),
    "bp-gaussian": ("bp", "gaussian", 2),
}
COMMON = [
    *("--dataset", "digits", "--binary-task", "--hidden", "101", "--batch-size", "256", "--epochs", "2"),
    *("--device", "cpu", "--quiet"),
]
#: Commands of ``cavity``, one after the other in one process.
PROGRAM = "import json, sys; from cavity.cli import main; sys.exit(max(main(w) for w in json.loads(sys.argv[1])))"


def start(*words: str, **variables: str) -> subprocess.Popen[str]:
    """A new interpreter, with a random seed of its own for the order of sets."""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONHASHSEED": "random"}
    # Threads that wait for each other by spinning take minutes where the machine has other things to do.
    environment["OMP_WAIT_POLICY"] = "PASSIVE"
    return subprocess.Popen(
        [sys.executable, *words],
        env={**environment, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    try:
        said, _ = process.communicate(timeout=240)
    finally:
        process.kill()
    assert process.returncode == 0, said


def train_all(folder: Path, names: list[str], seed: int) -> None:
    """Train the runs in the given order, predict, and export those that can be packed."""
    commands = []
    for name in names:
        algorithm, weights, threads = RUNS[name]
        run = str(folder / name)
        chosen = ["--algorithm", algorithm, "--weights", weights, "--threads", str(threads), "--seed", str(seed)]
        commands += [["train", *COMMON, *chosen, "--out", run], ["predict", run, "--out", f"{run}.npz"]]
        if weights == "binary":
            commands.append(["export", run, "--format", "packed", "--out", f"{run}.cavity"])
    finish(start("-c", PROGRAM, json.dumps(commands)))


def without_seconds(value):
    """Plain values without what a clock said and without the hash that covers it."""
    if isinstance(value, dict):
        return {key: without_seconds(item) for key, item in value.items() if key not in ("seconds", "sha256")}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value


def checkpoint(run: Path) -> tuple[dict, bytes]:
    """What the header says but for times, and the bytes of all tensors."""
    content = (run / "checkpoint.safetensors").read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    texts = header["__metadata__"]
    header["__metadata__"] = texts | {name: json.loads(texts[name]) for name in ("config", "trainer", "task")}
    return without_seconds(header), content[end:]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two processes with seed 0, the second in the opposite order, and one with seed 1."""
    base = tmp_path_factory.mktemp("reproducible")
    for name, order, seed in (("one", 1, 0), ("two", -1, 0), ("other", 1, 1)):
        (base / name).mkdir()
        train_all(base / name, list(RUNS)[::order], seed)
    return base


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_two_processes_write_the_same_bytes(folders, name):
    one, two, other = (folders / part / name for part in ("one", "two", "other"))
    header, tensors = checkpoint(one)
    assert (header, tensors) == checkpoint(two)
    assert tensors != checkpoint(other)[1]
    metrics = [
        [without_seconds(json.loads(line)) for line in (run / "metrics.jsonl").read_text().splitlines()]
        for run in (one, two)
    ]
    assert len(metrics[0]) == 2
    assert metrics[0] == metrics[1]
    suffixes = [".npz", ".cavity"] if "binary" in name else [".npz"]
    for suffix in suffixes:
        first, second, third = (run.with_suffix(suffix).read_bytes() for run in (one, two, other))
        assert first == second
        assert first != third


COMPILED = """
import sys
import torch, cavity
x = torch.randn((256, 64), generator=torch.Generator().manual_seed(0))
y = torch.where(x[:, :32].sum(dim=1) > 0, 1, -1)
net = cavity.mlp(64, (51,), 1)
trainer = cavity.Trainer(net, sys.argv[1], compile=True)
torch.set_num_threads(int(sys.argv[2]))
trainer.fit((x, y), epochs=4, batch_size=64)
with open(sys.argv[3], "wb") as stream:
    for layer in net.weighted():
        stream.write(layer.field.numpy().tobytes() + layer.mean.numpy().tobytes())
"""


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "threads"), [("mf", "1"), ("bp", "2")])
def test_compiled_training_repeats_too(tmp_path, algorithm, threads):
    """Each process compiles for itself, into a cache of its own."""
    for name in ("one", "two"):
        out, cache = str(tmp_path / name), str(tmp_path / f"{name}-cache")
        finish(start("-W", "ignore", "-c", COMPILED, algorithm, threads, out, TORCHINDUCTOR_CACHE_DIR=cache))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
