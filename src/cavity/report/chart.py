"""Charts as inline SVG. Classes leave the colours to the page's style sheet, so that they follow light and dark."""

from __future__ import annotations

import json
import math

from cavity.report.axes import (
    NARROW,
    WIDTH,
    Box,
    Scale,
    axis_names,
    horizontal_grid,
    inner_ticks,
    label,
    nice_ticks,
    segment,
    svg,
    tick_label,
)
from cavity.report.content import Histogram, Line, Lines, Reliability
from cavity.report.markup import element, number, text
from cavity.report.palette import LIGHT
from cavity.report.wording import fixed, share

Point = tuple[float, float]


def colour_class(colour: int) -> str:
    """Runs beyond the palette repeat its colours, fainter."""
    return f"c{colour % len(LIGHT)}" + ("" if colour < len(LIGHT) else " faint")


def finite_points(line: Line) -> list[list[Point]]:
    """The pieces of a curve between its gaps; what is None or not finite is a gap."""
    pieces: list[list[Point]] = [[]]
    for x, y in zip(line.x, line.y, strict=True):
        if y is not None and math.isfinite(y):
            pieces[-1].append((x, y))
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def line_chart(content: Lines, description: str) -> str:
    """Curves over epochs, with the numbers for the page's tooltip in ``data-lines``."""
    curves = [(line, finite_points(line)) for line in content.lines]
    points = [point for _, pieces in curves for piece in pieces for point in piece]
    if not points:
        return svg(120.0, description, label("no values", WIDTH / 2, 64, kind="name"))
    height = 280.0
    box = Box(46, 32, WIDTH - 12, height - 42)
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    low, high = min(0.0, *(y for _, y in points)), max(0.0, *(y for _, y in points))
    y_ticks = nice_ticks(low, content.top or high)
    x = Scale(*((first, last) if first < last else (first - 1, last + 1)), box.left + 6, box.right - 8)
    y = Scale(y_ticks[0], y_ticks[-1], box.bottom, box.top)
    ticks = "".join(label(tick_label(tick, 1), x(tick), box.bottom + 17) for tick in inner_ticks(first, last))
    drawn = "".join(_curve(line, pieces, x, y) for line, pieces in curves if pieces)
    hover = [_hover(line, pieces, x, y) for line, pieces in curves if pieces]
    return svg(
        height,
        description,
        horizontal_grid(y_ticks, y, box),
        ticks,
        axis_names(content.x_label, content.y_label, box, height),
        drawn,
        data_lines=json.dumps(hover, ensure_ascii=False, separators=(",", ":")),
        data_span=f"{number(box.top)} {number(box.bottom)}",
        tabindex="0",
    )


def _curve(line: Line, pieces: list[list[Point]], x: Scale, y: Scale) -> str:
    path = "".join("M" + "L".join(f"{number(x(a))} {number(y(b))}" for a, b in piece) for piece in pieces)
    kind = "curve dashed" if line.dashed else "curve"
    end = pieces[-1][-1]
    return element(
        "g",
        {"class": colour_class(line.colour)},
        element("path", {"class": kind, "d": path}),
        element("circle", {"class": "end", "cx": x(end[0]), "cy": y(end[1]), "r": 3.0}),
    )


def _hover(line: Line, pieces: list[list[Point]], x: Scale, y: Scale) -> dict[str, object]:
    """Name, class and points [epoch, value, x, y] of a curve."""
    points = [[a, float(f"{b:.5g}"), round(x(a), 1), round(y(b), 1)] for piece in pieces for a, b in piece]
    return {"name": line.name, "class": colour_class(line.colour), "dashed": line.dashed, "points": points}


