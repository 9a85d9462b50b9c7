"""How many threads a piece of work is given: one if it is small, and never more than there are free processors.

A thread that waits for another which the system has not scheduled spins. Beside other busy processes a fit of a small
table has been seen to take ten times as long with two threads as with one. The setting is torch's own, for as long as
the work takes, and what it was before is the most.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cavity.util.regular import read_regular

#: Products of a number and a weight in one call, below which a second thread costs more than it brings.
WORTH_A_THREAD = 3e7
#: How often is looked at what is running, and after how many seconds again.
LOOKS, BETWEEN_LOOKS = 3, 1e-3


def free_processors() -> int:
    """Processors that this process may use and no other keeps busy, one at least: the most of a few looks, because what
    runs for a moment is no company. Where the system does not say what is running, those it may use."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    others = mine
    for look in range(LOOKS):
        time.sleep(BETWEEN_LOOKS if look else 0)
        try:
            others = min(others, max(0, _running() - _running_here()))
        except (OSError, ValueError, IndexError):
            return mine
    return max(1, mine - others)


def _running() -> int:
    """Threads of all processes that run or wait for a processor now, as Linux counts them."""
    return int(read_regular("/proc/loadavg").split()[3].partition(b"/")[0])


def _running_here() -> int:
    """Those of this process: a thread that has done its part of a product spins for a while before it sleeps."""
    found = 0
    for task in os.listdir("/proc/self/task"):
        # One that has ended since runs no more.
        with suppress(FileNotFoundError, ProcessLookupError):
            found += read_regular(f"/proc/self/task/{task}/stat").rpartition(b")")[2].split()[0] == b"R"
    return found


def threads_for(products: float, most: int, free: int) -> int:
    """Threads for calls of that many ``products``, of ``most`` allowed and ``free`` processors."""
    return max(1, min(most, free, 1 + int(products / WORTH_A_THREAD)))


@contextmanager
def suited(products: float) -> Iterator[None]:
    """Gives torch as many threads as calls of that many ``products`` are worth; afterwards it has those it had."""
    import torch

    before = torch.get_num_threads()
    wanted = 1 if before == 1 or products < WORTH_A_THREAD else threads_for(products, before, free_processors())
    if wanted == before:
        yield
        return
    torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)
