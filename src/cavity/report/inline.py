"""A drawing by matplotlib as SVG within a page: small, in the page's own colours, with numbers to point at."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
from matplotlib.axes import Axes

from cavity.report.content import Figure, Line, Lines
from cavity.report.palette import LIGHT, css_class
from cavity.report.plots import ALARM, BASE, INK, LETTERS, ON_COLOUR, RULE, TIP, draw, styled
from cavity.report.wording import printable

#: Colours of the drawing, and the variables of the style sheet that follow light and dark.
VARIABLES = {colour: f"var(--c{number})" for number, colour in enumerate(LIGHT)} | {
    INK: "var(--ink)",
    RULE: "var(--grid)",
    BASE: "var(--base)",
    ALARM: "var(--differ)",
    ON_COLOUR: "var(--on-colour)",
}
#: What the style sheet decides.
LEFT_OUT = re.compile(rf"font-family: [^;]*|font: {LETTERS:g}px [^;]*|stroke-line\w+: \w+|font-size: {LETTERS:g}px")
NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
#: Radius of the mark at the end of a curve.
MARK = "2.5"


def inline(figure: Figure) -> str:
    """The figure's drawing as an ``svg`` element without ids, so that a page can hold many."""
    stream = io.StringIO()
    with styled():
        sheet = draw(figure.content)
        sheet.savefig(stream, format="svg", metadata=NO_METADATA, transparent=True)
    drawn = ET.fromstring(printable(stream.getvalue()))
    about = {"role": "img", "aria-label": f"{figure.title}. {figure.caption}"}
    svg = ET.Element("svg", {"viewBox": drawn.attrib["viewBox"], **about})
    if isinstance(figure.content, Lines):
        axes, height = sheet.axes[0], sheet.bbox.height
        hover = [_hover(line, axes, height) for line in figure.content.lines]
        svg.set("data-lines", json.dumps(hover, ensure_ascii=False, separators=(",", ":")))
        svg.set("data-span", f"{height - axes.bbox.y1:.1f} {height - axes.bbox.y0:.1f}")
        svg.set("data-x", figure.content.x_label)
        svg.set("tabindex", "0")
    _copy(drawn, svg)
    return ET.tostring(svg, encoding="unicode")


def _hover(line: Line, axes: Axes, height: float) -> dict[str, object]:
    """Name, class and points [epoch, value, x, y] of a curve, for the page's script."""
    y = line.values
    places = axes.transData.transform(np.column_stack([line.x, y]))
    points = [
        [epoch, float(f"{value:.5g}"), round(across, 1), round(height - up, 1)]
        for epoch, value, (across, up) in zip(line.x, y.tolist(), places.tolist(), strict=True)
        if np.isfinite(value)
    ]
    return {"name": line.name, "class": css_class(line.colour), "dashed": line.dashed, "points": points}


def _copy(source: ET.Element, target: ET.Element) -> None:
    """Append what ``source`` draws: groups only where there are words to show, and dots as circles."""
    for node in source:
        tag, words = node.tag.rpartition("}")[2], node.get("id", "")
        kept = {
            name: _short(node.attrib[name]) for name in ("d", "x", "y", "transform", "style") if name in node.attrib
        }
        if tag == "g":
            group = ET.SubElement(target, "g") if words.startswith(TIP) else target
            if group is not target:
                ET.SubElement(group, "title").text = words.removeprefix(TIP)
            _copy(node, group)
        elif tag == "use":
            ET.SubElement(target, "circle", {"cx": kept["x"], "cy": kept["y"], "r": MARK, "style": kept["style"]})
        elif tag in ("path", "text") and kept.get("style") != "fill:none":
            ET.SubElement(target, tag, {name: value for name, value in kept.items() if value}).text = node.text


def _short(written: str) -> str:
    """An attribute with two decimals, without what the style sheet decides and no turn by 0, in the page's colours."""
    written = re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), written)
    written = re.sub(r"#[0-9a-f]{6}", lambda colour: VARIABLES.get(colour[0], colour[0]), LEFT_OUT.sub("", written))
    written = re.sub(r"(?<=[MLz:;])\s+|\s+(?=[MLz])|^[;\s]+|[;\s]+$|;\s*(?=;)", "", written)
    return "" if written.startswith("rotate(-0 ") else written
