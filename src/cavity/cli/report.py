"""``cavity report RUN [RUN…]``."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

from cavity.cli.output import say
from cavity.cli.parser import UsageError, add_data_changed
from cavity.util.files import FORCE_HELP, require_new, require_new_file

LAST_PORT = 65535


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``cavity report``."""
    add = parser.add_argument
    add("runs", metavar="RUN", nargs="+", type=Path, help="run folders; several are shown side by side")
    add(
        "--out",
        type=Path,
        metavar="FILE",
        help="where the page goes (default: RUN/report.html for one run, report.html here for several)",
    )
    add_data_changed(parser)
    add("--plots", type=Path, metavar="DIR", help="also write every figure as PNG and SVG into DIR (default: no)")
    add(
        "--serve",
        action="store_true",
        help="show the page to browsers on this machine and keep it up to date while the runs go on; Ctrl-C ends it",
    )
    add("--force", action="store_true", help=f"{FORCE_HELP}, but for RUN/report.html")
    add("--port", type=port, metavar="N", help="port for --serve (default: one that is free)")


def port(text: str) -> int:
    """``8080``."""
    if not text.isascii() or not text.isdecimal() or not 0 <= int(text) <= LAST_PORT:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 to {LAST_PORT}, got {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Write the page, and the plots if asked for; 0 on success."""
    if args.serve:
        return _serve(args)
    if args.port is not None:
        raise UsageError("--port is for --serve")
    # What belongs to a run is renewed; a file or folder that is named, or the report of several runs, is somebody's.
    its_own = args.out is None and len(args.runs) == 1
    out = args.runs[0] / "report.html" if its_own else require_new_file(args.out or Path("report.html"), args.force)
    if args.plots is not None:
        require_new(args.plots, args.force)
    from cavity.report.collect import collect_all
    from cavity.report.page import write_page
    from cavity.runs import open_run

    summaries = collect_all([open_run(path) for path in args.runs], args.data_changed)
    for summary in summaries:
        for note in summary.notes:
            say(f"{summary.name}: {note}", sys.stderr)
    say(write_page(summaries, out))
    if args.plots is not None:
        from cavity.report.plots import save_plots

        say(f"{args.plots}: {len(save_plots(summaries, args.plots))} files")
    return 0


def _serve(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C, which is how it is meant to end."""
    from cavity.report.serve import serve
    from cavity.runs import open_run

    for name in ("out", "plots"):
        if getattr(args, name) is not None:
            raise UsageError(f"--{name} does not go with --serve, which writes no file")
    for path in args.runs:
        open_run(path)

    def ready(address: str) -> None:
        print(f"{address}  (Ctrl-C ends it)", flush=True)

    with contextlib.suppress(KeyboardInterrupt):
        serve(args.runs, args.port or 0, data_changed=args.data_changed, ready=ready)
    return 0
