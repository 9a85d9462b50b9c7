"""What one cell trains: a network, a method and its data, as plain values that fit into JSON; and its training, which
can be cut short anywhere: a checkpoint is left, and it goes on from there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from torch import Tensor

from cavity import baselines, data
from cavity.analysis.metrics import measure, percent_wrong
from cavity.baselines.trainer import AnyTrainer
from cavity.core.algorithms import ALGORITHMS
from cavity.core.architecture import dense
from cavity.core.network import Network
from cavity.data import Dataset
from cavity.report.palette import LIGHT
from cavity.runs.building import build_network, build_trainer
from cavity.runs.checkpoint import SaveCheckpoint, load_checkpoint
from cavity.runs.config import Config, input_shape
from cavity.runs.folder import CHECKPOINT
from cavity.studies.experiments import TWO_CLASS, Progress, Size
from cavity.training.augmentation import Augmentation
from cavity.training.callbacks import OnEpoch
from cavity.training.recipes import PAPER
from cavity.training.trainer import Trainer

#: The rivals: what each is called in tables and figures, and its colour in all of them.
BASELINES = {
    "binarynet": ("BinaryNet", "#1c2430"),
    "binarynet-adam": ("BinaryNet (Adam)", LIGHT[7]),
    "binarynet-bn": ("BinaryNet (batch normalisation)", "#1c2430"),
    "sgd": ("SGD", "#1c2430"),
    "adam": ("Adam", LIGHT[7]),
    "ebp": ("EBP", LIGHT[4]),
    "bayesbinn": ("BayesBiNN", LIGHT[5]),
    "ewc": ("EWC", LIGHT[6]),
    "metaplastic": ("metaplastic", "peru"),
}
TITLES = {name: name.upper() for name in ALGORITHMS} | {name: title for name, (title, _) in BASELINES.items()}
METHODS = tuple(TITLES)
#: Values that setups did not have at first: records without them keep their meaning and their name.
LATER = {"last_evidence": 1.0, "recipe": PAPER.name, "schedule": None, "memory": None, "layers": None, "augment": None}
#: What is kept of every epoch, and with how many digits after the point.
CURVES = {
    "train_error": 3,
    "test_error": 3,
    "train_error_bayes": 3,
    "test_error_bayes": 3,
    "test_nll": 5,
    "test_ece": 5,
    "seconds": 2,
}
LAYER_CURVES = ("polarization", "overlap")


@dataclass(frozen=True)
class Setup:
    """The paper's usual values are the defaults; ``rho=None`` is its prescription (1.0001, …, 0.9).

    ``dataset`` may end in "-two-class"; ``output`` is the method of an argmax; ``samples`` keeps that many at random
    to train and to test on; ``last_evidence`` is what part of a mini-batch's fields the last layer takes in. With
    another ``recipe`` than the paper's the messages choose the numbers of the update, and none of them counts;
    ``schedule`` is that of a baseline's learning rate. ``memory`` is for streams, in samples. ``layers`` in words take
    the place of ``hidden``, with thresholds in message passing; ``augment`` says how images are changed at random.
    """

    method: str
    dataset: str
    hidden: tuple[int, ...] = PAPER.hidden
    epochs: int = 100
    seed: int = 0
    batch_size: int = PAPER.usual_batch
    rho: tuple[float, ...] | None = None
    damping: tuple[float, ...] = (PAPER.damping,)
    weights: str = PAPER.weights
    activation: str = PAPER.activation
    output: str = "pairwise"
    density: float = 1.0
    init: float = PAPER.init
    lr: float | None = None
    samples: tuple[int, int] | None = None
    last_evidence: float = 1.0
    recipe: str = PAPER.name
    schedule: str | None = None
    memory: float | None = None
    layers: str | None = None
    augment: str | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}")

    def as_dict(self) -> dict[str, Any]:
        """Plain values; tuples become lists. What is in LATER is there only if it is not the default."""
        values = {name: value for name, value in asdict(self).items() if name not in LATER or value != LATER[name]}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Setup:
        known = {item.name for item in fields(cls)}
        if set(LATER | values) != known:
            raise ValueError(f"a setup has {', '.join(sorted(known))}, got {', '.join(sorted(values))}")
        tuples: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in values.items()}
        return cls(**tuples)

    def replace(self, **changes: Any) -> Setup:
        return replace(self, **changes)

    @property
    def two_class(self) -> bool:
        return self.dataset.endswith(TWO_CLASS)


def setups(size: Size, methods: Sequence[str] = ("bp",), widths: Sequence[int] = ()) -> Iterator[Setup]:
    """Two hidden layers, for each seed, width, data set and method, in this order."""
    for seed, width, dataset, method in product(range(size.seeds), widths or [size.width], size.datasets, methods):
        yield Setup(method, dataset, (width,) * 2, size.epochs, seed, samples=size.samples)


def field_damped(rho: tuple[float, ...], alpha: float = 0.8) -> dict[str, Any]:
    """A setup's values where the last layer's field is damped and not its mean, h ← αh + (1 − α)(ρh + H): that is
    ρ' = α + (1 − α)ρ on a part 1 − α of the evidence. The other layers damp their means."""
    *lower, last = rho
    return {
        "rho": (*lower, round(alpha + (1 - alpha) * last, 12)),
        "damping": (*(alpha for _ in lower), 0.0),
        "last_evidence": round(1 - alpha, 12),
    }


