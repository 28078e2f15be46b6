"""LinearSVC and LinearSVR on rows that stay on disk."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import LinearSVC, LinearSVR, open_rows
from mercer.exceptions import InvalidInputError

N = 6000
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 6))
F = X @ RNG.standard_normal(6) + RNG.standard_normal(N)
THREE = np.array(["low", "middle", "top"])[np.digitize(F, [-1, 1])]
WEIGHT = RNG.random(N)
TOL = 1e-7


@pytest.fixture
def path(tmp_path):
    np.save(tmp_path / "X.npy", X)
    return str(tmp_path / "X.npy")


def assert_same_optimum(found, reference):
    """Both gaps are within tol, so the objectives differ by at most tol of the value."""
    assert found.certificate_.relative_gap <= found.tol
    assert_allclose(found.certificate_.primal, reference.certificate_.primal, rtol=2 * found.tol)
    assert_allclose(found.coef_, reference.coef_, atol=1e-3)
    assert_allclose(found.intercept_, reference.intercept_, atol=1e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("labels", [F > 0, THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize("penalize", [True, False])
def test_the_model_is_that_of_rows_in_memory(loss, labels, penalize, path):
    """Class weights, sample weights and both kinds of intercept; many small blocks."""
    parameters = {"loss": loss, "penalize_intercept": penalize, "class_weight": "balanced", "tol": TOL}
    found = LinearSVC(**parameters).fit(open_rows(path, target=labels, weight=WEIGHT, memory=0.1))
    reference = LinearSVC(**parameters).fit(X, labels, WEIGHT)
    assert_same_optimum(found, reference)
    assert np.array_equal(found.classes_, reference.classes_)
    assert_allclose(found.class_weight_, reference.class_weight_)
    assert found.n_features_in_ == 6 and len(found.certificates_) == len(reference.certificates_)
    assert str(found.plan_) and found.n_iter_ >= 1 and len(found.trace_) > 0


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "pinball"])
def test_regression(loss, path):
    """Targets may be given to fit."""
    found = LinearSVR(loss=loss, epsilon=0.1, tol=TOL).fit(open_rows(path, memory=0.1), F, WEIGHT)
    assert_same_optimum(found, LinearSVR(loss=loss, epsilon=0.1, tol=TOL).fit(X, F, WEIGHT))


@pytest.mark.parametrize("kind", ["memmap", "h5py", "zarr", "parquet"])
def test_every_source_gives_the_same_model(kind, path, tmp_path):
    """Blocks of other sizes change the rounding only; predictions are those of the array."""
    target = (F > 0).astype(np.int64)
    if kind == "memmap":
        data = np.load(path, mmap_mode="r")
    elif kind == "h5py":
        data = pytest.importorskip("h5py").File(tmp_path / "X.h5", "w").create_dataset("X", data=X, chunks=(500, 6))
    elif kind == "zarr":
        data = pytest.importorskip("zarr").create_array(str(tmp_path / "z"), shape=X.shape, dtype="f8", chunks=(500, 6))
        data[:] = X
    else:
        pandas = pytest.importorskip("pandas")
        pandas.DataFrame({f"c{j}": X[:, j] for j in range(6)} | {"y": target}).to_parquet(tmp_path / "X.parquet")
        data, target = tmp_path / "X.parquet", "y"
    rows = open_rows(data, target=target, memory=0.1)
    model = LinearSVC(tol=TOL).fit(rows)
    assert_same_optimum(model, LinearSVC(tol=TOL).fit(X, F > 0))
    assert np.array_equal(model.predict(rows), model.predict(X if kind != "parquet" else frame(rows)))
    assert_allclose(model.decision_function(rows), X @ model.coef_[0] + model.intercept_)


def frame(rows):
    """The rows as a data frame with their names."""
    import pandas

    return pandas.DataFrame(rows.block(0, rows.n).X, columns=list(rows.columns))


def test_a_table_with_all_kinds_of_columns(tmp_path):
    """The preparation and the machine make a pipeline that predicts from data frames and can be saved."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    from sklearn.pipeline import Pipeline

    table = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "city": np.where(X[:, 2] > 0, "Rome", "Oslo"), "y": THREE})
    table.loc[::7, "a"] = None
    table.to_parquet(tmp_path / "t.parquet", row_group_size=1000)
    rows = open_rows(tmp_path / "t.parquet", target="y", prepare=True, memory=0.5)
    machine = LinearSVC().fit(rows)
    model = Pipeline([*rows.preparation.steps, ("machine", machine)])
    assert np.array_equal(model.predict(table), machine.predict(rows))
    mercer.save(model, tmp_path / "model.mercer")
    assert np.array_equal(mercer.load(tmp_path / "model.mercer").predict(table), machine.predict(rows))
    again = open_rows(tmp_path / "t.parquet", prepare=rows.preparation)
    assert np.array_equal(machine.predict(again), machine.predict(rows))


