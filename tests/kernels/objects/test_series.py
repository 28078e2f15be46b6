"""The global alignment kernel is the sum over all alignments."""

import pickle

import numpy as np
import pytest
from tests.naming import named
from tests.reference import structured as reference

from mercer import SVC
from mercer.exceptions import InvalidInputError
from mercer.kernels import GlobalAlignment, Normalized
from mercer.kernels.base import gamma_of
from mercer.testing import check_kernel

rng = np.random.default_rng(0)
SHORT = [rng.normal(size=n) for n in (1, 2, 5, 4, 0, 3)]
PLANE = [rng.normal(size=(n, 2)) for n in (3, 1, 4, 5)]


@pytest.mark.parametrize("band", [None, 1, 2, 4])
@pytest.mark.parametrize("samples", [SHORT, PLANE], ids=["numbers", "plane"])
def test_the_definition(samples, band):
    """Each alignment written down, for series of different lengths; an empty one has none."""
    k = reference.global_alignment(0.3, band)
    expected = reference.gram(k, samples, samples)
    kernel = GlobalAlignment(0.3, band, normalize=False)
    np.testing.assert_allclose(kernel(samples), expected, rtol=1e-13, atol=0)
    np.testing.assert_allclose(kernel(samples, samples[:2]), expected[:, :2], rtol=1e-13, atol=0)
    np.testing.assert_allclose(
        GlobalAlignment(0.3, band)(samples), Normalized(kernel)(samples), rtol=1e-12, atol=1e-300
    )


@pytest.mark.parametrize("band", [None, 30])
@pytest.mark.parametrize("gamma", [0.0, 1e-3, 1.0, 1e3, 1e6])
def test_values_of_any_size(gamma, band):
    """Where k leaves the range of numbers, its logarithm is that of a slow computation with logarithms."""
    x, z = rng.normal(size=(80, 2)), rng.normal(size=(90, 2)) * 3
    kernel = GlobalAlignment(gamma, band)
    features = kernel.prepare([x, z])
    expected = [reference.log_global_alignment(a, b, gamma, band) for a, b in ((x, x), (z, z), (x, z))]
    np.testing.assert_allclose(features.logs, expected[:2], rtol=1e-12, atol=1e-13)
    logs = kernel._logs(features, features)
    np.testing.assert_allclose([logs[0, 1], logs[1, 0]], expected[2], rtol=1e-12)


def test_points_that_have_nothing_in_common():
    """Points at very large distances give 0, never NaN."""
    x, z = np.array([1e5, 1.0, 0.0]), np.array([2.0, 1e5, -1e6])
    for gamma in (1e3, 1e20, 1e300):
        np.testing.assert_array_equal(GlobalAlignment(gamma)([x, z]), np.eye(2))
        np.testing.assert_array_equal(GlobalAlignment(gamma, band=2)([x, z, x[:1]]), np.eye(3))


def test_the_number_of_alignments():
    """With gamma = 0 it is Delannoy's number: the middle ones 1, 3, 13, 63, 321, ..., here beyond 1e308."""
    kernel = GlobalAlignment(0.0, normalize=False)
    np.testing.assert_allclose(np.diag(kernel([np.zeros(n) for n in (1, 2, 3, 4, 5)])), [1, 3, 13, 63, 321])
    row = [1.0] * 1000
    scale = 0.0
    for _ in range(999):
        new = [row[0]]
        for j in range(1, 1000):
            new.append(row[j] + row[j - 1] + new[j - 1])
        top = max(new)
        scale += np.log(top)
        row = [value / top for value in new]
    features = kernel.prepare([np.zeros(1000)])
    assert features.logs[0] == pytest.approx(scale + np.log(row[-1]), rel=1e-12)
    with pytest.raises(InvalidInputError, match=r"exceeds the range of floating-point numbers .* Use normalize=True"):
        kernel([np.zeros(1000)])


@pytest.mark.parametrize(
    "kernel", [GlobalAlignment(), GlobalAlignment(0.5, band=3), GlobalAlignment(0.5, None, False)], ids=named
)
def test_the_contract(kernel):
    """check_kernel passes, with an empty series among the samples."""
    check_kernel(kernel, SHORT)
    check_kernel(kernel, PLANE)


