"""KernelLogisticRegressionCV gives GridSearchCV's scores from shared matrices."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from mercer import Gaussian, InvalidInputError, KernelLogisticRegression, KernelLogisticRegressionCV, Spectrum

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)[:, :5]
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.05, 0.5]}


@pytest.mark.parametrize("target", [y > 0, y], ids=["two", "three"])
@pytest.mark.parametrize("scoring", [None, "neg_log_loss", "roc_auc_ovr"])
def test_scores_are_those_of_grid_search(target, scoring):
    """All scores, the choice and the refitted machine are GridSearchCV's."""
    cv, tight = StratifiedKFold(3), {"tol": 1e-11, "class_weight": "balanced"}
    ours = KernelLogisticRegressionCV(Cs=GRID["C"], gammas=GRID["gamma"], cv=cv, scoring=scoring, **tight)
    theirs = GridSearchCV(KernelLogisticRegression(**tight), GRID, cv=cv, scoring=scoring)
    ours.fit(X, target)
    theirs.fit(X, target)
    for name in ("split0_test_score", "split2_test_score", "mean_test_score"):
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], atol=1e-5)
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.2)
    assert ours.certificate_.relative_gap <= 1e-11 and ours.best_params_["C"] == ours.C_


def test_held_out_values():
    """cv_decision_function_ are the values of machines that did not see the sample, and score as reported."""
    model = KernelLogisticRegressionCV(Cs=[1.0], gammas=[0.1], cv=3, scoring="neg_log_loss").fit(X, y, WEIGHT)
    for f, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
        one = KernelLogisticRegression(1.0, gamma=0.1).fit(X[train], y[train], WEIGHT[train])
        np.testing.assert_allclose(model.cv_decision_function_[test], one.decision_function(X[test]), atol=1e-3)
        score = -log_loss(y[test], one.predict_proba(X[test]), sample_weight=WEIGHT[test])
        assert model.cv_results_[f"split{f}_test_score"][0] == pytest.approx(score, abs=1e-4)
        assert np.all(model.cv_fold_[test] == f)


def test_kernels():
    """Lists of kernels, matrices, functions and strings."""
    several = KernelLogisticRegressionCV(kernel=[Gaussian(0.1), "linear"], Cs=2, cv=3).fit(X, y)
    assert "kernel" in several.best_params_
    K = X @ X.T
    known = KernelLogisticRegressionCV(kernel="precomputed", Cs=[1.0], cv=3).fit(K, y)
    function = KernelLogisticRegressionCV(kernel=lambda A, B: A @ B.T, Cs=[1.0], cv=3).fit(X, y)
    np.testing.assert_allclose(known.cv_decision_function_, function.cv_decision_function_, atol=1e-6)
    texts, labels = ["abab", "baba", "abba", "xyxy", "yxyx", "xxyy"] * 2, ["a", "a", "a", "x", "x", "x"] * 2
    strings = KernelLogisticRegressionCV(kernel=Spectrum(2), Cs=2, cv=2).fit(texts, labels)
    assert strings.predict(["aba", "yxy"]).tolist() == ["a", "x"]


def test_local_search_and_limits():
    """A local search finds a score like the grid's; no time and no memory are said."""
    grid = KernelLogisticRegressionCV(cv=3, scoring="neg_log_loss").fit(X, y)
    local = KernelLogisticRegressionCV(cv=3, scoring="neg_log_loss", search="local").fit(X, y)
    assert local.best_score_ >= grid.best_score_ - 0.02
    with pytest.warns(UserWarning, match="The search ended after time_limit=0 s"):
        KernelLogisticRegressionCV(time_limit=0).fit(X, y)
    with pytest.raises(InvalidInputError, match="The kernel matrix of 178 samples, with the parts of it"):
        KernelLogisticRegressionCV(cache_size=0.1).fit(X, y)
    # one matrix fits, but not beside the parts that a fold copies
    n = len(X)
    with pytest.raises(InvalidInputError, match="that a fold copies, takes"):
        KernelLogisticRegressionCV(cache_size=1.2 * 8 * n**2 / 2**20, Cs=[1.0], cv=3).fit(X, y)
    enough = KernelLogisticRegressionCV(cache_size=1.7 * 8 * n**2 / 2**20, Cs=[1.0], gammas=[0.1, 0.2], cv=3).fit(X, y)
    assert enough.certificate_.relative_gap <= 1e-6
