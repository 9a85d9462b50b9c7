"""Every option of a training run, as one frozen dataclass that TOML files and the command line both fill.

``None`` means "the default that fits the data"; ``completed`` puts it in, so that what is written repeats the run.
"""

from __future__ import annotations

import difflib
import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from cavity.data.registry import split_name
from cavity.runs import measuring

ALGORITHMS = ("bp", "bpi", "mf", "amp")
WEIGHTS = ("binary", "gaussian", "ternary")
ACTIVATIONS = ("sign", "relu", "identity", "step", "gate", "leaky-relu", "hard-tanh", "abs")
OUTPUTS = ("label", "argmax", "argmax-sampled", "argmax-exact")

#: ρ − 1 of all layers but the last, summed over a run's steps: it brings the polarisation to 0.9 at the end of a run,
#: be it 3 epochs of Fashion-MNIST or 30 of digits. The paper's 1e-4 adds up to 2 after 43 epochs.
POLARIZATION = 2.0
#: In a run of fewer mini-batches than c/0.05 it is left to the data to polarise the weights.
LARGEST_RHO = 1.05
#: ρ of the last layer, which would polarise within the first epoch.
LAST_RHO = 0.9
HIDDEN = {"digits": (201, 201)}
BATCH_SIZE = {"digits": 64}
#: No configuration is near this. What is larger is not parsed: the parser's time grows with the square of the dots in a
#: key, which stands in a line.
MAX_BYTES, MAX_DOTS = 1 << 16, 500


def option(default: Any, kind: str, text: str, choices: tuple[str, ...] = (), least: float | None = None) -> Any:
    """A field with what the readers need to know; ``kind`` is one of ``KINDS``."""
    return field(default=default, metadata={"kind": kind, "help": text, "choices": choices, "least": least})


@dataclass(frozen=True)
class Config:
    """The options of ``cavity train``, by the same names; ``None`` where the default depends on the data."""

    dataset: str = option(
        "digits", "text", "a data set's name (see: cavity data list), or a file or folder of your own"
    )
    binary_task: bool = option(False, "flag", "two classes: odd ones become +1, even ones -1")
    data_dir: str | None = option(None, "text", "folder searched first for data, and where downloads go")
    data_seed: int = option(0, "whole", "seed of generated data, permutations and splits", least=0)
    data_options: Mapping[str, Any] | None = option(
        None, "table", "an option of a data generator, e.g. n_train=250; repeatable"
    )
    test_fraction: float = option(0.2, "number", "share of the data that becomes the test set, where it has none")
    label: str | None = option(None, "text", "the label column of a table")
    hidden: tuple[int, ...] | None = option(
        None, "widths", "hidden layers, e.g. 501,501, or none (default: 501,501; for digits 201,201)", least=1
    )
    algorithm: str = option("bp", "text", "message passing within a mini-batch (default: bp)", ALGORITHMS)
    weights: str = option("binary", "text", "kind of weights (default: binary)", WEIGHTS)
    activation: str = option("sign", "text", "activation of the hidden units (default: sign)", ACTIVATIONS)
    output: str | None = option(
        None, "text", "output (default: label for two classes, argmax for more; pairwise, sampled or exact)", OUTPUTS
    )
    rho: tuple[float, ...] | None = option(
        None, "numbers", "power of the posterior as next prior, one number or one per layer (default: by --epochs)"
    )
    damping: tuple[float, ...] = option((0.8,), "numbers", "damping of the weight means, one or one per layer")
    init: float = option(1.0, "number", "spread of the initial fields", least=0)
    inner_iterations: int = option(1, "whole", "message-passing iterations per mini-batch", least=1)
    tolerance: float | None = option(None, "number", "end the inner iterations when no weight mean moves by more")
    reinforcement: tuple[float, ...] = option((0.0,), "numbers", "internal reinforcement r, one or one per layer")
    reinforcement_step: float = option(0.0, "number", "annealing of r: 1-r <- (1-r)(1-step) at each iteration")
    focusing: tuple[float, ...] | None = option(None, "numbers", "replicas,gamma: coupled replicas instead of r")
    density: float = option(1.0, "number", "fraction of the weights that exist")
    bias: bool = option(False, "flag", "a bias for every unit")
    epochs: int = option(30, "whole", "passes over the training set", least=1)
    evaluate_every: int | None = option(
        None,
        "whole",
        "epochs between two measurements of the errors (default: as often as takes less than 3 percent of the time)",
        least=1,
    )
    batch_size: int | None = option(None, "whole", "samples per mini-batch (default: 128; for digits 64)", least=1)
    seed: int = option(0, "whole", "seed of the network and of the order of samples", least=0)
    device: str | None = option(None, "text", "where to compute, e.g. cpu or cuda (default: cuda if there is one)")
    threads: int | None = option(None, "whole", "threads on the processor (default: torch's choice)", least=1)

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value is None and item.default is None:
                continue
            object.__setattr__(self, item.name, _checked(item.name, value, item.metadata))
        _check_combinations(self)

    def replace(self, /, **changes: Any) -> Config:
        """The same options but for ``changes``; an unknown name is an error that names the nearest."""
        require_known(changes)
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """What is set, as plain values in the order of the fields; tuples become lists, None is left out."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        # TOML wants tables behind everything else.
        values["data_options"] = values.pop("data_options")
        return {name: _plain(name, value) for name, value in values.items() if value is not None}

    def to_toml(self) -> str:
        """The text of ``config.toml``."""
        import tomli_w

        from cavity import __version__

        head = (
            f"# A run of cavity {__version__}. To repeat it: cavity train --config <this file> --out <a new folder>\n"
        )
        return head + tomli_w.dumps(self.as_dict())

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Config:
        """Read a TOML file; unknown keys and values of the wrong kind are errors."""
        with Path(path).open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES or any(line.count(b".") > MAX_DOTS for line in content.splitlines()):
            raise ValueError(
                f"{path}: is no configuration: it has more than {MAX_BYTES} bytes, or {MAX_DOTS} dots in a line"
            )
        try:
            values = tomllib.loads(content.decode())
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: is not a TOML file: {error}") from error
        try:
            return cls().replace(**values)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: {error}") from error


def _plain(name: str, value: Any) -> Any:
    """A tuple as a list, or as the one number it holds where that means the same."""
    if not isinstance(value, tuple):
        return value
    return value[0] if len(value) == 1 and name != "hidden" else list(value)


def require_known(names: Mapping[str, object]) -> None:
    """Raise ValueError for the first name that is no option, with the nearest one that is."""
    known = [item.name for item in fields(Config)]
    for name in names:
        if name not in known:
            raise ValueError(f"there is no option {name!r}{nearest(name, known)}")


def nearest(word: str, known: list[str] | tuple[str, ...]) -> str:
    """``; did you mean …?``, or nothing where nothing is near."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _is_number(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _checked(name: str, value: Any, about: Mapping[str, Any]) -> Any:
    """``value`` in the type of its kind, or a ValueError that says what it should be."""
    expected, convert = KINDS[about["kind"]]
    converted = convert(value)
    if converted is None:
        raise ValueError(f"{name} must be {expected}, got {value!r}")
    if about["choices"] and converted not in about["choices"]:
        hint = nearest(converted, about["choices"])
        raise ValueError(f"{name} must be one of {', '.join(about['choices'])}, got {value!r}{hint}")
    least = about["least"]
    if least is not None and any(
        number < least for number in (converted if isinstance(converted, tuple) else [converted])
    ):
        raise ValueError(f"{name} must be at least {least}, got {value!r}")
    return converted


