"""Try a user's kernel function on a few samples: does it compare two sets of samples, or two single samples?

A function of two samples, as lecture notes write k(x, z), fails on two sets in many ways: it raises, it returns one
number, or it returns a matrix of the right shape by accident (``np.dot(X, Z)`` of square matrices). The sets tried here
have different sizes, so that such accidents show.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector, count_samples, take_samples

# values that differ by less, relative to the largest, are equal: the function may compute in float32
ROUNDING = 1e-3

Function = Callable[[Any, Any], Any]


def each(samples: Any) -> Iterator[Any]:
    """The samples one by one: rows of a sparse matrix as dense vectors, of a data frame as its rows."""
    if sp.issparse(samples):
        rows = samples.tocsr()
        return (rows[[i]].toarray()[0] for i in range(rows.shape[0]))
    if hasattr(samples, "iloc"):
        return (samples.iloc[i] for i in range(len(samples)))
    if hasattr(samples, "iter_rows"):
        return iter(samples.iter_rows(named=True))
    return iter(samples)


def check_takes_sets(name: str, function: Function, samples: Any, in_parts: bool = True) -> None:
    """Raise if function(X, Z) compares two samples instead of two sets of samples.

    With ``in_parts``, raise also if k(x, z) depends on the sets that x and z are in. A function that is wrong in any
    other way is left to the call that needs its values.
    """
    n = count_samples(samples)
    if n == 0:
        return
    tried = _on_sets(function, samples, np.array([0, n // 2, n - 1]), np.array([n - 1, 0]))
    alone = _on_sets(function, samples, np.array([0]), np.array([n - 1]))
    if not isinstance(tried, str) and not isinstance(alone, str):
        if in_parts and not _agree(tried[:1, :1], alone):
            raise InvalidInputError(
                f"{name} must return the same k(x, z) for a pair of samples whichever sets they are in, but samples 0 "
                f"and {n - 1} have the value {tried[0, 0]:g} among 3 and 2 samples, and {alone[0, 0]:g} by themselves. "
                "Compute what depends on all samples, such as their mean, before the fit, or use kernel='precomputed'."
            )
        return
    value = _on_pair(function, samples)
    if isinstance(value, str):
        return
    trouble = tried if isinstance(tried, str) else alone
    raise InvalidInputError(
        f"{name} compares two samples: for one pair it returned {value:g}, but for two sets of samples it {trouble}. A "
        "kernel function f(X, Z) is called with two sets of samples and returns the matrix of all k(x, z): one row for "
        "each sample of X, one column for each sample of Z. Use kernel=CallableKernel(f, pairwise=True), which calls f "
        "for each pair, or write f for two matrices, such as (1 + X @ Z.T) ** 2 in place of (1 + x @ z) ** 2."
    )


def check_takes_pairs(name: str, function: Function, samples: Any) -> None:
    """Raise unless function(x, z) is a number for two samples."""
    n = count_samples(samples)
    if n == 0:
        return
    trouble = _on_pair(function, samples)
    if not isinstance(trouble, str):
        return
    advice = "Correct the function."
    if not isinstance(_on_sets(function, samples, np.array([0, n // 2, n - 1]), np.array([n - 1, 0])), str):
        advice = (
            "It compares two sets of samples, and returns the matrix of all k(x, z): use kernel=CallableKernel(f), "
            "without pairwise=True."
        )
    raise InvalidInputError(
        f"{name} calls its function f(x, z) with two samples, for which it must return one real number, but it "
        f"{trouble}. {advice}"
    )


def depends_on_sets(function: Function, samples: Any, part: Vector) -> bool:
    """Whether function(X, Z) has other values, or none, where Z is this part of the samples instead of all of them."""
    if len(part) == 0:
        return False
    n = count_samples(samples)
    rows = np.unique([0, n // 2, n - 1])
    every, some = (_on_sets(function, samples, rows, columns) for columns in (np.arange(n), part))
    return isinstance(every, str) or isinstance(some, str) or not _agree(every[:, part], some)


def _agree(values: Matrix, others: Matrix) -> bool:
    """Whether two matrices are equal but for rounding."""
    size = max(np.abs(values).max(initial=0.0), np.abs(others).max(initial=0.0))
    if not np.isfinite(size):
        return True  # whoever needs the values says that they are not finite
    return bool(np.abs(values - others).max(initial=0.0) <= ROUNDING * size)


def _on_sets(function: Function, samples: Any, rows: Vector, columns: Vector) -> Matrix | str:
    """The matrix of these samples; if there is none, what the function did."""
    values = _attempt(lambda: function(take_samples(samples, rows), take_samples(samples, columns)))
    if isinstance(values, str) or values.shape == (len(rows), len(columns)):
        return values
    return f"returned an array of shape {values.shape} for {len(rows)} and {len(columns)} samples"


def _on_pair(function: Function, samples: Any) -> float | str:
    """The value for the first sample and the last; if there is none, what the function did."""
    last = count_samples(samples) - 1
    value = _attempt(lambda: function(*(next(each(take_samples(samples, np.array([i])))) for i in (0, last))))
    if isinstance(value, str):
        return value
    return float(value) if value.ndim == 0 else f"returned an array of shape {value.shape}"


def _attempt(call: Callable[[], Any]) -> Matrix | str:
    """The real numbers that a call returns; if it returns none, what it did."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # the real call repeats them
            values = call()
        values = values.toarray() if sp.issparse(values) else np.asarray(values)
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"
    if values.dtype.kind not in "fiub":
        return f"returned {values.dtype} in place of real numbers"
    return values
