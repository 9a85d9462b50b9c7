"""The settings of the runs: what somebody chose before what was left to its default, and a row for each run where they
differ."""

from __future__ import annotations

from collections.abc import Sequence

from cavity.report.content import Figure, Section, Table
from cavity.report.summary import RunSummary
from cavity.report.wording import MISSING


def configuration(runs: Sequence[RunSummary]) -> Section:
    """Every setting of every run."""
    text = "The settings of each run; cavity train --config RUN/config.toml trains it again."
    keys = list(dict.fromkeys(key for run in runs for key, _ in run.config))
    settings = [dict(run.config) for run in runs]
    differing = [key for key in keys if len({values.get(key, MISSING) for values in settings}) > 1]
    figures = _differing(runs, settings, differing) if differing else []
    shared = [(key, settings[0].get(key, MISSING)) for key in keys if key not in differing]
    figures += _shared(runs, shared)
    return Section("configuration", "Configuration", text, tuple(figures), 1)


def _differing(runs: Sequence[RunSummary], settings: Sequence[dict[str, str]], keys: Sequence[str]) -> list[Figure]:
    rows = tuple(
        (run.name, *(values.get(key, MISSING) for key in keys)) for run, values in zip(runs, settings, strict=True)
    )
    marked = frozenset(
        (place, column)
        for place, run in enumerate(runs)
        for column, key in enumerate(keys, start=1)
        if run.chosen is not None and key in run.chosen
    )
    caption = "Settings in which the runs differ."
    caption += " Marked: set apart from the default." if marked else ""
    table = Table(("Run", *keys), rows, marked, numeric=False, runs=tuple(range(len(runs))))
    return [Figure("differing", "Where the runs differ", caption, table)]


def _shared(runs: Sequence[RunSummary], rows: Sequence[tuple[str, str]]) -> list[Figure]:
    """What all runs have in common; in two tables where it is known what was chosen."""
    several = ", the same for all runs" if len(runs) > 1 else ""
    known = all(run.chosen is not None for run in runs)
    names = {name for run in runs for name in run.chosen or ()}

    def is_chosen(key: str) -> bool:
        return not known or key.partition(".")[0] in names

    chosen = tuple(row for row in rows if is_chosen(row[0]))
    defaults = tuple(row for row in rows if not is_chosen(row[0]))
    title = "Set apart from the defaults" if known else "Settings"
    head, dash = ("Setting", "Value"), "A dash means: not set."
    figures = []
    if chosen:
        table = Table(head, chosen, numeric=False)
        figures.append(Figure("settings", title + several, "What somebody asked for." if known else dash, table))
    if defaults:
        table = Table(head, defaults, numeric=False, folded=True)
        figures.append(Figure("defaults", f"Left to their defaults{several}", dash, table))
    return figures
