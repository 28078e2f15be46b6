"""certify bounds how far any fitted machine is from its optimum, from its coefficients and the data alone."""

import importlib
import re
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.problems.instances import FORMS, gaussian_kernel, instance
from tests.reference.qp import objective, solve_qp

import mercer
from mercer import certify
from mercer.estimators.certification.linear_machines import certify_weights
from mercer.exceptions import InvalidInputError, NotPositiveSemidefiniteWarning
from mercer.kernels import Gaussian, Linear
from mercer.linear.linear_problem import LinearProblem, Rows
from mercer.losses import (
    EpsilonInsensitive,
    Hinge,
    NuHinge,
    NuInsensitive,
    OneClass,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from mercer.problems import infeasibility

# the module, which the function of the same name hides
module = importlib.import_module("mercer.estimators.certification.kernel_machines")

GAMMA = 0.5
# each machine with its parameters, its loss and the factor of its weights
MACHINES = {
    "SVC": ({"C": 2.0}, Hinge(), 2.0),
    "NuSVC": ({"nu": 0.5}, NuHinge(0.5), 1.0),
    "SVR": ({"C": 2.0, "epsilon": 0.1}, EpsilonInsensitive(0.1), 2.0),
    "NuSVR": ({"C": 2.0, "nu": 0.4}, NuInsensitive(0.4), 2.0),
    "OneClassSVM": ({"nu": 0.3}, OneClass(0.3), 1.0),
}
machines = pytest.mark.parametrize("name", MACHINES)


def samples(name, n=80, seed=0):
    """Features, targets (None for novelty detection) and weights, a few of them not positive."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    value = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)
    y = {"SVC": value > 0, "NuSVC": value > 0, "LinearSVC": value > 0, "OneClassSVM": None}.get(name, value)
    weight = rng.uniform(0.3, 2.0, size=n)
    weight[::9] = 0.0
    weight[1] = -1.0
    return X, y if y is None or y.dtype != bool else y.astype(int), weight


def fitted(package, name, X, y, weight=None, **params):
    """A model, whether or not it has converged."""
    options = {"gamma": GAMMA, **MACHINES[name][0], **params}
    model = getattr(package, name)(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, sample_weight=weight)


@cache
def optimum(name, weighted=False):
    """The value of the reference solver for `samples(name)`."""
    _, loss, factor = MACHINES[name]
    X, y, weight = samples(name)
    weight = weight if weighted else np.ones(len(X))
    target = np.ones(len(X)) if y is None else y
    target = np.where(target > 0, -1.0, 1.0) if isinstance(loss, Hinge | NuHinge) else target
    used = weight > 0
    K, qp = gaussian_kernel(X[used], GAMMA), loss.box_qp(target[used], factor * weight[used], True)
    return -objective(K, qp, solve_qp(K, qp))


def same(one, other, rtol=1e-8):
    """Whether two certificates say the same."""
    fields = ("primal", "dual", "gap", "relative_gap", "kkt_violation")
    values = np.array([[getattr(c, f) for f in fields] for c in (one, other)])
    size = np.array([one.primal, one.primal, one.primal, 1.0, 1.0])
    np.testing.assert_array_less(np.abs(values[0] - values[1]), rtol * np.maximum(np.abs(size), np.abs(values[1])))
    assert one.valid == other.valid
    return True


# ---- the bound -------------------------------------------------------------------------------------------------------


@machines
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_iter", [5, 40, -1])
def test_optimum_lies_between_dual_and_primal(name, weighted, max_iter):
    """Wherever LIBSVM stops, the optimum of a QP package lies between the two values."""
    X, y, weight = samples(name)
    weight = weight if weighted else None
    proof = certify(fitted(sklearn.svm, name, X, y, weight, max_iter=max_iter), X, y, weight)
    best = optimum(name, weighted)
    assert proof.valid and proof.of == name
    assert proof.dual <= best + 1e-9 * abs(best) and best - 1e-9 * abs(best) <= proof.primal
    np.testing.assert_allclose(proof.gap, proof.primal - proof.dual, rtol=1e-9)


@machines
@pytest.mark.parametrize("weighted", [False, True])
def test_converged_models_have_tiny_gaps(name, weighted):
    """At tol=1e-6 the gap of LIBSVM is that of its float32 kernel, and its coefficients are feasible to rounding."""
    X, y, weight = samples(name)
    weight = weight if weighted else None
    proof = certify(fitted(sklearn.svm, name, X, y, weight, tol=1e-6), X, y, weight)
    assert proof.valid and proof.relative_gap < 2e-6
    assert proof.kkt_violation < 3e-6 and proof.infeasibility < 1e-11


@machines
def test_unfinished_models_have_large_gaps(name):
    """After five steps there is much left to gain, and the certificate says so."""
    X, y, _ = samples(name, n=200)
    proof = certify(fitted(sklearn.svm, name, X, y, max_iter=5), X, y)
    assert proof.valid and proof.relative_gap > 0.3 and proof.kkt_violation > 0.3


@pytest.mark.parametrize("name", ["SVC", "SVR", "OneClassSVM"])
def test_primal_is_that_of_the_decision_function(name):
    """The primal is ½|w|² plus the losses of what the model itself predicts."""
    X, y, weight = samples(name)
    weight = np.abs(weight) + 0.1
    model = fitted(sklearn.svm, name, X, y, weight, max_iter=30)
    beta = model.dual_coef_[0]
    norm = 0.5 * beta @ gaussian_kernel(X[model.support_], GAMMA) @ beta
    if name == "SVC":
        primal = norm + 2.0 * weight @ np.maximum(0, 1 - (2 * y - 1) * model.decision_function(X))
    elif name == "SVR":
        primal = norm + 2.0 * weight @ np.maximum(0, np.abs(y - model.predict(X)) - 0.1)
    else:
        slack = np.maximum(0, -model.decision_function(X))
        primal = norm + weight @ slack - 0.3 * weight.sum() * float(model.offset_[0])
    np.testing.assert_allclose(certify(model, X, y, weight).primal, primal, rtol=1e-9)


# ---- mercer's own certificates ---------------------------------------------------------------------------------------


@machines
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [200, 1500])
def test_agrees_with_the_certificate_of_the_fit(name, weighted, n):
    """certify finds on all rows the values that fit found on the rows that matter, for both of fit's ways to solve."""
    X, y, weight = samples(name, n)
    weight = weight if weighted else None
    model = fitted(mercer, name, X, y, weight)
    assert same(certify(model, X, y, weight), model.certificate_)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("SVC", {"loss": "squared_hinge"}),
        ("SVC", {"fit_intercept": False}),
        ("SVC", {"loss": "squared_hinge", "fit_intercept": False}),
        ("SVC", {"C": np.inf, "kernel": Gaussian(20.0)}),
        ("SVC", {"class_weight": {0: 0.3, 1: 1.7}}),
        ("NuSVC", {"nu": 0.3, "class_weight": {0: 0.9, 1: 1.1}}),
        ("SVR", {"loss": "squared_epsilon_insensitive"}),
        ("SVR", {"fit_intercept": False}),
        ("SVC", {"kernel": "0.5*gaussian(gamma=0.2) + linear()"}),
        ("SVR", {"kernel": 0.5 * Gaussian("scale") + Linear()}),
        ("OneClassSVM", {"kernel": "poly", "gamma": "scale", "coef0": 1.0}),
        ("SVC", {"solver": "qp"}),
        ("SVC", {"max_iter": 10}),
        ("SVR", {"max_iter": 10}),
    ],
    ids=str,
)
def test_agrees_for_every_form(name, params):
    """Losses, intercepts, weights of classes, kernels, solvers and early stops of mercer."""
    X, y, weight = samples(name)
    model = fitted(mercer, name, X, y, weight, **params)
    assert same(certify(model, X, y, weight), model.certificate_)


