"""How much memory there is, and a refusal that says how much was wanted."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

import torch

#: mallopt's names for two of its settings, and what they are set to.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES, LARGEST_BLOCK = 256 << 20, 32 << 20


@cache
def keep_freed_pages() -> None:
    """Have glibc keep up to 256 MB that were freed instead of handing them back to the system.

    A step allocates and frees a few tensors of the size of the weights. Handed back, their pages must be mapped and
    zeroed again in the next step, which takes longer than what is computed with them. Other allocators are left alone,
    and so is one that the environment has tuned.
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
    mallopt(M_MMAP_THRESHOLD, LARGEST_BLOCK)


def available_bytes(device: torch.device) -> int | None:
    """Free memory of the device, or None where it cannot be told."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu":
        return None
    table = Path("/proc/meminfo")
    if table.exists():
        for line in table.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def require(needed: int, device: torch.device, what: str, remedy: str) -> None:
    """Raise MemoryError if ``what`` cannot fit into the free memory of the device."""
    free = available_bytes(device)
    if free is not None and needed > free:
        raise MemoryError(
            f"{what} needs {needed / 2**30:.1f} GiB, but {device} has {free / 2**30:.1f} GiB free: {remedy}"
        )
