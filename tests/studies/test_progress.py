"""The time left follows from the work done so far, whichever job did it."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from cavity.studies.progress import JobBars


@pytest.fixture
def clock():
    """A clock that stands still unless it is moved."""

    class Clock:
        now = 1000.0

        def __call__(self):
            return self.now

    return Clock()


@pytest.fixture
def shown(clock):
    made = JobBars(Console(file=StringIO()))
    made.bars.get_time = clock
    return made


def test_jobs_count_by_their_work_and_what_is_left_of_one_counts_at_its_end(shown, clock):
    with shown.shown("all", 40):
        shown.begin("a", "a", "", work=10)
        shown.begin("b", "b", "", work=30)
        assert shown.left() == ""
        shown.advance("a", 0.5)
        # Since that first report, 10 of 40 are done in 200 seconds, the rest of a job among them; 25 are left.
        clock.now += 100
        shown.advance("b", 5 / 30)
        clock.now += 100
        shown.end("a")
        assert shown.left() == "8:20 left"
        clock.now += 100
        shown.end("b")
        assert shown.left() == "0:00 left"


def test_what_was_done_before_an_interruption_takes_no_time(shown, clock):
    with shown.shown("all", 100):
        shown.begin("a", "a", "", work=100)
        shown.advance("a", 0.51, resumed=0.50)
        clock.now += 10
        shown.advance("a", 0.52, resumed=0.51)
        assert shown.left() == "8:00 left"
        assert shown.bars.tasks[0].total == 50


def test_a_sweep_that_is_resumed_begins_where_it_was(shown, clock):
    with shown.shown("trials", 10, done=4):
        clock.now += 60
        shown.begin("4", "trial 4", "")
        shown.end("4")
        assert shown.left() == "5:00 left"
