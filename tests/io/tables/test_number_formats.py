"""Numbers and dates in common notations are recognised and read column by column."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import InvalidInputError
from mercer.io.tables.dates import find_dates
from mercer.io.tables.number_formats import NumberFormat, find_numbers


@pytest.mark.parametrize(
    ("cells", "values", "format"),
    [
        (["$4,733.00", "$326.50"], [4733, 326.5], (".", ",", "$")),
        (["4.733,00 €", "326,50 €"], [4733, 326.5], (",", ".", "€")),
        (["£1,000", "£2"], [1000, 2], (".", ",", "£")),
        (["1.000 €", "2 €"], [1000, 2], (",", ".", "€")),
        (["¥1,234,567", "¥5"], [1234567, 5], (".", ",", "¥")),
        (["USD 5.5", "7 usd", "9"], [5.5, 7, 9], (".", "", "USD")),
        (["12 %", "13.5%"], [12, 13.5], (".", "", "%")),
        (["1,234,567", "1,234"], [1234567, 1234], (".", ",", "")),
        (["1 234,5", "2,25"], [1234.5, 2.25], (",", " ", "")),
        (["1\u202f234,5", "2,25"], [1234.5, 2.25], (",", " ", "")),
        (["1.234.567,89", "3,5"], [1234567.89, 3.5], (",", ".", "")),
        (["1'234", "1’500.5"], [1234, 1500.5], (".", "'", "")),
        (["(1,250.00)", "3"], [-1250, 3], (".", ",", "")),
        (["($7)", "-$5", "$-6"], [-7, -5, -6], (".", "", "$")),
        (["−3.5", "2", "5-"], [-3.5, 2, -5], (".", "", "")),
        (["1,5e3", "-,5"], [1500, -0.5], (",", "", "")),
        (["1,234", "0,5"], [1.234, 0.5], (",", "", "")),
        (["12 kg", "13.5 kg"], [12, 13.5], (".", "", "kg")),
        (["5", "-", "—", None], [5, np.nan, np.nan, np.nan], (".", "", "")),
    ],
)
def test_numbers(cells, values, format):
    """Currencies, units, thousands separators, decimal commas, signs and brackets: one format fits all cells."""
    found = find_numbers(cells)
    assert found.format == NumberFormat(*format) and not found.wrong and found.other is None
    np.testing.assert_array_equal(found.values, values)


@pytest.mark.parametrize(
    "cells",
    [
        ["$5", "€5"], ["12 kg", "300 g"], ["5%", "3"], ["18-25", "26-30"], ["A12", "A13"], ["1_000", "2"], ["12:30"],
        ["1,23,4", "5"], ["2024-01-31"], ["192.168.0.1", "10.0.0.1"], ["--5", "3"], ["", "x"], [None], ["(5", "3"],
    ],
)  # fmt: skip
def test_what_is_no_column_of_numbers(cells):
    """Cells of different units, ranges, codes and times are not numbers."""
    assert find_numbers(cells) is None


def test_two_readings():
    """If all cells are ambiguous, both formats are found and the preferred one is used."""
    for cells, decimal, values in (
        (["1,234", "567"], None, [1234, 567]),
        (["1,234", "567"], ",", [1.234, 567]),
        (["1.234", "5.678"], None, [1.234, 5.678]),
        (["1.234", "5.678"], ",", [1234, 5678]),
    ):
        found = find_numbers(cells, decimal)
        assert found.values.tolist() == values and found.other is not None and not found.decisive


def test_mistakes_are_found():
    """A few wrong cells are named by their position; with many, the column is not a number column."""
    assert find_numbers(["$1.00"] * 30 + ["oops"]).wrong == [30]
    assert find_numbers(["$1.00"] * 3 + ["oops"]) is None


@given(
    st.lists(st.floats(-1e12, 1e12).map(lambda v: round(v, 2)), min_size=1, max_size=8),
    st.sampled_from([(".", ","), (".", " "), (".", "'"), (",", "."), (",", " ")]),
    st.sampled_from(["", "$", "EUR", "%", "kg"]),
)
def test_what_is_written_is_read(values, marks, unit):
    """A number written with a thousands separator and a decimal mark is read back exactly."""
    decimal, group = marks
    table = str.maketrans({",": group, ".": decimal})
    cells = [f"{value:,.2f}".translate(table) + (f" {unit}" if unit else "") for value in values]
    read, wrong = NumberFormat(decimal, group, unit).read(cells)
    assert not wrong and read.tolist() == values
    found = find_numbers(cells)
    assert found.values.tolist() == values


def test_formats_are_checked():
    """A decimal mark that also separates thousands is refused."""
    with pytest.raises(InvalidInputError, match="decimal must be"):
        NumberFormat(".", ".")


def day(text):
    return np.datetime64(text, "us").astype(np.int64) / 86_400_000_000


@pytest.mark.parametrize(
    ("cells", "first", "order"),
    [
        (["2024-01-31", None], "2024-01-31", "ymd"),
        (["2024/1/31", "2023/12/1"], "2024-01-31", "ymd"),
        (["2024-01", "2024-02"], "2024-01-01", "ymd"),
        (["2024-01-31T10:00:00+02:00"], "2024-01-31T08:00", "ymd"),
        (["2024-01-31 10:00:00.123456Z"], "2024-01-31T10:00:00.123456", "ymd"),
        (["31.1.2024", "1.2.2024"], "2024-01-31", "dmy"),
        (["1/2/2024", "13/4/2024"], "2024-02-01", "dmy"),
        (["1/31/24 8:30 pm", "1/2/69"], "2024-01-31T20:30", "mdy"),
        (["31 Jan 2024", "1-Feb-2023"], "2024-01-31", "dmy"),
        (["January 31, 2024", "May 2, 2023"], "2024-01-31", "mdy"),
    ],
)
def test_dates(cells, first, order):
    """Dates in common notations are days since 1970-01-01, bit-identical to datetime64."""
    found = find_dates(cells)
    assert (found.order, found.wrong, found.open) == (order, [], False) and found.values[0] == day(first)


def test_dates_in_two_orders():
    """If day and month are ambiguous, slashes put the month first, points and dashes the day, unless told."""
    assert find_dates(["1/2/2024"]).values[0] == day("2024-01-02")
    assert find_dates(["1-2-2024"]).values[0] == day("2024-02-01")
    assert find_dates(["1/2/2024"], "dmy").values[0] == day("2024-02-01")
    assert find_dates(["1/2/2024"]).open


def test_what_is_no_column_of_dates():
    """Words and impossible days are not dates; a few of them among dates are reported."""
    assert find_dates(["monday"]) is None and find_dates(["2024-02-30"]) is None
    assert find_dates(["2024-02-01"] * 20 + ["2024-02-30"]).wrong == [20]
