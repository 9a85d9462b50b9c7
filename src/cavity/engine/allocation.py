"""How much memory there is, and a refusal that says how much was wanted."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import torch

#: mallopt's names for three of its settings.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4
#: What is kept at least, and in tensors of the size of a network's largest; the largest block that a threshold can
#: keep out of mmap.
KEPT_BYTES, KEPT_TENSORS, LARGEST_THRESHOLD = 256 << 20, 16, 32 << 20

_kept = 0


def keep_freed_pages(largest: int) -> None:
    """Have glibc keep what was freed, up to a few tensors of ``largest`` bytes, instead of handing it back.

    A step allocates and frees a few tensors of the size of the weights. Handed back, their pages must be mapped and
    zeroed again in the next step, which takes longer than what is computed with them. Other allocators are left alone,
    and so is one that the environment has tuned.
    """
    global _kept
    wanted = max(KEPT_BYTES, KEPT_TENSORS * largest)
    if wanted <= _kept or any(name.startswith("MALLOC_") for name in os.environ):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return
    _kept = wanted
    mallopt(M_TRIM_THRESHOLD, min(wanted, 2**31 - 1))
    mallopt(M_MMAP_THRESHOLD, LARGEST_THRESHOLD)
    if largest > LARGEST_THRESHOLD:
        # Larger blocks would be mapped one by one whatever the threshold.
        mallopt(M_MMAP_MAX, 0)


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
