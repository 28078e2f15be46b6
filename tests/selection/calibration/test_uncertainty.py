"""Probabilities, sets and intervals of the machines that choose their parameters."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    SVCCV,
    SVRCV,
    LinearSVCCV,
    LinearSVRCV,
    NuSVCCV,
    SearchMapDisplay,
    evaluate,
    leave_one_out,
    solution_path,
)
from mercer.selection.calibration.class_probabilities import METHODS

CLASSIFIERS = {
    "SVCCV": SVCCV(Cs=[0.5, 5.0], gammas=[0.05, 0.3]),
    "squared hinge": SVCCV(Cs=[0.5, 5.0], gammas=[0.1], loss="squared_hinge"),
    "balanced": SVCCV(Cs=[0.5, 5.0], gammas=[0.1], class_weight="balanced"),
    "ties broken": SVCCV(Cs=[0.5], gammas=[0.1, 1.0], break_ties=True),
    "pairs shown": SVCCV(Cs=[0.5], gammas=[0.1, 1.0], decision_function_shape="ovo"),
    "NuSVCCV": NuSVCCV(nus=[0.2, 0.4], gammas=[0.1]),
    "LinearSVCCV": LinearSVCCV(Cs=[0.1, 1.0]),
    "all classes at once": LinearSVCCV(Cs=[0.1, 1.0], multi_class="crammer_singer", tol=1e-2),
}


def sample(n_classes, n=300, seed=0):
    return make_classification(
        n, 6, n_informative=4, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, flip_y=0.2,
        weights=[0.65] if n_classes == 2 else None, random_state=seed,
    )  # fmt: skip


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_likeliest_class_is_predicted(name, n_classes):
    """argmax of predict_proba is predict, for each calibration, near to the samples and far from them."""
    X, y = sample(n_classes)
    labels = np.array(["d", "b", "c", "a"])[y]
    new = np.vstack([X[150:], 30.0 * np.random.default_rng(0).normal(size=(100, 6)), np.zeros((1, 6))])
    model = clone(CLASSIFIERS[name]).fit(X[:150], labels[:150])
    codes = np.searchsorted(model.classes_, labels[:150])
    for method in METHODS:
        model.calibration = method
        model._learn_probabilities(codes, model.class_weight_[codes])
        p = model.predict_proba(new)
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(new), err_msg=method)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
        assert np.isfinite(model.predict_log_proba(new)).all()
    mask, sets = model.predict_set(new, as_mask=True), model.predict_set(new)
    assert mask.shape == (251, n_classes) and mask.dtype == bool and sets.shape == (251,)
    assert sets.tolist() == [tuple(model.classes_[row].tolist()) for row in mask]
    assert model.predict_proba_interval(new).shape == (251, n_classes, 2)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", ["SVCCV", "NuSVCCV", "LinearSVCCV"])
def test_sets_cover(name, n_classes):
    """On new samples a share 1 − alpha of the sets holds the true label, with cross-validated and with fresh scores."""
    seeds, covered = 4, {}
    for seed in range(seeds):
        X, y = sample(n_classes, 1600, seed)
        model = clone(CLASSIFIERS[name]).fit(X[:300], y[:300])
        for fresh in (False, True):
            if fresh:
                model.conformalize(X[300:600], y[300:600])
            for alpha in (0.1, 0.3):
                kept = model.predict_set(X[600:], alpha, as_mask=True)
                covered.setdefault((alpha, fresh), []).append(kept[np.arange(1000), y[600:]].mean())
    for (alpha, fresh), shares in covered.items():
        slack = 4 * np.sqrt(alpha * (1 - alpha) * (1 / 1000 + 1 / 300) / seeds)
        # scores of machines that saw fewer samples promise a little less than is kept
        above = 1 / 300 + (0.0 if fresh else 0.03)
        assert 1 - alpha - slack < np.mean(shares) < 1 - alpha + slack + above, (alpha, fresh)


@pytest.mark.parametrize("name", ["SVCCV", "LinearSVCCV"])
def test_probabilities_are_informative(name):
    """The log loss of new samples is below that of the class shares."""
    X, y = sample(3, 800)
    model = clone(CLASSIFIERS[name]).fit(X[:400], y[:400])
    shares = np.tile(np.bincount(y[:400]) / 400, (400, 1))
    assert log_loss(y[400:], model.predict_proba(X[400:])) < 0.85 * log_loss(y[400:], shares)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("name", ["SVRCV", "LinearSVRCV"])
def test_intervals_cover(name, symmetric):
    """On new samples a share 1 − alpha of the intervals holds the true value."""
    seeds, covered = 4, {}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2, 2, size=(1600, 2))
        y = X[:, 0] + 0.5 * X[:, 1] + 0.3 * (rng.exponential(size=1600) - 1.0)
        model = SVRCV(Cs=[1.0, 10.0], gammas=[0.1]) if name == "SVRCV" else LinearSVRCV(Cs=[0.1, 1.0])
        model.fit(X[:300], y[:300])
        for fresh in (False, True):
            if fresh:
                model.conformalize(X[300:600], y[300:600])
            for alpha in (0.1, 0.3):
                low, high = model.predict_interval(X[600:], alpha, symmetric).T
                covered.setdefault((alpha, fresh), []).append(np.mean((low <= y[600:]) & (y[600:] <= high)))
    for (alpha, fresh), shares in covered.items():
        slack = 4 * np.sqrt(alpha * (1 - alpha) * (1 / 1000 + 1 / 300) / seeds)
        assert 1 - alpha - slack < np.mean(shares) < 1 - alpha + slack + 1 / 150 + (0.0 if fresh else 0.02)


def test_pickle_and_pipeline():
    """Probabilities survive pickling, and work at the end of a pipeline."""
    X, y = sample(3)
    model = make_pipeline(StandardScaler(), SVCCV(Cs=[1.0], gammas=[0.1, 0.5])).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again[-1].predict_set(X), model[-1].predict_set(X))


def test_samples_that_were_never_held_out():
    """With a splitter that leaves samples out, the others teach the probabilities."""
    X, y = sample(2)
    model = SVCCV(Cs=[1.0], gammas=[0.1], cv=ShuffleSplit(2, test_size=0.2, random_state=0)).fit(X, y)
    assert np.isnan(model.cv_decision_function_).any()
    p = model.predict_proba(X)
    np.testing.assert_array_equal(p.argmax(axis=1), model.predict(X))


def test_without_refit():
    """Without a machine there is nothing to predict with."""
    X, y = sample(2)
    model = SVCCV(Cs=[1.0], gammas=[0.1], refit=False).fit(X, y)
    for name in ("predict_proba", "predict_log_proba", "predict_set", "predict_proba_interval", "conformalize"):
        assert not hasattr(model, name)
    assert not hasattr(SVRCV(Cs=[1.0], gammas=[0.1], refit=False).fit(X, y * 1.0), "predict_interval")


def test_zero_weights():
    """Samples without weight teach nothing."""
    X, y = sample(2)
    weight = np.ones(300)
    weight[::3] = 0.0
    model = SVCCV(Cs=[1.0], gammas=[0.1]).fit(X, y, sample_weight=weight)
    assert model._conformal.n == 200
    regressor = SVRCV(Cs=[1.0], gammas=[0.1]).fit(X, y * 1.0, sample_weight=weight)
    assert regressor._conformal.n == 200


def test_together():
    """A search can be evaluated by an outer one, drawn, and its machine left one out."""
    pytest.importorskip("matplotlib").use("Agg")
    X, y = sample(2, 120)
    search = SVCCV(Cs=[0.5, 5.0], gammas=[0.05, 0.5])
    report = evaluate(search, X, y, cv=3)
    assert all(set(params) == {"C", "gamma"} for params in report.best_params)
    assert np.isfinite(report.search_scores).all()
    assert 0 < report.support_share <= 1
    search.fit(X, y)
    display = SearchMapDisplay.from_estimator(search, "C", "gamma")
    assert np.nanmax(display.scores) == search.best_score_
    left = leave_one_out(search, X, y)
    assert solution_path(search, X, y, C_min=1.0, C_max=2.0).model(1.5).gamma == search.best_params_["gamma"]
    assert abs((1 - left.error) - search.best_score_) < 0.1
