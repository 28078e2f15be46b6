"""certify bounds how far stochastic gradient descent is from its optimum, and says why others have none."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.gaussian_process
import sklearn.linear_model
from sklearn.linear_model import SGDClassifier
from tests.estimators.certification.test_certify_model import message
from tests.naming import cases

import mercer
from mercer import SVC, KernelCentroid, KernelLMS, LinearSVC, PegasosClassifier, Perceptron, certify
from mercer.exceptions import InvalidInputError
from mercer.kernels import Gaussian, Linear

LAM = 0.05


def samples(n=90, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=n), [0.0, 0.8][: n_classes - 1])
    weight = rng.uniform(0.3, 2.0, size=n)
    weight[::9] = 0.0
    return X, np.array(["a", "b", "c"])[y], weight


@pytest.mark.parametrize("kernel", cases(linear="linear", rbf="rbf", sum=0.5 * Gaussian(0.3) + Linear()))
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_optimum_of_pegasos(kernel, intercept, weighted):
    """The gap is the distance to the optimum that SVC finds, for a constant feature in place of the intercept."""
    X, y, weight = samples()
    weight = weight if weighted else None
    model = PegasosClassifier(LAM, kernel=kernel, max_iter=3, fit_intercept=intercept, random_state=0)
    model.fit(X, y, weight)
    proof = certify(model, X, y, weight)
    w = np.ones(len(y)) if weight is None else weight
    whole = model._kernel + 1.0 if intercept else model._kernel
    best = SVC(C=1 / (LAM * w.sum()), kernel=whole, fit_intercept=False, tol=1e-8).fit(X, y, w).certificate_
    assert proof.valid and proof.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert proof.gap == pytest.approx(proof.primal - best.primal, rel=1e-3, abs=1e-5 * best.primal)
    # the run's own dual point cannot be better
    assert proof.gap <= model.certificate_.gap * (1 + 1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed", "function"])
def test_several_classes_of_pegasos(kernel):
    """One against the rest, for kernels of each kind."""
    X, y, weight = samples(n_classes=3)
    X = Gaussian(0.5)(X) if kernel == "precomputed" else X
    if kernel == "function":
        kernel = lambda a, b: a @ b.T  # noqa: E731
    model = PegasosClassifier(LAM, kernel=kernel, max_iter=5, class_weight="balanced", random_state=0)
    model.fit(X, y, weight)
    proof = certify(model, X, y, weight)
    assert proof.of == "3 one-vs-rest problems" and proof.valid
    assert proof.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert 0 < proof.gap <= model.certificate_.gap * (1 + 1e-9)


def test_pegasos_before_its_first_step():
    """The mean of w = 0 and nothing else is w = 0: nothing is known of f but its loss."""
    X, y, _ = samples()
    for kernel in ("linear", "rbf"):
        model = PegasosClassifier(LAM, kernel=kernel, n_steps=1, fit_intercept=False, random_state=0).fit(X, y)
        proof = certify(model, X, y)
        assert proof.primal == pytest.approx(1 / LAM) and proof.valid and proof.relative_gap > 0.1


def test_pegasos_of_parts():
    """After partial_fit there is no certificate of the run, but any samples can be asked about."""
    X, y, _ = samples()
    for kernel in ("linear", "rbf"):
        model = PegasosClassifier(LAM, kernel=kernel, random_state=0)
        for part in np.array_split(np.arange(len(y)), 3):
            model.partial_fit(X[part], y[part], classes=["a", "b"])
        proof = certify(model, X, y)
        assert not hasattr(model, "certificate_") and proof.valid and 0 < proof.relative_gap < 1


@pytest.mark.parametrize(
    "params",
    cases(
        plain={},
        squared={"loss": "squared_hinge"},
        l1={"penalty": "l1"},
        elastic={"penalty": "elasticnet", "l1_ratio": 0.3},
        through_origin={"fit_intercept": False},
        weights={"class_weight": {"a": 0.5, "b": 2.0}},
        average={"average": True},
    ),
)
@pytest.mark.parametrize("sparse", [False, True])
def test_models_of_scikit_learn(params, sparse):
    """Between primal and dual lies what LinearSVC finds; long runs come near to it."""
    X, y, weight = samples()
    X = sp.csr_array(X) if sparse else X
    model = SGDClassifier(alpha=LAM, max_iter=400, tol=None, random_state=0, **params).fit(X, y, sample_weight=weight)
    proof = certify(model, X, y, weight)
    ours = {key: value for key, value in params.items() if key not in ("average", "fit_intercept")}
    best = LinearSVC(
        C=1 / (LAM * len(y)), tol=1e-9, penalize_intercept=False, **{"loss": "hinge", **ours},
        fit_intercept=params.get("fit_intercept", True),
    ).fit(X, y, weight).certificate_  # fmt: skip
    # steps of the intercept are shortened for sparse data, too much for this loss
    assert proof.valid and (proof.relative_gap < 0.05 or (sparse and params.get("loss") == "squared_hinge"))
    assert proof.dual <= best.primal * (1 + 1e-8) and best.dual <= proof.primal * (1 + 1e-12)
    model.coef_ = 3.0 * model.coef_
    assert certify(model, X, y, weight).relative_gap > 0.05


def test_several_classes_of_scikit_learn():
    """One against the rest; of class weights only that of the one counts, as in scikit-learn."""
    X, y, _ = samples(n_classes=3)
    model = SGDClassifier(alpha=LAM, max_iter=400, tol=None, class_weight="balanced", random_state=0).fit(X, y)
    proof = certify(model, X, y)
    assert proof.of == "3 one-vs-rest problems" and proof.valid and proof.relative_gap < 0.05


@pytest.mark.parametrize(
    "model",
    cases(
        perceptron=Perceptron(),
        theirs=sklearn.linear_model.Perceptron(),
        lms=KernelLMS(max_iter=3),
        centroid=KernelCentroid(),
        process=mercer.GaussianProcessRegressor(optimizer=None, alpha=1.0),
        other_process=sklearn.gaussian_process.GaussianProcessRegressor(optimizer=None, alpha=1.0),
    ),
)
def test_machines_without_an_optimum(model):
    """They are told apart from those that certify does not know, with a reason."""
    X, y, _ = samples()
    y = (y == "a").astype(float)
    with pytest.warns() if isinstance(model, KernelLMS | Perceptron) else np.errstate():
        model.fit(X, y)
    assert message(InvalidInputError, model, X, y).startswith(f"A {type(model).__name__} has no certificate. ")


def test_errors():
    """Errors say what was found, what is allowed and what to do."""
    X, y, _ = samples()
    assert message(InvalidInputError, SGDClassifier(loss="log_loss").fit(X, y), X, y) == (
        "certify supports SGDClassifier with loss 'hinge' or 'squared_hinge', but this one has loss='log_loss'."
    )
    assert "has no certificate: without a penalty" in message(
        InvalidInputError, SGDClassifier(penalty=None).fit(X, y), X, y
    )
    model = PegasosClassifier(random_state=0).fit(X, y)
    assert message(InvalidInputError, model, X, np.where(y == "a", "z", y)) == (
        "y contains the label 'z', but the estimator was fitted to the classes ['a', 'b']: pass the y that it was "
        "fitted to."
    )
    assert message(InvalidInputError, model, X, np.full(90, "a")) == (
        "The estimator was fitted to 2 classes, but y and sample_weight leave 1: pass those that it was fitted to."
    )
    K = Gaussian(0.5)(X)
    model = PegasosClassifier(kernel="precomputed", random_state=0).fit(K, y)
    assert "but PegasosClassifier is expecting 90 features" in message(ValueError, model, K[:, :80], y)
    assert message(InvalidInputError, model, K[:80], y[:80]) == (
        "X has 80 samples, but the estimator was fitted to 90: pass the training data, in the same order."
    )
