"""The trials of a sweep in Optuna: what to try next, what was measured, what to give up, what to run again.

One process alone writes the data base, while it holds the sweep's folder. A trial that is running when that process
begins was therefore left by one that died: it is marked as failed, and its values are tried again. Every trial is drawn
with a seed of its own, so that a sweep of one job comes to the same trials whether it was interrupted or not.
"""

from __future__ import annotations

import contextlib
import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cavity.studies.sweep.plan import Plan
from cavity.studies.sweep.space import Axis, Choices
from cavity.util.files import write_whole
from cavity.util.regular import NotAFile, read_regular, require_own

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

STUDY = "cavity"
#: What SQLite adds to the name of a data base for the files it keeps beside it.
SQLITE = ("", "-journal", "-wal", "-shm")
#: The last bytes of a journal that names another file.
SEVERAL = bytes.fromhex("d9d505f920a163d7")
#: Trials before the sampler learns from them, and trials that must be finished before another is pruned.
RANDOM_TRIALS, FINISHED_TRIALS = 10, 5
#: Pruning begins after this share of the epochs: with the paper's constants a large ρ gains early and loses late; where
#: the rate is annealed, curves are noise until it has come down.
PRUNE_AFTER, PRUNE_ANNEALED_AFTER = 0.25, 0.5
#: Attributes of trials: why one has no result, the number of the one it repeats, and how long its training took.
REASON, AGAIN, SECONDS = "reason", "again", "seconds"


@dataclass(frozen=True)
class Trial:
    """One trial: ``state`` is complete, pruned, diverged, failed or open; ``value`` is the objective where it ended,
    ``curve`` the objective after each measured epoch. ``coordinates`` are the values as the sampler sees them."""

    number: int
    state: str
    values: dict[str, Any]
    coordinates: dict[str, Any]
    value: float | None
    curve: dict[int, float]
    seconds: float | None
    reason: str = ""


def require_optuna() -> None:
    """Raise ImportError, with what to install, where Optuna is missing."""
    if find_spec("optuna") is None:
        raise ImportError('a sweep needs Optuna: pip install "cavity[sweep]"')


def create_study(path: Path, plan: Plan) -> None:
    """Make the data base, whole or not at all; the first trial will be what ``cavity train`` would do."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / path.name
        with open_study(made, plan) as study:
            usual = plan.usual()
            study.study.enqueue_trial({a.key: a.coordinate(usual[a.name]) for a in plan.axes if a.holds(usual[a.name])})
        write_whole(path, made.read_bytes())


@contextmanager
def open_study(path: Path, plan: Plan) -> Iterator[Study]:
    """The study in a data base; its errors become OSError."""
    require_optuna()
    import optuna
    from sqlalchemy.engine import URL
    from sqlalchemy.exc import SQLAlchemyError

    _require_harmless(path)
    try:
        storage = optuna.storages.RDBStorage(URL.create("sqlite", database=str(path)).render_as_string())
        try:
            with quiet():
                study = optuna.create_study(storage=storage, study_name=STUDY, load_if_exists=True)
            yield Study(study, plan)
        finally:
            storage.remove_session()
            storage.engine.dispose()
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        said = str(error.__cause__ or error).splitlines()[0]
        raise OSError(f"{path} could not be read or written: {said}") from error


def _require_harmless(path: Path) -> None:
    """OSError where SQLite would write, wait for or remove anything but the data base and what belongs to it."""
    for suffix in SQLITE:
        require_own(path.with_name(path.name + suffix))
    journal = path.with_name(path.name + SQLITE[1])
    # The journal of a transaction on several data bases ends with the name of a file that is removed after a crash,
    # whatever file that is. Ours is only ever of one.
    # Another process that writes makes and removes one all the time.
    with contextlib.suppress(FileNotFoundError):
        if read_regular(journal).endswith(SEVERAL):
            reason = "belongs to several data bases, so it is not of this sweep: remove it"
            raise NotAFile(errno.EINVAL, reason, str(journal))


@contextmanager
def quiet() -> Iterator[None]:
    """Optuna says on stderr that it has made a study; here that is nobody's concern."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


