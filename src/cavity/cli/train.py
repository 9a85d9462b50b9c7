"""Train a network by message passing, into a run folder; or go on with a run that was stopped.

    cavity train                                        digits, binary weights, sign activations, belief propagation
    cavity train --dataset fashion-mnist --hidden 501,501 --algorithm mf --epochs 25 --out runs/fashion
    cavity train --dataset mnist --layers conv:32:5:2,pool:2,dense:501 --threshold --epochs 10 --out runs/conv
    cavity train --config runs/fashion/config.toml      the same again, bit for bit
    cavity train --resume runs/fashion                  on from the last checkpoint
    torchrun --nproc-per-node 2 -m cavity train --out runs/two --batch-size 256        two processes, one network

In Python: run = cavity.runs.train(cavity.runs.Config(dataset="digits"), "runs/first"); cavity.runs.resume("runs/first")
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cavity.cli.output import say, say_notes
from cavity.cli.parser import UsageError, in_words
from cavity.runs.config import Config
from cavity.runs.options import value_types
from cavity.util.files import FORCE_HELP
from cavity.util.text import shown_lines

if TYPE_CHECKING:
    from cavity.runs.session import Session

INTERRUPTED = 130
#: What may be given beside --resume.
WITH_RESUME = ("epochs", "data_dir")


def numbers(text: str) -> list[float]:
    """``0.8`` or ``1,1,0.9``."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number or several with commas, got {text!r}") from None


def widths(text: str) -> list[int]:
    """``501,501``, or ``none``."""
    try:
        return [] if text == "none" else [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected widths such as 501,501, or none, got {text!r}") from None


def assignment(text: str) -> tuple[str, Any]:
    """``name=value``, the value as in TOML or else as text."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"expected name=value, got {text!r}")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value


#: For each annotation of an option, how its values are read from a word and called in the help.
READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    int: (int, "N"),
    float: (float, "X"),
    tuple[float, ...]: (numbers, "X,X"),
    tuple[int, ...]: (widths, "N,N"),
    str: (str, "TEXT"),
    Mapping[str, Any]: (assignment, "NAME=VALUE"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``Config``, and what concerns the folder and the display."""
    add = parser.add_argument
    add("--config", metavar="FILE", help="read options from a TOML file; those given here win (default: none)")
    add("--out", metavar="RUN", help="the run's folder (default: a new one below runs/)")
    add("--force", action="store_true", help=FORCE_HELP)
    add("--resume", metavar="RUN", help="go on with a run; --epochs moves its end (default: a new run)")
    add("--quiet", action="store_true", help="print nothing but the run's folder")
    add("--tensorboard", action="store_true", help="write metrics for TensorBoard too")
    add("--checkpoint-seconds", type=float, default=30.0, metavar="S", help="time between checkpoints within an epoch")
    options = parser.add_argument_group("what to train")
    for item in fields(Config):
        add_option(options, item, choices=item.metadata["choices"])


def add_option(group: argparse._ArgumentGroup, item: Field[Any], choices: Iterable[str] | None = None) -> None:
    """A field of ``Config`` as an option; ``choices`` are listed in the help, and checked by the configuration too."""
    flag, annotation = "--" + item.name.replace("_", "-"), value_types(Config)[item.name]
    about: dict[str, Any] = {"dest": item.name, "default": argparse.SUPPRESS, "help": help_text(item)}
    if annotation is bool:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, **about)
        return
    about["type"], metavar = READERS[annotation]
    if annotation == Mapping[str, Any]:
        flag, about["action"] = flag.removesuffix("s"), "append"
    group.add_argument(flag, choices=choices, metavar=metavar if choices is None else None, **about)


def help_text(item: Field[Any]) -> str:
    """What an option is, and its default; that which follows from the data is in its text."""
    text: str = item.metadata["help"]
    if item.default is None or "default" in text:
        return text
    return f"{text} (default: {'no' if item.default is False else in_words(item.default)})"


