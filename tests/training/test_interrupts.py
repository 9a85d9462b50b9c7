"""A step is done wholly or not at all: an interrupt at any line leaves a run that goes on as if there had been none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

import cavity

SOURCE = str(Path(cavity.__file__).parent)
#: Where the state of a run is changed.
CHANGING = ("training/loop.py", "training/trainer.py", "training/writing.py", "core/network.py")
EPOCHS = 2

Line = tuple[str, int]


@pytest.fixture(autouse=True)
def gradients() -> Iterator[None]:
    """An interrupt at the end of a ``no_grad`` leaves it on: other tests must not see that."""
    yield
    torch.set_grad_enabled(True)


def trainer_of(kind: str) -> cavity.Trainer:
    """Between them they have a state of every sort: noise that is drawn, annealed r, posteriors that are kept, looks at
    series, precisions and masks."""
    if kind == "given":
        net = cavity.mlp(8, (5,), 3, weights="gaussian", activation="relu", density=0.5, seed=1)
        return cavity.Trainer(net, "amp", rho=1.0, damping=0.5, inner_iterations=2, compile=False)
    net = cavity.mlp(8, (5,), 3, output=cavity.ArgMax("sampled"), seed=1)
    algorithm, accuracy = ("bpi", 0.1) if kind == "looking" else ("mf", None)
    return cavity.Trainer(net, algorithm, accuracy=accuracy, reinforcement=0.1, reinforcement_step=0.1, compile=False)


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return torch.randn((12, 8), generator=generator), torch.randint(3, (12,), generator=generator)


def fit(trainer: cavity.Trainer) -> None:
    trainer.fit(data(), epochs=EPOCHS, batch_size=4, validation=data())


def outcome(trainer: cavity.Trainer) -> list[Any]:
    """All that the run has left but for the time it took."""
    state = trainer.state_dict()
    state.pop("seconds")
    for record in state["history"]:
        record.pop("seconds")
    tensors = [*trainer.net.state_dict().values(), state.pop("generator")]
    return [state, [tensor.tolist() for tensor in tensors]]


@contextmanager
def tracing(see: Any) -> Iterator[None]:
    """Calls ``see`` with every line of the library that is about to be run."""

    def local(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            see((frame.f_code.co_filename, frame.f_lineno))
        return local

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        return local if frame.f_code.co_filename.startswith(SOURCE) else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def lines_of_a_run(kind: str) -> list[Line]:
    fit(trainer_of(kind))  # what is imported is imported
    trainer, seen = trainer_of(kind), []
    with tracing(seen.append):
        fit(trainer)
    return seen


def interrupted(kind: str, line: Line, occurrence: int) -> tuple[cavity.Trainer, bool]:
    """A run that an interrupt hit when it came to ``line`` for the ``occurrence``-th time, and then went on."""
    trainer, left, hit = trainer_of(kind), occurrence, False

    def see(here: Line) -> None:
        nonlocal left, hit
        if here == line and not hit:
            left -= 1
            if left == 0:
                hit = True
                raise KeyboardInterrupt

    try:
        with tracing(see):
            fit(trainer)
    except KeyboardInterrupt:
        fit(trainer)
    return trainer, hit


def differing(kind: str, lines: list[Line], occurrences: Any) -> list[str]:
    """Where an interrupt makes the run end differently."""
    undisturbed = trainer_of(kind)
    fit(undisturbed)
    expected, wrong = outcome(undisturbed), []
    for line in dict.fromkeys(lines):
        for occurrence in occurrences(lines.count(line)):
            trainer, hit = interrupted(kind, line, occurrence)
            if not hit or outcome(trainer) != expected:
                wrong.append(f"{line[0].removeprefix(SOURCE)}:{line[1]}, occurrence {occurrence}")
    return wrong


def test_an_interrupt_at_any_line_that_changes_a_run_loses_nothing() -> None:
    seen = [line for line in lines_of_a_run("annealed") if line[0].endswith(CHANGING)]
    assert len(set(seen)) > 80
    # In the middle of the run: later than its first step and earlier than its last.
    assert differing("annealed", seen, lambda count: {(count + 1) // 2}) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["annealed", "looking", "given"])
def test_an_interrupt_at_any_line_loses_nothing(kind: str) -> None:
    assert differing(kind, lines_of_a_run(kind), lambda count: {(count + 1) // 2}) == []


def test_an_interrupted_step_by_hand_changes_nothing() -> None:
    x, y = data()
    trainer = trainer_of("annealed")
    trainer.step(x, y)
    before, seen, twin = outcome(trainer), [], trainer_of("annealed")
    # Its second step, too: the first finds out what later ones know.
    twin.step(x, y)
    with tracing(seen.append):
        twin.step(x, y)
    for place in range(0, len(seen) - 20, 20):
        lines = count()

        def see(line: Line, lines: Iterator[int] = lines, place: int = place) -> None:
            if next(lines) == place:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt), tracing(see):
            trainer.step(x, y)
        assert outcome(trainer) == before, f"line {seen[place]}"
