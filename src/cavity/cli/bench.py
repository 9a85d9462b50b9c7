"""Measure how fast training is on this machine, against BinaryNet.

    cavity bench                                        784-501-501-10, batch sizes 1, 16, 128 and 1024
    cavity bench --batch-size 128 --threads 2 --json bench.json
    cavity bench --hidden 101,101 --two-class --plot bench.png
    cavity bench --batch-size 128 --whole-run
    cavity bench --batch-size 128 --time-to-accuracy 12

All algorithms take turns in one process, and the best turn of each counts. The ratio compares with BinaryNet as one
would write it in PyTorch, plain or compiled, whichever is faster; a third BinaryNet is tuned by hand. The product share
is the part of an algorithm's time that its bare matrix products alone would take.
Without --dataset, the data are Fashion-MNIST if it is on this machine, else random numbers of the same shape.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from cavity.cli.parser import positive, whole_numbers
from cavity.studies.bench.options import Options
from cavity.util.files import FORCE_HELP, require_new_file, write_whole


def algorithm_names(text: str) -> list[str]:
    """``binarynet,mf``, each at most once."""
    from cavity.studies.bench.contenders import names

    asked = text.split(",")
    for name in asked:
        if name not in names():
            raise argparse.ArgumentTypeError(f"there is no algorithm {name!r}; there are {', '.join(names())}")
    return list(dict.fromkeys(asked))


#: How the words of an option are read, where they are not plain text or a flag.
TYPES: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("batch_size", "hidden"), whole_numbers),
    **dict.fromkeys(("threads", "repeats", "steps", "epochs"), positive),
    "algorithms": algorithm_names,
    "seed": int,
    "time_to_accuracy": float,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for item in fields(Options):
        flag, text = "--" + item.name.replace("_", "-"), item.metadata["help"]
        if isinstance(item.default, bool):
            parser.add_argument(flag, action="store_true", help=text)
        else:
            kind, metavar = TYPES.get(item.name, str), item.metadata["metavar"]
            parser.add_argument(flag, type=kind, default=item.default, metavar=metavar, help=text)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON (default: no file)")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw time per epoch against batch size beside the paper's (default: no file)",
    )
    parser.add_argument("--force", action="store_true", help=FORCE_HELP)


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from cavity.studies.bench import running

    # Before an hour of measurements, not after it.
    for path in (args.json, args.plot):
        if path is not None:
            require_new_file(path, args.force)
    result = running.run(Options(**{item.name: getattr(args, item.name) for item in fields(Options)}), Console())
    if args.json is not None:
        write_whole(args.json, f"{json.dumps(result.as_dict(), indent=1)}\n".encode())
    if args.plot is not None:
        from cavity.studies.bench.plot import draw

        draw(result, args.plot)
    return 0
