"""The code blocks of a Markdown page, and what the page says about running them.

A block is run as it stands unless the line before it is one of these comments:

    <!-- not run: REASON -->     it is only parsed
    <!-- output -->              (text) what the block before it prints; … stands for anything

A title (```c title="main.c") is a file of that name with the block as its content.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

RUN = ("python", "sh")
SHOWN = ("text", "bibtex")
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<info>.*)$")
COMMENT = re.compile(r"^<!--\s*(?P<kind>not run|output)\s*(?::\s*(?P<reason>.*?))?\s*-->$")
TITLE = re.compile(r'\btitle="([^"]+)"')


@dataclass(frozen=True)
class Block:
    """One fenced block: where it starts, its language and text, the comment before it."""

    line: int
    language: str
    code: str
    title: str | None
    kind: str | None
    reason: str

    @property
    def runs(self) -> bool:
        return self.language in RUN and self.kind is None and self.title is None


def pages() -> list[Path]:
    """README.md and every page of the site."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = iter(enumerate(text.splitlines(), start=1))
    before = ""
    for number, line in lines:
        opening = FENCE.match(line)
        if opening is None:
            before = line.strip() or before
            continue
        closing = opening["indent"] + opening["ticks"]
        body = []
        for _, inner in lines:
            if inner.rstrip() == closing:
                break
            body.append(inner)
        else:
            raise ValueError(f"line {number}: the block is never closed")
        found.append(_block(number, opening["info"].strip(), "\n".join(body), COMMENT.match(before)))
        before = ""
    return found


def _block(line: int, info: str, body: str, comment: re.Match[str] | None) -> Block:
    title = TITLE.search(info)
    return Block(
        line=line,
        language=info.split(maxsplit=1)[0] if info else "",
        code=textwrap.dedent(body) + "\n",
        title=title[1] if title else None,
        kind=comment["kind"] if comment else None,
        reason=(comment["reason"] or "") if comment else "",
    )
