"""Tables and plots below results/ become part of the site, so that the links to them work there as in the checkout."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

SHOWN = (".md", ".png", ".svg")
OUTSIDE = re.compile(r"\]\((?:\.\./)+results/")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what results/ has to show, without a place in the navigation."""
    root = Path(config.config_file_path).parent
    for path in sorted((root / "results").glob("*/*")):
        if path.suffix in SHOWN:
            uri = path.relative_to(root).as_posix()
            file = File.generated(config, uri, abs_src_path=str(path))
            file.inclusion = InclusionLevel.NOT_IN_NAV
            files.append(file)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """On the site results/ lies beside the pages of docs/, in the checkout it lies one folder further up."""
    depth = len(PurePosixPath(page.file.src_uri).parts) - 1
    if page.file.src_uri.startswith("results/"):
        return markdown
    return OUTSIDE.sub("](" + "../" * depth + "results/", markdown)