def random_nu_fit(seed):
    """(NuSVR or NuSVC, X, y) of 20 to 50 samples; the tube or the margin of many is hardly open."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(20, 51)), int(rng.integers(1, 6))))
    y = X[:, 0] * rng.choice([1, 10]) + rng.normal(size=len(X))
    kernel = {"kernel": str(rng.choice(["poly", "poly", "rbf", "linear"])), "degree": int(rng.integers(2, 5))}
    kernel["coef0"], nu, C = (
        float(rng.choice([0, 1])),
        float(rng.choice([0.1, 0.3, 0.5, 0.8])),
        rng.choice([1.0, 100.0]),
    )
    if seed % 3:
        return mercer.NuSVR(nu=nu, C=C, **kernel), X, y
    return mercer.NuSVC(nu=min(nu, 0.5), **kernel), X, (y > np.median(y)).astype(int)


def test_agrees_where_a_tube_is_hardly_open():
    """A coefficient of ν-SVR is the difference of both sides of the tube: fit and certify restore the same sides."""
    different = []
    for seed in range(60):
        model, X, y = random_nu_fit(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        found, proof = model.certificate_, certify(model, X, y)
        close = abs(found.kkt_violation - proof.kkt_violation) <= 1e-9 * max(1.0, found.kkt_violation)
        close = close and abs(found.gap - proof.gap) <= 1e-8 * max(1.0, abs(found.primal))
        if not close or (model.fit_status_ == 0 and found.kkt_violation > model.tol):
            different.append((seed, model, str(found), str(proof)))
    assert different == []


@pytest.mark.parametrize("package", [mercer, sklearn.svm])
@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
def test_several_classes(package, name):
    """The certificate is that of the sum of all pairs; string labels and data frames are understood."""
    X, _, weight = samples(name, 150)
    y = np.array(["low", "mid", "top", "up"])[np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.7, 0.0, 0.7])]
    frame, labels = pd.DataFrame(X, columns=["a", "b", "c"]), pd.Series(y)
    model = fitted(package, name, frame, labels, weight, tol=1e-6, **({} if name == "SVC" else {"nu": 0.3}))
    proof = certify(model, frame, labels, weight)
    assert proof.of == "6 pairwise problems" and proof.valid and proof.relative_gap < 1e-6
    if package is mercer:
        assert same(proof, model.certificate_)


@pytest.mark.parametrize("package", [mercer, sklearn.svm])
@machines
def test_sparse_precomputed_and_functions(package, name):
    """The same problem in any form has the same certificate, to the tolerance of the fit."""
    X, y, weight = samples(name)
    K = gaussian_kernel(X, GAMMA)
    forms = {
        "dense": (X, {}),
        "sparse": (sp.csr_array(X), {}),
        "matrix": (K, {"kernel": "precomputed"}),
        "function": (X, {"kernel": lambda A, B: K[:, : len(B)][: len(A)]}),
        "kernel": (X, {"kernel": Gaussian(GAMMA)}),
    }
    proofs = {}
    for form, (given, params) in forms.items():
        model = fitted(package, name, given, y, weight, tol=1e-6, **params)
        proofs[form] = certify(model, given, y, weight)
        assert proofs[form].valid and proofs[form].relative_gap < 2e-6, form
    np.testing.assert_allclose([p.primal for p in proofs.values()], proofs["dense"].primal, rtol=1e-5)


# ---- infeasible and altered coefficients -----------------------------------------------------------------------------


@pytest.mark.parametrize("package", [mercer, sklearn.svm])
@machines
def test_altered_coefficients_are_judged_worse(package, name):
    """A disturbed model has a larger gap, which is still a bound, and its infeasibility is shown."""
    X, y, _ = samples(name)
    best = optimum(name)
    model = fitted(package, name, X, y, tol=1e-6)
    honest = certify(model, X, y)
    coef = model._dual_coef_
    rng = np.random.default_rng(0)
    for changed in (1.5 * coef, coef + 0.2 * rng.normal(size=coef.shape), -coef, coef[:, ::-1].copy()):
        model._dual_coef_ = changed
        proof = certify(model, X, y)
        assert proof.valid and proof.gap > 10 * honest.gap
        assert proof.dual <= best + 1e-9 * abs(best) and proof.primal >= best - 1e-9 * abs(best)
        # a multiple of ν-SVC's coefficients with the same intercept is the same β with another b
        assert proof.kkt_violation >= 0.999 * honest.kkt_violation - 1e-12
    model._dual_coef_ = coef + 0.2
    assert certify(model, X, y).infeasibility > 0.1


@machines
def test_altered_intercepts_are_judged_worse(name):
    """A worse intercept raises the primal and leaves the dual."""
    X, y, _ = samples(name)
    model = fitted(mercer, name, X, y, tol=1e-6)
    honest = certify(model, X, y)
    model._intercept_ = model._intercept_ + 0.1
    proof = certify(model, X, y)
    assert proof.primal > honest.primal + 1e-3 * abs(honest.primal)
    np.testing.assert_allclose(proof.dual, honest.dual, rtol=1e-12)
    assert (proof.kkt_violation, proof.infeasibility) == (honest.kkt_violation, honest.infeasibility)


def test_slightly_infeasible_coefficients_keep_a_sharp_bound():
    """A sum that is off by 1e-5 costs the dual about as much, not its validity."""
    X, y, _ = samples("SVC")
    model = fitted(sklearn.svm, "SVC", X, y, tol=1e-8)
    free = np.flatnonzero(np.abs(model._dual_coef_[0]) < 1.9)
    model._dual_coef_ = model._dual_coef_.copy()
    model._dual_coef_[0, free[0]] += 1e-5
    proof = certify(model, X, y)
    assert proof.valid and proof.relative_gap < 1e-6
    np.testing.assert_allclose(proof.infeasibility, 1e-5, rtol=1e-4)


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_feasible_point(loss, intercept):
    """Any β is moved into the box and to the sums; a feasible one stays where it is, and so does what is at a bound."""
    qp = instance(loss, intercept).qp
    rng = np.random.default_rng(0)
    best = solve_qp(instance(loss, intercept).K, qp)
    for size in (1e-7, 0.1, 10.0):
        beta = module._feasible(qp, best + size * rng.normal(size=len(best)))
        assert infeasibility(qp, beta) <= 1e-11 * np.abs(beta).max()
        np.testing.assert_array_equal(module._feasible(qp, beta), beta)
    free = (best > qp.lower) & (best < qp.upper)
    disturbed = best + np.where(free, 1e-7 * rng.normal(size=len(best)), 0.0)
    np.testing.assert_array_equal(module._feasible(qp, disturbed)[~free], best[~free])


# ---- what LIBSVM does not publish ------------------------------------------------------------------------------------


def test_margin_of_nu_svc_is_recovered():
    """The published coefficients times the margin are the optimum of the QP, whose class sums are νW/2."""
    X, y, _ = samples("NuSVC")
    model = fitted(sklearn.svm, "NuSVC", X, y, tol=1e-8)
    best = optimum("NuSVC")
    np.testing.assert_allclose(certify(model, X, y).dual, best, rtol=1e-6)
    # the published model is determined up to its scale, and a multiple of it means another margin
    model._dual_coef_, model._intercept_ = 3.0 * model._dual_coef_, 3.0 * model._intercept_
    np.testing.assert_allclose(certify(model, X, y).dual, best, rtol=1e-6)


def test_nu_svc_without_a_margin():
    """Where the classes coincide w and the margin are 0, and nothing was divided."""
    X, y = np.repeat([[0.0], [1.0]], 4, axis=0), np.tile([0, 1], 4)
    model = mercer.NuSVC(nu=0.5, gamma=1.0).fit(X, y)
    proof = certify(model, X, y)
    assert proof.valid and abs(proof.primal) < 1e-12 and proof.gap < 1e-12


def test_class_weight_of_nu_svc():
    """scikit-learn leaves class_weight out of ν-SVC, mercer does not; each is judged by what it does."""
    X, y, _ = samples("NuSVC")
    for package in (mercer, sklearn.svm):
        model = fitted(package, "NuSVC", X, y, tol=1e-6, class_weight={0: 0.8, 1: 1.1})
        proof = certify(model, X, y)
        assert proof.valid and proof.relative_gap < 2e-6 and proof.infeasibility < 1e-10


@pytest.mark.parametrize("max_iter", [1, 5, 20, -1])
def test_doubled_variables_of_nu_svr(max_iter):
    """The two sides add up to the published coefficients and to the sums that ν fixes."""
    X, y, _ = samples("NuSVR")
    model = fitted(sklearn.svm, "NuSVR", X, y, max_iter=max_iter)
    net = np.zeros(len(X))
    net[model.support_] = model.dual_coef_[0]
    problem = instance(NuInsensitive(0.4), n=len(X))
    problem = replace(
        problem, y=y, weight=np.full(len(X), 2.0), qp=NuInsensitive(0.4).box_qp(y, np.full(80, 2.0), True)
    )
    beta = problem.loss.restored(net, y, gaussian_kernel(X, GAMMA) @ net, problem.weight)
    np.testing.assert_allclose(problem.qp.at_samples(beta, len(X)), net, atol=1e-14)
    assert infeasibility(problem.qp, beta) < 1e-10


# ---- weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", [mercer, sklearn.svm])
@machines
def test_samples_without_weight_are_left_out(package, name):
    """A weight of 0 or less is as good as a row that is not there."""
    X, y, weight = samples(name)
    used = weight > 0
    whole = certify(fitted(package, name, X, y, weight, tol=1e-5), X, y, weight)
    target = None if y is None else y[used]
    part = certify(fitted(package, name, X[used], target, weight[used], tol=1e-5), X[used], target, weight[used])
    np.testing.assert_allclose([whole.primal, whole.dual], [part.primal, part.dual], rtol=1e-7)


@pytest.mark.parametrize("package", [mercer, sklearn.svm])
def test_class_without_weight(package):
    """Its pairs are not problems."""
    X, _, _ = samples("SVC")
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    weight = np.where(y == 1, 0.0, 1.0)
    proof = certify(fitted(package, "SVC", X, y, weight), X, y, weight)
    assert proof.of == "SVC" and proof.valid and proof.relative_gap < 1e-3


def test_hard_margin():
    """C=inf: LIBSVM's separator is compared with the maximum margin, and scaled until it separates."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) + np.repeat([[-3.0], [3.0]], 20, axis=0)
    y = np.repeat([0, 1], 20)
    for package in (mercer, sklearn.svm):
        model = package.SVC(C=np.inf, kernel="linear", tol=1e-6).fit(X, y)
        assert certify(model, X, y).relative_gap < 1e-5
    model._intercept_ = model._intercept_ + 100.0
    assert certify(model, X, y).primal == np.inf