def legend(content: Lines) -> str:
    """Names of the curves with a sample of their stroke; nothing for a single one."""
    named = [line for line in content.lines if line.in_legend]
    if len(named) < 2:
        return ""
    entries = (
        element(
            "li",
            {"class": colour_class(line.colour)},
            element(
                "svg",
                {"viewBox": "0 0 26 8", "aria-hidden": "true"},
                element("path", {"class": "curve dashed" if line.dashed else "curve", "d": "M1 4H25"}),
            ),
            text(line.name),
        )
        for line in named
    )
    return element("ul", {"class": "legend"}, *entries)


def histogram(content: Histogram, description: str) -> str:
    """Shares as bars that touch; each says its numbers when pointed at."""
    height = 200.0
    box = Box(36, 26, NARROW - 12, height - 42)
    ticks = nice_ticks(0.0, 100 * float(content.shares.max()), 4)
    low, high = float(content.edges[0]), float(content.edges[-1])
    x, y = Scale(low, high, box.left, box.right), Scale(0.0, ticks[-1], box.bottom, box.top)
    bars = "".join(
        _bar(x(left) + 0.4, y(100 * part), x(right) - x(left) - 0.8, box.bottom - y(100 * part), "bar", words)
        for left, right, part in zip(content.edges, content.edges[1:], content.shares, strict=False)
        for words in [f"{fixed(left, 2)} to {fixed(right, 2)}: {share(part)}"]
        if part > 0
    )
    places = [low, low / 2, 0.0, high / 2, high] if high == 1 else [low, 0.0, high]
    names = "".join(label(f"{place:.2g}".replace("-", "−"), x(place), box.bottom + 17) for place in places)
    return svg(
        height,
        description,
        horizontal_grid(ticks, y, box),
        element("g", {"class": colour_class(content.colour)}, bars),
        names,
        axis_names(content.x_label, content.y_label, box, height),
        width=NARROW,
        **{"class": "narrow"},
    )


def _bar(x: float, y: float, width: float, height: float, kind: str, words: str) -> str:
    attributes: dict[str, str | float] = {"class": kind, "x": x, "y": y, "width": width, "height": height}
    return element("rect", attributes, element("title", {}, text(words)))


def reliability_chart(content: Reliability, description: str) -> str:
    """Accuracy of each bin of confidence with its gap to the diagonal, over a strip with the share of samples."""
    height = 400.0
    box, strip = Box(46, 32, WIDTH - 12, 292), Box(46, 312, WIDTH - 12, 360)
    x, y = Scale(0.0, 1.0, box.left, box.right), Scale(0.0, 1.0, box.bottom, box.top)
    bins = content.bins
    width = 1 / len(bins.share)
    largest = max(float(bins.share.max()), 1e-9)
    bars, counts = [], []
    for place, (part, confidence, accuracy) in enumerate(zip(bins.share, bins.confidence, bins.accuracy, strict=True)):
        if part == 0:
            continue
        left, wide = x(place * width) + 1.5, x(width) - x(0) - 3
        words = f"confidence {share(confidence)}, right {share(accuracy)}, {share(part)} of the samples"
        upper, lower = y(max(accuracy, confidence)), y(min(accuracy, confidence))
        bars.append(_bar(left, lower, wide, box.bottom - lower, "bar", words))
        bars.append(_bar(left, upper, wide, lower - upper, "gap" if confidence > accuracy else "modest", words))
        tall = (strip.bottom - strip.top) * part / largest
        counts.append(_bar(left, strip.bottom - tall, wide, tall, "bar", words))
    ends = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    return svg(
        height,
        description,
        horizontal_grid(ends, y, box),
        element("g", {"class": colour_class(content.colour)}, *bars),
        segment(x(0), y(0), x(1), y(1), "diagonal"),
        segment(strip.left, strip.bottom, strip.right, strip.bottom, "base"),
        element("g", {"class": colour_class(content.colour) + " muted"}, *counts),
        label(share(largest), strip.left - 7, strip.top + 8, "end"),
        "".join(label(tick_label(end, 0.2), x(end), strip.bottom + 17) for end in ends),
        axis_names("confidence of the prediction", "share that is right", box, height),
    )
