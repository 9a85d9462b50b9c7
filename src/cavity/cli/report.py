"""``cavity report RUN [RUN…]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cavity.cli.output import say
from cavity.cli.parser import add_data_changed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``cavity report``."""
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="run folders; several are shown side by side")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="where the page goes (default: RUN/report.html for one run, report.html here for several)",
    )
    add_data_changed(parser)
    parser.add_argument(
        "--plots", type=Path, metavar="DIR", help="also write every figure as PNG and SVG into DIR (default: no)"
    )


def run(args: argparse.Namespace) -> int:
    """Write the page, and the plots if asked for; 0 on success."""
    from cavity.report.collect import collect_all
    from cavity.report.page import write_page
    from cavity.runs import open_run

    summaries = collect_all([open_run(path) for path in args.runs], args.data_changed)
    for summary in summaries:
        for note in summary.notes:
            say(f"{summary.name}: {note}", sys.stderr)
    out = args.out or (args.runs[0] / "report.html" if len(args.runs) == 1 else Path("report.html"))
    say(write_page(summaries, out))
    if args.plots is not None:
        from cavity.report.plots import save_plots

        say(f"{args.plots}: {len(save_plots(summaries, args.plots))} files")
    return 0