def given_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of ``Config`` that stand on the command line."""
    given = {item.name: getattr(args, item.name) for item in fields(Config) if hasattr(args, item.name)}
    if "data_options" in given:
        given["data_options"] = dict(given["data_options"])
    return given


def run(args: argparse.Namespace) -> int:
    given = given_options(args)
    if args.tensorboard:
        from cavity.runs.tensorboard import require_tensorboard

        require_tensorboard()
    session = _resumed(args, given) if args.resume else _started(args, given)
    trainer, path, epochs = session.trainer, session.run.path, session.run.config.epochs
    # Of several processes one speaks.
    args.quiet = args.quiet or not session.leads
    tell = (lambda text: None) if args.quiet else say
    say_notes(session.notes if session.leads else ())
    if session.run.finished:
        tell(f"{path} has done all its {epochs} epochs; --epochs moves the end")
        return 0
    _train(session, args)
    if args.quiet and session.leads:
        print(path)
    if trainer.epoch < epochs:
        tell(f"stopped in epoch {trainer.epoch + 1}; go on with: cavity train --resume {path}")
        return INTERRUPTED
    if session.leads:
        from cavity.report import write
        from cavity.runs.folder import REPORT, open_run

        last, page = trainer.history[-1], write([open_run(path)], path / REPORT)
        target = session.dataset.target
        if target is None:
            calibration = "" if last.test_ece is None else f", calibration error {100 * last.test_ece:.1f} %"
            errors = f"test error {last.test_error:.2f} %, Bayesian {last.test_error_bayes:.2f} %"
            tell(f"{errors}{calibration}; report in {page}")
        else:
            point, bayes = (target[1] * (error or 0.0) for error in (last.test_error, last.test_error_bayes))
            tell(f"root mean squared error {point:.4g}, Bayesian {bayes:.4g}; report in {page}")
    return 0


def _started(args: argparse.Namespace, given: dict[str, Any]) -> Session:
    config = (Config() if args.config is None else Config.from_toml(args.config)).replace(**given)
    from cavity.engine.distributed import launched
    from cavity.runs.training import start

    return start(config, args.out, force=args.force, distributed=launched())


def _resumed(args: argparse.Namespace, given: dict[str, Any]) -> Session:
    refused = [name for name in ("config", "out", "force") if getattr(args, name)]
    refused += [name for name in given if name not in WITH_RESUME]
    if refused:
        option = "--" + refused[0].replace("_", "-")
        raise UsageError(
            f"{option} does not go with --resume, which goes on with what {args.resume}/config.toml says; "
            f"for a new run: --config {args.resume}/config.toml --out RUN"
        )
    from cavity.engine.distributed import launched
    from cavity.runs.training import reopen

    return reopen(args.resume, **given, distributed=launched())


def _train(session: Session, args: argparse.Namespace) -> None:
    """Fit with the display and the listeners that were asked for; Ctrl-C ends it after the step it is in."""
    with contextlib.ExitStack() as stack:
        callbacks: list[Any] = [stack.enter_context(_stop_on_signal(session))]
        if args.tensorboard and session.leads:
            from cavity.runs.tensorboard import TensorBoard
            from cavity.runs.training import TENSORBOARD
            from cavity.util.regular import own_folder

            board = TensorBoard(own_folder(session.run.path / TENSORBOARD), len(session.run.records))
            callbacks.append(stack.enter_context(contextlib.closing(board)))
        if not args.quiet:
            callbacks.append(stack.enter_context(_display(session)))
        stack.enter_context(_divergence_in_words())
        session.fit(callbacks, args.checkpoint_seconds)


@contextlib.contextmanager
def _divergence_in_words() -> Iterator[None]:
    """A warning of divergence as a line of its own; other warnings as usual."""
    from cavity.training.watch import DivergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("always", DivergenceWarning)
        show = warnings.showwarning

        def shown(message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any) -> None:
            if issubclass(category, DivergenceWarning):
                say_notes([message])
            else:
                show(message, category, *args, **kwargs)

        warnings.showwarning = shown
        yield


def _display(session: Session) -> Any:
    from rich.console import Console

    from cavity.training.display import LiveDisplay, PlainDisplay

    console, config = Console(markup=False, highlight=False), session.run.config
    words = f"{Path(config.dataset).name}: {describe(session)}"
    if console.is_terminal:
        console.print(shown_lines(words))  # which wraps at words
        return LiveDisplay(console, config.epochs, session.steps_per_epoch)
    say(words)
    return PlainDisplay(console, config.epochs)


def describe(session: Session) -> str:
    """The run in a line."""
    config, data = session.run.config, session.dataset
    if config.layers is None:
        sizes = "-".join(map(str, (data.n_features, *(config.hidden or ()), session.trainer.net.outputs)))
    else:
        sizes = config.layers
    return (
        f"{len(data.x_train)} + {len(data.x_test)} samples, network {sizes}, {config.weights} weights, "
        f"{config.activation}, {config.algorithm}, {config.epochs} epochs on {config.device}, run in {session.run.path}"
    )


@contextlib.contextmanager
def _stop_on_signal(session: Session) -> Iterator[Any]:
    """A callback that ends training after the step in which SIGINT or SIGTERM came; a second one ends it at once."""
    from cavity.runs.session import StopWhen

    asked = False

    def ask(number: int, frame: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield StopWhen(lambda: asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