# ---- linear models ---------------------------------------------------------------------------------------------------


def linear_optimum(loss, X, y, weight, scaling):
    """The value of the reference solver with the intercept as one more feature."""
    X = X if scaling is None else np.column_stack([X, np.full(len(X), scaling)])
    qp = loss.box_qp(y, weight, False)
    return -objective(X @ X.T, qp, solve_qp(X @ X.T, qp))


def test_default_linear_svc_may_be_far_from_its_optimum():
    """hinge, C=100, 300×20: LIBLINEAR stops a tenth to a third above the optimum, and the bound is sharp."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    y = (0.3 * X @ rng.normal(size=20) + rng.normal(size=300) > 0).astype(int)
    with pytest.warns(ConvergenceWarning, match="Liblinear failed to converge"):
        model = sklearn.svm.LinearSVC(loss="hinge", C=100, random_state=0).fit(X, y)
    proof = certify(model, X, y)
    best = linear_optimum(Hinge(), X, 2.0 * y - 1, np.full(300, 100.0), 1.0)
    assert proof.valid and 0.1 < proof.relative_gap < 0.4 and proof.kkt_violation > 0.1
    np.testing.assert_allclose(proof.dual, best, rtol=1e-4)
    assert proof.dual <= best * (1 + 1e-9)
    w = np.append(model.coef_[0], model.intercept_)
    slack = np.maximum(0, 1 - (2 * y - 1) * model.decision_function(X))
    np.testing.assert_allclose(proof.primal, 0.5 * w @ w + 100 * slack.sum(), rtol=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("params", [{}, {"intercept_scaling": 4.0}, {"fit_intercept": False}], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.5, 1: 2.0}], ids=str)
def test_converged_linear_svc(loss, params, n_classes, class_weight):
    """Weights of classes and samples, one-vs-rest and the penalised intercept are LIBLINEAR's."""
    X, _, weight = samples("LinearSVC", 120)
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1], [0.0, 0.8][: n_classes - 1])
    model = sklearn.svm.LinearSVC(
        loss=loss, C=0.1, tol=1e-8, max_iter=100_000, class_weight=class_weight, random_state=0, **params
    ).fit(X, y, sample_weight=weight)
    proof = certify(model, X, y, weight)
    assert proof.valid and proof.relative_gap < 1e-5 and proof.infeasibility == 0
    assert proof.of == ("3 one-vs-rest problems" if n_classes == 3 else f"{loss.replace('_', ' ')} loss")
    assert same(certify(model, sp.csr_array(X), y, weight), proof, rtol=1e-4)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_linear_svr(loss):
    """The regression of LIBLINEAR, converged and not."""
    X, y, weight = samples("LinearSVR", 120)
    options = {"loss": loss, "C": 0.5, "epsilon": 0.1, "intercept_scaling": 2.0, "random_state": 0}
    model = sklearn.svm.LinearSVR(tol=1e-8, max_iter=100_000, **options).fit(X, y, sample_weight=weight)
    proof = certify(model, X, y, weight)
    kind = SquaredEpsilonInsensitive if loss.startswith("squared") else EpsilonInsensitive
    best = linear_optimum(kind(0.1), X, y, 0.5 * np.maximum(weight, 0), 2.0)
    assert proof.valid and proof.relative_gap < 1e-5
    np.testing.assert_allclose([proof.primal, proof.dual], best, rtol=1e-5)
    model.coef_ = 1.2 * model.coef_
    worse = certify(model, X, y, weight)
    assert worse.relative_gap > 10 * proof.relative_gap and worse.dual <= best * (1 + 1e-9)


