"""Export a run's network: C99, an Arduino library, one Python file, one page, bits for NumPy, or ONNX.

    cavity export runs/first --out net.c                        net.c and net.h: int net_predict(const net_input *)
    cavity export runs/first --out net.c --learn                net_learn.c too: the device goes on training it
    cavity export runs/first --out net --format arduino         a library for Arduino, PlatformIO and Zephyr
    cavity export runs/first --out net.py                       needs NumPy alone: net.predict(X), python net.py < rows
    cavity export runs/first --out net.html                     a page to draw on, or with sliders; it needs no network
    cavity export runs/first --out net.cavity                   cavity.packed.load("net.cavity").predict(pixels)
    cavity export runs/first --out net.onnx                     pixels in, classes out
    cavity export runs/first --out proba.onnx --method bayes    class probabilities out

Pixels go in as they are in the image (0 to 255; 0 to 16 for digits), numbers of tables in their own units: the
standardisation is part of what is exported. All formats but the last compute the same whole numbers. The accuracy that
is printed is that of exactly what was exported, on the run's test set. How sure it is of a class is fitted on the run's
training set, or better on samples that it has not seen (--calibrate). Only networks of sign units are point-wise.
Of a table with text columns, what turns them into numbers is written beside it (net.columns.json).

In Python: trained, notes = cavity.export.of_run(cavity.runs.open_run("runs/first"))
           cavity.export.to_c(trained, "net.c"), .to_python(trained, "net.py"), .to_html(trained, "net.html"), …
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from cavity.cli.output import say, say_notes
from cavity.cli.parser import UsageError
from cavity.export.formats import FORMATS, taking, writer
from cavity.util.files import FORCE_HELP, require_new_file, write_whole

if TYPE_CHECKING:
    from cavity.runs.folder import Run

#: Options that go with some formats only.
LIMITED = ("method", "prefix")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run", metavar="RUN", help="a run's folder")
    add("--format", choices=FORMATS, help="what to write (default: by the ending of --out)")
    add(
        "--out",
        metavar="PATH",
        required=True,
        help="the file; for c, the header is put beside it; for arduino a folder",
    )
    add("--force", action="store_true", help=FORCE_HELP)
    add("--method", choices=("point", "bayes"), help="onnx only: classes (default), or class probabilities")
    add("--prefix", metavar="NAME", help="c and arduino: what all names start with (default: the file's)")
    add("--learn", action="store_true", help="c only: two more files with which the device learns on")
    add("--new-classes", metavar="NAME", nargs="+", help="with --learn: classes that it will learn (default: none)")
    add(
        "--inputs",
        choices=("pixels", "real"),
        help="what samples are, where the run does not say: images in .npz (default: what the run says)",
    )
    add(
        "--calibrate",
        metavar="DATA",
        help="a data set or file to fit the confidence on (default: the run's training set)",
    )
    add(
        "--label",
        metavar="COLUMN",
        help="label column if the data of --calibrate are a table (default: the name that the run's has)",
    )
    add(
        "--coverage",
        type=float,
        metavar="X",
        help="the share of those samples whose class is not refused (default: 0.9)",
    )


def run(args: argparse.Namespace) -> int:
    from cavity.export.doors import format_of, of_run
    from cavity.export.learning import Learn
    from cavity.export.on_data import COVERAGE
    from cavity.export.targets import require_free
    from cavity.runs.folder import open_run

    name = format_of(args.out, args.format)
    options = {option: getattr(args, option) for option in LIMITED if getattr(args, option) is not None}
    for option in options:
        _require_taking(name, option)
    if args.learn:
        _require_taking(name, "learn")
    if args.new_classes and not args.learn:
        raise UsageError("--new-classes goes with --learn only")
    if args.learn:
        options["learn"] = Learn(new_classes=tuple(args.new_classes or ()))
    require_free(name, args.out, args.force)
    coverage = COVERAGE if args.coverage is None else args.coverage
    opened = open_run(args.run)
    trained, notes = of_run(
        opened,
        inputs=args.inputs,
        calibrate=args.calibrate,
        label=args.label,
        coverage=coverage,
        method=args.method or "point",
        learn=args.learn,
    )
    written = writer(name)(trained, args.out, force=args.force, **options)
    written = [*written, *_columns(opened, args)]
    say_notes(notes)
    say(", ".join(f"{path} ({path.stat().st_size} bytes)" for path in written))
    if trained.tested is not None:
        right, samples = trained.tested
        say(f"accuracy of what was exported: {trained.accuracy:.2f} % ({right} of {samples} test samples)")
    if trained.confidence is not None:
        say(f"confidence from 0 to 255; below {trained.confidence.reject} a class is refused (coverage {coverage:g})")
    return 0


def _require_taking(name: str, option: str) -> None:
    if option not in FORMATS[name].options:
        raise UsageError(f"--{option} goes with --format {' or '.join(taking(option))} only")


def _columns(opened: Run, args: argparse.Namespace) -> list[Path]:
    """What turns the columns of a table into the numbers that the network takes, beside it as JSON, where a column is
    text."""
    task = opened.load_checkpoint().task
    if task is None or task.encoding is None or not task.encoding.texts:
        return []
    path = Path(args.out).with_suffix(".columns.json")
    require_new_file(path, args.force)
    content = {**task.encoding.as_values(), "features": task.encoding.features}
    write_whole(path, (json.dumps(content, indent=1) + "\n").encode())
    return [path]
