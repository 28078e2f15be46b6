"""The conditions of each sample: by hand, against the certificate, and on models that are not optimal."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC as SklearnSVC
from tests.naming import named

from mercer import (
    SVC,
    SVDD,
    SVR,
    LaplacianSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OrdinalSVC,
    OutputCodeSVC,
    QuantileSVR,
    RankSVC,
    certify,
)
from mercer.exceptions import InvalidInputError
from mercer.theory import kkt_report

MACHINES = [
    SVC(C=0.5),
    SVC(C=3.0, kernel="linear", fit_intercept=False),
    SVC(loss="squared_hinge"),
    SVC(class_weight="balanced"),
    NuSVC(nu=0.3),
    SVR(C=2.0),
    SVR(epsilon=0.0),
    SVR(loss="squared_epsilon_insensitive"),
    NuSVR(nu=0.4),
    OneClassSVM(nu=0.2),
]


def samples(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.7 * rng.normal(size=n) > 0).astype(int)


def test_by_hand():
    """Of 0, 1 | 3, 4 the two inner samples are free and exactly on the margin, the outer ones at zero and outside."""
    X, y = [[0.0], [1.0], [3.0], [4.0]], ["no", "no", "yes", "yes"]
    (found,) = kkt_report(SVC(kernel="linear", C=10.0).fit(X, y), X, y).problems
    assert found.labels == ("yes", "no") and found.name == "'yes' against 'no'"
    assert found.state.tolist() == ["zero", "free", "free", "zero"]
    np.testing.assert_allclose(found.beta, [0.0, -0.5, 0.5, 0.0])
    np.testing.assert_allclose(found.decision, [-2.0, -1.0, 1.0, 2.0])
    np.testing.assert_allclose(found.violation, 0.0, atol=1e-14)


def test_at_the_bound():
    """With C below what the margin needs, both samples are at the bound, and inside the margin."""
    X, y = [[-1.0], [1.0]], [0, 1]
    (found,) = kkt_report(SVC(kernel="linear", C=0.1).fit(X, y), X, y).problems
    assert found.state.tolist() == ["bound", "bound"]
    np.testing.assert_allclose(found.beta, [-0.1, 0.1])
    np.testing.assert_allclose(found.decision, [-0.2, 0.2])
    assert found.largest == 0.0


@pytest.mark.parametrize("machine", MACHINES, ids=named)
def test_the_violations_are_those_of_the_certificate(machine):
    """No sample violates more than the worst pair, which is worth two samples at most."""
    X, y = samples()
    model = machine.fit(X, y)
    report, certificate = kkt_report(model, X, y), certify(model, X, y)
    assert report.largest <= certificate.kkt_violation * (1 + 1e-9) + 1e-14
    assert certificate.kkt_violation <= 2 * report.largest + 1e-14
    assert report.problems[0].certificate == certificate


@pytest.mark.parametrize("machine", MACHINES, ids=named)
def test_the_states_are_those_of_the_coefficients(machine):
    """Samples that are not at zero are the support vectors."""
    X, y = samples()
    model = machine.fit(X, y)
    (found,) = kkt_report(model, X, y).problems
    np.testing.assert_array_equal(np.sort(model.support_), found.rows[found.state != "zero"])
    coef = np.zeros(len(y))
    coef[model.support_] = model.dual_coef_[0]
    scale = coef[coef != 0] / found.beta[coef != 0]
    np.testing.assert_allclose(scale, scale[0], rtol=1e-9)  # 1, but for ν-SVC, which is divided by its margin


def test_complementary_slackness():
    """At zero outside the margin, at the bound inside, free on it, each to within tol."""
    X, y = samples()
    model = SVC(C=0.5, tol=1e-6).fit(X, y)
    (found,) = kkt_report(model, X, y).problems
    margin = np.where(y == 1, 1, -1) * model.decision_function(X)
    assert (margin[found.state == "zero"] >= 1 - 1e-6).all()
    assert (margin[found.state == "bound"] <= 1 + 1e-6).all()
    np.testing.assert_allclose(margin[found.state == "free"], 1.0, atol=1e-6)
    np.testing.assert_allclose(found.decision, model.decision_function(X), atol=1e-10)


def test_a_model_that_was_stopped():
    """Its violators are named, worst first, and moving the worst pair is what the solver would do next."""
    X, y = samples()
    with pytest.warns(ConvergenceWarning):
        model = SVC(max_iter=3).fit(X, y)
    report = kkt_report(model, X, y)
    (found,) = report.problems
    violators = found.violators(tol=0.1)
    assert len(violators) > 10 and found.largest > 0.1
    worst = found.violation[np.searchsorted(found.rows, violators)]
    assert (np.diff(worst) <= 0).all() and worst[0] == found.largest
    np.testing.assert_array_equal(report.violators(0.1), np.sort(violators))
    assert "worst samples: " + str(violators[0]) in str(report)


def test_scikit_learns_machine():
    """Judged by its own coefficients."""
    X, y = samples()
    report = kkt_report(SklearnSVC(tol=1e-4).fit(X, y), X, y)
    assert report.largest <= 2e-4
    assert report.count("bound") + report.count("free") == len(SklearnSVC(tol=1e-4).fit(X, y).support_)


def test_several_classes():
    """One problem for each pair, whose samples are numbered as in X."""
    X, y = samples()
    y = y + (X[:, 1] > 0.5)
    model = SVC().fit(X, y)
    report = kkt_report(model, X, y)
    assert [p.labels for p in report.problems] == [(0, 1), (0, 2), (1, 2)]
    for problem in report.problems:
        assert set(y[problem.rows]) == set(problem.labels)
    support = np.unique(np.concatenate([p.rows[p.state != "zero"] for p in report.problems]))
    np.testing.assert_array_equal(support, np.sort(model.support_))
    assert str(report).startswith("Optimality of 3 problems: every condition holds to within ")


def test_weights():
    """Samples without weight take no part; weights move the bounds."""
    X, y = samples()
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model = SVC(C=0.5).fit(X, y, weight)
    (found,) = kkt_report(model, X, y, weight).problems
    np.testing.assert_array_equal(found.rows, np.flatnonzero(weight))
    at_bound = found.state == "bound"
    np.testing.assert_allclose(np.abs(found.beta[at_bound]), 0.5 * weight[found.rows[at_bound]])
    assert found.largest <= 1e-3


def test_the_hard_margin():
    """Nothing is at a bound, as there is none."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 1.0], [5.0, 2.0]])
    (found,) = kkt_report(SVC(C=np.inf, kernel="linear").fit(X, [0, 0, 1, 1]), X, [0, 0, 1, 1]).problems
    assert found.count("bound") == 0 and found.count("free") == 2


