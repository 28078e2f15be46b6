"""Conformal sets and intervals: coverage that could fail on either side."""

import numpy as np
import pytest

from mercer.exceptions import InvalidInputError
from mercer.selection.calibration.class_probabilities import Scheme
from mercer.selection.calibration.conformal import conformal_intervals, conformal_sets

# repetitions: the standard error of the mean coverage is below 0.002
TIMES = 4000


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.25])
@pytest.mark.parametrize("m", [19, 40])
@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "two-sided"])
def test_exact_coverage_of_intervals(symmetric, m, alpha):
    """Over many draws a new value is inside with probability ⌈(1−α)(m+1)⌉/(m+1), no less and no more."""
    rng = np.random.default_rng(0)
    residuals = rng.exponential(size=(TIMES, m + 1)) - 1.0  # skewed
    inside = 0
    for row in residuals:
        low, high = conformal_intervals(np.zeros(m), row[:m]).interval(np.zeros(1), alpha, symmetric)[0]
        inside += low <= row[m] <= high
    if symmetric:
        expected = np.ceil((1 - alpha) * (m + 1) - 1e-9) / (m + 1)
    else:
        expected = 2 * np.minimum(np.ceil((1 - alpha / 2) * (m + 1) - 1e-9), m + 1) / (m + 1) - 1
    error = np.sqrt(max(expected * (1 - expected), 1e-9) / TIMES)
    assert expected >= 1 - alpha - 1e-12
    assert abs(inside / TIMES - expected) < 4 * error + 1e-9


@pytest.mark.parametrize("mondrian", [False, True])
@pytest.mark.parametrize("alpha", [0.1, 0.3])
def test_exact_coverage_of_sets(alpha, mondrian):
    """The true label is missed with probability ⌊α(m+1)⌋/(m+1); by class, if asked for, also for the rare one."""
    rng = np.random.default_rng(0)
    m = 59
    missed, seen = np.zeros(2), np.zeros(2)
    expected = np.zeros(2)
    for _ in range(TIMES):
        codes = (rng.uniform(size=m + 1) < 0.2).astype(np.intp)
        f = rng.normal(size=m + 1) + np.where(codes == 1, 0.5, -1.5)  # the rare class is the harder one
        scores = Scheme.PAIRS.margins(f[:, None], 2)
        known = conformal_sets(scores[:m], codes[:m])
        kept = known.sets(scores[m:], alpha, mondrian)[0]
        c = codes[m]
        places = (np.count_nonzero(codes[:m] == c) if mondrian else m) + 1
        expected[c] += np.floor(alpha * places + 1e-9) / places
        missed[c] += not kept[c]
        seen[c] += 1
    if mondrian:
        assert (np.abs(missed - expected) < 4 * np.sqrt(expected)).all()
    else:
        assert abs(missed.sum() - expected.sum()) < 4 * np.sqrt(expected.sum())
        assert missed[1] / seen[1] > alpha > missed[0] / seen[0]  # which is why mondrian exists


def test_sets_are_nested():
    """A larger alpha never adds a label, and a label is in the set where its p-value is above alpha."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(50, 3))
    known = conformal_sets(scores, rng.integers(0, 3, size=50))
    p = known.p_values(scores)
    previous = np.ones((50, 3), bool)
    for alpha in (0.01, 0.1, 0.5, 0.9):
        kept = known.sets(scores, alpha)
        np.testing.assert_array_equal(kept, p > alpha)
        assert not (kept & ~previous).any()
        previous = kept


def test_p_values_on_paper():
    """(1 + held-out scores that are no larger) / (m + 1), among all samples or those of the class."""
    known = conformal_sets(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]]), np.array([0, 0, 1]))
    scores = np.array([[0.0, 2.5], [2.0, 9.0]])
    np.testing.assert_allclose(known.p_values(scores), [[1 / 4, 3 / 4], [3 / 4, 4 / 4]], rtol=1e-15)
    np.testing.assert_allclose(known.p_values(scores, mondrian=True), [[1 / 3, 1 / 2], [3 / 3, 2 / 2]], rtol=1e-15)


def test_too_few_samples():
    """Where nothing can be said, everything is possible."""
    known = conformal_intervals(np.zeros(5), np.arange(5.0))
    assert np.isinf(known.interval(np.zeros(2), 0.1)).all()
    assert np.isfinite(known.interval(np.zeros(2), 0.4)).all()
    none = conformal_sets(np.empty((0, 3)), np.empty(0, np.intp))
    assert none.sets(np.zeros((2, 3)), 0.2).all()
    # a class without held-out samples is never excluded by its own
    rare = conformal_sets(np.ones((10, 2)), np.zeros(10, np.intp))
    assert rare.sets(np.array([[-5.0, -5.0]]), 0.2, mondrian=True)[0].tolist() == [False, True]


def test_values_that_were_never_made():
    """NaN is left out."""
    assert conformal_intervals(np.array([0.0, np.nan, 1.0]), np.ones(3)).n == 2
    assert conformal_sets(np.array([[np.nan, 1.0], [0.0, 1.0]]), np.array([0, 1])).n == 1


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, float("nan"), "0.1"])
def test_alpha(alpha):
    """alpha is a share."""
    with pytest.raises(
        InvalidInputError, match=r"alpha=.* was given: it is the fraction of samples that may be missed"
    ):
        conformal_intervals(np.zeros(9), np.ones(9)).interval(np.zeros(1), alpha)
    with pytest.raises(InvalidInputError, match=r"alpha="):
        conformal_sets(np.zeros((3, 2)), np.zeros(3, np.intp)).sets(np.zeros((1, 2)), alpha)


def test_margins():
    """A class is as far ahead as it is of the class that is hardest to beat."""
    values = np.array([[2.0, -1.0, 3.0]])  # 0 beats 1 by 2, 2 beats 0 by 1, 1 beats 2 by 3
    np.testing.assert_array_equal(Scheme.PAIRS.margins(values, 3), [[-1.0, -2.0, -3.0]])
    np.testing.assert_array_equal(Scheme.REST.margins(values, 3), [[-1.0, -4.0, 1.0]])
    np.testing.assert_array_equal(Scheme.PAIRS.margins(values[:, :1], 2), [[-2.0, 2.0]])
    assert [scheme.columns(k) for scheme in Scheme for k in (2, 3, 4)] == [1, 3, 6, 1, 3, 4]
