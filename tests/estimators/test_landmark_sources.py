"""Landmark machines of rows that stay on disk."""

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tests.naming import named

import mercer
from mercer import SVC, SVR, KernelRidge, OneClassSVM, load, open_rows, save
from mercer.exceptions import InvalidInputError

N = 1500
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
F = X[:, 0] * X[:, 1] + 0.3 * RNG.standard_normal(N)
THREE = np.array(["low", "middle", "top"])[np.digitize(F, [-0.5, 0.5])]
WEIGHT = np.where(np.arange(N) % 11 == 0, 0.0, RNG.uniform(0.2, 1.8, N))
# megabytes: blocks of 256 rows, of which some are kept
MEMORY = 0.02
MACHINES = {
    "two classes": (SVC(gamma=0.3), F > 0),
    "three classes": (SVC(gamma=0.3, loss="squared_hinge", class_weight="balanced"), THREE),
    "scale": (SVC(C=0.5, fit_intercept=False), F > 0),
    "regression": (SVR(gamma=0.3), F),
    "one class": (OneClassSVM(gamma=0.3, nu=0.2), None),
    "ridge": (KernelRidge(kernel="rbf", gamma=0.3, alpha=0.5, fit_intercept=True), F),
}


@pytest.fixture
def path(tmp_path):
    np.save(tmp_path / "X.npy", X)
    return str(tmp_path / "X.npy")


@pytest.mark.parametrize(("machine", "y"), MACHINES.values(), ids=MACHINES)
def test_the_machine_is_that_of_rows_in_memory(machine, y, path, tmp_path):
    """Both are within landmark_tol of the exact machine of all rows; weights and class weights are the same."""
    exact = clone(machine).set_params(tol=1e-5).fit(X, y, WEIGHT)
    machine = clone(machine).set_params(landmarks="auto")
    rows = open_rows(path, target=y, weight=WEIGHT, memory=MEMORY)
    found, reference = clone(machine).fit(rows), clone(machine).fit(X, y, WEIGHT)
    proof, slack = found.certificate_, 1e-4 * abs(exact.certificate_.primal)
    assert proof.valid and proof.relative_gap <= machine.landmark_tol
    assert proof.dual <= exact.certificate_.primal + slack
    assert exact.certificate_.dual - slack <= proof.primal <= exact.certificate_.primal + proof.gap + slack
    assert proof.primal == pytest.approx(reference.certificate_.primal, rel=2 * machine.landmark_tol)
    assert found.landmark_certificate_.relative_gap <= 0.1 * machine.landmark_tol
    assert found.n_landmarks_ == len(found.landmarks_) and found.shape_fit_ == X.shape
    np.testing.assert_array_equal(found.predict(rows), found.predict(X))
    agree = np.mean(found.predict(X) == exact.predict(X)) if isinstance(machine, SVC | OneClassSVM) else 1.0
    assert agree > 0.97
    if isinstance(machine, SVC):
        np.testing.assert_allclose(found.class_weight_, reference.class_weight_)
        np.testing.assert_array_equal(found.classes_, reference.classes_)
        np.testing.assert_array_equal(found.decision_function(rows), found.decision_function(X))
        np.testing.assert_array_equal(X[found.support_], found.support_vectors_)
        assert (WEIGHT[found.support_] > 0).all()
    save(found, tmp_path / "model.mercer")
    for other in (load(tmp_path / "model.mercer"), pickle.loads(pickle.dumps(found))):
        np.testing.assert_array_equal(other.predict(X), found.predict(X))


@pytest.mark.parametrize("kind", ["memmap", "h5py", "zarr", "parquet"])
def test_every_source_gives_the_same_machine(kind, path, tmp_path):
    """Which landmarks are drawn depends on their row numbers, not on the file or its blocks."""
    expected = SVC(landmarks=60).fit(open_rows(path, target=F > 0, memory=MEMORY))
    target = (F > 0).astype(np.int64)
    if kind == "memmap":
        data = np.load(path, mmap_mode="r")
    elif kind == "h5py":
        data = pytest.importorskip("h5py").File(tmp_path / "X.h5", "w").create_dataset("X", data=X, chunks=(500, 3))
    elif kind == "zarr":
        data = pytest.importorskip("zarr").create_array(str(tmp_path / "z"), shape=X.shape, dtype="f8", chunks=(500, 3))
        data[:] = X
    else:
        pandas = pytest.importorskip("pandas")
        pandas.DataFrame({f"c{j}": X[:, j] for j in range(3)} | {"y": target}).to_parquet(tmp_path / "X.parquet")
        data, target = tmp_path / "X.parquet", "y"
    rows = open_rows(data, target=target, memory=MEMORY)
    model = SVC(landmarks=60).fit(rows)
    np.testing.assert_array_equal(np.sort(model.support_), np.sort(expected.support_))
    assert model.certificate_.primal == pytest.approx(expected.certificate_.primal, rel=1e-3)
    values = model.decision_function(rows)
    np.testing.assert_allclose(values, expected.decision_function(X), atol=0.02)
    if kind == "parquet":
        assert list(model.feature_names_in_) == ["c0", "c1", "c2"]
        with pytest.raises(InvalidInputError, match=r"Column 0 of .* is 'c1', but the model was fitted to 'c0' there"):
            model.predict(open_rows(data, columns=["c1", "c0", "c2"]))


