"""Leave-one-out without a fit for each sample."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_iris, make_classification, make_moons, make_regression
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVR, InvalidInputError, KernelRidge, NuSVC, RampSVC
from mercer.estimators.certification.kernel_machines import fitted_problems
from mercer.problems.clock import Clock
from mercer.problems.solution import Options
from mercer.selection.calibration.prediction_mixins import problem_values
from mercer.selection.leave_one_out import _flagged, _left_out, leave_one_out
from mercer.selection.left_out_problem import LeftOutProblem

TOL = 1e-6


def sample(n=80, n_classes=2, seed=0):
    X, y = make_classification(
        n, 4, n_informative=3, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, flip_y=0.15,
        class_sep=0.8, random_state=seed,
    )  # fmt: skip
    return X, y


def by_fits(model, X, y, weight):
    """Decision values and predictions by one fit for each sample, with weight 0 for it."""
    values, predictions = [], []
    gamma = getattr(model, "_gamma", "scale")
    for i in range(len(y)):
        part = type(model)(**{**model.get_params(), "tol": TOL, **({"gamma": gamma} if gamma != 0 else {})})
        left = np.array(weight, dtype=float)
        left[i] = 0.0
        part.fit(X, y, sample_weight=left)
        new = X[i : i + 1]
        values.append(problem_values(part, new)[0] if hasattr(part, "classes_") else part.predict(new))
        predictions.append(part.predict(new)[0])
    return np.squeeze(values), np.array(predictions)


MODELS = {
    "rbf": SVC(C=2.0),
    "large C": SVC(C=1e3),
    "small C": SVC(C=0.01),
    "linear": SVC(kernel="linear"),
    "no intercept": SVC(fit_intercept=False),
    "squared hinge": SVC(loss="squared_hinge"),
    "regression": SVR(C=5.0, epsilon=0.2),
    "squared tube": SVR(C=5.0, epsilon=0.2, loss="squared_epsilon_insensitive"),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.slow
def test_exact_is_one_fit_per_sample(name, weighted):
    """Decision values are those of a machine that was fitted without the sample."""
    X, y = sample()
    model = MODELS[name].set_params(tol=TOL)
    if isinstance(model, SVR):
        y = make_regression(80, 4, random_state=0)[1] / 50
        X = make_regression(80, 4, random_state=0)[0]
    weight = np.random.default_rng(0).integers(0, 3, size=80) * 1.0 if weighted else np.ones(80)
    model.fit(X, y, sample_weight=weight)
    report = leave_one_out(model, X, y, weight, tol=TOL)
    values, predictions = by_fits(model, X, y, weight)
    np.testing.assert_allclose(report.decision_function, values, atol=2e-4)
    if report.wrong is None:
        assert report.error == pytest.approx(np.average((predictions - y) ** 2, weights=weight), rel=1e-3)
    else:
        np.testing.assert_array_equal(report.predictions, predictions)
        assert report.error == np.average(predictions != y, weights=weight)
    assert report.complete
    assert report.n_solved == report.n_support <= np.count_nonzero(weight)


@pytest.mark.parametrize("package", ["mercer", "sklearn"])
def test_several_classes(package):
    """Every pair that the sample takes part in is solved without it, the others are as they were."""
    X, y = sample(90, 3)
    labels = np.array(["c", "a", "b"])[y]
    model = (SVC if package == "mercer" else sklearn.svm.SVC)(C=3.0, tol=TOL).fit(X, labels)
    report = leave_one_out(model, X, labels, tol=TOL)
    ours = SVC(C=3.0, tol=TOL).fit(X, labels)
    values, predictions = by_fits(ours, X, labels, np.ones(90))
    np.testing.assert_allclose(report.decision_function, values, atol=5e-4)
    np.testing.assert_array_equal(report.predictions, predictions)
    assert report.error == np.mean(predictions != labels)
    for method in ("span", "xi-alpha"):
        assert leave_one_out(model, X, labels, method=method).n_support == report.n_support


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_bounds(kernel, C):
    """ξα flags every sample that is wrong when left out; the span is the better estimate of how many there are."""
    off = {"span": 0.0, "xi-alpha": 0.0}
    for seed in range(3):
        X, y = sample(120, seed=seed)
        model = SVC(C=C, kernel=kernel, tol=1e-4).fit(X, y)
        exact = leave_one_out(model, X, y)
        bound = leave_one_out(model, X, y, method="xi-alpha")
        assert not (exact.wrong & ~bound.wrong).any()
        assert bound.error >= exact.error
        for method in off:
            off[method] += abs(leave_one_out(model, X, y, method=method).error - exact.error) / 3
    assert off["span"] <= min(off["xi-alpha"], 0.08)


def test_bound_without_free_support_vectors():
    """ξα holds where no support vector is free: its theorem does not apply, so that every sample may be wrong."""
    X, y = make_moons(150, noise=0.28, random_state=3)
    model = SVC(C=10**-1.5, gamma=1.0, tol=1e-6).fit(X, y)
    assert (np.abs(model.dual_coef_) > model.C - 1e-9).all()
    exact, bound = (leave_one_out(model, X, y, method=method) for method in ("exact", "xi-alpha"))
    assert exact.error > 0.1
    assert bound.wrong.all() and bound.error == 1.0


def test_bound_without_intercept():
    """The bound of a machine through the origin is no larger, and holds."""
    X, y = sample(100)
    model = SVC(fit_intercept=False).fit(X, y)
    exact, bound = (leave_one_out(model, X, y, method=method) for method in ("exact", "xi-alpha"))
    assert not (exact.wrong & ~bound.wrong).any()
    assert bound.error < 1


def test_span_is_exact_where_no_state_changes():
    """Free and bounded samples whose removal moves no other across a bound have the span's decision value."""
    X, y = sample(60)
    model = SVC(C=0.3, tol=1e-9).fit(X, y)
    exact = leave_one_out(model, X, y, tol=1e-9)
    span = leave_one_out(model, X, y, method="span", tol=1e-9)

    def states(beta):
        return np.where(beta == 0, 0, np.where(np.abs(beta) > 0.3 * (1 - 1e-9), 2, 1))

    full = np.zeros(60)
    full[model.support_] = model.dual_coef_[0]
    seen = {1: 0, 2: 0}
    for i in model.support_:
        part = SVC(C=0.3, tol=1e-9, gamma=model._gamma).fit(X, y, sample_weight=np.arange(60) != i)
        beta = np.zeros(60)
        beta[part.support_] = part.dual_coef_[0]
        others = np.arange(60) != i
        if (states(beta)[others] == states(full)[others]).all():
            seen[int(states(full)[i])] += 1
            assert span.decision_function[i] == pytest.approx(exact.decision_function[i], abs=1e-6)
    assert min(seen.values()) > 0


