"""Input that cannot be used is refused in words that help; input that is merely odd is fitted; nothing hangs."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError
from tests.naming import named

from mercer import (
    SVC,
    SVCCV,
    SVR,
    LinearSVC,
    LinearSVCCV,
    MKLClassifier,
    NuSVC,
    NuSVCCV,
    NuSVR,
    OneClassSVM,
    PegasosClassifier,
    Perceptron,
    RampSVC,
)
from mercer.exceptions import (
    InfeasibleNuError,
    InvalidInputError,
    NotPositiveSemidefiniteError,
    NotPositiveSemidefiniteWarning,
    NotSymmetricError,
)
from mercer.kernels import CallableKernel, Chi2, Gaussian, Normalized, On, Precomputed
from mercer.kernels.parse import ALIASES, KERNELS, PRESETS

WITH_CLASS_WEIGHT = [
    SVC, NuSVC, RampSVC, MKLClassifier, LinearSVC, PegasosClassifier, Perceptron, SVCCV, NuSVCCV, LinearSVCCV
]  # fmt: skip
ESTIMATORS = [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM()]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
NOT_FINITE = "The dual coefficients or intercepts are not finite. The input data may contain large values"


def sample(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)


def message_of(kind, call):
    """The whole message of the error that a call raises, which is of exactly this kind."""
    with pytest.raises(kind) as found:
        call()
    assert type(found.value) is kind
    return str(found.value)


def assert_fitted(model, X):
    """It has converged, and predicts numbers."""
    assert model.fit_status_ == 0
    assert np.isfinite(model.predict(X)).all()
    assert model.certificate_.valid


class TestSamples:
    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("store", [np.asarray, sp.csr_array, np.float32])
    @every_estimator
    def test_missing_and_infinite(self, estimator, store, bad):
        """NaN and infinity are refused by fit and by predict."""
        X, y = sample()
        broken = X.copy()
        broken[3, 1] = bad
        words = "Input X contains NaN" if np.isnan(bad) else "Input X contains infinity or a value too large"
        with pytest.raises(ValueError, match=words):
            clone(estimator).fit(store(broken), y)
        model = clone(estimator).fit(store(X), y)
        with pytest.raises(ValueError, match=words):
            model.predict(store(broken))

    @every_estimator
    def test_shapes(self, estimator):
        """Samples are the rows of a matrix, one for each target."""
        X, y = sample()
        for broken, words in (
            (np.empty((0, 3)), r"Found array with 0 sample\(s\)"),
            (np.empty((60, 0)), r"Found array with 0 feature\(s\)"),
            (X[:, 0], "Expected 2D array, got 1D array instead"),
            (X[None], "Found array with dim 3"),
            (5.0, "Expected 2D array, got scalar array instead"),
        ):
            with pytest.raises(ValueError, match=words):
                clone(estimator).fit(broken, y[: np.shape(broken)[0] if np.ndim(broken) else 1])
        if not isinstance(estimator, OneClassSVM):
            with pytest.raises(ValueError, match="Found input variables with inconsistent numbers of samples"):
                clone(estimator).fit(X, y[:-1])

    @every_estimator
    def test_not_numbers(self, estimator):
        """Texts that are no numbers are refused; complex numbers, too."""
        with pytest.raises(ValueError, match="could not convert string to float: 'a'"):
            clone(estimator).fit([["a", "b"], ["c", "d"]], [0, 1])
        with pytest.raises(ValueError, match="Complex data not supported"):
            clone(estimator).fit(np.array([[1j], [2j]]), [0, 1])

    @pytest.mark.parametrize("kind", [int, bool, object, np.int8, np.uint16, np.float16, np.longdouble])
    def test_kinds_of_numbers(self, kind):
        """Other kinds of numbers are those numbers."""
        X, y = sample()
        X = (2 * np.abs(X)).astype(kind)
        np.testing.assert_array_equal(
            SVC().fit(X, y).decision_function(X), SVC().fit(X.astype(float), y).decision_function(X.astype(float))
        )

    @every_estimator
    def test_number_of_features(self, estimator):
        """New samples must have as many features as the old ones."""
        X, y = sample()
        model = clone(estimator).fit(X, y)
        name = type(estimator).__name__
        expected = f"X has 2 features, but {name} is expecting 3 features as input."
        assert message_of(ValueError, lambda: model.predict(X[:, :2])) == expected

    @every_estimator
    def test_not_fitted(self, estimator):
        """Nothing can be predicted before a fit."""
        X, _ = sample()
        name = type(estimator).__name__
        expected = (
            f"This {name} instance is not fitted yet. Call 'fit' with appropriate arguments before using this "
            "estimator."
        )
        assert message_of(NotFittedError, lambda: clone(estimator).predict(X)) == expected
        for attribute in ("n_support_", "coef_", "certificate_"):
            assert not hasattr(clone(estimator), attribute)

    def test_objects(self):
        """Objects are counted, but not examined."""
        kernel = CallableKernel(lambda X, Z: np.array([[float(x == z) for z in Z] for x in X]))
        expected = "Found array with 0 sample(s) while a minimum of 1 is required by SVC."
        assert message_of(InvalidInputError, lambda: SVC(kernel=kernel).fit([], [])) == expected
        expected = "SVC requires y to be passed, but the target y is None."
        assert message_of(InvalidInputError, lambda: SVC(kernel=kernel).fit(["a", "b"], None)) == expected
        with pytest.raises(ValueError, match="Found input variables with inconsistent numbers of samples"):
            SVC(kernel=kernel).fit(["a", "b"], [0, 1, 1])
        with pytest.raises(ValueError, match="Input y contains NaN"):
            SVR(kernel=kernel).fit(["a", "b"], [0.0, np.nan])


class TestTargets:
    @pytest.mark.parametrize("estimator", [SVC(), NuSVC()], ids=named)
    def test_one_class(self, estimator):
        """A classifier needs two classes."""
        X, _ = sample()
        expected = "The number of classes has to be greater than one; got 1 class"
        assert message_of(InvalidInputError, lambda: clone(estimator).fit(X, np.ones(60))) == expected

    @pytest.mark.parametrize("estimator", [SVC(), NuSVC(), SVR(), NuSVR()], ids=named)
    def test_shapes(self, estimator):
        """Targets are a vector; a column is one, with a warning; none at all is an error."""
        X, y = sample()
        name = type(estimator).__name__
        expected = f"This {name} estimator requires y to be passed, but the target y is None."
        assert message_of(ValueError, lambda: clone(estimator).fit(X, None)) == expected
        with pytest.raises(ValueError, match=r"y should be a 1d array, got an array of shape \(60, 2\) instead"):
            clone(estimator).fit(X, np.column_stack([y, y]))
        with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
            model = clone(estimator).fit(X, y[:, None])
        np.testing.assert_array_equal(model.dual_coef_, clone(estimator).fit(X, y).dual_coef_)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    @pytest.mark.parametrize("estimator", [SVC(), SVR(), NuSVR()], ids=named)
    def test_missing_and_infinite(self, estimator, bad):
        """NaN and infinity are no targets."""
        X, y = sample()
        y = np.where(np.arange(60) == 3, bad, y)
        with pytest.raises(ValueError, match="Input y contains"):
            clone(estimator).fit(X, y)

    def test_numbers_are_no_labels(self):
        """A classifier refuses the targets of a regression."""
        X, _ = sample()
        with pytest.raises(ValueError, match="Unknown label type: continuous"):
            SVC().fit(X, X[:, 0])

    def test_labels_of_several_types(self):
        """Names beside None are an error that lists their types."""
        X, _ = sample()
        with pytest.raises(InvalidInputError, match="cannot be compared: their types are NoneType, str"):
            SVC().fit(X, np.array(["spam", None] * 30, dtype=object))

    @pytest.mark.parametrize("estimator", [SVR(), SVR(epsilon=0.0), NuSVR()], ids=named)
    def test_constant(self, estimator):
        """A constant is predicted as itself, to within epsilon."""
        X, _ = sample()
        model = clone(estimator).fit(X, np.full(60, 7.0))
        np.testing.assert_allclose(model.predict(X), 7.0, atol=1e-3)

    @pytest.mark.parametrize("size", [1e-30, 1e30, 1e200])
    def test_sizes(self, size):
        """Targets of any size are fitted in their own unit."""
        X, _ = sample()
        model = SVR(C=1.0, epsilon=0.0, kernel="linear").fit(X, size * X[:, 0])
        assert np.isfinite(model.predict(X)).all()


class TestMatrices:
    def matrix(self):
        X, y = sample()
        return X @ X.T, y

    @every_estimator
    def test_sparse(self, estimator):
        """A sparse kernel matrix is refused, in scikit-learn's words."""
        K, y = self.matrix()
        model = clone(estimator).set_params(kernel="precomputed")
        expected = "Sparse precomputed kernels are not supported."
        assert message_of(TypeError, lambda: model.fit(sp.csr_array(K), y)) == expected

    @every_estimator
    def test_not_square(self, estimator):
        """A kernel matrix is square."""
        K, y = self.matrix()
        model = clone(estimator).set_params(kernel="precomputed")
        expected = "Precomputed matrix must be a square matrix. Input is a 60x10 matrix."
        assert message_of(InvalidInputError, lambda: model.fit(K[:, :10], y)) == expected

    @every_estimator
    def test_columns_of_new_samples(self, estimator):
        """New samples need their kernel values with all training samples."""
        K, y = self.matrix()
        model = clone(estimator).set_params(kernel="precomputed").fit(K, y)
        with pytest.raises(ValueError, match=r"X has 10 features, but \w+ is expecting 60 features as input"):
            model.predict(K[:, :10])

    @pytest.mark.parametrize("n", [60, 700])
    def test_not_symmetric(self, n):
        """The largest difference is named."""
        X, y = sample(n)
        K = X @ X.T
        K[n - 2, 5] += 0.25
        K[3, 7] += 0.5
        for kernel in ("precomputed", Precomputed(), lambda a, b: K):
            with pytest.raises(NotSymmetricError) as found:
                SVC(kernel=kernel).fit(K, y)
            error = found.value
            assert (error.i, error.j, error.k_ij, error.k_ji) == (3, 7, K[3, 7], K[7, 3])
            assert str(error) == (
                f"The kernel matrix is not symmetric: K[3, 7] = {K[3, 7]:.9g}, but K[7, 3] = {K[7, 3]:.9g}. A kernel "
                "must not depend on the order of its arguments: correct it, or use (K + K.T) / 2."
            )

    def test_rounding_is_symmetric_enough(self):
        """A matrix that float32 arithmetic has made is taken, without a warning."""
        X, y = sample(300)
        K = X.astype(np.float32) @ X.T.astype(np.float32)
        K[0, 1] *= 1 + 2e-7
        assert_fitted(SVC(kernel="precomputed").fit(K, y), K)

    @pytest.mark.parametrize("n", [60, 700])
    @every_estimator
    def test_indefinite(self, estimator, n):
        """An indefinite matrix is fitted with a warning that holds the numbers; the certificate bounds nothing."""
        X, y = sample(n)
        K = X @ X.T - 5.0 * np.eye(n)
        model = clone(estimator).set_params(kernel="precomputed")
        with pytest.warns(NotPositiveSemidefiniteWarning) as found:
            model.fit(K, y)
        part = min(n, 300)
        words = str(found[0].message)
        assert words.startswith(
            f"The kernel matrix is not positive semidefinite: the smallest eigenvalue of {part} of its {n} rows is -5, "
            "the largest "
        )
        assert words.endswith(
            "The fit ends at a stationary point and its certificate bounds nothing. Use another kernel, or add 5 to "
            "the "
            "diagonal."
        )
        assert found[0].filename == __file__
        assert not model.certificate_.valid
        assert model.certificate_.reason == "the kernel is not positive semidefinite"
        assert np.isfinite(model.predict(K)).all()

    @pytest.mark.filterwarnings("ignore::mercer.exceptions.NotPositiveSemidefiniteWarning")
    @pytest.mark.parametrize(
        "estimator",
        [SVC(loss="squared_hinge"), SVC(C=np.inf), SVR(loss="squared_epsilon_insensitive"), SVR(C=np.inf)],
        ids=named,
    )
    def test_indefinite_without_bounds(self, estimator):
        """Where nothing bounds the coefficients, an indefinite matrix has no optimum at all."""
        X, y = sample()
        K = X @ X.T - 5.0 * np.eye(60)
        with pytest.raises(NotPositiveSemidefiniteError) as error:
            clone(estimator).set_params(kernel="precomputed").fit(K, y)
        largest = np.linalg.eigvalsh(K).max()
        assert str(error.value) == (
            "The kernel matrix is not positive semidefinite: its smallest eigenvalue is -5, its largest "
            f"{largest:.4g}. The optimum need not exist or be unique: choose another kernel, or add at least 5 to the "
            "diagonal."
        )

    @pytest.mark.parametrize("n", [60, 450, 600, 2000])
    @pytest.mark.parametrize("gamma", ["auto", 7.4])
    def test_sigmoid_without_bounds(self, n, gamma):
        """Whether it is solved on the whole matrix or by rows, what runs away is an error, not a model of 1e160."""
        rng = np.random.default_rng(n)
        X = rng.normal(size=(n, 20))
        y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1, -1)
        for estimator in (SVC(loss="squared_hinge", C=200), SVR(loss="squared_epsilon_insensitive", C=200)):
            with pytest.raises(NotPositiveSemidefiniteError, match="smallest eigenvalue is -"):
                estimator.set_params(kernel="sigmoid", gamma=gamma).fit(X, y)

    def test_kernels_that_are_known_not_to_be_definite(self):
        """The sigmoid kernel needs no examination: its certificate bounds nothing."""
        X, y = sample()
        model = SVC(kernel="sigmoid").fit(X, y)
        assert not model.certificate_.valid

    def test_functions(self):
        """A function must return a finite matrix of the right shape, and be symmetric."""
        X, y = sample()
        expected = (
            "The kernel function returned an array of shape (3, 3) for 60 and 60 samples: it must return a matrix of "
            "shape (60, 60), one row for each sample of its first argument."
        )
        assert message_of(InvalidInputError, lambda: SVC(kernel=lambda a, b: np.ones((3, 3))).fit(X, y)) == expected
        missing = lambda a, b: np.full((len(a), len(b)), np.nan)  # noqa: E731
        advice = "Return finite numbers, or scale the samples."
        expected = f"The kernel function returned values that are NaN or infinite. {advice}"
        assert message_of(InvalidInputError, lambda: SVC(kernel=missing).fit(X, y)) == expected
        kernel = CallableKernel(missing)
        expected = f"{kernel!r} returned values that are NaN or infinite. {advice}"
        assert message_of(InvalidInputError, lambda: SVC(kernel=kernel).fit(X, y)) == expected
        with pytest.raises(NotSymmetricError):
            SVC(kernel=CallableKernel(lambda a, b: a[:, :1] * np.ones(len(b)))).fit(X, y)
        with pytest.warns(NotPositiveSemidefiniteWarning):
            SVC(kernel=CallableKernel(lambda a, b: -a @ b.T)).fit(X, y)


