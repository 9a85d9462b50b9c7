"""What a network takes in C: the types of its numbers, and bytes of flash and stack.

Constants are counted exactly. Stack and code are bounds that hold for GCC at every level of optimisation (stack) and at
-Os (code) on the targets of ``tests/embedded``, which compares them with ``-fstack-usage`` and the object files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cavity.packed.description import Description, Weights, word_count

#: Units are padded to a multiple of this in the order for lanes: the bytes of an AVX2 register.
LANES = 32
#: Inputs whose tables are held at once, with lanes and without; without them, numbers of 32 bits take two of 16.
LANES_CHUNK, CHUNK = 512, 64
NARROW, SHORT = 1 << 31, 1 << 15


@dataclass(frozen=True)
class Layout:
    """Types and order of the first layer; ``row_words`` are the 32-bit words of a unit."""

    lanes: bool
    masked: bool
    single: bool
    chunk: int
    row_words: int
    table: str
    total: str
    offset: str
    score_bits: int
    groups: list[dict[str, int]]

    @classmethod
    def of(cls, net: Description) -> Layout:
        code, first = net.inputs, net.layers[0]
        pixels = code.kind == "pixels"
        widths = [width for width, _ in code.groups]
        bound = (net.largest_first << net.shift) + int(np.abs(net.offsets).max())
        chunk = min(CHUNK if pixels else CHUNK // 2, 32 * max(word_count(width, 4) for width in widths))
        groups, start, rows = [], 0, 0
        for width, factor in code.groups:
            groups.append({"width": width, "factor": factor, "start": start, "byte_rows": rows})
            start, rows = start + width, rows + 2 * -(-width // 16)
        largest = int(np.abs(net.offsets).max())
        return cls(
            lanes=pixels and first.values is None,
            masked=first.mask is not None,
            single=len(widths) == 1 and widths[0] <= chunk,
            chunk=chunk,
            row_words=sum(word_count(width, 4) for width in widths),
            table="uint16_t" if pixels else "int32_t",
            # Twice, because 2 Σ_{w=+1} q − Σ q passes through twice its largest value.
            total="int_fast16_t" if 2 * bound < SHORT else "int32_t" if 2 * bound < NARROW else "int64_t",
            offset=next((f"int{bits}_t" for bits in (16, 32) if largest < 1 << bits - 1), "int64_t"),
            score_bits=64 if len(net.layers) == 1 and bound >= NARROW else 32,
            groups=groups,
        )


class Stack(NamedTuple):
    """Bytes of a call on small cores, and on x86 or with NEON or Helium."""

    small: int
    lanes: int


#: What saved registers, return addresses and loop variables take below ``predict``: of all calls, of each layer, of
#: sums over several chunks, and of several groups; and on x86 at -O3, where loops are unrolled and vectors spilled.
FRAMES, FRAME, CHUNKED, GROUPED, UNROLLED, SPILLED = 160, 16, 48, 80, 400, 1800


def stack_bytes(net: Description) -> Stack:
    """A bound on the stack of ``predict``."""
    layout, first = Layout.of(net), net.layers[0]
    bits = sum(4 * word_count(size, 4) for size in net.sizes[1:-1])
    scores = layout.score_bits // 8 * net.sizes[-1]
    fixed = 2 * net.inputs.features if net.inputs.fixed is not None else 0
    rest = bits + scores + fixed + FRAMES + FRAME * len(net.layers)
    if first.values is not None:
        return Stack(rest - FRAMES // 2, rest)
    total = 8 if layout.total == "int64_t" else 4
    small = rest + 4 * layout.chunk * (2 if layout.table == "uint16_t" else 4)
    small += 0 if layout.single else CHUNKED + total * net.sizes[1]
    small += GROUPED if len(layout.groups) > 1 else 0
    if not layout.lanes:
        return Stack(small, small + UNROLLED)
    # On 64 bits an int_fast16_t takes 8 bytes.
    padded, total = -(-net.sizes[1] // LANES) * LANES, 4 if layout.total == "int32_t" else 8
    sums = total * net.sizes[1] + 4 * padded * (1 + layout.masked)
    return Stack(small, rest + sums + 9 * LANES_CHUNK + 4 * LANES + SPILLED)


def constant_bytes(net: Description) -> int:
    """Bytes of the weights, offsets and scales on a small core."""
    layout, code = Layout.of(net), net.inputs
    total = int(layout.offset[3:5].strip("_")) // 8 * net.sizes[1]
    total += 0 if code.fixed is None else 12 * len(code.fixed.centre)
    for number, layer in enumerate(net.layers):
        rows, columns = layer.shape
        words = layout.row_words if number == 0 else word_count(columns, 4)
        planes = 1 if layer.mask is None else 2
        total += rows * columns if layer.values is not None else 4 * planes * words * rows
        if number:
            total += _base_bytes(layer)
    return total


def _base_bytes(layer: Weights) -> int:
    base = layer.base if layer.values is None else np.zeros(1, np.int64) if layer.bias is None else layer.bias
    if (base == base[0]).all():
        return 0
    largest = int(np.abs(base).max())
    return len(base) * next((size for size in (2, 4) if largest < 1 << 8 * size - 1), 8)


def code_bytes(net: Description) -> int:
    """A bound on the code of ``predict`` on Cortex-M at -Os; RV32 takes up to 1.6 of it, AVR up to 3."""
    layout, above = Layout.of(net), net.layers[1:]
    bits = [layer for layer in above if layer.values is None]
    total = 150 if net.layers[0].values is not None else 390 if layout.single else 520
    total += 110 if net.inputs.fixed is not None else 0
    total += 150 * (len(layout.groups) - 1)
    total += 60 * bool(bits) + 60 * any(layer.mask is not None for layer in bits)
    return total + 130 * len(bits) + 100 * (len(above) - len(bits))