def test_samples_without_weight_are_left_as_they_are():
    """A sample that is no support vector has the decision value of the full machine."""
    X, y = sample()
    model = SVC(C=10.0, tol=TOL).fit(X, y)
    report = leave_one_out(model, X, y, tol=TOL)
    others = np.setdiff1d(np.arange(80), model.support_)
    np.testing.assert_allclose(report.decision_function[others], model.decision_function(X)[others], atol=1e-4)


def test_hard_margin():
    """Separable classes and C=inf: the machine without a support vector has a wider margin."""
    X, y = load_iris(return_X_y=True)
    X, y = X[y < 2], y[y < 2]
    model = SVC(kernel="linear", C=np.inf).fit(X, y)
    report = leave_one_out(model, X, y)
    assert report.error == 0
    assert report.n_solved == len(model.support_)
    with pytest.raises(InvalidInputError, match="finite C"):
        leave_one_out(model, X, y, method="xi-alpha")


def test_a_class_of_one_sample():
    """Without its only sample a class cannot be predicted."""
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 0, 1])
    report = leave_one_out(SVC(C=100.0).fit(X, y), X, y)
    assert report.predictions[3] == 0
    assert report.wrong[3]


def test_precomputed_and_function_kernels():
    """Kernel matrices and functions give what the same kernel by name gives."""
    X, y = sample()
    expected = leave_one_out(SVC(kernel="linear").fit(X, y), X, y, tol=TOL).decision_function
    for kernel, samples in (("precomputed", X @ X.T), (lambda a, b: a @ b.T, X)):
        report = leave_one_out(SVC(kernel=kernel).fit(samples, y), samples, y, tol=TOL)
        np.testing.assert_allclose(report.decision_function, expected, atol=1e-4)


def test_without_the_matrix():
    """Where the matrix does not fit into memory the problems are solved by rows: the same values."""
    X, y = sample(60)
    model = SVC(C=3.0, tol=TOL).fit(X, y)
    expected = leave_one_out(model, X, y, tol=TOL)
    problems = [LeftOutProblem(p, False, Options(tol=TOL), Clock()) for p in fitted_problems(model, X, y, None)]
    found = _left_out(model, X, y, problems, np.ones(60), "exact")
    np.testing.assert_allclose(found.decision_function, expected.decision_function, atol=1e-4)
    np.testing.assert_array_equal(found.predictions, expected.predictions)
    bound = _flagged(problems, np.ones(60))
    assert not (expected.wrong & ~bound.wrong).any()


def test_time_limit():
    """Without time the span stands in, and a warning says for how many."""
    X, y = sample()
    model = SVC().fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"time_limit=0 s\): 0 of \d+ problems were solved"):
        report = leave_one_out(model, X, y, time_limit=0)
    assert not report.complete
    assert "out of time" in str(report)
    assert np.isfinite(report.decision_function).all()


def test_unusable():
    """Questions that cannot be answered are refused with a reason."""
    X, y = sample()
    with pytest.raises(InvalidInputError, match=r"leave_one_out supports SVC and SVR, but was given NuSVC"):
        leave_one_out(NuSVC(nu=0.1).fit(X, y), X, y)
    with pytest.raises(InvalidInputError, match="KernelRidge"):
        leave_one_out(KernelRidge().fit(X, y), X, y)
    with pytest.raises(InvalidInputError, match="given RampSVC"):
        leave_one_out(RampSVC().fit(X, y), X, y)
    model = SVC().fit(X, y)
    with pytest.raises(InvalidInputError, match="method='magic' is not known"):
        leave_one_out(model, X, y, method="magic")
    with pytest.raises(InvalidInputError, match="X has 40 samples"):
        leave_one_out(model, X[:40], y[:40])
    with pytest.raises(InvalidInputError, match="hinge loss"):
        leave_one_out(SVC(loss="squared_hinge").fit(X, y), X, y, method="xi-alpha")
