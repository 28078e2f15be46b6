"""`mercer fit` on real-world tables: a correct result, or a sentence that tells what to do."""

import gzip
import json
import lzma

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.cli import exit_status, main
from mercer.exceptions import InvalidInputError
from mercer.io.tables import read_samples

rng = np.random.default_rng(1)
A, B = rng.normal(size=(2, 30)).round(3)
LABEL = np.where(A > 0, "yes", "no")
CSV = "a,b,y\n" + "".join(f"{a},{b},{label}\n" for a, b, label in zip(A, B, LABEL, strict=True))
ROWS = CSV.split("\n", 1)[1]
QUICK = ["--grid", "2", "--folds", "2", "--judge", "none"]


@pytest.fixture
def fit(tmp_path, monkeypatch, capsys):
    """Write a file, fit it, return the status, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def _fit(name, content, *options):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        status = main(["fit", name, *QUICK, *options])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return _fit


# ---- right results -----------------------------------------------------------------------------------------------

SAME = {
    "byte order mark": ("d.csv", b"\xef\xbb\xbf" + CSV.encode()),
    "UTF-16": ("d.csv", CSV.encode("utf-16")),
    "CRLF": ("d.csv", CSV.replace("\n", "\r\n")),
    "CR": ("d.csv", CSV.replace("\n", "\r")),
    "gzip": ("d.csv.gz", gzip.compress(CSV.encode())),
    "gzip without its suffix": ("d.csv", gzip.compress(CSV.encode())),
    "xz": ("d.csv.xz", lzma.compress(CSV.encode())),
    "semicolons and decimal commas": ("d.csv", CSV.replace(",", ";").replace(".", ",")),
    "tabs": ("d.csv", CSV.replace(",", "\t")),
    "bars": ("d.csv", CSV.replace(",", "|")),
    "a line that names the separator": ("d.csv", "sep=;\n" + CSV.replace(",", ";")),
    "a separator at the end of rows": ("d.csv", "a,b,y\n" + ROWS.replace("\n", ",\n")),
    "a separator at the end of lines": ("d.csv", CSV.replace("\n", ",\n")),
    "spaces": ("d.csv", CSV.replace("a,b,y", " a , b, y ").replace(",", ", ")),
    "empty lines": ("d.csv", "\n" + CSV.replace("\n", "\n\n")),
    "an index without a name": ("d.csv", pd.DataFrame({"a": A, "b": B, "y": LABEL}).to_csv()),
    "names of rows without a name": (
        "d.csv", "a,b,y\n" + "".join(f"{i},{row}\n" for i, row in enumerate(ROWS.split("\n")[:-1])),
    ),
    "a column without values": (
        "d.csv", "a,b,empty,y\n" + "".join(f"{a},{b},NA,{label}\n" for a, b, label in zip(A, B, LABEL, strict=True)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SAME)
def test_the_same_table_in_other_files(fit, tmp_path, case):
    """Each gives the same result as the plain file."""
    name, content = SAME[case]
    (tmp_path / "plain.csv").write_text(CSV)
    plain = read_samples(tmp_path / "plain.csv")
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    samples = read_samples(tmp_path / name)
    used = [column.name for column in samples.columns if column.kind != "left out"]
    pd.testing.assert_frame_equal(samples.X[used], plain.X)
    assert samples.y.tolist() == plain.y.tolist()


def test_prices(fit, tmp_path, capsys):
    """A target in dollars is a number, and the model file stores how to read new prices."""
    size = np.linspace(0.2, 3, 40)
    cells = [f'{i},{s:.2f},"${4000 * s**2:,.2f}"\n' for i, s in enumerate(size)]
    status, out, err = fit("d.csv", ",size,price\n" + "".join(cells), "--target", "price")
    assert status == 0 and "40 rows: regression of 'price'" in out
    assert "Unnamed: 0: left out (row numbers)" in err
    assert "price: number (read '$10,704.64' as 10704.64), the target" in err
    assert main(["predict", "model.mercer", "d.csv", "--target", "price"]) == 0
    shown = capsys.readouterr()
    assert float(shown.err.split()[1]) > 0.9  # R²
    assert float(shown.out.splitlines()[20]) == pytest.approx(4000 * size[19] ** 2, rel=0.2)


def test_decimal_mark_of_the_file(tmp_path):
    """1,234 and 1.234 are ambiguous: the other columns decide, then the separator, then --decimal."""

    def numbers(text, **more):
        (tmp_path / "d.csv").write_text(text)
        samples = read_samples(tmp_path / "d.csv", **more)
        return samples.X["n"].tolist(), samples.columns[0].note

    quoted = 'n,y\n"1,234",x\n"2,345",z\n'
    assert numbers(quoted) == ([1234, 2345], "read '1,234' as 1234; with --decimal ',' it is 1.234")
    assert numbers(quoted, decimal=",")[0] == [1.234, 2.345]
    assert numbers("n;y\n1,234;x\n2,345;z\n")[0] == [1.234, 2.345]
    assert numbers("n;m;y\n1,234;0.5;x\n2,345;2.75;z\n")[0] == [1234, 2345]
    assert numbers("n;m;y\n1.234;0,5;x\n2.345;2,75;z\n")[0] == [1234, 2345]
    assert numbers("n;m;y\n1.234;5;x\n2.345;2;z\n") == ([1.234, 2.345], "")
    assert numbers("n,m,y\n1.234,0.5,x\n2.345,2.75,z\n") == ([1.234, 2.345], "")


def test_encodings(fit):
    """Latin-1 is read with a note, and without one if it is named."""
    text = CSV.replace("yes", "süß")
    status, out, err = fit("d.csv", text.encode("latin-1"))
    assert status == 0 and "süß" in out
    line = 2 + LABEL.tolist().index("yes")
    assert f"d.csv is not in UTF-8 (line {line} has the byte 0xfc): read as cp1252, in which it is 'ü'" in err
    status, out, err = fit("d.csv", text.encode("cp850"), "--encoding", "cp850")
    assert status == 0 and "süß" in out and "note" not in err


def test_rows_without_a_target(fit, tmp_path, capsys):
    """Missing targets stop the run; --na-target drop removes and counts them; predictions need no target."""
    text = CSV + "1,2,\n3,4,NA\n"
    status, _, err = fit("d.csv", text)
    assert status == 1 and "line 32, column 'y': the target is missing, as in 2 of 32 rows" in err
    assert "--na-target drop" in err
    status, out, err = fit("d.csv", text, "--na-target", "drop")
    assert status == 0 and "30 rows" in out and "2 of 32 rows were dropped, in which 'y' is missing" in err
    assert main(["predict", "model.mercer", "d.csv", "--target", "y"]) == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 33 and "on the 30 rows whose target is known" in shown.err


def test_names_of_columns(fit):
    """Columns without a name or with equal names are renamed with a note; an ambiguous target is an error."""
    status, _, err = fit("d.csv", CSV.replace("a,b,y", "a,,y"))
    assert status == 0 and "d.csv: column 2 has no name, called 'Unnamed: 1' here." in err
    status, _, err = fit("d.csv", CSV.replace("a,b,y", "a,a,y"))
    assert status == 0 and "d.csv: columns with equal names; read 'a' as 'a.1'." in err
    status, _, err = fit("d.csv", CSV.replace("a,b,y", "a,y,y"), "--target", "y")
    assert status == 1 and "several columns 'y'. Rename all but one of them, or give the number" in err
    status, _, err = fit("d.csv", CSV.replace("a,b,y", "a,b,Price"), "--target", "price")
    assert status == 1 and "Did you mean 'Price'?" in err


def test_reading_for_programs(fit):
    """--json has the notes, and nothing but JSON on standard output."""
    status, out, _ = fit("d.csv", CSV.replace("a,b,y", "a,,y"), "--json")
    assert status == 0 and json.loads(out)["reading"] == ["d.csv: column 2 has no name, called 'Unnamed: 1' here."]


def test_dates_help(tmp_path):
    """A column of dates suffices to learn a trend."""
    days = pd.date_range("2020-01-01", periods=60)
    pd.DataFrame({"day": days.strftime("%d.%m.%Y"), "y": np.arange(60.0) + 0.5}).to_csv(tmp_path / "d.csv", index=False)
    model = tmp_path / "m.mercer"
    assert main(["fit", str(tmp_path / "d.csv"), *QUICK, "--grid", "4", "--quiet", "--model", str(model)]) == 0
    assert mercer.load(model).score(pd.DataFrame({"day": days}), np.arange(60.0) + 0.5) > 0.9


# ---- sentences ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("d.csv", CSV + "1,2\n", "line 32: 2 cells, but the first line names 3 columns"),
        ("d.csv", CSV + "1,2,3,4\n", "line 32: 4 cells, but the first line names 3 columns"),
        ("d.csv", "a\n1\n2\n", "has only the column 'a', which is the target"),
        ("d.csv", "a,y\n1,x\n", "is 'x' in all 1 rows: there is nothing to learn"),
        ("d.csv", "a,b,y\n", "has a line of names, but no rows"),
        ("d.csv", "", "has no lines"),
        ("d.csv", "\n\n", "has no lines"),
        ("d.csv.gz", gzip.compress(CSV.encode())[:-30], "cannot be decompressed"),
        ("d.csv", b"PK\x03\x04" + bytes(99), "is a zip archive or an Excel file"),
        ("d.csv", bytes(range(256)), "found a zero byte"),
        ("d.csv", CSV.encode("utf-16-le"), "use --encoding utf-16-le"),
        ("d.csv", "a,y\n,x\nNA,z\n,x\n", "No column can be used as an input (a: no values)"),
        ("d.csv", "a,y\n" + "1,x\n" * 20 + "inf,z\n", "line 22, column 'a': the number is infinite"),
        (
            "d.csv",
            "a,y\n" + "1,x\n2,z\n" * 20 + "oops,z\n",
            "line 42, column 'a': 'oops' is not a number, but 40 other",
        ),
        ("d.csv", ROWS, "the first line must hold the names of the columns"),
        ("d.csv", CSV + '"1,2,x\n' + ROWS * 300, "line 32: field larger than field limit"),
        ("d.csv", "a,y\n1,\n2,NA\n", "the target 'y' is missing in all 2 rows"),
        ("d.parquet", b"PAR1 and nothing more", "is not a Parquet file"),
        ("d.jsonl", '{"a": 1}\n{"a"', "line 2, column 5"),
        ("d.jsonl", "\n", "is empty"),
    ],
)
def test_what_cannot_be_read(fit, name, content, words):
    """One sentence, no traceback."""
    status, out, err = fit(name, content)
    assert status == 1 and words in err and out == "" and err.strip().splitlines()[-1].startswith("mercer fit: ")


def test_unknown_encoding(fit):
    """An encoding that does not exist or does not fit is named."""
    assert "The encoding 'klingon' is unknown" in fit("d.csv", CSV, "--encoding", "klingon")[2]
    assert "is not text in the encoding ascii" in fit("d.csv", CSV.replace("yes", "süß"), "--encoding", "ascii")[2]


def test_many_columns(tmp_path):
    """The time to read columns grows linearly; a summary does not list all of them."""
    d = 3000
    head, rows = ",".join(f"c{j}" for j in range(d)), rng.normal(size=(6, d)).round(2)
    text = f"{head},y\n" + "".join(",".join(map(str, row)) + f",{'xz'[i % 2]}\n" for i, row in enumerate(rows))
    (tmp_path / "d.csv").write_text(text)
    samples = read_samples(tmp_path / "d.csv")
    assert len(samples.columns) == d
    np.testing.assert_array_equal(samples.X.to_numpy(), rows)


# ---- many classes ------------------------------------------------------------------------------------------------


def named(n, k):
    return "a,y\n" + "".join(f"{i % 7},name{i % k}\n" for i in range(n))


def test_many_classes_are_asked_about(fit):
    """The error comes before any fit: number of classes, rows per class, examples, and the options."""
    status, out, err = fit("d.csv", named(900, 300))
    assert status == 1 and out == ""
    for words in (
        "The target 'y' has 300 different values in 900 rows, such as 'name0'", "3.0 rows per class on average",
        "choose another column with --target", "use --task classification to train with 300 classes (44,850 pairs",
    ):  # fmt: skip
        assert words in err
    dates = "a,y\n" + "".join(f"{i},2024-{i % 12 + 1:02}-{i % 28 + 1:02}\n" for i in range(200))
    assert "write its dates as numbers" in fit("d.csv", dates)[2]
    units = "a,y\n" + "".join(f"{i},{i % 150} {'kg' if i % 2 else 'lb'}\n" for i in range(400))
    assert "write all its numbers in one format with one unit" in fit("d.csv", units)[2]


def test_pairs_that_do_not_fit_into_memory(fit):
    """The memory is estimated first, in the command and in Python."""
    status, _, err = fit("d.csv", named(9_000, 4_500), "--task", "classification")
    words = "4,500 classes are 10,122,750 pairs, each with a machine of its own: for 9,000 samples"
    assert status == 1 and words in err
    assert "--kernel linear" in err
    X, y = np.arange(90_000.0).reshape(-1, 1) % 7, np.arange(90_000) % 30_000
    with pytest.raises(InvalidInputError, match=r"that takes about .* GB are available. Use fewer classes"):
        mercer.SVC().fit(X, y)


def test_memory_errors_have_a_sentence(capsys):
    """Any other MemoryError ends in one sentence, too."""

    def greedy():
        raise MemoryError("Unable to allocate 236. GiB")

    assert exit_status(greedy, "fit") == 1
    assert capsys.readouterr().err == (
        "mercer fit: there is not enough memory (Unable to allocate 236. GiB). Use fewer rows, columns or classes, or "
        "a linear kernel.\n"
    )
