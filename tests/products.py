"""Products of options that are too many to try: first those in which every pair of values occurs, the others slowly."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

Options = Mapping[str, Iterable[Any]]


def all_pairs(options: Options, allowed: Callable[[dict[str, Any]], bool] = lambda case: True) -> list[dict[str, Any]]:
    """Cases, built greedily, in which every allowed pair of values occurs. ``allowed`` is asked of incomplete ones."""
    missing = [
        {a: u, b: v}
        for a, b in itertools.combinations(options, 2)
        for u, v in itertools.product(options[a], options[b])
        if allowed({a: u, b: v})
    ]
    cases = []
    while missing:
        case = dict(missing[0])
        for name, values in options.items():
            if name in case:
                continue
            # The value that covers most of what is missing, together with what has been chosen so far.
            candidates = [case | {name: value} for value in values if allowed(case | {name: value})]
            case = max(candidates, key=lambda trial: sum(pair.items() <= trial.items() for pair in missing))
        missing = [pair for pair in missing if not pair.items() <= case.items()]
        cases.append({name: case[name] for name in options})
    return cases


def pairs_first(**options: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrises a test over the whole product; what ``all_pairs`` leaves out is marked slow."""
    first = [tuple(case.values()) for case in all_pairs(options)]
    cases = [
        pytest.param(*case, marks=() if case in first else pytest.mark.slow)
        for case in itertools.product(*options.values())
    ]
    return pytest.mark.parametrize(tuple(options), cases)
