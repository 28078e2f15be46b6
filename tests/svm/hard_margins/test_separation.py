"""Hard margins on small sets with exact ties: the answers are those of exact arithmetic."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.reference.linear import solve
from tests.reference.separability import generated, is_separable, kernel_features

from mercer import SVC, LinearSVC, NotSeparableError
from mercer.theory import separability

# margins below this, relative to the longest sample, may be beyond the float64 coefficients of a kernel machine
SMALL_MARGIN = 1e-4


def machines(X, scales, intercept):
    """(name, machine, the degree and coef0 of its kernel) for all machines with a hard margin."""
    yield "SVC", SVC(C=np.inf, kernel="linear", fit_intercept=intercept), 1, 0
    free = {"C": np.inf, "loss": "hinge", "penalize_intercept": False}
    yield "LinearSVC", LinearSVC(**free, fit_intercept=intercept), 1, 0
    if scales == "one" and X.shape[1] <= 3:
        for degree, coef0 in ((2, 1), (3, 1), (2, 0)):
            poly = SVC(C=np.inf, kernel="poly", degree=degree, gamma=1.0, coef0=coef0, fit_intercept=intercept)
            yield f"poly {degree} {coef0}", poly, degree, coef0


def faults(name, machine, X, y, scales, features, truth):
    """What is wrong with the answer of a machine, in words; empty if nothing is."""
    intercept = machine.fit_intercept
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            machine.fit(X, y)
        except NotSeparableError as error:
            return error_faults(error, name, y, features, truth, intercept)
    if not truth:
        return "a model for classes that are not separable"
    values = y * machine.decision_function(X)
    proof = machine.certificate_
    if not (values.min() > 0 and machine.score(X, y) == 1.0):
        return "a model that does not separate"
    if any(issubclass(one.category, ConvergenceWarning) for one in warned):
        honest = proof.valid and proof.relative_gap <= 0.5 and scales != "one"
        return "" if honest else f"a warning, relative gap {proof.relative_gap:.1e}"
    if not (proof.valid and proof.relative_gap <= 0.01 and values.min() >= 0.99):
        return f"a margin that is not the largest: relative gap {proof.relative_gap:.1e}, {values.min():.3f}"
    if scales == "one":
        best = solve(features, y, np.full(len(y), np.inf), "hard", l2=1.0, free=intercept)
        largest = 1.0 / np.sqrt(2.0 * best.bound)
        if not np.isclose(machine.margin_[0], largest, rtol=2e-3):
            return f"a margin of {machine.margin_[0]:.6g}, where a QP finds {largest:.6g}"
    return ""


def error_faults(error, name, y, features, truth, intercept):
    if truth:
        length = np.linalg.norm(features, axis=1).max()
        if name == "SVC" and error.margin is not None and error.margin <= SMALL_MARGIN * length:
            return ""
        return f"an error for separable classes: {error}"
    if not error.proven or error.margin is not None:
        return f"an error without a proof: {error}"
    weights = error.common_point_weights
    sign = np.sign(weights @ y)  # either class may be the positive one
    assert np.all(sign * weights * y >= 0) and np.isclose(np.abs(weights).sum(), 2.0)
    assert not intercept or np.isclose(weights.sum(), 0.0, atol=1e-12)
    # kernel values are rounded, not their square roots
    size = np.abs(features).max(axis=0) * 1e-11 if name in ("SVC", "LinearSVC") else np.abs(features).max() * 1e-6
    met = np.all(np.abs(weights @ features) <= size)
    return "" if met else "weights that do not combine to a common point"


def wrong_answers(seeds):
    """Every wrong answer for these sets."""
    found = []
    for seed in seeds:
        X, y, scales = generated(seed)
        for intercept in (True, False):
            known = {}
            for name, machine, degree, coef0 in machines(X, scales, intercept):
                if (degree, coef0) not in known:
                    truth = is_separable(X, y, intercept, degree, coef0)
                    known[degree, coef0] = kernel_features(X, degree, coef0), truth
                fault = faults(name, machine, X, y, scales, *known[degree, coef0])
                if fault:
                    found.append((seed, intercept, name, fault))
        report = separability(X, y).pairs[0]
        for separation in (report.biased, report.homogeneous):
            truth = is_separable(X, y, separation.intercept)
            if not separation.decided or separation.separable != truth:
                found.append((seed, separation.intercept, "separability", str(separation)))
            if truth and separation.margin < 0.99 * separation.margin_bound:
                found.append((seed, separation.intercept, "separability", f"a wide interval: {separation}"))
    return found


@pytest.mark.parametrize("solver", ["auto", "qp"])
def test_a_set_of_five(solver):
    """The hulls of these integers meet, whichever solver looks for the margin, and the proof comes with the error."""
    X = np.array([[9, 2], [-6, -6], [-7, 2], [-7, -2], [-9, -3]])
    with pytest.raises(NotSeparableError, match="4 of the 5 samples combine to a common point of both") as found:
        SVC(C=np.inf, kernel="linear", solver=solver).fit(X, [-1, 1, -1, 1, -1])
    assert found.value.proven and found.value.margin is None
    np.testing.assert_allclose(found.value.common_point_weights @ X, 0.0, atol=1e-14)


def test_a_margin_that_coefficients_cannot_represent():
    """Columns of 1e6 and of 1e-6: LinearSVC stores w, but coefficients of the samples lose it; the error says so."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)) * 1e6, np.repeat([-1, 1], 10)
    X = np.column_stack([X, 1e-6 * y * rng.uniform(1, 2, size=20)])
    with pytest.raises(NotSeparableError) as found:
        SVC(C=np.inf, kernel="linear").fit(X, y)
    assert str(found.value) == (
        f"The two classes are separable, but their margin of {found.value.margin:.1e} is too small relative to the "
        "samples: no float64 coefficients of a kernel machine represent the hyperplane. Scale the features, for "
        "example with StandardScaler; or use a finite C, or LinearSVC(C=inf), which stores the weights of the features "
        "instead."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(C=np.inf, loss="hinge", penalize_intercept=False).fit(X, y)
    assert model.score(X, y) == 1.0
    np.testing.assert_allclose(model.margin_, found.value.margin, rtol=1e-3)
    scaled = SVC(C=np.inf, kernel="linear").fit(X / np.abs(X).max(axis=0), y)
    assert scaled.score(X / np.abs(X).max(axis=0), y) == 1.0


def test_separable_below_the_resolution_of_kernel_values():
    """1 + 1e-18 is 1 in float64: the quadratic terms of such samples are gone, and the distance in the message is 0."""
    X, y = 1e-9 * np.array([[-1.0], [0.0], [1.0]]), [1, -1, 1]
    with pytest.raises(NotSeparableError, match=r"\(to within ") as found:
        SVC(C=np.inf, kernel="poly", degree=2, gamma=1.0, coef0=1.0).fit(X, y)
    assert found.value.distance <= 1e-7
    assert is_separable(X, np.array(y), True, degree=2, coef0=1)


@pytest.mark.parametrize(
    "intercept,met", [(True, "a common point of both convex hulls"), (False, "the origin, with one class negated")]
)
def test_the_words_for_what_is_not_decided(intercept, met):
    """Without a hyperplane and without a proof the error says that rounding hides the answer."""
    assert str(NotSeparableError(np.array([1.0, -1.0]), 3e-7, intercept, proven=False)) == (
        "Rounding errors hide whether the classes are separable: no separating hyperplane was found in float64, and "
        f"the samples combine to {met} only to within 3.0e-07 (see common_point_weights). Scale the features, for "
        "example with StandardScaler; or use a finite C, or a richer kernel."
    )


def test_samples_without_weight_do_not_matter():
    """A sample on the wrong side whose weight is 0 is no part of the proof, for either machine."""
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    for machine in (SVC(C=np.inf, kernel="linear"), LinearSVC(C=np.inf, loss="hinge", penalize_intercept=False)):
        model = machine.fit(X, y, sample_weight=[1, 0, 1, 1])
        assert model.predict(X).tolist() == [0, 0, 0, 1]
        with pytest.raises(NotSeparableError) as found:
            machine.fit(np.vstack([X, X]), np.append(y, y), sample_weight=[1, 1, 1, 1, 0, 0, 0, 0])
        assert not found.value.common_point_weights[4:].any()


def test_many_dimensions_are_decided():
    """400 samples in 150 dimensions: the proof of Gordan's alternative holds to the last digits."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 150)), rng.choice([-1, 1], size=400)
    with pytest.raises(NotSeparableError) as found:
        SVC(C=np.inf, kernel="linear").fit(X, y)
    assert found.value.proven
    assert np.abs(found.value.common_point_weights @ X).max() <= 1e-12


def test_small_sets():
    """No machine has a model for inseparable classes, an error for others, or less than the largest margin."""
    assert wrong_answers(range(60)) == []


@pytest.mark.slow
def test_many_small_sets():
    """The same on 2,000 sets."""
    assert wrong_answers(range(1000, 3000)) == []