def load(setup: Setup) -> Dataset:
    """The data of a setup, standardised; two-class labels are ±1."""
    whole = data.load(setup.dataset.removesuffix(TWO_CLASS), binary_task=setup.two_class)
    return whole if setup.samples is None else whole.subset(*setup.samples)


def build(setup: Setup, dataset: Dataset) -> AnyTrainer:
    """A fresh trainer on a fresh network."""
    sizes = dataset.n_features, setup.hidden, 1 if setup.two_class else dataset.n_classes
    if setup.layers is not None or setup.method == "binarynet-bn":
        return _in_words(setup, setup.layers or dense(setup.hidden), dataset)
    if setup.method in ALGORITHMS:
        return _message_passing(setup, *sizes)
    method, seed = setup.method, setup.seed
    if method == "ebp":
        if setup.density != 1 or setup.init != 1:
            raise ValueError(f"EBP has no density or init, got density {setup.density} and init {setup.init}")
        expectation = baselines.ExpectationBackpropagation(*sizes, weights=setup.weights, seed=seed)
        return baselines.ExpectationTrainer(expectation, seed)
    units: dict[str, Any] = {"activation": setup.activation, "density": setup.density, "seed": seed}
    rule: dict[str, Any] = {"lr": setup.lr, "schedule": setup.schedule, "seed": seed}
    if method == "bayesbinn":
        return baselines.BayesBiNNTrainer(baselines.BayesBinaryNet(*sizes, **units), **rule)
    if method == "ewc":
        return baselines.ElasticTrainer(baselines.BinaryNet(*sizes, **units), **rule)
    if method == "metaplastic":
        return baselines.MetaplasticTrainer(baselines.BinaryNet(*sizes, **units), **rule)
    optimizer = "adam" if method.endswith("adam") else "sgd"
    if method.startswith("binarynet"):
        return baselines.BinaryNetTrainer(baselines.BinaryNet(*sizes, **units), optimizer, **rule)
    return baselines.PerceptronTrainer(baselines.Perceptron(*sizes, **units), optimizer, **rule)


def _in_words(setup: Setup, layers: str, dataset: Dataset) -> AnyTrainer:
    """Message passing with thresholds, or BinaryNet with batch normalisation, on the same network."""
    outputs = 1 if setup.two_class else dataset.n_classes
    same: dict[str, Any] = {name: getattr(setup, name) for name in ("weights", "activation", "init", "seed", "recipe")}
    config = Config(layers=layers, threshold=True, **same)
    shape = input_shape(config, dataset.n_features, dataset.image_shape)
    if setup.method == "binarynet-bn":
        net = baselines.NormalizedBinaryNet(layers, shape, outputs, seed=setup.seed)
        return baselines.NormalizedTrainer(net, lr=setup.lr, seed=setup.seed)
    if setup.method not in ALGORITHMS:
        raise ValueError(f"layers in words are for message passing and binarynet-bn, got method {setup.method!r}")
    config = config.replace(algorithm=setup.method)
    return build_trainer(config, build_network(config, shape, outputs))


