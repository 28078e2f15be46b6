"""Rows of Parquet tables: numbers as they are, and columns prepared as `mercer fit` prepares them."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from tests.naming import named

import mercer
from mercer.exceptions import InvalidInputError
from mercer.io.blocks import running_statistics
from mercer.io.blocks.running_statistics import DistinctCount, MedianSearch
from mercer.io.tables import read_samples
from mercer.workflow.preparation import pipeline_for

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
dataset = pytest.importorskip("pyarrow.dataset")


def numbers(n=1000):
    """A table of numbers of several types, with string labels and weights."""
    rng = np.random.default_rng(0)
    return pandas.DataFrame({
        "a": rng.standard_normal(n), "b": rng.integers(-5, 5, n), "c": rng.random(n).astype(np.float32),
        "flag": rng.random(n) < 0.5, "w": rng.random(n), "y": rng.choice(["no", "yes"], n),
    })  # fmt: skip


def mixed(n, seed=0):
    """A table with all kinds of columns, and missing cells."""
    rng = np.random.default_rng(seed)
    words = ["good", "bad", "slow", "quick", "tall", "small", "red", "blue", "one", "two"]
    table = pandas.DataFrame({
        "id": np.arange(n), "a": rng.standard_normal(n), "b": rng.integers(0, 50, n).astype(float),
        "c": rng.choice(["x", "y", "zz"], n), "flag": rng.random(n) < 0.3,
        "when": pandas.date_range("2020-01-01", periods=n, freq="h"), "const": 1.0,
        "money": [f"${v:,.2f}" for v in 9999 * rng.random(n)],
        "note": [" ".join(rng.choice(words, 8)) for _ in range(n)], "name": [f"n{i}" for i in range(n)],
        "y": rng.choice(["no", "yes"], n),
    })  # fmt: skip
    for name in ("a", "b", "c"):
        table.loc[rng.random(n) < 0.1, name] = None
    return table


def stacked(rows):
    parts = [block.X for block in rows.blocks()]
    return sp.vstack(parts).toarray() if sp.issparse(parts[0]) else np.vstack(parts)


@pytest.mark.parametrize("kind", ["file", "folder", "dataset", "table"])
def test_blocks_are_the_table(kind, tmp_path):
    """Blocks hold the rows of the table for any row groups, however the table is given."""
    frame = numbers()
    if kind == "folder":
        for k in range(3):
            frame[k * 400 : (k + 1) * 400].to_parquet(tmp_path / f"{k}.parquet", row_group_size=150, index=False)
        (tmp_path / "log.txt").write_text("no table")
        given = tmp_path
    else:
        frame.to_parquet(tmp_path / "t.parquet", row_group_size=170)
        given = str(tmp_path / "t.parquet")
        given = dataset.dataset(given) if kind == "dataset" else given
        given = pyarrow.Table.from_pandas(frame) if kind == "table" else given
    rows = mercer.open_rows(given, target="y", weight="w", memory=0.1)
    assert rows.shape == (1000, 4) and rows.columns == ("a", "b", "c", "flag")
    for size in (None, 64, 333, 5000):
        blocks = list(rows.blocks(size))
        assert np.array_equal(np.vstack([b.X for b in blocks]), frame[["a", "b", "c", "flag"]].to_numpy(np.float64))
        assert np.array_equal(np.concatenate([b.y for b in blocks]), frame["y"].to_numpy(str))
        assert np.array_equal(np.concatenate([b.weight for b in blocks]), frame["w"])
    assert np.array_equal(rows.block(165, 175).X, stacked(rows)[165:175])
    assert np.array_equal(pickle.loads(pickle.dumps(rows)).block(0, 1000).X, stacked(rows))


def test_columns_by_name(tmp_path):
    """In the given order; float32 columns stay float32; the rest of the file is not read."""
    frame = numbers()
    frame.to_parquet(tmp_path / "t.parquet")
    rows = mercer.open_rows(tmp_path / "t.parquet", columns=["c"])
    assert rows.block(0, 10).X.dtype == np.float32 and rows.columns == ("c",)
    both = mercer.open_rows(tmp_path / "t.parquet", columns=["c", "a"]).block(0, 10).X
    assert np.array_equal(both, frame.loc[:9, ["c", "a"]].to_numpy(np.float64))


def test_folders_of_partitions(tmp_path):
    """The keys of hive partitions are columns."""
    parquet.write_to_dataset(pyarrow.Table.from_pandas(numbers()), tmp_path / "parts", partition_cols=["b"])
    rows = mercer.open_rows(tmp_path / "parts", target="y", columns=["a", "b"])
    assert rows.n == 1000 and sorted(set(stacked(rows)[:, 1])) == list(range(-5, 5))


@pytest.mark.parametrize("n", [300, 30_000])
def test_preparation_is_that_of_mercer_fit(n, tmp_path):
    """The same columns with the same descriptions, and the same numbers up to rounding, from many small blocks.

    30,000 rows are more than those from which the notation of cells is found.
    """
    path = tmp_path / "t.parquet"
    mixed(n).to_parquet(path, row_group_size=4000)
    rows = mercer.open_rows(path, target="y", prepare=True, memory=5)
    samples = read_samples(path, target="y")
    Z = pipeline_for(samples, "classification", "linear")[:-1].fit_transform(samples.X, samples.y)
    assert rows.table_columns == samples.columns and rows.target_column == samples.target_column
    assert_allclose(stacked(rows), Z.toarray() if sp.issparse(Z) else Z, atol=1e-10)
    assert sp.issparse(rows.block(0, 5).X) == sp.issparse(Z)
    assert np.array_equal(rows.y, samples.y)
    assert_allclose(rows.preparation.transform(mixed(n)[:50]), stacked(rows)[:50], atol=1e-12)


def test_sparse_preparation(tmp_path):
    """Many categories become a CSR matrix, as in `mercer fit`."""
    rng = np.random.default_rng(1)
    frame = pandas.DataFrame({"c": rng.choice([f"k{i}" for i in range(40)], 3000), "y": rng.standard_normal(3000)})
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=500)
    rows = mercer.open_rows(tmp_path / "t.parquet", target="y", prepare=True, memory=0.5)
    samples = read_samples(tmp_path / "t.parquet", target="y")
    Z = pipeline_for(samples, "regression", "linear")[:-1].fit_transform(samples.X, samples.y)
    assert sp.issparse(Z) and sp.issparse(rows.block(0, 5).X)
    assert np.array_equal(stacked(rows), Z.toarray())


@pytest.mark.parametrize("order", ["random", "sorted", "ties", "far away"])
@pytest.mark.parametrize("n", [1, 2, 999, 20_000])
def test_medians_are_exact(order, n):
    """Even if the sample says nothing about the rest, in a few passes and with little memory."""
    rng = np.random.default_rng(n)
    values = np.concatenate([rng.standard_normal(n // 2), 1e6 * rng.standard_normal(n - n // 2)])
    if order == "sorted":
        values.sort()
    elif order == "ties":
        values = np.round(values[: n // 2 + 1].repeat(2)[:n])
    elif order == "far away":
        values[: n // 10] = -1e300
    search, passes = MedianSearch(values[: max(1, n // 10)], room=100), 0
    while search.median is None:
        for start in range(0, n, 777):
            search.update(values[start : start + 777])
        search.end_pass()
        passes += 1
    assert search.median == np.median(values) and passes <= 9


def test_distinct_values_are_counted(tmp_path):
    """Exactly as long as they are few; later to a percent, and a value in two rows is not overlooked."""
    few, many, twice = DistinctCount(), DistinctCount(), DistinctCount()
    keys = np.arange(300_000, dtype=np.uint64)
    few.update(keys[:1000].repeat(2))
    for start in range(0, len(keys), 50_000):
        many.update(keys[start : start + 50_000])
        twice.update(keys[start : start + 50_000] // np.uint64(2))
    assert few.exact and few.count(2000) == 1000
    assert many.count(300_000) == 300_000
    assert not twice.exact and abs(twice.count(300_000) - 150_000) < 3 * 150_000 / np.sqrt(running_statistics.KEPT)


def test_rows_without_a_target(tmp_path):
    """A missing target is an error that names its row."""
    frame = numbers()
    frame.loc[523, "y"] = None
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=200)
    for prepare in (False, True):
        with pytest.raises(InvalidInputError, match=r"t\.parquet, row 524, column 'y': the target is missing"):
            list(mercer.open_rows(tmp_path / "t.parquet", target="y", prepare=prepare).blocks())


def test_a_missing_cell_is_named(tmp_path):
    """By file, row of the file and column; prepare=True fills it in."""
    frame = numbers()
    frame.loc[523, "a"] = np.nan
    frame[:500].to_parquet(tmp_path / "0.parquet")
    frame[500:].to_parquet(tmp_path / "1.parquet")
    with pytest.raises(
        InvalidInputError, match=r"1\.parquet, row 24, column 'a': found a missing value .* prepare=True"
    ):
        list(mercer.open_rows(tmp_path, target="y").blocks())
    assert np.isfinite(stacked(mercer.open_rows(tmp_path, target="y", prepare=True))).all()


def test_wide_row_groups_are_decoded_some_columns_at_a_time(tmp_path):
    """More columns than are decoded together, in any ranges of rows, with a target between them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 45))
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(45)])
    frame.insert(20, "y", np.arange(1000) % 3)
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=300)
    rows = mercer.open_rows(tmp_path / "t.parquet", target="y")
    for start, stop in ((0, 1000), (10, 20), (290, 610), (599, 600), (900, 1000)):
        block = rows.block(start, stop)
        assert np.array_equal(block.X, X[start:stop]) and np.array_equal(block.y, frame["y"][start:stop])
    assert np.array_equal(np.concatenate([block.X for block in rows.blocks(70)]), X)


