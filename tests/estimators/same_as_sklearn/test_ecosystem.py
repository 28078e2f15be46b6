"""The estimators live in scikit-learn's world: clones, searches, pipelines, data frames, other processes."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from tests.naming import named

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.kernels import CallableKernel, Gaussian, Linear, On, Precomputed
from mercer.validation import thread_count

ESTIMATORS = [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM()]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)


def iris():
    return load_iris(return_X_y=True)


def values(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def linear_function(X, Z):
    """A kernel in plain Python, at the top of a module so that it can be pickled."""
    return np.asarray(X) @ np.asarray(Z).T


class TestParameters:
    @every_estimator
    def test_clone(self, estimator):
        """A clone has the same parameters and no memory of a fit."""
        X, y = iris()
        model = clone(estimator).set_params(kernel=Gaussian(gamma=0.3)).fit(X, y)
        copy = clone(model)
        assert copy.get_params() == model.get_params()
        assert not hasattr(copy, "support_")
        np.testing.assert_array_equal(values(copy.fit(X, y), X), values(model, X))

    @every_estimator
    def test_round_trip(self, estimator):
        """set_params of get_params changes nothing; every parameter can be set by its name."""
        params = estimator.get_params()
        assert clone(estimator).set_params(**params).get_params() == params
        other = type(estimator)(**{name: value for name, value in params.items() if "__" not in name})
        assert other.get_params() == params

    def test_parameters_of_a_kernel(self):
        """A kernel's parameters are reached through its name; the kernel itself, a value, is not changed."""
        kernel = 0.5 * Gaussian(gamma=0.1) + Linear()
        model = SVC(kernel=kernel)
        assert model.get_params()["kernel__left__kernel__gamma"] == 0.1
        model.set_params(kernel__left__kernel__gamma=0.7, C=3.0)
        assert model.kernel == 0.5 * Gaussian(gamma=0.7) + Linear()
        assert (kernel, model.C) == (0.5 * Gaussian(gamma=0.1) + Linear(), 3.0)

    def test_a_kernel_and_its_parameters(self):
        """Both may be set at once: the parameters are the new kernel's."""
        model = SVC().set_params(kernel=Gaussian(), kernel__gamma=2.0)
        assert model.kernel == Gaussian(gamma=2.0)

    def test_names_have_no_parameters(self):
        """A kernel given by its name has none of its own, which the message says in full."""
        with pytest.raises(ValueError) as found:
            SVC(kernel="rbf").set_params(kernel__gamma=1.0)
        assert str(found.value) == (
            "Invalid parameter 'kernel__gamma' for estimator SVC(): kernel='rbf' has no parameters of its own. Give a "
            "kernel object such as mercer.kernels.Gaussian()."
        )

    def test_unknown_parameters(self):
        """Neither an estimator nor a kernel takes parameters that it does not have."""
        with pytest.raises(ValueError, match="Invalid parameter 'penalty' for estimator SVC"):
            SVC().set_params(penalty=1)
        with pytest.raises(ValueError, match=r"Invalid parameter 'sigma' for kernel Gaussian\(gamma='scale'\)"):
            SVC(kernel=Gaussian()).set_params(kernel__sigma=1)

    def test_repr(self):
        """An estimator prints as the expression that builds it, without parameters that have their defaults."""
        assert (
            repr(SVC(C=2, kernel=0.5 * Gaussian(gamma=0.1) + 1)) == "SVC(C=2, kernel=0.5 * Gaussian(gamma=0.1) + 1.0)"
        )
        assert repr(NuSVR()) == "NuSVR()"
        assert "Gaussian" in SVC(kernel=Gaussian())._repr_html_()

    def test_tags(self):
        """scikit-learn knows what they are."""
        assert [is_classifier(e) for e in ESTIMATORS] == [True, True, False, False, False]
        assert [is_regressor(e) for e in ESTIMATORS] == [False, False, True, True, False]
        assert is_outlier_detector(OneClassSVM())
        pairwise = ["precomputed", Precomputed(), 2.0 * Precomputed() + 1.0, "2*precomputed() + 1"]
        assert [get_tags(SVC(kernel=kernel)).input_tags.pairwise for kernel in pairwise] == [True] * 4
        assert not get_tags(SVC(kernel="no kernel at all")).input_tags.pairwise


