"""Running a benchmark: who takes part, on which data; every contender at every batch size; then, if that is asked for,
whole runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from rich.console import Console

from cavity import data
from cavity.data import Dataset
from cavity.engine.choosing import INTERVAL
from cavity.engine.compiling import compiler_problem
from cavity.runs.session import threads
from cavity.studies.bench.contenders import NEED_COMPILER, default
from cavity.studies.bench.options import Options
from cavity.studies.bench.table import Result, describe, timing_table, whole_table
from cavity.studies.bench.timing import time_contenders
from cavity.studies.bench.whole import WholeRun, whole_runs
from cavity.training.batches import Pair
from cavity.training.display import bars, say
from cavity.util.text import shown

#: The paper's batch size, at which whole runs are made if it is among those asked for.
PAPER_BATCH = 128
RANDOM = "random"
DEFAULT_DATASET = "fashion-mnist"
#: Samples, pixels and classes of Fashion-MNIST.
SHAPE = (60000, 784, 10)


@dataclass(frozen=True)
class Field:
    """``sizes`` are (inputs, hidden…, outputs); data are (x, y) on the device."""

    names: list[str]
    sizes: list[int]
    dataset: str
    train: Pair
    test: Pair
    compile: bool


def prepare(args: Options, say: Callable[[str], object]) -> Field:
    """What the options ask for; ``say`` is told if nothing can be compiled."""
    problem = "as asked" if args.eager else compiler_problem()
    if problem is not None:
        say(f"nothing is compiled: {problem}")
    asked = args.algorithms or default()
    names = [name for name in asked if problem is None or name not in NEED_COMPILER]
    if not names:
        raise ValueError(f"of --algorithms {','.join(asked)} nothing is left when nothing is compiled: name another")
    found = dataset(args.dataset, args.data_dir, args.two_class)
    if args.time_to_accuracy is not None and found.name == RANDOM:
        raise ValueError("time to accuracy needs data with something to learn, not random numbers: give --dataset")
    sizes = [found.n_features, *args.hidden, 1 if args.two_class else found.n_classes]
    train = found.x_train.to(args.device), found.y_train.to(args.device)
    test = found.x_test.to(args.device), found.y_test.to(args.device)
    return Field(names, sizes, shown(found.name), train, test, compile=problem is None)


def dataset(name: str | None, data_dir: str | None, two_class: bool) -> Dataset:
    """The data set of that name; without one, Fashion-MNIST if it is here, and else random numbers of its shape."""
    if name is None:
        here = {entry.name for entry in data.available(data_dir) if entry.present}
        name = DEFAULT_DATASET if DEFAULT_DATASET in here else RANDOM
    if name == RANDOM:
        return random_dataset(two_class)
    return data.load(name, data_dir=data_dir, binary_task=two_class)


def random_dataset(two_class: bool) -> Dataset:
    """Standard normal pixels and random labels in the shape of Fashion-MNIST, with a hundredth of it to test on."""
    samples, pixels, classes = SHAPE
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(samples, pixels, generator=generator)
    y = torch.randint(classes, (samples,), generator=generator)
    if two_class:
        y = 2 * (y % 2) - 1
    test = samples // 100
    return Dataset(
        x_train=x,
        y_train=y,
        x_test=x[:test],
        y_test=y[:test],
        image_shape=(1, 28, 28),
        classes=("even", "odd") if two_class else tuple(map(str, range(classes))),
        mean=torch.zeros(1),
        std=torch.ones(1),
        name=RANDOM,
    )


def run(options: Options, console: Console) -> Result:
    """Measure what the options ask for; progress and tables go to the console."""
    with threads(options.threads):
        field = prepare(options, console.print)
        result = timings(field, options, console)
        console.print(timing_table(result))
        if options.whole_run or options.time_to_accuracy is not None:
            console.print(f"whole runs of {options.epochs} epochs")
            result = replace(result, whole_runs=whole(field, options, console))
            console.print(whole_table(result))
    return result


def timings(field: Field, options: Options, console: Console) -> Result:
    """Every batch size in turn; a bar in a terminal shows the time left for it."""
    steps = options.steps or INTERVAL
    found = []
    with bars(console) as shown:
        for batch_size in options.batch_size:
            say(console, f"batch size {batch_size}: {', '.join(field.names)}")
            # The bare products take a turn, too.
            turns = options.repeats * (len(field.names) + 1)
            task = shown.add_task(f"batch size {batch_size}", total=turns, note="")
            found += time_contenders(
                field.names,
                field.sizes,
                field.train,
                batch_size,
                steps=steps,
                repeats=options.repeats,
                seed=options.seed,
                compile=field.compile,
                tell=lambda done, task=task: shown.update(task, completed=done),  # type: ignore[misc]
            )
    return Result(describe(field.train[0].device), field.dataset, field.sizes, steps, options.repeats, found, [])


def whole(field: Field, options: Options, console: Console) -> list[WholeRun]:
    """Whole runs at the paper's batch size if it is among those asked for, else at the first."""
    with console.status("") as status:
        return whole_runs(
            field.names,
            field.sizes,
            field.train,
            field.test,
            target=options.time_to_accuracy,
            batch_size=PAPER_BATCH if PAPER_BATCH in options.batch_size else options.batch_size[0],
            epochs=options.epochs,
            seed=options.seed,
            compile=field.compile,
            tell=status.update,
        )
