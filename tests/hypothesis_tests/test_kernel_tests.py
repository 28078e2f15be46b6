"""mercer.tests: statistics by their definitions, levels under the hypothesis, power against clear alternatives."""

import matplotlib
import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from tests.naming import named
from threadpoolctl import threadpool_info, threadpool_limits

import mercer
from mercer import Gaussian, Graph, InvalidInputError, Normalized, NotSymmetricError, Spectrum, WeisfeilerLehman
from mercer.tests import NullDistribution, conditional_independence_test, hsic_test, mmd_test
from mercer.tests.independence import matched, products
from mercer.tests.regression_on_z import (
    bases_of_vectors,
    basis_of_matrix,
    regression_of_columns,
    regression_of_gram,
    with_ridge,
)
from mercer.tests.sample_grams import bound_kernel, gram_of, median_gamma

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 2)), RNG.normal(0.3, 1.0, size=(30, 2))
K = Gaussian(0.5)


def brute_mmd(X, Y, kernel, unbiased):
    """MMD² as double sums."""
    A, B, C = kernel(X), kernel(Y), kernel(X, Y)
    m, n = len(X), len(Y)
    if unbiased:
        return (A.sum() - np.trace(A)) / (m * (m - 1)) + (B.sum() - np.trace(B)) / (n * (n - 1)) - 2 * C.mean()
    return A.mean() + B.mean() - 2 * C.mean()


def brute_hsic(K, L):
    """tr(KHLH) / n²."""
    n = len(K)
    H = np.eye(n) - 1.0 / n
    return np.trace(K @ H @ L @ H) / n**2


def kci_data(rng, n, effect):
    z = rng.normal(size=n)
    x = np.sin(z) + 0.5 * rng.normal(size=n)
    return x, z + 0.5 * rng.normal(size=n) + effect * x, z


