"""Pieces of C99: identifiers, strings and constant arrays."""

from __future__ import annotations

import re
from typing import Any

from numpy.typing import NDArray

from cavity.export.trained import ExportError

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
#: C99 guarantees 63 significant characters; at most 20 are appended to a prefix.
LONGEST_PREFIX = 40
#: Every compiler must accept a string of this length (C99, 5.2.4.1).
LONGEST_STRING = 4000
#: How a number of each type is written, and how many on a line. The most negative number of a type is not a literal;
#: none of ours reaches it.
LITERALS = {"uint64_t": ("0x{:016x}u", 5), "uint8_t": ("{}", 28), "int64_t": ("INT64_C({})", 6), "int32_t": ("{}", 12)}


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
