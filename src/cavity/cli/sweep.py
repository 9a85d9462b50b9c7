"""Search for the options that suit the data: many short runs, judged by a part of the training set.

    cavity sweep --dataset fashion-mnist --hidden 101 --trials 40 --jobs 2 --out sweeps/first
    cavity sweep --dataset digits --batch-size '32|64|128' --hidden '51,51|101,101|201' --epochs 10
    cavity sweep --dataset digits --recipe paper --hidden 101       rho, damping and the spread of the first fields
    cavity sweep --dataset digits --select evidence     by the evidence of the training set, without training
    cavity sweep --resume sweeps/first --trials 80      on after an interruption, or further
    cavity train --config sweeps/first/best.toml --out runs/best

By default hidden, batch-size, epochs and init are searched, with --recipe paper rho, damping, init and hidden, except
those that are given a single value; last-rho, the rho of the last layer, is searched only if --search names it. A range
is LOW..HIGH; | separates choices of hidden layers and of whole numbers. Searching rho or damping implies
--recipe paper.
All other options are those of cavity train and the same for every trial; the search begins at the values in --config.
The test set is never used.

In Python: sweep = cavity.sweep.run(cavity.runs.Config(dataset="digits"), cavity.sweep.Space(("hidden", "init")),
"sweeps/first", trials=40, jobs=2); sweep.best; cavity.runs.train(sweep.best_config)
"""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from cavity.cli.output import say
from cavity.cli.parser import UsageError, positive
from cavity.cli.train import INTERRUPTED, add_option, given_options, help_text, numbers, widths
from cavity.runs.config import Config
from cavity.studies.sweep.plan import OBJECTIVES, OF_THE_PRIOR, TRIALS, VALIDATION
from cavity.studies.sweep.space import OF_THE_PAPER, SEARCHABLE, Space, default_search

if TYPE_CHECKING:
    from cavity.studies.sweep.folder import Sweep

FAILED = 1
#: What may be given beside --resume.
WITH_RESUME = ("trials", "jobs", "quiet", "data_dir")


#: What was written for an option that can be searched: a list is one value, a tuple a range or several choices.
Searched = list[Any] | tuple[Any, ...]


def range_or_numbers(text: str) -> Searched:
    """``0.99..1.001``, or what ``cavity train`` takes."""
    low, dots, high = text.partition("..")
    if not dots:
        return numbers(text)
    try:
        return float(low), float(high)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a range such as 0.5..0.9, or a number, got {text!r}") from None


def choices_or_widths(text: str) -> Searched:
    """``51,51|101,101|201``, or what ``cavity train`` takes."""
    return tuple(tuple(widths(part)) for part in text.split("|")) if "|" in text else widths(text)


def choices_or_number(text: str) -> Searched:
    """``32|64|128``, or what ``cavity train`` takes."""
    found = [positive(part.strip()) for part in text.split("|")]
    return tuple(found) if "|" in text else found


def names(text: str) -> tuple[str, ...]:
    """``rho,damping,last-rho``."""
    return tuple(word.strip().replace("-", "_") for word in text.split(",") if word.strip())


