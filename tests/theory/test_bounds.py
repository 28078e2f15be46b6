"""Bounds: by hand, against what they are the least of, and in simulations."""

from math import e, exp, inf, log, sqrt

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.naming import named

from mercer import SVC, Gaussian, KernelERM, KernelLogisticRegression, LinearSVC, Polynomial, RampSVC
from mercer.exceptions import InvalidInputError
from mercer.losses import Hinge, SquaredHinge
from mercer.theory import bounds, error_bounds, lambda_to_C, margins


class TestFormulas:
    def test_hard_margin(self):
        """With (ρ/γ)² = 4, n = 100 and log(2/δ) = 2: √(16/100) + √(4/100)."""
        assert bounds.hard_margin(1.0, 2.0, 100, delta=2 * exp(-2)) == pytest.approx(0.4 + 0.2)

    def test_soft_margin(self):
        """0.1 + λ·4 + 2·9/(λ·100) for λ = 0.5, |u| = 2, ρ = 3, n = 100."""
        assert bounds.soft_margin(0.1, 2.0, 3.0, 100, lam=0.5) == pytest.approx(0.1 + 2.0 + 0.36)

    def test_vc(self):
        """With D = 2, n = 2e: log(en/D) = 2, and log(1/δ) = 2."""
        n = 50
        expected = 0.25 + sqrt(2 * 2 * log(e * n / 2) / n) + sqrt(2 / (2 * n))
        assert bounds.vc(2, n, delta=exp(-2), error=0.25) == pytest.approx(expected)
        assert bounds.vc(51, n) == inf == bounds.vc(inf, n)

    def test_the_best_lambda_is_the_best(self):
        """No λ makes Corollary 15.7 smaller, and at the best one it is L + √(8ρ²B²/n)."""
        B, rho, n = 3.0, 2.0, 700
        lam = bounds.best_lambda(B, rho, n)
        least = bounds.soft_margin(0.2, B, rho, n, lam)
        assert least == pytest.approx(0.2 + sqrt(8 * rho**2 * B**2 / n))
        assert least == pytest.approx(bounds.soft_margin(0.2, B, rho, n))
        for factor in (0.01, 0.5, 0.99, 1.01, 2.0, 100.0):
            assert bounds.soft_margin(0.2, B, rho, n, factor * lam) > least

    def test_lipschitz_constants(self):
        """A loss of constant L is that of the hinge loss with samples L times as long (Corollary 13.8)."""
        for L in (0.7, 1.0, 3.0):
            found = bounds.soft_margin(0.1, 2.0, 3.0, 100, 0.5, lipschitz=L)
            assert found == pytest.approx(bounds.soft_margin(0.1, 2.0, 3.0 * L, 100, 0.5))
            assert bounds.best_lambda(2.0, 3.0, 100, lipschitz=L) == pytest.approx(
                bounds.best_lambda(2.0, 3.0 * L, 100)
            )
        assert Hinge().lipschitz == 1.0  # so it is the default

    def test_scale(self):
        """Scaling all samples changes ρ and γ alike, and neither bound: 1/|w| scales like γ."""
        assert bounds.hard_margin(0.3, 1.0, 50) == pytest.approx(bounds.hard_margin(300.0, 1000.0, 50))
        assert bounds.soft_margin(0.1, 5.0, 1.0, 50) == pytest.approx(bounds.soft_margin(0.1, 0.005, 1000.0, 50))

    def test_nothing_is_lost_at_norm_zero(self):
        """u = 0 has the hinge loss 1, and no samples are needed to know it."""
        assert bounds.soft_margin(1.0, 0.0, 5.0, 10) == 1.0

    @pytest.mark.parametrize(
        "call,message",
        [
            (
                lambda: bounds.hard_margin(0.0, 1.0, 10),
                "gamma=0.0 was given: it must be a finite number greater than 0.",
            ),
            (lambda: bounds.hard_margin(-1.0, 1.0, 10), "gamma=-1.0 was given"),
            (
                lambda: bounds.hard_margin(1.0, np.nan, 10),
                "rho=nan was given: it must be a finite number of at least 0.",
            ),
            (
                lambda: bounds.hard_margin(1.0, 1.0, 10, delta=1.0),
                "delta=1.0 was given: it must be a probability strictly between",
            ),
            (lambda: bounds.hard_margin(1.0, 1.0, 0), "n=0 was given"),
            (lambda: bounds.soft_margin(-0.1, 1.0, 1.0, 10), "loss=-0.1 was given"),
            (lambda: bounds.soft_margin(0.1, 1.0, 1.0, 10, lam=0.0), "lam=0.0 was given"),
            (lambda: bounds.best_lambda(0.0, 1.0, 10), "norm=0.0 was given"),
            (
                lambda: bounds.soft_margin(0.1, 1.0, 1.0, 10, lipschitz=SquaredHinge().lipschitz),
                "lipschitz=inf was given: the corollary holds for losses with a Lipschitz constant, such as the hinge "
                "loss, not for squared losses.",
            ),
            (lambda: bounds.best_lambda(1.0, 1.0, 10, lipschitz=0.0), "lipschitz=0.0 was given"),
            (lambda: bounds.vc(0, 10), "dimension=0 was given: a VC dimension is a number of at least 1, or inf."),
            (lambda: bounds.vc("3", 10), "dimension='3' was given"),
        ],
        ids=[
            "gamma0",
            "gamma",
            "rho",
            "delta",
            "n",
            "loss",
            "lam",
            "norm",
            "squared",
            "lipschitz",
            "dimension",
            "string",
        ],
    )
    def test_bad_input(self, call, message):
        """Errors name the argument and what it may be."""
        with pytest.raises(InvalidInputError) as found:
            call()
        assert str(found.value).startswith(message)


