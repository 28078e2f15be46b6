"""The three ways of the exact solver, each forced on problems of any size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.gram.operator import Data
from mercer.kernels import Gaussian
from mercer.losses import EpsilonInsensitive, Huber, NuInsensitive, OneClass, Pinball, SquaredEpsilonInsensitive
from mercer.problems.clock import WorkClock
from mercer.problems.dual import DualProblem
from mercer.problems.solution import Options
from mercer.svm import plan
from mercer.svm import solve as exact
from mercer.testing.solvers import Task

# the dense matrix in float64, in float32, or float32 rows
WAYS = ("double", "single", "rows")


def planned(way, data, qp, options, first=0):
    """The plan that forces a way, starting on ``first`` samples if given; never over features."""
    if way != "rows":
        return plan.plan_matrix(data, qp, options, "float64" if way == "double" or qp.has_open_box else "float32")
    found = plan.plan_rows(data, qp, options, "float64" if qp.has_open_box else "float32")
    if not first:
        return found
    shrinking = options.shrinking and not qp.has_open_box
    return replace(found, shrinking=shrinking, first_samples=first if shrinking else 0)


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
    elif not isinstance(loss, (EpsilonInsensitive, SquaredEpsilonInsensitive, Huber, Pinball, NuInsensitive)):
        y = np.where(value > np.median(value), 1.0, -1.0)
    kernel = kernel or Gaussian(0.25)
    X = X * scale
    return Task(repr(loss), kernel, X, kernel(X), DualProblem(None, loss, y, weight, intercept))


def run(job, clock=None, start=None, way=None, first=0, **options):
    """The exact solver on a task, for two minutes at most; by the plan for its size unless a way is forced."""
    data, asked = Data(job.kernel, job.X, len(job.X)), Options(**options)
    if way is not None:
        asked = replace(asked, plan=planned(way, data, job.problem.qp, asked, first))
    return exact.solve(data, job.problem, asked, clock or WorkClock(120.0), start)
