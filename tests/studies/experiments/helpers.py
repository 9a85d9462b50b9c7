"""Cells that are done in a moment."""

from __future__ import annotations

from rich.console import Console

from cavity.studies.experiments.experiment import Cell, Record
from cavity.studies.experiments.running import Display
from cavity.studies.experiments.setup import Setup


def tiny(**changes) -> Setup:
    """Two hidden layers of 11 units on a hundred digits, two epochs of five mini-batches."""
    values = {"hidden": (11, 11), "epochs": 2, "batch_size": 20, "samples": (100, 50)}
    return Setup(**{"method": "mf", "dataset": "digits", **values, **changes})


def cell(label="digits-mf", **changes) -> Cell:
    return Cell(label, tiny(**changes), "smoke")


def record(error, label="digits-mf", **changes) -> Record:
    """A finished cell with that test error."""
    names = ("test_error", "train_error", "test_error_bayes", "train_error_bayes", "test_nll", "test_ece")
    return Record(cell(label, **changes), {"final": dict.fromkeys(names, error)}, "a machine")


def quiet(file) -> Display:
    return Display(Console(file=file, width=200))
