"""Flash, stack and instructions of exported networks on emulated microcontrollers, beside an int8 MLP of scikit-learn.

    python scripts/bench_embedded.py runs/digits-* --mlp 8 --json docs/data/embedded.json

Every row is the mean over the runs given, which must be of one data set of images and one shape. Flash is what
net_predict needs at -Os, stack is GCC's -fstack-usage along its calls, instructions are counted by QEMU (cycles by
simavr on AVR) for one test image. The MLP has one hidden layer of ReLU units, is trained with scikit-learn's defaults
on the same data, and rounded to 8 bits by this script; its C is the plainest that does it. Needs `make embedded`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.neural_network import MLPClassifier

import cavity
from cavity.export import Trained, describe
from cavity.export.c import array, generate
from cavity.packed import Confidence, PackedNetwork
from cavity.runs import open_run

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from embedded.footprint import sizes, stack_usage
from embedded.targets import TARGETS, Unavailable, run

BOARDS = ("Cortex-M0", "Cortex-M4", "RV32", "AVR")
OTHERS = ("selftest", "confidence", "reject", "weight_of", "decay", "classes", "features")
SHORT = 127

MLP = """#include "net.h"
{arrays}
static void net_layer0(const net_input *x, uint8_t *h)
{{
  const int8_t *w = net_weight0;
  int k, i;
  for (k = 0; k < {hidden}; ++k) {{
    int32_t s = (int32_t)NET_AT32(net_bias0 + k);
    for (i = 0; i < {inputs}; ++i)
      s += (int16_t)(int8_t)NET_AT8(w++) * x[i];
    s >>= {shift};
    h[k] = (uint8_t)(s < 0 ? 0 : s > 255 ? 255 : s);
  }}
}}
void net_scores(const net_input *x, net_score *scores)
{{
  uint8_t h[{hidden}];
  const int8_t *w = net_weight1;
  int k, i;
  net_layer0(x, h);
  for (k = 0; k < {outputs}; ++k) {{
    int32_t s = (int32_t)NET_AT32(net_bias1 + k);
    for (i = 0; i < {hidden}; ++i)
      s += (int16_t)(int8_t)NET_AT8(w++) * h[i];
    scores[k] = s;
  }}
}}
int net_best(const net_score *scores)
{{
  int k, best = 0;
  for (k = 1; k < {outputs}; ++k)
    if (scores[k] > scores[best])
      best = k;
  return best;
}}
int net_predict(const net_input *x)
{{
  net_score scores[{outputs}];
  net_scores(x, scores);
  return net_best(scores);
}}
uint8_t net_confidence(const net_score *scores) {{ return scores[0] > 0; }}
int net_reject(const net_score *scores) {{ return scores[0] > 0; }}
int net_selftest(void) {{ return 0; }}
"""
HEADER = """#include <stdint.h>
#ifdef __AVR__
#include <avr/pgmspace.h>
#define NET_FLASH PROGMEM
#define NET_AT8(p) pgm_read_byte(p)
#define NET_AT32(p) pgm_read_dword(p)
#else
#define NET_FLASH
#define NET_AT8(p) (*(p))
#define NET_AT32(p) (*(p))
#endif
#define NET_INPUTS {inputs}
#define NET_OUTPUTS {outputs}
typedef uint8_t net_input;
typedef int32_t net_score;
void net_scores(const net_input *, net_score *);
int net_best(const net_score *);
int net_predict(const net_input *);
uint8_t net_confidence(const net_score *);
int net_reject(const net_score *);
int net_selftest(void);
"""


class Measured(NamedTuple):
    """A network on a board."""

    flash: float
    stack: float
    count: float


def measured(name: str, folder: Path, image: np.ndarray, outputs: int) -> tuple[Measured, int]:
    """What a prediction with net.c takes, and the class of the image."""
    target = TARGETS[name]
    parts = {part: size for part, size in sizes(target, folder).items() if not any(o in part for o in OTHERS)}
    found = run(target, folder, image, outputs, 4)
    return Measured(sum(parts.values()), stack_usage(target, folder, "-Os"), found.instructions), int(found.classes[0])


def mlp(
    x: np.ndarray, y: np.ndarray, hidden: int, seed: int, epochs: int
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The numbers and the arrays of an MLP in 8 bits, trained on pixels x (samples, features)."""
    white = float(x.max())
    trained = MLPClassifier((hidden,), random_state=seed, max_iter=epochs).fit(x / white, y)
    (w0, w1), (b0, b1) = trained.coefs_, trained.intercepts_
    first = SHORT / np.abs(w0 / white).max()
    w0, b0 = np.rint(w0 / white * first), np.rint(b0 * first)
    sums = np.maximum(x[:5000].astype(float) @ w0 + b0, 0)
    shift = max(0, int(np.ceil(np.log2(np.percentile(sums, 99.9) / 255))))
    second = SHORT / np.abs(w1).max()
    w1, b1 = np.rint(w1 * second), np.rint(b1 * second * first / 2**shift)
    numbers = {"inputs": x.shape[1], "hidden": hidden, "outputs": w1.shape[1], "shift": shift}
    return numbers, {"weight0": w0.T, "bias0": b0, "weight1": w1.T, "bias1": b1}


