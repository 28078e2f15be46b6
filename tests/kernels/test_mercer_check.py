"""Mercer's condition: what is found, and what is advised."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.naming import named

from mercer.exceptions import InvalidInputError
from mercer.kernels import CallableKernel, Gaussian, Linear, Matern, Precomputed, Sigmoid, check_mercer

X = np.random.default_rng(0).normal(size=(40, 3))


class TestFindings:
    def test_a_kernel_passes(self):
        """Symmetric, no negative eigenvalue beyond rounding, nothing to advise."""
        report = check_mercer(Gaussian(), X)
        assert report.symmetric and report.positive_semidefinite and not report.near_diagonal
        assert report.asymmetry == 0
        assert report.n == report.n_given == 40
        assert report.advice == ()
        assert report.rounding == pytest.approx(40 * np.finfo(float).eps * report.largest_eigenvalue)

    def test_rank_deficiency_is_not_indefinite(self):
        """Eigenvalues that are 0 up to rounding pass."""
        report = check_mercer(Linear(), X)
        assert report.positive_semidefinite
        assert abs(report.smallest_eigenvalue) < report.rounding

    def test_eigenvalues_are_those_of_the_matrix(self):
        """The eigenvalues of a matrix built from known ones are reported."""
        Q = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
        K = Q @ np.diag([-0.25, 0, 1, 2, 3, 4]) @ Q.T
        report = check_mercer(K)
        assert report.smallest_eigenvalue == pytest.approx(-0.25)
        assert report.largest_eigenvalue == pytest.approx(4.0)
        assert report.symmetric and not report.positive_semidefinite
        assert report.advice == (
            "The smallest eigenvalue is -0.25: use repair_mercer, which adds 0.25 to the diagonal (shift) or replaces "
            "negative eigenvalues by 0 (clip). The optimum of an indefinite matrix need not be unique.",
        )
        # the advice is sufficient
        assert check_mercer(K - report.smallest_eigenvalue * np.eye(6)).positive_semidefinite

    def test_sigmoid_is_no_kernel(self):
        """[M5] lists it among the kernels, but it has negative eigenvalues."""
        report = check_mercer(Sigmoid(1.0, -1.0), X)
        assert report.symmetric and not report.positive_semidefinite
        assert report.advice[0].startswith(
            f"The smallest eigenvalue is {report.smallest_eigenvalue:.3g}: this is not a kernel."
        )

    def test_asymmetry_is_the_largest_difference(self):
        """Never positive semidefinite then, whatever the eigenvalues of the symmetric part."""
        K = np.eye(3)
        K[0, 2] = 0.125
        report = check_mercer(K)
        assert not report.symmetric and not report.positive_semidefinite
        assert report.asymmetry == 0.125
        assert report.smallest_eigenvalue == pytest.approx(1 - 0.0625)
        assert report.advice[0] == (
            "K[i, j] and K[j, i] differ by up to 0.125: a kernel must not depend on the order of its arguments. "
            "Correct it, or use (K + K.T) / 2."
        )

    def test_single_precision_is_recognised(self):
        """As float32 it passes; converted to float64 the report says where the eigenvalue comes from."""
        K = (X @ X.T).astype(np.float32)
        assert check_mercer(K).positive_semidefinite
        report = check_mercer(K.astype(np.float64))
        assert not report.positive_semidefinite
        assert "is of the size of float32 rounding errors: compute the matrix in float64" in report.advice[0]

    def test_near_diagonal_is_a_warning_with_a_number(self):
        """A Gaussian too narrow: the gamma that is advised makes the nearest neighbours half alike."""
        report = check_mercer(Gaussian(1000.0), X)
        assert report.positive_semidefinite and report.near_diagonal
        assert report.offdiagonal_ratio < 0.1
        (advice,) = report.advice
        assert "Lower gamma from 1e+03 to about " in advice
        better = float(advice.split("about ")[1].split(",")[0])
        repaired = check_mercer(Gaussian(better), X)
        assert 0.3 < repaired.offdiagonal_ratio < 0.7
        assert repaired.advice == ()

    def test_near_diagonal_advice_follows_the_kernel(self):
        """The advice names the width parameter that the kernel has."""
        assert "lower gamma, or raise length_scale" in check_mercer(Matern(1.5, 1e-3), X).advice[0]
        assert "compares less strictly, or scale the features" in check_mercer(np.eye(5)).advice[0]

    def test_groups_are_not_near_diagonal(self):
        """Most pairs are dissimilar, but each sample has a similar one."""
        K = np.kron(np.eye(20), [[1.0, 0.9], [0.9, 1.0]])
        report = check_mercer(K)
        assert not report.near_diagonal
        assert report.offdiagonal_ratio == pytest.approx(0.9)

    def test_where_there_is_no_pair_the_ratio_is_undefined(self):
        """With one sample, or only zeros, the ratio is inf."""
        for K in ([[2.0]], np.zeros((3, 3))):
            report = check_mercer(K)
            assert report.offdiagonal_ratio == np.inf
            assert not report.near_diagonal and report.positive_semidefinite

    def test_many_samples_are_examined_in_part(self):
        """A random subset is examined, the same each time; the report says so."""
        report = check_mercer(Gaussian(), X, max_samples=25)
        assert (report.n, report.n_given) == (25, 40)
        assert report == check_mercer(Gaussian(), X, max_samples=25)
        assert str(report).startswith("Mercer's condition on 25 of 40 samples, at random: holds\n")
        of_matrix = check_mercer(Gaussian()(X), max_samples=25)
        assert of_matrix.largest_eigenvalue == pytest.approx(report.largest_eigenvalue)


def test_everything_that_gives_a_matrix_is_accepted():
    """A kernel, a text, a function, a matrix, a list, CSR: the same report."""
    report = check_mercer(Linear(), X)
    K = X @ X.T
    for arguments in (("linear", X), (lambda A, B: A @ B.T, X), (CallableKernel(lambda A, B: A @ B.T), X), (K,)):
        assert check_mercer(*arguments).largest_eigenvalue == pytest.approx(report.largest_eigenvalue)
    for arguments in ((K.tolist(),), (sp.csr_array(K),), (Precomputed(), K), (Precomputed(), K.tolist())):
        assert check_mercer(*arguments).largest_eigenvalue == pytest.approx(report.largest_eigenvalue)


def test_the_report_reads_as_a_table():
    """The report has a line per question, then the advice."""
    assert str(check_mercer([[1.0, 2.0], [2.0, 1.0]])) == (
        "Mercer's condition on 2 samples: VIOLATED\n"
        "  symmetric               yes  (largest difference 0)\n"
        "  positive semidefinite   no   (eigenvalues -1 to 3, rounding 1e-15)\n"
        "  near-diagonal           no   (median similarity to the nearest other 2)\n"
        "  → The smallest eigenvalue is -1: use repair_mercer, which adds 1 to the diagonal (shift) or replaces "
        "negative eigenvalues by 0 (clip). The optimum of an indefinite matrix need not be unique."
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (np.ones((3, 2)),),
            "A kernel matrix must be square, but the shape is (3, 2). Give K[i, j] = k(x_i, x_j) for all pairs of "
            "samples, or a kernel and samples.",
        ),
        (
            (np.array([[1.0, np.nan], [np.nan, 1.0]]),),
            "The kernel matrix must be finite, but K[0, 1] = nan. Look for missing or very large values in samples 0 "
            "and 1, or scale the samples.",
        ),
        (
            (lambda A, B: np.full((len(A), len(B)), np.inf), [1, 2]),
            "The kernel matrix must be finite, but K[0, 0] = inf. Look for missing or very large values in samples 0 "
            "and 0, or scale the samples.",
        ),
        (([["a"]],), "A kernel matrix must contain real numbers, but it is of type <U1."),
        (
            (np.eye(2), X),
            "check_mercer was given a matrix and samples: give the matrix alone, or a kernel with samples.",
        ),
        ((Linear(),), "check_mercer needs samples to examine Linear(): check_mercer(kernel, samples)."),
        ((Linear(), X[:0]), "check_mercer needs at least one sample, but was given none."),
    ],
)
def test_what_cannot_be_examined_is_said_in_full(arguments, message):
    """Errors say what was found, what is allowed and what to do."""
    with pytest.raises(InvalidInputError) as error:
        check_mercer(*arguments)
    assert str(error.value) == message


class TestWitness:
    def test_a_kernel_has_none(self):
        """Nor has a matrix that is only asymmetric, or indefinite by rounding."""
        assert check_mercer(Gaussian(), X).witness is None
        assert check_mercer(Linear(), X).witness is None
        assert check_mercer([[1.0, 0.5], [0.0, 1.0]]).witness is None

    @pytest.mark.parametrize("kernel", [Sigmoid(1.0, -1.0), CallableKernel(lambda A, B: -A @ B.T)], ids=named)
    def test_it_proves_a_negative_eigenvalue(self, kernel):
        """z'Kz is the smallest eigenvalue, and |z| = 1."""
        report = check_mercer(kernel, X)
        z = report.witness
        assert report.smallest_eigenvalue < 0
        assert z @ kernel(X) @ z == pytest.approx(report.smallest_eigenvalue)
        assert np.linalg.norm(z) == pytest.approx(1.0)

    def test_of_a_matrix_and_of_the_symmetric_part(self):
        """For an asymmetric matrix z'Kz is that of the symmetric part."""
        K = np.array([[0.0, 3.0], [1.0, 0.0]])
        report = check_mercer(K)
        assert report.smallest_eigenvalue == pytest.approx(-2.0)
        assert report.witness @ K @ report.witness == pytest.approx(-2.0)

    def test_of_some_samples(self):
        """It is 0 at samples that were not examined, so that z'Kz is that of all samples."""
        kernel = Sigmoid(1.0, -1.0)
        report = check_mercer(kernel, X, max_samples=25)
        z = report.witness
        assert z.shape == (40,) and np.count_nonzero(z) <= 25
        assert z @ kernel(X) @ z == pytest.approx(report.smallest_eigenvalue)

    def test_reports_are_compared_without_it(self):
        """An array has no truth value."""
        assert check_mercer(Sigmoid(1.0, -1.0), X) == check_mercer(Sigmoid(1.0, -1.0), X)
