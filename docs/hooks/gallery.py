"""The gallery: each Python file of docs/gallery/ is run, and becomes a page with its output and pictures, and a
notebook.

What a run has shown is kept below build/gallery, under a digest of the example and of the library, so that only changes
are run again (``mkdocs serve``). ``<!-- gallery -->`` in a page becomes a card for each example, in the order of the
navigation.

Why no plug-in: those for notebooks start a Jupyter kernel for every page, and torch with each of them. Here it is
imported once, nothing is installed, and all of it is on two screens.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import time
import traceback
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cells import Cell, Shown, notebook, read, run
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

import cavity

MARK = "<!-- gallery -->"
LOG = logging.getLogger("mkdocs.hooks.gallery")
_cards: list[str] = []


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page, a notebook and the pictures of each example."""
    folder, kept = Path(config.docs_dir) / "gallery", Path(config.config_file_path).parent / "build" / "gallery"
    _cards.clear()
    for path in sorted(folder.glob("*.py"), key=_order(config)):
        cells = read(path.read_text())
        shown = remembered(path, cells, kept)
        for number, picture in enumerate(_pictures(shown), start=1):
            files.append(File.generated(config, f"gallery/{path.stem}-{number}.png", content=picture))
        pages = {"md": page(path.stem, cells, shown), "ipynb": json.dumps(notebook(cells, shown), indent=1) + "\n"}
        for ending, content in pages.items():
            files.append(File.generated(config, f"gallery/{path.stem}.{ending}", content=content))
        _cards.append(card(path.stem, cells))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return markdown.replace(MARK, '<div class="cards">\n' + "\n".join(_cards) + "\n</div>")


def _order(config: MkDocsConfig) -> Any:
    """The place of an example in the navigation; those that are not in it come first, and mkdocs complains."""
    listed = json.dumps(config.nav)
    return lambda path: listed.find(f"gallery/{path.stem}.md")


def remembered(path: Path, cells: list[Cell], kept: Path) -> list[Shown]:
    """What the example shows: from a run of the same example with the same library, or from a run now."""
    file = kept / f"{path.stem}-{_digest(path)}.json"
    if file.exists():
        return [Shown(text, [b64decode(one) for one in pictures]) for text, pictures in json.loads(file.read_text())]
    started = time.process_time()
    try:
        shown = run(cells, str(path))
    except Exception as error:
        raise PluginError(f"the example {path.name} failed:\n{traceback.format_exc()}") from error
    LOG.info("%s ran for %.1f s", path.name, time.process_time() - started)
    kept.mkdir(parents=True, exist_ok=True)
    for old in kept.glob(f"{path.stem}-*.json"):
        old.unlink()
    file.write_text(json.dumps([[one.text, [b64encode(it).decode() for it in one.pictures]] for one in shown]))
    return shown


def _digest(path: Path) -> str:
    """Of the example, of how it is run and of all that the library consists of."""
    home = Path(cavity.__file__).parent
    used = [path, Path(__file__).with_name("cells.py"), *sorted(one for one in home.rglob("*") if one.is_file())]
    parts = (one.read_bytes() for one in used if one.suffix != ".pyc")
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _pictures(shown: list[Shown]) -> Iterator[bytes]:
    for one in shown:
        yield from one.pictures


def page(name: str, cells: list[Cell], shown: list[Shown]) -> str:
    """The example in Markdown, each cell with what it has shown."""
    parts, number = [], 0
    for cell, result in zip(cells, shown, strict=True):
        parts.append(cell.text if cell.prose else f"```python\n{cell.text}\n```")
        if result.text:
            parts.append(f"```text\n{result.text.rstrip()}\n```")
        for _ in result.pictures:
            number += 1
            parts.append(f"![{cell.title}]({name}-{number}.png)")
    files = f"[as a notebook]({name}.ipynb){{ download }} or [as a Python file]({name}.py){{ download }}"
    return "\n\n".join([*parts, f"Download this example {files}."]) + "\n"


def card(name: str, cells: list[Cell]) -> str:
    """A link with the first picture, the title and the first sentence of an example."""
    title, _, prose = cells[0].text.partition("\n")
    first = re.split(r"(?<=[.?]) ", " ".join(prose.split()))[0]
    picture = f'<img src="{name}-1.png" alt="" loading="lazy">'
    words = f"<strong>{title.removeprefix('# ')}</strong><span>{first}</span>"
    return f'<a class="card" href="{name}.html">{picture}{words}</a>'
