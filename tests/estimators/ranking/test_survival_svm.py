"""SurvivalSVM: compared with clarabel over all comparable pairs, and with a slow concordance index."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator
from tests.reference.ordering import solve_primal

from mercer import RankSVC, SurvivalSVM, certify

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
TIME = np.exp(X[:, 0] + 0.5 * np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=40)).round(1) + 0.1  # with ties
OBSERVED = rng.random(40) < 0.6
Y = np.array(list(zip(OBSERVED, TIME, strict=True)), dtype=[("event", bool), ("time", float)])


def gaussian(A, B, gamma=0.3):
    return np.exp(-gamma * ((A[:, None] - B) ** 2).sum(axis=2))


def comparable(time, observed):
    """(i, j): j had its event, and i has survived longer."""
    n = range(len(time))
    return [
        (i, j) for i in n for j in n if observed[j] and (time[i] > time[j] or (time[i] == time[j] and not observed[i]))
    ]


@pytest.mark.parametrize(("ratio", "intercept"), [(1.0, False), (0.4, False), (0.4, True), (0.0, True)])
def test_is_the_optimum(ratio, intercept):
    """Value and predictions are those that clarabel finds; the certificate brackets the optimum."""
    model = SurvivalSVM(2.0, rank_ratio=ratio, fit_intercept=intercept, gamma=0.3, tol=1e-12).fit(X, Y)
    i, j = np.array(comparable(TIME, OBSERVED)).T
    eye = np.eye(40)
    # ranking, then log t − f − b from below, then from above for observed times
    A = np.vstack([eye[i] - eye[j], eye, -eye[OBSERVED]])
    m, k = len(i), int(OBSERVED.sum())
    T = np.concatenate([np.zeros(m), np.ones(40), -np.ones(k)])[:, None] * float(intercept)
    margin = np.concatenate([np.ones(m), np.log(TIME), -np.log(TIME[OBSERVED])])
    weight = np.concatenate([np.full(m, ratio), np.full(40 + k, 1.0 - ratio)])
    best = solve_primal(gaussian(X, X), A, T, margin, weight, power=2)
    proof = model.certificate_
    assert model.n_pairs_ == m
    assert proof.valid and proof.relative_gap < 1e-10
    assert proof.dual - 1e-6 <= best.value <= proof.primal + 1e-6
    f = -model.predict(X) if ratio == 1 else np.log(model.predict(X))
    np.testing.assert_allclose(f, best.F + intercept * best.thresholds[0], atol=1e-4)


def test_without_censoring_it_is_a_ranking():
    """Observed times are the targets of RankSVC with C = alpha/2, and a single column of times says the same."""
    ranking = RankSVC(C=1.0, tol=1e-12).fit(X, TIME)
    for y in (TIME, np.column_stack([np.ones(40), TIME])):
        np.testing.assert_allclose(SurvivalSVM(2.0, tol=1e-12).fit(X, y).predict(X), -ranking.predict(X), atol=1e-6)


def test_score_is_the_concordance_index():
    """The score counts comparable pairs; structured arrays and two columns are the same outcome."""
    for ratio in (1.0, 0.5):
        model = SurvivalSVM(rank_ratio=ratio).fit(X, Y)
        survived = model.predict(X) if ratio < 1 else -model.predict(X)
        right = np.mean([survived[i] > survived[j] for i, j in comparable(TIME, OBSERVED)])
        assert model.score(X, Y) == pytest.approx(right)
        columns = np.column_stack([OBSERVED, TIME])
        np.testing.assert_array_equal(SurvivalSVM(rank_ratio=ratio).fit(X, columns).predict(X), model.predict(X))


@pytest.mark.parametrize("intercept", [False, True])
def test_certify(intercept):
    """certify recomputes the certificate from the coefficients."""
    weight = np.linspace(0.0, 2.0, 40)
    model = SurvivalSVM(rank_ratio=0.5, fit_intercept=intercept).fit(X, Y, weight)
    again = certify(model, X, Y, weight)
    assert again.valid
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert again.dual == pytest.approx(model.certificate_.dual, rel=1e-9)


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        (
            {},
            np.column_stack([np.zeros(40), TIME]),
            r"No two of the 40 sample\(s\) with a positive weight have a known order of survival: at least one "
            r"observed event must be earlier than another time: add samples with later times, or check which events "
            r"are marked as observed\.$",
        ),
        ({}, np.column_stack([OBSERVED, TIME, TIME]), r"y has the shape \(40, 3\), but y must be a structured array"),
        (
            {},
            np.column_stack([OBSERVED + 1.0, TIME]),
            "The event of a sample is 2, but it must be 0 or False, 1 or True",
        ),
        (
            {"rank_ratio": 0.5},
            TIME - 1.0,
            "A time of .* was found, but the regression of rank_ratio=0.5 needs positive",
        ),
        ({"fit_intercept": True}, Y, "fit_intercept=True was given with rank_ratio=1"),
        ({"rank_ratio": 2.0}, Y, "The 'rank_ratio' parameter of SurvivalSVM"),
        ({}, np.where(OBSERVED, TIME, np.nan), "contains NaN"),
        ({}, TIME + 1j, "Complex data not supported: y has complex numbers"),
        ({}, None, "requires y to be passed"),
        ({}, Y[:5], "inconsistent numbers of samples"),
    ],
)
def test_bad_input(parameters, y, message):
    """No comparable pairs, wrong shapes, unknown events and times without a logarithm are named."""
    with pytest.raises(ValueError, match=message):
        SurvivalSVM(**parameters).fit(X, y)


def test_limits():
    """A run that max_iter or the clock ends is a machine with a valid certificate and a warning."""
    for limit in ({"max_iter": 1}, {"time_limit": 0.0}):
        with pytest.warns(ConvergenceWarning, match="terminated early"):
            model = SurvivalSVM(rank_ratio=0.5, fit_intercept=True, **limit).fit(X, Y)
        assert model.certificate_.valid and model.certificate_.gap > 0


@pytest.mark.filterwarnings("ignore")
def test_conformance():
    """Every check of scikit-learn passes, except those of weights, where two fits stop at tol."""
    reason = "both fits stop at tol, but at different points"
    expected = {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    results = check_estimator(SurvivalSVM(), expected_failed_checks=expected, on_fail=None, on_skip=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}