class TestSimulations:
    def sample(self, rng, n, gamma):
        """Uniform in the unit disc, but for a strip of half width γ around the vertical axis."""
        X = np.empty((0, 2))
        while len(X) < n:
            more = rng.uniform(-1, 1, size=(2 * n, 2))
            X = np.vstack([X, more[(np.abs(more[:, 0]) >= gamma) & ((more**2).sum(axis=1) <= 1)]])
        return X[:n], np.where(X[:n, 0] > 0, 1, -1)

    @pytest.mark.parametrize("n", [20, 200])
    def test_hard_margin_holds(self, n):
        """Of 40 machines fitted to samples of a separable distribution, none errs more often than Theorem 15.4 says."""
        rng = np.random.default_rng(n)
        X_new, y_new = self.sample(rng, 4000, 0.5)
        bound = bounds.hard_margin(0.5, 1.0, n, delta=0.01)
        for _ in range(40):
            X, y = self.sample(rng, n, 0.5)
            if len(np.unique(y)) < 2:
                continue
            model = SVC(C=np.inf, kernel="linear", fit_intercept=False).fit(X, y)
            assert 1 - model.score(X_new, y_new) <= bound

    def test_soft_margin_holds_in_expectation(self):
        """The mean hinge loss on new samples, over 40 training sets, is below Corollary 15.7 with the best λ.

        u is any vector of norm at most B: here (B, 0). One label in ten is wrong.
        """
        rng = np.random.default_rng(1)
        n, B = 400, 2.0

        def noisy(size):
            X, y = self.sample(rng, size, 0.5)
            return X, np.where(rng.random(size) < 0.1, -y, y)

        def hinge(f, y):
            return np.maximum(0.0, 1.0 - y * f).mean()

        X_new, y_new = noisy(20_000)
        lam = bounds.best_lambda(B, 1.0, n)
        losses = []
        for _ in range(40):
            model = SVC(C=lambda_to_C(lam, n), kernel="linear", fit_intercept=False).fit(*noisy(n))
            losses.append(hinge(model.decision_function(X_new), y_new))
        promised = bounds.soft_margin(hinge(B * X_new[:, 0], y_new), B, 1.0, n)
        assert np.mean(losses) <= promised < 1.0

    def test_vc_holds(self):
        """The same for the VC bound, with the training error of each machine."""
        rng = np.random.default_rng(2)
        X_new, y_new = self.sample(rng, 4000, 0.0)
        for _ in range(40):
            X, y = self.sample(rng, 100, 0.0)
            y = np.where(rng.random(100) < 0.1, -y, y)
            model = SVC(kernel="linear").fit(X, y)
            right = np.where(rng.random(4000) < 0.1, -y_new, y_new)
            assert 1 - model.score(X_new, right) <= bounds.vc(3, 100, 0.01, 1 - model.score(X, y))


