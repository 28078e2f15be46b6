"""Data files become samples; what is wrong with them is said with its line and column."""

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
        ("a.csv", 'x,y\n"1\n",0\n2,1,5\n', ["line 4", "3 fields", "2"]),
        ("a.csv", "x,x\n1,2\n", ["line 1", "'x' twice"]),
        ("a.csv", "x,y\n1,0\n2,\n", ["line 3", "'y'", "missing"]),
        ("a.csv", "x,y\n1,0\n1e999,1\n", ["line 3", "'x'", "infinite"]),
        ("a.csv", "x,y\n", ["1 lines"]),
        ("a.csv", "", ["0 lines"]),
        ("a.csv", b"x,y\n\xff,1\n", ["UTF-8", "byte 4"]),
        ("a.csv", "x\n1\n2\n", ["no column beside"]),
        ("a.jsonl", '{"x": 1, "y": 0}\n{"x": }\n', ["line 2", "column"]),
        ("a.jsonl", "[1, 2]\n", ["line 1", "object"]),
        ("a.svm", "1 1:2 2:3\n0 1:x\n", ["line 2"]),
        ("a.npz", b"not a zip", ["no archive"]),
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


def test_missing_files_and_columns(write, tmp_path):
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_samples(tmp_path / "nowhere.csv")
    with pytest.raises(InvalidInputError, match=r"no column 'z'.*size, colour, label"):
        read_samples(write("data.csv", CSV), target="z")
    with pytest.raises(InvalidInputError, match="lacks the column weight"):
        read_samples(write("data.csv", CSV), kinds={"size": "number", "weight": "number"}, need_target=False)


def test_new_samples_are_read_as_the_old_ones_were(write):
    path = write("new.csv", "colour,size\n1,3\n2,4\n")
    samples = read_samples(path, kinds={"size": "number", "colour": "category"}, need_target=False)
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
    with pytest.raises(InvalidInputError, match="rows of a matrix"):
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
