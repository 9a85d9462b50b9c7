"""A network as C99: one header and one source, constant weights, no heap, no floating point, no static RAM.

Two kernels share the source, and the compiler's target chooses between them. Small cores look up sums of four inputs in
tables (``small.c.j2``) and count bits in 32-bit words, or bytes on AVR (``above.c.j2``). With AVX2 (if the processor
has it, whatever the source was compiled for), NEON or Helium, the first layer of an image does many units at once
(``lanes.c.j2``), from weights in another order. ``-D<PREFIX>_PORTABLE`` leaves out everything that is not C99.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from numpy.typing import NDArray

from cavity.export.footprint import LANES, LANES_CHUNK, Layout, code_bytes, constant_bytes, stack_bytes
from cavity.export.selftest import selftest
from cavity.export.steps import Filters, Step, steps_of, window_words
from cavity.export.trained import ExportError
from cavity.packed.description import Description, Weights, words_of
from cavity.packed.file import dumps
from cavity.util.version import __version__

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
#: C99 guarantees 63 significant characters; at most 20 are appended to a prefix.
LONGEST_PREFIX = 40
#: Every compiler must accept a string of this length (C99, 5.2.4.1).
LONGEST_STRING = 4000
#: How a number of each type is written, and how many on a line. The most negative number of a type is not a literal;
#: none of ours reaches it.
LITERALS = {
    "uint32_t": ("0x{:08x}u", 9),
    "uint8_t": ("{}", 28),
    "int8_t": ("{}", 28),
    "int64_t": ("INT64_C({})", 6),
    "int32_t": ("{}", 12),
    "int16_t": ("{}", 16),
}


def generate(
    net: Description,
    prefix: str,
    header_name: str,
    *,
    features: Sequence[str] = (),
    tested: tuple[int, int] | None = None,
) -> tuple[str, str]:
    """Header and source with all names prefixed; the source includes the header by ``header_name``.

    ``features`` are the names of the inputs; ``tested`` is how many samples of a test set the network got right, and
    of how many.
    """
    if features and len(features) != net.inputs.features:
        raise ValueError(f"features must name {net.inputs.features} inputs, got {len(features)}")
    loader = PackageLoader("cavity.export", "")
    layout: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    environment = Environment(loader=loader, undefined=StrictUndefined, **layout)
    names = {"p": checked_prefix(prefix), "P": prefix.upper(), "version": __version__}
    about = {"about_accuracy": "." if tested is None else f", {tested[0]} of {tested[1]} test samples right."}
    values = {**names, **about, **_values(net, prefix, features), "header_name": checked_file_name(header_name)}
    header, source = (environment.get_template(f"net.{kind}.j2").render(values) for kind in "hc")
    return header, source


def _values(net: Description, prefix: str, features: Sequence[str]) -> dict[str, Any]:
    """What the templates write down about a network."""
    code, steps = net.inputs, steps_of(net)
    layout = Layout.of(net)
    arrays = _first(net, steps[0], layout, prefix) + _statistics(net, prefix)
    above = [_above(step, prefix, number) for number, step in enumerate(steps[1:], start=1)]
    int8 = [step.weights.values is not None for step in steps]
    places = [step.filters and narrowest(step.filters.constants.table) for step in steps]
    return {
        "net": net,
        "steps": steps,
        "sizes": [code.features, *(step.units for step in steps)],
        "last": len(steps) - 1,
        "shared": any(step.filters for step in steps),
        "copied": any(step.filters for step in steps[1:]),
        "place_types": places,
        "pixels": code.kind == "pixels",
        "fixed": _fixed(net, features),
        "int8": int8,
        "masked": layout.masked,
        "planes": list(_first_planes(steps[0].weights)),
        "lanes": LANES if layout.lanes else 0,
        "lanes_chunk": LANES_CHUNK,
        "single": layout.single,
        "chunk": layout.chunk,
        "row_bits": 32 * layout.row_words,
        "table": layout.table,
        # log2 of the bytes of a row of tables in words of 32 bits.
        "place_bits": 4 if layout.table == "uint16_t" else 5,
        "whole": all(group["width"] % 32 == 0 for group in layout.groups),
        "total": layout.total,
        "score_bits": layout.score_bits,
        "groups": layout.groups,
        "offset": lambda k: _read(layout.offset, f"{prefix}_offset + {k}", prefix),
        "apart_kinds": sorted({step.weights.mask is not None for step in steps[1:] if step.weights.values is None}),
        "about_weights": "int8 weights"
        if all(int8)
        else "weights of 8 bits and one bit"
        if any(int8)
        else _bits(steps),
        "about_inputs": _about(net),
        "classes": [string(name) for name in net.classes],
        "features": [string(name) for name in features],
        "constants": [arrays, *(text for text, _ in above)],
        "bases": [None, *(base for _, base in above)],
        "confidence": net.confidence,
        "selftest": selftest(net),
        "digest": hashlib.sha256(dumps(net)).hexdigest()[:16],
        "stack": stack_bytes(net),
        "constants_bytes": constant_bytes(net),
        "code_bytes": code_bytes(net),
    }


def _bits(steps: Sequence[Step]) -> str:
    return "one bit per weight" if all(step.weights.mask is None for step in steps) else "weights -1, 0 and 1"


def _read(kind: str, place: str, prefix: str) -> str:
    """A number of this type from flash."""
    return f"({kind}){prefix.upper()}_AT{kind.strip('uint_')}({place})"


def _first(net: Description, step: Step, layout: Layout, prefix: str) -> str:
    """The arrays of the first layer: its weights, in both orders if there are two kernels, and its offsets."""
    first, widths = step.weights, [group["width"] for group in layout.groups]
    if step.filters is None:
        offsets = array(layout.offset, prefix, "offset", net.offsets)
    else:
        offsets = _by_place(step.filters, prefix, 0)
    if first.values is not None:
        return array("int8_t", prefix, "weight0", first.values) + offsets
    planes = _first_planes(first)
    rows = "".join(array("uint32_t", prefix, f"{name}0", words_of(bits, widths, 4)) for name, bits in planes.items())
    if not layout.lanes:
        return rows + offsets
    columns = "".join(
        array("uint8_t", prefix, f"{name}0", columns_of(bits, net.inputs.groups)) for name, bits in planes.items()
    )
    # The kernels do not use both, so that a compiler sees one of them only.
    P = prefix.upper()
    return f"#ifdef {P}_LANES\n{columns}#else\n{rows}#endif\n{offsets}"


def _first_planes(first: Weights) -> dict[str, NDArray[np.bool_]]:
    """The bits of the first layer: signs, or what is added and what is subtracted."""
    if first.mask is None:
        return {"sign": first.sign}
    return {"plus": first.sign & first.mask, "minus": ~first.sign & first.mask}


def _by_place(filters: Filters, prefix: str, number: int) -> str:
    """What is added at each place, and which kinds of rows and columns there are."""
    constants = filters.constants
    text = array(narrowest(constants.table), prefix, f"place{number}", constants.table)
    kinds = (
        (constants.table.shape[0], "rows", constants.rows),
        (constants.table.shape[1], "columns", constants.columns),
    )
    return text + "".join(array("uint8_t", prefix, f"{name}{number}", each) for many, name, each in kinds if many > 1)


def _above(step: Step, prefix: str, number: int) -> tuple[str, str]:
    """The arrays of a layer above the first, and its base score; one that all units share needs no array."""
    layer, filters = step.weights, step.filters
    if layer.values is not None:
        arrays = array("int8_t", prefix, f"weight{number}", layer.values)
        base = np.zeros(layer.shape[0], np.int64) if layer.bias is None else layer.bias
    else:
        planes = {"sign": layer.sign} if layer.mask is None else {"sign": layer.sign & layer.mask, "mask": layer.mask}
        words = {
            name: words_of(bits, [layer.shape[1]], 4) if filters is None else window_words(filters, bits)
            for name, bits in planes.items()
        }
        arrays = "".join(array("uint32_t", prefix, f"{name}{number}", values) for name, values in words.items())
        base = layer.base
    if filters is not None:
        return arrays + _by_place(filters, prefix, number), ""
    if (base == base[0]).all():
        return arrays, str(base[0])
    kind = narrowest(base)
    return arrays + array(kind, prefix, f"base{number}", base), _read(kind, f"{prefix}_base{number} + k", prefix)


def _statistics(net: Description, prefix: str) -> str:
    fixed = net.inputs.fixed
    if fixed is None:
        return ""
    listed = (("int32_t", "centre", fixed.centre), ("uint32_t", "multiplier", fixed.multiplier))
    arrays = (*listed, ("uint32_t", "limit", fixed.limit))
    return "".join(array(kind, prefix, f"{name}", values) for kind, name, values in arrays)


def _fixed(net: Description, features: Sequence[str]) -> dict[str, Any] | None:
    """What the templates write down about the scales of a table's columns."""
    fixed = net.inputs.fixed
    if fixed is None:
        return None
    names = [comment(name) for name in features] or [""] * net.inputs.features
    bits = np.broadcast_to(fixed.bits, net.inputs.features).tolist()
    return {"each": len(fixed.centre) > 1, "listed": list(zip(bits, names, strict=True))}


