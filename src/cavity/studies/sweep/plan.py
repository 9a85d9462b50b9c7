"""What a sweep is to do, as ``sweep.toml`` keeps it, and the configurations that the values of its trials make."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from cavity.runs.config import Config, completed
from cavity.studies.sweep.space import OF_THE_PAPER, Axis, Space, Widths
from cavity.training.recipes import LAST_RHO
from cavity.util.regular import read_regular
from cavity.util.text import shown

#: What trials are judged by, on the validation set: what it is called in the record of an epoch, and in words.
OBJECTIVES = {
    "error": ("test_error", "error"),
    "error-bayes": ("test_error_bayes", "Bayesian error"),
    "nll": ("test_nll", "NLL"),
    "evidence": ("evidence", "negative log-evidence per sample"),
}
#: What the evidence depends on: the prior, not how it is trained.
OF_THE_PRIOR = ("init", "hidden")
#: The share of the training set that trials are judged by.
VALIDATION = 0.2
TRIALS = 40


class Sizes(NamedTuple):
    """Samples that trials train on and are judged by, together the training set; features and classes of the data."""

    train: int
    validation: int
    features: int
    classes: int


@dataclass(frozen=True)
class Plan:
    """What ``cavity sweep`` was asked for. ``config`` has what is not searched, ``space`` all its ranges; trials are
    judged by ``objective`` and, with ``prune``, ended early if they are worse than most."""

    config: Config
    space: Space
    sizes: Sizes
    trials: int = TRIALS
    objective: str = "error"
    prune: bool = True

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}, got {self.objective!r}")
        if not isinstance(self.trials, int) or self.trials < 1:
            raise ValueError(f"trials must be a whole number of at least 1, got {self.trials!r}")

    @property
    def metric(self) -> str:
        """What the objective is called in the record of an epoch."""
        return OBJECTIVES[self.objective][0]

    @property
    def words(self) -> str:
        """What the objective is called in tables and plots; errors of numbers are root mean squares of the residuals,
        in standard deviations of the labels."""
        words = OBJECTIVES[self.objective][1]
        return words.replace("error", "RMSE") if self.config.task == "regression" else words

    @property
    def title(self) -> str:
        """The objective and what it is measured on; the evidence is that of all training samples."""
        return self.words if self.objective == "evidence" else f"validation {self.words}"

    @property
    def judged_on(self) -> str:
        """Which samples trials are judged by."""
        train, held_out = self.sizes.train, self.sizes.validation
        if self.objective == "evidence":
            return f"all {train} training samples, without training"
        return f"{held_out} samples held out of the training set,\n# trained on the other {train}"

    @property
    def in_percent(self) -> bool:
        return self.objective in ("error", "error-bayes") and self.config.task != "regression"

    def shown(self, value: float | None) -> str:
        """A value of the objective with its unit."""
        if value is None:
            return "–"
        return f"{value:.2f} %" if self.in_percent else f"{value:.4f}"

    @property
    def axes(self) -> list[Axis]:
        return self.space.axes(steps(self.config, self.sizes))

    def configuration(self, values: Mapping[str, Any]) -> Config:
        """What a trial trains, complete: on the training set without what is held out of it."""
        return filled(_with_values(self.config, values, self.sizes), self.sizes)

    def transferred(self, values: Mapping[str, Any]) -> Config:
        """What repeats a trial on the whole training set.

        A run has more steps there: a searched ρ is moved such that (ρ − 1)·steps stays what it was.
        """
        whole = self.sizes._replace(train=self.sizes.train + self.sizes.validation)
        if "rho" in values:
            config = _with_counts(self.config, values)
            fewer = steps(config, self.sizes) / steps(config, whole)
            values = {**values, "rho": 1 + (values["rho"] - 1) * fewer}
        return _with_values(self.config, values, whole)

    def usual(self) -> dict[str, Any]:
        """What ``cavity train`` would take of all that is searched."""
        config = filled(self.config, self.sizes)
        values: dict[str, Any] = {"init": config.init, "hidden": config.hidden}
        values |= {"batch_size": config.batch_size, "epochs": config.epochs}
        if config.rho is not None and config.damping is not None:
            last = config.rho[-1] if len(config.rho) > 1 else LAST_RHO
            values |= {"rho": config.rho[0], "last_rho": last, "damping": config.damping[0]}
        return {name: values[name] for name in self.space.search}

    def to_toml(self) -> str:
        """The text of ``sweep.toml``."""
        import tomli_w

        from cavity.util.version import __version__

        head = f"# A sweep of cavity {__version__}. To go on with it: cavity sweep --resume <its folder>\n"
        plain = {"trials": self.trials, "objective": self.objective, "prune": self.prune}
        tables = {"sizes": self.sizes._asdict(), "space": self.space.as_dict(), "config": self.config.as_dict()}
        return head + tomli_w.dumps({**plain, **tables})

    @classmethod
    def from_toml(cls, path: Path) -> Plan:
        """Read ``sweep.toml``."""
        try:
            values = tomllib.loads(read_regular(path).decode())
            config = Config().replace(**Config.as_before(values.pop("config")))
            space = Space.from_dict(values.pop("space"))
            return cls(config, space, Sizes(**values.pop("sizes")), **values)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: is not the plan of a sweep: {shown(error)}") from error


def make_plan(
    config: Config, space: Space, samples: int, features: int, classes: int, validation: float, **options: Any
) -> Plan:
    """The plan for a training set of ``samples``, of which the share ``validation`` is held out.

    All ranges are there, and every configuration they allow is a possible one.
    """
    by_evidence = options.get("objective") == "evidence"
    held_out = round(validation * samples) if 0 < validation < 1 and not by_evidence else 0
    if by_evidence:
        for name in set(space.search) - set(OF_THE_PRIOR):
            raise ValueError(f"the evidence does not depend on {name}: search {' or '.join(OF_THE_PRIOR)}")
    elif not 0 < held_out < samples:
        raise ValueError(
            "validation must be a share between 0 and 1 that leaves samples on both sides, "
            f"got {validation:g} of {samples}"
        )
    if not set(OF_THE_PAPER).isdisjoint(space.search):
        config = config.replace(recipe="paper")
    if "damping" in space.search and config.damping is not None and len(config.damping) > 1:
        raise ValueError("damping is searched as one number for all layers, but it is given for each of them")
    if config.layers is not None:
        raise ValueError(f"a sweep is over dense layers: give hidden, not layers, got {config.layers!r}")
    sizes = Sizes(samples - held_out, held_out, features, classes)
    usual = filled(config, sizes)
    hidden, batch_size = usual.hidden, usual.batch_size
    assert hidden is not None
    assert batch_size is not None
    space = space.resolved(hidden, steps(config, sizes), batch_size, config.epochs, sizes.train)
    plan = Plan(config, space, sizes, **options)
    for widths in plan.space.hidden or (hidden,):
        plan.configuration({**plan.usual(), "hidden": widths})
    return plan


def filled(config: Config, sizes: Sizes) -> Config:
    """``config`` with the defaults that fit the data.

    Errors are measured after every epoch, unless it says otherwise: trials of all widths must be compared at the same
    epochs.
    """
    return completed(replace(config, evaluate_every=config.evaluate_every or 1), *sizes)


def steps(config: Config, sizes: Sizes) -> int:
    """Mini-batches of a whole run."""
    batch_size = filled(config, sizes).batch_size
    assert batch_size is not None
    return config.epochs * (sizes.train // batch_size)


def _with_counts(config: Config, values: Mapping[str, Any]) -> Config:
    """``config`` with the mini-batches and epochs of a trial, if they are searched."""
    return config.replace(**{name: values[name] for name in ("batch_size", "epochs") if name in values})


def _with_values(config: Config, values: Mapping[str, Any], sizes: Sizes) -> Config:
    """``config`` with the values of a trial in the places of what is searched."""
    config = _with_counts(config, values)
    hidden = values.get("hidden", filled(config, sizes).hidden)
    changes: dict[str, Any] = {name: values[name] for name in ("damping", "init") if name in values}
    if "rho" in values or "last_rho" in values:
        changes["rho"] = _rho(config, values, hidden, sizes)
    return config.replace(hidden=hidden, **changes)


def _rho(config: Config, values: Mapping[str, Any], hidden: Widths, sizes: Sizes) -> tuple[float, ...]:
    """ρ of each layer: what is not searched is what the configuration has for that layer, or the default."""
    given = config.rho if config.rho is not None and len(config.rho) > 1 else None
    last = values.get("last_rho", LAST_RHO if given is None else given[-1])
    if "rho" in values:
        lower = (values["rho"],) * len(hidden)
    else:
        usual = filled(config.replace(hidden=hidden), sizes).rho
        assert usual is not None
        lower = usual[:-1] if len(usual) > 1 else usual * len(hidden)
    return (*lower, last) if hidden else (values["rho"],)