def mlp_classes(numbers: dict[str, Any], arrays: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """What its C computes."""
    whole = {name: values.astype(np.int64) for name, values in arrays.items()}
    h = np.clip((x.astype(np.int64) @ whole["weight0"].T + whole["bias0"]) >> numbers["shift"], 0, 255)
    classes: np.ndarray = (h @ whole["weight1"].T + whole["bias1"]).argmax(axis=1)
    return classes


def write_mlp(folder: Path, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    kinds = {"weight": "int8_t", "bias": "int32_t"}
    text = "".join(array(kinds[name[:-1]], "net", name, values.astype(np.int64)) for name, values in arrays.items())
    (folder / "net.h").write_text(HEADER.format(**numbers))
    (folder / "net.c").write_text(MLP.format(arrays=text, **numbers))


def table(rows: dict[str, dict[str, Any]]) -> str:
    lines = ["| | accuracy | board | flash | stack | instructions |", "|---|---|---|---|---|---|"]
    for name, row in rows.items():
        for board, (flash, stack, count) in row["boards"].items():
            lines.append(
                f"| {name} | {100 * row['accuracy']:.1f} % | {board} | {flash:,.0f} | {stack:,.0f} | {count:,.0f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="runs on one data set of images, of one shape, each another seed")
    parser.add_argument("--mlp", type=int, help="hidden units of the MLP beside them (default: none)")
    parser.add_argument("--mlp-epochs", type=int, default=200, help="epochs of the MLP at most")
    parser.add_argument("--boards", nargs="+", choices=BOARDS, default=BOARDS, help="where to measure (default: all)")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    args = parser.parse_args()
    boards = available(args.boards)
    found: dict[str, list[tuple[float, dict[str, Measured]]]] = {}
    for seed, path in enumerate(args.runs):
        opened = open_run(path)
        trained, data = Trained.of(opened), opened.load_dataset()
        if trained.inputs.white is None:
            raise ValueError(f"{path} was not trained on pixels")
        x, test = (
            np.rint((part.flatten(1) * data.std + data.mean).numpy() * trained.inputs.white).astype(np.uint8)
            for part in (data.x_train, data.x_test)
        )
        right = data.y_test.numpy()
        net = dataclasses.replace(describe(trained), confidence=Confidence(128, 8))
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            for name, text in zip(("net.h", "net.c"), generate(net, "net", "net.h"), strict=True):
                (place / name).write_text(text)
            row = {board: measured(board, place, test[:1], net.sizes[-1])[0] for board in boards}
            accuracy = float((PackedNetwork(net).predict(test) == right).mean())
            found.setdefault(f"cavity {'-'.join(map(str, net.sizes))}", []).append((accuracy, row))
            if args.mlp:
                numbers, arrays = mlp(x, data.y_train.numpy(), args.mlp, seed, args.mlp_epochs)
                guess = mlp_classes(numbers, arrays, test)
                write_mlp(place, numbers, arrays)
                pairs = {board: measured(board, place, test[:1], numbers["outputs"]) for board in boards}
                assert all(k == guess[0] for _, k in pairs.values())
                name = f"int8 MLP {x.shape[1]}-{args.mlp}-{numbers['outputs']}"
                row = {board: pair[0] for board, pair in pairs.items()}
                found.setdefault(name, []).append((float((guess == right).mean()), row))
    rows = {
        name: {
            "accuracy": float(np.mean([accuracy for accuracy, _ in each])),
            "runs": len(each),
            "boards": {board: np.mean([row[board] for _, row in each], axis=0).tolist() for board in each[0][1]},
        }
        for name, each in found.items()
    }
    if args.json is not None:
        args.json.write_text(json.dumps({"cavity": cavity.__version__, "rows": rows}, indent=1) + "\n")
    print(table(rows))


def available(wanted: Sequence[str]) -> list[str]:
    """Those of the boards whose compilers and emulators are installed."""
    usable = []
    for name in wanted:
        try:
            TARGETS[name].require()
            usable.append(name)
        except Unavailable as missing:
            print(missing, file=sys.stderr)
    return usable


if __name__ == "__main__":
    main()
