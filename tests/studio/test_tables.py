"""Tables of the user: rows on the plane, fits as `mercer fit`, and malicious files."""

import base64
import gzip
import io
import json
import time

import numpy as np
import pytest
from sklearn.datasets import load_iris

import mercer
from mercer.studio import table_files
from mercer.studio.answers import answer, guarded
from mercer.studio.state import StateError, parse_state

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


def opened(name, data):
    """Open the bytes of a file."""
    return answer("table_open", {"name": name, "base64": base64.b64encode(data).decode()})


def iris():
    """The iris table, with a column of sequences and some missing cells."""
    frame = load_iris(as_frame=True).frame
    frame.columns = ["sepal length", "sepal width", "petal length", "petal width", "species"]
    frame["species"] = load_iris().target_names[frame["species"]]
    frame["sequence"] = ["ACGT"[i % 4] * (3 + i % 5) + "GATTACA"[: 1 + i // 50 * 3] + f"{i:b}" for i in range(150)]
    frame.loc[3, "sepal width"] = np.nan
    return frame


@pytest.fixture(scope="module")
def table():
    return opened("iris.csv", iris().to_csv(index=False).encode())


def test_columns_and_target_are_found(table):
    """The table names its columns with their kinds, and guesses the target by its name."""
    kinds = {column["name"]: column["kind"] for column in table["columns"]}
    assert table["rows"] == 150 and table["target"] == "species" and table["name"] == "iris.csv"
    assert kinds["petal width"] == "number" and kinds["species"] == "category" and kinds["sequence"] == "text"


def test_parquet_is_the_same_table(table):
    """The same frame as Parquet has the same columns."""
    stream = io.BytesIO()
    iris().to_parquet(stream)
    other = opened("iris.parquet", stream.getvalue())
    assert [one["name"] for one in other["columns"]] == [one["name"] for one in table["columns"]]


def test_two_columns_are_a_plane(table):
    """The points are standardised, labelled by class, and a valid state."""
    asked = {"table": table["table"], "target": "species", "x": "petal length", "y": "sepal width"}
    found = answer("table_plane", asked)
    points = np.array(found["points"])
    assert found["mode"] == "classify" and found["classes"] == ["setosa", "versicolor", "virginica"]
    assert np.allclose(points[:, :2].mean(axis=0), 0, atol=1e-4) and np.allclose(
        points[:, :2].std(axis=0), 1, atol=1e-3
    )
    assert answer("fit", {"state": {"points": found["points"]}, "grid": [5, 5]})["status"] == "optimal"


def test_a_number_is_regressed(table):
    """A target that is a number gives points (x, target)."""
    found = answer("table_plane", {"table": table["table"], "target": "petal width", "x": "petal length"})
    assert found["mode"] == "regress" and {point[2] for point in found["points"]} == {0}
    assert np.corrcoef(np.array(found["points"])[:, :2].T)[0, 1] == pytest.approx(0.963, abs=0.001)


def test_components_and_strings_are_planes(table):
    """Two kernel principal components of all columns, or of strings, are valid points."""
    asked = {"table": table["table"], "target": "species"}
    for found in (
        answer("table_plane", {**asked, "components": True, "kernel": "gaussian(gamma=0.1)"}),
        answer("table_strings", {**asked, "column": "sequence", "kernel": "spectrum(3)"}),
    ):
        state = parse_state({"points": found["points"]})
        assert state.n == found["shown"] == 150 and state.classes == [0, 1, 2]
        assert np.allclose(state.X.std(axis=0), 1, atol=1e-3)


def test_many_rows_are_drawn_at_random():
    """Of more than 2,000 rows some are drawn, always the same, and it is said."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"a": rng.normal(size=5000), "b": rng.normal(size=5000), "y": rng.integers(0, 15, 5000)})
    frame["y"] = [f"class {k}" for k in frame["y"]]
    table = opened("rows.csv", frame.to_csv(index=False).encode())
    first, second = (answer("table_plane", {"table": table["table"], "x": "a", "y": "b"}) for _ in range(2))
    assert first["points"] == second["points"] and first["rows"] == 5000 and len(first["points"]) <= 2000
    assert first["notes"][0] == "2,000 of 5,000 rows, drawn at random." and len(first["classes"]) == 10


@pytest.mark.slow
def test_a_table_is_fitted_as_mercer_fit(table):
    """The job ends with a report, a summary and a model file that predicts rows of the table."""
    job = answer("table_fit", {"table": table["table"], "target": "species"})["job"]
    deadline = time.monotonic() + 300
    while (found := answer("job", {"job": job}))["state"] == "running" and time.monotonic() < deadline:
        time.sleep(0.2)
    assert found["state"] == "done" and found["progress"] == 1.0 and "certificate" in found["text"]
    assert found["report"].lower().startswith("<!doctype html>") and found["name"] == "iris.mercer"
    model = mercer.load(io.BytesIO(base64.b64decode(found["model"])))
    assert (model.predict(iris().drop(columns="species")) == iris()["species"]).mean() > 0.9


@pytest.mark.slow
def test_a_job_can_be_stopped_and_a_bad_one_fails_in_words(table):
    """Stopping twice ends a fit by force; a target that is not there fails with a sentence that names the file."""
    asked = {"table": table["table"]}
    job = answer("table_fit", {**asked, "target": "species"})["job"]
    answer("job_stop", {"job": job})
    answer("job_stop", {"job": job})
    bad = answer("table_fit", {**asked, "target": "colour"})["job"]
    deadline = time.monotonic() + 120
    states = {}
    while time.monotonic() < deadline and len(states) < 2:
        for one in (job, bad):
            found = answer("job", {"job": one})
            if found["state"] != "running":
                states[one] = found
        time.sleep(0.2)
    assert states[job]["state"] == "stopped"
    assert states[bad]["state"] == "failed" and "colour" in states[bad]["line"] and "/tmp" not in states[bad]["line"]


def _bomb():
    """A Parquet file of some kB that repeats a long text a million times."""
    import pyarrow
    import pyarrow.parquet as parquet

    text = pyarrow.DictionaryArray.from_arrays(np.zeros(500_000, np.int32), ["x" * 100_000])
    stream = io.BytesIO()
    parquet.write_table(pyarrow.table({"a": text.cast(pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))}), stream)
    return stream.getvalue()


def _long_column():
    """A Parquet file of some kB with more rows than the page takes."""
    import pyarrow
    import pyarrow.parquet as parquet

    stream = io.BytesIO()
    parquet.write_table(pyarrow.table({"a": np.zeros(table_files.MOST_ROWS + 1, np.int8)}), stream)
    return stream.getvalue()


def _nested():
    """A Parquet file whose cells are lists."""
    import pyarrow
    import pyarrow.parquet as parquet

    stream = io.BytesIO()
    parquet.write_table(pyarrow.table({"a": [[1, 2], [3]], "b": [1, 2]}), stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("many.csv", lambda: (",".join(f"c{i}" for i in range(1_000_000)) + "\n1").encode(), "1,000,000 columns"),
        ("keys.jsonl", lambda: "\n".join(json.dumps({f"k{i}": 1}) for i in range(50_000)).encode(), "columns"),
        ("bomb.parquet", _bomb, "MB of text"),
        ("rows.parquet", _long_column, "rows"),
        ("lists.parquet", _nested, "holds neither numbers, dates nor text"),
        ("no.parquet", lambda: b"PAR1 this is none", "is not a Parquet file"),
        ("half.parquet", lambda: b"PAR1" + b"\x00" * 100 + b"PAR1", "is not a Parquet file"),
        ("zip.csv", lambda: gzip.compress(b"0" * 50_000_000), "is compressed"),
        ("book.csv", lambda: b"PK\x03\x04rest", "zip archive"),
        ("empty.csv", lambda: b"", "is empty"),
        ("names.csv", lambda: b"a,b\n", "no rows"),
        ("bytes.csv", lambda: b"a,b\n\x00\x00,1\n", "zero byte"),
        ("quote.csv", lambda: b'a,b\n"1,2\n', "line 2"),
        ("deep.jsonl", lambda: b'{"a":' * 20_000, "line 1"),
        ("model.exe", lambda: b"MZ", "is not a table"),
        ("../../etc/passwd", lambda: b"root", "is not a table"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_files_that_mean_harm_get_a_sentence(name, data, words):
    """A file that is no table, or a huge one, is refused in one sentence that names it, without its place on disk."""
    status, found = guarded("table_open", {"name": name, "base64": base64.b64encode(data()).decode()})
    assert status == 422 and words in found["error"]["what"] and "mercer-studio-" not in found["error"]["what"]


@pytest.mark.parametrize(
    ("name", "payload", "where"),
    [
        ("table_open", {}, "table"),
        ("table_open", {"name": "a.csv", "base64": "%%%"}, "base64"),
        ("table_plane", {"table": "x"}, "table"),
        ("table_plane", {"table": ["x"]}, "table"),
        ("table_fit", {"table": "x"}, "table"),
        ("job", {"job": "x"}, "job"),
        ("job_stop", {"job": None}, "job"),
    ],
)
def test_questions_about_tables_that_are_not_open(name, payload, where):
    """Unknown ids are told."""
    with pytest.raises(StateError) as error:
        answer(name, payload)
    assert error.value.where == where


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"x": "colour", "y": "petal width"}, "x"),
        ({"x": "sequence", "y": "petal width"}, "x"),
        ({"target": "colour", "x": "petal width", "y": "petal length"}, "table"),
        ({"components": True, "kernel": "spectrum(3)"}, "kernel"),
        ({"components": True, "kernel": "nothing("}, "kernel"),
    ],
)
def test_planes_that_cannot_be_drawn_say_why(table, more, where):
    """A column or kernel that does not fit is named."""
    with pytest.raises(StateError) as error:
        answer("table_plane", {"table": table["table"], **more})
    assert error.value.where == where and "mercer-studio-" not in str(error.value)
