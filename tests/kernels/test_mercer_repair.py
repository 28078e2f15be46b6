"""An indefinite matrix becomes a kernel matrix, new samples follow, and the change is told."""

import numpy as np
import pytest

from mercer import SVC
from mercer.exceptions import InvalidInputError
from mercer.kernels import CallableKernel, Gaussian, Precomputed, Sigmoid, repair_mercer

WAYS = ("clip", "flip", "shift")


def indefinite(n=12, seed=0):
    K = np.random.default_rng(seed).normal(size=(n, n))
    return (K + K.T) / 2


@pytest.mark.parametrize("how", WAYS)
def test_eigenvalues(how):
    """The eigenvalues are those of the formula, the eigenvectors stay."""
    K = indefinite()
    values = np.linalg.eigvalsh(K)
    expected = {"clip": np.maximum(values, 0), "flip": np.abs(values), "shift": values - values[0]}[how]
    repair = repair_mercer(K, how=how)
    np.testing.assert_allclose(np.linalg.eigvalsh(repair.matrix), np.sort(expected), atol=1e-12)
    np.testing.assert_allclose(repair.matrix @ K, K @ repair.matrix, atol=1e-12)
    assert repair.n_negative == (values < 0).sum()
    assert repair.smallest_eigenvalue == pytest.approx(values[0])
    change = repair.matrix - K
    assert repair.largest_change == pytest.approx(np.abs(change).max())
    assert repair.relative_change == pytest.approx(np.linalg.norm(change) / np.linalg.norm(K))
    assert str(repair.n_negative) in str(repair) and how in str(repair)


def test_clip_is_nearest():
    """No positive semidefinite matrix is nearer than the clipped one; tried on many that are near."""
    K = indefinite()
    nearest = repair_mercer(K).matrix
    least = np.linalg.norm(K - nearest)
    rng = np.random.default_rng(1)
    for scale in (1e-3, 1e-2, 0.1, 1.0):
        A = nearest + scale * indefinite(len(K), int(rng.integers(1000)))
        values, U = np.linalg.eigh(A)
        assert np.linalg.norm(K - (U * np.maximum(values, 0)) @ U.T) >= least - 1e-12


@pytest.mark.parametrize("how", WAYS)
def test_new_rows(how):
    """Rows of the matrix become rows of the repaired one; only shift leaves its diagonal to the matrix."""
    K = indefinite()
    repair = repair_mercer(K, how=how)
    expected = K if how == "shift" else repair.matrix
    np.testing.assert_allclose(repair.rows(K[2:5]), expected[2:5], atol=1e-12)
    with pytest.raises(InvalidInputError, match=r"rows of 12 similarities.*but was given an array of shape \(3, 4\)"):
        repair.rows(np.ones((3, 4)))


@pytest.mark.parametrize("how", WAYS)
def test_a_machine_on_it(how):
    """A fit on the repaired matrix is certified, without the warning that the other one gives."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sign(X[:, 0])
    K = Sigmoid(gamma=1.0, coef0=-1.0)(X)
    repair = repair_mercer(K, how=how)
    machine = SVC(kernel="precomputed").fit(repair.matrix, y)
    assert machine.certificate_.relative_gap < 1e-2
    assert machine.score(repair.rows(K), y) > 0.8


def test_nothing_to_repair():
    """A positive semidefinite matrix does not change."""
    X = np.random.default_rng(0).normal(size=(10, 2))
    repair = repair_mercer(Gaussian(), X)
    assert repair.n_negative == 0 and str(repair).startswith("Nothing to repair: no eigenvalue of 10 is negative")
    np.testing.assert_allclose(repair.matrix, Gaussian()(X), atol=1e-15)
    np.testing.assert_array_equal(repair.rows(repair.matrix), repair.matrix)


def test_not_symmetric():
    """A matrix that is not symmetric is replaced by its symmetric part."""
    K = np.random.default_rng(0).normal(size=(6, 6))
    np.testing.assert_array_equal(repair_mercer(K).matrix, repair_mercer((K + K.T) / 2).matrix)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0, 2.0]],), "A kernel matrix must be square, but the shape is (1, 2)"),
        (([[np.nan]],), "The kernel matrix must be finite, but K[0, 0] = nan."),
        (([[1.0]], [[1.0]]), "repair_mercer was given a matrix and samples"),
        ((Gaussian(),), "repair_mercer needs samples to compute Gaussian(gamma='scale')"),
        ((np.empty((0, 0)),), "repair_mercer needs at least one sample"),
        ((Precomputed(), [[1.0, 2.0]]), "A kernel matrix must be square"),
        ((CallableKernel(np.dot), []), "repair_mercer needs at least one sample"),
    ],
    ids=range(7),
)
def test_errors(arguments, message):
    """Errors say what cannot be repaired, and why."""
    with pytest.raises(InvalidInputError) as caught:
        repair_mercer(*arguments)
    assert str(caught.value).startswith(message)


def test_ways():
    """An unknown value of how raises an error that lists the three ways."""
    with pytest.raises(InvalidInputError, match="how='cut' must be one of 'clip', 'flip', 'shift'"):
        repair_mercer([[1.0]], how="cut")
