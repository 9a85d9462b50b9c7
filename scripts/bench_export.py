"""How fast an exported network predicts, and how large it is: torch in float32, ONNX, packed and C, on one core.

    python scripts/bench_export.py runs/fashion --json docs/data/export.json

The formats take turns on the run's own test images, and the best of several turns counts. C is timed inside its
program, without the cost of a call from Python; it has no batches, so its throughput is that of one sample at a time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import torch

import cavity
from cavity.runs import open_run
from cavity.studies.bench.table import describe

TURNS, SINGLES, BATCH = 15, 100, 1000

MAIN = """#include <stdio.h>
#include <time.h>
#include "net.h"

static net_input samples[%d][NET_INPUTS];

int main(void)
{
  clock_t start;
  int k, pass;
  volatile int sum = 0;
  if (fread(samples, sizeof samples, 1, stdin) != 1)
    return 1;
  start = clock();
  for (pass = 0; pass < 10; ++pass)
    for (k = 0; k < %d; ++k)
      sum += net_predict(samples[k]);
  printf("%%.9f\\n", (double)(clock() - start) / CLOCKS_PER_SEC / 10);
  return 0;
}
"""


class Row(NamedTuple):
    """One format: seconds for a single sample, samples a second in batches, bytes."""

    format: str
    latency: float
    throughput: float
    bytes: int


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def float_network(net: cavity.Network) -> Callable[[torch.Tensor], torch.Tensor]:
    """The forward pass of the most probable weights, which are made once."""
    weights = [layer.point() for layer in net.weighted()]

    def forward(x: torch.Tensor) -> torch.Tensor:
        for w in weights[:-1]:
            x = torch.sign(torch.nn.functional.linear(x, w))
        return torch.nn.functional.linear(x, weights[-1]).argmax(dim=1)

    return forward


def session(path: Path) -> Callable[[np.ndarray], object]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    opened = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda x: opened.run(None, {"x": x})


def compiled(folder: Path, flags: list[str]) -> tuple[Path, int]:
    """The program, and the bytes of the network's object file."""
    (folder / "main.c").write_text(MAIN % (BATCH, BATCH))
    subprocess.run(["gcc", "-O3", "-std=c99", *flags, "-c", "net.c"], cwd=folder, check=True)
    subprocess.run(["gcc", "-O3", "-std=c99", "main.c", "net.o", "-o", "program"], cwd=folder, check=True)
    return folder / "program", (folder / "net.o").stat().st_size


def measure(run: cavity.runs.Run, folder: Path) -> list[Row]:
    """A row for each format, torch first."""
    trained, data = cavity.export.Trained.of(run), run.load_dataset()
    if trained.inputs.white is None:
        raise ValueError(f"{run.path} was not trained on pixels")
    x = data.x_test[:BATCH]
    pixels = np.rint((x * data.std + data.mean).numpy() * trained.inputs.white).astype(np.uint8)
    sizes = {
        name: sum(path.stat().st_size for path in paths)
        for name, paths in {
            "ONNX": cavity.export.to_onnx(trained, folder / "net.onnx"),
            "ONNX, probabilities": cavity.export.to_onnx(trained, folder / "bayes.onnx", method="bayes"),
            "packed (NumPy)": cavity.export.to_packed(trained, folder / "net.cavity"),
        }.items()
    }
    cavity.export.to_c(trained, folder / "net.c")
    program, sizes["C"] = compiled(folder, [])
    sizes["torch, float32"] = sum(4 * layer.field.numel() for layer in trained.net.weighted())
    packed = cavity.packed.load(folder / "net.cavity")
    work: dict[str, tuple[Callable[..., object], Any]] = {
        "torch, float32": (float_network(trained.net), x),
        "ONNX": (session(folder / "net.onnx"), pixels),
        "ONNX, probabilities": (session(folder / "bayes.onnx"), pixels),
        "packed (NumPy)": (packed.predict, pixels),
    }
    single: dict[str, list[float]] = {name: [] for name in (*work, "C")}
    batch: dict[str, list[float]] = {name: [] for name in (*work, "C")}
    for _ in range(TURNS):
        for name, (predict, samples) in work.items():
            ones = [samples[k : k + 1] for k in range(SINGLES)]
            single[name].append(seconds(lambda ones=ones, predict=predict: [predict(one) for one in ones]) / SINGLES)
            batch[name].append(seconds(lambda predict=predict, samples=samples: predict(samples)) / BATCH)
        printed = subprocess.run([program], input=pixels.tobytes(), stdout=subprocess.PIPE, check=True).stdout
        single["C"].append(float(printed) / BATCH)
        batch["C"].append(float(printed) / BATCH)
    return [Row(name, min(single[name]), 1 / min(batch[name]), sizes[name]) for name in single]


def table(rows: list[Row]) -> str:
    """The rows in Markdown."""
    lines = ["| | latency, µs | faster | samples/s | kB |", "|---|---|---|---|---|"]
    for row in rows:
        lines.append(
            f"| {row.format} | {1e6 * row.latency:.3g} | {rows[0].latency / row.latency:.2g} × "
            f"| {float(f'{row.throughput:.2g}'):,.0f} | {row.bytes / 1000:,.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="a run's folder, trained on images")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    args = parser.parse_args()
    torch.set_num_threads(1)
    run = open_run(args.run)
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        rows = measure(run, Path(folder))
    network = [run.load_checkpoint().task.inputs, *run.config.hidden, run.load_network().outputs]
    listed = [row._asdict() for row in rows]
    result = {"machine": asdict(describe(torch.device("cpu"))), "network": network, "rows": listed}
    if args.json is not None:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
