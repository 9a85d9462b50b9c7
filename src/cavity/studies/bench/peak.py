"""The most memory that a step holds at once, above what was held before it.

On the CPU, torch's profiler reports every allocation and release of its allocator, from compiled code too; their
running sum has a largest value, which does not depend on the machine's load or on earlier steps. The resident size of
the process would show pages that the C library keeps from before, and a count of tensors would miss compiled code.
Workspace inside the linear algebra library is not seen. A GPU's own counter says the same thing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import accumulate

import torch
from torch.profiler import ProfilerActivity, profile, record_function

#: The event in the profile from which memory is counted.
MARK = "measured step"


def peak_bytes(make: Callable[[], Callable[[], object]], device: torch.device) -> int | None:
    """Largest memory in use during the second call of ``make()``, less that before it; None if the device cannot tell.

    The first call settles what outlives a step. What ``make`` builds is watched too, so that its releases are known.
    """
    if device.type == "cuda":
        return _counted_by_device(make, device)
    return max(accumulate(_changes(make), initial=0)) if device.type == "cpu" else None


def _counted_by_device(make: Callable[[], Callable[[], object]], device: torch.device) -> int:
    step = make()
    step()
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    step()
    torch.cuda.synchronize(device)
    return int(torch.cuda.max_memory_allocated(device) - before)


def _changes(make: Callable[[], Callable[[], object]]) -> list[int]:
    """Bytes taken (+) and given back (−) by the second call, in order."""
    # The profiler announces itself on the terminal unless told not to before it is first used.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        step = make()
        step()
        with record_function(MARK):
            step()
    assert watched.profiler is not None
    assert watched.profiler.kineto_results is not None
    events = sorted(watched.profiler.kineto_results.events(), key=lambda event: event.start_ns())
    (mark,) = [event for event in events if event.name() == MARK]
    within = [event for event in events if mark.start_ns() <= event.start_ns() <= mark.end_ns()]
    return [event.nbytes() for event in within if event.name() == "[memory]"]
