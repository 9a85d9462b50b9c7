"""Work in several processes: how a child talks with its parent, shares the cores, and ends."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

#: Exit status of a process whose parent is gone.
ORPHANED = 130


def threads_each(jobs: int) -> int:
    """Threads of each of ``jobs`` processes: OMP_NUM_THREADS if it is set, else an equal share of the cores."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // jobs)


class Parent:
    """The parent as its child sees it: messages are lines of JSON on stdin and stdout.

    Made once, at the start of the child. Anything else that is printed goes to stderr, Ctrl-C is left to the parent,
    and when stdin closes, the parent is gone and the child ends at once.
    """

    def __init__(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._lines: SimpleQueue[str] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        rest = b""
        # Not sys.stdin: a thread that holds its lock would block the interpreter's own end.
        while received := os.read(0, 4096):
            *whole, rest = (rest + received).split(b"\n")
            for line in whole:
                self._lines.put(line.decode())
        os._exit(ORPHANED)

    def receive(self) -> Any:
        """The next message; waits for it."""
        return json.loads(self._lines.get())

    def send(self, message: Any) -> None:
        print(json.dumps(message), file=self._out, flush=True)


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """SIGTERM ends what runs here as Ctrl-C does; the event is set when either came.

    Python drops a KeyboardInterrupt that is raised in a destructor, of which a database has many; the event stays set.
    A signal that the program was started to ignore (``nohup``, a background job of a script) stays ignored.
    """
    came = threading.Event()

    def stop(number: int, frame: object) -> None:
        came.set()
        raise KeyboardInterrupt

    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    in_main = threading.current_thread() is threading.main_thread()
    replaced = {number: old for number, old in usual.items() if in_main and signal.getsignal(number) == old}
    for number in replaced:
        signal.signal(number, stop)
    try:
        yield came
    finally:
        for number, old in replaced.items():
            signal.signal(number, old)