def test_linear_bound_is_valid_without_time():
    """A β that was hardly looked for gives a loose bound, and a valid one."""
    X, y, _ = samples("LinearSVC", 1200)
    for loss in (Hinge(), SquaredHinge()):
        name = "hinge" if isinstance(loss, Hinge) else "squared_hinge"
        model = sklearn.svm.LinearSVC(loss=name, random_state=0, max_iter=10_000).fit(X, y)
        problem = LinearProblem(Rows.of(X, 1.0), loss, np.where(y == model.classes_[1], 1.0, -1.0), np.ones(len(y)))
        proof = certify_weights(problem, np.append(model.coef_[0], model.intercept_), 0.0, seconds=0.0)
        assert proof.primal == pytest.approx(certify(model, X, y).primal)
        assert proof.valid and proof.gap >= 0 and proof.dual <= proof.primal
        assert proof.dual >= 0


def test_linear_class_without_weight():
    """LIBLINEAR forgets it: two of three classes are one problem."""
    X, _, _ = samples("LinearSVC", 120)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    weight = np.where(y == 1, 0.0, 1.0)
    model = sklearn.svm.LinearSVC(tol=1e-6).fit(X, y, sample_weight=weight)
    proof = certify(model, X, y, weight)
    assert proof.of == "squared hinge loss" and proof.relative_gap < 1e-6


