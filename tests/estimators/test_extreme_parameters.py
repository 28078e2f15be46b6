"""Losses that weigh next to nothing or nearly everything, kernels that see nothing or only equality."""

import warnings

import numpy as np
import pytest

from mercer import LSSVC, SVC, SVDD, SVR, InvalidInputError, LaplacianSVC, OrdinalSVC, OutputCodeSVC, certify

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
Y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=120), [-0.5, 0.5])
SOME = np.where(np.arange(120) % 2 == 0, Y, -1)
EXTREMES = [1e-10, 1e-5, 1e5, 1e10]


def fitted(model, y):
    """The fitted model, which has warned if and only if its primal value is far above the dual one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    proof = model.certificate_
    said = ["The optimality conditions hold to within tol" in str(one.message) for one in caught]
    assert said == ([True] if proof.primal > 100 * proof.dual > 0 else [])
    return model


@pytest.mark.parametrize("C", [1.0, 1e10, 1e12])
def test_a_large_weight_is_said(C):
    """Machines that meet the conditions to within tol, but are far from the optimum, say so."""
    for model in (SVC(C=C), SVR(C=C), OrdinalSVC(C=C), OrdinalSVC(C=C, constraints="explicit")):
        fitted(model, Y)
    proof = fitted(SVC(C=C), Y).certificate_
    assert (proof.primal > 100 * proof.dual) == (C > 1)


@pytest.mark.parametrize("C", EXTREMES)
@pytest.mark.parametrize("kernel", [{}, {"gamma": 1e-10}, {"gamma": 1e10}, {"kernel": "linear"}], ids=str)
class TestExtremes:
    def test_least_squares(self, C, kernel):
        """LSSVC is within tol of the optimum, without a warning."""
        model = LSSVC(C=C, **kernel).fit(X, Y)
        assert model.certificate_.valid and model.certificate_.relative_gap <= 1e-6 and model.fit_status_ == 0
        assert certify(model, X, Y).valid

    def test_output_codes(self, C, kernel):
        """Every machine of OutputCodeSVC meets the optimality conditions within tol."""
        model = fitted(OutputCodeSVC(C=C, **kernel), Y)
        assert model.certificate_.valid and model.certificate_.kkt_violation <= 1e-3
        assert np.isfinite(model.decision_function(X)).all()

    def test_manifold(self, C, kernel):
        """LaplacianSVC meets the optimality conditions within tol."""
        model = fitted(LaplacianSVC(C=C, **kernel), SOME)
        assert model.certificate_.valid and model.certificate_.kkt_violation <= 1e-3
        assert np.isfinite(model.decision_function(X)).all()

    def test_smallest_ball(self, C, kernel):
        """SVDD: a C too small for any ball is an error, which says by how much; a large one gives the smallest ball."""
        if 1.0 / len(X) > C:
            with pytest.raises(InvalidInputError, match="multiply C by"):
                SVDD(C=C, **kernel).fit(X)
            return
        model = SVDD(C=C, **kernel).fit(X)
        assert model.certificate_.valid and model.certificate_.relative_gap <= 1e-4
        inside = model.decision_function(X)
        assert inside.min() >= -1e-4 * model.radius_**2


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 1e4])
def test_a_ball_of_any_size(scale):
    """With a linear kernel the ball around samples times s has s times the radius, and the same samples inside."""
    model, other = SVDD(kernel="linear", nu=0.2).fit(X), SVDD(kernel="linear", nu=0.2).fit(scale * X)
    assert other.radius_ == pytest.approx(scale * model.radius_, rel=1e-4)
    assert other.certificate_.relative_gap <= 1e-4
    outside = np.flatnonzero(model.decision_function(X) < -1e-3)
    assert (other.predict(scale * X)[outside] == -1).all()
