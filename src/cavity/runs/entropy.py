"""What the messages say about a run: the evidence of its design, and the surroundings of the weights it ended with.

``cavity entropy`` writes both into ``entropy.json`` in the run's folder, where the report finds them.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from cavity.util.files import write_whole
from cavity.util.plain import from_json
from cavity.util.regular import read_regular
from cavity.util.text import shown

if TYPE_CHECKING:
    from torch import Tensor

    from cavity.core.network import Network
    from cavity.data import Dataset
    from cavity.runs.config import Config
    from cavity.runs.folder import Run

ENTROPY = "entropy.json"
#: Fractions of flipped weights.
DISTANCES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1)
#: Training samples that the evidence and the surroundings are computed on, and flips for the local energy.
EVIDENCE_SAMPLES, LOCAL_SAMPLES, DRAWS = 2_000, 200, 20
#: AMP in mini-batches, because all samples at once seldom converge behind a hidden layer; a hundredth of a ±1 weight.
EVIDENCE: dict[str, Any] = {"algorithm": "amp", "iterations": 100, "tolerance": 0.01}


@dataclass(frozen=True)
class Entropies:
    """One ``entropy.json``. Numbers that message passing did not converge to are None."""

    #: log P(y | x) of the training samples under the prior that training began with, per sample.
    evidence: float | None
    evidence_samples: int
    #: Of the training samples that the trained network gets right; empty where weights are not binary.
    constraints: int
    samples: int
    distances: tuple[float, ...]
    #: log-number of solutions and of all networks at each distance, per weight.
    local_entropy: tuple[float | None, ...]
    unconstrained: tuple[float, ...]
    #: Rise of the error on the same samples, in percentage points.
    local_energy: tuple[float, ...]


def evidence_of(config: Config, net: Network, x: Tensor, y: Tensor) -> float | None:
    """log P(y | x) per sample under the prior that a fresh ``net`` holds, None if it is not known. Whitening and
    thresholds begin where inputs x say, as they would in training."""
    from cavity.analysis.entropy import Unreliable, log_evidence
    from cavity.analysis.metrics import train_sample
    from cavity.training.trainer import BALANCE_SAMPLES

    if not net.balanced:
        net.balance(train_sample(x, y, BALANCE_SAMPLES)[0])
    try:
        return log_evidence(net, x, y, batch_size=config.batch_size, **EVIDENCE).value / len(x)
    except Unreliable:
        return None


def entropies(
    run: Run,
    dataset: Dataset | None = None,
    *,
    samples: int | None = None,
    distances: Sequence[float] = DISTANCES,
    algorithm: str = "bp",
    tell: Callable[[int], object] = lambda done: None,
) -> Entropies:
    """Compute both on at most ``samples`` training samples, always the same ones; ``dataset`` is the run's own.
    ``tell`` is called with how much is done: 1 for the evidence, and 1 for each distance."""
    from cavity.analysis.metrics import train_sample
    from cavity.runs.building import build_network
    from cavity.runs.config import input_shape, output_units

    if samples is not None and samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples}")
    data, net, config = dataset or run.load_dataset(), run.load_network(), run.config
    shape = input_shape(config, data.n_features, data.image_shape)
    fresh = build_network(config, shape, output_units(config.output, data.n_classes))
    many = train_sample(data.x_train, data.y_train, samples or EVIDENCE_SAMPLES)
    few = train_sample(data.x_train, data.y_train, samples or LOCAL_SAMPLES)
    found = evidence_of(config, fresh, *many)
    tell(1)
    around = _surroundings(net, *few, distances, algorithm, config.seed, lambda done: tell(1 + done))
    return Entropies(found, len(many[0]), **around)


def _surroundings(
    net: Network,
    x: Tensor,
    y: Tensor,
    distances: Sequence[float],
    algorithm: str,
    seed: int,
    tell: Callable[[int], object],
) -> dict[str, Any]:
    """The fields about the surroundings of ``net``."""
    import torch

    from cavity.analysis.entropy import local_entropy
    from cavity.analysis.landscape import local_energy
    from cavity.analysis.metrics import percent_wrong
    from cavity.core.predict import forward
    from cavity.core.priors import Binary

    if not all(isinstance(layer.prior, Binary) for layer in net.weighted()):
        empty: dict[str, Any] = dict.fromkeys(("distances", "local_entropy", "unconstrained", "local_energy"), ())
        return {"constraints": 0, "samples": len(x), **empty}

    inputs, known = net.check_inputs(x), [layer.point() for layer in net.weighted()]
    signs = [w[:, : layer.coupling.columns] for layer, w in zip(net.weighted(), known, strict=True)]

    def error(flipped: Sequence[Tensor]) -> float:
        # Thresholds, in the last column, stay as they are: they have no sign to flip.
        weights = [torch.cat([w, full[:, w.shape[1] :]], dim=1) for w, full in zip(flipped, known, strict=True)]
        guess = net.output.predict(forward(net, weights, inputs))
        return percent_wrong(guess, y.reshape(guess.shape))

    around = local_entropy(net, x, y, distances, algorithm=algorithm, damping=0.8, tell=tell)
    generator = torch.Generator().manual_seed(seed)
    energy = local_energy(error, signs, distances, repeats=DRAWS, generator=generator)
    return {
        "constraints": around.constraints,
        "samples": around.samples,
        "distances": around.distances,
        "local_entropy": tuple(None if value is None else value / around.weights for value in around.values),
        "unconstrained": around.unconstrained,
        "local_energy": tuple(energy.mean(dim=1).tolist()),
    }


def write_entropies(run: Run, found: Entropies) -> None:
    """Into ``entropy.json``."""
    write_whole(run.path / ENTROPY, (json.dumps(asdict(found), indent=1) + "\n").encode())


def read_entropies(run: Run) -> Entropies | None:
    """What is in ``entropy.json``, None where there is none; ValueError where it is something else."""
    file = run.path / ENTROPY
    if not os.path.lexists(file):
        return None
    try:
        values = from_json(read_regular(file))
        known = {field.name: values.pop(field.name) for field in fields(Entropies)}
        lists = {name: tuple(value) for name, value in known.items() if isinstance(value, list)}
        found = Entropies(**{**known, **lists})
        good = not values and all(map(_is_number, _numbers(found))) and len({*map(len, lists.values())}) == 1
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{file}: is not what cavity entropy writes: {shown(error)}") from error
    if not good or len(lists) != 4:
        raise ValueError(f"{file}: is not what cavity entropy writes")
    return found


def _numbers(found: Entropies) -> list[object]:
    """All that must be numbers in an ``entropy.json``."""
    optional = [value for value in (found.evidence, *found.local_entropy) if value is not None]
    counts = [found.evidence_samples, found.constraints, found.samples]
    return [*optional, *counts, *found.distances, *found.unconstrained, *found.local_energy]


def _is_number(value: object) -> bool:
    from cavity.analysis.metrics import is_number

    return is_number(value) and math.isfinite(value)  # type: ignore[arg-type]
