"""Certificates bound the distance to the optimum: never negative, zero at the optimum, larger elsewhere."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.problems.instances import FORMS, instance
from tests.reference.qp import solve_qp

from mercer.losses import HardMargin, Hinge, NuHinge, NuInsensitive, OneClass
from mercer.problems import certificate, combine, dual_objective, feasible_start, thresholds


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_strong_duality(loss, intercept, seed):
    """At the optimum of the reference solver primal and dual meet, for every loss."""
    problem = instance(loss, intercept, seed=seed)
    proof = problem.certificate(solve_qp(problem.K, problem.qp))
    assert proof.valid and proof.relative_gap < 1e-8
    assert proof.kkt_violation < 1e-8 and proof.infeasibility < 1e-10
    assert proof.of == loss.name


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_weak_duality(loss, intercept):
    """A disturbed β has a gap that covers what its dual, and that its primal, has lost."""
    problem = instance(loss, intercept)
    optimum = problem.certificate(solve_qp(problem.K, problem.qp))
    beta = solve_qp(problem.K, problem.qp)
    rng = np.random.default_rng(0)
    for size in (1e-6, 1e-4, 1e-2, 1.0):
        for _ in range(5):
            disturbed = feasible_start(problem.qp, near=beta + size * rng.normal(size=len(beta)))
            proof = problem.certificate(disturbed)
            assert proof.valid and proof.gap >= 0 and proof.relative_gap >= optimum.relative_gap
            rounding = 1e-9 * max(1.0, abs(optimum.primal))
            assert proof.gap >= optimum.dual - proof.dual - rounding
            assert proof.gap >= proof.primal - optimum.primal - rounding
            assert proof.dual <= optimum.primal + rounding and proof.primal >= optimum.dual - rounding


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_gap_grows_along_a_line_from_the_optimum(loss, intercept):
    """The dual is concave: the farther from its maximum the lower, and the gap is at least the loss."""
    problem = instance(loss, intercept)
    best = solve_qp(problem.K, problem.qp)
    end = feasible_start(problem.qp, near=best + np.random.default_rng(1).normal(size=len(best)))
    proofs = [problem.certificate((1 - t) * best + t * end) for t in (0.0, 0.1, 0.2, 0.4, 0.8)]
    duals = [p.dual for p in proofs]
    assert all(later < earlier for earlier, later in pairwise(duals))
    assert all(p.gap >= duals[0] - p.dual - 1e-9 for p in proofs)


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_order_of_rows_does_not_matter(loss, intercept):
    """A permutation of the samples permutes β and leaves the certificate as it is."""
    problem = instance(loss, intercept)
    n = len(problem.y)
    order = np.random.default_rng(0).permutation(n)
    beta = feasible_start(problem.qp)
    variables = order if problem.qp.sample is None else np.r_[order, order + n]
    qp = loss.box_qp(problem.y[order], problem.weight[order], intercept)
    found = certificate(qp, loss, problem.y[order], problem.weight[order], beta[variables], problem.F(beta)[order])
    expected = problem.certificate(beta)
    np.testing.assert_allclose(
        [found.primal, found.dual, found.kkt_violation],
        [expected.primal, expected.dual, expected.kkt_violation],
        rtol=1e-9,
        atol=1e-12,
    )


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_doubled_weight_is_a_repeated_row(loss, intercept):
    """Repeating every sample gives the same optimum as doubling every weight."""
    once = instance(loss, intercept, n=20)
    y, weight = np.tile(once.y, 2), np.tile(once.weight, 2)
    twice = replace(once, K=np.tile(once.K, (2, 2)), y=y, weight=weight, qp=loss.box_qp(y, weight, intercept))
    doubled = replace(once, weight=2 * once.weight, qp=loss.box_qp(once.y, 2 * once.weight, intercept))
    values = [p.certificate(solve_qp(p.K, p.qp)) for p in (twice, doubled)]
    assert all(v.relative_gap < 1e-7 for v in values)
    np.testing.assert_allclose(values[0].dual, values[1].dual, rtol=1e-7)


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_scaled_kernel_with_inversely_scaled_weight(loss, intercept):
    """K → cK with C → C/c divides β and the objective by c."""
    c = 8.0
    problem = instance(loss, intercept)
    weight = problem.weight / c
    scaled = replace(problem, K=c * problem.K, weight=weight, qp=loss.box_qp(problem.y, weight, intercept))
    beta = feasible_start(problem.qp)
    one, other = problem.certificate(beta), scaled.certificate(beta / c)
    np.testing.assert_allclose([other.primal, other.dual], [one.primal / c, one.dual / c], rtol=1e-12)
    np.testing.assert_allclose(other.relative_gap, one.relative_gap, rtol=1e-9)
    # the thresholds of one-class and ν-SVC scale with f, which cK·β/c leaves as it is
    np.testing.assert_allclose(other.kkt_violation, one.kkt_violation, rtol=1e-9)


def test_label_flip_flips_the_intercept():
    """With −y the optimum is −β, the threshold −b and the certificate the same."""
    for loss in (Hinge(), NuHinge(0.3)):
        problem = instance(loss)
        flipped = replace(problem, y=-problem.y, qp=loss.box_qp(-problem.y, problem.weight, True))
        beta = solve_qp(problem.K, problem.qp)
        one, other = problem.certificate(beta), flipped.certificate(-beta)
        np.testing.assert_allclose([one.primal, one.dual], [other.primal, other.dual], rtol=1e-9)
        b = thresholds(problem.qp, beta, problem.F(beta))
        np.testing.assert_allclose(thresholds(flipped.qp, -beta, -problem.F(beta)), -b[::-1], rtol=1e-7)


@pytest.mark.parametrize(("loss", "intercept"), FORMS, ids=str)
def test_rows_without_loss_may_be_left_out(loss, intercept):
    """With F known only where there is a loss or a β, the certificate is the same; elsewhere F is not read."""
    problem = instance(loss, intercept)
    qp, n = problem.qp, len(problem.y)
    rng = np.random.default_rng(0)
    beta = solve_qp(problem.K, qp)
    # at the optimum a sample without β has no loss
    rows = rng.permutation(np.flatnonzero((qp.at_samples(np.abs(beta), n) > 0) | (rng.uniform(size=n) < 0.3)))
    F = np.full(n, np.nan)
    F[rows] = problem.F(beta)[rows]
    expected = problem.certificate(beta)
    found = certificate(qp, loss, problem.y, problem.weight, beta, F, rows=rows)
    np.testing.assert_allclose([found.primal, found.dual], [expected.primal, expected.dual], rtol=1e-8)
    assert found.valid and found.gap < 1e-7 and found.kkt_violation <= expected.kkt_violation
    assert found.infeasibility == pytest.approx(expected.infeasibility, abs=1e-13 * np.abs(beta).max())


def test_rows_must_hold_the_support():
    """A row with β ≠ 0 cannot be left out."""
    problem = instance(Hinge())
    beta = solve_qp(problem.K, problem.qp)
    with pytest.raises(ValueError, match=r"^rows must contain every sample with a nonzero beta: F is needed there\.$"):
        problem.certificate(beta, rows=np.flatnonzero(beta)[1:])


def test_published_intercept_is_what_is_certified():
    """A worse intercept has a larger primal and the same dual."""
    problem = instance(Hinge())
    beta = solve_qp(problem.K, problem.qp)
    b = thresholds(problem.qp, beta, problem.F(beta))
    assert problem.certificate(beta, intercept=float(b[0])) == problem.certificate(beta)
    worse = problem.certificate(beta, intercept=float(b[0]) + 0.1)
    assert worse.primal > problem.certificate(beta).primal and worse.dual == problem.certificate(beta).dual
    with pytest.raises(ValueError, match=r"^intercept has 1 entries, but the problem has 2 groups: give one each\.$"):
        instance(NuInsensitive(0.4)).certificate(np.zeros(60), intercept=0.0)
    without = instance(Hinge(), intercept=False)
    assert without.certificate(np.zeros(30), intercept=0.0) == without.certificate(np.zeros(30))


def test_not_valid():
    """Without a positive semidefinite kernel or without feasibility nothing is bounded, and the sentence says so."""
    problem = instance(Hinge())
    beta = solve_qp(problem.K, problem.qp)
    proof = problem.certificate(beta, psd=False)
    assert not proof.valid
    assert str(proof) == (
        "no bound on the distance to the optimum, because the kernel is not positive semidefinite "
        f"(primal {proof.primal:.7g}, dual {proof.dual:.7g}), "
        f"KKT violation {proof.kkt_violation:.1e}, infeasibility {proof.infeasibility:.1e}"
    )
    assert problem.certificate(2 * beta).reason == "beta is not feasible"
    assert problem.certificate(beta + 0.1).reason == "beta is not feasible"


def test_optimum_of_zero_is_certified():
    """One-class with the origin among the samples has w = 0: rounding decides the sign of |w|², not the validity."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    loss = OneClass(0.5)
    for scale in (1e-3, 1.0, 1e3):
        weight = np.full(40, scale)
        qp = loss.box_qp(np.ones(40), weight, True)
        beta = solve_qp(X @ X.T, qp)
        proof = certificate(qp, loss, np.ones(40), weight, beta, X @ (X.T @ beta))
        assert proof.valid and 0 <= proof.gap <= 1e-10 * scale**2


