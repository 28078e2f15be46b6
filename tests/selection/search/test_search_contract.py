"""The searches are scikit-learn estimators, end when they are told to, and say what is wrong."""

import pickle
import re
import signal

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from tests.naming import named

from mercer import (
    SVCCV,
    SVRCV,
    CallableKernel,
    Gaussian,
    InvalidInputError,
    LinearSVCCV,
    LinearSVRCV,
    NuSVCCV,
    OneClassSVMCV,
)
from mercer.selection.search.candidates import Progress, Table

DENSE, SPARSE = "check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"
SMALL = [
    SVCCV(Cs=2, gammas=2),
    NuSVCCV(nus=2, gammas=2),
    SVRCV(Cs=2, gammas=2, epsilons=1),
    LinearSVCCV(Cs=2),
    LinearSVRCV(Cs=2),
    OneClassSVMCV(gammas=2),
]


def data(n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", SMALL, ids=named)
def test_conformance(estimator):
    """scikit-learn's checks pass, but for repeated samples, which move the default grids, and extreme class weights."""
    expected = {DENSE: "quantiles of distances, and the tol", SPARSE: "quantiles of distances, and the tol"}
    if isinstance(estimator, NuSVCCV):
        expected["check_class_weight_classifiers"] = "no nu is feasible for classes weighted 1000 : 0.0001"
    if isinstance(estimator, LinearSVCCV):
        expected["check_class_weight_classifiers"] = "C is chosen by the accuracy, against such weights"
    results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}


@pytest.mark.parametrize("estimator", SMALL, ids=named)
def test_a_fitted_search_survives_pickling_cloning_and_pipelines(estimator):
    """Predictions are the same after a round trip, in a pipeline, and for data frames."""
    pandas = pytest.importorskip("pandas")
    X, y = data()
    model = clone(estimator).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    frame = pandas.DataFrame(X, columns=["a", "b"])
    framed = clone(estimator).fit(frame, y)
    assert framed.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(framed.predict(frame), model.predict(X))
    assert make_pipeline(StandardScaler(), clone(estimator)).fit(X, y).predict(X).shape == y.shape
    assert model.certificate_.valid
    assert 0 <= model.certificate_.relative_gap < 0.1


def test_nested_cross_validation():
    """A search is an estimator like any other: its own score can be cross-validated."""
    X, y = data(90)
    assert cross_val_score(SVCCV(Cs=3, gammas=3, cv=3), X, y, cv=3).mean() > 0.6


def test_no_time_is_enough_for_a_model():
    """With time_limit=0 an untried candidate is fitted, and the warning says so."""
    X, y = data()
    with pytest.warns(UserWarning, match=r"ended after time_limit=0 s: 0 of 64 candidates were tried"):
        model = SVCCV(time_limit=0).fit(X, y)
    assert model.predict(X).shape == y.shape
    assert np.isnan(model.best_score_)
    with pytest.warns(UserWarning, match="0 of 10 candidates"):
        assert LinearSVCCV(time_limit=0).fit(X, y).predict(X).shape == y.shape


def test_an_interrupt_leaves_the_best_so_far():
    """After Ctrl-C the best of the candidates that were tried in all folds is refitted."""
    X, y = data()
    scored = []

    def pressed(model, X, y):
        scored.append(accuracy_score(y, model.predict(X)))
        if len(scored) == 40:
            signal.raise_signal(signal.SIGINT)
        return scored[-1]

    with pytest.warns(UserWarning, match=r"was interrupted: \d+ of 16 candidates"):
        search = SVCCV(Cs=4, gammas=4, n_jobs=1, refit=False, scoring=pressed).fit(X, y)
    tried = np.isfinite(search.cv_results_["mean_test_score"])
    assert 0 < tried.sum() < 16
    assert search.best_score_ == search.cv_results_["mean_test_score"][tried].max()


def test_a_time_limit_is_kept():
    """A search of 72,000 fits, which would take an hour, has done few of them when its time is over."""
    X, y = data(600)
    search = SVCCV(Cs=np.logspace(0, 4, 60), gammas=60, cv=20, time_limit=0.5, refit=False)
    with pytest.warns(UserWarning, match="ended after time_limit"):
        search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).sum() < 360


def test_progress_is_logged(caplog):
    """verbose tells how far the search is and how long it will take."""
    X, y = data()
    with caplog.at_level("INFO", logger="mercer"):
        SVCCV(Cs=2, gammas=2, cv=3, verbose=True, refit=False).fit(X, y)
    assert "12 of 12 fits" in caplog.text
    assert re.search(r"best 0\.\d{4} at C=[\d.e+-]{1,9}, gamma=[\d.e+-]{1,9}\n", caplog.text)


