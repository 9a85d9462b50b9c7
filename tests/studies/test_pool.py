"""The pool with small children of its own: messages, ends, last words, and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import cavity
from cavity.studies.pool import pool

CHILD = """
import os, signal, sys, time
from cavity.util.processes import Parent
parent = Parent()
while True:
    wish = parent.receive()
    if wish == "print":
        print("not a message", flush=True)
        os.system("echo nor this")
    elif wish == "fail":
        raise ValueError("no such thing")
    elif wish == "die":
        print("going down\\nfor good", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    elif wish == "end":
        sys.exit(0)
    elif wish == "sleep":
        parent.send(os.getpid())
        time.sleep(1000)
    parent.send([wish, os.environ["OMP_NUM_THREADS"]])
"""
SOURCE = str(Path(cavity.__file__).parents[1])


@pytest.fixture
def child(tmp_path, monkeypatch):
    """The folder of a module that the pool can start."""
    (tmp_path / "pool_child.py").write_text(CHILD)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([SOURCE, str(tmp_path)]))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path


def is_alive(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def wait_until_gone(pid):
    deadline = time.monotonic() + 30
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(pid)


def test_messages_go_both_ways_and_prints_are_no_messages(child):
    with pool("pool_child", 1, threads=3) as workers:
        worker = workers.start(child / "errors.txt")
        for wish in ("print", {"a": [1.5, None]}):
            worker.send(wish)
            assert workers.next_message() == (worker, [wish, "3"])
    assert worker.process.returncode == -signal.SIGKILL
    assert (child / "errors.txt").read_text() == "not a message\nnor this\n"


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        ("fail", "its process ended with status 1: ValueError: no such thing"),
        ("die", "its process ended with status -9: going down | for good"),
        ("end", "its process ended with status 0"),
    ],
)
def test_the_end_of_a_child_is_told_with_its_last_words(child, wish, reason):
    with pool("pool_child", 2) as workers:
        other, worker = workers.start(child / "other.txt"), workers.start(child / "errors.txt")
        worker.send(wish)
        assert workers.next_message() == (worker, None)
        assert worker.why_ended() == reason
        other.send("still there")
        assert workers.next_message() == (other, ["still there", "1"])
    assert (child / "errors.txt").exists() == (wish != "end")
    assert not (child / "other.txt").exists()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the child in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_child_outlives_its_parent(child, number):
    program = (
        "import signal; from pathlib import Path; from cavity.studies.pool import pool\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "with pool('pool_child', 1) as workers:\n"
        "    workers.start(Path('errors.txt')).send('sleep')\n"
        "    print(workers.next_message()[1], flush=True)\n"
        "    workers.next_message()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=child) as parent:
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.send_signal(number)
        _, said = parent.communicate(timeout=30)
    assert ("KeyboardInterrupt" in said) == (number != signal.SIGKILL)
    assert wait_until_gone(pid)


def test_a_ctrl_c_that_python_drops_is_heard_all_the_same(child):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pool("pool_child", 1) as workers:
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                workers.next_message()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    "put", [os.symlink, os.link, lambda victim, path: os.mkfifo(path)], ids=["link", "name", "pipe"]
)
def test_last_words_are_written_nowhere_else(child, tmp_path, put):
    victim, errors = tmp_path / "victim", tmp_path / "errors.txt"
    victim.write_text("keep")
    put(victim, errors)
    with (
        pool("pool_child", 1) as workers,
        pytest.raises(OSError, match=r"is a symbolic link|has other names|is a named pipe"),
    ):
        workers.start(errors)
    assert victim.read_text() == "keep"


def test_last_words_that_cannot_be_written_do_not_stop_the_child(child, tmp_path):
    """A child that says more than a pipe holds would wait for somebody to read it."""
    (child / "loud_child.py").write_text("import sys\nfor _ in range(5000):\n    print('x' * 99, file=sys.stderr)\n")
    with pool("loud_child", 1) as workers:
        worker = workers.start(tmp_path / "no such folder" / "errors.txt")
        assert workers.next_message() == (worker, None)
    assert worker.process.returncode == 0