def test_nothing_is_learnt_from_nothing():
    """Zero over zero is a gap of zero; an infinite primal leaves the distance unknown."""
    empty = Hinge().box_qp(np.ones(2), np.zeros(2), True)
    proof = certificate(empty, Hinge(), np.ones(2), np.zeros(2), np.zeros(2), np.zeros(2))
    assert (proof.gap, proof.relative_gap, proof.valid) == (0.0, 0.0, True)
    y, weight = np.array([1.0, -1.0]), np.full(2, np.inf)
    qp = HardMargin().box_qp(y, weight, True)
    proof = certificate(qp, HardMargin(), y, weight, np.zeros(2), np.zeros(2))
    assert (proof.primal, proof.gap, proof.relative_gap) == (np.inf, np.inf, np.inf)
    assert str(proof) == (
        "at an unknown distance from the optimum (primal inf, dual 0), KKT violation 2.0e+00, infeasibility 0"
    )


def test_undefined_is_infinite():
    """Scores or a β that are no numbers give no finite number, and no bound."""
    problem = instance(Hinge())
    beta, F = np.zeros(30), np.full(30, np.nan)
    proof = certificate(problem.qp, problem.loss, problem.y, problem.weight, beta, F)
    assert (proof.primal, proof.dual, proof.gap, proof.kkt_violation) == (np.inf, -np.inf, np.inf, np.inf)
    assert str(proof).startswith("at an unknown distance from the optimum")
    proof = certificate(problem.qp, problem.loss, problem.y, problem.weight, F, F)
    assert not proof.valid and proof.infeasibility == np.inf and proof.relative_gap == np.inf