def test_given_landmarks_and_targets_given_to_fit(path):
    """The landmarks are those given; y and weights may be given to fit, as for rows in memory."""
    rows = open_rows(path, memory=MEMORY)
    model = SVC(landmarks=X[:40]).fit(rows, THREE, WEIGHT)
    expected = SVC(landmarks=X[:40]).fit(X, THREE, WEIGHT)
    assert model.certificate_.primal == pytest.approx(expected.certificate_.primal, rel=1e-3)
    assert np.mean(model.predict(rows) == expected.predict(X)) > 0.98
    sparse = sp.csr_array(np.where(np.abs(X) < 0.4, 0.0, X))
    with pytest.raises(ValueError, match="cannot use sparse input in 'SVC' trained on dense data"):
        model.predict(sparse)


def test_the_factor_is_limited_by_cache_size(path):
    """cache_size is the memory of the factor, as for rows in memory: more landmarks than fit are an error."""
    rows = open_rows(path, target=F > 0, memory=MEMORY)
    with pytest.raises(InvalidInputError, match=r"1500 landmarks of 1,500 samples take .* or a larger cache_size"):
        SVC(landmarks=1500, cache_size=1).fit(rows)
    with pytest.warns(ConvergenceWarning, match=r"More landmarks do not fit into the memory\. Raise cache_size"):
        model = SVC(gamma=3.0, landmarks="auto", landmark_tol=1e-3, cache_size=1).fit(rows)
    assert model.n_landmarks_ <= 0.6 * 2**20 / (4 * N)


def test_limits_leave_a_certified_machine(path):
    """time_limit=0 ends after the first round."""
    rows = open_rows(path, target=F > 0, memory=MEMORY)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = SVC(landmarks="auto", time_limit=0.0).fit(rows)
    assert model.certificate_.valid and np.isfinite(model.certificate_.gap)


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (SVC(landmarks=10, polish=True), "polish=True continues to the exact machine"),
        (SVC(landmarks=10, solver="qp"), "solver='qp' solves the exact problem"),
        (SVC(landmarks=10, C=np.inf), "A hard margin .* has no landmark machine"),
        (SVC(landmarks=10, probability=True), "probability=True needs all rows in memory"),
        (SVC(landmarks=10, kernel="sigmoid"), "Landmarks need a positive semidefinite kernel"),
        (SVC(landmarks=10, kernel=lambda A, B: A @ B.T), "Rows in parts need a kernel object"),
        (SVC(landmarks=np.ones((3, 5))), "landmarks has 5 features, but X has 3"),
        (KernelRidge(landmarks=10, alpha=0.0), "Landmarks need alpha > 0"),
    ],
    ids=named,
)
def test_what_is_refused(machine, message, path):
    """The error says what is wrong, and what to do."""
    with pytest.raises((InvalidInputError, ValueError), match=message):
        machine.fit(open_rows(path, target=F > 0 if isinstance(machine, SVC) else F))


def test_targets_are_needed_once(path):
    """Missing targets, and targets given twice, are an error; so is NaN, which is named by row and column."""
    with pytest.raises(InvalidInputError, match="SVC requires y to be passed"):
        SVC(landmarks=10).fit(open_rows(path))
    with pytest.raises(InvalidInputError, match=r"y was given to fit, but .* has its own"):
        SVC(landmarks=10).fit(open_rows(path, target=F > 0), F > 0)
    wrong = X.copy()
    wrong[700, 1] = np.nan
    with pytest.raises(InvalidInputError, match=r"row 700, column 1: found a missing value"):
        SVC(landmarks=10).fit(open_rows(wrong, target=F > 0, memory=MEMORY))


# ---- checkpoints -----------------------------------------------------------------------------------------------------


