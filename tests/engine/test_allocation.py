"""Freed memory is kept for the next step instead of being handed back."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

#: Prints by how many megabytes a tensor made the process larger, and how many of them are left once it is freed.
PROGRAM = """
import os
from pathlib import Path
import torch
from cavity.engine.allocation import keep_freed_pages

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def measure(size):
    before = resident()
    block = torch.ones(size // 4)
    full = resident()
    del block
    print((full - before) / 2**20, (resident() - before) / 2**20)

measure(48 << 20)
for size in (8 << 20, 48 << 20):
    keep_freed_pages(size)
    measure(size)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told to keep freed pages")
def test_the_memory_of_a_freed_tensor_is_kept() -> None:
    """48 MB is more than what a threshold of glibc can keep out of mmap. Left alone, glibc hands it back."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    words = [sys.executable, "-c", PROGRAM]
    said = subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout
    (grown, left), *kept = (tuple(map(float, line.split())) for line in said.splitlines())
    assert grown > 40
    assert left < 0.1 * grown
    # The larger of the two may grow into what the smaller one left.
    for (grown, left), megabytes in zip(kept, (8, 48), strict=True):
        assert grown > 0.7 * megabytes
        assert left > 0.9 * grown