def test_sentence():
    """A certificate prints as one sentence with its numbers."""
    problem = instance(Hinge())
    proof = replace(
        problem.certificate(np.zeros(30)),
        primal=123.45674,
        dual=123.4541,
        gap=0.00264,
        relative_gap=2.1384e-5,
        kkt_violation=8.7e-4,
        infeasibility=0.0,
    )
    assert str(proof) == (
        "within 2.1e-05 of the optimum (relative gap; primal 123.4567, dual 123.4541), "
        "KKT violation 8.7e-04, infeasibility 0"
    )


def test_combined_certificates():
    """Values add up, violations do not; one that is not valid spoils the rest."""
    proofs = [instance(Hinge(), seed=seed).certificate(np.zeros(30)) for seed in range(3)]
    total = combine(proofs)
    assert total.of == "3 pairwise problems" and total.valid
    np.testing.assert_allclose(total.gap, sum(p.gap for p in proofs))
    np.testing.assert_allclose(total.primal - total.dual, total.gap)
    assert total.kkt_violation == max(p.kkt_violation for p in proofs)
    spoiled = combine([*proofs, replace(proofs[0], valid=False, reason="it is so")], of="all")
    assert (spoiled.valid, spoiled.reason, spoiled.of) == (False, "it is so", "all")
    assert combine(proofs[:1]) is proofs[0]


def test_dual_of_the_certificate_is_the_objective():
    """The dual value is that of `dual_objective`."""
    problem = instance(NuInsensitive(0.4))
    beta = feasible_start(problem.qp)
    assert problem.certificate(beta).dual == dual_objective(problem.qp, beta, problem.F(beta))
