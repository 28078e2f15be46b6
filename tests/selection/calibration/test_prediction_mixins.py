"""Probabilities, sets and intervals of machines with held-out decision values."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import make_blobs, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.validation import check_is_fitted

from mercer import SVC, SVR, InvalidInputError, LinearSVC
from mercer.selection.calibration.class_probabilities import METHODS, Scheme
from mercer.selection.calibration.prediction_mixins import IntervalMixin, ProbabilityMixin, problem_values


class Classifier(ProbabilityMixin, BaseEstimator):
    """The least that the mixin asks for: one machine, fitted to all samples and to each part of five."""

    refit = True

    def __init__(self, machine, calibration="sigmoid"):
        self.machine = machine
        self.calibration = calibration

    def fit(self, X, y):
        self._scheme = Scheme.PAIRS if isinstance(self.machine, SVC) else Scheme.REST
        self.best_estimator_ = self.machine.fit(X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.cv_decision_function_ = np.full((len(y), self._scheme.columns(len(self.classes_))), np.nan)
        for train, test in StratifiedKFold(5).split(X, y):
            part = type(self.machine)(**self.machine.get_params()).fit(X[train], y[train])
            self.cv_decision_function_[test] = problem_values(part, X[test])
        self._learn_probabilities(codes, np.ones(len(y)))
        return self


class Regressor(IntervalMixin, BaseEstimator):
    refit = True

    def __init__(self, machine):
        self.machine = machine

    def fit(self, X, y):
        self.cv_decision_function_ = np.full(len(y), np.nan)
        for train, test in KFold(5).split(X):
            self.cv_decision_function_[test] = self.machine.fit(X[train], y[train]).predict(X[test])
        self.best_estimator_ = self.machine.fit(X, y)
        self._learn_intervals(y, np.ones(len(y)))
        return self


def sample(n_classes, n=600, seed=0):
    return make_classification(
        n, 6, n_informative=4, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, flip_y=0.2,
        weights=[0.6] if n_classes == 2 else None, random_state=seed,
    )  # fmt: skip


MACHINES = {"SVC": SVC(), "narrow": SVC(gamma=20.0), "LinearSVC": LinearSVC()}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("name", MACHINES)
def test_the_likeliest_class_is_predicted(name, n_classes, method):
    """argmax of predict_proba is predict: far away, in between, and where the machine is no better than chance."""
    X, y = sample(n_classes)
    labels = np.array(["e", "b", "d", "a", "c"])[y]
    model = Classifier(MACHINES[name], method).fit(X[:200], labels[:200])
    rng = np.random.default_rng(0)
    new = np.vstack([X[200:], 20.0 * rng.normal(size=(200, 6)), np.zeros((1, 6))])
    p = model.predict_proba(new)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.best_estimator_.predict(new))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert np.isfinite(model.predict_log_proba(new)).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_are_informative(n_classes, method):
    """On new samples the log loss is far below that of the class shares, and stated chances come true."""
    excess = []
    for seed in range(4):
        X, y = sample(n_classes, 1200, seed)
        model = Classifier(SVC(), method).fit(X[:500], y[:500])
        p, truth = model.predict_proba(X[500:]), y[500:]
        shares = np.tile(np.bincount(y[:500]) / 500, (700, 1))
        assert log_loss(truth, p) < 0.85 * log_loss(truth, shares)
        excess.append(p.max(axis=1).mean() - np.mean(p.argmax(axis=1) == truth))
    assert abs(np.mean(excess)) < 0.05


def test_balanced_weights():
    """Probabilities agree with a machine whose threshold class_weight has moved, without being squeezed to 1/2."""
    X, y = make_blobs([900, 100], 2, centers=[[0, 0], [1.5, 0]], random_state=0)
    machine = SVC(class_weight="balanced")
    model = Classifier(machine).fit(X, y)
    model._learn_probabilities(y, machine.class_weight_[y])
    p = model.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(p > 0.5, machine.predict(X) == 1)
    assert np.mean(np.abs(p - 0.5) < 0.01) < 0.1


@pytest.mark.parametrize("n_classes", [2, 4])
def test_sets_cover(n_classes):
    """On new samples a share 1 − alpha of the sets holds the true label, and sets are no larger than that asks for."""
    seeds, covered, by_class = 5, {}, {}
    for seed in range(seeds):
        X, y = sample(n_classes, 2000, seed)
        model = Classifier(SVC()).fit(X[:400], y[:400])
        new, truth = X[800:], y[800:]
        for fresh in (False, True):
            if fresh:
                assert model.conformalize(X[400:800], y[400:800]) is model
            for alpha in (0.05, 0.2):
                kept = model.predict_set(new, alpha, as_mask=True)
                covered.setdefault((alpha, fresh), []).append(kept[np.arange(1200), truth].mean())
            kept = model.predict_set(new, 0.2, mondrian=True, as_mask=True)
            shares = [kept[truth == c, c].mean() for c in range(n_classes)]
            by_class.setdefault(fresh, []).append(shares)
        np.testing.assert_array_equal(model.predict_set(new, 0.2, as_mask=True), model.conformal_p_values(new) > 0.2)
    for (alpha, _), shares in covered.items():
        # four standard errors, of the new samples and of the held-out ones
        slack = 4 * np.sqrt(alpha * (1 - alpha) * (1 / 1200 + 1 / 400) / seeds)
        assert 1 - alpha - slack < np.mean(shares) < 1 - alpha + slack + 1 / 400
    for shares in by_class.values():
        slack = 4 * np.sqrt(0.16 * n_classes * (1 / 1200 + 1 / 400) / seeds)
        assert (np.abs(np.mean(shares, axis=0) - 0.8) < slack + n_classes / 400).all()


def test_venn_abers_intervals():
    """Of two classes one interval is the mirror image of the other; both hold the share that comes true."""
    X, y = sample(2, 2000)
    model = Classifier(SVC()).fit(X[:800], y[:800])
    found = model.predict_proba_interval(X[800:])
    assert found.shape == (1200, 2, 2)
    np.testing.assert_allclose(found[:, 0, ::-1], 1.0 - found[:, 1], atol=1e-12)
    low, high = found[:, 1].mean(axis=0)
    assert low - 0.04 < y[800:].mean() < high + 0.04
    assert Classifier(SVC()).fit(*sample(3, 200)).predict_proba_interval(X[:5]).shape == (5, 3, 2)


@pytest.mark.parametrize("symmetric", [True, False])
def test_intervals_cover(symmetric):
    """On new samples a share 1 − alpha of the intervals holds the true value, and they are not wider than needed."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(3000, 1))
    y = np.sin(X[:, 0]) + 0.2 * (rng.exponential(size=3000) - 1.0)
    model = Regressor(SVR(C=10)).fit(X[:500], y[:500])
    for fresh in (False, True):
        if fresh:
            model.conformalize(X[500:1500], y[500:1500])
        for alpha in (0.05, 0.2):
            low, high = model.predict_interval(X[1500:], alpha, symmetric).T
            covered = np.mean((low <= y[1500:]) & (y[1500:] <= high))
            slack = 3 * np.sqrt(alpha * (1 - alpha) * (1 / 1500 + 1 / (1000 if fresh else 500)))
            assert 1 - alpha - slack < covered < 1 - alpha + slack + 0.01
    assert np.isinf(model.predict_interval(X[:1], 1e-4)).all()


def test_unusable():
    """Questions that cannot be answered are refused with a reason."""
    X, y = sample(2, 100)
    model = Classifier(SVC()).fit(X, y)
    with pytest.raises(InvalidInputError, match="label 7"):
        model.conformalize(X, np.full(100, 7))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.conformalize(X, y[:50])
    model.cv_decision_function_[:] = np.nan
    model._learn_probabilities(y, np.ones(100))
    with pytest.raises(InvalidInputError, match="the search ended before any sample was held out"):
        model.predict_proba(X)
    assert model.predict_set(X, as_mask=True).all()
    model.refit = False
    assert not hasattr(model, "predict_proba")
    check_is_fitted(model)
