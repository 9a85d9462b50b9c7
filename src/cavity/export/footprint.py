"""What a network takes in C: the types of its numbers, and bytes of flash and stack.

Constants are counted exactly. Stack and code are bounds that hold for GCC at every level of optimisation (stack) and at
-Os (code) on the targets of ``tests/embedded``, which compares them with ``-fstack-usage`` and the object files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cavity.export.steps import Filters, Step, patch_groups, steps_of, window_row
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
        code, step = net.inputs, steps_of(net)[0]
        first, pixels, seen = step.weights, code.kind == "pixels", patch_groups(code, step.filters)
        widths = [width for width, _ in seen]
        most = first.largest_weight * code.largest * sum(width * factor for width, factor in seen)
        bound = (most << net.shift) + int(np.abs(net.offsets).max())
        chunk = min(CHUNK if pixels else CHUNK // 2, 32 * max(word_count(width, 4) for width in widths))
        groups, start, rows = [], 0, 0
        for width, factor in seen:
            groups.append({"width": width, "factor": factor, "start": start, "byte_rows": rows})
            start, rows = start + width, rows + 2 * -(-width // 16)
        largest = int(np.abs(net.offsets).max())
        return cls(
            lanes=pixels and first.values is None and step.filters is None,
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


#: The same for convolutions: loops over places; with several chunks, and with several groups; and on 64 bits.
WINDOWED, WINDOWED_CHUNKED, WINDOWED_GROUPED, WINDOWED_LANES = 16, 64, 200, 400


def stack_bytes(net: Description) -> Stack:
    """A bound on the stack of ``predict``."""
    layout, steps = Layout.of(net), steps_of(net)
    first, units = steps[0].weights, steps[0].weights.shape[0]
    bits = sum(4 * word_count(step.units, 4) + 4 * (step.filters is not None) for step in steps[:-1])
    scores = layout.score_bits // 8 * net.sizes[-1]
    fixed = 2 * net.inputs.features if net.inputs.fixed is not None else 0
    windows = _windows_bytes(net, steps)
    rest = bits + scores + fixed + FRAMES + FRAME * len(steps) + windows
    more = WINDOWED_LANES if windows else 0
    if first.values is not None:
        return Stack(rest - (0 if windows else FRAMES // 2), rest + more)
    total = 8 if layout.total == "int64_t" else 4
    small = rest + 4 * layout.chunk * (2 if layout.table == "uint16_t" else 4)
    small += 0 if layout.single else CHUNKED + total * units
    small += GROUPED if len(layout.groups) > 1 else 0
    if steps[0].filters is not None:
        small += (not layout.single) * WINDOWED_CHUNKED + (len(layout.groups) > 1) * WINDOWED_GROUPED
    if not layout.lanes:
        return Stack(small, small + UNROLLED + more)
    # On 64 bits an int_fast16_t takes 8 bytes.
    padded, total = -(-units // LANES) * LANES, 4 if layout.total == "int32_t" else 8
    sums = total * units + 4 * padded * (1 + layout.masked)
    return Stack(small, rest + sums + 9 * LANES_CHUNK + 4 * LANES + SPILLED + more)


def _windows_bytes(net: Description, steps: list[Step]) -> int:
    """Of the largest window and its units, and what its loops take."""
    taken = [0]
    for number, step in enumerate(steps):
        if step.filters is not None:
            seen = _window_words(step.filters) * 4
            if number == 0:
                seen = step.weights.shape[1] * (1 if net.inputs.kind == "pixels" else 2) + 3
            taken.append(seen + 4 * word_count(step.filters.channels, 4) + WINDOWED + 4)
    return max(taken)


def _window_words(filters: Filters) -> int:
    return filters.windows.kernel[0] * word_count(window_row(filters), 4)


def constant_bytes(net: Description) -> int:
    """Bytes of the weights, offsets and scales on a small core."""
    layout, code, steps = Layout.of(net), net.inputs, steps_of(net)
    total = 0 if code.fixed is None else 12 * len(code.fixed.centre)
    if steps[0].filters is None:
        total += int(layout.offset[3:5].strip("_")) // 8 * net.sizes[1]
    for number, step in enumerate(steps):
        weights, filters = step.weights, step.filters
        rows, columns = weights.shape
        words = layout.row_words if number == 0 else _window_words(filters) if filters else word_count(columns, 4)
        planes = 1 if weights.mask is None else 2
        total += rows * columns if weights.values is not None else 4 * planes * words * rows
        if filters is not None:
            total += _place_bytes(filters)
        elif number:
            total += _base_bytes(weights)
    return total


def _place_bytes(filters: Filters) -> int:
    constants = filters.constants
    kinds = ((constants.table.shape[0], constants.rows), (constants.table.shape[1], constants.columns))
    return _number_bytes(constants.table) * constants.table.size + sum(len(each) for many, each in kinds if many > 1)


def _base_bytes(layer: Weights) -> int:
    base = layer.base if layer.values is None else np.zeros(1, np.int64) if layer.bias is None else layer.bias
    return 0 if (base == base[0]).all() else len(base) * _number_bytes(base)


def _number_bytes(values: NDArray[np.int64]) -> int:
    """Of one number in the narrowest type that holds all of them."""
    largest = int(np.abs(values).max())
    return next((size for size in (2, 4) if largest < 1 << 8 * size - 1), 8)


def code_bytes(net: Description) -> int:
    """A bound on the code of ``predict`` on Cortex-M at -Os; RV32 takes up to 1.6 of it, AVR up to 3."""
    layout, steps = Layout.of(net), steps_of(net)
    above = steps[1:]
    bits = [step.weights for step in above if step.weights.values is None]
    total = 150 if steps[0].weights.values is not None else 390 if layout.single else 520
    total += 110 if net.inputs.fixed is not None else 0
    total += 150 * (len(layout.groups) - 1)
    total += 60 * bool(bits) + 60 * any(weights.mask is not None for weights in bits)
    total += sum(_window_code(step.filters) for step in steps if step.filters is not None)
    return total + 130 * len(bits) + 100 * (len(above) - len(bits))


def _window_code(filters: Filters) -> int:
    """What the loops over places add to a layer."""
    return 230 + (80 if filters.windows.padding != (0, 0) else 0) + (60 if filters.pool != (1, 1) else 0)
