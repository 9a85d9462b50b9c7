"""Running a benchmark: every contender at every batch size, then the time to accuracy if that is asked for."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from cavity.engine.choosing import INTERVAL
from cavity.runs.session import threads
from cavity.studies.bench.accuracy import TimeToAccuracy, time_to_accuracy
from cavity.studies.bench.field import Field, prepare
from cavity.studies.bench.machine import describe
from cavity.studies.bench.options import Options
from cavity.studies.bench.table import Result, accuracy_table, timing_table
from cavity.studies.bench.timing import measure
from cavity.training.display import bars, say

#: The paper's batch size, at which time to accuracy is measured if it is among those asked for.
PAPER_BATCH = 128


def run(options: Options, console: Console) -> Result:
    """Measure what the options ask for; progress and tables go to the console."""
    with threads(options.threads):
        field = prepare(options, console.print)
        result = timings(field, options, console)
        console.print(timing_table(result))
        if options.time_to_accuracy is not None:
            console.print(f"training to {options.time_to_accuracy:g} % test error")
            result = replace(result, times_to_accuracy=accuracies(field, options, console))
            console.print(accuracy_table(result))
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
            found += measure(
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


def accuracies(field: Field, options: Options, console: Console) -> list[TimeToAccuracy]:
    """Time to accuracy at the paper's batch size if it is among those asked for, else at the first."""
    assert options.time_to_accuracy is not None
    with console.status("") as status:
        return time_to_accuracy(
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
