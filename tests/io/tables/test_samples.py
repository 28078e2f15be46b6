"""Data files are read into samples; errors name the line and the column."""

import gzip
import io
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from mercer import InvalidInputError
from mercer.io.tables import read_samples
from mercer.io.tables.columns import Column
from mercer.io.tables.table_reader import TableReader

CSV = "size,colour,label\n1.5,red,a\n2,blue,b\n,red,a\n4e0,?,b\n"


@pytest.fixture
def write(tmp_path):
    def _write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return _write


def test_csv(write):
    samples = read_samples(write("data.csv", CSV), target="label")
    assert samples.kind == "table" and samples.y.tolist() == ["a", "b", "a", "b"]
    assert [(c.name, c.kind, c.missing) for c in samples.columns] == [("size", "number", 1), ("colour", "category", 1)]
    assert samples.X["size"].tolist()[:2] == [1.5, 2.0] and np.isnan(samples.X["size"][2])
    assert samples.X["colour"].tolist() == ["red", "blue", "red", None]


def test_the_last_column_is_the_target(write):
    assert read_samples(write("data.csv", CSV)).target == "label"


def test_compressed_and_other_separators(write):
    plain = read_samples(write("data.csv", CSV))
    for name, content in (
        ("data.csv.gz", gzip.compress(CSV.encode())),
        ("data.tsv", CSV.replace(",", "\t")),
        ("semicolons.csv", CSV.replace(",", ";")),
        ("mark.csv", b"\xef\xbb\xbf" + CSV.encode()),
        ("windows.csv", CSV.replace("\n", "\r\n")),
    ):
        other = read_samples(write(name, content))
        pd.testing.assert_frame_equal(other.X, plain.X)
        assert other.y.tolist() == plain.y.tolist()


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
    assert len(read_samples("-")) == 4


def test_parquet_and_json_lines_agree_with_csv(write, tmp_path):
    pytest.importorskip("pyarrow")
    samples = read_samples(write("data.csv", CSV))
    frame = samples.X.assign(label=samples.y)
    frame.to_parquet(tmp_path / "data.parquet")
    frame.to_json(tmp_path / "data.jsonl", orient="records", lines=True)
    for name in ("data.parquet", "data.jsonl"):
        other = read_samples(tmp_path / name)
        assert other.columns == samples.columns and other.y.tolist() == samples.y.tolist()
        np.testing.assert_array_equal(other.X["size"], samples.X["size"])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "x,y\n" + "1,0\n" * 30 + "oops,1\n", ["line 32", "'x'", "'oops'", "30"]),
        ("a.csv", 'x,y\n"1\n",0\n2,1,5\n', ["line 4", "3 cells", "2 columns"]),
        ("a.csv", "x,y\n1,0\n2,\n", ["line 3", "'y'", "1 of 2 rows", "--na-target drop"]),
        ("a.csv", "x,y\n1,0\n1e999,1\n", ["line 3", "'x'", "infinite"]),
        ("a.csv", "x,y\n", ["a line of names, but no rows"]),
        ("a.csv", "", ["has no lines"]),
        ("a.csv", "x\n1\n2\n", ["only the column 'x'"]),
        ("a.jsonl", '{"x": 1, "y": 0}\n{"x": }\n', ["line 2", "column"]),
        ("a.jsonl", "[1, 2]\n", ["line 1", "object"]),
        ("a.svm", "1 1:2 2:3\n0 1:x\n", ["line 2"]),
        ("a.npz", b"not a zip", ["is not an npz archive", "numpy.savez"]),
        ("a.fasta", "ACGT\n", ["line 1", "header"]),
        ("a.fasta", ">one\nACGT\n", ["sequence 1", "no label"]),
        ("a.dat", "1", ["--format"]),
    ],
)
def test_what_is_wrong_is_said(write, name, content, words):
    with pytest.raises(InvalidInputError) as error:
        read_samples(write(name, content))
    for word in words:
        assert word in str(error.value)


def reader(*numbers, **categories):
    words = [Column(name, "category", categories=seen) for name, seen in categories.items()]
    return TableReader([*(Column(name, "number") for name in numbers), *words])


