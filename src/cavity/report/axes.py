"""Scales, ticks and the frame that the charts share. Coordinates are those of the SVG's view box, y downwards."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cavity.report.markup import element, number, text
from cavity.report.wording import LARGE

#: Widths of the view boxes of charts: two or three side by side, at about this size.
WIDTH, NARROW = 440.0, 310.0
#: Steps of an axis, times a power of ten.
NICE_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Scale:
    """Maps values low … high to coordinates start … end."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True)
class Box:
    """The area that data is drawn in."""

    left: float
    top: float
    right: float
    bottom: float


def nice_step(span: float, intervals: int, whole: bool = False) -> float:
    """The smallest step of NICE_STEPS times a power of ten that needs at most ``intervals`` of them for ``span``."""
    raw = span / intervals
    power = 10.0 ** math.floor(math.log10(raw))
    # Rounding must not push a step that fits exactly to the next one.
    step = next(nice * power for nice in NICE_STEPS if nice * power >= raw * (1 - 1e-9))
    return max(1.0, float(math.ceil(step))) if whole else step


def nice_ticks(low: float, high: float, intervals: int = 5, whole: bool = False) -> list[float]:
    """Round values from low to high, both covered: the first tick is at or below low, the last at or above high."""
    if not (math.isfinite(low) and math.isfinite(high)) or low > high:
        raise ValueError(f"low and high must be finite and in order, got {low} and {high}")
    if low == high:
        low, high = (low - 1, high + 1) if whole or low == 0 else (low - abs(low) / 2, high + abs(high) / 2)
    step = nice_step(high - low, intervals, whole)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [place * step for place in range(first, last + 1)]


def inner_ticks(low: float, high: float, intervals: int = 6) -> list[float]:
    """Whole values within low … high, for an axis of epochs whose ends are the data's own."""
    return [tick for tick in nice_ticks(low, high, intervals, whole=True) if low <= tick <= high]


def tick_label(value: float, step: float) -> str:
    """As many decimals as the step needs, and a real minus sign."""
    if max(abs(value), step) >= LARGE:
        return f"{value:.3g}".replace("-", "−")
    decimals = 0
    while decimals < 8 and abs(step * 10**decimals - round(step * 10**decimals)) > 1e-6:
        decimals += 1
    return f"{round(value, decimals) + 0.0:.{decimals}f}".replace("-", "−")


def label(words: str, x: float, y: float, anchor: str = "middle", kind: str = "tick", rotate: float = 0.0) -> str:
    """A word in a chart; ``rotate`` is in degrees around (x, y)."""
    attributes: dict[str, str | float] = {"class": kind, "x": x, "y": y, "text-anchor": anchor}
    if rotate:
        attributes["transform"] = f"rotate({number(rotate)} {number(x)} {number(y)})"
    return element("text", attributes, text(words))


def segment(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return element("line", {"class": kind, "x1": x1, "y1": y1, "x2": x2, "y2": y2})


def horizontal_grid(ticks: list[float], scale: Scale, box: Box) -> str:
    """A line and a label at the left for each tick of the y axis."""
    step = ticks[1] - ticks[0]
    return "".join(
        segment(box.left, scale(tick), box.right, scale(tick), "base" if tick == 0 else "grid")
        + label(tick_label(tick, step), box.left - 7, scale(tick) + 4, "end")
        for tick in ticks
    )


def axis_names(x_label: str, y_label: str, box: Box, height: float) -> str:
    """What the axes are: below the chart in the middle, and above its upper left corner."""
    below = label(x_label, (box.left + box.right) / 2, height - 4, kind="name")
    return below + label(y_label, 2, 13, "start", "name")


def svg(height: float, description: str, *children: str, width: float = WIDTH, **attributes: str) -> str:
    """The chart itself, which screen readers announce as one image with its description."""
    return element(
        "svg",
        {
            "viewBox": f"0 0 {number(width)} {number(height)}",
            "role": "img",
            "aria-label": description,
            **{name.replace("_", "-"): value for name, value in attributes.items()},
        },
        *children,
    )
