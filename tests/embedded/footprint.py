"""What a compiler says about the stack and the size of exported C."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from embedded.targets import SECTIONS, STRICT, Target

#: Functions that call each other, from the outermost: at most one of each row is on the stack at a time.
LEVELS = (
    ("predict",),
    ("scores", "best"),
    ("run", "run_fast", "run_plain"),
    (r"layer\d+", "encode"),
    ("tables", "looked", "apart", "apart_masked", "sums", "sums_lanes", r"window\d+"),
    ("four", "subsets", "copy"),
    ("put",),
)


def stack_usage(target: Target, folder: Path, optimize: str) -> int:
    """A bound on the stack of net_predict by -fstack-usage: the largest frame of every level."""
    _compile(target, folder, optimize, "-fstack-usage")
    frames: dict[str, int] = {}
    for line in (folder / "net.su").read_text().splitlines():
        where, size, kind = line.split("\t")
        assert kind == "static", f"{target.name}: {where} has a {kind} frame"
        name = re.sub(r"\..*", "", where.split(":")[-1])
        frames[name] = max(frames.get(name, 0), int(size))
    known = [name for level in LEVELS for name in level]
    others = {"selftest", "confidence", "reject", "weight_of"}
    strange = [name for name in frames if not any(re.fullmatch(f"net_{each}", name) for each in (*known, *others))]
    assert not strange, f"which level are {strange} on?"
    return sum(
        max(
            (size for name, size in frames.items() if any(re.fullmatch(f"net_{each}", name) for each in level)),
            default=0,
        )
        for level in LEVELS
    )


def sizes(target: Target, folder: Path, optimize: str = "-Os") -> dict[str, int]:
    """Bytes of every section of net.o that has any, by the name of what is in it."""
    _compile(target, folder, optimize)
    tool = re.sub("gcc$", "size", target.compiler) if target.compiler != "gcc" else "size"
    printed = subprocess.run([tool, "-A", "net.o"], cwd=folder, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\.(text|rodata|srodata|progmem\.data|data|bss)\.?(\S*)\s+(\d+)", printed, re.MULTILINE)
    return {f"{kind}.{name}": int(size) for kind, name, size in found if int(size)}


def assembly(target: Target, folder: Path) -> str:
    """What the compiler makes of net.c."""
    _compile(target, folder, target.optimize, kind="-S", output="net.s")
    return (folder / "net.s").read_text()


def _compile(target: Target, folder: Path, optimize: str, *flags: str, kind: str = "-c", output: str = "net.o") -> None:
    target.require()
    sections = [flag for flag in SECTIONS if not flag.startswith("-Wl")]
    kept = [flag for flag in target.flags if flag not in ("-nostartfiles", "-static")]
    command = [target.compiler, optimize, *STRICT, *sections, *kept, *flags, kind, "net.c", "-o", output]
    subprocess.run(command, cwd=folder, check=True)
