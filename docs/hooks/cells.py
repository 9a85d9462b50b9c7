"""Examples are Python files in the percent format, which editors and Jupytext know; here they are read, run and made
into notebooks.

    # %% [markdown]
    # # A title
    # A line of prose.
    # %% What the picture shows
    code

The title of a code cell is the description of its pictures. A picture is what is open when the cell calls ``plt.show``.
"""

from __future__ import annotations

import base64
import contextlib
import io
import re
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

HEAD = re.compile(r"^# %%(?P<prose> \[markdown\])?(?: (?P<title>.+))?$")
#: Dots per inch of pictures: twice what a page shows, for sharp screens.
DPI = 160


@dataclass(frozen=True)
class Cell:
    """Prose or code, with the number of the line that it starts below."""

    line: int
    prose: bool
    title: str
    text: str


@dataclass
class Shown:
    """What a cell has printed, and its pictures as PNG."""

    text: str = ""
    pictures: list[bytes] = field(default_factory=list)


def read(source: str) -> list[Cell]:
    """The cells of a file; ValueError where something stands before the first one, or prose is not a comment."""
    cells: list[Cell] = []
    head, start, body = None, 0, []
    for number, line in enumerate([*source.splitlines(), "# %%"], start=1):
        found = HEAD.match(line)
        if found is None:
            body.append(line)
            continue
        if head is not None:
            prose = head["prose"] is not None
            text = "\n".join(_uncommented(body, start) if prose else body).strip("\n")
            cells.append(Cell(start, prose, head["title"] or "", text))
        elif any(body):
            raise ValueError("line 1: an example begins with a cell: # %% [markdown]")
        head, start, body = found, number, []
    return cells


def _uncommented(lines: list[str], start: int) -> list[str]:
    for offset, line in enumerate(lines, start=1):
        if line and not line.startswith("#"):
            raise ValueError(f"line {start + offset}: prose is a comment, this is not: {line}")
    return [line.removeprefix("#").removeprefix(" ") for line in lines]


def run(cells: list[Cell], name: str) -> list[Shown]:
    """Run the cells one after the other in a new folder, with warnings as errors; what each of them shows."""
    import matplotlib.pyplot as plt

    namespace: dict[str, Any] = {"__name__": "__main__"}
    done = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        # Raised inside torch 2.13 when its compiler is first used; nothing of ours calls it.
        warnings.filterwarnings("ignore", "`torch.jit.script_method` is deprecated", DeprecationWarning)
        plt.switch_backend("Agg")
        for cell in cells:
            shown, printed = Shown(), io.StringIO()
            if not cell.prose:
                # Empty lines above the code give the numbers of the file's lines to a traceback.
                code = compile("\n" * cell.line + cell.text, name, "exec")
                with contextlib.redirect_stdout(printed), patch.object(plt, "show", _keep(shown)):
                    exec(code, namespace)
                shown.text = printed.getvalue()
            done.append(shown)
    return done


def _keep(shown: Shown) -> Any:
    """In place of ``plt.show``: keep the open figures, and close them."""
    import matplotlib.pyplot as plt

    def show() -> None:
        for number in plt.get_fignums():
            picture = io.BytesIO()
            # No software and no version in the file: the same figure gives the same bytes.
            plt.figure(number).savefig(picture, format="png", dpi=DPI, metadata={"Software": None})
            shown.pictures.append(picture.getvalue())
        plt.close("all")

    return show


def notebook(cells: list[Cell], shown: list[Shown]) -> dict[str, Any]:
    """The same as a Jupyter notebook (nbformat 4.5), with what the cells have shown."""
    return {
        "cells": list(_cells(cells, shown)),
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _cells(cells: list[Cell], shown: list[Shown]) -> Iterator[dict[str, Any]]:
    for number, (cell, result) in enumerate(zip(cells, shown, strict=True)):
        common = {"id": f"cell-{number}", "metadata": {}, "source": cell.text.splitlines(keepends=True)}
        if cell.prose:
            yield {"cell_type": "markdown", **common}
        else:
            outputs = list(_outputs(result))
            yield {"cell_type": "code", **common, "execution_count": None, "outputs": outputs}


def _outputs(result: Shown) -> Iterator[dict[str, Any]]:
    if result.text:
        yield {"output_type": "stream", "name": "stdout", "text": result.text.splitlines(keepends=True)}
    for picture in result.pictures:
        data = {"image/png": base64.b64encode(picture).decode()}
        yield {"output_type": "display_data", "data": data, "metadata": {}}
