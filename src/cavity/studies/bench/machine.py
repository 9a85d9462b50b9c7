"""The machine that was measured, named by its cores and its processor only."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True)
class Machine:
    """``processor`` is the CPU, ``device`` what was computed on: "cpu" or the GPU's model."""

    processor: str
    cores: int
    threads: int
    device: str
    torch: str

    def __str__(self) -> str:
        words = f"{self.cores} × {self.processor}, {self.threads} thread{'s' * (self.threads > 1)}, torch {self.torch}"
        return words if self.device == "cpu" else f"{self.device}, {words}"


def describe(device: torch.device) -> Machine:
    """This machine, as torch is set up now."""
    model = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return Machine(processor(), os.cpu_count() or 1, torch.get_num_threads(), model, torch.__version__)


def processor() -> str:
    """The model of the CPU, as far as the system tells."""
    table = Path("/proc/cpuinfo")
    if table.exists():
        for line in table.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    return platform.processor() or platform.machine() or "unknown processor"