class TestPickle:
    @pytest.mark.parametrize(
        "kernel",
        ["rbf", "linear", "precomputed", Gaussian(gamma=0.2), linear_function],
        ids=lambda kernel: getattr(kernel, "__name__", repr(kernel)),
    )
    @every_estimator
    def test_predictions(self, estimator, kernel):
        """A copy from another process predicts the same bits, before the first prediction and after it."""
        X, y = iris()
        X = X @ X.T if kernel == "precomputed" else X
        model = clone(estimator).set_params(kernel=kernel)
        assert pickle.loads(pickle.dumps(model)).get_params() == model.get_params()
        model.fit(X, y)
        early = pickle.loads(pickle.dumps(model))
        expected = values(model, X).tobytes()
        late = pickle.loads(pickle.dumps(model))
        for copy in (early, late):
            assert values(copy, X).tobytes() == expected
            assert copy.certificate_ == model.certificate_

    def test_predicting_makes_no_larger_file(self):
        """Data that prediction prepares are not stored."""
        X, y = iris()
        model = SVC().fit(X, y)
        before = len(pickle.dumps(model))
        model.predict(X)
        assert len(pickle.dumps(model)) == before


class TestParallel:
    def test_threads(self):
        """Fits on several threads at once do not disturb each other."""
        X, y = load_breast_cancer(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        settings = [{"C": C, "gamma": gamma, "n_jobs": 2} for C in (0.1, 1.0, 10.0) for gamma in (0.01, 0.1)]
        expected = [SVC(**params).fit(X, y).decision_function(X) for params in settings]
        found = Parallel(n_jobs=4, backend="threading")(
            delayed(lambda params: SVC(**params).fit(X, y).decision_function(X))(params) for params in settings * 3
        )
        for one, other in zip(expected * 3, found, strict=True):
            np.testing.assert_array_equal(one, other)

    def test_pairs_on_threads(self):
        """Nor do fits of several classes, which use threads of their own."""
        X, y = iris()
        y = np.arange(len(y)) % 5  # ten pairs that are hard to tell apart
        expected = SVC(n_jobs=2).fit(X, y).dual_coef_
        found = Parallel(n_jobs=3, backend="threading")(delayed(SVC(n_jobs=2).fit)(X, y) for _ in range(6))
        for model in found:
            np.testing.assert_array_equal(model.dual_coef_, expected)

    def test_one_model_on_many_threads(self):
        """A fitted model can predict on several threads at once."""
        X, y = iris()
        model = SVC().fit(X, y)
        expected = clone(model).fit(X, y).predict(X)
        for labels in Parallel(n_jobs=4, backend="threading")(delayed(model.predict)(X) for _ in range(8)):
            np.testing.assert_array_equal(labels, expected)

    def test_workers_do_not_multiply(self):
        """Inside a joblib worker a fit takes one thread unless it is told otherwise."""
        assert thread_count(None) >= 1
        assert Parallel(n_jobs=2, backend="threading")(delayed(thread_count)(n) for n in (None, 3)) == [1, 3]


class TestSelection:
    def test_grid_search(self):
        """C and the parameters of a kernel object are searched together."""
        X, y = iris()
        grid = {"C": [0.1, 10.0], "kernel__gamma": [0.01, 0.5]}
        search = GridSearchCV(SVC(kernel=Gaussian()), grid, cv=3).fit(X, y)
        assert search.best_score_ > 0.95
        assert search.best_estimator_.kernel == Gaussian(gamma=search.best_params_["kernel__gamma"])
        assert search.predict(X).shape == y.shape

    def test_grid_search_of_a_sum(self):
        """Also of kernels inside kernels, and of whole kernels."""
        X, y = iris()
        kernel = Gaussian(gamma=0.1) + Linear()
        search = GridSearchCV(SVC(kernel=kernel), {"kernel__left__gamma": [0.1, 1.0]}, cv=3).fit(X, y)
        assert search.best_estimator_.kernel in (Gaussian(gamma=0.1) + Linear(), Gaussian(gamma=1.0) + Linear())
        search = GridSearchCV(SVC(), {"kernel": [Linear(), Gaussian(), "poly"]}, cv=3).fit(X, y)
        assert search.best_score_ > 0.95

    def test_pipeline(self):
        """Scaled columns in front of a machine, searched through the pipeline's names."""
        X, y = load_breast_cancer(return_X_y=True)
        pipeline = make_pipeline(StandardScaler(), SVC(kernel=Gaussian()))
        search = GridSearchCV(pipeline, {"svc__C": [1.0], "svc__kernel__gamma": [0.01, 0.1]}, cv=3).fit(X, y)
        assert search.best_score_ > 0.95
        X, y = load_diabetes(return_X_y=True)
        assert make_pipeline(StandardScaler(), SVR(C=100.0)).fit(X, y).score(X, y) > 0.5

    def test_calibration(self):
        """CalibratedClassifierCV turns decision values into probabilities."""
        X, y = iris()
        model = CalibratedClassifierCV(SVC(), ensemble=False).fit(X, y)
        probabilities = model.predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        assert (probabilities.argmax(axis=1) == y).mean() > 0.95

    @pytest.mark.parametrize("kernel", ["precomputed", Precomputed(), 2.0 * Precomputed()], ids=named)
    def test_precomputed(self, kernel):
        """Cross-validation cuts a precomputed matrix on both sides, and agrees with the kernel itself."""
        X, y = iris()
        K = rbf_kernel(X, gamma=0.2)
        C = 0.5 if kernel == 2.0 * Precomputed() else 1.0
        np.testing.assert_array_equal(
            cross_val_score(SVC(kernel=kernel, C=C), K, y, cv=4), cross_val_score(SVC(gamma=0.2), X, y, cv=4)
        )


class TestInput:
    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    @every_estimator
    def test_data_frames(self, estimator, frame):
        """Data frames are their numbers with names, which new samples must have, too."""
        X, y = iris()
        names = ["sepal length", "sepal width", "petal length", "petal width"]
        table = frame(dict(zip(names, X.T, strict=True)))
        target = (pd.Series if frame is pd.DataFrame else pl.Series)(y)
        model = clone(estimator).fit(table, target)
        assert model.feature_names_in_.tolist() == names
        assert model.n_features_in_ == 4
        np.testing.assert_array_equal(values(model, table), values(clone(estimator).fit(X, y), X))
        with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
            model.predict(table[names[::-1]])
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            model.predict(X)

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    def test_columns_by_name(self, frame):
        """A kernel may ask for columns by their names, among them some that are no numbers."""
        rng = np.random.default_rng(0)
        age, place = rng.normal(size=80), rng.choice(["hill", "sea"], 80)
        y = (age + (place == "sea") > 0.3).astype(int)
        same = CallableKernel(lambda a, b: np.equal.outer(np.asarray(a), np.asarray(b)).astype(float))
        table = frame({"age": age, "place": place})
        model = SVC(kernel=On("age", Gaussian(gamma=1.0)) + On("place", same), C=10.0).fit(table, y)
        assert model.score(table, y) > 0.95
        assert model.feature_names_in_.tolist() == ["age", "place"]
        K = np.exp(-(np.subtract.outer(age, age) ** 2)) + np.equal.outer(place, place)
        expected = SVC(kernel="precomputed", C=10.0).fit(K, y).decision_function(K)
        np.testing.assert_allclose(model.decision_function(table), expected, atol=0.01)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(table[["place", "age"]])

    @pytest.mark.parametrize("labels", [["a", "b", "c"], [10, -3, 7], [True, False], ["x", "y"]], ids=named)
    @pytest.mark.parametrize("estimator", [SVC(), NuSVC(nu=0.3)], ids=named)
    def test_labels(self, estimator, labels):
        """Labels are whatever can be sorted; predictions are labels."""
        X, y = iris()
        keep = y < len(labels)
        X, y = X[keep], np.array(labels)[y[keep]]
        model = clone(estimator).fit(X, y)
        assert model.classes_.tolist() == sorted(labels)
        assert model.predict(X).dtype == y.dtype
        assert model.score(X, y) > 0.9

    def test_objects(self):
        """With a kernel for them, samples are any objects: here sets in a list."""
        rng = np.random.default_rng(0)
        baskets = [set(rng.choice(list("abcdefgh"), size=4, replace=False)) for _ in range(60)]
        y = ["a" in basket for basket in baskets]
        overlap = CallableKernel(lambda X, Z: np.array([[len(x & z) for z in Z] for x in X], dtype=float))
        model = SVC(kernel=overlap).fit(baskets, y)
        assert model.score(baskets, y) == 1.0
        assert isinstance(model.support_vectors_, list)
        detector = OneClassSVM(kernel=overlap).fit(baskets)
        assert detector.predict(baskets[:3]).shape == (3,)

    def test_kernel_functions(self):
        """A function of two sets of samples is called as scikit-learn calls it, and is the kernel that it computes."""
        X, y = iris()
        model, expected = SVC(kernel=linear_function).fit(X, y), SVC(kernel="linear").fit(X, y)
        np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-9)
        np.testing.assert_array_equal(model.support_, expected.support_)

    @pytest.mark.parametrize("kernel", ["linear", Linear(), "linear()", "Linear"], ids=named)
    def test_coef_of_linear_kernels(self, kernel):
        """However a linear kernel is named, it has coef_; others have not."""
        X, y = iris()
        model = SVR(kernel=kernel).fit(X, y)
        np.testing.assert_allclose(model.predict(X), X @ model.coef_[0] + model.intercept_)
        with pytest.raises(ValueError, match="read-only"):
            model.coef_[0, 0] = 1.0
        assert not hasattr(SVR().fit(X, y), "coef_")
        assert not hasattr(SVR(kernel=kernel), "coef_")