def test_missing_files_and_columns(write, tmp_path):
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_samples(tmp_path / "nowhere.csv")
    with pytest.raises(InvalidInputError, match=r"no column 'z'.*size, colour, label"):
        read_samples(write("data.csv", CSV), target="z")
    with pytest.raises(InvalidInputError, match="lacks the column weight"):
        read_samples(write("data.csv", CSV), reader=reader("size", "weight"), need_target=False)


def test_new_samples_are_read_as_the_old_ones_were(write):
    path = write("new.csv", "colour,size\n1,3\n2,4\n")
    samples = read_samples(path, reader=reader("size", colour=("1", "2")), need_target=False)
    assert list(samples.X.columns) == ["size", "colour"] and samples.X["colour"].tolist() == ["1", "2"]


def test_useless_columns_are_left_out(write):
    rows = "".join(f"name{i},same,{i % 2},{'long text number ' * 2}{i},{i % 2}\n" for i in range(60))
    samples = read_samples(write("data.csv", "id,constant,x,words,y\n" + rows))
    kinds = {c.name: c.kind for c in samples.columns}
    assert kinds == {"id": "left out", "constant": "left out", "x": "number", "words": "text"}


def test_matrices(write, tmp_path):
    X, y = np.arange(6.0).reshape(3, 2), np.array([1, 0, 1])
    np.savez(tmp_path / "m.npz", X=X, y=y)
    samples = read_samples(tmp_path / "m.npz")
    np.testing.assert_array_equal(samples.X, X)
    dump_svmlight_file(X, y, str(tmp_path / "m.svm"), zero_based=False)
    samples = read_samples(tmp_path / "m.svm")
    assert sp.issparse(samples.X)
    np.testing.assert_array_equal(samples.X.toarray(), X)
    np.savez(tmp_path / "bad.npz", X=np.arange(3), y=y)
    with pytest.raises(InvalidInputError, match="a matrix whose rows are the samples"):
        read_samples(tmp_path / "bad.npz")
    np.savez(tmp_path / "objects.npz", X=np.array([{}, {}], dtype=object), y=y)
    with pytest.raises(InvalidInputError, match="plain arrays"):
        read_samples(tmp_path / "objects.npz")


def test_sequences(write):
    fasta = write("s.fasta", ">one x\nAC\nGT\n>two y\nGGG\n")
    samples = read_samples(fasta)
    assert samples.X == ["ACGT", "GGG"] and samples.y.tolist() == ["x", "y"] and samples.names == ("one", "two")
    labels = write("labels.txt", "two q\none p\n")
    assert read_samples(fasta, labels=labels).y.tolist() == ["p", "q"]
    assert read_samples(fasta, labels=write("plain.txt", "p\nq\n")).y.tolist() == ["p", "q"]
    with pytest.raises(InvalidInputError, match="no label for 1 sequences, the first is 'two'"):
        read_samples(fasta, labels=write("few.txt", "one p\n"))
    with pytest.raises(InvalidInputError, match="1 labels for 2"):
        read_samples(fasta, labels=write("one.txt", "p\n"))


# ---- files as people have them -----------------------------------------------------------------------------------


def frame_of(tmp_path, text, **more):
    (tmp_path / "d.csv").write_text(text, encoding="utf-8")
    return read_samples(tmp_path / "d.csv", **more)


def test_decimal_commas(tmp_path):
    """If columns are not separated by commas, 3,5 is a number, if its whole column is."""
    samples = frame_of(tmp_path, "größe;alter;y\n1,5;3;a\n-2,25e1;;b\n,5;4;a\n")
    assert samples.X["größe"].tolist() == [1.5, -22.5, 0.5] and samples.columns[0].kind == "number"
    mixed = frame_of(tmp_path, "a;y\n1,5;a\n2.5;b\n1.000,5;b\n")
    assert mixed.X["a"].tolist() == ["1,5", "2.5", "1.000,5"]


