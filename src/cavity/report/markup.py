"""Elements of HTML and SVG. Attributes and ``text`` are escaped; children are markup already."""

from __future__ import annotations

import html
import re

#: Control characters, which HTML does not allow even when escaped.
FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
VOID = frozenset({"img", "meta", "link"})

Value = str | float


def text(words: str) -> str:
    """Any words as markup that shows them."""
    return html.escape(FORBIDDEN.sub("\ufffd", words), quote=True)


def number(value: float) -> str:
    """A coordinate with two decimals at most."""
    # Adding 0.0 turns a rounded −0.0 into 0.0.
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


def element(tag: str, attributes: dict[str, Value] | None = None, *children: str) -> str:
    """``<tag attributes>children</tag>``; numbers are rounded to hundredths."""
    written = "".join(
        f' {name}="{text(value) if isinstance(value, str) else number(value)}"'
        for name, value in (attributes or {}).items()
    )
    return f"<{tag}{written}>" if tag in VOID else f"<{tag}{written}>{''.join(children)}</{tag}>"
