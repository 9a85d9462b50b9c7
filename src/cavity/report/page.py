"""The page: sections of figures in one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path

import cavity
from cavity.report import chart
from cavity.report.content import Content, Figure, Gallery, Histogram, Lines, Matrix, Reliability, Section, Table, Tile
from cavity.report.figures import sections
from cavity.report.heatmap import heat_map
from cavity.report.markup import element, text
from cavity.report.overview import final_numbers
from cavity.report.palette import DARK, LIGHT, variables
from cavity.report.pictures import png_uri
from cavity.report.summary import RunSummary
from cavity.report.wording import listed
from cavity.util.files import write_whole


def write_page(runs: Sequence[RunSummary], out: str | os.PathLike[str]) -> Path:
    """Write the page in one rename, so that a reader never sees half of it; returns the path."""
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, page(runs).encode())
    return path


def page(runs: Sequence[RunSummary]) -> str:
    """The whole document. Its content security policy allows its own script and style, and no connection at all."""
    if not runs:
        raise ValueError("runs must hold at least one summary, got none")
    script, style = _file("page.js"), _style()
    policy = (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = sections(runs)
    head = (
        element("meta", {"charset": "utf-8"}),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "color-scheme", "content": "light dark"}),
        element("link", {"rel": "icon", "href": "data:,"}),
        element("title", {}, text(f"{listed([run.name for run in runs])} · cavity report")),
        f"<style>{style}</style>",
    )
    body = (
        _header(runs, parts),
        element("main", {}, *(section(part) for part in parts)),
        element("footer", {}, text(f"Written by cavity {cavity.__version__}. Point at a chart to read its numbers.")),
        f"<script>{script}</script>",
    )
    document = element("html", {"lang": "en"}, element("head", {}, *head), element("body", {}, *body))
    return f"<!doctype html>\n{document}\n"


@cache
def _file(name: str) -> str:
    return resources.files("cavity.report").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")


def _style() -> str:
    dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}"
    series = "".join(f".c{number}{{--series:var(--c{number})}}" for number in range(len(LIGHT)))
    return f"{_file('page.css')}\n:root {{ {variables(LIGHT)} }}\n{dark}\n{series}\n"


def _header(runs: Sequence[RunSummary], parts: Sequence[Section]) -> str:
    links = (element("li", {}, element("a", {"href": f"#{part.key}"}, text(part.title))) for part in parts)
    notes = (
        element("p", {"class": "note", "role": "note"}, text(note if len(runs) == 1 else f"{run.name}: {note}"))
        for run in runs
        for note in run.notes
    )
    return element(
        "header",
        {},
        element("p", {"class": "kicker"}, "cavity report"),
        element("h1", {}, text(runs[0].name if len(runs) == 1 else f"{len(runs)} runs side by side")),
        element("p", {"class": "lead"}, text(lead(runs))),
        *notes,
        _numbers(runs[0]) if len(runs) == 1 else "",
        element("nav", {"aria-label": "Sections"}, element("ul", {}, *links)),
    )


def lead(runs: Sequence[RunSummary]) -> str:
    """What was trained on what, in a sentence."""
    if len(runs) > 1:
        return listed([run.name for run in runs]) + "."
    run = runs[0]
    kinds = listed(list(dict.fromkeys(layer.kind for layer in run.layers)))
    where = f" on {run.data}" if run.data else ""
    layers, epochs = len(run.layers), len(run.records)
    return (
        f"{layers} {'layer' if layers == 1 else 'layers'} of {kinds} weights, trained by message passing{where} "
        f"for {epochs} {'epoch' if epochs == 1 else 'epochs'}."
    )


def _numbers(run: RunSummary) -> str:
    tiles = (
        element(
            "div",
            {},
            element("dt", {}, text(number.label)),
            element("dd", {}, text(number.written)),
            element("dd", {}, text(number.about)),
        )
        for number in final_numbers(run)
    )
    return element("dl", {"class": "numbers"}, *tiles)


def section(part: Section) -> str:
    """A heading, a paragraph and the figures."""
    return element(
        "section",
        {"id": part.key, "aria-labelledby": f"{part.key}-title"},
        element("h2", {"id": f"{part.key}-title"}, text(part.title)),
        element("p", {}, text(part.text)) if part.text else "",
        element("div", {"class": f"figures of{part.columns}"}, *(figure(one) for one in part.figures)),
    )


def figure(one: Figure) -> str:
    """Title, drawing and caption."""
    return element(
        "figure",
        {"id": one.key},
        element("h3", {}, text(one.title)),
        drawing(one.content, f"{one.title}. {one.caption}"),
        element("figcaption", {}, text(one.caption)),
    )


def drawing(content: Content, description: str) -> str:
    """The figure's content as markup; ``description`` is for those who cannot see it."""
    match content:
        case Lines():
            return chart.legend(content) + chart.line_chart(content, description)
        case Histogram():
            return chart.histogram(content, description)
        case Reliability():
            return chart.reliability_chart(content, description)
        case Matrix():
            return heat_map(content, description)
        case Gallery():
            bare = not any(tile.text for tile in content.tiles)
            return element("div", {"class": "gallery bare" if bare else "gallery"}, *map(_tile, content.tiles))
        case Table():
            return table(content, description)


def _tile(tile: Tile) -> str:
    height, width = tile.pixels.shape[:2]
    image = element(
        "img",
        {
            "src": png_uri(tile.pixels),
            "alt": tile.description,
            "title": tile.description,
            "width": str(width),
            "height": str(height),
        },
    )
    lines = element("b", {}, text(tile.text)), text(tile.detail), element("i", {}, text(tile.correction))
    words = element("figcaption", {}, *lines) if tile.text else ""
    return element("figure", {"class": "tile alarm" if tile.correction else "tile"}, image, words)


def table(content: Table, description: str) -> str:
    """Rows with their first cell as a heading; too wide a table scrolls by itself, not the page."""

    def cell(row: int, column: int, words: str) -> str:
        inner = element("mark", {}, text(words)) if (row, column) in content.marked else text(words)
        if column > 0:
            return element("td", {}, inner)
        swatch = element("span", {"class": f"swatch {chart.colour_class(row)}"}) if content.coloured else ""
        return element("th", {"scope": "row"}, swatch, inner)

    head = element("tr", {}, *(element("th", {"scope": "col"}, text(words)) for words in content.head))
    rows = (
        element("tr", {}, *(cell(place, column, words) for column, words in enumerate(row)))
        for place, row in enumerate(content.rows)
    )
    body = element("thead", {}, head) + element("tbody", {}, *rows)
    return element(
        "div",
        {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": description},
        element("table", {"class": "numeric" if content.numeric else "words"}, body),
    )
