"""Rows of arrays on disk: memory maps, .npy files, HDF5 and Zarr."""

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from tests.naming import named

import mercer
from mercer.exceptions import InvalidInputError
from mercer.sources.row_source import loaders

RNG = np.random.default_rng(0)
X = RNG.standard_normal((1000, 5))
Y = (X[:, 0] > 0).astype(np.int64)
WEIGHT = RNG.random(1000)


def opened(kind, tmp_path, dtype=np.float64):
    """X as one kind of array on disk."""
    path = str(tmp_path / "X.npy")
    np.save(path, X.astype(dtype))
    if kind == "path":
        return path
    if kind == "memmap":
        return np.load(path, mmap_mode="r")
    if kind == "view":
        return np.load(path, mmap_mode="r")[:]
    if kind == "h5py":
        h5py = pytest.importorskip("h5py")
        file = h5py.File(tmp_path / "X.h5", "w")
        return file.create_dataset("X", data=X.astype(dtype), chunks=(128, 5))
    zarr = pytest.importorskip("zarr")
    found = zarr.create_array(str(tmp_path / "X.zarr"), shape=X.shape, dtype=dtype, chunks=(128, 5))
    found[:] = X
    return found


KINDS = ["path", "memmap", "view", "h5py", "zarr"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_are_the_array(kind, dtype, tmp_path):
    """Blocks of any size put together are the array; other numbers than float32 are float64."""
    rows = mercer.open_rows(opened(kind, tmp_path, dtype), target=Y, weight=WEIGHT)
    assert rows.shape == X.shape and len(rows) == 1000 and rows.columns is None
    for size in (None, 1, 300, 10_000):
        blocks = list(rows.blocks(size)) if size != 1 else [rows.block(3, 4)]
        found = np.concatenate([block.X for block in blocks])
        assert found.dtype == (np.float32 if dtype == np.float32 else np.float64)
        whole = slice(3, 4) if size == 1 else slice(None)
        assert np.array_equal(found, X.astype(dtype)[whole])
        assert np.array_equal(np.concatenate([block.y for block in blocks]), Y[whole])
        assert np.array_equal(np.concatenate([block.weight for block in blocks]), WEIGHT[whole])


@pytest.mark.parametrize("kind", ["h5py", "zarr"])
def test_blocks_are_whole_chunks(kind, tmp_path):
    """No chunk is decompressed twice in a pass, unless it is larger than a block."""
    rows = mercer.open_rows(opened(kind, tmp_path))
    assert rows.cuts(300) == [(0, 256), (256, 512), (512, 768), (768, 1000)]
    assert rows.cuts(100)[:2] == [(0, 100), (100, 200)]


def test_a_block_of_a_memory_map_is_not_copied(tmp_path):
    """The operating system reads its pages when they are needed, and drops them when memory is short."""
    found = mercer.open_rows(opened("memmap", tmp_path)).block(100, 200).X
    assert not found.flags.owndata


def test_target_and_weight_may_be_columns(tmp_path):
    """They are not features then; columns are counted as in the array."""
    rows = mercer.open_rows(opened("path", tmp_path), target=-1, weight=np.ones(1000), columns=[3, 0])
    block = rows.block(10, 20)
    assert np.array_equal(block.X, X[10:20, [3, 0]]) and np.array_equal(block.y, X[10:20, 4])
    rows = mercer.open_rows(opened("path", tmp_path), target=1)
    assert np.array_equal(rows.block(0, 5).X, X[:5, [0, 2, 3, 4]])
    assert np.array_equal(np.concatenate([y for _, _, y, _ in rows.targets()]), X[:, 1])


@pytest.mark.parametrize("kind", ["path", "memmap"])
def test_a_source_travels_by_its_path(kind, tmp_path):
    """A pickled source holds no rows, and reads the same ones."""
    rows = mercer.open_rows(opened(kind, tmp_path))
    sent = pickle.dumps(rows)
    assert len(sent) < 3000
    assert np.array_equal(pickle.loads(sent).block(0, 1000).X, X)


def codes(y, weight, start, stop):
    return np.where(y, 1.0, -1.0), np.ones(stop - start) if weight is None else weight


def test_loaders_load_all_rows_once(tmp_path):
    """Each call of a loader returns its rows, coded targets and weights."""
    parts = loaders(mercer.open_rows(opened("path", tmp_path), target=Y), codes, 300)
    assert [part.n for part in parts] == [300, 300, 300, 100]
    for _ in range(2):
        blocks = [pickle.loads(pickle.dumps(part))() for part in parts]
        assert np.array_equal(np.concatenate([one[0] for one in blocks]), X)
        assert np.array_equal(np.concatenate([one[1] for one in blocks]), 2.0 * Y - 1)
        assert all((one[2] == 1).all() for one in blocks)


def test_the_budget_sets_the_size_of_blocks(tmp_path):
    """A block takes a sixteenth of the memory, but has at least 256 rows."""
    path = opened("path", tmp_path)
    assert mercer.open_rows(path, memory=1).block_rows == 2**20 // 16 // 40
    assert mercer.open_rows(path, memory=0.001).block_rows == 256


def test_a_fingerprint_is_of_the_data(tmp_path):
    """The same numbers have the same one wherever they are; others do not."""
    first = mercer.open_rows(opened("path", tmp_path), target=Y).fingerprint()
    assert first == mercer.open_rows(X, target=Y).fingerprint()
    assert first != mercer.open_rows(X, target=1 - Y).fingerprint()
    assert first != mercer.open_rows(X[:999], target=Y[:999]).fingerprint()


def test_a_missing_number_is_named(tmp_path):
    """By file, row and column, counted from 0 as in numpy."""
    wrong = X.copy()
    wrong[777, 3] = np.nan
    wrong[900, 1] = np.inf
    path = str(tmp_path / "X.npy")
    np.save(path, wrong)
    rows = mercer.open_rows(path)
    with pytest.raises(InvalidInputError, match=r"X\.npy, row 777, column 3: found a missing value \(NaN\)"):
        list(rows.blocks(400))
    with pytest.raises(InvalidInputError, match=r"row 900, column 1: found an infinite number"):
        rows.block(800, 1000)


def test_a_changed_file_is_an_error(tmp_path):
    """A fit reads a file several times, and must not mix two of its states."""
    path = opened("path", tmp_path)
    rows = mercer.open_rows(path)
    rows.block(0, 10)
    np.save(path, X[:500])
    with pytest.raises(InvalidInputError, match="has changed since it was opened"):
        rows.block(0, 10)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (X[0], {}, "has the shape (5,), but rows need two axes"),
        (X[:0], {}, "is empty: its shape is (0, 5)"),
        (X.astype(str), {}, "but samples must be numbers"),
        (sp.csr_matrix(X), {}, "csr_matrix is a sparse matrix, which is in memory already"),
        (object(), {}, "X is of type object: give an array on disk"),
        (X, {"target": Y[:5]}, "target has the shape (5,), but the numpy ndarray has 1,000 rows"),
        (X, {"target": 7}, "target=7: the numpy ndarray has the columns 0 to 4"),
        (X, {"target": "y"}, "have no names. Give the number of a column"),
        (X, {"columns": [0, 0]}, "name at least one column, each once"),
        (X, {"columns": ["a"]}, "columns has 'a', but the numpy ndarray has the columns 0 to 4"),
        (X, {"columns": [1], "target": 1}, "neither the target nor the weight"),
        (X, {"memory": 0}, "memory=0 was given: use a positive number of megabytes"),
        (X, {"prepare": True}, "prepare is for tables"),
        ("nowhere.npy", {}, "nowhere.npy cannot be read as a .npy file"),
        ("nowhere.csv", {}, "nowhere.csv does not exist"),
        ("nowhere.parquet", {}, "nowhere.parquet does not exist"),
    ],
    ids=named,
)
def test_what_cannot_be_opened(given, options, message):
    """The error says what was found and what is allowed."""
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        mercer.open_rows(given, **options)


def test_a_file_of_another_kind(tmp_path):
    """The error says so, and recommends nothing that mercer cannot do."""
    (tmp_path / "text.npy").write_text("1,2,3")
    with pytest.raises(InvalidInputError, match=r"text\.npy cannot be read .*: It does not begin as \.npy files do\.$"):
        mercer.open_rows(tmp_path / "text.npy")


def test_weights_must_not_be_negative():
    """The row is named."""
    weight = np.ones(1000)
    weight[5] = -1.0
    with pytest.raises(InvalidInputError, match="row 5: the weight is -1, but weights must be finite and at least 0"):
        mercer.open_rows(X, weight=weight).block(0, 10)


def test_rows_outside_are_an_error():
    """Negative positions do not count from the end."""
    with pytest.raises(InvalidInputError, match="Rows -1 to 5 of the numpy ndarray were asked for"):
        mercer.open_rows(X).block(-1, 5)