# ---- no kernel -------------------------------------------------------------------------------------------------------


def test_indefinite_kernels_have_no_bound():
    """Sigmoid kernels, matrices and functions with negative eigenvalues bound nothing."""
    X, y, _ = samples("SVC")
    K = gaussian_kernel(X, GAMMA) - 0.5 * np.eye(len(X))
    reason = "the kernel is not positive semidefinite"
    for given, kernel in ((X, "sigmoid"), (K, "precomputed"), (X, lambda A, B: K)):
        model = fitted(sklearn.svm, "SVC", given, y, kernel=kernel)
        proof = certify(model, given, y)
        assert (proof.valid, proof.reason) == (False, reason)
    with pytest.warns(NotPositiveSemidefiniteWarning):
        model = fitted(mercer, "SVC", K, y, kernel="precomputed")
    assert certify(model, K, y).reason == reason == model.certificate_.reason


# ---- errors ----------------------------------------------------------------------------------------------------------


def message(error, model, *data):
    with pytest.raises(error) as caught:
        certify(model, *data)
    return re.sub(r"\s+", " ", str(caught.value))


def test_pipelines_and_searches():
    """The machine within is judged, on the samples as it sees them."""
    X, y, _ = samples("SVC")
    pipeline = make_pipeline(StandardScaler(), mercer.SVC()).fit(X, y)
    assert certify(pipeline, X, y) == certify(pipeline[-1], pipeline[0].transform(X), y)
    search = GridSearchCV(pipeline, {"svc__C": [0.1, 1.0]}, cv=2).fit(X, y)
    best = search.best_estimator_
    assert certify(search, X, y) == certify(best[-1], best[0].transform(X), y)


