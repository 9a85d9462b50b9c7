"""Two and three processes that split each mini-batch end where a single one does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.distributed.cases import CASES, trained
from engine.distributed.launch import finished, torchrun

#: Inner iterations of the common cases, by the number of processes.
ITERATIONS = {2: 2, 3: 1}
TOLERANCE = 1e-5


@pytest.fixture(scope="module", params=[2, pytest.param(3, marks=pytest.mark.slow)])
def together(request, tmp_path_factory) -> tuple[int, list[dict[str, dict[str, Tensor]]]]:
    """Inner iterations, and what each process ended with in each case."""
    processes, folder = request.param, tmp_path_factory.mktemp("fields")
    iterations = ITERATIONS[processes]
    script = str(Path(__file__).with_name("worker.py"))
    finished(torchrun(processes, script, str(folder), str(iterations)))
    return iterations, [torch.load(folder / f"{rank}.pt") for rank in range(processes)]


@pytest.mark.parametrize("name", CASES)
def test_the_fields_are_those_of_one_process(name, together) -> None:
    iterations, processes = together
    for key, expected in trained(name, iterations).items():
        first = processes[0][name][key]
        assert all(torch.equal(found[name][key], first) for found in processes), f"{key} differs between processes"
        if key == "iterations":
            assert torch.equal(first, expected)
        elif key.endswith(("field", "precision")):
            gap = float((first - expected).abs().max())
            assert gap <= TOLERANCE * max(1.0, float(expected.abs().max())), key


def test_processes_that_do_not_agree_are_told_what_differs(together) -> None:
    _, processes = together
    for found in processes:
        for words, said in found["refusals"].items():
            assert f"starts with {words}: all must" in said
            assert said.startswith("process 1 of")


def test_the_cases_do_what_they_are_for() -> None:
    done = trained("tolerance", 1)["iterations"]
    assert 1 <= done.min() < done.max() <= 20, done
