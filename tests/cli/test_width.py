"""What a training run shows in a real terminal of 80 and of 60 columns: no line is longer, and nothing is unnamed."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import cavity

fcntl, termios, pty = (pytest.importorskip(name) for name in ("fcntl", "termios", "pty"))


def in_terminal(columns: int, folder: Path, *words: str) -> str:
    """All that a command writes to a pseudo-terminal so wide."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    environment |= {"PYTHONPATH": str(Path(cavity.__file__).parents[1]), "TERM": "xterm"}
    command = [sys.executable, "-m", "cavity", *words]
    with subprocess.Popen(
        command, env=environment, cwd=folder, stdin=terminal, stdout=terminal, stderr=terminal
    ) as run:
        os.close(terminal)
        written = b""
        while chunk := _read(controller):
            written += chunk
    os.close(controller)
    assert run.returncode == 0, written
    return written.decode()


def _read(controller: int) -> bytes:
    try:
        return os.read(controller, 1 << 16)
    except OSError:  # Linux's way to say that nobody writes any more
        return b""


@pytest.mark.parametrize("columns", [pytest.param(80, marks=pytest.mark.slow), 60])
def test_the_live_display_fits(columns, tmp_path):
    words = ["--dataset", "digits", "--hidden", "11,11", "--epochs", "3", "--evaluate-every", "2", "--out", "run"]
    written = in_terminal(columns, tmp_path, "train", *words)
    # What moves the cursor or colours is not seen; a line ends at \n, and the bar is drawn over itself after \r.
    lines = re.split(r"\r?\n|\r", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written))
    table = [line for line in lines if re.match(r" *(epoch|\d+)  ", line)]
    assert len(table) == 4
    assert "test" in table[0].split()
    assert "running training error" in table[1]
    assert "running training error" not in table[2]
    # A bar is made of these.
    bars = [line for line in lines if re.match("[━╸╺]", line)]
    assert any("left, running training error" in line for line in bars)
    before_the_end = lines[: lines.index(bars[-1])]
    assert max(map(len, before_the_end)) <= columns
    assert any(len(line) > columns - 25 for line in before_the_end)