KILLED = """
import sys, time
import numpy as np
from mercer import SVC, open_rows

class Slow:
    '''An array that takes its time.'''
    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype
    def __getitem__(self, rows):
        time.sleep(0.002)
        return self.X[rows]

X, y = np.load(sys.argv[1]), np.load(sys.argv[2])
SVC(landmarks="auto", gamma=1.0, checkpoint=sys.argv[3]).fit(open_rows(Slow(X), target=y, memory=0.02))
"""


@pytest.mark.slow
def test_a_killed_fit_is_continued(path, tmp_path):
    """SIGKILL while it runs; the next fit starts from the file and is as near to the exact machine."""
    file = tmp_path / "state.npz"
    np.save(tmp_path / "y.npy", THREE)
    command = [sys.executable, "-c", KILLED, path, str(tmp_path / "y.npy"), str(file)]
    process = subprocess.Popen(command, env=os.environ | {"PYTHONFAULTHANDLER": ""})
    try:
        while not file.exists():
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    machine = SVC(landmarks="auto", gamma=1.0)
    model = clone(machine).set_params(checkpoint=file).fit(open_rows(path, target=THREE, memory=MEMORY))
    expected = machine.fit(X, THREE)
    assert model.certificate_.relative_gap <= 0.01
    assert model.certificate_.primal == pytest.approx(expected.certificate_.primal, rel=0.02)


def test_a_finished_checkpoint_saves_the_work(path, tmp_path):
    """The second fit has the landmarks of the first one: it adds none, and ends at the same objective."""
    rows = open_rows(path, target=THREE, memory=MEMORY)
    machine = SVC(gamma=2.0, landmarks="auto", checkpoint=tmp_path / "state")
    first, second = clone(machine).fit(rows), clone(machine).fit(rows)
    assert sorted(os.listdir(tmp_path)) == ["X.npy", "state"]
    assert max(len(rounds) for rounds in first.growth_) > 1
    assert all(len({now.n_landmarks for now in rounds}) == 1 for rounds in second.growth_)
    # without those that depend on others, which are few
    assert set(second.support_) <= set(first.support_) and second.n_landmarks_ > 0.98 * first.n_landmarks_
    assert second.certificate_.primal == pytest.approx(first.certificate_.primal, rel=1e-3)
    assert second.certificate_.relative_gap <= 0.01


