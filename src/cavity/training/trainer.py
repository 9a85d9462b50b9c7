"""Training: fit → epoch → step, with callbacks. One step is one mini-batch of Posterior-as-Prior."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from cavity.analysis import landscape, metrics
from cavity.analysis.metrics import EpochRecord
from cavity.core.algorithms import ALGORITHMS, Algorithm
from cavity.core.couplings.base import check_sizes
from cavity.core.messages import Fields, Moments
from cavity.core.network import Network, resolve
from cavity.core.pasp import Engine, Settings, StepInfo, Update, update
from cavity.core.posterior import Focusing
from cavity.engine import allocation as memory
from cavity.engine.arithmetic import Accuracy, Evaluation
from cavity.engine.distributed import Team, join
from cavity.engine.fusion import Kernels, Mode, checked_mode, kernels, pays
from cavity.training.batches import Batches
from cavity.training.callbacks import Callback
from cavity.training.loop import Loop, Pair, Source

Numbers = float | Sequence[float]
Data = Pair | Iterable[Pair]


class NonFiniteField(FloatingPointError):
    """A field became NaN or infinite; the network still holds the state before that step.

    Devices other than the CPU are asked at the end of an epoch of ``fit``; until then the network does not change."""


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


def paper_rho(layers: int) -> tuple[float, ...]:
    """The paper's prescription: just above 1 below the last layer, which is kept from polarising by 0.9."""
    return (1.0,) if layers == 1 else (1.0001,) * (layers - 1) + (0.9,)


