"""Candidates that cannot become best are given up, and the choice stays the same."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.metrics import get_scorer_names, make_scorer
from tests.naming import named

from mercer import SVCCV, SVRCV, InvalidInputError, NuSVCCV
from mercer.selection.search.candidates import Candidate, Prune
from mercer.selection.search.scoring import highest_score

CS, GAMMAS = np.logspace(-2, 3, 5), np.logspace(-3, 2, 6)


def candidate(scores, n_folds=5):
    found = np.full(n_folds, np.nan)
    found[: len(scores)] = scores
    seconds = np.where(np.isnan(found), -1.0, 0.1)
    return Candidate(0, {}, found, seconds, seconds.copy())


@pytest.mark.parametrize(
    ("scores", "best", "hopeless"),
    [
        ([0.2], [0.9] * 5, True),  # (0.2 + 4) / 5 = 0.84
        ([0.6], [0.9] * 5, False),  # 0.92
        ([0.5], [0.9] * 5, False),  # 0.9: it may be equal
        ([0.6, 0.6], [0.9] * 5, True),  # 0.84
        ([0.1] * 5, [0.9] * 5, False),  # nothing is left to save
        ([np.nan], [0.9] * 5, False),
    ],
    ids=named,
)
def test_the_bound_counts_folds_to_come_as_perfect(scores, best, hopeless):
    """A candidate is given up if and only if perfect scores in all other folds would leave it behind."""
    assert Prune("bound", 1.0).is_hopeless(candidate(scores), candidate(best)) is hopeless


def test_the_bound_holds_for_negative_scores():
    """Errors are scores below zero, and none is above zero."""
    rule = Prune("bound", 0.0)
    assert rule.is_hopeless(candidate([-6.0]), candidate([-1.0] * 5))
    assert not rule.is_hopeless(candidate([-5.0]), candidate([-1.0] * 5))


@pytest.mark.parametrize(
    ("scores", "hopeless"),
    [([0.1], False), ([0.7, 0.71], True), ([0.89, 0.2], False), ([0.95, 0.95, 0.95], False), ([0.9, 0.9], False)],
    ids=named,
)
def test_a_race_asks_for_a_difference_beyond_chance(scores, hopeless):
    """One fold proves nothing; differences that scatter as much as they are large prove nothing either."""
    assert Prune("race").is_hopeless(candidate(scores), candidate([0.9, 0.9, 0.9, 0.9, 0.9])) is hopeless


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scoring", [None, "roc_auc"], ids=named)
def test_the_bound_does_not_change_the_choice(seed, scoring):
    """Best candidate, its score and its held-out values are those of the whole grid; what was tried has its score."""
    X, y = make_classification(150, 5, flip_y=0.02, class_sep=2.0, random_state=seed)
    whole = SVCCV(Cs=CS, gammas=GAMMAS, scoring=scoring, refit=False).fit(X, y)
    model = SVCCV(Cs=CS, gammas=GAMMAS, scoring=scoring, prune="bound", refit=False).fit(X, y)
    assert model.best_index_ == whole.best_index_
    assert model.best_score_ == whole.best_score_
    np.testing.assert_array_equal(model.cv_decision_function_, whole.cv_decision_function_)
    results = model.cv_results_
    tried = results["status"] == "tried"
    assert 0 < tried.sum() < len(tried)
    assert set(results["status"]) == {"tried", "given up"}
    np.testing.assert_array_equal(np.isnan(results["mean_test_score"]), ~tried)
    assert results["rank_test_score"][~tried].min() == tried.sum() + 1
    assert np.isfinite(results["split0_test_score"]).all()
    np.testing.assert_array_equal(results["mean_test_score"][tried], whole.cv_results_["mean_test_score"][tried])
    # the whole grid agrees that each of them stays behind
    assert whole.cv_results_["mean_test_score"][~tried].max() < whole.best_score_


def test_pruning_does_not_depend_on_threads():
    """The same candidates are given up for any number of threads."""
    X, y = load_iris(return_X_y=True)
    for rule in ("bound", "race"):
        one, two = (SVCCV(Cs=CS, gammas=GAMMAS, prune=rule, n_jobs=n, refit=False).fit(X, y) for n in (1, 2))
        np.testing.assert_array_equal(one.cv_results_["status"], two.cv_results_["status"])
        assert one.best_index_ == two.best_index_


@pytest.mark.parametrize("rule", ["bound", "race"])
def test_other_machines_and_searches(rule):
    """Regression, nu and the local search give candidates up, too, and refit the best."""
    X, y = make_regression(120, 3, noise=5.0, random_state=0)
    whole = SVRCV(Cs=4, gammas=5, epsilons=1).fit(X, y)
    model = SVRCV(Cs=4, gammas=5, epsilons=1, prune=rule).fit(X, y)
    assert "given up" in model.cv_results_["status"]
    assert model.best_score_ > whole.best_score_ - 0.05
    if rule == "bound":
        assert model.best_params_ == whole.best_params_
    assert model.predict(X).shape == y.shape
    X, y = make_classification(100, 4, random_state=1)
    assert NuSVCCV(nus=3, gammas=4, prune=rule).fit(X, y).score(X, y) > 0.7
    assert SVCCV(search="local", prune=rule, cv=3).fit(X, y).score(X, y) > 0.7


def test_two_folds_and_little_memory():
    """Fewer folds than rungs, and matrices that do not fit, change nothing."""
    X, y = make_classification(120, 4, random_state=2)
    expected = SVCCV(Cs=CS, gammas=GAMMAS, cv=2, refit=False).fit(X, y)
    for cache_size in ("auto", 0.1, 0.01):
        model = SVCCV(Cs=CS, gammas=GAMMAS, cv=2, prune="bound", cache_size=cache_size, refit=False).fit(X, y)
        assert model.best_score_ == pytest.approx(expected.best_score_, abs=1e-2)


def test_scores_without_a_highest_value_are_refused():
    """The bound needs to know what a perfect score is."""
    X, y = make_classification(60, 4, random_state=0)
    scoring = make_scorer(lambda a, b: float(np.mean(a == b)))
    with pytest.raises(InvalidInputError, match="prune='bound' needs a score with a known highest value"):
        SVCCV(scoring=scoring, prune="bound").fit(X, y)
    assert SVCCV(Cs=2, gammas=2, scoring=scoring, prune="race").fit(X, y).best_score_ > 0.5
    with pytest.raises(ValueError, match="The 'prune' parameter of SVCCV must be"):
        SVCCV(prune="halving").fit(X, y)
    assert all(highest_score(name) in (0.0, 1.0, np.inf) for name in get_scorer_names())