def _about(net: Description) -> str:
    """What a sample is, for the header."""
    code = net.inputs
    if code.kind == "pixels":
        return f"A sample is {code.features} pixels from 0 to {code.white}, unscaled."
    if code.fixed is None:
        raise ExportError("real inputs have no integer form: export the network again with this version")
    return f"A sample is {code.features} fixed-point numbers x 2^BITS, unscaled; they are standardised in integers."


def narrowest(values: NDArray[np.int64]) -> str:
    """The narrowest signed type that holds the values, and never its most negative one."""
    largest = int(np.abs(values).max())
    return next((f"int{bits}_t" for bits in (16, 32) if largest < 1 << bits - 1), "int64_t")


def columns_of(bits: NDArray[np.bool_], groups: Sequence[tuple[int, int]]) -> NDArray[np.uint8]:
    """Bits (units, inputs) → (byte rows, padded units); each group (width, factor) of inputs starts a new row."""
    parts, start = [], 0
    for width, _ in groups:
        laid = np.zeros((-(-len(bits) // LANES) * LANES, 8 * byte_rows(width)), bool)
        laid[: len(bits), :width] = bits[:, start : start + width]
        parts.append(np.packbits(laid, axis=1, bitorder="little").T)
        start += width
    return np.concatenate(parts)


def byte_rows(width: int) -> int:
    """Bytes for the bits of ``width`` inputs; even, because pairs are added before they are widened."""
    return 2 * -(-width // 16)


def checked_prefix(prefix: str) -> str:
    """The prefix if it is valid in C, else ValueError."""
    if not IDENTIFIER.fullmatch(prefix) or len(prefix) > LONGEST_PREFIX:
        raise ValueError(
            f"prefix must be a letter followed by letters, digits and underscores, at most {LONGEST_PREFIX}, "
            f"got {prefix!r}"
        )
    return prefix


def prefix_of(stem: str) -> str:
    """A prefix made from a file name."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", stem)[:LONGEST_PREFIX]
    return name if IDENTIFIER.fullmatch(name) else f"net_{name}"[:LONGEST_PREFIX]


def checked_file_name(name: str) -> str:
    """A name that an #include can hold."""
    if not name.isascii() or not name.isprintable() or '"' in name or "\\" in name:
        raise ValueError(f"a C file's name must be printable ASCII without quotes and backslashes, got {name!r}")
    return name


def string(text: str) -> str:
    """A string literal of the text in UTF-8; octal escapes avoid trigraphs and character sets."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode()
    )
    if len(plain) > LONGEST_STRING:
        raise ExportError(f"the class name {text[:20]!r}… has {len(text)} characters: too long for a C string")
    return f'"{plain}"'


def comment(text: str) -> str:
    """The text as part of a comment, which it cannot end."""
    return string(text)[1:-1].replace("*", "\\052").replace("/", "\\057")


def array(kind: str, prefix: str, name: str, values: NDArray[Any]) -> str:
    """A constant array of type ``kind``, flattened; it is in flash on AVR too."""
    literal, per_line = LITERALS[kind]
    listed = [literal.format(value) for value in values.ravel().tolist()]
    lines = [", ".join(listed[start : start + per_line]) for start in range(0, len(listed), per_line)]
    return (
        f"static const {kind} {prefix}_{name}[{values.size}] {prefix.upper()}_FLASH = {{\n  "
        + ",\n  ".join(lines)
        + "\n};\n"
    )
