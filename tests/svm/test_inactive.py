"""Inactive samples: F is reconstructed where a sample may violate, and no violator is missed."""

import numpy as np
import pytest
from tests.naming import named

from mercer import SVC, certify
from mercer.gram.operator import GramOperator
from mercer.kernels import Gaussian, Linear, Sigmoid
from mercer.losses import EpsilonInsensitive, Hinge
from mercer.losses.classification import classification_loss
from mercer.problems.clock import Clock
from mercer.problems.dual import rates
from mercer.problems.solution import Options, Status
from mercer.svm.decomposition import Decomposition, Inactive
from mercer.svm.plan import Plan

N, LEVEL = 300, np.array([0.1])


def state(kernel, loss, seed=0):
    """Samples that became inactive at a check, an active part that moves a little after it, and both β."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(N, 3)), np.where(np.arange(N) % 2, 1.0, -1.0)
    gram, qp = GramOperator(kernel, kernel.prepare(X, np.float64)), loss.box_qp(y, np.ones(N), True)
    active, first, second = np.arange(40), np.zeros(N), np.zeros(N)
    first[:40] = 0.5 * y[:40]
    second[:40] = first[:40] + 0.02 * rng.normal(size=40)
    K = kernel(X)
    inactive = Inactive(gram, qp, Options(), float(np.diagonal(K).max()))
    inactive.add_after_check(active, first, K @ first)
    return inactive, qp, K, first, second


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(1.0)], ids=named)
@pytest.mark.parametrize("kernel", [Gaussian(0.3), Linear()], ids=named)
def test_samples_that_are_skipped_cannot_violate(kernel, loss):
    """F of all others is right; that of skipped samples is off by less than their distance from violating."""
    inactive, qp, K, first, second = state(kernel, loss)
    F, exact = K @ first, K @ second
    F[:40] = exact[:40]  # F of active samples is up to date
    inactive.reconstruct_near(second, second, F, LEVEL, LEVEL)
    stay = np.concatenate([group.rows for group in inactive.groups]).astype(int)
    assert 0 < len(stay) < N - 40
    others = np.setdiff1d(np.arange(N), stay)
    np.testing.assert_allclose(F[others], exact[others], atol=1e-3)
    assert np.abs(F - exact)[stay].max() > 1e-3
    up, low = rates(qp, second, exact)
    assert np.all(up[stay] < LEVEL[0] - 1e-3) and np.all(low[stay] > LEVEL[0] + 1e-3)
    # the moves of w between three checks are added up
    inactive.add_after_check(np.arange(40), second, F)
    F_before, third = F.copy(), second + 0.5 * (second - first)
    F[:40] = (K @ third)[:40]
    inactive.reconstruct_near(third, third, F, LEVEL, LEVEL)
    again = inactive.groups[0].rows
    assert set(again) <= set(stay) and inactive.groups[0].moved > 0
    np.testing.assert_array_equal(F[again], F_before[again])
    up, low = rates(qp, third, K @ third)
    assert np.all(up[again] < LEVEL[0]) and np.all(low[again] > LEVEL[0])


@pytest.mark.parametrize("anew", [False, True])
def test_all_can_be_reconstructed(anew):
    """Whatever was skipped before; with ``anew`` even if F was changed from outside."""
    inactive, _, K, first, second = state(Gaussian(0.3), Hinge())
    inactive.add(np.arange(5), first)
    F = K @ first
    F[:40] = (K @ second)[:40]
    F[:5] = (K @ first)[:5]
    if anew:
        F[50:60] = 77.0
    inactive.reconstruct(second, F, anew)
    np.testing.assert_allclose(F, K @ second, atol=1e-3)
    assert inactive.groups == []


def test_nothing_is_skipped_without_a_norm():
    """An indefinite kernel has no w that could bound anything."""
    inactive, _, K, first, second = state(Sigmoid(gamma=0.5, coef0=-1.0), Hinge())
    F = K @ first
    F[:40] = (K @ second)[:40]
    inactive.reconstruct_near(second, second, F, LEVEL, LEVEL)
    np.testing.assert_allclose(F, K @ second, atol=1e-3)
    assert inactive.groups == []


@pytest.mark.parametrize("params", [{}, {"C": 100.0}, {"loss": "squared_hinge"}, {"tol": 1e-5}], ids=named)
def test_fits_with_inactive_samples_are_optimal(params):
    """A fit that starts on a part of the samples is optimal on all of them, though F of some is never recomputed."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 2))
    y = (X[:, 0] + 0.4 * np.sin(3 * X[:, 1]) + 0.1 * rng.normal(size=4000)) > 0
    model = SVC(gamma=1.0, **params)
    model._plan = Plan(storage="rows", working_set=660, shrinking=True, first_samples=250, keeps_active=False)
    model.fit(X, y)
    tol = params.get("tol", 1e-3)
    assert model.fit_status_ == 0 and certify(model, X, y).kkt_violation <= tol
    kernel, loss, options = Gaussian(1.0), classification_loss(model), Options(tol=tol)
    qp = loss.box_qp(np.where(y, 1.0, -1.0), np.full(4000, model.C), True)
    gram = GramOperator(kernel, kernel.prepare(X, np.float32))
    run = Decomposition(gram, qp, np.zeros(4000), np.zeros(4000), model._plan, options, Clock())
    assert run.run(0.9 * tol) is Status.CONVERGED
    assert sum(len(group.rows) for group in run._inactive.groups) > 0  # skipped by the last check