@pytest.mark.parametrize("band", [None, 3, 7])
def test_eigenvalues(band):
    """Positive for hard cases too: short series of few different values, many gammas."""
    samples = [rng.integers(3, size=int(n)).astype(float) for n in rng.integers(1, 8, size=60)]
    for gamma in (1e-3, 0.1, 1.0):
        K = GlobalAlignment(gamma, band)(samples)
        assert np.linalg.eigvalsh(K)[0] > -1e-12 * len(K)


def test_the_width():
    """ "scale" is Cuturi's rule: 1 / (4 d var(X) median length)."""
    bound = GlobalAlignment().bind(PLANE)
    assert bound.gamma == pytest.approx(gamma_of(np.concatenate(PLANE), "scale") / (4 * 3.5))
    assert bound.bind(SHORT) is bound
    assert GlobalAlignment().bind([[], []]).gamma > 0


def test_containers():
    """Lists, arrays, and an array of series of equal length give the same values."""
    X = rng.normal(size=(4, 6))
    K = GlobalAlignment(0.2)(X)
    np.testing.assert_array_equal(GlobalAlignment(0.2)(X.tolist()), K)
    np.testing.assert_array_equal(GlobalAlignment(0.2)(X[:, :, None]), K)
    np.testing.assert_array_equal(GlobalAlignment(0.2)([tuple(row) for row in X.tolist()]), K)


def test_speed_does_not_matter_much():
    """A bump that comes later is nearer than a smaller bump at the same time, which is nearer point by point."""
    t = np.arange(40)
    bump, later, smaller = (
        np.exp(-((t - 12) ** 2) / 9),
        np.exp(-((t - 24) ** 2) / 9),
        0.5 * np.exp(-((t - 12) ** 2) / 9),
    )
    K = GlobalAlignment(gamma=20.0)([bump, later, smaller])
    assert K[0, 1] > 5 * K[0, 2]
    assert np.linalg.norm(bump - later) > np.linalg.norm(bump - smaller)


def test_machines_learn_from_series():
    """Rising and falling waves of different lengths; after a pickle, with a search over the kernel's parameters."""
    from sklearn.model_selection import GridSearchCV

    y = np.arange(60) % 2
    X = []
    for label in y:
        t = np.linspace(0, 1, int(rng.integers(15, 30)))
        X.append((1 if label else -1) * np.sin(5 * t + rng.normal(scale=0.2)) + rng.normal(scale=0.3, size=len(t)))
    search = GridSearchCV(SVC(kernel=GlobalAlignment(0.1)), {"kernel__gamma": [0.01, 0.1]}, cv=3).fit(X[:40], y[:40])
    assert pickle.loads(pickle.dumps(search)).score(X[40:], y[40:]) > 0.9


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([[0.0, np.nan]], r"needs finite numbers, but sample 0 has \[nan\] at step 1"),
        ([[0.0], [[1.0, 2.0]]], "sample 0 has points of 1 numbers and sample 1 of 2"),
        ([[1e200, 1.0]], r"which overflows for sample 0 with the value 1e\+200. Scale the series."),
        ([["a", "b"]], "compares series of numbers, or of vectors of equal length, but sample 0 is not"),
        ([[[1.0], [1.0, 2.0]]], "but sample 0 is not"),
        ([np.zeros((2, 2, 2))], "time series"),
        (["ab"], "compares time series, but sample 0 is the string 'ab'"),
        ([[1.0], None], "compares time series, but sample 1 is missing"),
    ],
)
def test_what_is_no_series(samples, message):
    """The error says which sample is not a series."""
    with pytest.raises(InvalidInputError, match=message):
        GlobalAlignment(1.0)(samples)


@pytest.mark.parametrize("parameters", [{"gamma": -1.0}, {"gamma": "auto"}, {"gamma": (1.0, 2.0)}, {"band": 0}])
def test_bad_parameters(parameters):
    """The error names the parameter."""
    with pytest.raises(InvalidInputError, match=next(iter(parameters))):
        GlobalAlignment(**parameters)


def test_training_and_test_points_must_fit():
    """Training and test series must have the same dimension."""
    kernel = GlobalAlignment(1.0)
    with pytest.raises(InvalidInputError, match="some have points of 1 numbers and others of 2"):
        kernel(SHORT, PLANE)
