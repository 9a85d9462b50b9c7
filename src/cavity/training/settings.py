"""What the arguments of a trainer mean: checked, and turned into a plan, the sites of its network and the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Literal

from cavity.core.couplings import Conv2d
from cavity.core.floors import VARIANCE_FLOOR
from cavity.core.network import Network
from cavity.core.state import Focusing, Site
from cavity.training.batches import Pair
from cavity.training.plans import CONSTANT, Annealed, Given, Plan, Remembering
from cavity.training.recipes import PAPER
from cavity.training.schedules import SCHEDULES, Function

Numbers = float | Sequence[float]
#: Replicas, and their coupling, beyond which nothing changes.
LARGEST_FOCUSING = 1e6


def checked_network(net: object) -> Network:
    """``net`` itself, or a TypeError that says how to get one."""
    if isinstance(net, Network):
        return net
    what = f"the class {net.__name__}" if isinstance(net, type) else f"a {type(net).__name__}"
    if hasattr(net, "fit"):
        raise TypeError(f"net must be a cavity.Network, got {what}, which trains itself: call its fit")
    raise TypeError(
        f"net must be a cavity.Network, got {what}: make one, e.g. by cavity.mlp(64, (201,), 10); modules of "
        "torch have no posterior to pass messages about"
    )


def per_layer(name: str, value: Numbers, layers: int, allowed: str, good: Callable[[float], bool]) -> tuple[float, ...]:
    """One number for all layers, or one for each, checked by ``good``."""
    if not isinstance(value, Iterable | Real):
        raise TypeError(f"{name} must be one number or {layers}, one for each layer, got {value!r}")
    values = list(value) if isinstance(value, Iterable) else [value] * layers
    if len(values) != layers:
        raise ValueError(f"{name} must be one number or {layers}, one for each layer, got {len(values)}")
    for number in values:
        if not (isinstance(number, Real) and math.isfinite(number) and good(float(number))):
            raise ValueError(f"{name} must be {allowed}, got {number!r}")
    return tuple(float(number) for number in values)


def make_plan(
    net: Network,
    rate: Numbers | Literal["auto"] | None,
    schedule: str | Function | None,
    rho: Numbers | None,
    damping: Numbers | None,
    memory: float | None = None,
    readout_samples: float | None = None,
) -> Plan:
    """The plan that the arguments of a trainer ask for."""
    counted = checked_readout(
        readout_samples, memory is None and rho is None and damping is None and rate in (None, "auto")
    )
    if memory is not None:
        others = {"rate": rate if rate != "auto" else None, "schedule": schedule, "rho": rho, "damping": damping}
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise ValueError(f"memory chooses the update of a stream: give no {given[0]} with it")
        return Remembering(checked_memory(memory))
    factor = SCHEDULES.make(schedule) if isinstance(schedule, str) else schedule
    if rate == "auto" or (rate is None and rho is None and damping is None):
        if rho is not None or damping is not None:
            raise ValueError('rate="auto" chooses rho and damping too: give none of them, or a rate in numbers')
        shares = any(isinstance(layer.coupling, Conv2d) for layer in net.weighted())
        plan = Annealed.of_convolutions() if shares else Annealed()
        # Real weights never become certain: nothing to quench.
        quench = plan.quench if any(layer.prior.polarizes for layer in net.weighted()) else 0.0
        bounded = net.output.curvature_stays
        return replace(plan, schedule=factor, quench=quench, bounded=bounded, readout_samples=counted)
    layers = len(net.layers)
    return Given(
        per_layer("rho", PAPER.rho(layers) if rho is None else rho, layers, "> 0", lambda v: v > 0),
        per_layer("rate", 1.0 if rate is None else rate, layers, ">= 0", lambda v: v >= 0),
        per_layer("damping", PAPER.damping if damping is None else damping, layers, "in [0, 1)", lambda v: 0 <= v < 1),
        CONSTANT if factor is None else factor,
    )


def checked_memory(memory: float) -> float:
    """Samples, of which there may be infinitely many; ValueError for what is no number of them."""
    if not isinstance(memory, Real) or isinstance(memory, bool) or not memory >= 1:
        raise ValueError(f"memory must be a number of samples, at least 1 (math.inf never forgets), got {memory!r}")
    return float(memory)


def checked_readout(samples: float | None, chosen: bool) -> float:
    """Samples that the readout counts; ValueError where the messages do not choose the rate, or for no such number."""
    if samples is None:
        return Annealed.readout_samples
    if not isinstance(samples, Real) or isinstance(samples, bool) or not 1 <= samples < math.inf:
        raise ValueError(f"readout_samples must be a finite number of samples, at least 1, got {samples!r}")
    if not chosen:
        raise ValueError("readout_samples is for rates that the messages choose: give no rate, rho, damping or memory")
    return float(samples)


def sites_of(net: Network, fisher: bool) -> tuple[Site, ...]:
    """The layers of ``net`` with the messages that the plan asks for."""
    bare = fisher and net.output.curvature_stays
    return tuple(site.sending(fisher, bare) for site in net.sites)


def require_visible(sample: Pair | None) -> None:
    """ValueError for data so small that the floor under variances hides them."""
    largest, least = 0.0 if sample is None else float(sample[0].abs().max()), VARIANCE_FLOOR**0.5
    if 0 < largest < least:
        raise ValueError(
            f"x must not be all below {least:g}, the largest of the training data is {largest:.3g}: standardise it"
        )


def checked_focusing(focusing: tuple[float, float] | None, net: Network) -> Focusing | None:
    if focusing is None:
        return None
    replicas, gamma = focusing
    if not (1 <= replicas <= LARGEST_FOCUSING and 0 <= gamma <= LARGEST_FOCUSING):
        raise ValueError(
            f"focusing must be (replicas >= 1, gamma >= 0), both at most {LARGEST_FOCUSING:g}, got {focusing}"
        )
    others = {layer.prior.name for layer in net.weighted()} - {"binary"}
    if others:
        raise ValueError(
            f"focusing couples replicas of ±1 weights; the network has {', '.join(sorted(others))} weights"
        )
    return Focusing(replicas, gamma)


def checked_tolerance(tolerance: float | None) -> float | None:
    if tolerance is not None and not (math.isfinite(tolerance) and tolerance > 0):
        raise ValueError(f"tolerance must be None or a finite number > 0, got {tolerance}")
    return tolerance
