"""Samples of the wrong kind get a sentence that says what was found; columns and arrays of objects are understood."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from tests.naming import named

from mercer.exceptions import InvalidInputError
from mercer.kernels import CallableKernel, Constant, Gaussian, Linear, Normalized, On, Precomputed, Spectrum, White
from mercer.kernels.domains import DOMAINS, as_objects, describe, noun_of

TEXTS = ["abc", "abd", "b"]


@pytest.mark.parametrize(
    "samples",
    [
        TEXTS,
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        np.array(TEXTS, dtype=object)[:, None],
        np.array(TEXTS)[:, None],
        [np.str_(text) for text in TEXTS],
        pd.Series(TEXTS, index=[5, 1, 1]),
        pd.Series(TEXTS, dtype="string"),
        pd.Series(TEXTS, dtype="category"),
        pd.DataFrame({"title": TEXTS}),
        pl.Series(TEXTS),
        pl.DataFrame({"title": TEXTS}),
    ],
    ids=lambda samples: f"{type(samples).__module__.split('.')[0]}-{getattr(samples, 'ndim', '')}",
)
def test_columns_of_strings(samples):
    """However a column of strings is given, the values are those of the list."""
    assert as_objects(Spectrum(2), samples) == TEXTS
    np.testing.assert_array_equal(Spectrum(2)(samples), Spectrum(2)(TEXTS))


NOT_STRINGS = {
    "abc": "was given the string 'abc' instead of a sequence of them. Give a sequence with one element per sample, "
    "such as ['abc', 'abd'].",
    b"abc": "was given bytes (3 of them) instead of a sequence of them. Give a sequence with one element per sample, "
    "such as ['abc', 'abd'].",
    3: "was given the number 3 instead of a sequence of them. Give a sequence with one element per sample, such as "
    "['abc', 'abd'].",
    None: "was given missing (None) instead of a sequence of them. Give a sequence with one element per sample, such "
    "as ['abc', 'abd'].",
    ("a", None): "sample 1 is missing (None). Remove such samples, or replace missing values, for instance by ''.",
    ("a", float("nan")): "sample 1 is missing (nan). Remove such samples, or replace missing values, for instance by "
    "''.",
    ("a", pd.NA): "sample 1 is missing (<NA>). Remove such samples, or replace missing values, for instance by ''.",
    ("a", 2.5): "sample 1 is the number 2.5. Use a kernel on vectors such as Gaussian() for numbers, or write them as "
    "text: str(sample).",
    (b"a",): "sample 0 is bytes (1 of them). Decode them first: sample.decode().",
    (frozenset("a"),): "sample 0 is a frozenset (sets). Use a kernel on sets such as Intersection() or Jaccard().",
    (("abc",),): "sample 0 is a tuple. Take the string out of it: [sample[0] for sample in samples].",
    (object,): "sample 0 is a type. Give samples such as ['abc', 'abd'].",
}


@pytest.mark.parametrize(("samples", "found"), NOT_STRINGS.items(), ids=named)
def test_not_strings(samples, found):
    """The error names what the kernel compares and what was given."""
    with pytest.raises(InvalidInputError) as caught:
        Spectrum(2)(samples)
    assert str(caught.value) == f"Spectrum(k=2) compares strings, but {found}"


@pytest.mark.parametrize(
    ("samples", "found"),
    [
        (
            [{"title": "abc"}],
            "sample 0 is a dict (records). Use On('title', Spectrum(k=2)) to compare one entry of each ",
        ),
        (np.ones((3, 2)), "was given an array of shape (3, 2). Give a sequence with one element per sample, such as "),
        (np.array(3), "was given an array of shape (). Give a sequence with one element per sample, such as "),
        (sp.eye_array(3), "was given a sparse matrix of shape (3, 3). Give a sequence with one element per sample, "),
        (pd.DataFrame({"a": TEXTS, "b": TEXTS}), "was given a data frame of 2 columns. Choose one: On('a', Spectrum("),
        ({"title": TEXTS}, "was given a dict (records) instead of a sequence of them. Give a sequence with one "),
        (np.array(TEXTS, dtype="S"), "sample 0 is bytes (3 of them). Decode them first: sample.decode()."),
        (object(), "was given an object. Give a sequence with one element per sample, such as ['abc', 'abd']."),
    ],
    ids=range(8),
)
def test_not_strings_but_tables(samples, found):
    """Tables, records and numbers raise an error that says what to do."""
    with pytest.raises(InvalidInputError) as caught:
        Spectrum(2)(samples)
    assert str(caught.value).startswith(f"Spectrum(k=2) compares strings, but {found}")


@pytest.mark.parametrize("kernel", [Gaussian(), On(0, Linear()), Normalized(Linear())], ids=named)
def test_strings_are_no_vectors(kernel):
    """A kernel on vectors says that it was given strings."""
    with pytest.raises(InvalidInputError) as caught:
        kernel(TEXTS)
    assert str(caught.value) == (
        "This kernel compares vectors, but sample 0 is the string 'abc'. Use a kernel on strings such as "
        "Spectrum(3), or turn them into numbers first."
    )


def test_sums_of_domains():
    """Kernels that do not examine samples combine with all others; kernels on different kinds of samples do not."""
    strings = Spectrum(2)
    assert (strings + 1).domain == (strings * Constant(2.0) + White()).domain == Normalized(strings).domain == "strings"
    assert (strings + CallableKernel(np.dot)).domain == "strings"
    assert On("title", strings).domain == On(0, strings).domain == "records"
    assert (On("title", strings) + On("price", Gaussian())).domain == "records"
    assert (On(0, strings) + On(1, Gaussian())).domain == "records"
    with pytest.raises(InvalidInputError, match=r"Spectrum\(k=2\) compares strings, On\('price', .* compares records"):
        strings + On("price", Gaussian())
    with pytest.raises(
        InvalidInputError, match=r"takes the rows of a kernel matrix, Spectrum\(k=2\) takes the samples"
    ):
        strings + Precomputed()


RECORDS = [{"title": "abc", "price": 1.0}, {"title": "ab", "price": 2.0, "note": None}, {"title": "", "price": 4.0}]
BOTH = On("title", Spectrum(2)) + 0.5 * On("price", Gaussian(1.0))


def test_records():
    """Lists of dicts, data frames and rows give the sum of the kernels on the columns."""
    titles, prices = [record["title"] for record in RECORDS], np.array([[record["price"]] for record in RECORDS])
    expected = Spectrum(2)(titles) + 0.5 * Gaussian(1.0)(prices)
    for samples in (RECORDS, tuple(RECORDS), np.array(RECORDS), pd.DataFrame(RECORDS), pl.DataFrame(RECORDS)):
        np.testing.assert_array_equal(BOTH(samples), expected)
    numbered = On(0, Spectrum(2)) + 0.5 * On(-1, Gaussian(1.0))
    rows = [(record["title"], record["price"]) for record in RECORDS]
    for samples in (rows, np.array(rows, dtype=object), pd.DataFrame(rows)):
        np.testing.assert_array_equal(numbered(samples), expected)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([*RECORDS, {"title": "a"}], "needs 'price', but record 3 has only: 'title'."),
        ([{"title": "a", "price": "x"}], "Vectors must consist of real numbers, but these samples are of type"),
        ([{"title": 3, "price": 1.0}], "Spectrum(k=2) compares strings, but sample 0 is the number 3."),
        (
            [{"title": "a", "price": None}],
            "On('price', Gaussian(gamma=1.0)) compares numbers, but 'price' of sample 0 is ",
        ),
        (
            pd.DataFrame({"title": TEXTS, "price": [1.0, 2.0, np.nan]}),
            "but 'price' of sample 2 is nan. Remove such samples",
        ),
        (TEXTS, "chooses columns by name, but the samples are of type list"),
        (RECORDS[0], "chooses columns by name, but the samples are of type dict"),
    ],
    ids=range(7),
)
def test_bad_records(samples, message):
    """The error says what is wrong with the records."""
    with pytest.raises(InvalidInputError) as caught:
        BOTH(samples)
    assert message in str(caught.value)


def test_every_domain_has_words():
    """Every domain has words for messages, and none takes a missing value for a sample."""
    for name, domain in DOMAINS.items():
        assert noun_of(name) == domain.noun and domain.example
    assert noun_of("melodies") == "melodies"
    assert describe("a" * 30) == "a string of 30 characters"
    assert describe(np.ones((2, 2))) == "an array of shape (2, 2)"
