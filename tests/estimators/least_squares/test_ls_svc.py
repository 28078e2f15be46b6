"""LSSVC is ridge regression of labels: its system, its leave-one-out values, its certificate."""

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_classification
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from mercer import LSSVC, InvalidInputError, KernelRidge, Precomputed, Spectrum, certify
from mercer.kernels import Gaussian

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)[::2, :6]
y = y[::2]
TWO = np.where(y > 0, "red", "white")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kernel", [Gaussian(0.1), pytest.param("precomputed", marks=pytest.mark.slow)], ids=str)
def test_sklearn_checks(kernel):
    """scikit-learn's own checks pass."""
    check_estimator(LSSVC(kernel=kernel, leave_one_out=True))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_linear_system_of_suykens(fit_intercept):
    """β and b solve (K + 1/C) β + b = y, Σβ = 0, for every class against the rest."""
    weight = np.random.default_rng(0).uniform(0.2, 2.0, len(X))
    model = LSSVC(5.0, kernel=Gaussian(0.2), fit_intercept=fit_intercept).fit(X, y, weight)
    n = len(X)
    A = np.zeros((n + 1, n + 1))
    A[:n, :n] = Gaussian(0.2)(X) + np.diag(1.0 / (5.0 * weight))
    A[n, n] = 0.0 if fit_intercept else 1.0
    A[n, :n] = A[:n, n] = float(fit_intercept)
    for c in range(3):
        found = np.linalg.solve(A, np.append(np.where(y == c, 1.0, -1.0), 0.0))
        np.testing.assert_allclose(model.dual_coef_[c], found[:n], atol=1e-9)
        np.testing.assert_allclose(model.intercept_[c], found[n], atol=1e-9)
    assert model.certificate_.relative_gap < 1e-12
    assert len(model.certificates_) == 3


def test_it_is_kernel_ridge_on_labels():
    """Two classes give the decision values of KernelRidge with alpha = 1/C."""
    model = LSSVC(4.0, gamma=0.1).fit(X, TWO)
    ridge = KernelRidge(0.25, kernel="rbf", gamma=0.1, fit_intercept=True).fit(X, np.where(TWO == "white", 1.0, -1.0))
    np.testing.assert_allclose(model.decision_function(X), ridge.predict(X), atol=1e-10)
    np.testing.assert_allclose(model.certificate_.primal, 4.0 * ridge.certificate_.primal, rtol=1e-10)
    assert set(model.predict(X)) == {"red", "white"}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("target", [TWO, y], ids=["two", "three"])
def test_leave_one_out_is_n_fits(target, fit_intercept):
    """Values left out are those of the model that is fitted again without the sample; weights stay as they are."""
    weight = np.random.default_rng(1).uniform(0.2, 2.0, len(X))
    weight[7] = 0.0
    given = {"C": 3.0, "gamma": 0.2, "fit_intercept": fit_intercept, "class_weight": {target[0]: 2.0}}
    model = LSSVC(**given, leave_one_out=True).fit(X, target, weight)
    assert np.isnan(model.left_out_decision_[7]).all()
    for i in (0, 30, 60):
        kept = np.arange(len(X)) != i
        without = LSSVC(**given).fit(X[kept], target[kept], weight[kept])
        np.testing.assert_allclose(model.left_out_decision_[i], without.decision_function(X[[i]])[0], atol=1e-9)
    values = model.left_out_decision_
    labels = model.classes_[(values > 0).astype(int) if values.ndim == 1 else np.nan_to_num(values).argmax(axis=1)]
    class_weight = np.where(target == target[0], 2.0, 1.0)
    expected = np.average(labels == target, weights=weight * class_weight)
    assert model.left_out_score_ == pytest.approx(expected)
    assert not hasattr(model.set_params(leave_one_out=False).fit(X, target), "left_out_score_")


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
@pytest.mark.parametrize("target", [TWO, y], ids=["two", "three"])
def test_certify(target, solver):
    """certify finds the published certificate, and a gap if the coefficients are wrong."""
    model = LSSVC(3.0, solver=solver, tol=1e-9, class_weight="balanced").fit(X, target)
    proof = certify(model, X, target)
    np.testing.assert_allclose(proof.primal, model.certificate_.primal, rtol=1e-9)
    assert proof.valid and proof.relative_gap < 1e-9
    model.dual_coef_ = 1.1 * model.dual_coef_
    assert certify(model, X, target).gap > 1e-3


def test_a_precomputed_matrix_and_strings():
    """A kernel matrix gives the model of its kernel; a string kernel compares strings."""
    K = Gaussian(0.3)(X)
    direct = LSSVC(kernel=Gaussian(0.3), leave_one_out=True).fit(X, y)
    given = LSSVC(kernel=Precomputed(), leave_one_out=True).fit(K, y)
    np.testing.assert_allclose(given.decision_function(K), direct.decision_function(X), atol=1e-10)
    np.testing.assert_allclose(given.left_out_decision_, direct.left_out_decision_, atol=1e-9)
    words = ["abab", "baba", "ccdd", "ddcc"] * 3
    assert LSSVC(kernel=Spectrum(2)).fit(words, [0, 0, 1, 1] * 3).score(words, [0, 0, 1, 1] * 3) == 1.0


def test_large_enough_for_a_float32_factor():
    """From 1,000 samples the factor is in float32, refined to the same solution."""
    A, t = make_classification(1100, 8, n_informative=6, n_classes=3, random_state=0)
    single = LSSVC(10.0, precision="float32").fit(A, t)
    double = LSSVC(10.0, precision="float64").fit(A, t)
    np.testing.assert_allclose(single.decision_function(A[:50]), double.decision_function(A[:50]), atol=1e-8)
    assert single.certificate_.relative_gap < 1e-10


@pytest.mark.parametrize(
    ("parameters", "target", "message"),
    [
        ({"C": np.inf}, y, "'C' parameter of LSSVC must be"),
        ({"C": 0.0}, y, "'C' parameter of LSSVC must be"),
        ({}, np.zeros(len(X)), "The number of classes has to be greater than one; got 1 class"),
        ({"cache_size": 0.01, "leave_one_out": True}, y, "use leave_one_out=False"),
        ({"class_weight": {0: 0.0, 1: 0.0}}, y, "leaves no two classes to separate"),
    ],
)
def test_bad_input(parameters, target, message):
    """Each mistake has a message that says what to do."""
    with pytest.raises(ValueError, match=message):
        LSSVC(**parameters).fit(X, target)


def test_a_time_limit_of_zero_is_a_warning():
    """Without time the model is 0, and the warning says so."""
    with pytest.warns(UserWarning, match="time_limit=0"):
        model = LSSVC(time_limit=0, leave_one_out=True).fit(X, y)
    assert np.isnan(model.left_out_score_)
    assert not model.dual_coef_.any()


def test_labels_of_other_data_are_an_error():
    """certify asks for the labels of fit."""
    model = LSSVC().fit(X, y)
    with pytest.raises(InvalidInputError, match="pass the y that it was fitted to"):
        certify(model, X, y + 1)
