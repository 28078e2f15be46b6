"""The three ways of the exact solver, each forced on problems of any size."""

from __future__ import annotations

import numpy as np

from mercer.kernels import Gaussian
from mercer.losses import EpsilonInsensitive, NuInsensitive, OneClass, Pinball, SquaredEpsilonInsensitive
from mercer.problems.dual import DualProblem
from mercer.solvers import decomposition, exact, primal
from mercer.solvers.base import Options, WorkClock
from mercer.solvers.data import Data
from mercer.testing.solvers import Task

# up to how many variables the matrix is float64, and is one block
WAYS = {"double": (1 << 40, 1 << 40), "single": (0, 1 << 40), "rows": (0, 0)}


def force(monkeypatch, way):
    """Solve on the float64 matrix, on the float32 matrix, or by decomposition on float32 rows; not over features."""
    double, whole = WAYS[way]
    monkeypatch.setattr(primal, "SAMPLES_FROM", 1 << 40)
    monkeypatch.setattr(exact, "DOUBLE_UP_TO", double)
    monkeypatch.setattr(exact, "WHOLE_UP_TO", whole)


def stage(monkeypatch, first, start):
    """Begin with ``start`` samples from ``first`` samples on."""
    monkeypatch.setattr(decomposition, "FIRST_STAGE_FROM", first)
    monkeypatch.setattr(decomposition, "FIRST_STAGE", start)


def task(loss, intercept=True, n=120, C=2.0, kernel=None, seed=0, scale=1.0):
    """Two overlapping classes, or a noisy curve, in four dimensions; unequal weights, one of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    value = X[:, 0] + 0.5 * np.sin(3 * X[:, 1]) + 0.4 * rng.normal(size=n)
    weight = C * rng.uniform(0.5, 1.5, size=n)
    weight[n // 2] = 0.0
    y = value
    if isinstance(loss, OneClass):
        y = np.ones(n)
    elif not isinstance(loss, (EpsilonInsensitive, SquaredEpsilonInsensitive, Pinball, NuInsensitive)):
        y = np.where(value > np.median(value), 1.0, -1.0)
    kernel = kernel or Gaussian(0.25)
    X = X * scale
    return Task(repr(loss), kernel, X, kernel(X), DualProblem(None, loss, y, weight, intercept))


def run(job, clock=None, start=None, **options):
    """The exact solver on a task, for ten seconds at most."""
    data = Data(job.kernel, job.X, len(job.X))
    return exact.solve(data, job.problem, Options(**options), clock or WorkClock(120.0), start)
