"""Pairs solved together have the solutions and certificates of pairs solved one by one."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs
from tests.naming import named

from mercer import SVC
from mercer.estimators import pairs
from mercer.kernels import Gaussian
from mercer.losses import HardMargin, Hinge, NuHinge, SquaredHinge
from mercer.solvers import many
from mercer.solvers.base import Clock, Options, Status
from mercer.solvers.data import Data

CLASSES = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def blobs(seed=0, n=120):
    """Four overlapping classes of unequal size, their members in any order."""
    X, y = make_blobs(n, 3, centers=4, cluster_std=4.0, random_state=seed)
    keep = (y != 2) | (np.arange(n) % 3 == 0)
    X, y = X[keep], y[keep]
    return X, [np.flatnonzero(y == c) for c in range(4)], np.random.default_rng(seed).uniform(0.5, 2, len(y))


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=named)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_same_as_one_by_one(loss, n_threads):
    """β, thresholds and certificate of each pair, to tol."""
    X, members, factor = blobs()
    data, options = Data(Gaussian(0.1), X, len(X)), Options(tol=1e-6, n_threads=n_threads)
    assert many.can_solve(data, members, loss, options)
    solved = many.solve_many(data, members, CLASSES, loss, factor, options, Clock())
    K = Gaussian(0.1)(X)
    for (i, j), solution in zip(CLASSES, solved, strict=True):
        index = np.concatenate([members[i], members[j]])
        y = np.repeat([1.0, -1.0], [len(members[i]), len(members[j])])
        assert solution.status is Status.CONVERGED and solution.steps > 0
        np.testing.assert_allclose(solution.F, K[np.ix_(index, index)] @ solution.beta, atol=1e-12)
        proof = solution.certificate
        assert proof.valid and proof.kkt_violation <= 1e-6 and 0 <= proof.relative_gap < 1e-6
        qp = loss.box_qp(y, factor[index], True)
        assert np.all(solution.beta >= qp.lower) and np.all(solution.beta <= qp.upper)
        alone = loss.primal(solution.beta @ solution.F, y, solution.F, factor[index], solution.thresholds, qp.sums)
        assert proof.primal == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("params", [{}, {"class_weight": "balanced"}, {"C": 1e6}], ids=named)
def test_machines_agree(params, monkeypatch):
    """A fit on digits does not depend on which way its pairs went, beyond tol."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:500] / 16, y[:500]
    settings = {"C": 1.0, "gamma": 0.05, "tol": 1e-6, **params}
    together = SVC(**settings).fit(X, y)
    monkeypatch.setattr(pairs, "can_solve", lambda *_: False)
    apart = SVC(**settings).fit(X, y)
    np.testing.assert_allclose(together.decision_function(X), apart.decision_function(X), atol=1e-4)
    assert together.certificate_.dual == pytest.approx(apart.certificate_.dual, rel=1e-6)
    assert len(together.certificates_) == 45 and together.certificate_.kkt_violation <= 1e-6


def test_what_does_not_end_here_is_left_to_others(monkeypatch):
    """Pairs that need more steps than they are given are solved by the exact solver."""
    X, members, factor = blobs()
    monkeypatch.setattr(many, "STEPS_PER_VARIABLE", 0)
    data = Data(Gaussian(0.1), X, len(X))
    assert many.solve_many(data, members, CLASSES, Hinge(), factor, Options(), Clock()) == [None] * 6
    late = Clock(time_limit=0.0)
    assert many.solve_many(data, members, CLASSES, Hinge(), factor, Options(), late) == [None] * 6
    y = np.empty(len(X), int)
    for c, index in enumerate(members):
        y[index] = c
    model = SVC(gamma=0.1).fit(X, y)
    assert model.fit_status_ == 0 and model.certificate_.kkt_violation <= 1e-3


@pytest.mark.parametrize(
    ("loss", "options", "reason"),
    [
        (NuHinge(0.2), Options(), "sums that differ from pair to pair"),
        (HardMargin(), Options(), "a box without end"),
        (Hinge(), Options(max_iter=10), "a limit on all steps"),
        (Hinge(), Options(precision="float32"), "float32 asked for"),
        (Hinge(), Options(budget=1000), "no memory"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_not_for_everything(loss, options, reason):
    """What the compiled run cannot do is not given to it."""
    X, members, _ = blobs()
    assert not many.can_solve(Data(Gaussian(0.1), X, len(X)), members, loss, options), reason