class TestStatistics:
    @pytest.mark.parametrize("statistic", ["biased", "unbiased"])
    @pytest.mark.parametrize("gamma", [0.05, 5.0])
    def test_mmd(self, statistic, gamma):
        """The statistic is the double sum, with a factor of K (wide kernel) and with K itself (narrow)."""
        kernel = Gaussian(gamma)
        found = mmd_test(X, Y, kernel, statistic=statistic, n_permutations=10).statistic
        assert found == pytest.approx(brute_mmd(X, Y, kernel, statistic == "unbiased"), abs=1e-6)

    def test_mmd_permutations(self):
        """Permuted values are those of the double sums for the permuted samples; each appears with its own samples."""
        both = np.vstack([X[:4], Y[:2]])
        found = mmd_test(both[:3], both[3:], K, statistic="biased", n_permutations=400, random_state=0).null.values
        from itertools import combinations

        groups = [set(c) for c in combinations(range(6), 3)]
        exact = [brute_mmd(both[list(g)], both[[i for i in range(6) if i not in g]], K, False) for g in groups]
        nearest = np.abs(found[:, None] - np.array(exact)).min(axis=1)
        assert nearest.max() < 1e-6
        assert np.ptp(exact) > 0 and np.mean(found) == pytest.approx(np.mean(exact), rel=0.1)

    def test_hsic(self):
        """The statistic is tr(KHLH)/n², with factors and with matrices, and so is that of each permutation."""
        y = np.sin(X[:, :1])
        for kernel in (Gaussian(0.1), Gaussian(50.0)):
            found = hsic_test(X, y, kernel, K, n_permutations=5, random_state=3)
            assert found.statistic == pytest.approx(brute_hsic(kernel(X), K(y)), rel=1e-4)
            random = np.random.RandomState(3)
            orders = [random.permutation(40) for _ in range(5)]
            expected = [brute_hsic(kernel(X), K(y[order])) for order in orders]
            np.testing.assert_allclose(found.null.values, expected, rtol=1e-4)

    def test_factors_and_matrices_agree(self):
        """|U'PV|² and the sum over permuted matrices are the same numbers."""
        grams = [gram_of(Gaussian(0.1), value, 1).centred() for value in (X, np.sin(X))]
        assert grams[0].factor is not None
        orders = np.array([np.arange(40), RNG.permutation(40)])
        dense = [type(g)(g.diagonal, None, g.dense()) for g in grams]
        np.testing.assert_allclose(products(*grams, orders), products(*dense, orders), rtol=1e-9)
        assert matched(*grams)[0].factor is not None

    def test_conditional(self):
        """T is 1'(K̈ ∘ L̈ ∘ M)1/n by its definition, and the gamma null has the moments of the spectral one."""
        x, y, z = kci_data(np.random.default_rng(4), 60, 0.5)
        kernels = [bound_kernel(None, v.reshape(-1, 1)) for v in (x, y, z)]
        Kx, Ky, Kz = (k(v.reshape(-1, 1)) for k, v in zip(kernels, (x, y, z), strict=True))
        H = np.eye(60) - 1 / 60
        R = 1e-3 * np.linalg.inv(H @ Kz @ H + 1e-3 * np.eye(60))
        W = (R @ H @ Kx @ H @ R) * (R @ H @ Ky @ H @ R) * Kz / 60
        gamma = conditional_independence_test(x, y, z, epsilon=1e-3)
        assert gamma.statistic == pytest.approx(W.sum(), rel=1e-5)
        # the mean is larger than tr W by the degrees of freedom that the regressions have taken
        S = (R @ H @ R) ** 2 * Kz
        mean = gamma.null.shape * gamma.null.scale
        assert mean == pytest.approx(np.trace(W) * S.sum() / np.trace(S), rel=1e-5)
        for epsilon in (1e-3, None):
            gamma = conditional_independence_test(x, y, z, epsilon=epsilon)
            drawn = conditional_independence_test(x, y, z, epsilon=epsilon, null="spectral", random_state=0)
            assert drawn.statistic == gamma.statistic
            mean = gamma.null.shape * gamma.null.scale
            assert drawn.null.values.mean() == pytest.approx(mean, rel=0.05)
            assert drawn.null.values.var() == pytest.approx(mean * gamma.null.scale, rel=0.2)

    def test_regressions(self):
        """Residuals are those of ridge regression with the chosen kernel and λ; R² is their covariance."""
        rng = np.random.default_rng(0)
        Z = rng.normal(size=(50, 3))
        f = np.sin(2 * Z @ [0.6, 0.8, 0.0])
        F = (f + 0.1 * rng.normal(size=50))[:, None]
        F -= F.mean()
        bases = bases_of_vectors(Z, 1)
        found = regression_of_columns(bases, F, Z, 1)
        # the metric that was learnt leaves out the third feature, and fits better than all given kernels
        assert found.basis.transform is not None
        assert np.abs(found.basis.transform[2]).max() < 0.3 * np.abs(found.basis.transform[0]).max()
        assert found.score < regression_of_gram(bases, F @ F.T).score
        H = np.eye(50) - 1 / 50
        M = H @ found.basis.kernel(found.basis.points) @ H
        R = found.ridge * np.linalg.inv(M + found.ridge * np.eye(50))
        np.testing.assert_allclose(found.residuals(F), R @ F, atol=1e-2)
        np.testing.assert_allclose(found.residual_gram(F @ F.T), R @ F @ F.T @ R, atol=1e-2)
        np.testing.assert_allclose(found.covariance(), R @ H @ R, atol=1e-2)
        given = basis_of_matrix(Gaussian(0.5)(Z))
        exact = with_ridge(given, 0.1)
        R = 0.1 * np.linalg.inv(H @ Gaussian(0.5)(Z) @ H + 0.1 * np.eye(50))
        np.testing.assert_allclose(exact.residuals(F), R @ F, atol=1e-8)
        # generalised cross-validation, of the λ before it was lowered
        chosen = regression_of_gram([given], F @ F.T)
        R = chosen.ridge / 0.3 * np.linalg.inv(H @ Gaussian(0.5)(Z) @ H + chosen.ridge / 0.3 * np.eye(50)) @ H
        assert chosen.score == pytest.approx(np.sum((R @ F) ** 2) / np.trace(R) ** 2, rel=1e-6)

    def test_median_heuristic(self):
        """gamma is 1 / (2 median²), whatever the storage; 1 for equal samples; the mean where most are equal."""
        distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))[np.triu_indices(40, 1)]
        assert median_gamma(X) == pytest.approx(0.5 / np.median(distances**2))
        assert median_gamma(sp.csr_array(X)) == pytest.approx(median_gamma(X))
        assert median_gamma(np.ones((5, 2))) == 1.0
        for offset in (1e3, 1e8):
            assert median_gamma(X + offset) == pytest.approx(median_gamma(X), rel=1e-6)
            assert median_gamma(np.full((5, 2), offset / 3)) == 1.0
        assert median_gamma(np.r_[np.zeros(20), 3.0].reshape(-1, 1)) == pytest.approx(0.5 / (9.0 * 20 / 210))