class TestParameters:
    def test_unknown_kernel(self):
        """The message lists all names, and guesses which one was meant."""
        X, y = sample()
        joined = {alias.replace("_", "") for alias in ALIASES if "_" in alias}  # power_series, not powerseries too
        known = ", ".join(sorted([*(set(KERNELS) - joined), *ALIASES, *PRESETS]))
        assert {"linear", "poly", "rbf", "sigmoid", "precomputed", "gaussian"} <= set(known.split(", "))
        expected = (
            "Cannot read the kernel 'gausian' at position 1: there is no kernel 'gausian'. Did you mean 'gaussian'? "
            f"Known kernels: {known}."
        )
        assert message_of(InvalidInputError, lambda: SVC(kernel="gausian").fit(X, y)) == expected

    def test_a_class_is_no_kernel(self):
        """The parentheses are missing."""
        X, y = sample()
        expected = "kernel=Gaussian is a class, not a kernel: write Gaussian()."
        assert message_of(InvalidInputError, lambda: SVC(kernel=Gaussian).fit(X, y)) == expected

    def test_other_domains(self):
        """A kernel says which samples it is for."""
        X, y = sample()
        with pytest.raises(InvalidInputError, match="Chi2 compares histograms: it needs non-negative features"):
            SVC(kernel=Chi2()).fit(X, y)
        with pytest.raises(InvalidInputError, match="chooses columns by name, but the samples are of type ndarray"):
            SVC(kernel=On("age", Gaussian())).fit(X, y)
        with pytest.raises(InvalidInputError, match=r"needs column 7, but the samples have 3 columns"):
            SVC(kernel=On(7, Gaussian())).fit(X, y)
        with pytest.raises(InvalidInputError, match="has 2 widths, but the samples have 3 features"):
            SVC(gamma=(1.0, 2.0)).fit(X, y)
        expected = (
            "Normalized(Precomputed()) needs more than the rows of a kernel matrix to predict. Compute its matrix, and "
            "use kernel='precomputed'."
        )
        assert message_of(InvalidInputError, lambda: SVC(kernel=Normalized(Precomputed())).fit(X @ X.T, y)) == expected

    @pytest.mark.parametrize(
        ("estimator", "words"),
        [
            (SVC(C=0.0), r"The 'C' parameter of SVC must be a float in the range \(0.0, inf\]. Got 0.0"),
            (SVC(C=np.nan), "The 'C' parameter of SVC"),
            (NuSVR(C=np.inf), r"The 'C' parameter of NuSVR must be a float in the range \(0.0, inf\)"),
            (NuSVC(nu=0.0), r"The 'nu' parameter of NuSVC must be a float in the range \(0.0, 1.0\]. Got 0.0"),
            (OneClassSVM(nu=1.1), "The 'nu' parameter of OneClassSVM"),
            (SVC(tol=0.0), "The 'tol' parameter of SVC"),
            (SVC(gamma=-1.0), "The 'gamma' parameter of SVC"),
            (SVC(kernel=None), "The 'kernel' parameter of SVC"),
            (SVC(loss="hing"), "The 'loss' parameter of SVC"),
            (SVC(time_limit=-1.0), "The 'time_limit' parameter of SVC"),
            (SVC(solver="simplex"), "The 'solver' parameter of SVC"),
            (SVC(cache_size=0), "The 'cache_size' parameter of SVC"),
            (SVR(epsilon=-0.1), "The 'epsilon' parameter of SVR"),
            (SVC(n_jobs=0), "n_jobs=0 has no meaning: give a number of threads, -1 for all cores, or None."),
            (SVC(class_weight={5: 1.0}), r"The classes, \[0, 1\], are not in class_weight"),
        ],
        ids=lambda value: repr(value) if hasattr(value, "fit") else "",
    )
    def test_values(self, estimator, words):
        """Parameters out of range are named, with what is allowed and what was found."""
        X, y = sample()
        with pytest.raises(ValueError, match=words):
            estimator.fit(X, y)

    def test_infeasible_nu(self):
        """The largest feasible nu is named, and feasible."""
        X, _ = sample()
        y = np.where(np.arange(60) < 6, "few", "many")
        with pytest.raises(InfeasibleNuError) as found:
            NuSVC(nu=0.9).fit(X, y)
        error = found.value
        assert (error.nu, error.nu_max, error.n_positive, error.n_negative) == (0.9, 0.2, 6.0, 54.0)
        assert str(error) == (
            "specified nu is infeasible: nu=0.9, but with 6 positive and 54 negative samples it must be at most 0.2. "
            "Lower nu, or use SVC with class_weight."
        )
        assert NuSVC(nu=error.nu_max).fit(X, y).fit_status_ == 0

    def test_no_nu_is_feasible_for_a_class_without_weight(self):
        """The advice is not to lower nu."""
        X, _ = sample()
        y = np.arange(60) % 3
        with pytest.raises(InfeasibleNuError) as found:
            NuSVC(nu=0.1).fit(X, y, sample_weight=(y > 0).astype(float))
        assert str(found.value) == (
            "specified nu is infeasible: with 0 positive and 20 negative samples of positive weight no nu is feasible. "
            "Remove the class without weight, or use SVC."
        )

    @pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, None], ids=named)
    @pytest.mark.parametrize("kind", [SVC, NuSVC, LinearSVC, SVCCV, LinearSVCCV, PegasosClassifier, MKLClassifier])
    def test_weights_of_classes(self, kind, weight):
        """Weights of classes that no sample can have are named; LIBLINEAR would leave the class out."""
        X, y = sample()
        label = np.unique(y)[0]
        found = message_of(InvalidInputError, lambda: kind(class_weight={label: weight}).fit(X, y))
        assert found == (
            f"class_weight gives the class {label} the weight {np.float64(weight):g}: class weights must be "
            "finite and not negative."
        )

    @pytest.mark.parametrize("kind", WITH_CLASS_WEIGHT)
    @pytest.mark.parametrize(
        "of_last,found", [(0, "every class has the weight 0"), (1, "only the class 2 has a positive weight")]
    )
    def test_class_weights_that_leave_less_than_two_classes(self, kind, of_last, found):
        """Every classifier says so, where scikit-learn fits a model of nothing or speaks of infinite coefficients."""
        X, y = sample()[0], np.arange(60) % 3
        weights = {0: 0, 1: 0, 2: of_last}
        assert message_of(InvalidInputError, lambda: kind(class_weight=weights).fit(X, y)) == (
            f"class_weight={weights} leaves no two classes to separate: {found}. Give at least two of the 3 classes a "
            "positive weight, or use class_weight=None."
        )

    @pytest.mark.parametrize("kind", [SVC, LinearSVC, RampSVC, SVCCV, PegasosClassifier, Perceptron])
    def test_class_weights_and_sample_weights_that_leave_one_class(self, kind):
        """Each leaves two of three classes, both together one."""
        X, y = sample()[0], np.arange(60) % 3
        with pytest.raises(InvalidInputError, match="all samples with positive weights belong to the same class"):
            kind(class_weight={0: 0}).fit(X, y, sample_weight=(y != 1).astype(float))

    def test_class_weights_of_parts(self):
        """partial_fit refuses them at its first call."""
        X, y = sample()
        with pytest.raises(InvalidInputError, match="no two classes to separate: only the class 0 has a positive"):
            PegasosClassifier(class_weight={1: 0}).partial_fit(X, y, classes=[0, 1])

    def test_balanced_classes_of_which_one_has_no_weight(self):
        """The other classes are balanced as if it were not there."""
        X, _ = sample()
        y, weight = np.arange(60) % 3, np.arange(60.0)
        weight[y == 0] = 0.0
        model = LinearSVC(class_weight="balanced").fit(X, y, sample_weight=weight)
        total = np.bincount(y, weight)
        assert model.class_weight_[1] * total[1] == pytest.approx(model.class_weight_[2] * total[2])
        assert np.isfinite(model.class_weight_).all() and not np.any(model.predict(X) == 0)

    def test_labels_of_bytes(self):
        """Refused in scikit-learn's words, whose metrics do not know them either."""
        X, y = sample()
        labels = np.where(y == y[0], b"a", b"b")
        for kind in (SVC, LinearSVC):
            with pytest.raises((TypeError, FutureWarning), match="Support for labels represented as bytes is "):
                kind().fit(X, labels)

    def test_balanced_classes_make_nu_feasible(self):
        """Unlike scikit-learn's, our NuSVC respects class_weight: balanced classes allow any nu."""
        X, _ = sample()
        assert_fitted(NuSVC(nu=0.9, class_weight="balanced").fit(X, np.arange(60) < 6), X)

    def test_nu_of_one(self):
        """nu=1 puts all weight on every sample."""
        X, _ = sample()
        y = np.arange(60) % 2
        for estimator in (NuSVC(nu=1.0), OneClassSVM(nu=1.0), NuSVR(nu=1.0)):
            assert_fitted(estimator.fit(X, y), X)
        np.testing.assert_array_equal(OneClassSVM(nu=1.0).fit(X).dual_coef_, np.ones((1, 60)))

    def test_the_qp_solver_is_for_small_problems(self):
        """It says where its limit is."""
        expected = "solver='qp' factors a dense matrix of all 5001 variables: it takes at most 5000. Use solver='auto'."
        X, y = np.arange(5001.0)[:, None], np.arange(5001) % 2
        assert message_of(InvalidInputError, lambda: SVC(solver="qp").fit(X, y)) == expected

    @pytest.mark.filterwarnings("ignore:The optimality conditions hold to within tol")
    @pytest.mark.parametrize("C", [1e-8, 1e-4, 1e4, 1e8])
    @pytest.mark.parametrize("estimator", [SVC(), SVC(loss="squared_hinge"), SVR(), NuSVR()], ids=named)
    def test_sizes_of_C(self, estimator, C):
        """Tiny and huge C are fitted within tol."""
        X, y = sample()
        model = clone(estimator).set_params(C=C).fit(X, y)
        assert_fitted(model, X)
        assert model.certificate_.kkt_violation <= 1e-3


