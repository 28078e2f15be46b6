"""Random rows and boxes for the compiled loops of linear machines, in the form that the loops take."""

import numpy as np
import scipy.sparse as sp

from mercer.linear.coordinate import Storage
from mercer.linear.linear_problem import Rows

KINDS = ("dense", "sparse")
# no sample, one, fewer and more than are read at a time; the same for features
SHAPES = ((0, 3), (1, 1), (3, 5), (8, 4), (21, 9), (60, 37))


def matrix(n, d, seed=0, dtype=np.float64):
    """A random matrix of which half the entries are 0, with an empty row if there are several."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)).astype(dtype)
    X[1:2] = 0.0
    return X


def stored(X, kind):
    """(indptr, indices, values) of the rows."""
    return Storage(Rows.of(sp.csr_array(X) if kind == "sparse" else X)).arrays


def csr(X):
    """(indptr, indices, values) of the rows, with unsigned column numbers."""
    rows = sp.csr_array(X)
    return rows.indptr, rows.indices.astype(np.uint32), rows.data


def boxes(n, seed=0, ridges=(0.0, 0.5)):
    """(linear, l1, ridge, lower, upper): boxes around 0, some of one point, some with an end at 0."""
    rng = np.random.default_rng(seed)
    linear, l1, ridge = rng.normal(size=n), rng.choice([0.0, 0.3], n), rng.choice(ridges, n)
    lower, upper = -rng.choice([0.0, 0.5, 2.0], n), rng.choice([0.0, 0.5, 2.0], n)
    return linear, l1, ridge, lower, upper


def inside(lower, upper, seed=0):
    """A point of each box: an end, 0, or between them."""
    rng = np.random.default_rng(seed)
    share = rng.choice([0.0, 0.3, 1.0], len(lower))
    beta = lower + share * (upper - lower)
    beta[rng.random(len(lower)) < 0.2] = 0.0
    return beta
