"""Machines that are solved one after the other are those that are solved alone."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.model_selection import KFold, StratifiedKFold
from tests.clocks import SteppedClock
from tests.naming import named

from mercer import SVC, SVCCV, SVR, SVRCV, NuSVC, NuSVCCV
from mercer.gram.operator import Data
from mercer.kernels import Gaussian
from mercer.losses import EpsilonInsensitive, Hinge, NuHinge, SquaredHinge
from mercer.problems.clock import Clock
from mercer.problems.solution import Options
from mercer.selection import chains

TOL = 1e-6
CLASSES = make_classification(90, 4, flip_y=0.2, random_state=0)
TARGETS = make_regression(80, 3, noise=10.0, random_state=0)


@pytest.mark.parametrize(
    ("search", "machine", "data"),
    [
        (SVCCV(Cs=[0.01, 0.5, 1.0, 300.0]), SVC(), CLASSES),
        (SVCCV(Cs=[0.1, 5.0], fit_intercept=False), SVC(fit_intercept=False), CLASSES),
        (SVCCV(Cs=[0.1, 5.0], loss="squared_hinge"), SVC(loss="squared_hinge"), CLASSES),
        (SVCCV(Cs=[0.1, 5.0], class_weight={0: 1.0, 1: 7.0}), SVC(class_weight={0: 1.0, 1: 7.0}), CLASSES),
        (NuSVCCV(nus=[0.2, 0.4]), NuSVC(), CLASSES),
        (SVRCV(Cs=[1.0, 50.0], epsilons=[0.1, 5.0]), SVR(), TARGETS),
    ],
    ids=named,
)
def test_a_chain_ends_where_single_fits_end(search, machine, data):
    """Held-out values of the best machine are those of single fits, for every loss."""
    X, y = data
    splitter = KFold(3) if isinstance(search, SVRCV) else StratifiedKFold(3)
    search.set_params(gammas=[0.3], cv=splitter, tol=TOL, precision="float64", refit=False).fit(X, y)
    machine.set_params(tol=TOL, **search.best_params_)
    for train, test in splitter.split(X, y):
        machine.fit(X[train], y[train])
        expected = machine.predict(X[test]) if isinstance(search, SVRCV) else machine.decision_function(X[test])
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(search.cv_decision_function_[test, 0], expected, atol=1e-3 * scale)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), EpsilonInsensitive(0.1), NuHinge(0.3)], ids=named)
@pytest.mark.parametrize("intercept", [True, False])
def test_small_working_sets(loss, intercept):
    """Held-out values do not depend on the size of the working set."""
    if isinstance(loss, NuHinge) and not intercept:
        return
    X, classes = CLASSES
    y = X[:, 0] if isinstance(loss, EpsilonInsensitive) else 2.0 * classes - 1.0
    train, test = np.arange(60), np.arange(60, 90)
    ranges = np.array([[0, 60]]), np.array([[60, 90]])
    problem = chains.Problem(train, y[train], np.ones(60), *ranges, test, intercept)
    chain = chains.Chain.of(problem, [chains.Setting(loss, C) for C in (0.1, 2.0, 30.0)])
    data = Data(Gaussian(0.3), X, len(X))
    K, options = data.matrix(np.float64, 1), Options(tol=TOL)
    small, whole = (chain.run(K, data, replace(options, working_set=size), Clock()) for size in (12, 0))
    np.testing.assert_allclose(small, whole, atol=1e-3 * np.abs(whole).max())


def test_every_setting_of_a_chain_is_solved():
    """Scores along C are those of chains of one C each: starts from the solution before change nothing."""
    X, y = make_classification(120, 5, flip_y=0.1, random_state=3)
    Cs = np.logspace(-3, 4, 9)
    together = SVCCV(Cs=Cs, gammas=[0.1], tol=TOL, precision="float64", refit=False).fit(X, y)
    alone = [SVCCV(Cs=[C], gammas=[0.1], tol=TOL, precision="float64", refit=False).fit(X, y) for C in Cs]
    np.testing.assert_allclose(
        together.cv_results_["mean_test_score"], [one.best_score_ for one in alone], atol=1.01 / len(y)
    )


def test_a_time_limit_changes_no_value():
    """With a limit the clock is read more often; problems that are solved in time have the same values."""
    X, y = make_regression(150, 3, noise=10.0, random_state=1)
    search = SVRCV(Cs=[1.0, 100.0], epsilons=[0.5], gammas=[0.3], tol=TOL, precision="float64", refit=False)
    whole, limited = (clone(search).set_params(time_limit=limit).fit(X, y) for limit in (None, 600.0))
    scale = float(np.abs(y).max())
    np.testing.assert_allclose(limited.cv_decision_function_, whole.cv_decision_function_, atol=1e-3 * scale)


@pytest.mark.parametrize(
    ("left", "rounds", "seconds", "expected"),
    [(np.inf, 30, 9.0, 30), (1e9, 1, 0.01, 2), (1e9, 16, 0.01, 30), (2.0, 12, 0.1, 2), (0.1, 12, 0.1, 1)],
)
def test_rounds_between_two_looks_at_the_clock(left, rounds, seconds, expected):
    """All rounds without a limit; with one at most twice as many as before, and a tenth of the remaining time."""
    run = chains._Run.__new__(chains._Run)
    run.clock = SteppedClock(left)
    assert run._rounds_in_time(rounds, seconds, 30) == expected