def _message_passing(setup: Setup, inputs: int, hidden: tuple[int, ...], outputs: int) -> Trainer:
    same = ["hidden", "weights", "activation", "density", "init", "seed"]
    if setup.memory is not None:
        same.append("memory")
    if setup.recipe != PAPER.name:
        config = Config(algorithm=setup.method, recipe=setup.recipe, **{name: getattr(setup, name) for name in same})
        return build_trainer(config, build_network(config, inputs, outputs))
    same += ["rho", "damping"]
    output = "label" if outputs == 1 else f"argmax-{setup.output}"
    config = Config(algorithm=setup.method, output=output, **{name: getattr(setup, name) for name in same})
    net = build_network(config, inputs, outputs)
    return build_trainer(config, net, rate=(*[1.0] * len(hidden), setup.last_evidence))


def fit(
    trainer: AnyTrainer,
    setup: Setup,
    tasks: Sequence[tuple[Tensor, Tensor]],
    validation: tuple[Tensor, Tensor],
    folder: Path,
    progress: Progress,
    image_shape: tuple[int, int, int] | None = None,
) -> None:
    """Train on each of ``tasks`` (x, y) for ``setup.epochs`` epochs, on from the checkpoint in ``folder``, if any.

    Epochs are counted through, so that the trainer's own count says where in the sequence it is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CHECKPOINT
    if path.exists():
        load_checkpoint(path).restore(trainer.net, trainer)
    told = OnEpoch(lambda trainer, record: progress(record.epoch, setup.epochs * len(tasks)))
    options: dict[str, Any] = {"batch_size": setup.batch_size, "callbacks": [SaveCheckpoint(path), told]}
    options["augment"] = Augmentation.of(setup.augment, image_shape)
    for number, task in enumerate(tasks, start=1):
        trainer.fit(task, epochs=setup.epochs * number, validation=validation, **options)


def trained(setup: Setup, folder: Path, progress: Progress) -> tuple[AnyTrainer, Dataset]:
    """The trainer of a setup when its epochs are done, and its data."""
    dataset = load(setup)
    trainer = build(setup, dataset)
    train, test = (dataset.x_train, dataset.y_train), (dataset.x_test, dataset.y_test)
    fit(trainer, setup, [train], test, folder, progress, dataset.image_shape)
    return trainer, dataset


def summary(trainer: AnyTrainer, dataset: Dataset) -> dict[str, Any]:
    """Curves over the epochs, the last values, and the errors on the whole training set at the end."""
    history = trainer.history
    curves: dict[str, Any] = {name: [_rounded(getattr(r, name), d) for r in history] for name, d in CURVES.items()}
    curves |= {name: [[round(v, 5) for v in getattr(r, name)] for r in history] for name in LAYER_CURVES}
    final = {name: curves[name][-1] for name in CURVES if name != "seconds"}
    final["train_error"], final["train_error_bayes"] = whole_errors(trainer, dataset.x_train, dataset.y_train)
    return {"final": final, "curves": curves}


def whole_errors(trainer: AnyTrainer, x: Tensor, y: Tensor) -> tuple[float, float | None]:
    """Point-wise and Bayesian error in percent on all of (x, y); None where there is no posterior."""
    net = trainer.net
    if isinstance(net, Network):
        measured = measure(net, x, y)
        return round(measured.error, 4), round(measured.error_bayes, 4)
    bayes = net.predict(x, "bayes") if net.bayesian else None
    return round(percent_wrong(net.predict(x), y), 4), None if bayes is None else round(percent_wrong(bayes, y), 4)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