class TestErrors:
    def test_no_targets(self):
        """Conditions are about the targets, too."""
        X, y = samples()
        with pytest.raises(InvalidInputError, match="y is None: pass the y that it was fitted to"):
            kkt_report(SVC().fit(X, y), X)

    def test_other_samples(self):
        """Only the training samples have conditions."""
        X, y = samples()
        with pytest.raises(InvalidInputError, match="X has 79 samples, but the estimator was fitted to 80"):
            kkt_report(SVC().fit(X, y), X[1:], y[1:])

    def test_another_estimator(self):
        """An object that is no estimator is refused."""
        with pytest.raises(InvalidInputError, match="but was given dict"):
            kkt_report({}, [[0.0]], [0])


class TestNotesVariables:
    """α, ξ and μ as the notes name them."""

    def test_by_hand(self):
        """±1 with C = 0.1: α = C, f = ±0.2, ξ = 0.8, μ = 0; with C = 10: α = 0.5, ξ = 0, μ = 9.5."""
        X, y = [[-1.0], [1.0]], [0, 1]
        for C, alpha, xi, mu in ((0.1, 0.1, 0.8, 0.0), (10.0, 0.5, 0.0, 9.5)):
            (found,) = kkt_report(SVC(kernel="linear", C=C, tol=1e-9).fit(X, y), X, y).problems
            np.testing.assert_allclose([found.alpha, found.xi, found.mu], [[alpha] * 2, [xi] * 2, [mu] * 2], atol=1e-9)

    @pytest.mark.parametrize("machine", MACHINES, ids=named)
    def test_all_are_complementary(self, machine):
        """α, ξ, μ ≥ 0, and μξ = 0 to within tol · C."""
        X, y = samples()
        weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
        model = machine.set_params(tol=1e-7).fit(X, y, sample_weight=weight)
        (found,) = kkt_report(model, X, y, weight).problems
        assert found.alpha.min() >= 0 and found.xi.min() >= 0 and found.mu.min() >= -1e-12
        np.testing.assert_allclose(found.mu * found.xi, 0.0, atol=1e-5)

    def test_primal_and_dual_from_them(self):
        """½|w|² + Σ Cξ and Σα − ½|w|² are the certificate's; Σαy = 0; α + μ = C."""
        X, y = samples()
        weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
        model = SVC(C=0.7, tol=1e-8).fit(X, y, sample_weight=weight)
        (found,) = kkt_report(model, X, y, weight).problems
        half = 0.5 * model.rkhs_norm_[0] ** 2
        assert half + 0.7 * weight @ found.xi == pytest.approx(found.certificate.primal, rel=1e-9)
        assert found.alpha.sum() - half == pytest.approx(found.certificate.dual, rel=1e-9)
        assert found.alpha @ (2 * y - 1) == pytest.approx(0.0, abs=1e-9)
        np.testing.assert_allclose(found.alpha + found.mu, 0.7 * weight, rtol=1e-12)
        # α (y f − 1 + ξ) = 0
        np.testing.assert_allclose(found.alpha * ((2 * y - 1) * found.decision - 1 + found.xi), 0.0, atol=1e-7)

    def test_regression(self):
        """ξ is what leaves the tube: ½|w|² + C Σ ξ is the primal value; the pinball loss has slopes instead."""
        X, _ = samples()
        t = X[:, 0] + 0.3 * X[:, 1] ** 2
        model = SVR(C=0.5, epsilon=0.05, tol=1e-8).fit(X, t)
        (found,) = kkt_report(model, X, t).problems
        np.testing.assert_allclose(found.xi, np.maximum(0.0, np.abs(t - model.predict(X)) - 0.05), atol=1e-12)
        assert 0.5 * model.rkhs_norm_[0] ** 2 + 0.5 * found.xi.sum() == pytest.approx(found.certificate.primal)
        np.testing.assert_allclose(found.alpha + found.mu, 0.5)
        model = SVR(C=0.5, loss="pinball", quantile=0.8, tol=1e-8).fit(X, t)
        (found,) = kkt_report(model, X, t).problems
        np.testing.assert_allclose(found.xi, np.abs(t - model.predict(X)), atol=1e-12)
        bound = np.where(found.beta < 0, 0.1, 0.4)  # (1 − τ)C below, τC above
        np.testing.assert_allclose(found.alpha + found.mu, bound, atol=1e-12)

    def test_hard_margin_and_squares(self):
        """No C, so μ is infinite; with squared slack α = 2Cξ, and ξ ≥ 0 needs no multiplier."""
        X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
        (found,) = kkt_report(SVC(C=np.inf, kernel="linear").fit(X, y), X, y).problems
        assert (found.mu == np.inf).all() and (found.xi <= 1e-12).all()
        X, y = samples()
        (found,) = kkt_report(SVC(C=0.7, loss="squared_hinge", tol=1e-8).fit(X, y), X, y).problems
        np.testing.assert_allclose(found.alpha, 2 * 0.7 * found.xi, atol=1e-6)
        assert (found.mu == 0).all()

    def test_three_classes(self):
        """Each pair has its own."""
        X, _ = samples()
        y = np.digitize(X[:, 0], [-0.5, 0.5])
        for found in kkt_report(SVC(C=0.7).fit(X, y), X, y).problems:
            np.testing.assert_allclose(found.alpha + found.mu, 0.7)
            assert len(found.xi) == len(found.rows)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (SVDD(), "SVDD finds a ball"),
        (OrdinalSVC(), "OrdinalSVC has a loss at several thresholds for each sample"),
        (RankSVC(), "RankSVC has losses of pairs"),
        (LaplacianSVC(), "LaplacianSVC has the coefficients of all samples"),
        (OutputCodeSVC(), "OutputCodeSVC solves a problem for each word"),
        (QuantileSVR(), "QuantileSVR solves one problem for all quantiles"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_machines_are_refused_for_their_reason(model, reason):
    """Machines whose conditions are not those of one box and one sum say what differs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = np.arange(30) % 3
    with pytest.raises(InvalidInputError, match=reason):
        kkt_report(model.fit(X, y), X, y)
