"""Compiled kernels give what eager code gives, and are used only where they can be and where they pay."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import pytest
import torch

import cavity
from cavity.core.arithmetic import Arithmetic, Series
from cavity.engine import compiling

# Importing inductor touches torch.jit, which torch itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

#: Each network is compiled anew, which takes some twenty seconds.
SLOW = pytest.mark.slow


def trained(algorithm: str, compile: bool, samples: int, inner_iterations: int = 1) -> cavity.Network:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(samples, 60, generator=generator), torch.randint(0, 4, (samples,), generator=generator)
    # Rows of 75 units and columns of 70 samples do not end at a cache line.
    net = cavity.mlp(60, (75, 75), 4)
    options = {"accuracy": 3} if algorithm == "bp" else {}
    trainer = cavity.Trainer(net, algorithm, damping=0.5, inner_iterations=inner_iterations, compile=compile, **options)
    for _ in range(3):
        trainer.step(x, y)
    return net


@pytest.mark.parametrize(
    ("algorithm", "samples", "iterations"),
    [
        ("bp", 70, 1),
        *(
            pytest.param(*case, marks=SLOW)
            for case in [("amp", 300, 4), ("mf", 70, 1), ("amp", 70, 1), ("mf", 300, 1), ("bp", 300, 1)]
        ),
    ],
)
def test_compiled_equals_eager_within_rounding(algorithm: str, samples: int, iterations: int) -> None:
    eager, compiled = (trained(algorithm, compile, samples, iterations) for compile in (False, True))
    for one, other in zip(eager.layers, compiled.layers, strict=True):
        scale = float(one.field.abs().max())
        torch.testing.assert_close(other.field, one.field, rtol=1e-4, atol=1e-5 * scale)
        torch.testing.assert_close(other.mean, one.mean, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("algorithm", ["amp", pytest.param("bp", marks=SLOW)])
def test_compiled_equals_eager_in_half_precision(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("looking", "choosing"):
        monkeypatch.setattr(f"cavity.engine.{place}.half_pays", lambda *_: True)
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(100, 300, generator=generator), torch.randint(0, 4, (100,), generator=generator)
    nets = [cavity.mlp(300, (75, 75), 4) for _ in range(2)]
    for net, compile in zip(nets, (False, True), strict=True):
        trainer = cavity.Trainer(net, algorithm, damping=0.5, compile=compile)
        trainer.runner.sweeps = 3
        for choice in trainer.runner.choices:
            choice.present = Arithmetic(Series(2), half=True)
        trainer.step(x, y)
    for one, other in zip(nets[0].layers, nets[1].layers, strict=True):
        # A number that float32 rounds another way may be on the other side of a step of bfloat16: one in 2¹⁶.
        torch.testing.assert_close(other.field, one.field, rtol=0, atol=1e-4 * float(one.field.abs().max()))


def test_a_short_run_does_not_compile_and_a_long_one_does() -> None:
    weights = 784 * 501 + 501 * 501 + 501 * 10
    assert not compiling.pays(64 * 101 * 64, steps=30 * 22), "digits: seconds"
    assert compiling.pays(weights * 128, steps=100 * 468), "the paper's runs: a quarter of an hour"


def test_auto_is_eager_for_single_steps() -> None:
    trainer = cavity.Trainer(cavity.mlp(5, (), 1))
    assert not trainer.runner.kernels.compiled


def test_without_a_compiler_there_is_one_notice_and_eager_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling.shutil, "which", lambda name: None)
    compiling.compiler_problem.cache_clear()
    compiling._notice.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="no C\\+\\+ compiler was found"):
            trainer = cavity.Trainer(cavity.mlp(5, (), 1), compile=True)
        assert not trainer.runner.kernels.compiled
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cavity.Trainer(cavity.mlp(5, (), 1), compile=True)
    finally:
        compiling.compiler_problem.cache_clear()
        compiling._notice.cache_clear()


@pytest.mark.slow
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


@pytest.mark.parametrize("tells", [True, False])
def test_what_the_compiler_made_is_called_by_itself_where_torch_tells(
    tells: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tells and not hasattr(torch._dynamo.eval_frame, "_debug_get_cache_entry_list"):
        pytest.skip("this torch does not tell what its compiler made")
    if not tells:
        monkeypatch.delattr(torch._dynamo.eval_frame, "_debug_get_cache_entry_list", raising=False)

    def scaled(pair: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, float]:
        return 3 * pair[0] + pair[1], 2.0

    wrapped: list[int] = []
    copy = compiling._copy(scaled, 0)
    compiled = torch.compile(copy, dynamic=False, fullgraph=True, options=compiling._options(pad_outputs=False))
    call = compiling._bare(copy, lambda *args: (wrapped.append(1), compiled(*args))[1])
    for number in range(3):
        x = torch.full((4,), float(number))
        assert torch.equal(call((x, x + 1))[0], 4 * x + 1)
        assert call((x, x + 1))[1] == 2.0
    assert len(wrapped) == (1 if tells else 6)


@SLOW
def test_single_steps_after_a_compiled_fit_follow_their_own_rules() -> None:
    """``fit`` knows how long an epoch is, and thresholds forget by it; a single step does not."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(60, 20, generator=generator), torch.randint(0, 3, (60,), generator=generator)
    nets = [cavity.mlp(20, (11,), 3, threshold=True) for _ in range(2)]
    for net, compile in zip(nets, (False, True), strict=True):
        trainer = cavity.Trainer(net, "mf", compile=compile)
        trainer.fit((x, y), epochs=2, batch_size=20)
        trainer.step(x[:20], y[:20])
    for one, other in zip(nets[0].layers, nets[1].layers, strict=True):
        torch.testing.assert_close(other.field, one.field, rtol=1e-4, atol=1e-5 * float(one.field.abs().max()))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="quench"),
        pytest.param({"rho": 1.0, "rate": 1.0, "schedule": "cosine"}, id="schedule", marks=SLOW),
    ],
)
def test_numbers_that_are_equal_in_the_first_step_may_differ_later(options) -> None:
    """ρ of all layers is 1 until that of the hidden layer grows in the quench, and a rate of 1 falls along a cosine."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(200, 20, generator=generator), torch.randint(0, 3, (200,), generator=generator)
    nets = [cavity.mlp(20, (11,), 3) for _ in range(2)]
    for net, compile in zip(nets, (False, True), strict=True):
        cavity.Trainer(net, "mf", compile=compile, **options).fit((x, y), epochs=5, batch_size=50)
    for one, other in zip(nets[0].layers, nets[1].layers, strict=True):
        torch.testing.assert_close(other.field, one.field, rtol=1e-3, atol=1e-4 * float(one.field.abs().max()))


@pytest.mark.parametrize("mode", ["yes", 2, None])
def test_bad_mode(mode) -> None:
    with pytest.raises(ValueError, match="compile must be"):
        cavity.Trainer(cavity.mlp(5, (), 1), compile=mode)
