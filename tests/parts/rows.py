"""Rows cut into parts, and the losses of the linear machines."""

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from mercer.losses import EpsilonInsensitive, Hinge, SquaredEpsilonInsensitive, SquaredHinge
from mercer.parts.layout import Held, LocalParts

LOSSES = [Hinge(), SquaredHinge(), EpsilonInsensitive(0.1), SquaredEpsilonInsensitive(0.1)]
# (a free intercept, the value of a constant feature)
INTERCEPTS = [(True, 0.0), (False, 1.0), (False, 0.0)]


def samples(n, d, loss=None, seed=0):
    """X with a constant column, targets for the loss, and weights, some of which are 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, -1] = 3.0
    f = 0.7 * X @ rng.normal(size=d) + rng.normal(size=n)
    weight = rng.uniform(0.0, 2.0, n)
    weight[::7] = 0.0
    return (
        X,
        f if isinstance(loss, EpsilonInsensitive | SquaredEpsilonInsensitive) else np.where(f > 0, 1.0, -1.0),
        weight,
    )


def cut(X, y, weight, count, stored=np.asarray, **more):
    """Uneven parts, an empty one among them if there are several."""
    n = len(y)
    edges = [0, n] if count == 1 else [0, n // 20, n // 20, *np.linspace(n // 10, n, count - 1).astype(int)]
    if count == 2:
        edges = [0, n // 20, n]
    loaders = [Held(stored(X[a:b]), y[a:b], weight[a:b]) for a, b in pairwise(edges)]
    return LocalParts(loaders, **more)


def csr(X):
    """As CSR."""
    return sp.csr_array(X)
