"""Colours: sober, told apart by their lightness as well as their hue, and legible on paper, white and near-black."""

from __future__ import annotations

#: One per run or layer, for light pages and print, and the same hues for dark pages.
LIGHT = ("#2b6cb0", "#c05f14", "#2f855a", "#8250b4", "#b83247", "#14808f", "#8f7012", "#5f6b7a")
DARK = ("#77b0ee", "#f0a35c", "#7cc99a", "#bfa0ea", "#f08c99", "#66c7d4", "#d8bc58", "#a8b2c0")

#: Negative and positive weights in pictures, on any background: they fade to transparent at 0.
NEGATIVE, POSITIVE = (62, 124, 196), (222, 120, 40)


def css_class(number: int) -> str:
    """The style sheet's classes of a colour; numbers beyond the palette repeat its colours, fainter."""
    return f"c{number % len(LIGHT)}" + ("" if number < len(LIGHT) else " faint")


def variables(colours: tuple[str, ...]) -> str:
    """CSS declarations --c0, --c1, …"""
    return "".join(f"--c{number}:{colour};" for number, colour in enumerate(colours))
