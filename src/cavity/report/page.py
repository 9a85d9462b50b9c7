"""The page: sections of figures in one HTML file that needs nothing else. Its markup is ``page.html.j2``."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
from collections.abc import Sequence
from functools import cache
from importlib import resources
from itertools import accumulate
from pathlib import Path

import numpy as np
from jinja2 import Environment, StrictUndefined
from numpy.typing import NDArray
from PIL import Image

from cavity.report.content import Gallery, Lines, Table
from cavity.report.download import csv_uri, epochs_csv, runs_csv
from cavity.report.inline import inline
from cavity.report.overview import final_numbers, sections, shared_facts
from cavity.report.palette import DARK, LIGHT, css_class, variables
from cavity.report.seeds import groups, has_seeds
from cavity.report.summary import RunSummary
from cavity.report.wording import counted, listed, printable
from cavity.util.files import write_whole
from cavity.util.version import __version__

#: The page's script, in the order of its parts.
SCRIPTS = ("chart.js", "page.js")


def write_page(runs: Sequence[RunSummary], out: str | os.PathLike[str]) -> Path:
    """Write the page in one rename, so that a reader never sees half of it; returns the path."""
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, page(runs).encode())
    return path


def page(runs: Sequence[RunSummary], live: bool = False) -> str:
    """The whole document. Its content security policy allows its own script and style, and no connection at all; a
    ``live`` page may ask the server that it came from whether there is a newer one."""
    if not runs:
        raise ValueError("runs must hold at least one summary, got none")
    parts = "".join(map(_file, (*SCRIPTS, "live.js") if live else SCRIPTS))
    script = f'(() => {{\n"use strict";\n{parts}}})();'
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    markup = _environment().from_string(_file("page.html.j2"))
    document = markup.render(
        runs=runs,
        sections=sections(runs),
        lead=lead(runs),
        numbers=final_numbers(runs[0]),
        policy=f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        + ("connect-src 'self'; " if live else "")
        + "base-uri 'none'; form-action 'none'",
        live=live,
        facts=shared_facts(runs),
        going=[run.name for run in runs if not run.finished],
        found=groups(runs),
        about=json.dumps(about(runs), ensure_ascii=False, separators=(",", ":")),
        epochs_csv=csv_uri(epochs_csv(runs)),
        runs_csv=csv_uri(runs_csv(runs)),
        style=_style(),
        script=script,
        version=__version__,
    )
    return printable(document)


def about(runs: Sequence[RunSummary]) -> dict[str, object]:
    """What the script knows of the runs: the training time after each epoch, and which differ in their seeds only."""
    times = [
        {
            "epochs": [record.epoch for record in run.records],
            "times": [float(f"{time:.5g}") for time in accumulate(record.seconds for record in run.records)],
        }
        for run in runs
    ]
    found = [{"name": group.name, "class": css_class(group.places[0]), "runs": group.places} for group in groups(runs)]
    return {"runs": times, "groups": found}


@cache
def _file(name: str) -> str:
    return resources.files("cavity.report").joinpath(name).read_text(encoding="utf-8")


def _environment() -> Environment:
    """Everything that is not marked as safe in the template is escaped."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(inline=inline, listed=listed, png_uri=png_uri)
    environment.globals.update(css_class=css_class, has_seeds=has_seeds)
    for name, kind in {"table": Table, "gallery": Gallery, "lines": Lines}.items():
        environment.tests[name] = lambda content, kind=kind: isinstance(content, kind)
    return environment


def png_uri(pixels: NDArray[np.uint8]) -> str:
    """``data:image/png;base64,…`` of (height, width), (height, width, 3) or (height, width, 4) bytes."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode("ascii")


def _style() -> str:
    dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}"
    series = "".join(f".c{number}{{--series:var(--c{number})}}" for number in range(len(LIGHT)))
    return f"{_file('page.css')}\n:root {{ {variables(LIGHT)} }}\n{dark}\n{series}\n"


def lead(runs: Sequence[RunSummary]) -> str:
    """What was trained on what, in a sentence."""
    if len(runs) > 1:
        return listed([run.name for run in runs]) + "."
    run = runs[0]
    kinds = listed(list(dict.fromkeys(layer.kind for layer in run.layers)))
    where = f" on {run.data}" if run.data else ""
    layers, epochs = counted(len(run.layers), "layer"), counted(len(run.records), "epoch")
    epochs += "" if run.finished else " so far"
    return f"{layers} of {kinds} weights, trained by message passing{where} for {epochs}."
