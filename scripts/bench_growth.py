"""How the time of a step grows with the width and with the batch.

Measures MF, AMP and BP on 784-w-w-10 and random numbers for w = 501 … 4001 at two batch sizes, and prints what doubling
the width and doubling the batch cost. Doubling w multiplies the weights by 2.8 to 3.4, doubling the batch the samples
by 2.

    python scripts/bench_growth.py --threads 2 --repeats 5 --json docs/data/growth.json
"""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from pathlib import Path

import torch

from cavity.studies.bench.timing import time_contenders

WIDTHS = (501, 1001, 2001, 4001)
BATCHES = (128, 256)
ALGORITHMS = ("mf", "amp", "bp")
STEPS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    generator = torch.Generator().manual_seed(0)
    samples = max(BATCHES) * (STEPS + 1)
    data = torch.randn(samples, 784, generator=generator), torch.randint(10, (samples,), generator=generator)
    seconds: dict[str, float] = {}
    for width in WIDTHS:
        for batch in BATCHES:
            sizes = [784, width, width, 10]
            rows = time_contenders(
                ALGORITHMS, sizes, data, batch, steps=STEPS, repeats=options.repeats, seed=0, compile=True
            )
            for row in rows:
                seconds[f"{row.algorithm} {width} {batch}"] = row.seconds_per_step
                print(
                    f"{row.algorithm:4s} width {width} batch {batch}: {1e3 * row.seconds_per_step:.1f} ms", flush=True
                )
    growth = {
        name: {
            "width": [
                seconds[f"{name} {b} {BATCHES[0]}"] / seconds[f"{name} {a} {BATCHES[0]}"] for a, b in pairwise(WIDTHS)
            ],
            "batch": [seconds[f"{name} {w} {BATCHES[1]}"] / seconds[f"{name} {w} {BATCHES[0]}"] for w in WIDTHS],
        }
        for name in ALGORITHMS
    }
    for name, found in growth.items():
        print(name, {kind: [round(ratio, 2) for ratio in ratios] for kind, ratios in found.items()})
    if options.json:
        result = {"widths": WIDTHS, "batches": BATCHES, "seconds": seconds, "growth": growth}
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