def test_a_memory_map_is_not_copied(path):
    """Given directly, it goes to the solvers of rows in memory as it is."""
    mapped = np.load(path, mmap_mode="r")
    machine = LinearSVC(tol=TOL)
    data = machine._prepare(mapped, F > 0, None)
    assert np.shares_memory(data.rows.X, mapped)
    assert_same_optimum(machine.fit(mapped, F > 0), LinearSVC(tol=TOL).fit(X, F > 0))


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_an_exact_kernel_machine_from_disk(kind, tmp_path):
    """The rows are read into memory if they fit; the matrix keeps to cache_size, so the model is that of the array."""
    part, labels = X[:800].astype(kind), THREE[:800]
    np.save(tmp_path / "X.npy", part)
    found = mercer.SVC(cache_size=1).fit(open_rows(tmp_path / "X.npy", target=labels))
    reference = mercer.SVC(cache_size=1).fit(part, labels)
    assert np.array_equal(found.support_, reference.support_)
    assert np.array_equal(found.dual_coef_, reference.dual_coef_)
    mapped = mercer.SVC(cache_size=1).fit(np.load(tmp_path / "X.npy", mmap_mode="r"), labels)
    assert np.array_equal(mapped.dual_coef_, reference.dual_coef_)


def test_an_exact_kernel_machine_that_does_not_fit(path):
    """Machines whose loss is not solved block by block: the error has the numbers and the next step."""
    message = r"NuSVC compares all pairs .* needs 0\.275 MB, but memory is 0\.2 MB\. .* or use landmarks=.auto. where"
    with pytest.raises(InvalidInputError, match=message):
        mercer.NuSVC().fit(open_rows(path, target=THREE, memory=0.2))


