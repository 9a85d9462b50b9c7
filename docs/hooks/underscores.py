"""Underscores are indices here (x̂_in, g_{kn→i}), never emphasis; Python-Markdown takes them for it after an accent."""

from __future__ import annotations

from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import SimpleTextInlineProcessor
from mkdocs.config.defaults import MkDocsConfig

#: After code, links and HTML (80 and more), before emphasis (60).
PRIORITY = 70


class Underscores(Extension):
    """Leaves underscores as they are; asterisks still emphasise."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.inlinePatterns.register(SimpleTextInlineProcessor("(_)"), "underscore", PRIORITY)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.markdown_extensions.append(Underscores())
    return config
