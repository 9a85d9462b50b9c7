"""The targets on which exported C is run: how to build for them, and how to run what was built.

A target needs a compiler and, unless it is this machine, an emulator: `make embedded` installs them.
"""

from __future__ import annotations

import functools
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BOARDS = Path(__file__).parent / "boards"
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror")
#: Nothing that is not called is linked.
SECTIONS = ("-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections")
LONGEST_SECONDS = 120


class Unavailable(Exception):
    """A compiler or an emulator is not installed; the message says which."""


@dataclass(frozen=True)
class Target:
    """A compiler with its flags, the board's own source, and what runs PROGRAM (nothing: itself)."""

    name: str
    compiler: str
    flags: tuple[str, ...]
    board: str
    link: tuple[str, ...] = ()
    emulator: tuple[str, ...] = ()
    optimize: str = "-Os"

    def require(self) -> None:
        for tool in (self.compiler, *self.emulator[:1]):
            if tool not in ("AVR_HOST", "") and shutil.which(tool) is None:
                raise Unavailable(f"{self.name}: there is no {tool} here (`make embedded` installs it)")
        if self.emulator[:1] == ("AVR_HOST",):
            avr_host()


#: With -icount, time goes by instructions: 2^shift ns each. SysTick has some MHz, so that they must not be too short.
def _qemu(machine: str, system: str = "arm", shift: int = 6) -> tuple[str, ...]:
    common = ("-nographic", "-monitor", "none", "-serial", "none", "-semihosting-config", "enable=on,target=native")
    return (f"qemu-system-{system}", "-M", machine, *common, "-icount", f"shift={shift}", "-kernel", "PROGRAM")


_BARE = ("-nostartfiles", "-ffreestanding")
_ARM = ("-nostdlib", "-T", str(BOARDS / "arm.ld"), "-lc", "-lgcc")
_HOSTED = ("-DHOSTED", "-pedantic")
TARGETS = {
    target.name: target
    for target in (
        Target("x86 portable", "gcc", (*_HOSTED, "-DNET_PORTABLE"), "pc.c", optimize="-O2"),
        Target("x86 popcnt", "gcc", (*_HOSTED, "-DNET_PORTABLE", "-DNET_POPCOUNT", "-mpopcnt"), "pc.c", optimize="-O2"),
        Target("x86 AVX2", "gcc", _HOSTED, "pc.c", optimize="-O3"),
        Target(
            "Cortex-M0", "arm-none-eabi-gcc", ("-mcpu=cortex-m0", "-mthumb", *_BARE), "arm.c", _ARM, _qemu("microbit")
        ),
        Target(
            "Cortex-M4", "arm-none-eabi-gcc", ("-mcpu=cortex-m4", "-mthumb", *_BARE), "arm.c", _ARM, _qemu("mps2-an386")
        ),
        Target(
            "Cortex-M55",
            "arm-none-eabi-gcc",
            ("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard", *_BARE),
            "arm.c",
            _ARM,
            _qemu("mps3-an547"),
        ),
        Target(
            "RV32",
            "riscv64-unknown-elf-gcc",
            ("-march=rv32imac", "-mabi=ilp32", "--specs=picolibc.specs", *_BARE),
            "riscv.c",
            ("-T", str(BOARDS / "riscv.ld"), "-nostdlib", "-lc", "-lgcc"),
            (*_qemu("virt", "riscv32", 0), "-bios", "none"),
        ),
        Target(
            "AArch64 NEON",
            "aarch64-linux-gnu-gcc",
            (*_HOSTED, "-static"),
            "pc.c",
            (),
            ("qemu-aarch64", "PROGRAM"),
            optimize="-O3",
        ),
        Target("AVR", "avr-gcc", ("-mmcu=atmega328p",), "avr.c", (), ("AVR_HOST", "atmega328p", "PROGRAM")),
    )
}


@functools.cache
def avr_host() -> Path:
    """The program that emulates an AVR, built from avr_host.c."""
    if shutil.which("gcc") is None:
        raise Unavailable("AVR: there is no gcc here to build the emulator with")
    program = Path(tempfile.mkdtemp(prefix="avr-host-")) / "avr_host"
    built = subprocess.run(
        ["gcc", "-O2", BOARDS / "avr_host.c", "-lsimavr", "-lelf", "-o", program], capture_output=True, check=False
    )
    if built.returncode:
        raise Unavailable("AVR: there is no libsimavr here (`make embedded` installs it)")
    return program


@dataclass(frozen=True)
class Answers:
    """What a program found: (samples,) each but scores (samples, outputs); then what one prediction took."""

    classes: np.ndarray
    confidences: np.ndarray
    rejected: np.ndarray
    scores: np.ndarray
    instructions: int
    stack: int
    selftest: int


def build(
    target: Target, folder: Path, *sources: str, flags: tuple[str, ...] = (), output: str = "program.elf"
) -> Path:
    """The program of net.c in the folder and of the sources, which may be in ``boards``."""
    target.require()
    found = [folder / name if (folder / name).exists() else BOARDS / name for name in (*sources, target.board)]
    command = [target.compiler, target.optimize, *STRICT, *SECTIONS, *target.flags, *flags, "-I", BOARDS, "-I", folder]
    program = folder / output
    done = subprocess.run(
        [*map(str, command), *map(str, found), *target.link, "-o", str(program)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"{target.name} does not build:\n{done.stderr}")
    return program


def execute(target: Target, program: Path, samples: bytes) -> bytes:
    """What a program writes when it reads the samples."""
    folder = program.parent
    (folder / "input.bin").write_bytes(samples)
    own = {"PROGRAM": str(program), "AVR_HOST": str(avr_host()) if target.emulator[:1] == ("AVR_HOST",) else ""}
    command = [own.get(part, part) for part in target.emulator or ("PROGRAM",)]
    if not command[0].startswith("qemu-system"):
        done = subprocess.run(command, input=samples, stdout=subprocess.PIPE, timeout=LONGEST_SECONDS, check=True)
        return done.stdout
    subprocess.run(command, cwd=folder, timeout=LONGEST_SECONDS, stdin=subprocess.DEVNULL, check=True)
    return (folder / "output.bin").read_bytes()


def run(target: Target, folder: Path, samples: np.ndarray, outputs: int, score_bytes: int) -> Answers:
    """The answers of net.c in the folder to samples (samples, features) in the type that it takes."""
    written = execute(target, build(target, folder, "net.c", "main.c"), np.ascontiguousarray(samples).tobytes())
    record = np.dtype([("bytes", "u1", 3), ("scores", f"<i{score_bytes}", outputs)])
    rows = np.frombuffer(written[: len(samples) * record.itemsize], record)
    cost = struct.unpack("<3I", written[len(samples) * record.itemsize :])
    classes, confidences, rejected = rows["bytes"].T.astype(np.int64)
    return Answers(classes, confidences, rejected, rows["scores"].reshape(len(rows), outputs).astype(np.int64), *cost)
