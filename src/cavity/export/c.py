"""A network as C99: one header and one source, constant weights, no heap, no floating point, no global state.

The first layer looks up sums of inputs in small tables (``sums.c.j2``); the others use XNOR and popcount on 64-bit
words (``net.c.j2``). On x86 with GCC or Clang, AVX2 and popcount instructions are used if the processor has them,
whatever the source was compiled for; ``-D<PREFIX>_PORTABLE`` leaves out everything that is not C99.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from numpy.typing import NDArray

from cavity.export.trained import ExportError
from cavity.packed.description import FRACTION_BITS, Description, InputCode, Weights, word_count, words_of
from cavity.util.version import __version__

NARROW = 1 << 31
#: The header lists the mean and std of real inputs up to this many features.
LISTED_FEATURES = 1024
#: Units are padded to a multiple of this, the bytes of an AVX2 register.
LANES = 32
#: Inputs whose tables are held at once.
CHUNK = 512

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
#: C99 guarantees 63 significant characters; at most 20 are appended to a prefix.
LONGEST_PREFIX = 40
#: Every compiler must accept a string of this length (C99, 5.2.4.1).
LONGEST_STRING = 4000
#: How a number of each type is written, and how many on a line. The most negative number of a type is not a literal;
#: none of ours reaches it.
LITERALS = {"uint64_t": ("0x{:016x}u", 5), "uint8_t": ("{}", 28), "int64_t": ("INT64_C({})", 6), "int32_t": ("{}", 12)}


def generate(net: Description, prefix: str, header_name: str) -> tuple[str, str]:
    """Header and source with all names prefixed; the source includes the header by ``header_name``."""
    loader = PackageLoader("cavity.export", "")
    layout: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    environment = Environment(loader=loader, undefined=StrictUndefined, **layout)
    names = {"p": checked_prefix(prefix), "P": prefix.upper(), "version": __version__}
    values = {**names, **_values(net, prefix), "header_name": checked_file_name(header_name)}
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
    arrays = "".join(array("uint8_t", f"{prefix}_{name}0", values) for name, values in columns.items())
    arrays += array(f"int{64 if wide_scores else 32}_t", f"{prefix}_offset", net.offsets)
    above = [_above(layer, prefix, number) for number, layer in enumerate(net.layers[1:], start=1)]
    return {
        "net": net,
        "last": len(net.layers) - 1,
        "pixels": pixels,
        "masked": masked,
        "about_inputs": _about(code),
        "classes": [string(name) for name in net.classes],
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
    arrays = "".join(array("uint64_t", f"{prefix}_{name}{number}", values) for name, values in words.items())
    if (layer.base == layer.base[0]).all():
        return arrays, str(layer.base[0])
    return arrays + array("int32_t", f"{prefix}_base{number}", layer.base), f"{prefix}_base{number}[k]"


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


def array(kind: str, name: str, values: NDArray[Any]) -> str:
    """A constant array of type ``kind``, flattened."""
    literal, per_line = LITERALS[kind]
    listed = [literal.format(value) for value in values.ravel().tolist()]
    lines = [", ".join(listed[start : start + per_line]) for start in range(0, len(listed), per_line)]
    return f"static const {kind} {name}[{values.size}] = {{\n  " + ",\n  ".join(lines) + "\n};\n"