MEASURED = """
import sys, threading, time
import numpy as np, mercer

def anonymous():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024

path, memory = sys.argv[1], float(sys.argv[2])
small = np.random.default_rng(0).standard_normal((3000, 200))
mercer.LinearSVC().fit(mercer.open_rows(small, target=small[:, 0] > 0, memory=1))  # compiles
y = np.arange(200_000) % 3 > 0
before, peak, done = anonymous(), [0.0], []

def watch():
    while not done:
        peak[0] = max(peak[0], anonymous())
        time.sleep(0.002)

thread = threading.Thread(target=watch)
thread.start()
rows = mercer.open_rows(path if path.endswith(".npy") else __import__("h5py").File(path)["X"], memory=memory)
model = mercer.LinearSVC(tol=0.01).fit(rows, y)
model.predict(rows)
done.append(True)
thread.join()
print(peak[0] - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("kind", ["npy", "h5"])
def test_the_memory_of_a_fit_is_the_budget(kind, tmp_path):
    """320 MB of rows with a budget of 50 MB: the budget, two blocks of 3 MB and some 20 vectors of 1.6 MB each."""
    path = tmp_path / f"X.{kind}"
    n, d = 200_000, 200
    if kind == "npy":
        data = np.lib.format.open_memmap(path, "w+", np.float64, (n, d))
    else:
        file = pytest.importorskip("h5py").File(path, "w")
        data = file.create_dataset("X", (n, d), dtype=np.float64, chunks=(1000, d))
    rng = np.random.default_rng(0)
    for start in range(0, n, 10_000):
        data[start : start + 10_000] = rng.standard_normal((10_000, d))
    data.flush()
    if kind == "h5":
        file.close()
    del data
    found = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path), "50"], capture_output=True, text=True, check=True
    )
    assert float(found.stdout) < 50 + 2 * 50 / 16 + 20 * 1.6 + 10


# ---- limits ----------------------------------------------------------------------------------------------------------


def test_limits_leave_a_certified_model(path):
    """A time limit of 0 s, or one step: the model has a certificate and a warning says how good it is."""
    rows = open_rows(path, target=F > 0, memory=0.1)
    for parameters in ({"time_limit": 0.0}, {"max_iter": 1, "loss": "hinge"}):
        with pytest.warns(ConvergenceWarning, match="The model is"):
            model = LinearSVC(tol=1e-12, **parameters).fit(rows)
        assert np.isfinite(model.certificate_.gap) and model.predict(rows).shape == (N,)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": "l1"}, r"LinearSVC\(penalty='l1'\) needs all rows in memory or in an np.memmap, but .*X\.npy"),
        ({"C": np.inf}, r"LinearSVC\(C=inf\) needs all rows in memory"),
        ({"multi_class": "crammer_singer"}, "multi_class='crammer_singer'"),
        ({"solver": "newton"}, "solver='newton'"),
    ],
)
def test_parameters_that_need_all_rows(parameters, message, path):
    """They are named, with what is possible instead."""
    with pytest.raises(InvalidInputError, match=message):
        LinearSVC(**parameters).fit(open_rows(path, target=F > 0))


def test_targets_are_needed_once(path):
    """In the source or in fit; one class is not enough, and numbers are no classes."""
    with pytest.raises(
        InvalidInputError, match=r"requires y to be passed, but the target y is None and .* has no target"
    ):
        LinearSVC().fit(open_rows(path))
    with pytest.raises(InvalidInputError, match=r"y was given to fit, but .* has its own"):
        LinearSVC().fit(open_rows(path, target=F > 0), F > 0)
    with pytest.raises(InvalidInputError, match=r"sample_weight was given to fit, but .* has its own"):
        LinearSVC().fit(open_rows(path, target=F > 0, weight=WEIGHT), None, WEIGHT)
    with pytest.raises(InvalidInputError, match=r"y has 5 values, but .* has 6,000 rows"):
        LinearSVC().fit(open_rows(path), F[:5] > 0)
    with pytest.raises(InvalidInputError, match="the data contains only one class"):
        LinearSVC().fit(open_rows(path, target=np.ones(N, dtype=int)))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        LinearSVC().fit(open_rows(path, target=F))
    with pytest.raises(InvalidInputError, match="all samples have zero or negative weights"):
        LinearSVR().fit(open_rows(path, target=F, weight=np.zeros(N)))


def test_a_missing_number_is_named(path):
    """By file, row and column, before any solver runs."""
    wrong = X.copy()
    wrong[4321, 2] = np.nan
    np.save(path, wrong)
    with pytest.raises(InvalidInputError, match=r"X\.npy, row 4321, column 2: found a missing value \(NaN\)"):
        LinearSVC().fit(open_rows(path, target=F > 0, memory=0.1))


def test_columns_of_predictions_are_those_of_the_fit(path):
    """Their number is checked."""
    model = LinearSVC().fit(open_rows(path, target=F > 0))
    with pytest.raises(InvalidInputError, match="has 2 features, but LinearSVC is expecting 6 features"):
        model.predict(open_rows(path, columns=[0, 1]))


# ---- checkpoints -----------------------------------------------------------------------------------------------------


KILLED = """
import sys, time
import numpy as np
from mercer import LinearSVC, open_rows

class Slow:
    '''An array that takes its time.'''
    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype
    def __getitem__(self, rows):
        time.sleep(0.002)
        return self.X[rows]

