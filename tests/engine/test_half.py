"""Products of bfloat16 numbers: where they are taken, and how far they are from those of float32."""

from __future__ import annotations

import pytest
import torch

from cavity.core.arithmetic import multiply
from cavity.core.couplings import Conv2d, Coupling, Dense
from cavity.engine.half import SMALL_PRODUCT, _cpu_multiplies_bfloat16, half_pays


@pytest.mark.parametrize("supported", [False, True])
def test_half_precision_is_for_large_products_of_float32_on_processors_that_have_it(supported, monkeypatch) -> None:
    monkeypatch.setattr("cavity.engine.half._cpu_multiplies_bfloat16", lambda: supported)
    x = torch.zeros(2, 3)
    assert half_pays(x, SMALL_PRODUCT) is supported
    assert not half_pays(x, SMALL_PRODUCT - 1)
    assert not half_pays(x.double(), SMALL_PRODUCT)
    assert not half_pays(x.to("meta"), SMALL_PRODUCT)


def test_the_environment_can_forbid_it(monkeypatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    for value, allowed in (("1", True), ("0", False)):
        monkeypatch.setenv("CAVITY_BFLOAT16", value)
        assert _cpu_multiplies_bfloat16.__wrapped__() is allowed


@pytest.mark.parametrize(
    "coupling", [Dense(400, 30), Dense(400, 30, bias=True), Conv2d((20, 9, 9), 8, 3, padding=1, bias=True)], ids=repr
)
def test_rounding_is_seen_and_small(coupling: Coupling) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, *coupling.input_shape, generator=generator)
    g = torch.randn(64, *coupling.output_shape, generator=generator)
    m = torch.randn(coupling.outputs, coupling.columns, generator=generator)
    for contraction, a, b in ((coupling.back_to_weights, g, x), (coupling.back_to_inputs, m, g)):
        full, half = (multiply(contraction, a, b, half) for half in (False, True))
        assert half.dtype == full.dtype == torch.float32
        assert torch.equal(full, contraction(a, b))
        # Two operands and the sum, each rounded by at most 2⁻⁸; positive terms cannot cancel.
        bound = ((1 + 2**-8) ** 3 - 1) * contraction(a.abs(), b.abs())
        assert float((half - full).abs().max()) > 0
        assert bool(((half - full).abs() <= bound).all())
