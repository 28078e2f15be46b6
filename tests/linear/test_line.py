"""The lowest point along a line."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from tests.linear.tasks import SHAPES, SMOOTH, make
from tests.naming import named

from mercer.linear.newton import lowest


def along(problem, w, step, s):
    return problem.primal(w + s * step, 0.0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", SMOOTH, ids=named)
def test_it_is_the_lowest(loss, shape):
    """The point is that of scipy, for short and long steps in a direction in which the objective falls."""
    rng = np.random.default_rng(0)
    for C, length in ((0.01, 1.0), (1.0, 1e-3), (100.0, 10.0)):
        problem = make(shape, loss, C, 1.0)
        w, step, qp = rng.normal(size=problem.rows.d), length * rng.normal(size=problem.rows.d), problem.qp
        before, after = (along(problem, w, step, s) for s in (-1e-6 / length, 1e-6 / length))
        step = step if after < before else -step
        vectors = qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper
        f, q = problem.rows.dot(w), problem.rows.dot(step)
        s = lowest(f, q, float(w @ step), float(step @ step), vectors, 1e-9)
        value = partial(along, problem, w, step)
        assert value(s) <= minimize_scalar(value, (0.0, max(s, 1e-12)), tol=1e-12).fun * (1 + 1e-12)
