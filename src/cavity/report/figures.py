"""All sections of a page, in reading order."""

from __future__ import annotations

from collections.abc import Sequence

from cavity.report import curves, overview, predictions, weights
from cavity.report.content import Section
from cavity.report.summary import RunSummary


def sections(runs: Sequence[RunSummary]) -> list[Section]:
    """What there is to show of these runs; sections without a figure are left out."""
    parts = [
        overview.comparison(runs) if len(runs) > 1 else None,
        curves.learning(runs),
        curves.layers(runs),
        weights.magnetisations(runs),
        predictions.calibration(runs),
        predictions.examples(runs),
        weights.first_layer(runs),
        overview.configuration(runs),
    ]
    return [part for part in parts if part is not None and part.figures]
