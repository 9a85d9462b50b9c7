"""Work in processes of its own: threads are shared fairly, and no process outlives the one that asked for it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

#: Exit status of a process whose parent is gone.
ORPHANED = 130


def threads_each(jobs: int) -> int:
    """Threads of each of ``jobs`` processes: OMP_NUM_THREADS if it is set, else an equal share of the cores."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // jobs)


def lines_from_parent() -> SimpleQueue[str]:
    """What the parent writes to stdin, line by line. When stdin closes, the parent is gone, and so is this process."""
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    return lines


def _listen(lines: SimpleQueue[str]) -> None:
    rest = b""
    # Not sys.stdin: a thread that holds its lock would block the interpreter's own end.
    while received := os.read(0, 4096):
        *whole, rest = (rest + received).split(b"\n")
        for line in whole:
            lines.put(line.decode())
    os._exit(ORPHANED)


@contextmanager
def end_on_terminate() -> Iterator[None]:
    """SIGTERM ends what runs here like Ctrl-C."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
