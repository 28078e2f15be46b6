"""RankSVC: compared with clarabel over all pairs, with SVC on differences, and by invariances."""

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import ndcg_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.utils.estimator_checks import check_estimator
from tests.reference.ordering import solve_primal

from mercer import InvalidInputError, LinearSVC, RankSVC, certify, grouped_ndcg_score, pairwise_score

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
Y = np.digitize(X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=40), [-1.0, 0.2, 1.0])
GROUPS = np.arange(40) % 3


def gaussian(A, B, gamma=0.3):
    return np.exp(-gamma * ((A[:, None] - B) ** 2).sum(axis=2))


def differences(y, groups):
    """The matrix whose rows are e_i − e_j for the pairs of a group with y_i > y_j."""
    n = len(y)
    pairs = [(i, j) for i in range(n) for j in range(n) if groups[i] == groups[j] and y[i] > y[j]]
    i, j = np.array(pairs).T
    return np.eye(n)[i] - np.eye(n)[j]


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["one group", "three groups"])
def test_is_the_optimum(groups):
    """Value and scores are those that clarabel finds over all pairs; the certificate brackets the optimum."""
    model = RankSVC(C=0.5, gamma=0.3, tol=1e-12).fit(X, Y, groups)
    A = differences(Y, np.zeros(40) if groups is None else groups)
    m = len(A)
    best = solve_primal(gaussian(X, X), A, np.zeros((m, 1)), np.ones(m), np.full(m, 0.5), power=2)
    proof = model.certificate_
    assert model.n_pairs_ == m
    assert proof.valid and proof.relative_gap < 1e-10
    assert proof.dual - 1e-6 <= best.value <= proof.primal + 1e-6
    np.testing.assert_allclose(model.predict(X), best.F, atol=1e-5)


def test_is_a_linear_machine_on_differences():
    """With a linear kernel it is the squared-hinge machine without intercept on the differences of pairs."""
    D = differences(Y, GROUPS) @ X
    signs = np.where(np.arange(len(D)) % 2 == 0, 1, -1)
    machine = LinearSVC(C=0.2, fit_intercept=False, tol=1e-10).fit(signs[:, None] * D, signs)
    model = RankSVC(C=0.2, kernel="linear", tol=1e-12).fit(X, Y, groups=GROUPS)
    np.testing.assert_allclose(model.coef_, machine.coef_, atol=1e-5)


def test_only_the_order_of_y_matters():
    """Increasing functions of y, constants per group, names of groups and the order of samples change nothing."""
    model = RankSVC(tol=1e-12).fit(X, Y, GROUPS)
    said = model.predict(X)
    other = np.random.default_rng(1).permutation(40)
    names = np.array(["b", "c", "a"])[GROUPS]
    for again in (
        RankSVC(tol=1e-12).fit(X, np.exp(Y) + 10.0 * GROUPS, names),
        RankSVC(tol=1e-12).fit(X[other], Y[other], GROUPS[other]),
    ):
        np.testing.assert_allclose(again.predict(X), said, atol=1e-5)
    upside_down = RankSVC(tol=1e-12).fit(X, -Y, GROUPS)
    np.testing.assert_allclose(upside_down.predict(X), -said, atol=1e-5)


def test_weights_are_repetitions():
    """A sample of weight 2 counts as two, one of weight 0 as none."""
    weight = np.array([0.0, 1.0, 2.0])[np.arange(40) % 3]
    many = np.repeat(np.arange(40), weight.astype(int))
    one = RankSVC(gamma=0.3, tol=1e-12).fit(X, Y, sample_weight=weight)
    two = RankSVC(gamma=0.3, tol=1e-12).fit(X[many], Y[many])
    np.testing.assert_allclose(one.predict(X), two.predict(X), atol=1e-5)


def test_score_and_certify():
    """The score is the share of pairs in order, and certify recomputes the certificate."""
    model = RankSVC().fit(X, Y, GROUPS)
    right = differences(Y, GROUPS) @ model.predict(X) > 0
    assert model.score(X, Y, groups=GROUPS) == pytest.approx(right.mean())
    again = certify(model, X, Y)
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert again.dual == pytest.approx(model.certificate_.dual, rel=1e-9)
    assert again.valid


def test_searches_use_the_score():
    """A grid search chooses by the concordance."""
    search = GridSearchCV(RankSVC(), {"C": [1e-6, 1.0]}, cv=3).fit(X, Y)
    assert 0.5 < search.best_score_ < 1.0


