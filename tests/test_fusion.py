"""Compiled kernels give what eager code gives, and are used only where they can be and where they pay."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import pytest
import torch

import cavity
from cavity import fusion

# Importing inductor touches torch.jit, which torch itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")


def trained(algorithm: str, compile: bool | str, steps: int = 3) -> cavity.Network:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(48, 60, generator=generator), torch.randint(0, 4, (48,), generator=generator)
    net = cavity.mlp(60, (31, 31), 4)
    options = {"accuracy": 3} if algorithm == "bp" else {}
    trainer = cavity.Trainer(net, algorithm, damping=0.5, compile=compile, **options)
    for _ in range(steps):
        trainer.step(x, y)
    return net


@pytest.mark.parametrize("algorithm", ["mf", "amp", "bp"])
def test_compiled_equals_eager_within_rounding(algorithm: str) -> None:
    eager, compiled = trained(algorithm, False), trained(algorithm, True)
    for one, other in zip(eager.layers, compiled.layers, strict=True):
        scale = float(one.field.abs().max())
        torch.testing.assert_close(other.field, one.field, rtol=1e-4, atol=1e-5 * scale)
        torch.testing.assert_close(other.mean, one.mean, rtol=1e-4, atol=1e-5)


def test_a_short_run_does_not_compile_and_a_long_one_does() -> None:
    weights = 784 * 501 + 501 * 501 + 501 * 10
    assert not fusion.pays(64 * 101 * 64, steps=30 * 22), "digits: seconds"
    assert fusion.pays(weights * 128, steps=100 * 468), "the paper's runs: a quarter of an hour"


def test_auto_is_eager_for_single_steps() -> None:
    trainer = cavity.Trainer(cavity.mlp(5, (), 1))
    assert not trainer.run.compiled


def test_without_a_compiler_there_is_one_notice_and_eager_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion.shutil, "which", lambda name: None)
    fusion.compiler_problem.cache_clear()
    fusion._notice.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="no C\\+\\+ compiler was found"):
            trainer = cavity.Trainer(cavity.mlp(5, (), 1), compile=True)
        assert not trainer.run.compiled
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cavity.Trainer(cavity.mlp(5, (), 1), compile=True)
    finally:
        fusion.compiler_problem.cache_clear()
        fusion._notice.cache_clear()


def test_a_broken_compiler_is_no_reason_to_stop() -> None:
    script = (
        "import warnings, cavity, torch\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    trainer = cavity.Trainer(cavity.mlp(5, (), 1), compile=True)\n"
        "assert any('without compiled kernels' in str(w.message) for w in seen)\n"
        "trainer.step(torch.randn(4, 5), torch.tensor([1., -1., 1., 1.]))\n"
        "print('trained')\n"
    )
    environment = {"CXX": "false", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    assert run.stdout.strip() == "trained", run.stderr


@pytest.mark.parametrize("mode", ["yes", 2, None])
def test_bad_mode(mode) -> None:
    with pytest.raises(ValueError, match="compile must be"):
        cavity.Trainer(cavity.mlp(5, (), 1), compile=mode)
