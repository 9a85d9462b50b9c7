"""Running a sweep: trials are handed to processes, their curves go to Optuna, the best configuration is kept."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cavity.studies.pool import Pool, Worker, pool
from cavity.studies.sweep.folder import DATABASE, ERRORS, PLAN, Sweep, best, open_sweep
from cavity.studies.sweep.plan import OF_THE_PRIOR, TRIALS, VALIDATION, make_plan
from cavity.studies.sweep.space import Space, default_search
from cavity.studies.sweep.study import Study, Trial, create_study, open_study, require_optuna
from cavity.util.files import new_folder, only_writer, require_free
from cavity.util.text import shown

if TYPE_CHECKING:
    import optuna

    from cavity.runs.config import Config

#: Where sweeps go that were given no folder.
SWEEPS = Path("sweeps")
#: A sweep is given up when this many trials have failed and none has finished.
FAILURES = 3


class Listener:
    """Told how far a sweep is, and shows nothing; ``cavity.studies.sweep.table`` shows it."""

    def begin(self, number: int, values: dict[str, Any]) -> None:
        """A trial begins."""

    def advance(self, number: int, epoch: int) -> None:
        """A trial has finished an epoch."""

    def end(self, trial: Trial, best: Trial | None) -> None:
        """A trial is over; ``best`` is the best so far."""


def run(
    config: Config,
    space: Space | None = None,
    out: str | os.PathLike[str] | None = None,
    *,
    trials: int = TRIALS,
    jobs: int = 1,
    objective: str = "error",
    validation: float = VALIDATION,
    prune: bool = True,
) -> Sweep:
    """``cavity sweep``: search ``space`` around ``config`` and return the sweep, in a new folder.

    ``jobs`` processes train trials on the training set without the share ``validation`` of it, which judges them by
    ``objective``: "error", "error-bayes" or "nll" at the end of training; or nothing is trained and held out, and they
    are judged by the "evidence" of the training set. ``config.seed`` seeds the search, too.
    """
    sweep = prepare(config, space, out, trials=trials, objective=objective, validation=validation, prune=prune)
    work(sweep, jobs, Listener())
    return sweep


def resume(path: str | os.PathLike[str], *, trials: int | None = None, jobs: int = 1) -> Sweep:
    """``cavity sweep --resume``: go on, to ``trials`` in all; what was running when it ended is run again."""
    sweep = reopen(path, trials=trials)
    work(sweep, jobs, Listener())
    return sweep


def prepare(
    config: Config,
    space: Space | None = None,
    out: str | os.PathLike[str] | None = None,
    *,
    validation: float = VALIDATION,
    **options: Any,
) -> Sweep:
    """A new sweep, with nothing tried yet; ``out`` must be free."""
    require_optuna()
    from cavity.runs.folder import load_data
    from cavity.runs.training import usable_device, with_absolute_paths

    if out is not None:
        require_free(Path(out), PLAN, "choose another --out")
    config = with_absolute_paths(config)
    config = config.replace(device=str(usable_device(config.device)))
    data = load_data(config)
    shape = len(data.x_train), data.n_features, data.n_classes
    if space is None:
        by_evidence = options.get("objective") == "evidence"
        space = Space(OF_THE_PRIOR if by_evidence else default_search(config.recipe))
    plan = make_plan(config, space, *shape, validation, **options)
    folder = new_folder(SWEEPS, f"{shown(Path(config.dataset).stem)}-{config.algorithm}") if out is None else Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    sweep = Sweep(folder, plan)
    with only_writer(folder):
        sweep.write_plan()
    return sweep


def reopen(path: str | os.PathLike[str], *, trials: int | None = None, data_dir: str | None = None) -> Sweep:
    """The sweep in ``path``, to go on until there are ``trials``; ``data_dir`` says where its data are now."""
    require_optuna()
    from cavity.runs.training import with_absolute_paths

    sweep = open_sweep(path)
    config = sweep.plan.config
    if data_dir is not None:
        config = with_absolute_paths(config.replace(data_dir=data_dir))
    return Sweep(sweep.path, replace(sweep.plan, config=config, trials=sweep.plan.trials if trials is None else trials))


def work(sweep: Sweep, jobs: int, listener: Listener) -> None:
    """Train what is left of the trials, ``jobs`` at a time. All processes end when this does, however it ends."""
    if not isinstance(jobs, int) or jobs < 1:
        raise ValueError(f"jobs must be a whole number of at least 1, got {jobs!r}")
    with only_writer(sweep.path):
        sweep.write_plan()
        if not (sweep.path / DATABASE).exists():
            create_study(sweep.path / DATABASE, sweep.plan)
        with open_study(sweep.path / DATABASE, sweep.plan) as study:
            study.begin()
            trials = study.trials()
            if (first := best(trials)) is not None:
                sweep.write_best(first)
            left = sweep.plan.trials - sum(trial.state != "open" for trial in trials)
            if left > 0:
                jobs = min(jobs, left)
                with pool("cavity.studies.sweep.worker", jobs, sweep.plan.config.threads) as workers:
                    _Loop(sweep, study, workers, listener, left).run(jobs)


@dataclass
class _Running:
    """A trial that a worker trains."""

    trial: optuna.Trial
    pruned: bool = False
    value: float | None = None


class _Loop:
    """Hands out trials and takes what comes back, in one thread."""

    def __init__(self, sweep: Sweep, study: Study, workers: Pool, listener: Listener, left: int) -> None:
        self.sweep, self.study, self.workers, self.listener = sweep, study, workers, listener
        #: Trials that have not begun, and those that have, by their workers.
        self.left, self.running = left, dict[Worker, _Running]()

    def run(self, jobs: int) -> None:
        for _ in range(jobs):
            self._begin(self._start())
        while self.running:
            worker, message = self.workers.next_message()
            if message is not None and "epoch" in message:
                self._epoch(worker, message["epoch"], message["value"])
            elif worker in self.running:
                self._end(worker, message)

    def _start(self) -> Worker:
        plan = self.sweep.plan
        worker = self.workers.start(self.sweep.path / ERRORS)
        worker.send({"config": plan.config.as_dict(), "validation": plan.sizes.validation, "metric": plan.metric})
        return worker

    def _begin(self, worker: Worker) -> None:
        trial, values = self.study.ask()
        self.left -= 1
        self.running[worker] = _Running(trial)
        self.listener.begin(trial.number, values)
        worker.send(self.sweep.plan.configuration(values).as_dict())

    def _epoch(self, worker: Worker, epoch: int, value: float | None) -> None:
        running = self.running[worker]
        if value is not None:
            running.value, running.pruned = value, self.study.report(running.trial, epoch, value)
        worker.send(not running.pruned)
        self.listener.advance(running.trial.number, epoch)

    def _end(self, worker: Worker, message: dict[str, Any] | None) -> None:
        running = self.running.pop(worker)
        if message is not None and "seconds" in message:
            assert running.value is not None
            self.study.finish(running.trial, running.value, message["seconds"], pruned=running.pruned)
        else:
            known = message or {"error": worker.why_ended(), "diverged": False}
            self.study.fail(running.trial, known["error"], diverged=known["diverged"])
        self._after(running.trial.number)
        if self.left > 0:
            self._begin(self._start() if message is None else worker)

    def _after(self, number: int) -> None:
        """Keep the best, say what has ended, and give up where everything fails."""
        trials = self.study.trials()
        ended, first = next(trial for trial in trials if trial.number == number), best(trials)
        if first is not None and first.number == number:
            self.sweep.write_best(first)
        self.listener.end(ended, first)
        states = [trial.state for trial in trials if trial.state != "open"]
        if states.count("failed") == len(states) == min(FAILURES, self.sweep.plan.trials):
            errors = self.sweep.path / ERRORS
            raise ValueError(f"no trial has succeeded, the last one failed: {ended.reason} (see {errors})")
