"""All public estimators, found by their names, live in scikit-learn's world and in that of its neighbours."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from joblib import Parallel, delayed, parallel_config
from sklearn.base import BaseEstimator, clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer

# what makes an estimator quick and repeatable on forty samples
PARAMETERS = {
    "GaussianProcessRegressor": {"alpha": 0.1},
    "KernelCCA": {"kernel_y": "spectrum(k=2)"},
    "KernelKMeans": {"n_clusters": 3, "random_state": 0},
    "GaussianProcessClassifier": {"kernel": "3.0 * gaussian(gamma=0.3)", "optimizer": None},
    "KernelLMS": {"kernel": "rbf"},
    "KernelPCA": {"n_components": 4, "kernel": "rbf"},
    "SpectralClustering": {"n_clusters": 3, "gamma": 0.2, "random_state": 0},
    "KernelERM": {"loss": "huber"},
    "KernelLogisticRegressionCV": {"Cs": [1.0, 10.0], "gammas": [0.1], "cv": 3},
    "KernelRidge": {"kernel": "rbf"},
    "KernelRidgeCV": {"kernel": "rbf"},
    "LinearSVC": {"random_state": 0},
    "LinearSVCCV": {"Cs": [0.1, 1.0], "cv": 3},
    "LinearSVR": {"random_state": 0},
    "LinearSVRCV": {"Cs": [0.1, 1.0], "cv": 3},
    "MKLClassifier": {"kernels": ["linear()", "gaussian(gamma=0.1)"]},
    "MKLRegressor": {"kernels": ["linear()", "gaussian(gamma=0.1)"]},
    "NuSVC": {"nu": 0.3},
    "NuSVCCV": {"nus": [0.2, 0.3], "gammas": [0.1], "cv": 3},
    "Nystroem": {"n_components": 10, "random_state": 0},
    "OutputCodeSVC": {"code": "sparse", "random_state": 0},
    "OneClassSVMCV": {"nus": [0.1], "gammas": [0.1, 1.0], "cv": 3},
    "PegasosClassifier": {"random_state": 0},
    "Perceptron": {"random_state": 0},
    "RejectOption": {"estimator": mercer.KernelLogisticRegression()},
    "RandomFeatures": {"n_components": 10, "random_state": 0},
    "SparseGaussianProcessRegressor": {"kernel": "gaussian(gamma=0.1)", "n_inducing": 10, "optimizer": None},
    "SVCCV": {"Cs": [1.0, 10.0], "gammas": [0.1], "cv": 3},
    "SVRCV": {"Cs": [1.0, 10.0], "gammas": [0.1], "cv": 3},
}
# a parameter to search and two values of it, for estimators without the usual parameters
TOLERANCES = {"tol": [1e-3, 1e-2]}
GRIDS = {
    "GaussianProcessRegressor": {"alpha": [0.1, 1.0]},
    "GaussianProcessClassifier": {"max_iter_predict": [50, 100]},
    "KernelCentroid": {"gamma": [0.1, 1.0]},
    "KernelLMS": {"gamma": [0.1, 1.0]},
    "KernelRidge": {"alpha": [0.1, 1.0]},
    "KernelRidgeCV": {"gamma": [0.1, 1.0]},
    "NuSVC": {"nu": [0.2, 0.3]},
    "NuSVR": {"nu": [0.2, 0.3]},
    "OneClassSVM": {"nu": [0.1, 0.2]},
    "PegasosClassifier": {"lam": [0.01, 0.1]},
    "Perceptron": {"max_iter": [5, 50]},
    "RejectOption": {"estimator__C": [0.1, 1.0]},
    "SparseGaussianProcessRegressor": {"n_inducing": [5, 10]},
}
NAMES = [
    name
    for name in mercer.__all__
    if isinstance(getattr(mercer, name), type) and issubclass(getattr(mercer, name), BaseEstimator)
]
every_estimator = pytest.mark.parametrize("name", NAMES)
every_classifier = pytest.mark.parametrize("name", [name for name in NAMES if is_classifier(getattr(mercer, name)())])
# perceptrons and few steps end before they converge, and a process on forty samples at its bounds
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:The classes are texts, and their order is alphabetical"),
]


def made(name):
    return getattr(mercer, name)(**PARAMETERS.get(name, {}))


@cache
def samples(name):
    """Forty samples of five features, standardised, with targets that suit the estimator; names for classes."""
    if is_regressor(made(name)):
        X, y = load_diabetes(return_X_y=True)
        X, y = X[:40, 2:7], (y[:40] - y[:40].mean()) / y[:40].std()
    else:
        X, codes = load_wine(return_X_y=True)
        X, codes = X[::4][:40, :5], codes[::4][:40]
        y = np.array(["barbera", "grignolino", "barolo"])[codes]
    return StandardScaler().fit_transform(X), y


def outcome(model, X):
    """The output of a model for samples, as numbers."""
    for method in ("decision_function", "transform", "predict"):
        if hasattr(model, method):
            return np.asarray(getattr(model, method)(X), dtype=np.float64)
    return np.asarray(model.labels_, dtype=np.float64)  # clusters of the training samples


def plain_parameters(model):
    """The parameters, with those of an inner estimator instead of this estimator itself."""
    return {name: value for name, value in model.get_params().items() if not isinstance(value, BaseEstimator)}


def fitted_outcome(model, X, y):
    return outcome(model.fit(X, y), X)


@every_estimator
def test_clones(name):
    """A clone has the same parameters, no memory of a fit, and the same fit."""
    X, y = samples(name)
    model = made(name).fit(X, y)
    copy = clone(model)
    assert plain_parameters(copy) == plain_parameters(model)
    assert not [attribute for attribute in vars(copy) if attribute.endswith("_")]
    np.testing.assert_array_equal(fitted_outcome(copy, X, y), outcome(model, X))


@every_estimator
def test_pickles(name):
    """A copy from another process says the same, bit by bit, before and after the first prediction."""
    X, y = samples(name)
    model = made(name).fit(X, y)
    before = pickle.loads(pickle.dumps(model))
    said = outcome(model, X)
    np.testing.assert_array_equal(outcome(before, X), said)
    np.testing.assert_array_equal(outcome(pickle.loads(pickle.dumps(model)), X), said)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@every_estimator
def test_data_frames(name, frame):
    """Data frames and their columns are read as arrays, and columns are known by name."""
    X, y = samples(name)
    columns = [f"feature {k}" for k in range(X.shape[1])]
    table = frame(dict(zip(columns, X.T, strict=True)))
    target = (pd.Series if frame is pd.DataFrame else pl.Series)(y)
    model = made(name).fit(table, target)
    assert list(model.feature_names_in_) == columns
    np.testing.assert_allclose(outcome(model, table), fitted_outcome(made(name), X, y), rtol=1e-10, atol=1e-12)


@every_estimator
def test_single_precision_and_sparse(name):
    """float32 and sparse samples give what float64 and dense ones of the same values give, up to rounding."""
    X, y = samples(name)
    X = np.round(X * 16) / 16  # exact in both precisions
    said = fitted_outcome(made(name), X, y)
    scale = np.abs(said).max()
    np.testing.assert_allclose(fitted_outcome(made(name), X.astype(np.float32), y), said, rtol=0.02, atol=0.02 * scale)
    rows = sp.csr_array(X)
    sparse = fitted_outcome(made(name), rows, y)
    np.testing.assert_allclose(sparse, said, rtol=0.02, atol=0.02 * scale)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    np.testing.assert_array_equal(fitted_outcome(made(name), rows, y), sparse)


@every_estimator
def test_searches_and_pipelines(name):
    """GridSearchCV over a pipeline finds the estimator's parameters and its scores."""
    X, y = samples(name)
    model = made(name)
    if not hasattr(model, "predict") and not hasattr(model, "transform"):
        assert len(model.fit_predict(X)) == len(y)  # nothing to search by: new samples have no cluster
        return
    if hasattr(model, "transform"):
        model, grid = make_pipeline(model, mercer.LinearSVC()), {f"{name.lower()}__n_components": [5, 10]}
    elif is_outlier_detector(model):
        y, grid = np.ones(len(y)), GRIDS.get(name, TOLERANCES)
    else:
        grid = GRIDS.get(name, TOLERANCES)
    scoring = "accuracy" if is_outlier_detector(model) else None
    last = "pipeline" if hasattr(model, "steps") else name.lower()
    grid = {f"{last}__{key}": values for key, values in grid.items()}
    search = GridSearchCV(make_pipeline(StandardScaler(), model), grid, cv=3, scoring=scoring, error_score="raise")
    search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(search.predict(X)) == len(y)


