"""Mini-batches that teach nothing, or two things at once, against the edge-by-edge oracle."""

from __future__ import annotations

import numpy as np
import pytest

from cavity.core.algorithms import ALGORITHMS
from core.test_against_oracle import ATTEMPTS, Case, build, compare, is_quiet
from oracle.bridge import History, Problem

CASES = {
    "binary": Case("binary", "sign", "label", "dense 2", False, True, 2, 0.6, 1.0, "none", False),
    "gaussian": Case("gaussian", "relu", "argmax-pairwise", "dense 2", True, False, 1, 0.0, 1.0, "none", False),
    "ternary": Case("ternary", "identity", "gaussian", "dense 3", True, False, 2, 0.6, 0.9, "reinforcement", False),
}


def constant(problem: Problem) -> None:
    problem.x[:] = 0.7


def silent(problem: Problem) -> None:
    problem.x[:, ::2] = 0.0


def contradictory(problem: Problem) -> None:
    """The same sample again and again, with whatever targets were drawn."""
    problem.x[:] = problem.x[0]
    assert len(np.unique(problem.y, axis=0)) > 1


def one_class(problem: Problem) -> None:
    problem.y[:] = problem.y[0]


def one_sample(problem: Problem) -> None:
    problem.x, problem.y = problem.x[:1], problem.y[:1]


def nearly_certain(problem: Problem) -> None:
    """|m| = 0.95 of every discrete weight: V is small, above all floors, and the oracle still has all its digits."""
    for library, layer in zip(problem.net.weighted(), problem.layers, strict=True):
        if layer.prior != "gaussian":
            layer.mean = np.where(layer.graph.alive, 0.95 * np.where(layer.mean >= 0, 1.0, -1.0), 0.0)
            layer.variance = np.where(layer.graph.alive, 1 - layer.mean**2, 0.0)
            library.mean, library.variance = (library.mean.new_tensor(a) for a in (layer.mean, layer.variance))


def quiet(spoil, case: Case, algorithm: str) -> tuple[Problem, History]:
    """An instance on which no floor acts."""
    for seed in range(ATTEMPTS):
        problem = build(case, algorithm, seed)
        spoil(problem)
        history = problem.oracle()
        if is_quiet(problem, history):
            return problem, history
    raise AssertionError(f"each of {ATTEMPTS} instances met a floor")


@pytest.mark.parametrize("spoil", [constant, silent, contradictory, one_class, one_sample, nearly_certain])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_message_of_a_degenerate_mini_batch(case, algorithm, spoil):
    problem, expected = quiet(spoil, case, algorithm)
    found, clamped = problem.library()
    assert clamped == 0
    compare(problem, found, expected)
