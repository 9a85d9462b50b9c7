"""Freed memory is kept for the next step instead of being handed back."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

#: Prints by how many bytes a tensor made the process larger, and how many of them are left once it is freed.
PROGRAM = """
import os, sys
from pathlib import Path
import torch
from cavity.engine.allocation import keep_freed_pages

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

size = int(sys.argv[1]) << 20
if sys.argv[2] == "keep":
    keep_freed_pages(size)
before = resident()
block = torch.ones(size // 4)
full = resident()
del block
print(full - before, resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told to keep freed pages")
@pytest.mark.parametrize(("megabytes", "keep"), [(8, True), (48, True), (48, False)])
def test_the_memory_of_a_freed_tensor_is_kept(megabytes: int, keep: bool) -> None:
    """48 MB is more than what a threshold of glibc can keep out of mmap. Left alone, glibc hands it back."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    words = [sys.executable, "-c", PROGRAM, str(megabytes), "keep" if keep else "leave"]
    said = subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout
    full, freed = (int(number) / 2**20 for number in said.split())
    assert full >= 0.9 * megabytes
    assert freed >= 0.9 * megabytes if keep else freed <= 0.1 * megabytes
