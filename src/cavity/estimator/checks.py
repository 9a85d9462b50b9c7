"""What parameters and inputs of an estimator must be; errors say which of them is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

if TYPE_CHECKING:
    from cavity.estimator.samples import Rows

RandomState = int | np.random.RandomState | np.random.Generator | None

#: The least and the largest size of a number whose square can be summed in float64.
SMALLEST, LARGEST = 1e-150, 1e150


def positive(name: str, value: object) -> int:
    """``value`` as an int, NumPy's too; ValueError by ``name`` if it is no whole number of at least 1."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    return int(value)


def widths(hidden: object) -> tuple[int, ...]:
    """The hidden layers as a tuple; ValueError if they are no sequence of widths."""
    if isinstance(hidden, str) or not isinstance(hidden, Sequence | np.ndarray):
        raise ValueError(f"hidden must be a sequence of widths such as (501,), got {hidden!r}")
    return tuple(positive("a width in hidden", width) for width in hidden)


def seed_of(random_state: RandomState) -> int:
    """A seed drawn from a state or generator of NumPy, or made of an int or None."""
    largest = np.iinfo(np.int32).max
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(largest))
    return int(check_random_state(random_state).randint(largest))


def refuse_masked(**arrays: object) -> None:
    """ValueError for a masked array: what it hides would be taken for data."""
    for name, array in arrays.items():
        if isinstance(array, np.ma.MaskedArray):
            raise ValueError(f"{name} must not be a masked array: fill it, or leave out what it masks")


def require_finite(good: NDArray[np.bool_], problem: str, X: Rows | None = None) -> None:
    """ValueError with the place of the first value that is not ``good``: (samples, features), or one for each value
    that a sparse X stores."""
    if good.all():
        return
    if good.ndim == 1 and X is not None:
        stored: Any = X.tocoo()
        first = int(np.argmin(good))
        row, column, columns = stored.row[first], stored.col[first], X.shape[1]
    else:
        (row, column), columns = np.argwhere(~good)[0], good.shape[1]
    raise ValueError(f"X must hold finite numbers in its {columns} columns: row {row}, column {column} is {problem}")


def require_scalable(X: Rows) -> None:
    """ValueError for numbers whose squares float64 cannot hold or tell from 0."""
    size = np.abs(X if isinstance(X, np.ndarray) else X.data)
    require_finite(size <= LARGEST, "too large to be standardised", X)
    if isinstance(X, np.ndarray):
        lost = (size.max(axis=0) < SMALLEST) & (size > 0)
        require_finite(~lost, "too small to be standardised, like the others of its column")
