"""Estimators in other processes: joblib's workers, and a process that was forked while torch was in use."""

import multiprocessing

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.datasets import load_iris

import cavity


def probabilities(seed: int) -> np.ndarray:
    """Of a classifier that is fitted here, wherever that is."""
    X, y = load_iris(return_X_y=True)
    return cavity.MessagePassingClassifier((11,), epochs=3, random_state=seed).fit(X, y).predict_proba(X)


@pytest.mark.slow
def test_joblib_gives_what_this_process_gives() -> None:
    there = Parallel(n_jobs=2)(delayed(probabilities)(seed) for seed in (0, 1))
    for seed, found in enumerate(there):
        np.testing.assert_array_equal(found, probabilities(seed))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
def test_a_forked_process_gives_what_this_process_gives() -> None:
    here = probabilities(0)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        there = pool.apply_async(probabilities, (0,)).get(timeout=60)
    np.testing.assert_array_equal(there, here)
