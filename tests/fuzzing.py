"""What the fuzz tests of all rooms share: bytes and values nobody wrote on purpose, and a watch on time and memory."""

from __future__ import annotations

import copy
import json
import os
import struct
import tracemalloc
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

#: More by hand: CAVITY_FUZZ_EXAMPLES=20000 pytest tests/data/test_fuzz.py
EXAMPLES = int(os.environ.get("CAVITY_FUZZ_EXAMPLES", "150"))
#: What reading a file of some kilobytes may take.
MEBIBYTES = 80
MILLISECONDS = 10_000


def bounded(share: float = 1.0) -> settings:
    """The number of examples, or a share of it for what takes long, and the time that each may take."""
    return settings(
        max_examples=max(1, int(share * EXAMPLES)),
        deadline=MILLISECONDS,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


NUMBERS = [0, 1, 2**15, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1]


@st.composite
def damaged(draw, original: bytes) -> bytes:
    """The original with some bytes changed, cut off, doubled or put in between."""
    content = bytearray(original)
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, max(len(content) - 1, 0)))
        kind = draw(st.sampled_from(["set", "cut", "end", "insert", "repeat", "number"]))
        if kind == "set" and content:
            content[position] = draw(st.integers(0, 255))
        elif kind == "cut":
            del content[position : position + draw(st.integers(1, 50))]
        elif kind == "end":
            del content[position:]
        elif kind == "insert":
            content[position:position] = draw(st.binary(max_size=20))
        elif kind == "number":
            number, layout = draw(st.sampled_from(NUMBERS)), draw(st.sampled_from(["<I", ">I", "<Q", "<H"]))
            size = struct.calcsize(layout)
            content[position : position + size] = struct.pack(layout, number % 256**size)
        else:
            content[position:position] = content[position : position + 20]
    return bytes(content)


#: Stands for arrays within arrays, deeper than any parser goes; ``as_json`` writes them.
DEEP = "@deep@"
ODD = [
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**63, -(2**70), 10**400, 0.5, -0.0, 1e308),
    *(float("inf"), float("nan"), "", "x", "12", "\0", "\ud800", "../x", "=1+1", "\x1b[2J", "ü" * 5000, DEEP),
    *([], [0], [[]], [None], ["a", 1], [1] * 300, {}, {"a": None}, {"tensor": "generator"}, {"": {"": 0}}),
]


def _inner(value) -> list:
    """The keys of a container; of anything else there are none."""
    return list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []


@st.composite
def altered(draw, original):
    """Plain values as JSON has them, with some replaced by odd ones, left out, added or doubled."""
    value = copy.deepcopy(original)
    for _ in range(draw(st.integers(1, 3))):
        container = value
        if not _inner(container):
            return value
        key = draw(st.sampled_from(_inner(container)))
        # Down from the top with even chances to stop, or the few values there would drown in the many below.
        while _inner(container[key]) and draw(st.booleans()):
            container = container[key]
            key = draw(st.sampled_from(_inner(container)))
        kind, odd = draw(st.sampled_from(["replace", "replace", "leave out", "add", "double"])), st.sampled_from(ODD)
        if kind == "replace":
            container[key] = copy.deepcopy(draw(odd))
        elif kind == "leave out":
            del container[key]
        elif isinstance(container, list):
            container.insert(key, copy.deepcopy(draw(odd)) if kind == "add" else container[key])
        else:
            container[f"{key}2"] = copy.deepcopy(draw(odd)) if kind == "add" else container[key]
    return value


def as_json(value) -> str:
    """JSON without spaces, of values that may hold anything of ``ODD``."""
    return json.dumps(value, separators=(",", ":")).replace(f'"{DEEP}"', "[" * 20_000)


def attempt(read, *arguments, errors: tuple[type[Exception], ...], mebibytes: float = MEBIBYTES):
    """What reading gives, or None for the errors it may raise; never more than so much memory.

    Both what Python and NumPy allocate is watched and, where the system tells, what libraries of C and Rust touch.
    """
    before = _resident()
    tracemalloc.start()
    try:
        result = read(*arguments)
    except errors:
        result = None
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < mebibytes * 2**20, f"{peak:,} bytes were allocated"
    grown = _resident(peak=True) - before
    assert grown < mebibytes * 2**20, f"the process grew by {grown:,} bytes"
    return result


def _resident(peak: bool = False) -> int:
    """Bytes in memory now, from where the peak is counted anew, or at the peak since; 0 where Linux is not there."""
    table, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not (table.exists() and os.access(reset, os.W_OK)):
        return 0
    if not peak:
        reset.write_text("5")
    name = "VmHWM:" if peak else "VmRSS:"
    return next(int(line.split()[1]) * 1024 for line in table.read_text().splitlines() if line.startswith(name))
