"""Point-wise and Bayesian errors with binary weights: the paper's Fig. "bayes_main", left panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cavity.experiments import bayesian
from cavity.experiments.experiment import Cell, Experiment, Record
from cavity.experiments.scale import Request
from cavity.experiments.select import train_cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Bayesian and point-wise error, binary weights"


def cells(request: Request) -> list[Cell]:
    return bayesian.cells(request, "binary", "binarynet-adam")


def table(records: Sequence[Record]) -> str:
    return bayesian.table(records, TITLE)


def plot(records: Sequence[Record]) -> Figure:
    return bayesian.plot(records, TITLE)


EXPERIMENT = Experiment("bayesian-binary", cells, train_cell, table, plot)