@pytest.mark.parametrize(
    ("y", "groups", "message"),
    [
        (np.ones(40), None, r"No two of the 40 sample\(s\) with a positive weight can be ordered"),
        (Y, Y, r"No two of the 40 sample\(s\) with a positive weight can be ordered"),
        (Y, GROUPS[:5], r"groups has the shape \(5,\), but X has 40 samples"),
        (Y, np.where(GROUPS == 1, np.nan, 0.0), "groups contains NaN or infinity"),
        (np.where(Y == 1, np.nan, Y), None, "contains NaN"),
        (["a"] * 40, None, "could not convert|Unknown label|numeric"),
    ],
)
def test_bad_input(y, groups, message):
    """No pairs, groups of another length and missing numbers are named."""
    with pytest.raises(ValueError, match=message):
        RankSVC().fit(X, y, groups=groups)


def test_too_large_a_matrix():
    """A kernel matrix beyond cache_size is refused before it is computed."""
    with pytest.raises(ValueError, match=r"The kernel matrix of 2,000 samples takes .* but cache_size allows"):
        RankSVC(cache_size=1).fit(np.arange(2000.0)[:, None], np.arange(2000))


def test_limits():
    """A run that max_iter or the clock ends is a ranking with a valid certificate and a warning."""
    for limit in ({"max_iter": 1}, {"time_limit": 0.0}):
        with pytest.warns(ConvergenceWarning, match="terminated early"):
            model = RankSVC(**limit).fit(X, Y)
        assert model.certificate_.valid and model.certificate_.gap > 0


def test_warm_start():
    """A second fit to the same data starts at the optimum."""
    model = RankSVC(warm_start=True).fit(X, Y)
    assert model.fit(X, Y).n_iter_ <= 1


@pytest.mark.filterwarnings("ignore")
def test_conformance():
    """Every check of scikit-learn passes, except those of weights, where two fits stop at tol."""
    reason = "both fits stop at tol, but at different points"
    expected = {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    results = check_estimator(RankSVC(), expected_failed_checks=expected, on_fail=None, on_skip=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}


def test_scores_of_rankings():
    """Of two values the pairwise score is the area under the ROC curve; NDCG is the mean of scikit-learn's."""
    scores, relevant = X[:, 0].round(1), (Y > 1).astype(int)
    assert pairwise_score(relevant, scores) == pytest.approx(roc_auc_score(relevant, scores))
    alone = [ndcg_score([Y[g == GROUPS]], [scores[g == GROUPS]], k=5) for g in range(3)]
    assert grouped_ndcg_score(Y, scores, GROUPS, k=5) == pytest.approx(np.mean(alone))
    lonely = np.append(GROUPS, [7, 8, 8])
    again = grouped_ndcg_score(np.append(Y, [1, 0, 0]), np.append(scores, [0.0] * 3), lonely, k=5)
    assert again == pytest.approx(np.mean(alone))


@pytest.mark.parametrize(
    ("score", "y", "message"),
    [
        (pairwise_score, np.ones(40), "one value only"),
        (pairwise_score, np.ones(3), "y_true has 3 values, but y_score has 40"),
        (pairwise_score, np.full(40, np.nan), "Input y contains NaN"),
        (grouped_ndcg_score, -np.ones(40), "the gain of a sample must be at least 0"),
        (grouped_ndcg_score, np.zeros(40), "No group has two samples and a positive y_true"),
    ],
)
def test_bad_scores(score, y, message):
    """Values without pairs, of other lengths, missing or negative are named."""
    with pytest.raises(ValueError, match=message):
        score(y, X[:, 0])


def test_groups_of_mixed_types():
    """None among numbers is refused: groups are compared."""
    groups = np.array([0.0, 1.0, None, 1.0], dtype=object)
    with pytest.raises(InvalidInputError, match=r"groups mixes labels that cannot be compared \(NoneType, float\)"):
        RankSVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 3], groups=groups)


def test_groups_in_a_search():
    """With metadata routing a search compares samples of one group only; without it all of them."""
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(40, 2)), np.arange(40) % 8
    y = np.round(2 * X[:, 0])
    expected, all_pairs = (RankSVC().fit(X, y, groups=g).n_pairs_ for g in (groups, None))
    plain = GridSearchCV(RankSVC(), {"C": [0.1]}, cv=GroupKFold(2)).fit(X, y, groups=groups)
    assert plain.best_estimator_.n_pairs_ == all_pairs > expected
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = RankSVC().set_fit_request(groups=True).set_score_request(groups=True)
        routed = GridSearchCV(ranker, {"C": [0.1]}, cv=GroupKFold(2)).fit(X, y, groups=groups)
    assert routed.best_estimator_.n_pairs_ == expected
