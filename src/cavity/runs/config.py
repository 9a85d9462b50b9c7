"""Every option of a training run, as one frozen dataclass that TOML files and the command line both fill.

``None`` means "the default that fits the data"; ``completed`` puts it in, so that what is written repeats the run.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cavity.core import architecture
from cavity.data.registry import split_name
from cavity.runs.options import Names, Options, option
from cavity.training.recipes import ANNEALED, PAPER, Changes, recipe_for
from cavity.util.regular import open_regular

#: No configuration is near this. What is larger is not parsed: the parser's time grows with the square of the dots in a
#: key, which stands in a line.
MAX_BYTES, MAX_DOTS = 1 << 16, 500
#: More than any machine has; many thousands end torch in a segmentation fault.
MOST_THREADS = 1024
#: How the file of a run begins, of whatever version.
HEAD = "# A run of cavity "

ALGORITHMS = Names("cavity.core.algorithms:ALGORITHMS")
WEIGHTS = Names("cavity.core.priors:PRIORS")
ACTIVATIONS = Names("cavity.core.channels:ACTIVATIONS")
SCHEDULES = Names("cavity.training.schedules:SCHEDULES")
KNOWN_RECIPES = Names("cavity.training.recipes:RECIPES")
TASKS = Names("cavity.data.treatment:TASKS")
ENCODINGS = Names("cavity.data.treatment:ENCODINGS")
IMPUTATIONS = Names("cavity.data.treatment:IMPUTATIONS")
#: A Gaussian output is that of regression, all others are for classes; an argmax has four methods, and the recipe
#: chooses one.
OUTPUTS = Names("cavity.core.channels:OUTPUTS", "cavity.core.channels.argmax:with_methods")


@dataclass(frozen=True)
class Config(Options):
    """The options of ``cavity train``, by the same names; ``None`` where the default depends on the data."""

    dataset: str = option("digits", "a data set's name (see: cavity data list), or a file or folder of your own")
    binary_task: bool = option(False, "two classes: odd ones become +1, even ones -1")
    data_dir: str | None = option(
        None, "folder searched first for data, and where downloads go (default: $CAVITY_DATA, else a cache)"
    )
    data_seed: int = option(0, "seed of generated data, permutations and splits", least=0)
    data_options: Mapping[str, Any] | None = option(
        None, "an option of a data generator, e.g. n_train=250; repeatable (default: none)"
    )
    test_fraction: float = option(0.2, "share of the data that becomes the test set, where it has none")
    label: str | None = option(None, "the label column of a table (default: the one called label, target, y or class)")
    task: str | None = option(
        None, "what labels of a table are: classes, or numbers to predict (default: classes)", choices=TASKS
    )
    encode: str = option("one-hot", "how text columns of a table become numbers", choices=ENCODINGS)
    impute: str = option("median", "what fills gaps in number columns of a table", choices=IMPUTATIONS)
    text: str | None = option(
        None, "columns of a table that are texts though they look like numbers, with commas (default: none)"
    )
    drop: str | None = option(None, "columns of a table to leave out, with commas (default: none)")
    hidden: tuple[int, ...] | None = option(
        None, "hidden layers, e.g. 501,501, or none (default: 501,501; for digits 201,201)", least=1
    )
    layers: str | None = option(
        None,
        "layers below the readout instead of hidden, e.g. conv:64:5:2,pool:2,dense:501 "
        "(conv:CHANNELS:KERNEL:STRIDE:PADDING, pool:SIZE, average:SIZE, dense:UNITS; first perhaps "
        "white:COMPONENTS:KERNEL:STRIDE), or lenet, or cnv (default: those of --hidden)",
    )
    algorithm: str = option(ANNEALED.algorithm, "message passing within a mini-batch", choices=ALGORITHMS)
    weights: str = option(ANNEALED.weights, "kind of weights", choices=WEIGHTS)
    activation: str = option(ANNEALED.activation, "activation of the hidden units", choices=ACTIVATIONS)
    output: str | None = option(None, "output (default: label for two classes, argmax for more)", choices=OUTPUTS)
    recipe: str = option(
        ANNEALED.name,
        "annealed: the messages choose the rate, and --epochs its schedule; paper: the paper's constants, "
        "also taken where --rate, --rho or --damping is given",
        choices=KNOWN_RECIPES,
        before="paper",
    )
    schedule: str | None = option(
        None,
        "how the rate changes over the run (default: learn, anneal, quench; constant for the paper)",
        choices=SCHEDULES,
    )
    rate: tuple[float, ...] | None = option(
        None, "factor on the evidence of a mini-batch, one or one per layer (default: the messages choose it)"
    )
    rho: tuple[float, ...] | None = option(
        None, "power of the posterior as next prior, one number or one per layer (default for the paper: by --epochs)"
    )
    damping: tuple[float, ...] | None = option(
        None, "damping of the weight means, one or one per layer (default for the paper: 0.8)"
    )
    memory: float | None = option(
        None,
        "learn a stream: evidence fades within that many samples (inf: never), nothing is annealed (default: none)",
        least=1,
        endless=True,
    )
    readout_samples: float | None = option(
        None, "samples that the readout counts: more make Bayesian probabilities surer (default: 1280)", least=1
    )
    init: float = option(ANNEALED.init, "spread of the initial fields", least=0)
    inner_iterations: int = option(ANNEALED.inner_iterations, "message-passing iterations per mini-batch", least=1)
    tolerance: float | None = option(
        None, "end the inner iterations when no weight mean moves by more (default: never)"
    )
    reinforcement: tuple[float, ...] = option((0.0,), "internal reinforcement r, one or one per layer")
    reinforcement_step: float = option(0.0, "annealing of r: 1-r <- (1-r)(1-step) at each iteration")
    focusing: tuple[float, ...] | None = option(None, "replicas,gamma: coupled replicas instead of r (default: none)")
    density: float = option(1.0, "fraction of the weights that exist")
    bias: bool = option(False, "a bias for every unit, of the same kind as its weights")
    threshold: bool = option(False, "a real threshold for every unit or channel, whatever the kind of weights")
    augment: str | None = option(
        None, "change the training images at random: flip, shift:PIXELS, or flip,shift:2 (default: no change)"
    )
    epochs: int = option(ANNEALED.epochs, "passes over the training set", least=1)
    evaluate_every: int | None = option(
        None,
        "epochs between two measurements of the errors (default: as often as takes less than 3 percent of the time)",
        least=1,
    )
    batch_size: int | None = option(None, "samples per mini-batch (default: 128; for digits 64)", least=1)
    seed: int = option(0, "seed of the network and of the order of samples", least=0)
    device: str | None = option(None, "where to compute, e.g. cpu or cuda (default: cuda if there is one)")
    threads: int | None = option(
        None, "threads on the processor (default: torch's choice, fewer for small problems)", least=1, most=MOST_THREADS
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(numbers is not None for numbers in (self.rate, self.rho, self.damping)):
            object.__setattr__(self, "recipe", PAPER.name)
        _check_combinations(self)

    @property
    def architecture(self) -> str | None:
        """The layers below the readout in words, if they are known: ``hidden`` is short for dense ones."""
        if self.layers is not None:
            return self.layers
        return None if self.hidden is None else architecture.dense(self.hidden)

    def replace(self, /, **changes: Any) -> Config:
        """The same options but for ``changes``; an unknown name is an error that names the nearest."""
        self.require_known(changes)
        return replace(self, **changes)

    def to_toml(self) -> str:
        """The text of ``config.toml``."""
        import tomli_w

        from cavity.util.version import __version__

        head = f"{HEAD}{__version__}. To repeat it: cavity train --config <this file> --out <a new folder>\n"
        return head + tomli_w.dumps(self.as_dict())

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Config:
        """Read a TOML file; unknown keys and values of the wrong kind are errors.

        What the file of a run lacks is as it was in the version that wrote it; what a person left out is the default.
        """
        with open_regular(path) as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES or any(line.count(b".") > MAX_DOTS for line in content.splitlines()):
            limits = f"{MAX_BYTES} bytes, or {MAX_DOTS} dots in a line"
            raise ValueError(f"{path}: is no configuration: it has more than {limits}")
        try:
            values = tomllib.loads(content.decode())
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: is not a TOML file: {error}") from error
        try:
            return cls().replace(**(cls.as_before(values) if content.startswith(HEAD.encode()) else values))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: {error}") from error


def _check_combinations(config: Config) -> None:
    """What can be known to be impossible without looking at the data."""
    output = config.output
    if (config.task == "regression") != (output == "gaussian") and output is not None:
        raise ValueError(f"output {output!r} does not go with task {config.task!r}: gaussian is that of regression")
    if config.task == "regression" and config.binary_task:
        raise ValueError("binary_task is about classes: it does not go with task 'regression'")
    if config.augment is not None:
        Changes.parse(config.augment)
    if config.binary_task and output not in (None, "label"):
        raise ValueError(f"output {output!r} does not go with binary_task: use output 'label', or no binary_task")
    if config.memory is not None and (config.recipe == PAPER.name or config.schedule is not None):
        raise ValueError("memory chooses the update of a stream: give no schedule, rate, rho or damping with it")
    if config.readout_samples is not None and (config.recipe == PAPER.name or config.memory is not None):
        raise ValueError("readout_samples is for rates that the messages choose: give no rate, rho, damping or memory")
    if config.focusing is not None:
        if len(config.focusing) != 2:
            raise ValueError(f"focusing must be two numbers, replicas and gamma, got {len(config.focusing)}")
        if any(config.reinforcement):
            raise ValueError("focusing takes the place of reinforcement: give one of the two")
        if config.weights != "binary":
            raise ValueError(f"focusing couples replicas of binary weights, not {config.weights}: use reinforcement")
    if config.layers is not None and config.hidden is not None:
        raise ValueError(f"hidden is short for dense layers: give hidden or layers, not both, got {config.layers!r}")
    layers = None if config.architecture is None else architecture.depth(config.architecture)
    for name in ("rate", "rho", "damping", "reinforcement"):
        values = getattr(config, name)
        if values is not None and layers is not None and len(values) not in (1, layers):
            raise ValueError(f"{name} must be one number or {layers}, one for each layer, got {len(values)}")


def output_units(output: str | None, classes: int) -> int:
    """Units of the last layer: a label or a number is one, anything else has one for each class."""
    return 1 if output in ("label", "gaussian") else classes


def input_shape(config: Config, features: int, image_shape: tuple[int, int, int] | None) -> tuple[int, ...]:
    """What the network takes: an image if its layers look at images, else numbers in a row."""
    if config.layers is None or not architecture.needs_images(config.layers):
        return (features,)
    if image_shape is None:
        raise ValueError(f"layers is {config.layers!r}, but the data are no images: use dense layers")
    return image_shape


def free_weights(config: Config, shape: tuple[int, ...], classes: int) -> int:
    """Weights of the completed configuration's network on inputs of that shape, biases and masks aside."""
    assert config.architecture is not None
    return architecture.weights(config.architecture, shape, output_units(config.output, classes))