def test_bars(tmp_path):
    """Columns may be separated by |."""
    assert list(frame_of(tmp_path, "a|b|y\n1|2|x\n3|4|z\n").X) == ["a", "b"]


def test_target_by_number(tmp_path):
    """A column can be given by its number; a column whose name is that number has priority."""
    text = "a,2,c\n1,5,x\n2,6,y\n"
    assert frame_of(tmp_path, text, target="1").target == "a"
    assert frame_of(tmp_path, text, target="-1").target == "c"
    assert frame_of(tmp_path, text, target="2").y.tolist() == [5, 6]
    with pytest.raises(InvalidInputError, match="no column 4: its 3 columns are numbered from 1 on"):
        frame_of(tmp_path, text, target="4")


def test_large_whole_numbers(tmp_path):
    """Large integers as targets are names and lose no digits; as a feature that differs in each row, an identifier."""
    rows = "".join(f"{10**17 + i},{i % 3},{10**17 + i % 2}\n" for i in range(30))
    samples = frame_of(tmp_path, f"account,a,y\n{rows}")
    assert set(samples.y.tolist()) == {str(10**17), str(10**17 + 1)}
    assert samples.columns[0].kind == "left out" and "identifier" in samples.columns[0].why


@pytest.mark.parametrize("name", ["id", "customer_id", "PassengerId", "Unnamed: 0", "row"])
def test_identifiers(tmp_path, name):
    """Columns of row numbers are left out; other integer columns with distinct values are not."""
    rows = "".join(f"{100 + 7 * i},{1000 + 3 * i * i},{i % 2}\n" for i in range(30))
    columns = frame_of(tmp_path, f"{name},paid,y\n{rows}").columns
    assert [column.kind for column in columns] == ["left out", "number"]


@pytest.mark.parametrize(
    "form", ["2024-{m:02}-{d:02}", "2024-{m:02}-{d:02}T10:0{m}:00Z", "{d}.{m}.2024", "{m}/{d}/24 8:00"]
)
def test_dates(tmp_path, form):
    """Dates become days since 1970-01-01, with the time of day as the fraction."""
    rows = "".join(f"{form.format(m=1 + i % 6, d=1 + i % 28)},{i},{i % 2}\n" for i in range(60))
    samples = frame_of(tmp_path, f"when,a,y\n{rows}")
    expected = [np.datetime64(f"2024-{1 + i % 6:02}-{1 + i % 28:02}") for i in range(60)]
    days = np.array(expected).astype("datetime64[D]").astype(int)
    assert samples.columns[0].kind == "date"
    np.testing.assert_array_equal(np.floor(samples.X["when"]), days)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no lines"),
        ("a,b\n", "a line of names, but no rows"),
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n", "must hold the names of the columns, but it holds numbers such as '5.1'"),
        ("1,1,2\n3,4,5\n", "holds numbers such as '1'. Add a line of names above it"),
        ("a,y\n1\0,2\n", "line 2: found a zero byte"),
        ("a\n1\n2\n", "Columns are separated by commas, semicolons, tabs or"),
    ],
)
def test_files_that_are_no_tables(tmp_path, text, words):
    """Each error is one sentence that tells what to do."""
    with pytest.raises(InvalidInputError, match=words):
        frame_of(tmp_path, text)


def test_typed_targets(tmp_path):
    """Booleans and large integers in typed files are names, as in text files; large features stay distinct."""
    lines = [f'{{"id": {10**18 + i}, "v": {i % 7}, "y": {str(i % 2 == 0).lower()}}}' for i in range(20)]
    (tmp_path / "d.jsonl").write_text("\n".join(lines))
    samples = read_samples(tmp_path / "d.jsonl")
    assert set(samples.y.tolist()) == {"False", "True"}
    assert samples.columns[0].different == 20 and "identifier" in samples.columns[0].why
    large = read_samples(tmp_path / "d.jsonl", target="id")
    assert large.y.tolist()[:2] == [str(10**18), str(10**18 + 1)]


def test_folder(tmp_path):
    with pytest.raises(InvalidInputError, match="is a folder, not a file"):
        read_samples(tmp_path)