def test_the_time_left_is_that_of_all_fits(caplog):
    """After 10 s and a quarter of the fits, planned ones included, about 30 s are left."""
    table = Table(n_folds=2, planned=4)
    candidate = table.new({"C": 1.0})
    candidate.fit_seconds[:] = 5.0
    heard = []
    progress = Progress(True, table, lambda done, total, table: heard.append((done, total)))
    progress.start -= 10.0
    with caplog.at_level("INFO", logger="mercer"):
        progress.step()
    assert "[#####...............] 2 of 8 fits  10 s, about 30 s left" in caplog.text and heard == [(2, 8)]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"Cs": []}, "Cs has the shape (0,): give at least one number."),
        ({"Cs": [1.0, -1.0]}, "Cs contains -1: values must be above 0 and finite."),
        ({"Cs": [np.nan]}, "Cs contains nan: values must be above 0 and finite."),
        ({"Cs": [np.inf]}, "Cs contains inf: values must be above 0 and finite."),
        ({"gammas": [0.0]}, "gammas contains 0: values must be above 0 and finite."),
        ({"kernel": []}, "kernel is an empty list: give at least one kernel."),
        ({"kernel": ["rbf", "precomputed"]}, "The kernels compare samples of different kinds"),
        ({"kernel_grid": {"width": [1.0]}}, "kernel_grid has the parameter 'width', but kernel='rbf' has"),
        ({"cv": 100}, "cv=100 folds need at least as many samples, but n_samples=60."),
        ({"cv": []}, "cv gives no fold"),
        ({"cv": [([0, 1], [99])]}, "Fold 0 of cv has 1 test samples among 99 to 99"),
        ({"scoring": "neg_log_loss"}, "scoring='neg_log_loss' needs probabilities"),
    ],
    ids=named,
)
def test_mistakes_are_explained(params, message):
    """Errors say what is wrong, what was found and what to do."""
    X, y = data()
    with pytest.raises((InvalidInputError, ValueError)) as caught:
        SVCCV(**params).fit(X, y)
    assert message in str(caught.value)


def test_mistakes_of_novelty_detection_are_explained():
    """Several nu need labels."""
    X, _ = data()
    with pytest.raises(InvalidInputError, match="nus asks for 2 values"):
        OneClassSVMCV(nus=[0.1, 0.2]).fit(X)
    with pytest.raises(InvalidInputError, match="needs a label for each of the 60 samples"):
        OneClassSVMCV(nus=[0.1, 0.2], scoring="accuracy").fit(X)


def test_without_refit_there_is_no_prediction():
    """The search alone is possible, and says why it cannot predict."""
    X, y = data()
    model = SVCCV(Cs=2, gammas=2, refit=False).fit(X, y)
    with pytest.raises(AttributeError) as caught:
        model.predict(X)
    assert "has refit=False, so it cannot predict" in str(caught.value.__cause__)
    assert not hasattr(model, "best_estimator_")


@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
@pytest.mark.parametrize(
    "X",
    [np.ones((40, 2)), np.column_stack([np.linspace(0, 1e6, 40), np.zeros(40)]), np.full((40, 3), 1e-200)],
    ids=["constant", "one huge column", "tiny"],
)
def test_awkward_samples_end_in_a_model(X):
    """Constant, huge and tiny columns give a model, not a crash or a hang."""
    y = np.arange(40) % 2
    model = SVCCV(Cs=3, gammas=3).fit(X, y)
    assert 0 <= model.best_score_ <= 1
    assert np.isfinite(model.predict_proba(X)).all()


def test_objects_that_only_a_kernel_understands():
    """Samples of any type are searched with a kernel on them."""
    words = ["aa", "ab", "ba", "aaa", "bb", "bbb", "bba", "abb"] * 4
    y = np.array([word.count("a") > word.count("b") for word in words])

    def counts(texts):
        return np.array([[text.count("a"), text.count("b")] for text in texts], dtype=float)

    kernel = CallableKernel(lambda s, t: counts(s) @ counts(t).T)
    model = SVCCV(kernel=kernel, Cs=[1.0, 10.0], cv=4).fit(words, y)
    assert model.best_score_ == 1.0
    assert model.predict(["aaaa", "bbbb"]).tolist() == [True, False]


def test_parameters_of_a_kernel_can_be_set():
    """kernel__gamma puts a new kernel in place, as in SVC."""
    assert SVCCV(kernel=Gaussian(1.0)).set_params(kernel__gamma=2.0).kernel == Gaussian(2.0)