def _tuple(value: object, good: Any, kind: type) -> tuple[Any, ...] | None:
    listed = value if isinstance(value, list | tuple) else [value]
    return tuple(kind(item) for item in listed) if all(good(item) for item in listed) else None


def _numbers(value: object) -> tuple[float, ...] | None:
    return _tuple(value, _is_number, float) or None


#: What the values of each kind must be, in words, and a function that gives None for what they are not.
KINDS: dict[str, tuple[str, Any]] = {
    "flag": ("true or false", lambda v: v if isinstance(v, bool) else None),
    "whole": ("a whole number", lambda v: v if _is_whole(v) else None),
    "number": ("a number", lambda v: float(v) if _is_number(v) else None),
    "numbers": ("a number or a list of numbers", _numbers),
    "widths": ("a list of whole numbers", lambda v: _tuple(v, _is_whole, int)),
    "text": ("text", lambda v: os.fspath(v) if isinstance(v, str | os.PathLike) else None),
    "table": ("a table of names and values", lambda v: dict(v) if isinstance(v, Mapping) else None),
}


def _check_combinations(config: Config) -> None:
    """What can be known to be impossible without looking at the data."""
    if config.binary_task and config.output not in (None, "label"):
        raise ValueError(
            f"output {config.output!r} does not go with binary_task: use output 'label', or no binary_task"
        )
    if config.focusing is not None and len(config.focusing) != 2:
        raise ValueError(f"focusing must be two numbers, replicas and gamma, got {len(config.focusing)}")
    if config.focusing is not None and any(config.reinforcement):
        raise ValueError("focusing takes the place of reinforcement: give one of the two")
    if config.focusing is not None and config.weights != "binary":
        raise ValueError(f"focusing couples replicas of binary weights, not {config.weights}: use reinforcement")
    for name in ("rho", "damping", "reinforcement"):
        values = getattr(config, name)
        layers = None if config.hidden is None else len(config.hidden) + 1
        if values is not None and layers is not None and len(values) not in (1, layers):
            raise ValueError(f"{name} must be one number or {layers}, one for each layer, got {len(values)}")


def polarizing_rho(layers: int, steps: int) -> tuple[float, ...]:
    """ρ of each layer such that the layers polarise within ``steps`` mini-batches: 1 + c/steps, and 0.9 for the last.

    A network of one layer has no last layer to hold back.
    """
    rho = min(1 + POLARIZATION / steps, LARGEST_RHO)
    return (rho,) * (layers - 1) + (LAST_RHO,) if layers > 1 else (rho,)


def completed(config: Config, samples: int, test_samples: int, features: int, classes: int) -> Config:
    """``config`` with the defaults that depend on the data: ``samples`` to train on and ``test_samples`` to test on, of
    ``features`` numbers in ``classes`` classes."""
    name, _ = split_name(config.dataset)
    hidden = HIDDEN.get(name, (501, 501)) if config.hidden is None else config.hidden
    batch_size = min(config.batch_size or BATCH_SIZE.get(name, 128), samples)
    output = config.output or ("label" if classes == 2 else "argmax")
    if output == "label" and classes != 2:
        raise ValueError(f"output 'label' is for two classes, the data have {classes}: use 'argmax', or binary_task")
    rho = config.rho or polarizing_rho(len(hidden) + 1, config.epochs * (samples // batch_size))
    widths = [features, *hidden, 1 if output == "label" else classes]
    weights = sum(lower * upper for lower, upper in pairwise(widths))
    every = config.evaluate_every or measuring.interval(config.algorithm, samples, test_samples, weights)
    return config.replace(hidden=hidden, batch_size=batch_size, output=output, rho=rho, evaluate_every=every)