@every_classifier
def test_calibration(name):
    """CalibratedClassifierCV makes probabilities of every classifier's values."""
    X, y = samples(name)
    model = CalibratedClassifierCV(made(name), cv=3).fit(X, y)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert model.score(X, y) > 0.6


@every_estimator
def test_threads(name):
    """Fits at the same time on threads give what they give one after the other."""
    X, y = samples(name)
    alone = fitted_outcome(made(name), X, y)
    found = Parallel(n_jobs=4, backend="threading")(delayed(fitted_outcome)(made(name), X, y) for _ in range(4))
    for other in found:
        np.testing.assert_allclose(other, alone, rtol=1e-7, atol=1e-9)


@every_estimator
def test_dask(name):
    """Dask's threads may fit and predict, and joblib may hand its work to them."""
    dask = pytest.importorskip("dask")
    X, y = samples(name)
    alone = fitted_outcome(made(name), X, y)
    tasks = [dask.delayed(fitted_outcome)(made(name), X, y) for _ in range(3)]
    for other in dask.compute(*tasks, scheduler="threads", num_workers=3):
        np.testing.assert_allclose(other, alone, rtol=1e-7, atol=1e-9)


def test_scores_on_threads():
    """cross_val_score on joblib's threads gives the scores of one thread."""
    X, y = samples("SVC")
    expected = cross_val_score(mercer.SVC(), X, y, cv=3)
    with parallel_config(backend="threading", n_jobs=3):
        np.testing.assert_array_equal(cross_val_score(mercer.SVC(), X, y, cv=3), expected)