X, y = np.load(sys.argv[1]), np.load(sys.argv[2])
LinearSVC(loss=sys.argv[4], tol=1e-7, checkpoint=sys.argv[3]).fit(open_rows(Slow(X), target=y, memory=0.1))
"""


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_killed_fit_is_continued(loss, path, tmp_path):
    """SIGKILL while it runs; the next fit starts from the file and ends at the same optimum."""
    file = tmp_path / "state.npz"
    np.save(tmp_path / "y.npy", THREE)
    command = [sys.executable, "-c", KILLED, path, str(tmp_path / "y.npy"), str(file), loss]
    process = subprocess.Popen(command, env=os.environ | {"PYTHONFAULTHANDLER": ""})
    try:
        while not file.exists():
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    model = LinearSVC(loss=loss, tol=1e-7, checkpoint=file).fit(open_rows(path, target=THREE, memory=0.1))
    assert_same_optimum(model, LinearSVC(loss=loss, tol=1e-7).fit(X, THREE))


def test_a_finished_checkpoint_saves_the_work(path, tmp_path):
    """The second fit starts at the optimum."""
    rows = open_rows(path, target=F > 0, memory=0.1)
    first = LinearSVC(tol=1e-7, checkpoint=tmp_path / "state").fit(rows)
    second = LinearSVC(tol=1e-7, checkpoint=tmp_path / "state").fit(rows)
    assert second.n_iter_ < first.n_iter_ and sorted(os.listdir(tmp_path)) == ["X.npy", "state"]
    assert_same_optimum(second, first)


def test_a_checkpoint_belongs_to_data_and_parameters(path, tmp_path):
    """Others are an error that says what differs; tol and limits may change."""
    file = tmp_path / "state"
    rows = open_rows(path, target=F > 0)
    LinearSVC(checkpoint=file).fit(rows)
    LinearSVC(checkpoint=file, tol=1e-6, time_limit=100).fit(rows)
    with pytest.raises(InvalidInputError, match=r"belongs to another fit \(different: C was 1\.0\)"):
        LinearSVC(C=2.0, checkpoint=file).fit(rows)
    with pytest.raises(InvalidInputError, match=r"belongs to another fit \(different: data\)"):
        LinearSVC(checkpoint=file).fit(open_rows(path, target=F < 0))
    with pytest.raises(InvalidInputError, match=r"belongs to another fit"):
        LinearSVC(checkpoint=file).fit(open_rows(path), F > 0)


@pytest.mark.parametrize("damage", ["cut", "text", "empty"])
def test_a_damaged_checkpoint_is_an_error(damage, path, tmp_path):
    """It is named, with what to do; it is not overwritten."""
    file = tmp_path / "state"
    rows = open_rows(path, target=F > 0)
    LinearSVC(checkpoint=file).fit(rows)
    before = file.read_bytes()
    file.write_bytes({"cut": before[: len(before) // 2], "text": b"something else", "empty": b""}[damage])
    with pytest.raises(InvalidInputError, match=r"state is not a checkpoint, or is damaged: .*Remove it to begin anew"):
        LinearSVC(checkpoint=file).fit(rows)


def test_a_checkpoint_is_a_file(path, tmp_path):
    """Nobody is told to remove a folder."""
    with pytest.raises(InvalidInputError, match=r"is a folder: give the path of a file in it\.$"):
        LinearSVC(checkpoint=tmp_path).fit(open_rows(path, target=F > 0))


def test_a_table_with_other_columns(tmp_path):
    """The error of a prediction names the missing column, or says how to open a table with more columns."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"a": RNG.normal(size=90), "b": RNG.normal(size=90), "c": RNG.normal(size=90)})
    file = tmp_path / "t.parquet"
    pq.write_table(table, file)
    model = LinearSVR().fit(open_rows(file, target="c"))
    with pytest.raises(InvalidInputError, match=r"expecting 2 features as input\. It lacks the column 'a'\.$"):
        model.predict(open_rows(file, columns=["b"]))
    with pytest.raises(
        InvalidInputError, match=r"Open the table with columns=\[\.\.\.\] in the order of feature_names_in_"
    ):
        model.predict(open_rows(file))
    assert_allclose(model.predict(open_rows(file, columns=["a", "b"])), model.predict(open_rows(file, target="c")))


def test_a_checkpoint_needs_rows_on_disk_and_a_folder(path, tmp_path):
    """Rows in memory are fitted in seconds."""
    with pytest.raises(InvalidInputError, match="is for rows on disk, but X is of type ndarray"):
        LinearSVC(checkpoint="state").fit(X, F > 0)
    with pytest.raises(InvalidInputError, match="there is no folder"):
        LinearSVC(checkpoint=tmp_path / "none" / "state").fit(open_rows(path, target=F > 0))
