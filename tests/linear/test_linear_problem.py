"""The linear problem: products with rows of any storage, penalties and their conjugates, weak duality."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.naming import named

from mercer.exceptions import InvalidInputError
from mercer.linear.linear_problem import LinearProblem, Penalty, Rows, linear_certificate
from mercer.losses import EpsilonInsensitive, HardMargin, Hinge, NuHinge, SquaredEpsilonInsensitive, SquaredHinge

STORAGE = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "whole numbers": lambda X: np.round(X).astype(np.int64),
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
}


def dense(X, bias):
    """X in float64 with its constant feature."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    return np.column_stack([X, np.full(len(X), bias)]) if bias else X


def sample(n=37, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    X[3] = 0.0
    return X, rng


class TestRows:
    @pytest.mark.parametrize("bias", [0.0, 1.5])
    @pytest.mark.parametrize("storage", STORAGE)
    def test_products(self, storage, bias):
        """Xw, X'β, some rows and some features are those of the dense matrix, for one thread and for several."""
        X, rng = sample()
        X = STORAGE[storage](X)
        rows, A = Rows.of(X, bias), dense(X, bias)
        assert (rows.n, rows.d, rows.sparse) == (*A.shape, sp.issparse(X))
        w, beta = rng.normal(size=rows.d), rng.normal(size=rows.n)
        for threads in (1, 3):
            np.testing.assert_allclose(rows.dot(w, threads), A @ w, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(rows.tdot(beta, threads), A.T @ beta, rtol=1e-12, atol=1e-12)
        some = np.array([5, 3, 20])
        np.testing.assert_allclose(rows.take(some).dot(w), A[some] @ w, rtol=1e-12, atol=1e-12)
        chosen = np.array([1, 4, rows.d - 1])
        np.testing.assert_allclose(rows.columns(chosen).dot(w[chosen]), A[:, chosen] @ w[chosen], atol=1e-12)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=named)
    def test_sparse_rows_of_every_length(self, dtype):
        """Products and X'DX of rows with 0, 1, 2, ... entries, which are read four at a time."""
        from mercer.linear.systems import weighted_gram

        rng = np.random.default_rng(0)
        A = np.tril(rng.normal(size=(24, 24)), -1).astype(dtype)[:, rng.permutation(24)]
        rows, D = Rows.of(sp.csr_array(A)), rng.random(24)
        w, beta, A = rng.normal(size=24), rng.normal(size=24), A.astype(np.float64)
        np.testing.assert_allclose(rows.dot(w), A @ w, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(rows.tdot(beta), A.T @ beta, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(weighted_gram(rows, D), A.T @ (D[:, None] * A), rtol=1e-12, atol=1e-12)

    def test_nothing_is_copied(self, tmp_path):
        """Arrays in C order, memory maps and CSR are used as they are."""
        X, _ = sample()
        assert np.shares_memory(Rows.of(X).X, X)
        single = X.astype(np.float32)
        assert np.shares_memory(Rows.of(single).X, single)
        mapped = np.memmap(tmp_path / "X", dtype=np.float32, mode="w+", shape=X.shape)
        assert np.shares_memory(Rows.of(mapped).X, mapped)
        sparse = sp.csr_array(X)
        assert np.shares_memory(Rows.of(sparse).X.data, sparse.data)

    def test_float32_is_summed_in_float64(self):
        """Cancellation costs no digits beyond those of the stored numbers."""
        X = np.array([[1e8, 1.0, -1e8]], dtype=np.float32)
        assert Rows.of(X).dot(np.ones(3))[0] == 1.0

    def test_duplicates_in_a_sparse_matrix_are_summed(self):
        """A position stored twice means the sum."""
        X = sp.csr_matrix((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
        assert Rows.of(X).dot(np.array([10.0, 1.0])).tolist() == [30.0]
        unsorted = sp.csr_matrix((np.array([1.0, 5.0, 2.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
        assert Rows.of(unsorted).dot(np.array([10.0, 1.0])).tolist() == [53.0]
        assert unsorted.nnz == 3  # what was given is left as it is

    def test_entries_in_any_order(self):
        """Rows whose entries are not in order are not copied, and give the same products and X'DX."""
        from mercer.linear.systems import weighted_gram

        X, rng = sample()
        X = sp.csr_matrix(X * (rng.random(X.shape) < 0.5))
        mixed = X.tocsc()[:, ::-1].tocsr()[:, ::-1]
        assert not mixed.has_sorted_indices
        rows, D = Rows.of(mixed, 0.5), rng.random(X.shape[0])
        assert np.shares_memory(rows.X.data, mixed.data)
        A = dense(X, 0.5)
        np.testing.assert_allclose(weighted_gram(rows, D), A.T @ (D[:, None] * A), atol=1e-12)
        np.testing.assert_allclose(rows.dot(np.ones(rows.d)), A.sum(axis=1), atol=1e-12)


class TestPenalty:
    @pytest.mark.parametrize("penalty", [Penalty(), Penalty(0.3, 0.7), Penalty(0.0, 2.0)], ids=named)
    def test_conjugate(self, penalty):
        """P*(v) = v·w − P(w) at its maximiser, and no other w gives more."""
        rng = np.random.default_rng(1)
        v = rng.normal(size=5)
        w = np.sign(v) * np.maximum(0.0, np.abs(v) - penalty.l1) / penalty.l2  # soft thresholding
        np.testing.assert_allclose(penalty.conjugate(v), v @ w - penalty.value(w))
        for _ in range(50):
            other = w + 0.3 * rng.normal(size=5)
            assert v @ other - penalty.value(other) <= penalty.conjugate(v) + 1e-12

    def test_without_a_quadratic_part(self):
        """P* is 0 inside the box |v| ≤ l1 and infinite outside, and scaling leads into it."""
        penalty = Penalty(0.5, 0.0)
        assert penalty.conjugate(np.array([0.5, -0.2])) == 0.0
        assert penalty.conjugate(np.array([0.6, 0.0])) == np.inf
        assert penalty.feasible_scale(np.array([2.0, 0.0])) == 0.25
        assert penalty.feasible_scale(np.array([0.1])) == 1.0
        assert Penalty(0.5, 0.5).feasible_scale(np.array([9.0])) == 1.0


LOSSES = [Hinge(), SquaredHinge(), EpsilonInsensitive(0.2), SquaredEpsilonInsensitive(0.2)]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", [Penalty(), Penalty(0.3, 0.7), Penalty(1.0, 0.0)], ids=named)
@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_weak_duality(loss, penalty, intercept):
    """No dual value is above any primal value, for arbitrary w and arbitrary β in the box."""
    X, rng = sample(60, 4)
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    problem = LinearProblem(Rows.of(X), loss, y, rng.uniform(0.5, 2.0, 60), intercept, penalty)
    qp = problem.qp
    for scale in 10.0 ** rng.uniform(-3, 0.5, size=40):
        beta = np.clip(scale * rng.normal(size=60), qp.lower, qp.upper)
        if intercept:
            # the positive and the negative ones in balance
            positive, negative = beta[beta > 0].sum(), -beta[beta < 0].sum()
            beta = np.where(beta > 0, beta * min(1, negative / positive), beta * min(1, positive / negative))
        w, b = scale * rng.normal(size=4), float(rng.normal()) * intercept
        proof = linear_certificate(problem, w, b, beta)
        assert proof.valid and proof.gap >= 0
        assert proof.gap == pytest.approx(problem.primal(w, b) - problem.dual(beta), abs=1e-9)
        assert proof.of == loss.name


def test_the_value_is_the_formula():
    """P(w) + Σ weight max(0, 1 − y(xw + b)), by hand."""
    X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
    problem = LinearProblem(Rows.of(X), Hinge(), y, np.array([1.0, 3.0]), True, Penalty(0.5, 2.0))
    w = np.array([0.5, -0.25])
    # f + b = 0.6, −0.4: losses 0.4 and 0.6
    assert problem.primal(w, 0.1) == pytest.approx(0.5 * 0.75 + (0.25 + 0.0625) + 0.4 + 3 * 0.6)


def test_hard_margin_is_the_value_of_the_scaled_model():
    """A separator that misses y f ≥ 1 is scaled up; one that does not separate has no value."""
    X, y = np.array([[1.0], [-2.0]]), np.array([1.0, -1.0])
    for penalty in (Penalty(), Penalty(1.0, 0.0)):
        problem = LinearProblem(Rows.of(X), HardMargin(), y, np.ones(2), False, penalty)
        assert problem.primal(np.array([0.5]), 0.0) == pytest.approx(penalty.value(np.array([1.0])))
        assert problem.primal(np.array([-1.0]), 0.0) == np.inf


def test_beta_outside_its_box_proves_nothing():
    """The certificate says so."""
    X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    problem = LinearProblem(Rows.of(X), Hinge(), y, np.ones(2))
    assert not linear_certificate(problem, np.ones(1), 0.0, np.array([-0.5, 0.0])).valid
    problem = LinearProblem(Rows.of(X), Hinge(), y, np.ones(2), True)
    assert not linear_certificate(problem, np.ones(1), 0.0, np.array([0.5, 0.0])).valid


class TestViolation:
    """One sample x = 1 of class 1 and weight 2, so that f = w, and β may be in [0, 2]."""

    @staticmethod
    def shown(loss, w, beta, y=1.0):
        problem = LinearProblem(Rows.of(np.ones((1, 1))), loss, np.array([y]), np.array([2.0]))
        return linear_certificate(problem, np.array([w]), 0.0, np.array([beta])).kkt_violation

    def test_straight_pieces(self):
        """The distance from the kink, times the share of the box that β is away from where it should be."""
        # f = −2 misses the margin by 3: β = 2 is right
        for beta, violation in ((2.0, 0.0), (0.0, 3.0), (1.0, 1.5), (2.0 - 2e-9, 3e-9)):
            assert self.shown(Hinge(), -2.0, beta) == pytest.approx(violation, rel=1e-6)
        # f = 5 is beyond it by 4: β = 0 is right
        for beta, violation in ((0.0, 0.0), (2.0, 4.0), (2e-9, 4e-9)):
            assert self.shown(Hinge(), 5.0, beta) == pytest.approx(violation, rel=1e-6)

    def test_it_is_the_samples_part_of_the_gap(self):
        """For each unit of weight: ℓ + ℓ*(β) − βf, whatever f and β are."""
        rng = np.random.default_rng(0)
        for _ in range(50):
            w, beta = 3 * rng.normal(), 2 * rng.random()
            part = 2.0 * max(0.0, 1.0 - w) - beta * (1.0 - w)
            assert self.shown(Hinge(), w, beta) == pytest.approx(part / 2.0, abs=1e-12)

    def test_curved_pieces(self):
        """β of a squared hinge is 2C(1 − f): what is missing, in units of f, and no more than the room allows."""
        assert self.shown(SquaredHinge(), 0.5, 2.0) == pytest.approx(0.0, abs=1e-15)
        assert self.shown(SquaredHinge(), 0.5, 1.0) == pytest.approx(0.25)
        assert self.shown(SquaredHinge(), 9.0, 4e-9) == pytest.approx(1e-9)

    def test_tubes(self):
        """Inside the tube β = 0 is right, from both sides; across 0 it goes on where the rate is large."""
        loss = EpsilonInsensitive(0.5)
        assert self.shown(loss, 0.9, 0.0) == 0.0
        # t = 0.1: β = 2 should come down to 0 at the rate 0.5 − 0.1
        assert self.shown(loss, 0.9, 2.0) == pytest.approx(0.4)
        assert self.shown(loss, 0.9, -1.0) == pytest.approx(0.5 * 0.6)
        # t = −2 asks for β = −2
        assert self.shown(loss, 3.0, 2.0) == pytest.approx(2.5)
        assert self.shown(loss, 3.0, -2.0) == 0.0

    def test_not_a_number(self):
        """It is never small, wherever it is."""
        assert self.shown(Hinge(), np.nan, 1.0) == np.inf
        assert self.shown(SquaredHinge(), np.nan, 1.0) == np.inf
        for place in (0, 1):
            rows, f = Rows.of(np.ones((2, 1))), np.zeros(2)
            f[place] = np.nan
            problem = LinearProblem(rows, Hinge(), np.ones(2), np.ones(2))
            for beta in (0.0, 0.5, 1.0):
                assert linear_certificate(problem, np.zeros(1), 0.0, np.full(2, beta), f=f).kkt_violation == np.inf

    def test_without_weight(self):
        """A sample of weight 0 asks for nothing."""
        for loss in (Hinge(), SquaredHinge()):
            problem = LinearProblem(Rows.of(np.ones((1, 1))), loss, np.ones(1), np.zeros(1))
            assert linear_certificate(problem, np.array([-5.0]), 0.0, np.zeros(1)).kkt_violation == 0.0


def test_losses_with_thresholds_of_their_own_are_refused():
    """ν-machines are not linear problems of this form."""
    problem = LinearProblem(Rows.of(np.eye(4)), NuHinge(0.5), np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4), True)
    with pytest.raises(InvalidInputError) as found:
        _ = problem.qp
    assert str(found.value) == (
        "The nu-SVC loss has thresholds of its own: the linear solvers take losses of one intercept only."
    )
