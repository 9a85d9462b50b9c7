"""Many runs at once: a search for the options that suit the data, with Optuna (``pip install "cavity[sweep]"``).

    config = cavity.runs.Config(dataset="digits", epochs=10)
    sweep = cavity.sweep.run(config, cavity.sweep.Space(("rho", "damping")), "sweeps/first", trials=40, jobs=2)
    sweep = cavity.sweep.resume("sweeps/first", trials=80)          # after an interruption, or to go further
    sweep = cavity.sweep.open_sweep("sweeps/first")
    sweep.best.value, sweep.best.values, sweep.trials
    cavity.runs.train(sweep.best_config, "runs/best")               # on the whole training set

Importing this package is cheap: torch and Optuna are imported when they are needed.
"""

from typing import TYPE_CHECKING

from cavity._lazy import lazy

if TYPE_CHECKING:
    from cavity.sweep.folder import Sweep, open_sweep
    from cavity.sweep.plan import Plan
    from cavity.sweep.running import resume, run
    from cavity.sweep.space import Space
    from cavity.sweep.study import Trial

__all__ = ["Plan", "Space", "Sweep", "Trial", "open_sweep", "resume", "run"]

_HOME = {
    "cavity.sweep.folder": ("Sweep", "open_sweep"),
    "cavity.sweep.plan": ("Plan",),
    "cavity.sweep.running": ("resume", "run"),
    "cavity.sweep.space": ("Space",),
    "cavity.sweep.study": ("Trial",),
}

__getattr__, __dir__ = lazy(__name__, {name: home for home, names in _HOME.items() for name in names})