class Study:
    """Trials by what they mean to a sweep; ``study`` is Optuna's."""

    def __init__(self, study: optuna.Study, plan: Plan) -> None:
        import optuna

        self.study, self.plan, self.axes, self.optuna = study, plan, plan.axes, optuna
        self.distributions = {axis.key: self._distribution(axis) for axis in self.axes}

    def begin(self) -> None:
        """Before trials are asked for: those that were running when the last process ended are put in line again."""
        pruners, TrialState = self.optuna.pruners, self.optuna.trial.TrialState
        paper = self.plan.config.recipe == "paper"
        warm_up = int((PRUNE_AFTER if paper else PRUNE_ANNEALED_AFTER) * self.plan.config.epochs)
        median = pruners.MedianPruner(n_startup_trials=FINISHED_TRIALS, n_warmup_steps=warm_up)
        # A longer run is still hot where a shorter one has cooled down: epoch by epoch they cannot be compared.
        prune = self.plan.prune and "epochs" not in self.plan.space.search
        self.study.pruner = median if prune else pruners.NopPruner()
        found = self.study.get_trials(deepcopy=False)
        repeated = _repeated(found)
        for trial in found:
            if trial.state == TrialState.RUNNING:
                # In this order, so that an end between the two loses nothing.
                if trial.number not in repeated:
                    self.study.enqueue_trial(trial.params, user_attrs={AGAIN: trial.number})
                self.study.tell(trial.number, state=TrialState.FAIL)

    def ask(self) -> tuple[optuna.Trial, dict[str, Any]]:
        """The next trial and its values."""
        found = self.study.get_trials(deepcopy=False)
        place = len(found) - len(_repeated(found))
        seed = int(np.random.SeedSequence([self.plan.config.seed, place]).generate_state(1)[0])
        self.study.sampler = self.optuna.samplers.TPESampler(n_startup_trials=RANDOM_TRIALS, seed=seed)
        trial = self.study.ask(dict(self.distributions))
        return trial, self._values(trial.params)

    def report(self, trial: optuna.Trial, epoch: int, value: float) -> bool:
        """Keep the objective after an epoch; returns whether the trial should be ended."""
        trial.report(value, epoch)
        return epoch < self.plan.config.epochs and trial.should_prune()

    def finish(self, trial: optuna.Trial, value: float, seconds: float, *, pruned: bool) -> None:
        """The trial has come to its end, or to where it was pruned; that is on the disk when this returns."""
        trial.set_user_attr(SECONDS, seconds)
        self.study.tell(trial, None if pruned else value, self.optuna.trial.TrialState.PRUNED if pruned else None)

    def fail(self, trial: optuna.Trial, reason: str, *, diverged: bool) -> None:
        """No result. Where training diverged, that says something about its values: it counts as pruned."""
        trial.set_user_attr(REASON, reason)
        states = self.optuna.trial.TrialState
        self.study.tell(trial, state=states.PRUNED if diverged else states.FAIL)

    def trials(self) -> list[Trial]:
        """All but those that were cut short and are run again."""
        found = self.study.get_trials(deepcopy=False)
        repeated = _repeated(found)
        return [self._trial(trial) for trial in found if trial.number not in repeated]

    def _trial(self, trial: optuna.trial.FrozenTrial) -> Trial:
        reason = str(trial.user_attrs.get(REASON, ""))
        words = {"COMPLETE": "complete", "FAIL": "failed", "PRUNED": "diverged" if reason else "pruned"}
        state = words.get(trial.state.name, "open")
        curve = dict(sorted(trial.intermediate_values.items()))
        value = list(curve.values())[-1] if curve and state in ("complete", "pruned") else None
        # One that has not begun, or was cut short at once, may not have all.
        values = self._values(trial.params) if set(trial.params) == set(self.distributions) else {}
        seconds = trial.user_attrs.get(SECONDS)
        return Trial(trial.number, state, values, trial.params, value, curve, seconds, reason)

    def _values(self, coordinates: dict[str, Any]) -> dict[str, Any]:
        return {axis.name: axis.value(coordinates[axis.key]) for axis in self.axes}

    def _distribution(self, axis: Axis) -> BaseDistribution:
        if isinstance(axis, Choices):
            return self.optuna.distributions.CategoricalDistribution(axis.words)
        ends = axis.coordinate(axis.low), axis.coordinate(axis.high)
        return self.optuna.distributions.FloatDistribution(*ends)


def _repeated(trials: list[optuna.trial.FrozenTrial]) -> set[int]:
    """The numbers of trials that were cut short: others have been put in their places."""
    return {trial.user_attrs[AGAIN] for trial in trials if AGAIN in trial.user_attrs}
