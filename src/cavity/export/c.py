"""A network as C99: one header and one source, constant weights, no heap, no floating point, no global state.

The first layer looks up sums of inputs in small tables (``sums.c.j2``); the others use XNOR and popcount on 64-bit
words (``net.c.j2``). On x86 with GCC or Clang, AVX2 and popcount instructions are used if the processor has them,
whatever the source was compiled for; ``-D<PREFIX>_PORTABLE`` leaves out everything that is not C99.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from numpy.typing import NDArray

from cavity.export import c_text
from cavity.packed.description import FRACTION_BITS, Description, InputCode, Weights, word_count, words_of
from cavity.util.version import __version__

NARROW = 1 << 31
#: The header lists the mean and std of real inputs up to this many features.
LISTED_FEATURES = 1024
#: Units are padded to a multiple of this, the bytes of an AVX2 register.
LANES = 32
#: Inputs whose tables are held at once.
CHUNK = 512


def generate(net: Description, prefix: str, header_name: str) -> tuple[str, str]:
    """Header and source with all names prefixed; the source includes the header by ``header_name``."""
    loader = PackageLoader("cavity.export", "")
    layout: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    environment = Environment(loader=loader, undefined=StrictUndefined, **layout)
    names = {"p": c_text.checked_prefix(prefix), "P": prefix.upper(), "version": __version__}
    values = {**names, **_values(net, prefix), "header_name": c_text.checked_file_name(header_name)}
    header, source = (environment.get_template(f"net.{kind}.j2").render(values) for kind in "hc")
    return header, source


def _values(net: Description, prefix: str) -> dict[str, Any]:
    """What the templates write down about a network."""
    code, first, units = net.inputs, net.layers[0], padded(net.sizes[1])
    pixels, masked = code.kind == "pixels", first.mask is not None
    words = [word_count(layer.shape[1]) for layer in net.layers]
    wide_scores = (code.largest_sum << net.shift) + int(np.abs(net.offsets).max()) >= NARROW
    # Twice, because 2 Σ_{w=+1} q − Σ q passes through twice its largest value.
    wide_sums = 2 * code.largest_sum >= NARROW
    # Bits of the numbers in C.
    sum_bits, total_bits = 32 if pixels else 64, 64 if wide_scores or wide_sums else 32
    score_bits = 64 if len(net.layers) == 1 and wide_scores else 32
    sums = total_bits * net.sizes[1] + (1 + masked) * sum_bits * units + score_bits * net.sizes[-1]
    groups, start, byte = [], 0, 0
    for width, factor in code.groups:
        groups.append({"width": width, "factor": factor, "start": start, "byte": byte})
        start, byte = start + width, byte + byte_rows(width) * units
    columns = {name: columns_of(bits, code.groups) for name, bits in _planes(first).items()}
    arrays = "".join(c_text.array("uint8_t", f"{prefix}_{name}0", values) for name, values in columns.items())
    arrays += c_text.array(f"int{64 if wide_scores else 32}_t", f"{prefix}_offset", net.offsets)
    above = [_above(layer, prefix, number) for number, layer in enumerate(net.layers[1:], start=1)]
    return {
        "net": net,
        "last": len(net.layers) - 1,
        "pixels": pixels,
        "masked": masked,
        "about_inputs": _about(code),
        "classes": [c_text.string(name) for name in net.classes],
        "constants": [arrays, *(text for text, _ in above)],
        "bases": [None, *(base for _, base in above)],
        "groups": groups,
        "units": units,
        "words": words,
        "lanes": LANES,
        "chunk": CHUNK,
        "sum_bits": sum_bits,
        "total_bits": total_bits,
        "score_bits": score_bits,
        "stack": sums // 8 + (9 * CHUNK if pixels else 8 * 256) + 8 * sum(words[1:]),
    }


def _above(layer: Weights, prefix: str, number: int) -> tuple[str, str]:
    """The arrays of a layer above the first, and its base score; one that all units share needs no array."""
    words = {name: words_of(bits, [layer.shape[1]]) for name, bits in _planes(layer).items()}
    arrays = "".join(c_text.array("uint64_t", f"{prefix}_{name}{number}", values) for name, values in words.items())
    if (layer.base == layer.base[0]).all():
        return arrays, str(layer.base[0])
    return arrays + c_text.array("int32_t", f"{prefix}_base{number}", layer.base), f"{prefix}_base{number}[k]"


def _planes(layer: Weights) -> dict[str, NDArray[np.bool_]]:
    """The bits of a layer's weights, and which of them there are unless all are."""
    return {"sign": layer.sign} if layer.mask is None else {"sign": layer.sign & layer.mask, "mask": layer.mask}


def _about(code: InputCode) -> str:
    """What a sample is, for the header."""
    if code.mean is None or code.std is None:
        return f"A sample is {code.features} pixels from 0 to {code.white}, unscaled."
    formula = f"round((x - mean) / std * {1 << FRACTION_BITS}), halves to even, cut to 32 bits"
    text = f"A sample is {code.features} numbers {formula}"
    if len(code.mean) > LISTED_FEATURES:
        return f"{text}; mean and std are those of the training data."
    listed = "".join(
        f"\n *   {mean!r} {std!r}" for mean, std in zip(code.mean.tolist(), code.std.tolist(), strict=True)
    )
    return f"{text}; mean and std of {'each feature' if len(code.mean) > 1 else 'all features'}:{listed}"


def padded(units: int) -> int:
    return -(-units // LANES) * LANES


def byte_rows(width: int) -> int:
    """Bytes for the bits of ``width`` inputs; even, because pairs are added before they are widened."""
    return 2 * -(-width // 16)


def columns_of(bits: NDArray[np.bool_], groups: Sequence[tuple[int, int]]) -> NDArray[np.uint8]:
    """Bits (units, inputs) → (byte rows, padded units); each group (width, factor) of inputs starts a new row."""
    parts, start = [], 0
    for width, _ in groups:
        laid = np.zeros((padded(len(bits)), 8 * byte_rows(width)), bool)
        laid[: len(bits), :width] = bits[:, start : start + width]
        parts.append(np.packbits(laid, axis=1, bitorder="little").T)
        start += width
    return np.concatenate(parts)