MEASURED = """
import sys, threading, time
import numpy as np, mercer

def anonymous():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024

small = mercer.open_rows(sys.argv[1], memory=20)
small.block(0, 10)  # imports, and the description of the file
del small
before, peak, done = anonymous(), [0.0], []

def watch():
    while not done:
        peak[0] = max(peak[0], anonymous())
        time.sleep(0.002)

thread = threading.Thread(target=watch)
thread.start()
for _ in range(2):
    for block in mercer.open_rows(sys.argv[1], memory=20).blocks():
        pass
done.append(True)
thread.join()
print(peak[0] - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_the_memory_of_a_pass_is_about_a_row_group(tmp_path):
    """160 MB of rows in row groups of 8 MB: a pass takes less than three of them."""
    rng, path, writer = np.random.default_rng(0), tmp_path / "t.parquet", None
    for _ in range(20):
        X = rng.standard_normal((2500, 400))
        table = pyarrow.table({f"c{j}": X[:, j] for j in range(400)})
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()
    done = subprocess.run([sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 3 * 8


def test_a_cell_that_does_not_fit_is_named(tmp_path):
    """A column of numbers in the first rows has a word later on."""
    frame = pandas.DataFrame({"a": [str(i % 977 + 0.5) for i in range(30_000)], "y": np.arange(30_000) % 2})
    frame.loc[25_000, "a"] = "many"
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=30_000)
    with pytest.raises(InvalidInputError, match=r"t\.parquet, row 25001, column 'a': 'many' is not a number"):
        mercer.open_rows(tmp_path / "t.parquet", target="y", prepare=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "z"}, "names the column 'z', which .* does not have. Its columns: a, b, c, flag, w, y"),
        ({"target": 3}, "target is of type int: give the name of a column"),
        ({"columns": ["a", "z"]}, "columns names the column 'z'"),
        ({"columns": []}, "name at least one column"),
        ({"target": "a"}, "column 'y': the type is .*string, which is not a number. Leave the column out"),
        ({"target": "a", "weight": "y", "columns": ["b"]}, "column 'y': a weight must be a number, not .*string"),
    ],
    ids=named,
)
def test_what_cannot_be_used(options, message, tmp_path):
    """Columns that are missing, or that are not numbers, are named."""
    numbers().to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match=message):
        list(mercer.open_rows(tmp_path / "t.parquet", **options).blocks())


def test_a_table_without_features(tmp_path):
    """A table that has a target only is named, with what to do."""
    numbers()[["y"]].to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError) as found:
        mercer.open_rows(tmp_path / "t.parquet", target="y")
    assert str(found.value).endswith(
        "t.parquet has no column besides the target and the weight: add a column to learn from, or name another target."
    )


def test_files_that_are_no_tables(tmp_path):
    """Empty tables, empty folders and damaged files are named; so are files that change."""
    numbers(0).to_parquet(tmp_path / "empty.parquet")
    (tmp_path / "folder").mkdir()
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 but not really")
    for name, message in (
        ("empty.parquet", "has no rows"), ("folder", "has no Parquet files"), ("damaged.parquet", "cannot be read as"),
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match=message):
            mercer.open_rows(tmp_path / name)
    numbers().to_parquet(tmp_path / "t.parquet")
    rows = mercer.open_rows(tmp_path / "t.parquet", columns=["a"])
    numbers(900).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match="has changed since it was opened"):
        rows.block(0, 10)
    with pytest.raises(InvalidInputError, match="has a filter"):
        mercer.open_rows(dataset.dataset(tmp_path / "t.parquet").filter(dataset.field("a") > 0))
