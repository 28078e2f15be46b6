"""Intervals of scores from held-out rows, and the score of the best candidate without its luck."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import r2_score, roc_auc_score

from mercer.selection.score_intervals import (
    Accuracy,
    Determination,
    corrected,
    corrected_by_sums,
    percentiles,
    resampled,
    resampled_determination,
    wilson,
)


@pytest.mark.parametrize(("right", "n"), [(0, 10), (10, 10), (7, 10), (145, 150), (5, 5)])
def test_wilson_is_scipys(right, n):
    """The interval of an accuracy is scipy's Wilson interval: within 0 and 1, not empty if all answers are right."""
    expected = stats.binomtest(right, n).proportion_ci(0.95, method="wilson")
    found = wilson(right / n, n)
    assert found.ends == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0.0 <= found.low < found.high <= 1.0
    assert found.method == f"Wilson's interval, {n} held-out rows"


def test_resamples_of_r2_are_sklearns():
    """R² of drawn rows from sums is r2_score of these rows, one resample after the other."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=40)
    predicted = y + 0.5 * rng.normal(size=40)
    slow = resampled(lambda rows: r2_score(y[rows], predicted[rows]), 40)
    np.testing.assert_allclose(resampled_determination(y, predicted)[: len(slow)], slow)
    found = percentiles(slow, 40)
    assert found.low < r2_score(y, predicted) < found.high <= 1.0
    assert found.method == "bootstrap over 40 held-out rows"


def test_no_interval_where_nothing_varies():
    """A score that is the same on all resamples, or hardly ever defined, has no interval, and the reason is given."""
    same = percentiles(np.ones(200), 30)
    assert np.isnan(same.ends).all() and "score the same" in same.method
    undefined = percentiles(np.r_[np.full(150, np.nan), np.linspace(0, 1, 50)], 30)
    assert np.isnan(undefined.ends).all() and "not defined" in undefined.method


def test_rows_that_do_not_define_a_score_are_left_out():
    """A resample with a single class has no area under the curve: the others make the interval."""
    y, values = np.array([0, 0, 0, 0, 1, 0]), np.arange(6.0)
    found = resampled(lambda rows: roc_auc_score(y[rows], values[rows]), 6)
    assert np.isnan(found).any() and np.isfinite(found).any()


def test_the_luck_of_the_best_is_taken_out():
    """Of 40 candidates that guess, the best is above chance; chosen again and scored elsewhere it is at chance."""
    best, honest = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        right = rng.random((100, 40)) < 0.5
        best.append(right.mean(axis=0).max())
        honest.append(corrected_by_sums(Accuracy(right), 100))
    assert np.mean(best) > 0.59
    assert np.mean(honest) == pytest.approx(0.5, abs=0.02)


def test_one_candidate_needs_no_correction():
    """Without a choice there is no luck: the corrected score is the score, up to the noise of the resamples."""
    rng = np.random.default_rng(0)
    right = rng.random((200, 1)) < 0.8
    assert corrected_by_sums(Accuracy(right), 200) == pytest.approx(right.mean(), abs=2e-3)
    y = rng.normal(size=200)
    predicted = y + 0.3 * rng.normal(size=200)
    found = corrected_by_sums(Determination(y, predicted[:, None]), 200)
    assert found == pytest.approx(r2_score(y, predicted), abs=5e-3)


def test_any_score_is_corrected_as_sums_are():
    """The general way gives what the way by sums gives, but for its fewer resamples."""
    rng = np.random.default_rng(3)
    right = rng.random((80, 8)) < 0.5
    order = np.argsort(-right.mean(axis=0))
    general = corrected([lambda rows, k=k: right[rows, k].mean() for k in order], 80)
    assert general == pytest.approx(corrected_by_sums(Accuracy(right), 80), abs=0.01)
