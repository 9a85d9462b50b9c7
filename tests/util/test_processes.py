"""Shares of the cores, and signals that end what runs."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest

from cavity.util.processes import interruptible, threads_each


def test_threads_are_shared_fairly(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert [threads_each(jobs) for jobs in (1, 2, 3, 8, 20)] == [8, 4, 2, 1, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads_each(2) == 3


@pytest.fixture
def usual_signals():
    """Handlers as in a terminal: a shell that starts tests in the background has SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_python_drops_is_remembered(usual_signals, number):
    before = signal.getsignal(number)
    with interruptible() as came:
        assert not came.is_set()
        # Where the exception goes to nobody, as in a destructor.
        with suppress(KeyboardInterrupt):
            signal.raise_signal(number)
        assert came.is_set()
    assert signal.getsignal(number) is before


def test_a_signal_that_the_program_was_started_to_ignore_stays_ignored(usual_signals):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interruptible() as came:
        signal.raise_signal(signal.SIGINT)
        assert not came.is_set()
