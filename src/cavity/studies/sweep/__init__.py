"""Many runs at once: a search for the options that suit the data, with Optuna (``pip install "cavity[sweep]"``).

    config = cavity.runs.Config(dataset="digits", epochs=10)
    sweep = cavity.sweep.run(config, cavity.sweep.Space(("hidden", "init")), "sweeps/first", trials=40, jobs=2)
    sweep = cavity.sweep.resume("sweeps/first", trials=80)          # after an interruption, or to go further
    sweep = cavity.sweep.open_sweep("sweeps/first")
    sweep.best.value, sweep.best.values, sweep.trials
    cavity.runs.train(sweep.best_config, "runs/best")               # on the whole training set

Importing this package is cheap: torch and Optuna are imported when they are needed.
"""

from typing import TYPE_CHECKING

from cavity.util.lazy import lazy

if TYPE_CHECKING:
    from cavity.studies.sweep.folder import Sweep, open_sweep
    from cavity.studies.sweep.plan import Plan
    from cavity.studies.sweep.running import resume, run
    from cavity.studies.sweep.space import Space
    from cavity.studies.sweep.study import Trial

__all__ = ["Plan", "Space", "Sweep", "Trial", "open_sweep", "resume", "run"]

_HOME = {
    "cavity.studies.sweep.folder": ("Sweep", "open_sweep"),
    "cavity.studies.sweep.plan": ("Plan",),
    "cavity.studies.sweep.running": ("resume", "run"),
    "cavity.studies.sweep.space": ("Space",),
    "cavity.studies.sweep.study": ("Trial",),
}

__getattr__, __dir__ = lazy(__name__, {name: home for home, names in _HOME.items() for name in names})
