"""Measure how fast training is on this machine, against BinaryNet.

    cavity bench                                        784-501-501-10, batch sizes 1, 16, 128 and 1024
    cavity bench --batch-size 128 --threads 2 --json bench.json
    cavity bench --hidden 101,101 --two-class --plot bench.png
    cavity bench --batch-size 128 --time-to-accuracy 17

All algorithms take turns in one process, and the best turn of each counts. The ratio compares with BinaryNet as one
would write it in PyTorch, plain or compiled, whichever is faster; a third BinaryNet is tuned by hand. The product share
is the part of an algorithm's time that its bare matrix products alone would take.
Without --dataset, the data are Fashion-MNIST if it is on this machine, else random numbers of the same shape.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from pathlib import Path

from cavity.cli.parser import positive, whole_numbers
from cavity.studies.bench.options import Options


def algorithm_names(text: str) -> list[str]:
    """``binarynet,mf``, each at most once."""
    from cavity.studies.bench.contenders import NAMES

    names = text.split(",")
    for name in names:
        if name not in NAMES:
            raise argparse.ArgumentTypeError(f"there is no algorithm {name!r}; there are {', '.join(NAMES)}")
    return list(dict.fromkeys(names))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--batch-size", type=whole_numbers, default=Options.batch_size, metavar="N,N", help="default: 1,16,128,1024")
    add("--hidden", type=whole_numbers, default=Options.hidden, metavar="N,N", help="hidden widths (default: 501,501)")
    add(
        "--algorithms",
        type=algorithm_names,
        metavar="A,A",
        help="some of binarynet,binarynet-compiled,binarynet-tuned,mf,amp,bpi,bp (default: these) and bp-exact",
    )
    add("--dataset", metavar="NAME", help="a data set by name or path, or random")
    add("--data-dir", metavar="DIR", help="folder searched first for data")
    add("--two-class", action="store_true", help="odd against even classes, one output unit")
    add("--device", default=Options.device, help="cpu, cuda, …")
    add("--threads", type=positive, metavar="N", help="threads of torch (default: torch's choice)")
    add("--repeats", type=positive, default=Options.repeats, metavar="N", help="turns of each algorithm (default: 8)")
    add(
        "--steps",
        type=positive,
        metavar="N",
        help="steps in a turn (default: 512, one check of the series)",
    )
    add("--eager", action="store_true", help="compile nothing")
    add("--seed", type=int, default=Options.seed, metavar="N", help="seed of networks and batches (default: 0)")
    add("--time-to-accuracy", type=float, metavar="ERROR", help="also train each to this test error, in %%")
    add(
        "--epochs",
        type=positive,
        default=Options.epochs,
        metavar="N",
        help="epochs until that is given up (default: 20)",
    )
    add("--json", type=Path, metavar="FILE", help="write the results as JSON")
    add("--plot", type=Path, metavar="FILE", help="draw time per epoch against batch size beside the paper's")


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from cavity.studies.bench import running

    result = running.run(Options(**{item.name: getattr(args, item.name) for item in fields(Options)}), Console())
    if args.json is not None:
        args.json.write_text(json.dumps(result.as_dict(), indent=1) + "\n", encoding="utf-8")
    if args.plot is not None:
        from cavity.studies.bench.plot import draw

        draw(result, args.plot)
    return 0