def test_a_checkpoint_belongs_to_data_and_parameters(path, tmp_path):
    """Others are an error that says what differs; tolerances may change. A damaged file is an error, too."""
    file = tmp_path / "state"
    rows = open_rows(path, target=F > 0)
    machine = SVC(landmarks=50, checkpoint=file)
    clone(machine).fit(rows)
    clone(machine).set_params(landmark_tol=0.02, cache_size=100).fit(rows)
    with pytest.raises(InvalidInputError, match=r"belongs to another fit \(different: gamma was 'scale'\)"):
        clone(machine).set_params(gamma=2.0).fit(rows)
    with pytest.raises(InvalidInputError, match=r"belongs to another fit \(different: data\)"):
        clone(machine).fit(open_rows(path, target=F < 0))
    given = clone(machine).set_params(landmarks=X[:30], checkpoint=tmp_path / "given").fit(rows)
    with pytest.raises(InvalidInputError, match=r"belongs to another fit \(different: landmarks\)"):
        given.set_params(landmarks=X[1:31]).fit(rows)
    before = file.read_bytes()
    for damage in (before[: len(before) // 2], b"something else", b""):
        file.write_bytes(damage)
        with pytest.raises(InvalidInputError, match=r"state is not a checkpoint, or is damaged: .*Remove it to begin"):
            clone(machine).fit(rows)


def test_a_checkpoint_of_another_kind_is_refused(path, tmp_path):
    """Arrays that do not belong together, and fits that cannot use a checkpoint."""
    file, rows = tmp_path / "state", open_rows(path, target=F > 0)
    machine = SVC(landmarks=50, checkpoint=file)
    machine.fit(rows)
    with np.load(file) as stored:
        arrays = dict(stored)
    arrays["0.coef"] = arrays["0.coef"][:-1]
    with open(file, "wb") as opened:
        np.savez(opened, **arrays)
    with pytest.raises(InvalidInputError, match="its landmarks and coefficients differ in number"):
        machine.fit(rows)
    for other, data in ((machine, X), (SVC(checkpoint=file), rows), (KernelRidge(checkpoint=file), X)):
        with pytest.raises(InvalidInputError, match="is for rows on disk with landmarks"):
            other.fit(data, None if data is rows else F > 0)


# ---- memory ----------------------------------------------------------------------------------------------------------


MEASURED = """
import sys, threading, time
import numpy as np, mercer

def anonymous():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024

small = np.random.default_rng(0).standard_normal((3000, 100)).astype(np.float32)
machine = mercer.SVC(landmarks=100, gamma=0.01, n_jobs=1)
machine.fit(mercer.open_rows(small, target=small[:, 0] > 0, memory=1))  # compiles
file = __import__("h5py").File(sys.argv[1])
y = file["X"][:, 0] > 0
before, peak, done = anonymous(), [0.0], []

def watch():
    while not done:
        peak[0] = max(peak[0], anonymous())
        time.sleep(0.002)

thread = threading.Thread(target=watch)
thread.start()
rows = mercer.open_rows(file["X"], memory=20)
machine.fit(rows, y)
machine.predict(rows)
done.append(True)
thread.join()
print(peak[0] - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_the_memory_of_a_fit_is_the_budget(tmp_path):
    """80 MB of rows with a budget of 20 MB: the budget, the factor of 40 MB, blocks and vectors over rows."""
    n, d = 100_000, 200
    rng = np.random.default_rng(0)
    with pytest.importorskip("h5py").File(tmp_path / "X.h5", "w") as file:
        data = file.create_dataset("X", (n, d), dtype=np.float32, chunks=(1000, d))
        for start in range(0, n, 10_000):
            data[start : start + 10_000] = rng.standard_normal((10_000, d), dtype=np.float32)
    found = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path / "X.h5")], capture_output=True, text=True, check=True
    )
    # half of the rows of the factor are copied for a central path; vectors of 0.8 MB each; drawn rows of 8 MB, twice
    assert float(found.stdout) < 20 + 1.5 * 40 + 25 * 0.8 + 2 * 8 + 5


def test_other_estimators_say_what_they_need(tmp_path):
    """Searches and transformers refuse rows on disk in one sentence; scores take their targets from them."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    f = X[:, 0] + 0.1 * X[:, 1]
    y = np.where(f > 0, "up", "down")
    np.save(tmp_path / "X.npy", X)
    rows, numbers = (mercer.open_rows(tmp_path / "X.npy", target=target) for target in (y, f))
    for machine in (mercer.LinearSVCCV(), mercer.SVCCV(), mercer.Nystroem(), mercer.KernelPCA()):
        with pytest.raises(InvalidInputError, match="is read block by block, but an array of all rows is needed here"):
            machine.fit(rows)
    for machine, source, target in (
        (mercer.LinearSVC(), rows, y),
        (mercer.SVC(landmarks=20), rows, y),
        (mercer.LinearSVR(), numbers, f),
        (mercer.KernelRidge(kernel="rbf", landmarks=20), numbers, f),
    ):
        model = machine.fit(source)
        assert model.score(source) == model.score(X, target)


def test_messages_about_rows_on_disk(tmp_path):
    """What was found, and what to do."""
    X = np.random.default_rng(0).standard_normal((50, 3))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", np.where(np.arange(50) == 7, np.nan, X[:, 0]))
    path = tmp_path / "X.npy"
    with pytest.raises(InvalidInputError, match=r"X\.npy, row 7: the target is nan"):
        mercer.LinearSVR().fit(mercer.open_rows(path, target=tmp_path / "y.npy"))
    for memory in (None, [1], "2GB"):
        with pytest.raises(InvalidInputError, match="use a positive number of megabytes"):
            mercer.open_rows(path, memory=memory)
    with pytest.raises(InvalidInputError, match=r"columns='c0' is a text: give a list, such as columns=\['c0'\]"):
        mercer.open_rows(path, columns="c0")
    rows = mercer.open_rows(path, target=X[:, 0] > 0)
    with pytest.raises(InvalidInputError, match="a kernel matrix or a Python function was given"):
        SVC(landmarks=10, kernel="precomputed").fit(rows)
    with pytest.raises(InvalidInputError, match="trace=True follows a procedure for the exact problem"):
        SVC(landmarks=10, trace=True).fit(X, X[:, 0] > 0)


def test_texts_of_hdf5_are_labels(tmp_path):
    """h5py gives texts as bytes; a closed file is said."""
    h5py = pytest.importorskip("h5py")
    X = np.random.default_rng(0).standard_normal((60, 3))
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["X"] = X
        file["y"] = ["up" if value > 0 else "dówn" for value in X[:, 0]]
        rows = mercer.open_rows(file["X"], target=file["y"])
        assert mercer.LinearSVC().fit(rows).classes_.tolist() == ["dówn", "up"]
        other = mercer.open_rows(file["X"], target=X[:, 0] > 0)
    with pytest.raises(InvalidInputError, match="cannot be read"):
        mercer.LinearSVC().fit(other)
