"""Lists of names come from the registries: ``<!-- list: algorithms -->`` in a page becomes a table of all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any

from cavity.cli.train import help_text
from cavity.core.algorithms import ALGORITHMS
from cavity.core.channels import ACTIVATIONS, OUTPUTS
from cavity.core.priors import PRIORS
from cavity.data.registry import SOURCES
from cavity.runs.config import Config
from cavity.studies.experiments import EXPERIMENTS
from cavity.training.schedules import SCHEDULES

MARK = re.compile(r"<!-- list: ([\w-]+) -->")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Markdown; the first cell of a row is a name."""
    lines = [head, ["---"] * len(head), *([f"`{name}`", *map(str, rest)] for name, *rest in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def described(registry: Any) -> str:
    return table(("name", ""), ((name, one.summary) for name, one in registry.items()))


def algorithms() -> str:
    """With their cost in the unit of mean field's."""
    cheapest = min(one.passes for one in ALGORITHMS.values())
    rows = ((name, one.summary, f"{one.passes / cheapest:.1f}") for name, one in ALGORITHMS.items())
    return table(("name", "", "cost"), rows)


def data_sets() -> str:
    return table(("name", "", "needs"), ((name, one.summary, one.needs) for name, one in SOURCES.items()))


def options() -> str:
    return table(("option", ""), ((item.name, help_text(item)) for item in fields(Config)))


LISTS: dict[str, Callable[[], str]] = {
    "activations": lambda: described(ACTIVATIONS),
    "algorithms": algorithms,
    "data-sets": data_sets,
    "experiments": lambda: table(("name", ""), EXPERIMENTS.items()),
    "options": options,
    "outputs": lambda: described(OUTPUTS),
    "schedules": lambda: described(SCHEDULES),
    "weights": lambda: described(PRIORS),
}


def expanded(markdown: str) -> str:
    """A page with its lists; a list that nobody knows is an error."""
    return MARK.sub(lambda mark: LISTS[mark[1]](), markdown)


def on_page_markdown(markdown: str, **_: Any) -> str:
    return expanded(markdown)
