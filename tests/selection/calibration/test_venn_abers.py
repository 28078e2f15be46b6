"""Venn–Abers intervals."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression
from scipy.special import expit

from mercer.selection.calibration.venn_abers import venn_abers


def by_regression(values, labels, weight, score):
    """The definition: one isotonic regression for each label of the new sample."""
    _, place = np.unique(np.r_[values, score], return_inverse=True)
    total = np.bincount(place, np.r_[weight, 1.0])
    ends = []
    for label in (0.0, 1.0):
        share = np.bincount(place, np.r_[weight * labels, label]) / total
        ends.append(isotonic_regression(share, weights=total).x[place[-1]])
    return ends


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5, 60])
def test_two_regressions(n, ties, weighted):
    """Each end is the isotonic regression with the new sample added."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=n)
        if ties:
            values = np.round(2 * values) / 2
        labels = rng.uniform(size=n) < expit(2 * values)
        weight = rng.uniform(0.1, 3.0, size=n) if weighted else np.ones(n)
        new = np.r_[values, rng.normal(size=20), -9.0, 9.0]
        expected = [by_regression(values, labels, weight, score) for score in new]
        found = venn_abers(values, labels, weight).interval(new)
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_zero_weights():
    """Samples without weight are not there."""
    values, labels = np.array([0.0, 1.0, 2.0, 3.0]), np.array([False, True, False, True])
    weight = np.array([1.0, 0.0, 1.0, 1.0])
    new, used = np.linspace(-1, 4, 11), weight > 0
    np.testing.assert_array_equal(
        venn_abers(values, labels, weight).interval(new), venn_abers(values[used], labels[used]).interval(new)
    )


def test_calibrated():
    """Intervals bracket the true probability on average, and are narrower with more samples."""
    rng = np.random.default_rng(0)
    widths = []
    for n in (200, 5000):
        values = rng.normal(size=n)
        predictor = venn_abers(values, rng.uniform(size=n) < expit(2 * values))
        new = rng.normal(size=4000)
        low, high = predictor.interval(new).T
        assert (low <= high).all()
        merged = predictor(new)
        assert ((low <= merged) & (merged <= high)).all()
        happened = rng.uniform(size=4000) < expit(2 * new)
        for start in (0.0, 0.25, 0.5, 0.75):
            inside = (merged >= start) & (merged < start + 0.25)
            noise = 3 * 0.5 / np.sqrt(inside.sum()) + 3 * 0.5 / np.sqrt(n / 4)
            assert low[inside].mean() - noise < happened[inside].mean() < high[inside].mean() + noise
        widths.append((high - low).mean())
    assert widths[1] < 0.3 * widths[0]
