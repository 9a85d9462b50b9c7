"""One self-contained HTML page about one or several runs, and the same figures for print.

``collect`` turns a run into numbers (``RunSummary``), ``overview`` turns these into descriptions of figures, ``plots``
draws the figures, and ``page`` puts them on the page. Importing this package is cheap; the rest is imported late.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cavity.runs import Run

__all__ = ["write", "write_plots"]


def write(runs: Sequence[Run], out: str | os.PathLike[str]) -> Path:
    """Write the page about ``runs`` (see ``cavity.runs.open_run``) to ``out`` and return its path."""
    from cavity.report.collect import collect_all
    from cavity.report.page import write_page

    return write_page(collect_all(runs), out)


def write_plots(runs: Sequence[Run], folder: str | os.PathLike[str]) -> list[Path]:
    """Write the same figures as PNG and SVG files into ``folder`` and return their paths."""
    from cavity.report.collect import collect_all
    from cavity.report.plots import save_plots

    return save_plots(collect_all(runs), folder)
