"""Exact kernel machines of rows on disk that exceed their memory: the machines of one array."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import SVC, SVR, NuSVR, OneClassSVM, open_rows
from mercer.exceptions import InvalidInputError

TOL = 1e-4


@pytest.fixture(scope="module")
def data():
    """2,000 samples of four columns, a smooth target, and weights, some of which are 0."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 4))
    f = X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(len(X))
    weight = rng.uniform(0.2, 1.8, len(X))
    weight[::13] = 0.0
    return X, f, weight


def opened(tmp_path, X, **parts):
    """The rows on disk, with less memory than they need."""
    np.save(tmp_path / "X.npy", X)
    rows = open_rows(tmp_path / "X.npy", memory=0.03, **parts)
    assert rows.n * rows.bytes_per_row > rows.memory and len(rows.cuts(rows.block_rows)) > 3
    return rows


def assert_same_machine(found, exact, X):
    """Equal dual values; decision values within the gaps; support vectors are rows."""
    proof, theirs = found.certificate_, exact.certificate_
    assert proof.valid and proof.kkt_violation <= TOL
    np.testing.assert_allclose(proof.dual, theirs.dual, rtol=1e-4)
    np.testing.assert_array_equal(X[found.support_], found.support_vectors_)
    assert found.shape_fit_ == exact.shape_fit_ and found.n_features_in_ == exact.n_features_in_
    far = 2 * np.sqrt(2 * (proof.gap + theirs.gap)) + 2 * TOL
    values = (lambda m: m.predict(X)) if isinstance(exact, SVR) else (lambda m: m.decision_function(X))
    np.testing.assert_allclose(values(found), values(exact), atol=far)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classification(data, n_classes, tmp_path):
    """Labels, weights and balanced classes; several classes one against one; the model is saved."""
    X, f, weight = data
    labels = np.array(["a", "b", "c"])[np.digitize(f, [0.4] if n_classes == 2 else [-0.3, 0.5])]
    machine = SVC(tol=TOL, class_weight="balanced", decision_function_shape="ovo")
    exact = machine.fit(X, labels, weight)
    rows = opened(tmp_path, X, target=labels, weight=weight)
    found = SVC(tol=TOL, class_weight="balanced", decision_function_shape="ovo").fit(rows)
    assert_same_machine(found, exact, X)
    np.testing.assert_allclose(found.class_weight_, exact.class_weight_)
    np.testing.assert_array_equal(found.classes_, exact.classes_)
    assert found.n_support_.sum() == len(found.support_)
    mercer.save(found, tmp_path / "model.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model.mercer").predict(X), found.predict(X))


def test_regression_and_one_class(data, tmp_path):
    """Targets that are given to fit, and none at all."""
    X, f, weight = data
    rows = opened(tmp_path, X)
    assert_same_machine(SVR(tol=TOL).fit(rows, f, weight), SVR(tol=TOL).fit(X, f, weight), X)
    found, exact = OneClassSVM(nu=0.1, tol=TOL).fit(rows), OneClassSVM(nu=0.1, tol=TOL).fit(X)
    assert_same_machine(found, exact, X)
    np.testing.assert_allclose(found.offset_, exact.offset_, rtol=1e-3)


def test_limits_and_errors(data, tmp_path):
    """max_iter leaves a certified model with a warning; what needs all rows in memory is named."""
    X, f, _ = data
    rows = opened(tmp_path, X, target=f > 0)
    with pytest.warns(ConvergenceWarning, match="max_iter=10"):
        early = SVC(max_iter=10).fit(rows)
    assert early.certificate_.valid and early.certificate_.relative_gap > 0.01
    for wrong in ({"solver": "qp"}, {"warm_start": True}, {"trace": True}):
        with pytest.raises(InvalidInputError, match=f"{next(iter(wrong))}=.* needs all rows in memory"):
            SVC(**wrong).fit(rows)
    with pytest.raises(InvalidInputError, match="Rows in parts need a kernel object"):
        SVC(kernel="precomputed").fit(rows)
    with pytest.raises(InvalidInputError, match="NuSVR compares all pairs of rows"):
        NuSVR().fit(opened(tmp_path, X, target=f))
    with pytest.raises(InvalidInputError, match="requires y to be passed"):
        SVC().fit(opened(tmp_path, X))


MEASURED = """
import sys, threading, time
import numpy as np, mercer

def anonymous():
    # without the pages of buffers that are kept for reuse (gram/memory.py): the system may take them at any time
    sizes = dict(line.split()[:2] for line in open("/proc/self/smaps_rollup") if line.split()[0].endswith(":"))
    return (int(sizes["Anonymous:"]) - int(sizes["LazyFree:"])) / 1024

rng = np.random.default_rng(0)
small = rng.standard_normal((6000, 100))
mercer.SVC(gamma=0.001).fit(mercer.open_rows(small, target=small[:, 0] > 0, memory=1))  # compiles
before, peak, done = anonymous(), [0.0], []

def watch():
    while not done:
        peak[0] = max(peak[0], anonymous())
        time.sleep(0.005)

thread = threading.Thread(target=watch)
thread.start()
import h5py
rows = mercer.open_rows(h5py.File(sys.argv[1])["X"], memory=20)
model = mercer.SVC(C=10, gamma=0.001, tol=0.1, cache_size=20).fit(rows, h5py.File(sys.argv[1])["y"][:])
done.append(True)
thread.join()
print(peak[0] - before, model.support_vectors_.nbytes / 2**20)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from /proc")
def test_the_memory_of_a_fit_is_its_budgets(tmp_path):
    """76 MB of rows with memory=20 and cache_size=20: these, 16 numbers per row, and the support vectors twice."""
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(1)
    with h5py.File(tmp_path / "d.h5", "w") as file:
        X = file.create_dataset("X", (100_000, 100), "f8", chunks=(1000, 100))
        y = file.create_dataset("y", (100_000,), "f8")
        for start in range(0, 100_000, 10_000):
            block = rng.standard_normal((10_000, 100))
            X[start : start + 10_000], y[start : start + 10_000] = block, block[:, 0] * 2 + block[:, 1] > 0
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, tmp_path / "d.h5"], capture_output=True, text=True, check=True
    )
    grown, model = map(float, done.stdout.split())
    assert grown <= 20 + 20 + 100_000 * 16 * 8 / 2**20 + 2 * model + 15
