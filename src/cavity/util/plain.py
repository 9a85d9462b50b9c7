"""JSON from strangers, in memory that its length explains.

Three bytes (``{},``) can stand for a table of seventy. Everything else that JSON has takes at most some fifteen times
its text, so that it is enough to count lists and tables before they are made.
"""

from __future__ import annotations

import json
from typing import Any

#: What an empty list or table takes, and its place in the one around it.
CONTAINER_BYTES = 72
#: What lists and tables may take: some freely, and beyond it a multiple of the text.
FREE_BYTES, TIMES = 1 << 22, 8


def from_json(text: str | bytes) -> Any:
    """The values that a text describes; ValueError, or RecursionError where they are nested too deeply."""
    marks: tuple[Any, Any] = (b"{", b"[") if isinstance(text, bytes) else ("{", "[")
    containers = sum(text.count(mark) for mark in marks)
    if containers * CONTAINER_BYTES > FREE_BYTES + TIMES * len(text):
        raise ValueError(f"it has {containers:,} lists and tables in {len(text):,} characters")
    return json.loads(text)
