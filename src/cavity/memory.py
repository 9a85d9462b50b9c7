"""How much memory there is, and a refusal that says how much was wanted."""

from __future__ import annotations

import os
from pathlib import Path

import torch


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
