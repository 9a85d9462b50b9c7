"""Training: fit → epoch → step, with callbacks. One step is one mini-batch of Posterior-as-Prior."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from cavity.analysis import landscape, metrics
from cavity.analysis.metrics import EpochRecord, is_number
from cavity.core.algorithms import ALGORITHMS, Algorithm
from cavity.core.couplings.base import check_sizes
from cavity.core.network import Network
from cavity.core.pasp import Method, State, StepInfo, update
from cavity.core.state import Rule
from cavity.engine import allocation
from cavity.engine.choosing import Accuracy
from cavity.engine.compiling import Mode, checked_mode, kernels, pays
from cavity.engine.distributed import digest_of, join
from cavity.engine.runner import Runner
from cavity.training.agreement import facts
from cavity.training.batches import Batches, Pair, Recent
from cavity.training.loop import Loop, require_count
from cavity.training.plans import Given, Place
from cavity.training.schedules import Function
from cavity.training.settings import (
    Numbers,
    checked_focusing,
    checked_network,
    checked_tolerance,
    make_plan,
    per_layer,
    require_visible,
    sites_of,
)
from cavity.training.summary import summary
from cavity.training.watch import DivergenceWarning, Level, levels, remedy, trouble
from cavity.training.writing import raise_non_finite, write


class Trainer(Loop[StepInfo]):
    """Trains a network by message passing.

    Args:
        net: the network; its layers hold the posterior.
        algorithm: "bp", "bpi", "mf" or "amp", or an ``Algorithm``.
        rate: the factor on the evidence of a mini-batch. "auto" lets the messages choose it, in every layer and step;
            one number or one per layer is the update of the paper, which has 1.
        schedule: how the rate changes over a call of ``fit``: "constant", "cosine", "one-cycle", "steps", or a function
            of the fraction of training that is done. None is the full schedule of "auto" (learn, anneal, and make the
            weights certain at the end), or constant for given numbers.
        rho: ρ, the power of the posterior that is the next prior, one number or one per layer; None is the paper's.
        damping: α, the part of the old weight means that stays; one number or one per layer; None is the paper's 0.8.
            Where ρ or α is given and no rate, the rate is the paper's too.
        memory: for streams, in which every sample is seen once and nothing is annealed: after that many samples 37 %
            of the evidence is left, with ``math.inf`` all of it. It takes the place of rate, schedule, rho and damping.
        readout_samples: where the messages choose the rate, how many samples the posterior of a discrete readout
            counts; None is 1280. More make Bayesian probabilities surer: choose it on held-out samples.
        inner_iterations: τ_max, sweeps per mini-batch.
        reinforcement: r, one number or one per layer.
        reinforcement_step: anneals 1 − r ← (1 − r)(1 − step) at every inner iteration.
        focusing: (y, γ) replaces r by y coupled replicas.
        tolerance: ends the inner loop when no weight mean moves by more; None never does.
        accuracy: how "bp" and "bpi" evaluate their cavity sums: "exact", a series of the given order (int), or the
            cheapest that agrees with exact fields to a tolerance (float, relative to the largest); None is 1e-3 in
            float32 and exact in float64. A tolerance of 1e-3 or more also lets corrections to mean field, those of
            "amp" included, be computed in bfloat16 on processors that multiply it.
        compile: fuses elementwise work by torch.compile: True, False, or "auto", where ``fit`` compiles if the run is
            long enough to earn it back.
        distributed: trains in all processes that torchrun started: each is given the same data and takes its share of
            every mini-batch. Errors are measured by the first process, which tells the others (docs/scaling.md).
        seed: of all randomness (shuffling, sampled outputs).
    """

    net: Network

    def __init__(
        self,
        net: Network,
        algorithm: str | Algorithm = "bp",
        *,
        rate: Numbers | Literal["auto"] | None = None,
        schedule: str | Function | None = None,
        rho: Numbers | None = None,
        damping: Numbers | None = None,
        memory: float | None = None,
        readout_samples: float | None = None,
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
        net = checked_network(net)
        check_sizes(inner_iterations=inner_iterations)
        layers = len(net.layers)
        step = per_layer("reinforcement_step", reinforcement_step, 1, "in [0, 1]", lambda v: 0 <= v <= 1)[0]
        self.net = net
        #: What decides the numbers of each step.
        self.plan = make_plan(net, rate, schedule, rho, damping, memory, readout_samples)
        self.method = Method(
            ALGORITHMS.make(algorithm),
            sites_of(net, self.plan.fisher),
            int(inner_iterations),
            checked_tolerance(tolerance),
            step,
        )
        self._priors = [site.prior for site in self.method.sites]
        self.focusing = checked_focusing(focusing, net)
        #: Internal reinforcement r of each layer, where annealing has brought it.
        self.reinforcement = per_layer("reinforcement", reinforcement, layers, "in [0, 1]", lambda v: 0 <= v <= 1)
        self.team = join() if distributed else None
        self.compile = checked_mode(compile)
        self.runner = Runner(layers, accuracy, self.team)
        self.runner.kernels = kernels(compile is True and self._can_fuse())
        #: On devices other than the CPU, the step in which each layer's field stopped being finite, 0 if it is.
        self._failed: Tensor | None = None
        #: Of the unfinished epoch: entries that needed a floor or the bound, and all that might have.
        self._clamped: Tensor | int = 0
        self._entries = 0
        #: Whether ``fit`` warns where training has diverged (``training/watch.py``), and where in the history the
        #: records of its present data begin.
        self.watch, self._since = True, 0
        self._digest: str | None = None
        #: Whether the next mini-batch of ``fit`` says where thresholds begin.
        self._unbalanced = False

    def __repr__(self) -> str:
        """What it trains and how, and where it is, in a few lines."""
        return summary(self)

    def place(self, batch_size: int) -> Place:
        """Where in its run the next step is."""
        return Place(self.fraction, self.run_steps, self.epoch_steps, batch_size)

    def rules(self, place: Place) -> list[Rule]:
        """The numbers of each layer's update at that place; internal reinforcement is the state's."""
        planned = self.plan.rules(self._priors, place)
        return planned if self.focusing is None else [rule._replace(focusing=self.focusing) for rule in planned]

    def _snapshot(self) -> tuple[Any, ...]:
        counted = self.reinforcement, self._failed, self._clamped, self._entries
        return *super()._snapshot(), self.net.snapshot(), self.runner.snapshot(), counted

    def _go_back(self, before: tuple[Any, ...]) -> None:
        *position, layers, runner, counted = before
        super()._go_back(tuple(position))
        self.net.go_back(layers)
        self.runner.go_back(runner)
        self.reinforcement, self._failed, self._clamped, self._entries = counted

    def learn(self, x: Tensor, y: Tensor) -> StepInfo:
        """Message passing on one checked mini-batch, then write the new posterior. Where several processes train, x are
        the samples of this one and y the labels of all."""
        with torch.no_grad():
            if self._unbalanced:
                self._balance(x)
            x = self.net.prepared(x)
            self._require_room(x)
            place = self.place(len(y))
            self.net.keep_posterior(self.plan.quenches(place))
            state = State(self.net.states(), self.reinforcement)
            state, info = update(self.method, state, self.rules(place), x, y, self.generator, self.runner)
            self._failed = write(self.net, state, info.largest, self.steps + 1, self._failed)
        self.reinforcement = state.reinforcement
        if self.batch == 0:
            self._clamped, self._entries = 0, 0
        self._clamped, self._entries = self._clamped + info.clamped_entries, self._entries + info.entries
        return info if self.team is None else replace(info, labels=y[self.team.part(len(y))])

    @torch.no_grad()
    def _balance(self, x: Tensor) -> None:
        """Start whitening and thresholds from x; of several processes, all begin with what the first has found."""
        self._unbalanced = False
        if self.team is None or self.team.leads:
            self.net.balance(x)
        if self.team is not None:
            state = self.net.state_dict()
            found = self.team.told(lambda: {name: state[name] for name in state if BEGUN.search(name)})
            self.net.load_state_dict(found, strict=False)

    def _require_room(self, x: Tensor) -> None:
        """MemoryError before the messages of every edge fill the memory."""
        algorithm, iterations = self.method.algorithm, self.method.iterations
        numbers = algorithm.numbers_held([part.coupling for part in self.method.parts], len(x), iterations)
        if numbers:
            what = f"{algorithm.name} with {iterations} inner iterations on {len(x)} samples"
            remedy = "use a smaller batch, inner_iterations=1, or 'bpi' or 'amp'"
            allocation.require(numbers * x.element_size(), x.device, what, remedy)

    def _can_fuse(self) -> bool:
        """A kernel is made for one r; annealing would make another at every step."""
        return self.method.reinforcement_step == 0

    def _prepare(self, source: Batches | Recent, sample: Pair | None, epochs: int, evaluate_every: int) -> None:
        self._tune(source, epochs)
        require_visible(sample)
        if self.epoch < epochs:
            self._note(sample)
        self._unbalanced = not self.net.balanced
        if self._unbalanced and isinstance(source, Batches):
            self._balance(metrics.train_sample(source.x, source.y, BALANCE_SAMPLES)[0])
        if self.team is not None:
            self.team.require_same(facts(self, source, epochs, evaluate_every))

    def _tune(self, source: Batches | Recent, epochs: int) -> None:
        """Compile where the run is long enough to earn it back; have the allocator keep what a step frees."""
        if self.compile == "auto" and isinstance(source, Batches):
            weights = sum(layer.field.numel() for layer in self.net.weighted())
            samples = source.batch_size if self.team is None else -(-source.batch_size // self.team.size)
            self.runner.kernels = kernels(pays(weights * samples, epochs * len(source)) and self._can_fuse())
        allocation.keep_freed_pages(max(layer.field.nbytes for layer in self.net.weighted()))

    def _finish(self, source: Batches | Recent, sample: Pair | None) -> None:
        found = self.trouble(source if isinstance(source, Recent) else sample) if self.watch else None
        if found is not None:
            warnings.warn(found, DivergenceWarning, stacklevel=3)

    def _leave(self) -> None:
        super()._leave()
        self._unbalanced = False

    def _note(self, sample: Pair | None) -> None:
        """Whether these are the data of the call before: errors on others are not to be compared."""
        digest = None if sample is None else digest_of(sample)
        if self._digest is not None and digest != self._digest:
            self._since = len(self.history)
        self._digest = digest

    def trouble(self, train: Pair | Recent | None, epochs: int | None = None) -> str | None:
        """What is wrong with the network, and what may help; None if nothing is. ``train`` is what training errors
        were measured on, or the last mini-batches of an iterable. Of the history, the first ``epochs`` count."""
        if self.team is not None and not self.team.leads:
            return None
        if isinstance(train, tuple):
            y, reached = train[1], levels(self.history[self._since : epochs])
        elif train is not None and train.kept:
            x, y = (torch.cat([torch.as_tensor(part) for part in parts]) for parts in zip(*train.kept, strict=True))
            found = metrics.measure(self.net, *self._checked(x, y))
            reached = [Level(found.error, found.error_bayes, found.nll)]
        else:
            return None
        wrong = trouble(metrics.constant_of(self.net, y), len(y), reached)
        return None if wrong is None else f"{wrong}. {self.remedy}"

    @property
    def remedy(self) -> str:
        """What to try where training diverges."""
        return remedy(given=isinstance(self.plan, Given))

    def record(self, train: Pair | None, test: Pair | None) -> EpochRecord:
        if self._failed is not None:
            failed, self._failed = self._failed.tolist(), None
            raise_non_finite(failed)
        measured = partial(self._measure, train, test)
        return measured() if self.team is None else self.team.told(measured)

    @torch.no_grad()
    def _measure(self, train: Pair | None, test: Pair | None) -> EpochRecord:
        found = {part: pair and metrics.measure(self.net, *pair) for part, pair in (("train", train), ("test", test))}
        errors: dict[str, Any] = {
            f"{part}_{name}": getattr(measured, name, None)
            for part, measured in found.items()
            for name in ("error", "error_bayes", "nll")
        }
        return EpochRecord(
            epoch=self.epoch,
            **errors,
            test_ece=getattr(found["test"], "ece", None),
            seconds=self.seconds,
            polarization=landscape.polarization(self.net).tolist(),
            overlap=landscape.overlap(self.net).tolist(),
            clamped=int(self._clamped) / self._entries if self._entries else None,
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything but the network's own state that a resumed run needs to continue exactly."""
        return {
            **super().state_dict(),
            "reinforcement": list(self.reinforcement),
            "clamped": [int(self._clamped), self._entries],
            "evaluations": self.runner.state_dict(),
            "since": self._since,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where ``state_dict`` was taken."""
        super().load_state_dict(state)
        reinforcement = tuple(state["reinforcement"])
        if len(reinforcement) != len(self.reinforcement) or not all(
            is_number(r) and 0 <= r <= 1 for r in reinforcement
        ):
            expected = f"{len(self.reinforcement)} numbers from 0 to 1"
            raise ValueError(f"reinforcement is {str(reinforcement)[:40]}, expected {expected}")
        clamped, entries = state.get("clamped", (0, 0))
        for value in (clamped, entries):
            require_count("clamped", value)
        since = state.get("since", 0)
        require_count("since", since)
        self.reinforcement, self._clamped, self._entries = reinforcement, clamped, entries
        self._since = since
        self.runner.load_state_dict(state["evaluations"])


#: What of a network's state the data say how to begin.
BEGUN = re.compile(r"^front\.|\.threshold\.")
#: Training samples from which thresholds are started.
BALANCE_SAMPLES = 512