class TestWeights:
    @pytest.mark.parametrize(
        ("weight", "expected"),
        [
            (np.zeros(60), "Invalid input - all samples have zero or negative weights."),
            (-np.ones(60), "Invalid input - all samples have zero or negative weights."),
            (np.full(60, np.nan), "Input sample_weight contains NaN or infinity."),
            (np.full(60, np.inf), "Input sample_weight contains NaN or infinity."),
            (np.ones((60, 1)), "Sample weights must be 1D array or scalar"),
            (
                np.ones(59),
                "sample_weight and X have incompatible shapes: (59,) vs (60, 3)\n"
                "Note: Sparse matrices cannot be indexed w/boolean masks (use `indices=True` in CV).",
            ),
        ],
        ids=["zeros", "negative", "nan", "inf", "column", "short"],
    )
    @every_estimator
    def test_refused(self, estimator, weight, expected):
        """Weights are finite numbers, one for each sample, some of them positive."""
        X, y = sample()
        fit = clone(estimator).fit
        assert message_of(InvalidInputError, lambda: fit(X, y, sample_weight=weight)) == expected

    @every_estimator
    def test_negative_means_none(self, estimator):
        """As in scikit-learn, a sample of negative weight is left out."""
        X, y = sample()
        some = np.where(np.arange(60) % 3 == 0, -1.0, 1.0)
        one = clone(estimator).fit(X, y, sample_weight=some)
        other = clone(estimator).fit(X, y, sample_weight=np.maximum(some, 0.0))
        np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
        assert (some[one.support_] > 0).all()

    def test_a_class_without_weight(self):
        """Of two classes both need weight; of three the one without never wins."""
        X, y = sample()
        expected = (
            "Invalid input - all samples with positive weights belong to the same class, but there must be at least "
            "two."
        )
        assert message_of(InvalidInputError, lambda: SVC().fit(X, y, sample_weight=y)) == expected
        three = np.where(X[:, 1] > 0.5, 2, y)
        model = SVC().fit(X, three, sample_weight=three != 2)
        assert model.classes_.tolist() == [0, 1, 2]
        assert set(model.predict(X)) == {0, 1}
        assert model.n_support_[2] == 0
        assert len(model.rkhs_norm_) == len(model.margin_) == 3
        with pytest.raises(InfeasibleNuError):
            NuSVC().fit(X, three, sample_weight=three != 2)


