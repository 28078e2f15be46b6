"""Nested cross-validation."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_validate,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVR, InvalidInputError, LinearSVC, OneClassSVM
from mercer.selection.evaluation import evaluate


def sample(n=120, seed=0):
    return make_classification(n, 5, n_informative=3, n_redundant=0, flip_y=0.1, random_state=seed)


@pytest.mark.parametrize("scoring", [None, "roc_auc", "neg_log_loss"])
def test_scores_are_sklearns(scoring):
    """Test and training scores are those of cross_validate."""
    X, y = sample()
    model = RandomForestClassifier(5, random_state=0) if scoring == "neg_log_loss" else SVC()
    found = evaluate(model, X, y, scoring=scoring)
    expected = cross_validate(model, X, y, cv=5, scoring=scoring, return_train_score=True)
    np.testing.assert_allclose(found.scores, expected["test_score"])
    np.testing.assert_allclose(found.training_scores, expected["train_score"])
    assert found.score == expected["test_score"].mean()
    assert found.spread == np.std(expected["test_score"], ddof=1)
    assert found.interval[0] < found.score < found.interval[1]
    assert found.interval[1] <= (0.0 if scoring == "neg_log_loss" else 1.0)
    assert found.held_out == 120
    method = "Wilson's interval, 120" if scoring is None else "bootstrap over 120"
    assert found.interval_method == f"{method} held-out rows" and found.interval_method in str(found)


def test_an_interval_of_few_rows_is_wide_and_in_range():
    """Two small parts that are all right: neither 1 to 1 nor beyond 1 nor below 0."""
    X = np.vstack([np.zeros((10, 1)), np.ones((10, 1))])
    found = evaluate(SVC(), X, np.repeat([0, 1], 10), cv=StratifiedShuffleSplit(2, test_size=4, random_state=0))
    assert found.score == 1.0 and found.held_out <= 8
    low, high = found.interval
    assert 0.3 < low < 0.8 and high == 1.0


def test_each_sample_is_predicted_once():
    """The bootstrap asks the model for no further prediction."""
    X, y = sample()
    calls = []

    class Counted(SVC):
        def decision_function(self, X):
            calls.append(len(X))
            return super().decision_function(X)

    found = evaluate(Counted(), X, y, scoring="roc_auc", cv=3)
    # two for the scores on test and training samples of each fold, one for the bootstrap
    assert len(calls) == 9 and found.interval[0] < found.score < found.interval[1]


def test_nested():
    """A search is repeated in each fold, and its own best score is kept apart from the honest one."""
    X, y = sample()
    inner = GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1, 1.0]}, cv=3)
    outer = StratifiedKFold(4)
    found = evaluate(inner, X, y, cv=outer)
    for f, (train, test) in enumerate(outer.split(X, y)):
        search = clone(inner).fit(X[train], y[train])
        assert found.best_params[f] == search.best_params_
        assert found.search_scores[f] == search.best_score_
        assert found.scores[f] == search.score(X[test], y[test])
        assert found.support_shares[f] == len(search.best_estimator_.support_) / len(train)
    text = str(found)
    for expected in ("as the search saw it", "C chosen", "gamma chosen", "support vectors", "95% interval"):
        assert expected in text


@pytest.mark.slow
def test_selection_is_too_good():
    """Labels at random: the search believes in its best score, the honest one is at chance."""
    honest, believed = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 20)), np.arange(60) % 2
        inner = GridSearchCV(SVC(), {"C": np.logspace(-1, 3, 3), "gamma": np.logspace(-3, 0, 4)}, cv=3)
        found = evaluate(inner, X, y, cv=4)
        honest.append(found.score)
        believed.append(found.search_scores.mean())
    assert np.mean(believed) > np.mean(honest) + 0.05
    assert np.mean(honest) < 0.58


def test_overfitting_is_seen():
    """A machine that memorises is warned of, one that fits is not."""
    X, y = sample(200)
    memory = evaluate(SVC(gamma=50.0, C=100.0), X, y)
    names = [finding.name for finding in memory.symptoms]
    assert names[0] == "optimism" and "nearest similarity" in names
    assert "The model overfits" in str(memory)
    assert memory.training_score == 1.0
    assert memory.support_share > 0.9
    good = evaluate(SVC(), X, y)
    assert "optimism" not in [finding.name for finding in good.symptoms]


@pytest.mark.parametrize("kind", ["pipeline", "search in a pipeline", "pipeline in a search"])
def test_pipelines(kind):
    """The steps before the machine are fitted in each fold, and the diagnosis sees the samples as the machine does."""
    X, y = sample()
    X = X * [1, 1, 1, 1, 1e4]
    grid = {"C": [1.0, 10.0]}
    model = {
        "pipeline": make_pipeline(StandardScaler(), SVC()),
        "search in a pipeline": make_pipeline(StandardScaler(), GridSearchCV(SVC(), grid, cv=3)),
        "pipeline in a search": GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1.0, 10.0]}, cv=3),
    }[kind]
    found = evaluate(model, X, y)
    np.testing.assert_array_equal(found.scores, cross_validate(model, X, y, cv=5)["test_score"])
    assert np.isfinite(found.support_shares).all()
    assert "scales of columns" not in [finding.name for finding in found.symptoms]
    assert "scales of columns" in [finding.name for finding in evaluate(SVC(), X, y).symptoms]


def test_weights():
    """Weights take part in fits and in scores."""
    X, y = sample()
    weight = np.random.default_rng(0).uniform(0.1, 3.0, size=120)
    found = evaluate(SVC(), X, y, sample_weight=weight, cv=KFold(3))
    for f, (train, test) in enumerate(KFold(3).split(X)):
        model = SVC().fit(X[train], y[train], sample_weight=weight[train])
        assert found.scores[f] == pytest.approx(model.score(X[test], y[test], sample_weight=weight[test]))
    piped = evaluate(make_pipeline(StandardScaler(), SVC()), X, y, sample_weight=weight, cv=KFold(3))
    assert np.isfinite(piped.scores).all()
    searched = evaluate(GridSearchCV(SVC(), {"C": [1.0]}), X, y, sample_weight=weight, cv=KFold(3))
    np.testing.assert_allclose(searched.scores, found.scores)
    with pytest.raises(InvalidInputError, match=r"KNeighborsClassifier.fit does not take it"):
        evaluate(KNeighborsClassifier(), X, y, sample_weight=weight)


def test_groups():
    """Groups are kept together outside, and inside by a search that takes them."""
    X, y = sample()
    groups = np.arange(120) // 10
    found = evaluate(GridSearchCV(SVC(), {"C": [1.0]}, cv=GroupKFold(2)), X, y, cv=GroupKFold(3), groups=groups)
    assert len(found.scores) == 3


def test_other_models():
    """Regression, linear machines, novelty detection, kernel matrices and models of other kinds."""
    X, y = sample()
    Xr, yr = make_regression(80, 3, noise=5.0, random_state=0)
    assert evaluate(SVR(C=100.0), Xr, yr).scoring == "r2"
    assert np.isnan(evaluate(LinearSVC(), X, y).support_share)
    assert evaluate(RandomForestClassifier(5, random_state=0), X, y).findings[0].name == "optimism"
    matrix = evaluate(SVC(kernel="precomputed"), X @ X.T, y)
    np.testing.assert_allclose(matrix.scores, evaluate(SVC(kernel="linear"), X, y).scores, atol=0.05)
    novelty = evaluate(OneClassSVM(nu=0.1), X, scoring=lambda model, X, y=None: float(np.mean(model.predict(X) > 0)))
    assert 0.5 < novelty.score <= 1.0
    assert evaluate(SVR(C=100.0), Xr, yr, scoring="neg_mean_squared_error").score < 0


def test_time_limit():
    """Without time two folds are scored, and a warning says so."""
    X, y = sample()
    with pytest.warns(
        UserWarning, match=r"evaluate ended early \(time_limit=0 s\): 2 of 5 folds were scored, and the fit"
    ):
        found = evaluate(SVC(), X, y, time_limit=0)
    assert len(found.scores) == 2


def test_unusable():
    """Questions that cannot be answered are refused with a reason."""
    X, y = sample()
    with pytest.raises(InvalidInputError, match="cv gives 1 fold: a spread needs at least two"):
        evaluate(SVC(), X, y, cv=[(np.arange(60), np.arange(60, 120))])
    with pytest.raises(InvalidInputError, match="SVC requires y to be passed, but the target y is None"):
        evaluate(SVC(), X)
    with pytest.raises(InvalidInputError, match="not a number in 5 of 5 folds"):
        evaluate(SVC(), X, y, scoring=lambda model, X, y: np.nan)