class TestLevelsAndPower:
    """Shares of rejections at α = 0.05, within binomial error (99.9 %) under the hypothesis."""

    @staticmethod
    def rejections(p_value, runs, seed):
        rng = np.random.default_rng(seed)
        return sum(p_value(rng) <= 0.05 for _ in range(runs))

    @staticmethod
    def within_error(count, runs):
        return stats.binom.ppf(0.0005, runs, 0.05) <= count <= stats.binom.ppf(0.9995, runs, 0.05)

    @pytest.mark.parametrize("runs", [60, pytest.param(1000, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("null", ["permutation", "gamma"])
    @pytest.mark.parametrize("statistic", ["unbiased", "biased"])
    def test_mmd(self, null, statistic, runs):
        """Equal distributions are rejected in 5 % of all runs, a shift by one deviation in at least 95 %."""

        def p_value(rng, shift=0.0):
            both = rng.normal(size=(40, 2)), rng.normal(shift, 1.0, size=(30, 2))
            return mmd_test(*both, null=null, statistic=statistic, n_permutations=199, random_state=0).p_value

        assert self.within_error(self.rejections(p_value, runs, 0), runs)
        assert self.rejections(lambda rng: p_value(rng, 1.0), runs, 1) >= 0.95 * runs

    @pytest.mark.parametrize("runs", [60, pytest.param(1000, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("null", ["permutation", "gamma"])
    def test_hsic(self, null, runs):
        """Independent pairs are rejected in 5 % of all runs, points near a parabola in at least 90 %."""

        def independent(rng):
            x, y = rng.normal(size=(50, 2)), rng.exponential(size=50)
            return hsic_test(x, y, null=null, n_permutations=199, random_state=0).p_value

        def parabola(rng):
            x = rng.uniform(-1.0, 1.0, 50)
            return hsic_test(x, x**2 + 0.2 * rng.normal(size=50), null=null, n_permutations=199, random_state=0).p_value

        assert self.within_error(self.rejections(independent, runs, 0), runs)
        assert self.rejections(parabola, runs, 1) >= 0.9 * runs

    @pytest.mark.parametrize("runs", [60, pytest.param(1000, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("null", ["gamma", "spectral"])
    def test_conditional(self, null, runs):
        """Dependence that Z explains is rejected in about 5 % of all runs, other dependence in at least 75 %."""

        def p_value(rng, effect=0.0):
            data = kci_data(rng, 100, effect)
            return conditional_independence_test(*data, null=null, n_draws=500, random_state=0).p_value

        assert self.within_error(self.rejections(p_value, runs, 0), runs)
        assert self.rejections(lambda rng: p_value(rng, 0.5), runs, 1) >= 0.75 * runs
        x, y, _ = kci_data(np.random.default_rng(0), 100, 0.0)
        assert hsic_test(x, y, null="gamma").p_value < 0.05  # without Z they are dependent

    @pytest.mark.parametrize("runs", [40, pytest.param(500, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("d", [2, 4])
    def test_conditional_with_several_features(self, d, runs):
        """Functions of a sum of features, which X and Y share, are rejected in about 5 % of all runs."""

        def p_value(rng):
            Z, noise = rng.normal(size=(60, d)), 0.5 * rng.normal(size=(2, 60))
            s = Z.sum(axis=1) / np.sqrt(d)
            x, y = np.sin(1.5 * s) + noise[0], np.tanh(2.0 * s) + noise[1]
            return conditional_independence_test(x, y, Z).p_value

        assert self.within_error(self.rejections(p_value, runs, 0), runs)


class TestObjects:
    def test_strings(self):
        """Two languages of strings differ, and the length of a string depends on its letters if they are drawn so."""
        rng = np.random.default_rng(1)
        one = ["".join(rng.choice(list("ab"), 12)) for _ in range(25)]
        two = ["".join(rng.choice(list("ab"), 12, p=[0.8, 0.2])) for _ in range(25)]
        kernel = Normalized(Spectrum(2))
        assert mmd_test(one, two, kernel, random_state=0).p_value < 0.01
        assert mmd_test(one[:12], one[12:], kernel, random_state=0).p_value > 0.05
        share = np.array([text.count("a") for text in one + two], dtype=float)
        assert hsic_test(one + two, share, kernel, n_permutations=200, random_state=0).p_value < 0.01

    def test_graphs(self):
        """Paths and cycles are different samples of graphs."""

        def graph(n, closed):
            edges = [(i, i + 1) for i in range(n - 1)] + ([(n - 1, 0)] if closed else [])
            return Graph(edges, n)

        paths, cycles = ([graph(n, closed) for n in range(4, 14)] for closed in (False, True))
        kernel = Normalized(WeisfeilerLehman(2))
        assert mmd_test(paths, cycles, kernel, random_state=0, n_permutations=300).p_value < 0.05

    def test_conditional(self):
        """Strings, given kernels, Gram matrices and CSR rows can be conditioned on; constants have p = 1."""
        rng = np.random.default_rng(0)
        z = ["".join(rng.choice(list("ab"), 10)) for _ in range(50)]
        share = np.array([text.count("a") for text in z], dtype=float)
        x, y = (share + rng.normal(size=50) for _ in range(2))
        kernel = Normalized(Spectrum(1))
        assert conditional_independence_test(x, y, z, kernel_z=kernel).p_value > 0.05
        assert conditional_independence_test(x, y + 2 * x, z, kernel_z=kernel).p_value < 0.05
        assert conditional_independence_test(z, y, share, kernel_x=kernel).p_value > 0.05
        matrix = conditional_independence_test(x, y, kernel(z), kernel_z="precomputed")
        assert matrix.p_value == pytest.approx(
            conditional_independence_test(x, y, z, kernel_z=kernel).p_value, rel=1e-3
        )
        rows = sp.csr_array(rng.normal(size=(50, 3)))
        assert 0.0 < conditional_independence_test(rows, y, rows[:, :2]).p_value <= 1.0
        for constant in (np.ones(50), np.ones((50, 2))):
            assert conditional_independence_test(constant, y, share).p_value == 1.0
            assert 0.0 < conditional_independence_test(x, y, constant).p_value <= 1.0
        with pytest.raises(InvalidInputError, match="not positive semidefinite: choose another kernel_z"):
            conditional_independence_test(x, y, -np.eye(50) + 2 * np.eye(50)[::-1], kernel_z="precomputed")

    def test_precomputed(self):
        """HSIC of Gram matrices is that of the kernels."""
        y = np.sin(X[:, :1])
        expected = hsic_test(X, y, K, K, null="gamma")
        found = hsic_test(K(X), K(y), "precomputed", "precomputed", null="gamma")
        assert found.p_value == pytest.approx(expected.p_value, rel=1e-3)

    def test_sparse_and_vectors(self):
        """CSR rows give what dense rows give; a vector of numbers is one column."""
        assert mmd_test(sp.csr_array(X), sp.csr_array(Y), null="gamma").p_value == pytest.approx(
            mmd_test(X, Y, null="gamma").p_value, rel=1e-6
        )
        assert (
            mmd_test(X[:, 0], Y[:, 0], null="gamma").statistic == mmd_test(X[:, :1], Y[:, :1], null="gamma").statistic
        )


def test_result():
    """A result prints its numbers, compares with its null distribution, and draws it."""
    matplotlib.use("Agg")
    result = mmd_test(X, Y + 1.0, random_state=0)
    assert "MMD² two-sample test (unbiased, permutation null)" in str(result)
    assert "40 and 30 samples" in str(result) and f"p_value={result.p_value:.4g}" in repr(result)
    assert result.p_value == (1 + np.sum(result.null.values >= result.statistic)) / 1001
    assert result.null.quantile(0.95) < result.statistic
    ax = result.plot()
    assert ax.get_title() == result.method and len(ax.lines) == 2
    smooth = mmd_test(X, Y, null="gamma").plot()
    assert len(smooth.lines) == 3
    with pytest.raises(AttributeError):
        result.p_value = 0.0
    matplotlib.pyplot.close("all")


def test_one_blas_thread():
    """BLAS has one thread in a test: many products of small matrices are faster so."""
    seen = []

    def watched(A, B):
        seen.extend(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")
        return A @ B.T

    for call in (
        lambda: mmd_test(X, Y, watched, n_permutations=10),
        lambda: hsic_test(X, X, watched, watched, n_permutations=10),
        lambda: conditional_independence_test(X, X, X, watched),
    ):
        seen.clear()
        with threadpool_limits(2):
            call()
        assert set(seen) == {1}


def test_short_forms():
    """A null distribution prints its kind and size, not its values."""
    assert repr(mmd_test(X, Y, n_permutations=2000).null) == "NullDistribution('permutation', 2,000 values)"
    found = repr(NullDistribution.gamma(2.0, 2.0))
    assert found == "NullDistribution('gamma', shape=2, scale=1, shift=0)"


def test_ties_and_constants():
    """A statistic that cannot vary has p = 1: constant samples are independent of everything."""
    for null in ("gamma", "permutation"):
        assert hsic_test(np.ones(20), X[:20], null=null, n_permutations=50).p_value == 1.0
        assert mmd_test(np.ones((9, 2)), np.ones((8, 2)), null=null, n_permutations=50).p_value == 1.0
    assert NullDistribution("permutation", np.array([1.0, 2.0, 3.0])).p_value(2.0) == 0.75


def test_public():
    """The tests are mercer.tests."""
    assert mercer.tests.mmd_test is mmd_test


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: mmd_test(X, Y, n_jobs="a"),
            "n_jobs='a' is no number of threads: give a whole number, or None.",
        ),
        (lambda: mmd_test(X, Y[:1]), "Y has 1 samples, but the test needs at least 2."),
        (lambda: mmd_test(X, Y[:, :1]), "X has 2 features, but Y has 1: both need the same features."),
        (lambda: mmd_test(X, Y, null="exact"), "null='exact' is not known: give 'permutation' or 'gamma'."),
        (lambda: mmd_test(X, Y, statistic="v"), "statistic='v' is not known: give 'unbiased' or 'biased'."),
        (lambda: mmd_test(X, Y, n_permutations=0), "The number of drawn values is 0: give a whole number, at least 1."),
        (
            lambda: hsic_test(X, Y),
            "The samples must be observed together, one row each, but X has 40, Y has 30 samples.",
        ),
        (lambda: hsic_test(X[:5], Y[:5]), "X has 5 samples, but the test needs at least 6."),
        (
            lambda: conditional_independence_test(X, X, X, epsilon=0.0),
            "epsilon=0.0 is the regularisation of a regression: it must be positive.",
        ),
    ],
    ids=named,
)
def test_bad_input(call, message):
    """Input that cannot be used is refused in full sentences."""
    with pytest.raises(InvalidInputError) as found:
        call()
    assert str(found.value) == message


def test_more_bad_input():
    """NaN, words for numbers, a kernel class and a matrix of all pairs are refused."""
    with pytest.raises(ValueError, match="Input Y contains NaN"):
        mmd_test(X, np.where(Y > 1, np.nan, Y))
    with pytest.raises(InvalidInputError, match="kernel='precomputed' cannot be used"):
        mmd_test(X, Y, "precomputed")
    with pytest.raises(NotSymmetricError, match="A kernel must not depend on the order of its arguments"):
        mmd_test(X, Y, lambda A, B: A[:, :1] + 2.0 * B[:, 0])
    with pytest.raises(InvalidInputError, match="is a class, not a kernel"):
        mmd_test(X, Y, Gaussian)
    with pytest.raises((InvalidInputError, ValueError)):
        mmd_test(["a", "b", "c"], ["a", "b"])
    with pytest.raises(InvalidInputError):
        mmd_test(X, Y, Spectrum(2))