#: How the values of what can be searched are written, if it is no range.
FORMS = {
    "hidden": (choices_or_widths, "N,N|N"),
    "batch_size": (choices_or_number, "N|N"),
    "epochs": (choices_or_number, "N|N"),
}
#: Options that are one number, though a list of one is what was read.
SINGLE = ("init", "batch_size", "epochs")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What concerns the sweep, what can be searched, and the other options of ``Config``."""
    add = parser.add_argument
    add("--out", metavar="SWEEP", help="the sweep's folder (default: a new one below sweeps/)")
    add(
        "--resume",
        metavar="SWEEP",
        help="go on with a sweep; --trials changes how many trials it has (default: a new sweep)",
    )
    add("--trials", type=int, metavar="N", help=f"trials in all (default: {TRIALS})")
    add("--jobs", type=int, default=1, metavar="N", help="trials at once, with equal threads (default: 1)")
    judges = [name for name in OBJECTIVES if name != "evidence"]
    add("--objective", choices=judges, help="what to minimise on the held-out samples (default: error)")
    add(
        "--select",
        choices=("evidence",),
        help="judge by the evidence of all training samples: no training, no held-out (default: by --objective)",
    )
    add("--validation", type=float, metavar="X", help=f"held-out share of the training set (default: {VALIDATION})")
    add("--no-prune", action="store_true", help="train every trial to the end, even the poor ones")
    add("--quiet", action="store_true", help="print nothing but the sweep's folder")
    add("--config", metavar="FILE", help="read options from a TOML file; those given here win (default: none)")
    searched = parser.add_argument_group("what to search")
    listed = ", ".join(name.replace("_", "-") for name in SEARCHABLE)
    searched.add_argument(
        "--search",
        type=names,
        metavar="A,B",
        help=f"some of {listed} (default: hidden,batch-size,epochs,init; with --recipe paper rho,damping,init,hidden)",
    )
    options = parser.add_argument_group("what to train")
    about = {item.name: item for item in fields(Config)}
    for name, item in about.items():
        if name not in SEARCHABLE:
            add_option(options, item)
    for name in SEARCHABLE:
        text = help_text(about[name]) if name in about else "rho of the last layer (default: that of --rho)"
        kind, metavar = FORMS.get(name, (range_or_numbers, "LOW..HIGH"))
        searched.add_argument(flag(name), type=kind, metavar=metavar, default=argparse.SUPPRESS, help=text)


def asked(args: argparse.Namespace) -> tuple[Config, Space]:
    """The configuration and the space that a command line asks for."""
    written: dict[str, Searched] = {name: getattr(args, name) for name in SEARCHABLE if hasattr(args, name)}
    one: dict[str, Any] = {name: found for name, found in written.items() if isinstance(found, list)}
    several: dict[str, Any] = {name: found for name, found in written.items() if isinstance(found, tuple)}
    if "last_rho" in one:
        raise UsageError("--last-rho takes a range, e.g. 0.5..0.99; to fix it, give --rho a number for each layer")
    fixed = {name: value for name, value in given_options(args).items() if name not in SEARCHABLE}
    fixed |= {name: value[0] if name in SINGLE else value for name, value in one.items()}
    if len(one.get("init", [0])) != 1:
        raise UsageError(f"--init must be one number or a range, got {len(one['init'])} numbers")
    config = (Config() if args.config is None else Config.from_toml(args.config)).replace(**fixed)
    paper = not set(OF_THE_PAPER).isdisjoint(several)
    usual = OF_THE_PRIOR if args.select is not None else default_search("paper" if paper else config.recipe)
    asked_for = [name for name in usual if name not in one], [name for name in SEARCHABLE if name in several]
    search = args.search or tuple(dict.fromkeys(asked_for[0] + asked_for[1]))
    for name in search:
        if name in one:
            form = {"hidden": "'51,51|101,101'", "batch_size": "'32|64'", "epochs": "'10|20'"}.get(name, "LOW..HIGH")
            raise UsageError(f"{flag(name)} has one value but --search names it: give {flag(name)} {form}, or neither")
    for name in several:
        if name not in search:
            raise UsageError(f"{flag(name)} has a range but --search does not name it")
    if not search:
        raise UsageError("nothing is left to search: give an option several values, e.g. --batch-size '32|64'")
    return config, Space(search, **several)


def run(args: argparse.Namespace) -> int:
    from cavity.studies.sweep.study import require_optuna

    require_optuna()
    sweep = _resumed(args) if args.resume else _started(args)
    try:
        _work(sweep, args)
    except KeyboardInterrupt:
        if not args.quiet:
            say(f"stopped; go on with: cavity sweep --resume {sweep.path}")
        return INTERRUPTED
    return _publish(sweep, args)


def _started(args: argparse.Namespace) -> Sweep:
    from cavity.studies.sweep.running import prepare

    config, space = asked(args)
    if args.select is not None:
        for name in ("objective", "validation"):
            if getattr(args, name) is not None:
                raise UsageError(f"{flag(name)} does not go with --select evidence, which holds no samples out")
        args.objective = args.select
    written = {name: getattr(args, name) for name in ("trials", "objective", "validation")}
    options = {name: value for name, value in written.items() if value is not None}
    return prepare(config, space, args.out, prune=not args.no_prune, **options)


def _resumed(args: argparse.Namespace) -> Sweep:
    from cavity.studies.sweep.running import reopen

    given = {name for name, value in vars(args).items() if value is not None and value is not False}
    for name in given - {"resume", *WITH_RESUME}:
        plan = f"{args.resume}/sweep.toml"
        raise UsageError(f"{flag(name)} does not go with --resume, which goes on with what {plan} says")
    return reopen(args.resume, trials=args.trials, data_dir=getattr(args, "data_dir", None))


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _work(sweep: Sweep, args: argparse.Namespace) -> None:
    from rich.console import Console

    from cavity.studies.sweep.running import work
    from cavity.studies.sweep.table import Display, described

    done = sum(trial.state != "open" for trial in sweep.trials)
    display = Display(Console(quiet=args.quiet), sweep.plan, done)
    display.bars.say(described(sweep))
    with display.shown():
        work(sweep, args.jobs, display)


def _publish(sweep: Sweep, args: argparse.Namespace) -> int:
    """Draw the picture, show the best trials, and say what to do with them."""
    from cavity.studies.sweep.folder import BEST, PICTURE, best
    from cavity.studies.sweep.plot import save_picture
    from cavity.studies.sweep.table import mattered, summary, table

    plan, trials = sweep.plan, sweep.trials
    paths, found = save_picture(plan, trials, sweep.path / PICTURE)
    first, told = best(trials), "no trial is complete, so there is no best one"
    if first is not None:
        told = (
            f"best: trial {first.number}, {plan.title} {plan.shown(first.value)}; train it on the whole "
            f"training set with: cavity train --config {sweep.path / BEST} --out RUN"
        )
    words = [
        table(plan, trials),
        f"{summary(trials)}; {mattered(found)}",
        "written: " + ", ".join(map(str, paths)),
        told,
    ]
    say(str(sweep.path) if args.quiet else "\n".join(words))
    return FAILED if first is None else 0