def test_errors():
    """Errors say what was found, what is allowed and what to do."""
    X, y, weight = samples("SVC")
    model = fitted(sklearn.svm, "SVC", X, y)
    assert message(InvalidInputError, Ridge().fit(X, y), X, y) == (
        "certify supports SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC, LinearSVR, KernelRidge, KernelRidgeCV, "
        "LSSVC, PegasosClassifier, SGDClassifier, KernelERM, KernelLogisticRegression, ExpectileSVR, QuantileSVR, "
        "OutputCodeSVC, SVDD, OrdinalSVC, RankSVC, SurvivalSVM, LaplacianSVC, of mercer or scikit-learn, but was given "
        "Ridge. Pass one of these, or a pipeline or search that ends in one."
    )
    assert "is not fitted yet" in message(NotFittedError, mercer.SVC(), X, y)
    assert "is not fitted yet" in message(NotFittedError, sklearn.svm.LinearSVC(), X, y)
    assert message(InvalidInputError, model, X) == (
        "The targets of this SVC are needed, but y is None: pass the y that it was fitted to."
    )
    assert message(InvalidInputError, model, X[:70], y[:70]) == (
        "X has 70 samples, but the estimator was fitted to 80: pass the training data, in the same order."
    )
    assert message(ValueError, model, X, y[:70]) == (
        "Found input variables with inconsistent numbers of samples: [80, 70]"
    )
    assert message(InvalidInputError, model, X, y + 1) == (
        "y contains the label 2, but the estimator was fitted to the classes [0, 1]: pass the y that it was fitted to."
    )
    assert message(InvalidInputError, model, X, np.zeros(80)) == (
        "The estimator was fitted to 2 classes, but y and sample_weight leave 1: pass those that it was fitted to."
    )
    assert "X has 2 features, but SVC is expecting 3 features" in message(ValueError, model, X[:, :2], y)
    assert "sample_weight and X have incompatible shapes" in message(InvalidInputError, model, X, y, weight[:70])
    weight = np.where(np.arange(80) < 5, 1.0, 0.0)
    assert message(InvalidInputError, model, X, y, weight) == (
        f"sample_weight leaves 5 samples, but the estimator was fitted to at least {model.support_.max() + 1} with a "
        "positive weight: pass the weights that it was fitted with."
    )


# LIBLINEAR of scikit-learn 1.6 may miss its tolerance, but not the one below
@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("params", [{"penalty": "l1", "dual": False}, {"multi_class": "crammer_singer"}], ids=str)
def test_linear_models_of_other_kinds(params, n_classes):
    """An l1 penalty, and all classes in one problem: converged, and made worse."""
    X, _, _ = samples("LinearSVC")
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1], [0.0, 0.8][: n_classes - 1])
    model = sklearn.svm.LinearSVC(random_state=0, tol=1e-7, max_iter=100_000, **params).fit(X, y)
    proof = certify(model, X, y)
    assert proof.valid and proof.relative_gap < 1e-5
    model.coef_ = 1.5 * model.coef_
    assert certify(model, X, y).relative_gap > 1e-2
