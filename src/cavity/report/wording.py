"""Numbers and names as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

MISSING = "—"
#: From here on, digits are counted by a power of ten.
LARGE = 1e6
#: Control characters, which neither HTML nor XML allows, escaped or not, and bytes of a file's name that are no text.
FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def fixed(value: float | None, digits: int, unit: str = "") -> str:
    """``digits`` decimals and a unit; a dash for what is missing or not finite."""
    if value is None or not math.isfinite(value):
        return MISSING
    number = f"{value:.{digits}f}" if abs(value) < LARGE else f"{value:.2e}"
    return f"{number}{unit}".replace("-", "−")


def error(value: float | None, percent: bool) -> str:
    """An error with its unit: percent, or a bare root mean square."""
    return fixed(value, 2, "\u00a0%") if percent else fixed(value, 4)


def percent(value: float) -> str:
    """A share of 1 in percent with two decimals."""
    return fixed(100 * value, 2, "\u00a0%")


def share(value: float) -> str:
    """A share of 1 in percent, never rounded up to all or down to nothing."""
    if 0 < value < 0.001:
        return "<0.1\u00a0%"
    if 0.999 < value < 1:
        return ">99.9\u00a0%"
    return fixed(100 * value, 1, "\u00a0%")


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if not math.isfinite(seconds):
        return MISSING
    if seconds < 60:
        return f"{seconds:.1f}\u00a0s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}\u00a0min {rest:02d}\u00a0s"
    return f"{minutes // 60}\u00a0h {minutes % 60:02d}\u00a0min"


def printable(words: str) -> str:
    """The words with a replacement character for each control character."""
    return FORBIDDEN.sub("\ufffd", words)


def listed(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def counted(number: int, noun: str) -> str:
    """``1 layer``, ``2 layers``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def thin(number: int) -> str:
    """A whole number with thin spaces between its thousands."""
    return f"{number:,}".replace(",", "\u202f")
