"""Distances to the decision boundary: a certified lower bound and a counterexample."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_iris, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    SVC,
    SVR,
    Gaussian,
    InvalidInputError,
    Laplacian,
    Linear,
    Matern,
    MKLClassifier,
    NuSVC,
    OneClassSVM,
    Polynomial,
    Spectrum,
    robustness,
)
from mercer.explanation.robust.certified_radius import Decision, certified_radii, voted_radii
from mercer.explanation.robust.counterexample_search import beyond_rounding
from mercer.explanation.robust.kernel_balls import ball

MOONS, SIDES = make_moons(80, noise=0.2, random_state=0)
RNG = np.random.default_rng(0)
KERNELS = {
    "gaussian": Gaussian(1.0),
    "narrow": Gaussian(8.0),
    "two widths": Gaussian((0.3, 3.0)),
    "laplacian": Laplacian(1.0),
    "cubic": Polynomial(3, 0.5, 1.0),
    "quadratic": Polynomial(2, 1.0, 1.0),
    "linear": Linear(),
    "sum": Gaussian(2.0) + 0.5 * Linear() + 0.1,
    "product": Gaussian(0.5) * Polynomial(2, 0.5, 1.0),
}


def in_ball(x, r, count=400):
    """Random points within r of x, half of them on the sphere."""
    steps = RNG.normal(size=(count, len(x)))
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    lengths = np.where(np.arange(count) % 2, 1.0, RNG.uniform(size=count) ** (1 / len(x)))
    return x + r * lengths[:, None] * steps


@pytest.mark.parametrize("name", KERNELS)
def test_distance_in_the_plane(name):
    """lower ≤ distance ≤ upper, where the distance is that to the nearest point of another label on a fine grid."""
    model = SVC(kernel=KERNELS[name], C=5.0).fit(MOONS, SIDES)
    rows = MOONS[:25]
    found = robustness(model, rows)
    side = np.linspace(-3.0, 4.0, 281)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    labels, own = model.predict(grid), model.predict(rows)
    spacing = np.hypot(*[side[1] - side[0]] * 2)
    for x, label, lower, upper in zip(rows, own, found.lower, found.upper, strict=True):
        nearest = np.linalg.norm(grid[labels != label] - x, axis=1).min()
        assert lower <= nearest
        # a point of the grid is within half a diagonal of the boundary, unless a strip is thinner than the grid
        assert lower <= upper <= 1.2 * nearest + spacing
        assert (model.predict(in_ball(x, lower)) == label).all()
    np.testing.assert_allclose(np.linalg.norm(found.counterexamples - rows, axis=1), found.upper)
    assert (model.predict(found.counterexamples) != own).all()
    np.testing.assert_array_equal(found.labels, own)
    assert (found.lower > 0).all()


def test_distance_on_a_line():
    """In one dimension the distance is that to the nearest root, found on a fine grid."""
    X = np.sort(RNG.uniform(-3, 3, size=60))[:, None]
    y = (np.sin(2 * X[:, 0]) > 0).astype(int)
    model = SVC(C=10.0, gamma=2.0).fit(X, y)
    line = np.linspace(-8, 8, 160_001)
    f = model.decision_function(line[:, None])
    roots = line[np.flatnonzero(np.diff(np.sign(f)))]
    rows = RNG.uniform(-3, 3, size=(40, 1))
    found = robustness(model, rows)
    distance = np.abs(rows - roots).min(axis=1)
    assert (found.lower <= distance + 1e-4).all()
    assert (found.upper >= distance - 1e-4).all()
    assert np.median(found.upper / distance) < 1.001


@pytest.mark.parametrize("package", ["mercer", "sklearn"])
def test_linear_machines_are_exact(package):
    """For a linear kernel both bounds are |f| / |w|."""
    X = RNG.normal(size=(50, 6))
    y = (X[:, 0] + 0.3 * RNG.normal(size=50) > 0).astype(int)
    model = (SVC if package == "mercer" else sklearn.svm.SVC)(kernel="linear").fit(X, y)
    found = robustness(model, X)
    expected = np.abs(model.decision_function(X)) / np.linalg.norm(model.coef_)
    np.testing.assert_allclose(found.lower, expected, rtol=1e-8)
    np.testing.assert_allclose(found.upper, expected, rtol=1e-6)


@pytest.mark.parametrize("break_ties", [False, True])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_several_classes(kernel, break_ties):
    """No point within the lower bound has another label; the counterexample has."""
    X, y = load_iris(return_X_y=True)
    model = SVC(kernel=kernel, C=10.0, break_ties=break_ties).fit(X, y)
    rows = X[::5]
    found = robustness(model, rows)
    own = model.predict(rows)
    assert (model.predict(found.counterexamples) != own).all()
    np.testing.assert_array_equal(model.predict(found.counterexamples), found.other_labels)
    for x, label, lower in zip(rows, own, found.lower, strict=True):
        assert (model.predict(in_ball(x, lower)) == label).all()
    assert np.median(found.lower / found.upper) > 0.5


def test_votes():
    """The winner keeps its place until a rival may have as many votes: all flips of the pairs below r are tried."""
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    for seed in range(50):
        rng = np.random.default_rng(seed)
        values, radii = rng.normal(size=6), rng.permutation(6) + 1.0
        first, second = np.array(pairs).T

        def winner(values, first=first, second=second):
            return int(np.bincount(np.where(values > 0, first, second), minlength=4).argmax())

        y = winner(values)
        (found,) = voted_radii(radii[None], values[None], pairs, np.array([y]), True)
        for r in range(1, 8):
            doubtful = np.flatnonzero(radii < r + 0.5)
            flips = [
                winner(
                    np.where(
                        np.isin(np.arange(6), doubtful[(mask >> np.arange(len(doubtful))) & 1 == 1]), -values, values
                    )
                )
                for mask in range(2 ** len(doubtful))
            ]
            # the proof counts the best case of each rival alone, so it may end early but never late
            if r + 0.5 < found:
                assert set(flips) == {y}


def test_novelty_and_nu():
    """Outliers and inliers, and ν-machines of both packages."""
    for model in (OneClassSVM(nu=0.2), sklearn.svm.OneClassSVM(nu=0.2), NuSVC(nu=0.3), sklearn.svm.NuSVC(nu=0.3)):
        model.fit(MOONS, SIDES)
        found = robustness(model, MOONS[:15])
        own = model.predict(MOONS[:15])
        np.testing.assert_array_equal(found.labels, own)
        assert (model.predict(found.counterexamples) != own).all()
        for x, label, lower in zip(MOONS, own, found.lower, strict=False):
            assert (model.predict(in_ball(x, lower, 100)) == label).all()


def test_a_constant_label_has_no_boundary():
    """A function that is positive everywhere has an infinite lower bound and no counterexample."""
    f = Decision.of(Gaussian(1.0), np.zeros((1, 2)), np.array([1.0]), 0.5)
    assert certified_radii(f, np.array([[0.3, 0.2]])) == np.inf
    model = SVC(kernel=Gaussian(1.0), C=1e-3).fit([[0.0], [0.1], [0.2], [5.0]], [1, 1, 1, 0])
    found = robustness(model, [[0.1]])
    assert found.lower == found.upper == np.inf
    assert np.isnan(found.counterexamples).all()
    assert "row 0: 1 up to inf … inf" in repr(found)


def test_rows_on_the_boundary():
    """Where f is 0 up to rounding, nothing is certified."""
    f = Decision.of(Gaussian(1.0), np.array([[-1.0], [1.0]]), np.array([1.0, -1.0]), 0.0)
    assert certified_radii(f, np.array([[0.0]]))[0] == 0.0
    assert certified_radii(f, np.array([[1e-9]]))[0] <= 1e-9


@pytest.mark.parametrize("name", KERNELS)
def test_bounds_of_kernels_in_balls(name):
    """Values, second differences and feature distances of random points in a ball are within the bounds."""
    kernel = KERNELS[name]
    X, S = RNG.normal(size=(4, 2)), RNG.normal(size=(7, 2))
    bounds = ball(kernel, X, S)
    for size in (0.01, 0.3, 2.0):
        r = np.full(4, size)
        low, high = bounds.values(r)
        curvature, far = bounds.curvature(r), bounds.squared_distance(r)
        for i, x in enumerate(X):
            Z = in_ball(x, size, 100)
            K = kernel(Z, S)
            slack = 1e-9 * (1 + np.abs(K).max())
            assert (low[i] - slack <= K).all() and (high[i] + slack >= K).all()
            squared = kernel.diagonal(kernel.prepare(Z)) + kernel(x[None], x[None])[0, 0] - 2 * kernel(Z, x[None])[:, 0]
            assert (squared <= far[i] + slack).all()
            signed = np.tile(RNG.normal(size=7), (4, 1))
            relaxed = bounds.relaxed(signed, r, 0.0)
            if relaxed is not None:
                assert ((K @ signed[i]) >= relaxed[i] - slack).all()
            if curvature is not None:
                inner, h = in_ball(x, 0.9 * size, 50), 1e-3 * size
                u = in_ball(np.zeros(2), 1.0, 50)
                u /= np.linalg.norm(u, axis=1, keepdims=True)
                second = (kernel(inner + h * u, S) + kernel(inner - h * u, S) - 2 * kernel(inner, S)) / h**2
                rounding = 1e-13 * (1 + np.abs(K).max()) / h**2
                assert (second >= curvature[0][i] - rounding).all()
                assert (second <= curvature[1][i] + rounding).all()


def test_bounds_by_lines_are_sharp_for_small_balls():
    """The lines that bound the exponential functions touch them at x: the error falls with the square of r."""
    X, S, beta = RNG.normal(size=(3, 2)), RNG.normal(size=(9, 2)), RNG.normal(size=9)
    bounds, signed = ball(Gaussian(1.0), X, S), np.tile(beta, (3, 1))
    here = Gaussian(1.0)(X, S) @ beta
    slope = np.linalg.norm(Gaussian(1.0).sample_gradients(X, S, signed), axis=1)
    errors = [here - slope * r - bounds.relaxed(signed, np.full(3, r), 0.0) for r in (1e-2, 1e-3)]
    assert (errors[0] < 1e-2).all() and (errors[1] < 0.02 * errors[0]).all()


def test_far_from_the_origin():
    """Samples far from the origin lose digits: the certified radius is shorter, but hardly."""
    near = robustness(SVC(kernel=Gaussian(1.0), C=5.0).fit(MOONS, SIDES), MOONS[:20])
    far = robustness(SVC(kernel=Gaussian(1.0), C=5.0).fit(MOONS + 1e4, SIDES), MOONS[:20] + 1e4)
    assert (far.lower <= 1.001 * near.lower).all()
    assert (far.lower >= 0.98 * near.lower).all()


def test_pipelines_and_sparse_rows():
    """Distances are those after the other steps of a pipeline; sparse rows give what dense rows give."""
    model = make_pipeline(StandardScaler(), SVC()).fit(MOONS, SIDES)
    scaled = robustness(model[1], model[0].transform(MOONS[:5]))
    np.testing.assert_allclose(robustness(model, MOONS[:5]).lower, scaled.lower)
    rows = sp.csr_array(MOONS)
    sparse = robustness(SVC(gamma=1.0).fit(rows, SIDES), rows[:5])
    np.testing.assert_allclose(sparse.lower, robustness(SVC(gamma=1.0).fit(MOONS, SIDES), MOONS[:5]).lower, rtol=1e-4)


def test_frames_and_learnt_kernels():
    """A machine trained on a frame warns of nothing; a learnt sum of kernels is a sum of kernels."""
    frame = pytest.importorskip("pandas").DataFrame(MOONS, columns=["a", "b"])
    found = robustness(SVC(gamma=1.0).fit(frame, SIDES), frame[:5])
    np.testing.assert_allclose(found.lower, robustness(SVC(gamma=1.0).fit(MOONS, SIDES), MOONS[:5]).lower)
    model = MKLClassifier([Gaussian(1.0), Linear()]).fit(MOONS, SIDES)
    found = robustness(model, MOONS[:5])
    assert (found.lower > 0).all() and (model.predict(found.counterexamples) != found.labels).all()


def test_text():
    """The text has the bounds and both labels."""
    text = repr(robustness(SVC().fit(MOONS, SIDES), MOONS))
    assert text.startswith("robustness of 80 rows: lower / upper is 0.") and text.endswith("…")


def test_unusable():
    """Questions that cannot be answered are refused with a reason."""
    with pytest.raises(InvalidInputError, match="robustness supports SVC, NuSVC, OneClassSVM, but was given SVR"):
        robustness(SVR().fit(MOONS, SIDES), MOONS)
    with pytest.raises(InvalidInputError, match=r"No bound is known for Matern\("):
        robustness(SVC(kernel=Matern(1.5, 1.0)).fit(MOONS, SIDES), MOONS)
    with pytest.raises(InvalidInputError, match="compares other objects"):
        robustness(SVC(kernel=Spectrum(2)).fit(["ab", "cd"], [0, 1]), ["ab"])
    with pytest.raises(InvalidInputError, match="matrix of kernel values"):
        robustness(SVC(kernel="precomputed").fit(MOONS @ MOONS.T, SIDES), MOONS @ MOONS.T)
    with pytest.raises(InvalidInputError, match="not known"):
        robustness(sklearn.svm.SVC(kernel="precomputed").fit(MOONS @ MOONS.T, SIDES), MOONS)
    with pytest.raises(ValueError, match="NaN"):
        robustness(SVC().fit(MOONS, SIDES), [[np.nan, 0.0]])
    with pytest.raises(ValueError, match="3 features"):
        robustness(SVC().fit(MOONS, SIDES), [[1.0, 0.0, 0.0]])


def test_a_far_boundary_of_a_linear_kernel_is_found():
    """Both bounds are |f|/|w|, although no training point has another label."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), (rng.random(60) < 0.1).astype(int)
    X[y == 1] += 3
    model = SVC(kernel="linear", C=1e-4).fit(X, y)
    assert len(set(model.predict(X))) == 1
    found = robustness(model, X[:5])
    distance = np.abs(model.decision_function(X[:5])) / np.linalg.norm(model.coef_)
    np.testing.assert_allclose(found.upper, distance, rtol=1e-4)
    np.testing.assert_allclose(found.lower, distance, rtol=1e-4)
    assert np.all(model.predict(found.counterexamples) != model.predict(X[:5]))


def test_huge_numbers_prove_no_infinite_radius():
    """The distances of rows at 1e200 overflow; there the boundary is far, not infinitely far."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    for kernel in ("rbf", "linear"):
        found = robustness(SVC(kernel=kernel).fit(X, X[:, 0] > 0), X[:2] * 1e200)
        assert np.isfinite(found.lower).all() and (found.lower <= found.upper).all()


def test_points_of_the_pool_are_counterexamples():
    """A training point of another label is one, too, where rounding hides the nearer ones."""
    X, pool = np.zeros((2, 1)), np.array([[1.0], [3.0], [2.0]])
    found = beyond_rounding(X, np.array([[0.5], [2.0]]), lambda Z: (Z[:, 0] >= 2.0).astype(int), pool)
    np.testing.assert_array_equal(found, [[2.0], [2.0]])
