"""Measure how fast training is on this machine, against BinaryNet.

    cavity bench                                        784-501-501-10, batch sizes 1, 16, 128 and 1024
    cavity bench --batch-size 128 --threads 2 --json bench.json
    cavity bench --hidden 101,101 --two-class --plot bench.png
    cavity bench --batch-size 128 --time-to-accuracy 17

All algorithms take turns in one process and the best turn of each counts. The ratio is to the faster of BinaryNet as
one writes it in PyTorch, plain and compiled; a third is tuned by hand. The product share is the time of the bare
matrix products that an algorithm needs over its own time.
Without --dataset it is Fashion-MNIST if it is on this machine, else random numbers of the same shape.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from cavity.studies.bench.accuracy import TimeToAccuracy
    from cavity.studies.bench.field import Field
    from cavity.studies.bench.table import Result

#: The paper's batch size, at which time to accuracy is measured if it is among those asked for.
PAPER_BATCH = 128


def whole_numbers(text: str) -> list[int]:
    """``1,16,128``."""
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"expected positive whole numbers with commas, got {text!r}")
    return numbers


def positive(text: str) -> int:
    numbers = whole_numbers(text)
    if len(numbers) != 1:
        raise argparse.ArgumentTypeError(f"expected one positive whole number, got {text!r}")
    return numbers[0]


def algorithm_names(text: str) -> list[str]:
    """``binarynet,mf``, each at most once."""
    from cavity.studies.bench.contenders import names

    asked = text.split(",")
    for name in asked:
        if name not in names():
            raise argparse.ArgumentTypeError(f"there is no algorithm {name!r}; there are {', '.join(names())}")
    return list(dict.fromkeys(asked))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--batch-size", type=whole_numbers, default=[1, 16, 128, 1024], metavar="N,N", help="1,16,128,1024")
    add("--hidden", type=whole_numbers, default=[501, 501], metavar="N,N", help="widths of the hidden layers: 501,501")
    add(
        "--algorithms",
        type=algorithm_names,
        metavar="A,A",
        help="algorithms by name, binarynet, binarynet-compiled, binarynet-tuned (default: all), and bp-exact",
    )
    add("--dataset", metavar="NAME", help="a data set by name or path, or random")
    add("--data-dir", metavar="DIR", help="where data sets are looked for first")
    add("--two-class", action="store_true", help="odd against even classes, one output unit")
    add("--device", default="cpu", help="cpu, cuda, …")
    add("--threads", type=positive, metavar="N", help="threads of torch; without it, as torch chooses")
    add("--repeats", type=positive, default=8, metavar="N", help="turns of each algorithm: 8")
    add("--steps", type=positive, metavar="N", help="steps in a turn: 512, the rhythm in which a series is looked at")
    add("--eager", action="store_true", help="compile nothing")
    add("--seed", type=int, default=0, metavar="N", help="of networks and batches: 0")
    add("--time-to-accuracy", type=float, metavar="ERROR", help="also train each until its test error, in %%, is this")
    add("--epochs", type=positive, default=20, metavar="N", help="epochs after which that is given up: 20")
    add("--json", type=Path, metavar="FILE", help="write the results for programs")
    add("--plot", type=Path, metavar="FILE", help="draw time per epoch against batch size beside the paper's")


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from cavity.studies.bench.field import prepare
    from cavity.studies.bench.table import accuracy_table, timing_table

    console = Console()
    with threads(args.threads):
        field = prepare(args, console.print)
        result = timings(field, args, console)
        console.print(timing_table(result))
        if args.time_to_accuracy is not None:
            console.print(f"training to {args.time_to_accuracy:g} % test error")
            with console.status("") as status:
                result = replace(result, times_to_accuracy=accuracies(field, args, status.update))
            console.print(accuracy_table(result))
    if args.json is not None:
        args.json.write_text(json.dumps(result.as_dict(), indent=1) + "\n", encoding="utf-8")
    if args.plot is not None:
        from cavity.studies.bench.plot import draw

        draw(result, args.plot)
    return 0


def timings(field: Field, args: argparse.Namespace, console: Console) -> Result:
    """Every batch size in turn; the console shows which, and the time left for it."""
    from cavity.engine.choosing import INTERVAL
    from cavity.studies.bench.machine import describe
    from cavity.studies.bench.progress import Turns
    from cavity.studies.bench.table import Result
    from cavity.studies.bench.timing import measure
    from cavity.training.display import bars, say

    steps = args.steps or INTERVAL
    found = []
    with bars(console) as shown:
        for batch_size in args.batch_size:
            say(console, f"batch size {batch_size}: {', '.join(field.names)}")
            found += measure(
                field.names,
                field.sizes,
                field.train,
                batch_size,
                steps=steps,
                repeats=args.repeats,
                seed=args.seed,
                compile=field.compile,
                # The bare products take a turn, too.
                tell=Turns(shown, batch_size, args.repeats * (len(field.names) + 1)),
            )
    return Result(describe(field.device), field.dataset, field.sizes, steps, args.repeats, found, [])


def accuracies(field: Field, args: argparse.Namespace, tell: Callable[[str], object]) -> list[TimeToAccuracy]:
    """Time to accuracy at the paper's batch size if it is among those asked for, else at the first; ``tell`` is told
    where each stands."""
    from cavity.studies.bench.accuracy import time_to_accuracy

    return time_to_accuracy(
        field.names,
        field.sizes,
        field.train,
        field.test,
        target=args.time_to_accuracy,
        batch_size=PAPER_BATCH if PAPER_BATCH in args.batch_size else args.batch_size[0],
        epochs=args.epochs,
        seed=args.seed,
        compile=field.compile,
        tell=tell,
    )


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """So many threads of torch inside, as many as before outside."""
    import torch

    before = torch.get_num_threads()
    try:
        if count is not None:
            torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)
