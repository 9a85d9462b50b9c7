"""Threads: how many a piece of work is given, and that torch's own setting survives."""

import os

import pytest
import torch
from sklearn.datasets import load_iris

import cavity
from cavity.util import threads


@pytest.mark.parametrize(
    ("products", "most", "free", "expected"),
    [(1e3, 8, 8, 1), (1e9, 8, 8, 8), (1e9, 8, 3, 3), (1e9, 2, 8, 2), (4e7, 8, 8, 2), (1e9, 8, 1, 1)],
)
def test_small_work_gets_one_thread_and_large_work_what_is_free(products, most, free, expected):
    assert threads.threads_for(products, most, free) == expected


def test_a_fit_of_a_small_table_has_one_thread_and_leaves_torch_as_it_was(monkeypatch):
    before = torch.get_num_threads()
    seen = []
    learn = cavity.Trainer.learn
    monkeypatch.setattr(
        cavity.Trainer, "learn", lambda self, x, y: seen.append(torch.get_num_threads()) or learn(self, x, y)
    )
    torch.set_num_threads(2)
    try:
        X, y = load_iris(return_X_y=True)
        model = cavity.MessagePassingClassifier((11,), epochs=1).fit(X, y)
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
        with pytest.raises(ValueError, match="features"):
            model.predict(X[:, :2])
        with pytest.raises(ValueError, match="epochs"):
            model.set_params(epochs=0).fit(X, y)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_there_is_always_a_processor():
    assert threads.free_processors() >= 1


@pytest.mark.parametrize(("running", "here", "free"), [(1, 1, 2), (3, 3, 2), (2, 1, 1), (4, 2, 1), (0, 1, 2)])
def test_only_other_processes_take_processors(monkeypatch, running, here, free):
    """Threads of this process that still spin after a product are no company."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1}, raising=False)
    monkeypatch.setattr(threads, "_running", lambda: running)
    monkeypatch.setattr(threads, "_running_here", lambda: here)
    assert threads.free_processors() == free


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="only Linux lists the threads of a process")
def test_the_threads_of_this_process_that_run_are_counted():
    assert 1 <= threads._running_here() <= len(os.listdir("/proc/self/task"))
