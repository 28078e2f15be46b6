"""Kernels that users write as functions: of two sets of samples, or of two samples."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import make_classification
from tests.naming import named

import mercer
from mercer import (
    SVC,
    SVCCV,
    SVR,
    GaussianProcessRegressor,
    KernelCentroid,
    KernelERM,
    KernelLMS,
    KernelLogisticRegression,
    KernelRidge,
    MKLClassifier,
    NuSVC,
    NuSVR,
    OneClassSVM,
    PegasosClassifier,
    Perceptron,
    RampSVC,
    certify,
)
from mercer.exceptions import InvalidInputError
from mercer.kernels import CallableKernel, Gaussian, Polynomial, Spectrum, check_mercer

X, y = make_classification(n_samples=80, n_features=4, flip_y=0.2, random_state=0)
# the classes overlap, and the perceptron says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
MATRIX_FUNCTIONS = [SVC, NuSVC, SVR, NuSVR, OneClassSVM, RampSVC, Perceptron, KernelCentroid, KernelLMS]
MATRIX_FUNCTIONS += [KernelERM, KernelLogisticRegression]
WITH_SUPPORT = [*MATRIX_FUNCTIONS, lambda **params: PegasosClassifier(random_state=0, max_iter=2, **params)]


def squared(x, z):
    """As lecture notes write a kernel."""
    return (1.0 + x @ z) ** 2


def squared_of_sets(A, B):
    """The same kernel of all pairs."""
    return (1.0 + A @ B.T) ** 2


SQUARED = Polynomial(degree=2, gamma=1.0, coef0=1.0)


class TestFunctionsOfTwoSamples:
    def test_the_message(self):
        """One error says what was found, what is allowed, and the next step."""
        with pytest.raises(ValueError) as error:
            SVC(kernel=squared).fit(X, y)
        assert isinstance(error.value, InvalidInputError)
        text = str(error.value)
        assert text.startswith(
            f"The kernel function squared compares two samples: for one pair it returned {squared(X[0], X[-1]):g}, but "
            "for two sets of samples it raised ValueError: "
        )
        assert "returns the matrix of all k(x, z)" in text and "CallableKernel(f, pairwise=True)" in text

    @pytest.mark.parametrize(
        "fit",
        [
            *(
                pytest.param(lambda kernel, est=est: est(kernel=kernel).fit(X, y), id=named(est))
                for est in (*MATRIX_FUNCTIONS, SVCCV)
            ),
            lambda kernel: PegasosClassifier(kernel=kernel).fit(X, y),
            lambda kernel: GaussianProcessRegressor(kernel=kernel).fit(X, y),
            lambda kernel: MKLClassifier(kernels=[kernel, "rbf"]).fit(X, y),
            lambda kernel: SVC(kernel=2.0 * CallableKernel(kernel)).fit(X, y),
            lambda kernel: check_mercer(kernel, X),
        ],
        ids=named,
    )
    def test_wherever_kernels_are_given(self, fit):
        """All estimators and check_mercer name the remedy."""
        with pytest.raises(InvalidInputError, match=r"compares two samples.*CallableKernel\(f, pairwise=True\)"):
            fit(squared)

    @pytest.mark.parametrize(
        ("function", "samples"),
        [
            (np.dot, X[:4]),  # as many samples as features: X @ X has the right shape
            (np.dot, X[:, :2]),  # a part of two samples has the right shape
            (np.dot, X[:2, :2]),
            (np.dot, X[:, :1]),
            (lambda x, z: np.sum(x * z), X),
            (lambda x, z: np.exp(-np.linalg.norm(x - z)), X[:4]),
            (lambda x, z: float(np.minimum(x, z).sum()), X[:1]),
            (lambda s, t: len(set(s) & set(t)), ["abc", "abd", "xyz", "a"]),
            (lambda s, t: len(s & t), [{1, 2}, {2, 3}, {1}]),
        ],
        ids=named,
    )
    def test_a_shape_that_is_right_by_accident(self, function, samples):
        """Sets of different sizes tell a function of two samples from one of two sets."""
        with pytest.raises(InvalidInputError, match="compares two samples"):
            check_mercer(function, samples)

    def test_values_that_depend_on_the_other_samples(self):
        """A kernel object must have the same value of a pair in any part of the matrix."""
        centred = CallableKernel(lambda A, B: (A - B.mean(axis=0)) @ (B - B.mean(axis=0)).T)
        with pytest.raises(InvalidInputError, match=r"whichever sets they are in, but for samples 0 and 79 it"):
            SVC(kernel=centred).fit(X, y)

    def test_errors_of_the_function_itself_are_shown(self):
        """A function that works on no samples at all raises its own error."""

        def broken(a, b):
            raise KeyError("no table of costs")

        with pytest.raises(KeyError, match="no table of costs"):
            SVC(kernel=broken).fit(X, y)


class TestPairwise:
    @pytest.mark.parametrize("estimator", [*WITH_SUPPORT, GaussianProcessRegressor, KernelRidge], ids=named)
    def test_the_same_model_as_the_kernel_of_sets(self, estimator):
        """Whether a kernel is computed pair by pair changes rounding only."""
        # to the default tol, rounding may choose another of the models that meet it
        exact = {"tol": 1e-7} if "tol" in estimator().get_params() else {}
        pairwise = estimator(kernel=CallableKernel(squared, pairwise=True), **exact).fit(X, y)
        sets = estimator(kernel=CallableKernel(squared_of_sets), **exact).fit(X, y)
        np.testing.assert_allclose(pairwise.predict(X[:9]), sets.predict(X[:9]), atol=1e-3)

    @pytest.mark.parametrize(
        ("function", "samples", "expected"),
        [
            (lambda s, t: Spectrum(2)([s], [t])[0, 0], ["abc", "abd", "xabx"], Spectrum(2)),
            (lambda x, z: float(x @ z), sp.csr_array(X[:5]), lambda A: (A @ A.T).toarray()),
            (lambda x, z: x["a"] * z["a"], [{"a": 1.0}, {"a": 3.0}], lambda A: np.array([[1.0, 3.0], [3.0, 9.0]])),
            (lambda x, z: x == z, [1, 2, 1], lambda A: np.equal.outer(A, A).astype(float)),
        ],
        ids=named,
    )
    def test_any_samples(self, function, samples, expected):
        """Strings, rows of sparse matrices, records, numbers: whatever the function compares."""
        kernel = CallableKernel(function, pairwise=True)
        np.testing.assert_allclose(kernel(samples), expected(samples))

    def test_data_frames(self):
        """A sample of a data frame is its row, by the names of the columns."""
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
        kernel = CallableKernel(lambda x, z: x["a"] * z["a"] + x["b"] * z["b"], pairwise=True)
        np.testing.assert_allclose(kernel(frame), frame.to_numpy() @ frame.to_numpy().T)

    def test_the_gram_matrix_uses_symmetry(self):
        """Little more than half of the values of the training matrix are computed."""
        from mercer.gram.operator import GramOperator

        calls = []

        def counted(x, z):
            calls.append(1)
            return squared(x, z)

        kernel = CallableKernel(counted, pairwise=True)
        K = GramOperator(kernel, kernel.prepare(X)).dense()
        np.testing.assert_allclose(K, squared_of_sets(X, X), rtol=1e-12, atol=1e-14 * K.max())
        assert len(calls) < 0.6 * len(X) ** 2

    def test_prediction_compares_with_support_vectors_alone(self):
        """A new sample costs one call for each support vector."""
        calls = []

        def counted(x, z):
            calls.append(1)
            return squared(x, z)

        model = SVC(kernel=CallableKernel(counted, pairwise=True)).fit(X, y)
        calls.clear()
        model.predict(X[:3])
        assert len(calls) == 3 * len(model.support_) < 3 * len(X)

    def test_it_is_a_value(self):
        """Equal functions called in the same way are equal kernels, and the expression says how they are called."""
        kernel = CallableKernel(squared, pairwise=True)
        assert kernel == CallableKernel(squared, pairwise=True) != CallableKernel(squared)
        assert repr(kernel) == "CallableKernel(squared, pairwise=True)"
        assert pickle.loads(pickle.dumps(kernel)) == kernel

    def test_models(self, tmp_path):
        """A model with it can be pickled and certified; a model file holds no code."""
        model = SVC(kernel=CallableKernel(squared, pairwise=True), tol=1e-6).fit(X, y)
        assert certify(model, X, y).relative_gap < 1e-5
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        with pytest.raises(InvalidInputError, match="holds no code"):
            mercer.save(model, tmp_path / "model.mercer")

    def test_a_function_of_sets_is_refused(self):
        """The message says that pairwise=True is wrong."""
        of_sets = CallableKernel(lambda A, B: (A[:, None] * B[None, :]).sum(axis=2), pairwise=True)
        with pytest.raises(InvalidInputError, match=r"compares two sets of samples.*without pairwise=True"):
            SVC(kernel=of_sets).fit(X, y)
        with pytest.raises(InvalidInputError, match=r"needs a function f\(x, z\) that returns a number"):
            CallableKernel("rbf", pairwise=True)

    def test_numbers_only(self):
        """Each pair has one real number."""
        with pytest.raises(InvalidInputError, match=r"one real number.*returned an array of shape \(4,\)"):
            CallableKernel(lambda x, z: x * z, pairwise=True)(X)
        with pytest.raises(InvalidInputError, match="returned complex128 in place of real numbers"):
            CallableKernel(lambda x, z: 1j, pairwise=True)(X)


class TestPredictionNeedsSupportVectorsAlone:
    @pytest.mark.parametrize("estimator", WITH_SUPPORT, ids=named)
    def test_the_function_sees_support_vectors(self, estimator):
        """predict calls a kernel function with the new samples and the support vectors."""
        calls = []

        def function(A, B):
            calls.append((len(A), len(B)))
            return squared_of_sets(A, B)

        model = estimator(kernel=function).fit(X, y)
        calls.clear()
        found = model.predict(X[:7])
        assert calls == [(7, len(model.support_))]
        assert model.support_vectors_.shape == (0, 0)  # as in scikit-learn
        np.testing.assert_allclose(
            found, estimator(kernel=CallableKernel(function)).fit(X, y).predict(X[:7]), atol=1e-3
        )

    def test_several_classes(self):
        """Support vectors are numbered class by class."""
        classes = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-1.0, 0.0, 1.0])
        model, expected = (SVC(kernel=k).fit(X, classes) for k in (squared_of_sets, SQUARED))
        assert len(model.support_) < len(X)
        np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=5e-3)

    def test_it_stays_certified(self):
        """certify and the conversions to and from scikit-learn know which samples the support vectors are."""
        model = SVC(kernel=squared_of_sets, tol=1e-6).fit(X, y)
        assert certify(model, X, y).relative_gap < 1e-5
        for other in (mercer.to_sklearn(model), mercer.from_sklearn(sklearn.svm.SVC(kernel=squared_of_sets).fit(X, y))):
            np.testing.assert_allclose(other.decision_function(X), model.decision_function(X), atol=5e-3)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))

    def test_no_support_vectors(self):
        """A model that is a constant calls no function."""
        model = SVR(kernel=squared_of_sets, epsilon=10.0).fit(X, y)
        assert len(model.support_) == 0
        np.testing.assert_allclose(model.predict(X), model.intercept_[0])

    def test_functions_of_the_whole_training_set(self):
        """Where values depend on all samples of the second set, predictions are scikit-learn's all the same."""

        def centred(A, B):
            mean = B.mean(axis=0)
            return (A - mean) @ (B - mean).T

        shifted = X + 3.0
        ours, theirs = (package.SVC(kernel=centred, tol=1e-8).fit(shifted, y) for package in (mercer, sklearn.svm))
        assert len(ours.support_) < len(X)
        np.testing.assert_allclose(ours.decision_function(shifted), theirs.decision_function(shifted), atol=1e-5)

    def test_the_gaussian_kernel_as_a_function(self):
        """A kernel of mercer's called as a function gives the same model."""
        gaussian = Gaussian(0.3)
        model, expected = (SVC(kernel=k).fit(X, y) for k in (lambda A, B: gaussian(A, B), gaussian))
        np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-3)
