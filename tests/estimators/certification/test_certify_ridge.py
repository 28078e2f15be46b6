"""certify bounds how far ridge regressions are from their optimum, whoever fitted them."""

import numpy as np
import pytest
import sklearn.kernel_ridge
from tests.estimators.certification.test_certify_model import message, same
from tests.naming import cases

from mercer import KernelRidge, KernelRidgeCV, certify
from mercer.exceptions import InvalidInputError
from mercer.kernels import Gaussian
from mercer.theory import kkt_report


def samples(n=60, targets=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n) + 1.0
    weight = rng.uniform(0.3, 2.0, size=n)
    weight[::9] = 0.0
    return X, y if targets is None else np.column_stack([y, *X.T[: targets - 1]]), weight


def objective(K, y, weight, alpha, beta, b=0.0):
    """λ/2 |f|² + ½ Σ w (y − f − b)²."""
    f = K @ beta
    return 0.5 * alpha * beta @ f + 0.5 * weight @ (y - f - b) ** 2


@pytest.mark.parametrize(
    "params",
    cases(
        plain={},
        intercept={"fit_intercept": True},
        poly={"kernel": "poly", "degree": 2},
        cosine={"kernel": "cosine"},
        laplacian={"kernel": "laplacian"},
        function={"kernel": lambda a, b: float(a @ b) ** 2},
        object={"kernel": 0.5 * Gaussian(0.3) + 1.0},
        cg={"solver": "cg"},
        early={"solver": "cg", "kernel": "rbf", "alpha": 1e-3, "max_iter": 0},
    ),
)
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_the_certificate_of_the_fit(params, weighted):
    """certify finds the certificate of the fit; if the fit did not end at the optimum, it may be sharper."""
    X, y, weight = samples()
    weight = weight if weighted else None
    with pytest.warns() if "max_iter" in params else np.errstate():
        model = KernelRidge(**{"alpha": 0.3, "kernel": "rbf", **params}).fit(X, y, weight)
    proof = certify(model, X, y, weight)
    if "max_iter" not in params:
        assert same(proof, model.certificate_) and proof.of == "KernelRidge"
    else:
        assert proof.valid and 1e-3 < proof.relative_gap <= model.certificate_.relative_gap
        assert proof.primal == pytest.approx(model.certificate_.primal)


def test_several_targets():
    """Each target has its own λ; the values add up."""
    X, Y, weight = samples(targets=3)
    model = KernelRidge(alpha=[0.1, 1.0, 10.0], kernel="rbf", fit_intercept=True).fit(X, Y, weight)
    proof = certify(model, X, Y, weight)
    assert same(proof, model.certificate_) and proof.of == "3 targets"
    theirs = sklearn.kernel_ridge.KernelRidge(alpha=[0.1, 1.0, 10.0], kernel="rbf").fit(X, Y, weight)
    assert certify(theirs, X, Y, weight).relative_gap < 1e-12


def test_chosen_alpha():
    """KernelRidgeCV is judged at the λ and with the kernel that it has chosen."""
    X, y, weight = samples()
    model = KernelRidgeCV([1e-2, 1.0], kernel="rbf", kernel_grid={"gamma": [0.1, 1.0]}).fit(X, y, weight)
    assert same(certify(model, X, y, weight), model.certificate_)


@pytest.mark.filterwarnings("ignore:Singular matrix in solving dual problem")
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian", "sigmoid", "cosine", "chi2", "precomputed"])
@pytest.mark.parametrize("weighted", [False, True])
def test_models_of_scikit_learn(kernel, weighted):
    """scikit-learn's solution is an optimum, and a changed one is as far from it as the objective says."""
    X, y, weight = samples()
    X = np.abs(X) if kernel == "chi2" else X
    weight = weight if weighted else None
    X = Gaussian(0.5)(X) if kernel == "precomputed" else X
    model = sklearn.kernel_ridge.KernelRidge(alpha=0.5, kernel=kernel, gamma=0.3, coef0=0.1, degree=2)
    model.fit(X, y, weight)
    if kernel == "sigmoid":
        proof = certify(model, X, y, weight)
        assert not proof.valid and "not positive semidefinite" in proof.reason
        return
    proof = certify(model, X, y, weight)
    assert proof.valid and proof.relative_gap < 1e-9
    K, w = model._get_kernel(X), np.ones(len(y)) if weight is None else weight
    best = objective(K, y, w, 0.5, model.dual_coef_)
    model.dual_coef_ = model.dual_coef_ + np.where(w > 0, 0.1, 0.0)
    worse = objective(K, y, w, 0.5, model.dual_coef_)
    proof = certify(model, X, y, weight)
    assert proof.valid and proof.primal == pytest.approx(worse, rel=1e-9)
    # the search for β finds the optimum
    assert proof.gap == pytest.approx(worse - best, rel=1e-6) and proof.relative_gap > 1e-3


def test_intercept_and_sum():
    """With an intercept the coefficients must sum to 0; where they do not, the bound is that of others that do."""
    X, y, weight = samples()
    weight = weight + 0.1
    model = KernelRidge(alpha=0.5, kernel="rbf", fit_intercept=True).fit(X, y, weight)
    best = model.certificate_.primal
    model.dual_coef_, model.intercept_ = model.dual_coef_ + 0.01, model.intercept_ - 0.3
    proof = certify(model, X, y, weight)
    worse = objective(model._kernel(X), y, weight, 0.5, model.dual_coef_, model.intercept_)
    assert proof.valid and proof.primal == pytest.approx(worse) and proof.infeasibility == pytest.approx(0.6)
    assert proof.gap == pytest.approx(worse - best, rel=1e-6)


def test_without_a_penalty():
    """λ = 0: a function through all samples has no loss, and of a singular matrix the null space bounds it."""
    X, y, _ = samples()
    model = KernelRidge(alpha=0.0, kernel="rbf", gamma=5.0).fit(X, y)
    assert certify(model, X, y).relative_gap < 1e-6
    with pytest.warns(UserWarning, match="Singular matrix"):
        model = KernelRidge(alpha=0.0, kernel="linear").fit(X, y)
    proof = certify(model, X, y)
    assert proof.valid and proof.relative_gap < 1e-8 and proof.primal > 1.0


@pytest.mark.parametrize("alpha", [1e-300, 1e-30, 1e-20])
def test_a_penalty_that_rounding_hides(alpha):
    """A function that meets all samples to within rounding leaves no gap, however small the optimum is."""
    X, y, _ = samples()
    model = KernelRidge(alpha=alpha, kernel="rbf", gamma=1.0).fit(X, y)
    assert model.certificate_.relative_gap < 1e-6 and certify(model, X, y).relative_gap < 1e-6


def test_errors():
    """Errors say what was found, what is allowed and what to do."""
    X, Y, _ = samples(targets=2)
    model = KernelRidge().fit(X, Y)
    assert message(InvalidInputError, model, X[:50], Y[:50]) == (
        "X has 50 samples, but the estimator was fitted to 60: pass the training data, in the same order."
    )
    assert message(InvalidInputError, model, X, Y[:, 0]) == (
        "y has 1 target(s), but the estimator was fitted to 2: pass the y that it was fitted to."
    )
    assert message(InvalidInputError, model, X) == (
        "The targets of this KernelRidge are needed, but y is None: pass the y that it was fitted to."
    )
    with pytest.raises(InvalidInputError, match="KernelRidge has no bounds for its coefficients"):
        kkt_report(model, X, Y)
