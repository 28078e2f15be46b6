"""Functions of a reproducing kernel Hilbert space: evaluation, inner products, algebra and projections."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process.kernels import RBF
from tests.naming import named

import mercer.kernels as k
from mercer import RKHSFunction
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import count_samples, take_samples

rng = np.random.default_rng(0)
VECTORS = rng.exponential(size=(12, 3))
HISTOGRAMS = VECTORS / VECTORS.sum(axis=1, keepdims=True)
STRINGS = ["".join(rng.choice(list("ACGT"), 9)) for _ in range(12)]
SETS = [{"abcdefg"[i], "abcdefg"[j], "h"} for i in range(5) for j in range(i + 1, 5)] + [{"a"}, {"b", "g"}]
GRAPHS = [k.Graph([(i, i + 1) for i in range(n)] + [(0, n - 1)]) for n in range(3, 15)]
SERIES = [rng.normal(size=rng.integers(3, 6)) for _ in range(12)]
RECORDS = pd.DataFrame({"name": STRINGS, "a": VECTORS[:, 0], "b": VECTORS[:, 1]})
PATH = k.Graph([(i, i + 1) for i in range(11)])

KERNELS = [
    (k.Linear(), VECTORS),
    (k.Polynomial(3, 0.5, 1.0), VECTORS),
    (k.Polynomial(2, 0.5, 1.0), sp.csr_array(VECTORS)),
    (k.PowerSeries((1.0, 1.0, 1.0, 1.0)), VECTORS),
    (k.Gaussian(0.5), VECTORS),
    (k.Gaussian(0.5), sp.csr_matrix(VECTORS)),
    (k.Laplacian(0.5), VECTORS),
    (k.Matern(1.5, 0.5), VECTORS),
    (k.RationalQuadratic(1.0), VECTORS),
    (k.Periodic(1.0), VECTORS[:, :1]),
    (k.Sigmoid(0.1, 0.1), VECTORS),
    (k.Cosine(), VECTORS),
    (k.Min(), VECTORS),
    (k.Chi2(0.5), VECTORS),
    (k.AdditiveChi2() + 10.0, VECTORS),
    (k.Constant(2.0), VECTORS),
    (k.Hellinger(), HISTOGRAMS),
    (k.InformationDiffusion(0.5), HISTOGRAMS),
    (k.Sum(k.Linear(), k.Gaussian(0.5)), VECTORS),
    (k.Product(k.Linear(), k.Gaussian(0.5)), VECTORS),
    (k.Scaled(2.0, k.Linear()), VECTORS),
    (k.Power(k.Linear(), 2), VECTORS),
    (k.Normalized(k.Polynomial(2, 1.0, 1.0)), VECTORS),
    (k.LearnedKernel((k.Gaussian(0.5), k.Linear()), (1.0, 0.5)), VECTORS),
    (k.Fixed(k.Gaussian(0.5)), VECTORS),
    (k.Bounded(k.Gaussian(0.5), 0.1, 1.0), VECTORS),
    (k.Gaussian(0.5) + k.White(0.3), VECTORS),
    (k.SklearnKernel(RBF(0.7)), VECTORS),
    (k.CallableKernel(lambda X, Z: X @ Z.T), VECTORS),
    (k.CallableKernel(lambda x, z: float(len(x & z)), pairwise=True), SETS),
    (k.Spectrum(2), STRINGS),
    (k.Mismatch(3, 1).bind(STRINGS), STRINGS),
    (k.CommonSubstrings(), STRINGS),
    (k.Subsequence(2, 0.5), STRINGS),
    (k.Window(2, 0.1), STRINGS),
    (k.WeightedDegree(3), STRINGS),
    (k.Intersection(), SETS),
    (k.Jaccard(), SETS),
    (k.SetOf(k.Spectrum(2)), [[a, b] for a, b in zip(STRINGS, STRINGS[1:] + STRINGS[:1], strict=True)]),
    (k.WeisfeilerLehman(2), GRAPHS),
    (k.ShortestPath(), GRAPHS),
    (k.RandomWalk(0.01), GRAPHS),
    (k.GraphDiffusion(PATH, 0.5), list(range(12))),
    (k.GlobalAlignment(1.0), SERIES),
    (k.On("name", k.Spectrum(2)) + k.On(["a", "b"], k.Gaussian(0.5)), RECORDS),
    (k.On("name", k.Spectrum(2)), RECORDS.to_dict("records")),
]


def function(kernel, samples, rows, seed=1):
    return RKHSFunction(kernel, take_samples(samples, rows), np.random.default_rng(seed).normal(size=len(rows)))


def test_every_kernel_is_here():
    """All public kernels occur above, but those whose samples are rows of a matrix."""
    public = {getattr(k, name) for name in k.__all__ if isinstance(getattr(k, name), type)}
    kernels = {kind for kind in public if issubclass(kind, k.Kernel)} - {k.Kernel, k.Precomputed, k.PrecomputedLayer}
    found = {type(part) for kernel, _ in KERNELS for part in (kernel, *kernel.get_params().values())}
    assert kernels <= found


@pytest.mark.parametrize(("kernel", "samples"), KERNELS, ids=named)
def test_reproducing_property(kernel, samples):
    """f(x) = <f, k(x, ·)>, and f(x) is the sum over kernel values."""
    f = function(kernel, samples, np.arange(7))
    # samples that are prepared apart are different observations for White
    K = kernel.block(kernel.prepare(samples), kernel.prepare(take_samples(samples, np.arange(7))))
    values = f(samples)
    size = np.abs(K).max() * np.abs(f.coefficients).sum()
    np.testing.assert_allclose(values, K @ f.coefficients, atol=1e-13 * size)
    for i in range(count_samples(samples)):
        k_x = RKHSFunction(kernel, take_samples(samples, np.array([i])), [1.0])
        assert f.inner(k_x) == pytest.approx(values[i], abs=1e-13 * size)
        assert k_x.inner(f) == pytest.approx(values[i], abs=1e-13 * size)


@pytest.mark.parametrize(("kernel", "samples"), KERNELS, ids=named)
def test_a_vector_space_with_an_inner_product(kernel, samples):
    """Sums and multiples act on values; inner products are bilinear and symmetric; f - f has no points."""
    f, g = function(kernel, samples, np.arange(7), 1), function(kernel, samples, np.arange(4, 12), 2)
    h = 2.0 * f - g / 4 + (-f)
    size = 1e-12 * max(1.0, np.abs(kernel(samples)).max()) * 50
    np.testing.assert_allclose(h(samples), f(samples) - g(samples) / 4, atol=size)
    assert len(h) == 12
    assert f.inner(g) == pytest.approx(g.inner(f), abs=size)
    assert h.inner(g) == pytest.approx(f.inner(g) - g.inner(g) / 4, abs=size)
    assert len(f - f) == 0
    assert (f - f).norm() == 0.0
    np.testing.assert_array_equal((f - f)(samples), np.zeros(12))


@pytest.mark.parametrize(
    ("kernel", "samples"), [(kernel, s) for kernel, s in KERNELS if kernel.positive_semidefinite], ids=named
)
def test_projection(kernel, samples):
    """P f agrees with f at the points; f - P f is orthogonal to their span; Pythagoras; P P f = P f."""
    f, points = function(kernel, samples, np.arange(9)), take_samples(samples, np.array([2, 10, 11, 2]))
    p = f.project(points)
    # what the pseudo-inverse leaves out is of length √ε
    size = 1e-7 * max(1.0, f.norm(), np.abs(f(samples)).max())
    np.testing.assert_allclose(p(points), f(points), atol=size)
    assert (f - p).inner(p) == pytest.approx(0.0, abs=size * max(1.0, f.norm()))
    assert p.norm() ** 2 + (f - p).norm() ** 2 == pytest.approx(f.norm() ** 2, rel=1e-6)
    np.testing.assert_allclose(p.project(points)(samples), p(samples), atol=size)
    whole = f.project(samples)
    np.testing.assert_allclose(whole(samples), f(samples), atol=size)


def test_the_norm_is_that_of_the_features():
    """With an explicit feature map, |f| is the Euclidean length of Σ c ψ(x)."""
    kernel = k.Polynomial(2, 1.0, 1.0)
    f = function(kernel, VECTORS, np.arange(7))
    w = f.coefficients @ kernel.feature_map(VECTORS)(VECTORS[:7])
    assert f.norm() == pytest.approx(float(np.linalg.norm(w)), rel=1e-13)


def test_equal_points_are_taken_together():
    """Equal points are one in any storage: dense and sparse rows, -0.0, sets, lists, arrays, records."""
    dense = RKHSFunction(k.Linear(), [[0.0, 1.0], [2.0, 0.0]], [1.0, 1.0])
    sparse = RKHSFunction(k.Linear(), sp.csr_array([[2.0, 0.0], [-0.0, 1.0]]), [3.0, -1.0])
    both = dense + sparse
    assert len(both) == 1 and both.coefficients.tolist() == [4.0]
    assert len(RKHSFunction(k.Linear(), [[-0.0]], [1.0]) + RKHSFunction(k.Linear(), [[0.0]], [1.0])) == 1
    for kernel, point in [
        (k.Intersection(), {1, 2}),
        (k.SetOf(k.Spectrum(1)), ["a", "b"]),
        (k.GlobalAlignment(1.0), np.array([1.0, 2.0])),
        (k.WeisfeilerLehman(1), k.Graph([(0, 1)])),
        (k.On("name", k.Spectrum(1)), {"name": "a"}),
    ]:
        once, again = (RKHSFunction(kernel, [pickle.loads(pickle.dumps(point))], [1.0]) for _ in range(2))
        assert (once + again).coefficients.tolist() == [2.0]


def test_points_that_cannot_be_compared_stay_apart():
    """Objects without a hash are the same point only if they are the same object."""

    class Word:
        __hash__ = None

        def __init__(self, text):
            self.text = text

    overlap = k.CallableKernel(lambda x, z: float(len(set(x.text) & set(z.text))), pairwise=True)
    a, b = Word("ab"), Word("ab")
    f = RKHSFunction(overlap, [a], [1.0]) + RKHSFunction(overlap, [b], [1.0])
    assert len(f) == 2
    assert len(f + RKHSFunction(overlap, [a], [1.0])) == 2
    assert f.norm() == pytest.approx(np.sqrt(8.0))


def test_functions_do_not_change():
    """Neither through the arrays and lists that they were made of, nor through their own."""
    X, c, words = np.ones((2, 1)), np.ones(2), [{1, 2}, {3}]
    f, g = RKHSFunction(k.Linear(), X, c), RKHSFunction(k.Intersection(), words, c)
    before = g([{1, 3}])
    X[:], c[:] = 5.0, 5.0
    words[0].add(3)
    words.append({7})
    assert f([[1.0]]) == [2.0]
    np.testing.assert_array_equal(g([{1, 3}]), before)
    for array in (f.points, f.coefficients):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(AttributeError):
        f.kernel = k.Gaussian(1.0)
    with pytest.raises(AttributeError):
        g.points[0].add(3)
    copy = pickle.loads(pickle.dumps(f))
    assert copy.norm() == f.norm()


def test_printing():
    """repr names the kernel and the number of points, str is the formula."""
    f = RKHSFunction("gaussian(gamma=0.5)", [[0.0, 1.0]], [-2.0])
    assert repr(f) == "RKHSFunction(Gaussian(gamma=0.5), 1 point)"
    assert str(f) == "f = - 2 k([0, 1], ·), k = Gaussian(gamma=0.5)"
    assert str(f - f) == "f = 0, k = Gaussian(gamma=0.5)"
    g = RKHSFunction(k.Spectrum(2), ["abc", "b" * 50, "c", "d", "e"], np.arange(1.0, 6.0))
    assert str(g) == (
        "f = 1 k('abc', ·) + 2 k('bbbbbbbbbbbbbbbbbbbbbb…, ·) + 3 k('c', ·) + … (2 more), k = Spectrum(k=2)"
    )


def test_numbers_of_numpy():
    """np.float64(2) * f is a function, not an array of functions."""
    f = RKHSFunction(k.Linear(), [[1.0]], [1.0])
    for factor in (np.float64(2.0), np.float32(2.0), np.int64(2), 2):
        assert (factor * f).coefficients.tolist() == (f * factor).coefficients.tolist() == [2.0]
    for wrong in ("a", [1.0], np.ones(2)):
        with pytest.raises(TypeError):
            f * wrong
        with pytest.raises(TypeError):
            f + wrong


def test_no_points():
    """The zero function, over any samples."""
    for kernel, samples in [(k.Gaussian(1.0), VECTORS), (k.Spectrum(2), STRINGS), (k.Intersection(), SETS)]:
        zero = RKHSFunction(kernel, [], [])
        f = function(kernel, samples, np.arange(3))
        assert zero.norm() == zero.inner(f) == f.inner(zero) == 0.0
        np.testing.assert_array_equal(zero(samples), np.zeros(12))
        np.testing.assert_array_equal((zero + f)(samples), f(samples))
        assert len(f.project([])) == 0
        assert zero.project(samples).norm() == 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: RKHSFunction(k.Gaussian(), VECTORS, np.ones(12)),
            "Gaussian(gamma='scale') has parameters that depend on the samples, but functions can be added only if "
            "their kernels are equal: use kernel.bind(X), which sets these parameters for the samples X.",
        ),
        (
            lambda: RKHSFunction(k.Precomputed(), np.eye(2), np.ones(2)),
            "Precomputed() knows kernel values between the samples of its matrix only, so a function of it has no "
            "value at other points. Give the kernel itself instead of its matrix.",
        ),
        (
            lambda: RKHSFunction(3, VECTORS, np.ones(12)),
            "RKHSFunction needs a kernel, but was given int: give a kernel object such as Gaussian(gamma=1.0), an "
            "expression or a function.",
        ),
        (
            lambda: RKHSFunction(k.Linear(), VECTORS, np.ones(11)),
            "There are 12 points, but the coefficients have the shape (11,): give one number for each point.",
        ),
        (
            lambda: RKHSFunction(k.Linear(), VECTORS, ["a"] * 12),
            "The coefficients of an RKHSFunction must be real numbers.",
        ),
        (
            lambda: RKHSFunction(k.Linear(), VECTORS, np.full(12, np.nan)),
            "The coefficients of an RKHSFunction must be finite, but some are NaN or infinite.",
        ),
        (
            lambda: RKHSFunction(k.Linear(), [[np.inf]], [1.0]),
            "The points of an RKHSFunction must be finite, but some contain NaN or infinity.",
        ),
        (
            lambda: RKHSFunction(k.Linear(), [[1.0]], [1.0]) + RKHSFunction(k.Gaussian(1.0), [[1.0]], [1.0]),
            "The functions belong to different spaces: their kernels are Linear() and Gaussian(gamma=1.0). Use "
            "functions of the same kernel.",
        ),
        (
            lambda: RKHSFunction(k.Linear(), [[1.0]], [1.0]).inner(np.ones(1)),
            "An RKHSFunction is needed, but ndarray was given.",
        ),
        (
            lambda: RKHSFunction(k.Linear(), [[1.0]], [1.0]) + RKHSFunction(k.Linear(), [[1.0, 2.0]], [1.0]),
            "The points of the two functions do not match: ndarray of shape (1, 1) and ndarray of shape (1, 2). Give "
            "both as samples of the same kind with the same features.",
        ),
        (
            lambda: RKHSFunction(k.Spectrum(2), [1, 2], [1.0, 1.0]),
            "Spectrum(k=2) compares strings, but sample 0 is the number 1. Use a kernel on vectors such as Gaussian() "
            "for numbers, or write them as text: str(sample).",
        ),
        (
            lambda: RKHSFunction(k.Sigmoid(1.0, -2.0), [[1.0]], [1.0]).norm(),
            "⟨f, f⟩ = -0.761594 is negative: Sigmoid(gamma=1.0, coef0=-2.0) is not positive semidefinite, so its "
            "functions have no norm. Use another kernel, or other parameters (see check_mercer).",
        ),
    ],
    ids=named,
)
def test_bad_input(make, message):
    """The error says what was found and what to do."""
    with pytest.raises(InvalidInputError) as error:
        make()
    assert str(error.value) == message


def test_many_samples_in_parts():
    """More kernel values than are computed at a time give the same numbers."""
    X, Z = rng.normal(size=(3000, 2)), rng.normal(size=(700, 2))
    f = RKHSFunction(k.Gaussian(1.0), Z, rng.normal(size=700))
    np.testing.assert_allclose(f(X), k.Gaussian(1.0)(X, Z) @ f.coefficients, atol=1e-11)


def test_sum_of_a_list():
    """Python's sum begins with 0; other numbers are not functions."""
    f, g = (RKHSFunction(k.Gaussian(0.5), VECTORS[:4], c) for c in (np.ones(4), np.arange(4.0)))
    np.testing.assert_allclose(sum([f, g])(VECTORS), f(VECTORS) + g(VECTORS))
    with pytest.raises(TypeError):
        1 + f