class TestOddData:
    @every_estimator
    def test_constant_columns(self, estimator):
        """A column that never changes is as good as none."""
        X, y = sample()
        model = clone(estimator).set_params(gamma=0.3, tol=1e-9)
        expected = clone(model).fit(X, y).dual_coef_
        np.testing.assert_allclose(model.fit(np.column_stack([X, np.full(60, 5.0)]), y).dual_coef_, expected, atol=1e-6)

    @pytest.mark.filterwarnings("ignore:Solver stopped where rounding:sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
    @pytest.mark.parametrize("size", [1e-8, 1e8, 1e50])
    @every_estimator
    def test_columns_of_other_sizes(self, estimator, size, kernel):
        """Columns that are 1e8 times as large or small as the others: the fit ends, and says how far it got."""
        X, y = sample()
        X[:, 2] *= size
        model = clone(estimator).set_params(kernel=kernel).fit(X, y)
        assert np.isfinite(model.predict(X)).all()
        assert model.certificate_.valid

    @pytest.mark.parametrize("size", [1e-30, 1e-8, 1e8, 1e30])
    @every_estimator
    def test_units(self, estimator, size):
        """With gamma="scale" the unit of the samples makes no difference."""
        X, y = sample()
        model, expected = clone(estimator).fit(X * size, y), clone(estimator).fit(X, y)
        assert_fitted(model, X * size)
        if hasattr(model, "decision_function"):
            value = model.decision_function(X * size)
            np.testing.assert_allclose(value, expected.decision_function(X), atol=1e-2)
            positive = 1 if isinstance(model, OneClassSVM) else model.classes_[1]
            np.testing.assert_array_equal(model.predict(X * size) == positive, value >= 0)
        else:
            np.testing.assert_allclose(model.predict(X * size), expected.predict(X), atol=1e-2)

    @pytest.mark.parametrize("size", [1e-25, 1e25])
    def test_units_beyond_the_range_of_float32(self, size):
        """Also where squared distances are out of reach of float32, in which larger problems are solved."""
        X, y = sample(1200)
        model, expected = SVC().fit(X * size, y), SVC().fit(X, y)
        assert_fitted(model, X * size)
        np.testing.assert_allclose(model.decision_function(X * size), expected.decision_function(X), atol=1e-2)

    @pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
    @pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
    @every_estimator
    def test_huge(self, estimator, kernel):
        """Where kernel values overflow there is nothing to fit, which is said in scikit-learn's words and ours."""
        X, y = sample()
        with pytest.raises(ValueError, match=NOT_FINITE):
            clone(estimator).set_params(kernel=kernel).fit(X * 1e200, y)

    @pytest.mark.parametrize("value", [0.0, 1.0, -3e5])
    @pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
    @every_estimator
    def test_equal_rows(self, estimator, kernel, value):
        """Samples that are all the same give a constant."""
        y = sample()[1]
        model = clone(estimator).set_params(kernel=kernel).fit(np.full((60, 3), value), y)
        predictions = model.predict(np.full((5, 3), value))
        assert np.isfinite(predictions).all() and len(set(predictions)) == 1
        assert model.fit_status_ == 0

    @pytest.mark.parametrize("C", [1.0, np.inf])
    def test_two_points_far_from_the_origin(self, C):
        """scikit-learn does not return from this fit within 20 seconds; ours separates the points."""
        X, y = [[1, 99999], [2, 99999]], [0, 1]
        model = SVC(kernel="poly", degree=2, gamma="auto", C=C, time_limit=1.0).fit(X, y)
        assert model.predict(X).tolist() == y
        assert model.fit_status_ == 0

    @pytest.mark.parametrize("estimator", [SVR(), SVR(C=np.inf), NuSVR(), OneClassSVM()], ids=named)
    def test_one_sample(self, estimator):
        """One sample is fitted; a regression predicts its target."""
        model = clone(estimator).fit([[1.0, 2.0]], [3.0])
        assert_fitted(model, [[1.0, 2.0]])
        if hasattr(estimator, "C"):
            np.testing.assert_allclose(model.predict([[1.0, 2.0]]), 3.0)

    def test_two_samples(self):
        """Two samples of two classes are separated half way."""
        for estimator in (SVC(C=10.0), NuSVC(nu=1.0)):
            model = estimator.set_params(kernel="linear").fit([[1.0], [3.0]], ["a", "b"])
            np.testing.assert_allclose(model.decision_function([[1.0], [2.0], [3.0]]), [-1.0, 0.0, 1.0], atol=1e-6)

    @pytest.mark.parametrize("kernel", ["linear", "rbf"])
    def test_contradictory_samples(self, kernel):
        """Equal samples with every label: nothing can be learnt, and that takes no time."""
        X = np.repeat(sample()[0][:20], 6, axis=0)
        model = SVC(kernel=kernel, C=100.0).fit(X, np.tile([0, 1], 60))
        assert_fitted(model, X)

    def test_more_features_than_samples(self):
        """20 samples with 5000 features are separable."""
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(20, 5000)), np.arange(20) % 2
        assert SVC(C=np.inf, kernel="linear").fit(X, y).score(X, y) == 1.0

    def test_little_memory(self):
        """A cache of a few bytes is enough."""
        X, y = sample(1500)
        assert_fitted(SVC(cache_size=1e-6).fit(X, y), X)

    def test_empty_sparse_rows(self):
        """CSR samples without any entry are the origin."""
        X, y = sample()
        X[::5] = 0.0
        for store in (sp.csr_array, np.asarray):
            assert_fitted(SVC().fit(store(X), y), store(X))
        empty = sp.csr_array((60, 3))
        assert_fitted(SVC().fit(empty, y), empty)


def test_convergence_warning_is_an_error_here():
    """The tests above would notice a fit that does not converge."""
    X, y = sample()
    with pytest.raises(ConvergenceWarning):
        SVC(max_iter=1).fit(X, y)
