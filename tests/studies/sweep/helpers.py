"""A sweep that takes a moment, and what two sweeps must have in common."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import cavity
from cavity.runs import Config
from cavity.studies.sweep.plan import Plan, make_plan
from cavity.studies.sweep.space import Space
from cavity.studies.sweep.study import Trial

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(cavity.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
#: Ctrl-C is heard as in a terminal, even if the tests themselves run in the background, where shells ignore SIGINT.
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from cavity.cli import main
sys.exit(main(sys.argv[1:]))
"""
COMMAND = [sys.executable, "-c", PROGRAM, "sweep"]


def tiny(**options) -> Config:
    """The digits, a small network, four epochs of 8 mini-batches."""
    defaults = {"dataset": "digits", "hidden": (15,), "algorithm": "mf", "batch_size": 128, "epochs": 4, "threads": 1}
    return Config(**{**defaults, **options})


def tiny_plan(space: Space | None = None, config: Config | None = None, **options) -> Plan:
    """The plan of a sweep over the digits; nothing is loaded."""
    space = Space(("rho", "damping", "init")) if space is None else space
    return make_plan(config or tiny(), space, 1438, 64, 10, options.pop("validation", 0.2), **options)


def results(trials: list[Trial]) -> list[tuple]:
    """All of the trials but their numbers, of which a killed one takes one more, and the time they took."""
    return [(trial.state, trial.values, trial.curve) for trial in trials]
