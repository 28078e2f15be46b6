"""The README and the tutorials run as printed, from an empty folder, and print what they say."""

from pathlib import Path

import pytest
from tests.pages import first_difference, run, steps

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = [ROOT / "README.md", *(page for page in TUTORIALS if page.stem != "index")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_runs_as_printed(page, tmp_path, monkeypatch):
    """Every python block and every command of a page works in the order of the page, and prints what the page says."""
    monkeypatch.chdir(tmp_path)
    found = steps(page)
    assert sum(step.output is not None for step in found) >= 1
    namespace = {"__name__": page.stem}
    for step in found:
        run(step, namespace)


@pytest.mark.parametrize(
    ("printed", "expected", "same"),
    [
        ("took 1.2 s", "took 0.3 s", True),
        ("accuracy 0.9333", "accuracy 0.9400", True),
        ("accuracy 0.93", "accuracy 0.73", False),
        ("gap 1.0e-04", "gap 9.0e-07", True),
        ("a b\n   c", "a b c", True),
        ("a b", "a c", False),
        ("a b c", "a b", False),
        ("a b c d e", "a b\n...\ne", True),
        ("a b c d e", "a b\n...\nd", False),
        ("a b c d e f", "a\n...\nc d\n...\nf", True),
        ("a b c d e f", "a\n...\nd c\n...\nf", False),
        ("a b c", "a\n...\nb b c", False),
        ("machine  C=1", "machine  C=5", True),
        ("120 rows (5 %)", "1,200 rows (5 %)", False),
    ],
)
def test_outputs_are_compared_by_words_and_numbers(printed, expected, same):
    """Times and rounding may differ; words, and numbers beyond rounding, may not."""
    assert (first_difference(printed, expected) is None) == same
