"""Pieces of C99: identifiers, strings and constant arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cavity.export.trained import ExportError

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
#: C99 guarantees 63 significant characters; at most 20 are appended to a prefix.
LONGEST_PREFIX = 40
#: Every compiler must accept a string of this length (C99, 5.2.4.1).
LONGEST_STRING = 4000


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


def array(declaration: str, items: Iterable[str], per_line: int) -> str:
    """A constant array with ``per_line`` values per line."""
    listed = list(items)
    lines = [", ".join(listed[start : start + per_line]) for start in range(0, len(listed), per_line)]
    return f"static const {declaration} = {{\n  " + ",\n  ".join(lines) + "\n};\n"


def words(name: str, values: NDArray[np.uint64]) -> str:
    """A matrix of 64-bit words, flattened."""
    return array(f"uint64_t {name}[{values.size}]", (f"0x{word:016x}u" for word in values.ravel().tolist()), 5)


def octets(name: str, values: NDArray[np.uint8]) -> str:
    """A matrix of bytes, flattened."""
    return array(f"uint8_t {name}[{values.size}]", map(str, values.ravel().tolist()), 28)


def numbers(name: str, values: NDArray[np.int64], wide: bool) -> str:
    """Whole numbers of 32 or 64 bits."""
    # The most negative number of a type is not a literal; none of ours reaches it.
    make, kind, per_line = ("INT64_C({})", "int64_t", 6) if wide else ("{}", "int32_t", 12)
    return array(f"{kind} {name}[{values.size}]", map(make.format, values.tolist()), per_line)