class TestCompare:
    def test_few_words_of_many(self):
        """[SSBD] 15.2.2: documents of few words out of many, told apart by two of them, by their margin."""
        rng = np.random.default_rng(0)
        n, d = 3000, 2000
        X = np.zeros((n, d))
        y = np.where(rng.random(n) < 0.5, 1, -1)
        X[np.arange(n), np.where(y > 0, 0, 1)] = 1.0
        X[np.arange(n), rng.integers(2, d, n)] = 1.0
        (report,) = error_bounds(SVC(C=np.inf, kernel="linear", fit_intercept=False).fit(X, y), X, y)
        hard, _, soft, vc = report.bounds
        assert report.dimension == d and report.rho == pytest.approx(sqrt(2))
        assert hard.value < 1 and soft.value < 1 < vc.value
        assert report.smallest in (hard, soft)

    @pytest.mark.parametrize(
        ("model", "reason"),
        [
            (LinearSVC(loss="squared_hinge"), "the squared hinge loss is not Lipschitz"),
            (SVC(loss="squared_hinge", kernel="linear"), "the squared hinge loss is not Lipschitz"),
            (RampSVC(kernel="linear"), "the ramp loss is not convex"),
            (SVC(C=np.inf, kernel="linear"), "no λ belongs to C = inf"),
            (KernelLogisticRegression(kernel="linear"), "the model minimises the logistic loss"),
            (LogisticRegression(), "the model minimises the logistic loss"),
            (KernelERM("logistic", kernel="linear"), "the model minimises the logistic loss"),
            (KernelERM("squared_hinge", kernel="linear"), "the squared hinge loss is not Lipschitz"),
            (KernelERM("hinge", penalty="norm", kernel="linear"), "the penalty is not ½|w|²"),
        ],
        ids=named,
    )
    def test_losses_without_a_bound(self, model, reason):
        """Corollary 15.7 is about convex Lipschitz losses; with another λ of the hinge loss it holds, too."""
        X, y = TestSimulations().sample(np.random.default_rng(0), 100, 0.3)
        (report,) = error_bounds(model.fit(X, y), X, y)
        of_model, best = report.bounds[1:3]
        assert of_model.value == inf and of_model.remark == f"Corollary 15.7: {reason}"
        assert best.value < inf

    def test_a_thin_strip_in_the_plane(self):
        """Classes a hair apart in two dimensions: the dimension beats the margin."""
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, size=(2000, 2))
        X[:, 0] += 1e-3 * np.sign(X[:, 0])
        y = np.sign(X[:, 0])
        (report,) = error_bounds(SVC(C=np.inf, kernel="linear", fit_intercept=False).fit(X, y), X, y)
        assert report.smallest.name == "VC dimension 2"
        assert "VC dimension 2" in str(report) and "smallest" in str(report)

    def test_the_bias_is_a_feature(self):
        """With a bias, w, b and ρ are those of samples with one more feature of value ρ."""
        X, y = np.array([[3.0], [4.0], [6.0], [7.0]]), [-1, -1, 1, 1]
        model = SVC(C=np.inf, kernel="linear").fit(X, y)
        (report,) = error_bounds(model, X, y)
        longer = np.column_stack([X, np.full(4, 7.0)])
        w = np.append(model.coef_[0], model.intercept_ / 7.0)
        gamma = float((np.array(y) * (longer @ w)).min() / np.linalg.norm(w))
        assert report.bounds[0].value == pytest.approx(bounds.hard_margin(gamma, sqrt(2) * 7, 4))
        assert report.dimension == 2.0

    def test_no_margin_no_bound(self):
        """Where the samples are not separated, Theorem 15.4 does not apply, and a Gaussian kernel has no dimension."""
        X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1]
        (report,) = error_bounds(SVC(gamma=0.01).fit(X, y), X, y)
        assert report.bounds[0].value == inf and report.bounds[3].value == inf
        assert "the samples are not separated" in str(report)

    @pytest.mark.parametrize(
        "kernel,dimension",
        [("linear", 3), (Polynomial(2, 1.0, 0.0), 6), (Polynomial(2, 1.0, 1.0), 10), (Gaussian(1.0), inf)],
        ids=["linear", "homogeneous", "inhomogeneous", "gaussian"],
    )
    def test_dimensions(self, kernel, dimension):
        """Three features have 6 monomials of degree two, and 10 up to degree two."""
        X = np.random.default_rng(0).normal(size=(30, 3))
        (report,) = error_bounds(SVC(kernel=kernel, fit_intercept=False).fit(X, X[:, 0] > 0), X, X[:, 0] > 0)
        assert report.dimension == dimension

    def test_one_report_per_pair(self):
        """Several classes have a report for each pair, from the margins of the pair."""
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20)
        X += 5 * y[:, None]
        model = SVC(kernel="linear").fit(X, y)
        reports = error_bounds(model, X, y)
        assert [r.of for r in reports] == [p.name for p in margins(model, X, y).problems]
        assert [r.n for r in reports] == [40, 40, 40]