def completed(
    config: Config,
    samples: int,
    test_samples: int,
    features: int,
    classes: int,
    image_shape: tuple[int, int, int] | None = None,
) -> Config:
    """``config`` with the defaults that depend on the data: ``features`` numbers a sample, in ``classes`` classes."""
    from cavity.runs import measuring

    recipe = recipe_for(split_name(config.dataset)[0])
    if config.architecture is None:
        config = config.replace(hidden=recipe.hidden)
    assert config.architecture is not None
    batch_size = min(config.batch_size or recipe.batch_size(samples), samples)
    usual = "gaussian" if config.task == "regression" else "label" if classes == 2 else "argmax"
    output = config.output or usual
    if output == "label" and classes != 2:
        raise ValueError(f"output 'label' is for two classes, the data have {classes}: use 'argmax', or binary_task")
    chosen: dict[str, Any] = {}
    if config.recipe == PAPER.name:
        depth = architecture.depth(config.architecture)
        rho = config.rho or recipe.rho(depth, config.epochs * (samples // batch_size))
        chosen = {"rho": rho, "damping": config.damping or (recipe.damping,)}
    config = config.replace(batch_size=batch_size, output=output, **chosen)
    weights = free_weights(config, input_shape(config, features, image_shape), classes)
    every = config.evaluate_every or measuring.interval(config.algorithm, samples, test_samples, weights)
    return config.replace(evaluate_every=every)
