"""Spot-check user-supplied kernels and matrices for positive semidefiniteness."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data
from mercer.kernels import Kernel, check_mercer
from mercer.kernels.features import take_samples
from mercer.validation import is_pairwise, square_matrix

# at most this many samples are checked
EXAMINED = 300
# rounding error of a zero eigenvalue, relative to the largest k(x, x)
ROUNDING = 1e-8


class Indefinite(NamedTuple):
    """A submatrix that is not positive semidefinite: its size, its smallest and largest eigenvalue."""

    n_examined: int
    smallest: float
    largest: float


def find_indefinite(kernel: Kernel, samples: Any, n: int) -> Indefinite | None:
    """Check a bound kernel on all samples, or on a random subset of many; None if no negative eigenvalue was found.

    The check runs in float64, with the tolerance of float32 if the samples are float32.
    """
    part = np.arange(n) if n <= EXAMINED else np.sort(np.random.default_rng(0).permutation(n)[:EXAMINED])
    single = getattr(samples, "dtype", None) == np.float32
    features = kernel.prepare(samples[np.ix_(part, part)] if is_pairwise(kernel) else take_samples(samples, part))
    K = kernel.block(features, features)
    if not np.all(np.isfinite(K)):
        raise InvalidInputError(
            f"{kernel!r} returned values that are NaN or infinite. Return finite numbers, or scale the samples."
        )
    square_matrix(K, part)
    rounding = len(part) * float(np.finfo(np.float32).eps) if single else ROUNDING
    try:
        np.linalg.cholesky(K + rounding * np.abs(np.diag(K)).max() * np.eye(len(part)))
    except np.linalg.LinAlgError:
        report = check_mercer(K.astype(np.float32) if single else K)
        if not report.positive_semidefinite:
            return Indefinite(len(part), report.smallest_eigenvalue, report.largest_eigenvalue)
    return None


def seems_psd(data: Data) -> bool:
    """Whether the kernel is known to be positive semidefinite, or passes the spot check."""
    return not data.kernel.psd_is_assumed or find_indefinite(data.kernel, data.samples, data.n) is None
