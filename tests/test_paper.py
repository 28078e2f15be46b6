"""The paper claims what the pages of the documentation have measured, and cites what its bibliography has."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?[⁰¹²³⁴-⁹]*")

# words of the paper; the page and its section; words of that section that say the same, with the same numbers
CLAIMS = [
    ("the first fit on a machine takes 2 to 15 s, once", "install.md", "", ["2 to 15 s, once: the loops are compiled"]),
    ("fitted to 16 problems", "benchmarks.md", "Fit", ["| scikit-learn / mercer | 15.0 | 5.40 | svmguide1 | 16 |"]),
    (
        "from 1,000 × 24 to 200,000 × 3 values",
        "benchmarks.md",
        "Fit",
        ["| german_numer | 1,000 × 24 |", "| skin_nonskin | 200,000 × 3 |"],
    ),
    (
        "at most 1e-06 (relative) below the best",
        "benchmarks.md",
        "",
        ["at most 1e-06 (relative) below the best of all"],
    ),
    ("| fit, scikit-learn | 15.0 | 5.40 |", "benchmarks.md", "Fit", ["| scikit-learn / mercer | 15.0 | 5.40 |"]),
    ("| fit, scikit-learn-intelex | 7.49 | 2.29 |", "benchmarks.md", "Fit", ["| intelex / mercer | 7.49 | 2.29 |"]),
    ("| fit, LIBSVM | 15.6 | 5.09 |", "benchmarks.md", "Fit", ["| libsvm / mercer | 15.6 | 5.09 |"]),
    (
        "| predict, scikit-learn | 26.2 | 10.7 |",
        "benchmarks.md",
        "Predict",
        ["| scikit-learn / mercer | 26.2 | 10.7 |"],
    ),
    (
        "| predict, scikit-learn-intelex | 1.83 | 1.23 |",
        "benchmarks.md",
        "Predict",
        ["| intelex / mercer | 1.83 | 1.23 |"],
    ),
    ("| predict, LIBSVM | 30.8 | 9.53 |", "benchmarks.md", "Predict", ["| libsvm / mercer | 30.8 | 9.53 |"]),
    ("8 values of C, 8 of γ and 5 folds", "benchmarks.md", "Choosing parameters", ["8 C × 8 γ × 5 folds"]),
    (
        "scikit-learn 35.4 times as long, in geometric mean",
        "053-what-the-tables-of-kernel-machines-say.md",
        "",
        ["the geometric means are 35.4 times scikit-learn"],
    ),
    (
        "11.9 times as fast as the faster of two packages of LIBLINEAR (three of seven ratios are lower bounds)",
        "054-what-the-tables-of-linear-machines-say.md",
        "",
        ["11.9 times as fast as the faster package in geometric mean (three of seven are bounds)"],
    ),
    (
        "on sparse data 1.8 and 2.6 times (to 1e-4 and 1e-6)",
        "054-what-the-tables-of-linear-machines-say.md",
        "",
        ["(1e-4 and 1e-6) and 1.8 and 2.6 times as fast as the best of both packages"],
    ),
    (
        "16.3 to 120 times as fast as by GraKeL",
        "benchmarks.md",
        "Graphs and series",
        ["| GraKeL | 10.9 | 16.3 |", "| GraKeL | 19.7 | 120 |"],
    ),
    (
        "1,000,000 rows with 200 landmarks took 11.09 s",
        "benchmarks.md",
        "Large training sets",
        ["| n, with 200 landmarks | seconds |", "| 1,000,000 | 11.09 |"],
    ),
    (
        "10,000,000 × 10 rows with 30 landmarks 89 s and 3.94 GB",
        "benchmarks.md",
        "Large training sets",
        ["| peak memory, GB |", "| 10,000,000 × 10, 30 landmarks | 89 | 3.94 |"],
    ),
    (
        "(squared hinge loss) of 10⁷ × 50 generated rows took 231 s",
        "scale.md",
        "What a cluster costs, and how it grows",
        ["| 10⁷ × 50 (3.8 GB), `squared_hinge`, generated again in each pass | 231 s"],
    ),
    (
        "NuSVC of three classes with 20 samples takes 1.32 to 1.55 times as long",
        "benchmarks.md",
        "Small fits",
        ["| | n = 20 |", "| NuSVC, 3 classes | 1.32–1.55 |"],
    ),
    (
        "l1 penalty, squared hinge loss and C = 0.1 on text, LIBLINEAR needs 0.02 s and `mercer` 0.05 s",
        "benchmarks.md",
        "Linear machines",
        [
            "| set, loss | package | C = 0.1 |",
            "| news20, 3,000 × 62,061, squared hinge | mercer | 0.05 | 0.08 | 0.42 | | | LIBLINEAR | 0.02 |",
        ],
    ),
]


def flat(text):
    """Without line breaks and the padding of tables."""
    return re.sub(r"\s+", " ", text)


def body():
    """The text of the paper, without its head and its citations."""
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8").split("---\n", 2)[2]
    return flat(re.sub(r"\s*\[@[^]]*\]", "", text))


def section(page, heading):
    """A page of the documentation, or its part under a heading of the second level."""
    (path,) = (ROOT / "docs").rglob(page)
    text = path.read_text(encoding="utf-8")
    if heading:
        (text,) = [part for part in re.split(r"^## ", text, flags=re.M)[1:] if part.startswith(f"{heading}\n")]
    return flat(text)


@pytest.mark.parametrize(("words", "page", "heading", "evidence"), CLAIMS, ids=[claim[0][:40] for claim in CLAIMS])
def test_a_claim_is_on_its_page(words, page, heading, evidence):
    """The page has the evidence, and the evidence has every number of the claim."""
    assert words in body()
    missing = [text for text in evidence if text not in section(page, heading)]
    assert not missing, f"{page}, {heading}: not there any more; measure again or change the paper"
    assert set(NUMBER.findall(words)) <= {number for text in evidence for number in NUMBER.findall(text)}


def test_every_number_is_a_claim():
    """No number of the paper stands outside the list of claims."""
    text = body()
    for words, *_ in CLAIMS:
        text = text.replace(words, " ")
    assert NUMBER.findall(text) == []


def test_ranges_are_those_of_their_tables():
    """The smallest and largest ratio to GraKeL, and the verdict of every fit."""
    rows = re.findall(r"\| GraKeL \| [\d.]+ \| ([\d.]+) \|", section("benchmarks.md", "Graphs and series"))
    assert len(rows) == 6 and (min(map(float, rows)), max(map(float, rows))) == (16.3, 120)
    (path,) = (ROOT / "docs").rglob("benchmarks.md")
    header, _, *fits = re.search(r"(?:^\|.*equal objective.*\n)(?:^\|.*\n)+", path.read_text(), re.M)[0].splitlines()
    assert header.split("|")[-2].strip() == "equal objective" and len(fits) == 16
    assert {row.split("|")[-2].strip() for row in fits} == {"yes"}
    searches = re.findall(r"\d s \|", section("benchmarks.md", "Choosing parameters"))
    assert len(searches) == 4 and "in geometric mean over four sets" in body()


def test_citations_are_the_bibliography():
    """Every citation has its entry, and every entry is cited."""
    paper = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    library = (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8")
    entries = re.findall(r"^@\w+\{(\w+),", library, re.M)
    assert len(entries) == len(set(entries))
    assert set(re.findall(r"@(\w+)", paper)) == set(entries)
    assert library.count("{") == library.count("}")


def test_the_form_is_that_of_the_journal():
    """The sections are there in order, and the paper has 750 to 1,750 words, as the journal asks."""
    headings = re.findall(r"^# (.*)$", (ROOT / "paper" / "paper.md").read_text(encoding="utf-8"), re.M)
    assert headings == [
        "Summary",
        "Statement of need",
        "State of the field",
        "Functionality",
        "Software design",
        "Benchmarks",
        "Research impact statement",
        "Acknowledgements",
        "References",
    ]
    assert 750 <= len(body().split()) <= 1750
