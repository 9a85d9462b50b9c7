"""A drawing by matplotlib as SVG within a page: small, in the page's own colours, with numbers to point at."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from math import isfinite

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
        for name, value in _numbers(figure.content, sheet.axes[0], sheet.bbox.height).items():
            svg.set(f"data-{name}", value)
        svg.set("tabindex", "0")
    _copy(drawn, svg)
    return ET.tostring(svg, encoding="unicode")


def _numbers(content: Lines, axes: Axes, height: float) -> dict[str, str]:
    """What the page's script needs to show values, and to draw the curves anew: their points, the labels, and where
    the axes of this drawing are."""
    box, (x0, x1), (y0, y1) = axes.bbox, axes.get_xlim(), axes.get_ylim()
    about = {
        "lines": json.dumps(list(map(_curve, content.lines)), ensure_ascii=False, separators=(",", ":")),
        "box": f"{box.x0:.2f} {height - box.y1:.2f} {box.x1:.2f} {height - box.y0:.2f}",
        "range": " ".join(f"{end:.8g}" for end in (x0, x1, y0, y1)),
        "x": content.x_label,
        "y": content.y_label,
    }
    return about if content.top is None else {**about, "top": f"{content.top:g}"}


def _curve(line: Line) -> dict[str, object]:
    """Name, class, run and the points [x, y] of a curve."""
    points = [
        [float(f"{x:.6g}"), float(f"{y:.5g}")] for x, y in zip(line.x, line.values.tolist(), strict=True) if isfinite(y)
    ]
    about: dict[str, object] = {"name": line.name, "class": css_class(line.colour), "run": line.run, "points": points}
    about |= {"dashed": True} if line.dashed else {}
    return about if line.in_legend else {**about, "quiet": True}


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