class Trainer(Loop):
    """Trains a network by message passing.

    ``algorithm`` is "bp", "bpi", "mf" or "amp". ``rho``, ``damping`` and ``reinforcement`` are one number or one per
    layer; ``rho=None`` is the paper's prescription. ``reinforcement_step`` anneals 1 − r ← (1 − r)(1 − step) at every
    inner iteration, ``focusing=(y, gamma)`` replaces r by y coupled replicas. ``tolerance`` ends the inner loop when no
    weight mean moves by more. All randomness (shuffling, sampled outputs) comes from one generator.

    ``accuracy`` says how "bp" and "bpi" evaluate their cavity sums: "exact", a series of the given order (int), or the
    cheapest that agrees with exact fields to a tolerance (float, relative to the largest); None is 1e-3 in float32 and
    exact in float64. On processors that multiply bfloat16, the corrections that these add to mean field are of that
    where the tolerance allows it, and so are those of "amp" at 1e-3 and more; never with "exact" or an order.
    ``compile`` fuses elementwise work by torch.compile: True, False, or "auto", where ``fit`` compiles if the run is
    long enough to earn it back.

    ``distributed`` trains in all processes that torchrun started: each is given the same data and takes its share of
    every mini-batch. Errors are measured by the first process, which tells the others (docs/scaling.md).
    """

    net: Network

    def __init__(
        self,
        net: Network,
        algorithm: str | Algorithm = "bp",
        *,
        rho: Numbers | None = None,
        damping: Numbers = 0.8,
        inner_iterations: int = 1,
        reinforcement: Numbers = 0.0,
        reinforcement_step: float = 0.0,
        focusing: tuple[float, float] | None = None,
        tolerance: float | None = None,
        accuracy: Accuracy = None,
        compile: Mode = "auto",
        distributed: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(seed)
        check_sizes(inner_iterations=inner_iterations)
        layers = len(net.layers)
        rho = paper_rho(layers) if rho is None else rho
        self.net = net
        self.algorithm = resolve("algorithm", algorithm, ALGORITHMS)
        self.evaluations = [Evaluation(accuracy) for _ in range(layers)]
        self.compile = checked_mode(compile)
        self.settings = Settings(
            rho=per_layer("rho", rho, layers, "> 0", lambda v: v > 0),
            damping=per_layer("damping", damping, layers, "in [0, 1)", lambda v: 0 <= v < 1),
            reinforcement_step=per_layer(
                "reinforcement_step", reinforcement_step, 1, "in [0, 1]", lambda v: 0 <= v <= 1
            )[0],
            focusing=_checked_focusing(focusing, net),
            inner_iterations=int(inner_iterations),
            tolerance=_checked_tolerance(tolerance),
        )
        #: Internal reinforcement r of each layer, where annealing has brought it.
        self.reinforcement = per_layer("reinforcement", reinforcement, layers, "in [0, 1]", lambda v: 0 <= v <= 1)
        self._use(kernels(compile is True and self._can_fuse()))
        #: The processes that train together, None where this is the only one.
        self.team: Team | None = join() if distributed else None
        memory.keep_freed_pages(max(layer.field.numel() * layer.field.element_size() for layer in net.weighted()))
        #: On devices other than the CPU, the step in which each layer's field stopped being finite, 0 if it is.
        self._failed: Tensor | None = None
        #: Of the unfinished epoch: entries that needed a floor or the bound, and all that might have.
        self._clamped: Tensor | int = 0
        self._entries = 0

    def step(self, x: Tensor, y: Tensor) -> StepInfo:
        """Message passing on one mini-batch, then write the new posterior; returns diagnostics.

        x is (samples, *input_shape) floating point; y is ±1 (label), 0…C−1 (argmax) or real (Gaussian output).
        Where several processes train, all are given the whole mini-batch.
        """
        x, y = self._checked(x, y)
        info: StepInfo = self._step(x if self.team is None else x[self.team.part(len(x))], y)
        return info

    @torch.no_grad()
    def _learn(self, x: Tensor, y: Tensor) -> StepInfo:
        """x are this process's share of the samples, y the labels of all."""
        share = None if self.team is None else self.team.share(len(y))
        layers = self.net.weighted()
        iterations = self.settings.inner_iterations
        edges = self.algorithm.memory([layer.coupling for layer in layers], len(x), iterations)
        if edges:
            what = f"{self.algorithm.name} with {iterations} inner iterations on {len(x)} samples"
            memory.require(
                edges * x.element_size(),
                x.device,
                what,
                "use a smaller batch, inner_iterations=1, or 'bpi' or 'amp'",
            )
        engine = Engine(self.algorithm, self.sites, self.run)
        new = update(self.net, x, y, engine, self.settings, self.reinforcement, self.generator, share)
        self._write(new)
        self.reinforcement = new.reinforcement
        if self.batch == 0:
            self._clamped, self._entries = 0, 0
        self._clamped, self._entries = self._clamped + new.info.clamped_entries, self._entries + new.info.entries
        return new.info

    def _use(self, run: Kernels) -> None:
        """Make the layers as message passing sees them, with the given kernels."""
        self.run = run
        settings = self.settings
        self.sites = self.net.sites(settings.rho, settings.damping, settings.focusing, self.evaluations, run)

    def _can_fuse(self) -> bool:
        """A kernel is made for one r; annealing would make another at every step."""
        return self.settings.reinforcement_step == 0

    def _write(self, new: Update) -> None:
        """Write the new posterior, unless a field is not finite: then the layers keep what they have.

        On the CPU that is an error at once. Another device is not made to wait for the answer: it takes the old state
        or the new by itself, notes the step, takes nothing more after it, and is asked when the epoch ends.
        """
        layers = self.net.weighted()
        if new.largest.device.type == "cpu":
            self._raise_non_finite([0 if math.isfinite(h) else self.steps + 1 for h in new.largest.tolist()])
            for layer, carry in zip(layers, new.carries, strict=True):
                layer.set_state(carry.natural, carry.weights)
            return
        failed = torch.zeros_like(new.largest) if self._failed is None else self._failed
        finite, sound = torch.isfinite(new.largest), failed.sum() == 0
        self._failed = torch.where(sound & ~finite, self.steps + 1.0, failed)
        keep = sound & finite.all()
        for layer, carry in zip(layers, new.carries, strict=True):
            natural = Fields(*_choose(keep, carry.natural, layer.natural))
            layer.set_state(natural, Moments(*_choose(keep, carry.weights, layer.moments)))

    def _raise_non_finite(self, steps: Sequence[float]) -> None:
        """``steps`` is the step in which each layer's field stopped being finite, 0 if it is."""
        for number, step in enumerate(steps):
            if step:
                raise NonFiniteField(
                    f"the field of layer {number} became non-finite in step {int(step)}; the network holds the state "
                    "before it. Try rho closer to 1, more damping, or standardised inputs"
                )

    def fit(
        self,
        train: Data,
        *,
        epochs: int,
        validation: Pair | None = None,
        batch_size: int | None = 128,
        evaluate_every: int = 1,
        callbacks: Sequence[Callback] = (),
    ) -> list[EpochRecord]:
        """Train until ``epochs`` epochs are done in all, and return the history.

        ``train`` is a pair (x, y) of tensors, moved to the network's device once, or an iterable of mini-batches such
        as a DataLoader; ``batch_size=None`` is full-batch mode, else an incomplete last mini-batch is left out. Calling
        again continues, in mid-epoch if need be: an iterable is gone through anew up to there. ``compile="auto"`` does
        not compile for an iterable, whose length it does not know.
        Errors are measured after every ``evaluate_every``-th epoch and the last; other records have None there.
        """
        check_sizes(epochs=epochs, evaluate_every=evaluate_every)
        part = None if self.team is None else self.team.part
        source = Batches(*self._checked(*train), batch_size, part) if isinstance(train, tuple) else train
        held_out = None if validation is None else self._checked(*validation)
        if self.compile == "auto" and isinstance(source, Batches):
            weights = sum(layer.field.numel() for layer in self.net.weighted())
            samples = source.batch_size if self.team is None else -(-source.batch_size // self.team.size)
            self._use(kernels(pays(weights * samples, epochs * len(source)) and self._can_fuse()))
        sample = metrics.train_sample(source.x, source.y) if isinstance(source, Batches) else None
        if self.team is not None:
            self._require_agreement(self.team, source)
        return self._run(source, epochs, evaluate_every, sample, held_out, callbacks)

    def _require_agreement(self, team: Team, source: Source) -> None:
        """All processes must begin in the same state and, as far as labels can tell, with the same data."""
        team.require_same("a network", self.net.state_dict().values())
        position = torch.tensor([self.steps, self.epoch, self.batch, self.order_seed])
        annealed = torch.tensor(self.reinforcement)
        team.require_same("a position in training", [self.generator.get_state(), position, annealed])
        if isinstance(source, Batches):
            team.require_same("training labels", [source.y, torch.tensor(source.x.shape)])

    def _record(self, train: Pair | None, test: Pair | None) -> EpochRecord:
        if self._failed is not None:
            failed, self._failed = self._failed.tolist(), None
            self._raise_non_finite(failed)
        measured = partial(self._measure, train, test)
        return measured() if self.team is None else self.team.told(measured)

    @torch.no_grad()
    def _measure(self, train: Pair | None, test: Pair | None) -> EpochRecord:
        on_train = None if train is None else metrics.measure(self.net, *train)
        on_test = None if test is None else metrics.measure(self.net, *test)
        return EpochRecord(
            epoch=self.epoch,
            train_error=None if on_train is None else on_train.error,
            test_error=None if on_test is None else on_test.error,
            train_error_bayes=None if on_train is None else on_train.error_bayes,
            test_error_bayes=None if on_test is None else on_test.error_bayes,
            test_nll=None if on_test is None else on_test.nll,
            test_ece=None if on_test is None else on_test.ece,
            seconds=self.seconds,
            polarization=landscape.polarization(self.net).tolist(),
            overlap=landscape.overlap(self.net).tolist(),
            clamped=int(self._clamped) / self._entries,
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything but the network's own state that a resumed run needs to continue exactly."""
        return {
            **super().state_dict(),
            "reinforcement": list(self.reinforcement),
            "clamped": [int(self._clamped), self._entries],
            "evaluations": [evaluation.state_dict() for evaluation in self.evaluations],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where ``state_dict`` was taken."""
        super().load_state_dict(state)
        self.reinforcement = tuple(state["reinforcement"])
        self._clamped, self._entries = state.get("clamped", (0, 0))
        for evaluation, saved in zip(self.evaluations, state["evaluations"], strict=True):
            evaluation.load_state_dict(saved)


def _choose(
    keep: Tensor, new: tuple[Tensor, Tensor | None], old: tuple[Tensor, Tensor | None]
) -> tuple[Tensor, Tensor | None]:
    """``new`` where the 0-dimensional ``keep`` is true, else ``old``, decided on the device."""
    second = None if new[1] is None or old[1] is None else torch.where(keep, new[1], old[1])
    return torch.where(keep, new[0], old[0]), second


def _checked_focusing(focusing: tuple[float, float] | None, net: Network) -> Focusing | None:
    if focusing is None:
        return None
    replicas, gamma = focusing
    if not (math.isfinite(replicas) and replicas >= 1 and math.isfinite(gamma) and gamma >= 0):
        raise ValueError(f"focusing must be (replicas >= 1, gamma >= 0), both finite, got {focusing}")
    others = {layer.prior.name for layer in net.weighted()} - {"binary"}
    if others:
        raise ValueError(
            f"focusing couples replicas of ±1 weights; the network has {', '.join(sorted(others))} weights"
        )
    return Focusing(replicas, gamma)


def _checked_tolerance(tolerance: float | None) -> float | None:
    if tolerance is not None and not (math.isfinite(tolerance) and tolerance > 0):
        raise ValueError(f"tolerance must be None or a finite number > 0, got {tolerance}")
    return tolerance
