"""Freed memory is kept for the next step: no page of it is mapped again."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, torch
from cavity.engine.allocation import keep_freed_pages

torch.set_num_threads(1)
size = {megabytes} << 20
if {keep}:
    keep_freed_pages(size)

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = torch.ones(size // 4)
    other = block + 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults(), min(faults() for _ in range(8)))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told to keep freed pages")
@pytest.mark.parametrize("megabytes", [8, 48])
def test_the_second_time_no_page_is_mapped(megabytes) -> None:
    """48 MB is more than what a threshold of glibc can keep out of mmap."""

    def run(keep: bool) -> tuple[int, int]:
        script = FAULTS.format(megabytes=megabytes, keep=keep)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
        said = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
        )
        first, again = map(int, said.stdout.split())
        return first, again

    first, again = run(keep=True)
    assert again < first / 20
    if megabytes > 32:
        first, again = run(keep=False)
        assert again > first / 2, "without it pages are mapped every time: the test sees what it is about"
