"""A run in a few lines: what was trained, how, where, and with what versions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cavity.core.couplings import Conv2d
from cavity.report.wording import counted, thin

if TYPE_CHECKING:
    from cavity.core.network import Network
    from cavity.runs.config import Config
    from cavity.runs.origin import Origin

Facts = tuple[tuple[str, str], ...]
UNKNOWN = "not recorded"
#: Letters of a commit that are enough to find it.
SHORT = 10


def architecture(net: Network) -> str:
    """``64 → 201 → 201 → 10``, or ``1×8×8 → conv 24 of 3×3 → MaxPool(2) → 65 → 10``."""
    parts = [_shape(net.input_shape)]
    if net.front is not None:
        parts.append(f"whitening {net.front.coupling.outputs} of {_shape(net.front.coupling.kernel)}")
    for layer, pool in zip(net.weighted(), (*net.pools, None), strict=True):
        coupling = layer.coupling
        conv = isinstance(coupling, Conv2d)
        parts.append(f"conv {coupling.outputs} of {_shape(coupling.kernel)}" if conv else str(coupling.outputs))  # type: ignore[attr-defined]
        parts += [repr(pool)] if pool is not None else []
    return " → ".join(parts)


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))


def of_network(net: Network) -> Facts:
    """Its layers, its weights and its units."""
    layers = net.weighted()
    kinds = ", ".join(dict.fromkeys(layer.prior.name for layer in layers))
    units = ", ".join(dict.fromkeys(activation.name for activation in net.activations)) or "none"
    free = thin(sum(layer.free_weights for layer in layers))
    thresholds = sum(math.prod(layer.threshold.shape) for layer in layers if layer.threshold is not None)
    more = f" and {thin(thresholds)} thresholds" if thresholds else ""
    return (
        ("Architecture", architecture(net)),
        ("Weights", f"{free} {kinds}{more}"),
        ("Units", f"{units}; {net.output.name} output"),
    )


def of_config(config: Config, epochs: int) -> Facts:
    """Its algorithm, and how far it has come in ``epochs``."""
    done = counted(epochs, "epoch") if epochs >= config.epochs else f"{epochs} of {config.epochs} epochs"
    recipe = f"{config.recipe} recipe" if config.memory is None else f"memory of {config.memory:g} samples"
    return (
        ("Algorithm", f"{config.algorithm}, {recipe}"),
        ("Training", f"{done}, mini-batches of {config.batch_size}, seed {config.seed}"),
    )


def of_origins(origins: Sequence[Origin]) -> Facts:
    """Where the run was trained last, and when it began."""
    if not origins:
        return (("Machine", UNKNOWN), ("Versions", UNKNOWN), ("Commit", UNKNOWN))
    first, last = origins[0], origins[-1]
    hosts = ", ".join(dict.fromkeys(one.host for one in origins))
    begun = first.began[:16].replace("T", " ") + " UTC"
    begun += f", resumed {counted(len(origins) - 1, 'time')}" if len(origins) > 1 else ""
    machine = (
        f"{hosts} ({last.system}, {counted(last.cores, 'core')}), {last.device}, {counted(last.threads, 'thread')}"
    )
    versions = f"cavity {last.cavity}, torch {last.torch}, numpy {last.numpy}, Python {last.python}"
    return (("Begun", begun), ("Machine", machine), ("Versions", versions), ("Commit", _commits(origins)))


def _commits(origins: Sequence[Origin]) -> str:
    """The commits of all sessions, each once."""
    changed = ", with changes that were not committed"
    words = (one.commit[:SHORT] + (changed if one.changed else "") for one in origins if one.commit)
    return "; then ".join(dict.fromkeys(words)) or "the code was no git checkout"
