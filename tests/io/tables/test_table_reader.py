"""The command and Python programs read a table into bit-identical numbers."""

import csv
import io
import warnings

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.cli import main
from mercer.exceptions import InvalidInputError
from mercer.io.tables import read_samples
from mercer.workflow import train

N = 60
rng = np.random.default_rng(3)
PRICE, SIZE, X = rng.uniform(100, 9999, N).round(2), rng.normal(size=N), rng.normal(size=(N, 3))
DAYS = pd.date_range("2021-12-30", periods=N, freq="77h").floor("s")
WORDS = ["cheap and small", "large and rather old", "new with a long warranty", "broken but nice to look at"]


def table():
    """One column of each kind, with a missing cell in each."""
    frame = pd.DataFrame(
        {
            "price": [f"${value:,.2f}" for value in PRICE],
            "size": SIZE,
            "count": rng.integers(0, 9, N).astype(float),
            "colour": np.where(X[:, 0] > 0, "red", np.where(X[:, 1] > 0, "blue", "green")),
            "grade": np.where(X[:, 1] > 0.5, "1", np.where(X[:, 2] > 0, "2", "b")),
            "flag": np.where(X[:, 2] > 0, "TRUE", "false"),
            "wifi": np.where(X[:, 1] > 0, "yes", "no"),
            "when": DAYS.strftime("%Y-%m-%d %H:%M:%S"),
            "day": DAYS.strftime("%d/%m/%Y"),
            "story": [f"{WORDS[i % 4]} number {i}" for i in range(N)],
        }
    ).astype(object)
    for place, name in enumerate(frame):
        frame.loc[3 * place, name] = None
    return frame.assign(label=np.where(X[:, 0] + SIZE > 0, "yes", "no"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """data.csv and its model."""
    path = tmp_path_factory.mktemp("reader")
    table().to_csv(path / "data.csv", index=False)
    samples = read_samples(path / "data.csv")
    kinds = {column.name: column.kind for column in samples.columns}
    assert kinds == {
        "price": "number", "size": "number", "count": "number", "colour": "category", "grade": "category",
        "flag": "boolean", "wifi": "boolean", "when": "date", "day": "date", "story": "text",
    }  # fmt: skip
    outcome = train(samples, judge="none", kernel="rbf", Cs=2, gammas=2, search="grid", cv=2)
    mercer.save(outcome.model, path / "m.mercer")
    return path


def command(folder, data, capsys):
    assert main(["predict", str(folder / "m.mercer"), str(data), "--probabilities"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    return np.array([[float(row["p(no)"]), float(row["p(yes)"])] for row in rows])


def typed(frame):
    """Each column converted to its natural type."""
    return frame.assign(
        price=[None if cell is None else float(cell[1:].replace(",", "")) for cell in frame["price"]],
        colour=frame["colour"].astype("category"),
        flag=frame["flag"].map({"TRUE": True, "false": False}).astype("boolean"),
        wifi=frame["wifi"].map({"yes": True, "no": False}),
        when=pd.to_datetime(frame["when"]),
        day=pd.to_datetime(frame["day"], format="%d/%m/%Y").dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
    )


def polars_frame(frame):
    polars = pytest.importorskip("polars")
    whole = typed(frame)
    return polars.DataFrame({name: [None if pd.isna(v) else v for v in whole[name].tolist()] for name in whole})


def arrow_table(frame):
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.Table.from_pandas(typed(frame))


ROUTES = {
    "objects with None": lambda frame: frame,
    "objects with NaN": lambda frame: frame.where(frame.notna(), np.nan),
    "objects with pandas.NA": lambda frame: frame.where(frame.notna(), pd.NA),
    "empty texts": lambda frame: frame.where(frame.notna(), ""),
    "str dtype": lambda frame: frame.astype({name: "str" for name in frame if name not in ("size", "count")}),
    "string dtype": lambda frame: frame.astype({name: "string" for name in frame if name not in ("size", "count")}),
    "convert_dtypes": lambda frame: typed(frame).convert_dtypes(),
    "own types": typed,
    "datetime64[s]": lambda frame: typed(frame).astype({"when": "datetime64[s]"}),
    "dates of Python": lambda frame: frame.assign(
        when=[None if t is pd.NaT else t.to_pydatetime() for t in pd.to_datetime(frame["when"])],
        day=[None if t is pd.NaT else t.date() for t in pd.to_datetime(frame["day"], format="%d/%m/%Y")],
    ).astype({"when": object, "day": object}),
    "all categories": lambda frame: frame.astype("category"),
    "pyarrow dtypes": lambda frame: typed(frame).convert_dtypes(dtype_backend="pyarrow"),
    "columns in another order": lambda frame: frame[frame.columns[::-1]].assign(more=1),
    "another index": lambda frame: frame.set_index(np.arange(100, 100 + N)[::-1]),
    "polars": polars_frame,
    "pyarrow": arrow_table,
}


@pytest.mark.parametrize("route", ROUTES)
def test_frames(folder, route, capsys):
    """Every type of column and of missing value gives the same probabilities as the command, bit for bit."""
    expected = command(folder, folder / "data.csv", capsys)
    frame = pd.read_csv(folder / "data.csv", dtype=object, keep_default_na=False)
    frame = frame.where(frame != "", None)
    frame = frame.assign(size=[None if v is None else float(v) for v in frame["size"]])
    frame = frame.assign(count=[None if v is None else float(v) for v in frame["count"]])
    model = mercer.load(folder / "m.mercer")
    found = model.predict_proba(ROUTES[route](frame))
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("rows", [slice(None), slice(0, 1), slice(1, 4), slice(10, 11)])
def test_files(folder, rows, tmp_path, capsys):
    """A file read by pandas.read_csv, even with one row, gives the same as the command."""
    part = pd.read_csv(folder / "data.csv", dtype=object, keep_default_na=False).iloc[rows]
    part.to_csv(tmp_path / "part.csv", index=False)
    expected = command(folder, tmp_path / "part.csv", capsys)
    model = mercer.load(folder / "m.mercer")
    assert np.array_equal(model.predict_proba(pd.read_csv(tmp_path / "part.csv")), expected)
    assert np.array_equal(expected, command(folder, folder / "data.csv", capsys)[rows])
    pd.read_csv(tmp_path / "part.csv").to_parquet(tmp_path / "part.parquet")
    assert np.array_equal(command(folder, tmp_path / "part.parquet", capsys), expected)
    pd.read_csv(tmp_path / "part.csv").to_json(tmp_path / "part.jsonl", orient="records", lines=True)
    # JSON is written with 10 decimals
    np.testing.assert_allclose(command(folder, tmp_path / "part.jsonl", capsys), expected, atol=1e-7)


def test_unseen_categories_are_counted(folder, tmp_path, capsys):
    """A UserWarning in Python, a line on standard error of the command."""
    new = pd.read_csv(folder / "data.csv", dtype=object, keep_default_na=False)
    new.loc[:4, "colour"] = ["lila", "red", "LILA", "rosa", "lila"]
    new.to_csv(tmp_path / "new.csv", index=False)
    model = mercer.load(folder / "m.mercer")
    words = "colour: 4 of 60 cells hold a category that the model has not seen ('lila', 'LILA', 'rosa')"
    with pytest.warns(UserWarning) as caught:
        model.predict(new)
    assert len(caught) == 1 and str(caught[0].message).startswith(words) and caught[0].filename == __file__
    assert main(["predict", str(folder / "m.mercer"), str(tmp_path / "new.csv"), "--target", "label"]) == 0
    error = capsys.readouterr().err
    assert error.count(words) == 1 and error.startswith("note: colour") and "Warning" not in error


def test_known_categories_do_not_warn(folder):
    """Missing cells do not warn either."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mercer.load(folder / "m.mercer").predict(pd.read_csv(folder / "data.csv"))


@pytest.mark.parametrize(
    ("column", "cell", "words"),
    [
        ("price", "€5.00", "row 1, column 'price': '€5.00' is not a number"),
        ("price", "many", "'many' is not a number"),
        ("size", "1,234", "'1,234' is not a number"),
        ("size", "inf", "row 1, column 'size': the number is infinite"),
        ("wifi", "perhaps", "'perhaps' is not a boolean (true/false, yes/no, 1/0)"),
        ("when", "yesterday", "'yesterday' is not a date"),
    ],
)
def test_cells_that_do_not_fit(folder, column, cell, words):
    """Errors name the row and the column."""
    new = table()[1:3].reset_index(drop=True)
    new[column] = [None, cell]
    with pytest.raises(InvalidInputError) as error:
        mercer.load(folder / "m.mercer").predict(new)
    assert words in str(error.value)


def test_other_ways_of_writing(folder):
    """Unambiguous numbers are read even if the training file used another format."""
    model, new = mercer.load(folder / "m.mercer"), table()[:5]
    expected = model.predict_proba(new)
    price = [None if p is None else p.translate(str.maketrans(",.", ".,")).replace("$", "") for p in new["price"]]
    size = [None if s is None else f"{s:.20f}".replace(".", ",") for s in new["size"]]
    assert np.array_equal(model.predict_proba(new.assign(price=price, size=size)), expected)


def test_tables_without_names(folder):
    """An array, a table with a missing column and a table with one column twice are refused with a sentence."""
    model, new = mercer.load(folder / "m.mercer"), table()
    with pytest.raises(InvalidInputError, match="fitted to a table, but X is of type ndarray"):
        model.predict(new.to_numpy())
    with pytest.raises(InvalidInputError, match="The table lacks the column size, which the model was fitted with"):
        model.predict(new.drop(columns="size"))
    with pytest.raises(InvalidInputError, match="several columns 'size'"):
        model.predict(pd.concat([new, new[["size"]]], axis=1))
    spaces = new.rename(columns={"size": " size "})
    assert np.array_equal(model.predict_proba(spaces), model.predict_proba(new))


def test_dates_in_onnx(tmp_path, capsys):
    """A date is a number of days in the graph, as its description says; the predictions are those of the model."""
    onnxruntime = pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    frame = table()[["price", "colour", "wifi", "when", "label"]]
    frame.to_csv(tmp_path / "data.csv", index=False)
    samples = read_samples(tmp_path / "data.csv")
    model = train(samples, judge="none", Cs=2, gammas=2, search="grid", cv=2).model
    mercer.save(model, tmp_path / "m.mercer")
    assert main(["convert", str(tmp_path / "m.mercer"), str(tmp_path / "m.onnx"), "--double"]) == 0
    assert "the inputs for dates (when) are numbers: days since 1970-01-01 (UTC)" in capsys.readouterr().err
    graph = onnx.load(tmp_path / "m.onnx")
    about = {one.name: one.doc_string for one in graph.graph.input}
    assert about["when"] == "a date as the number of days since 1970-01-01 (UTC)" and "4733" not in about["price"]
    running = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    given = {name: samples.X[name].to_numpy()[:, None] for name in about}
    given["colour"] = np.array([[word or ""] for word in samples.X["colour"]], dtype=object)
    (found,) = running.run(["probabilities"], given)
    np.testing.assert_allclose(found, model.predict_proba(frame), atol=1e-9)
