"""The extensions of the documentation site to Sphinx, and the tables that are written by a script."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def module(path):
    """A file of docs/ as a module; skipped where a package of the extra `docs` is missing."""
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    spec = importlib.util.spec_from_file_location(f"site_{path.stem}", path)
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


def test_readme_has_the_measured_times():
    """The README's table is the one that the script takes from docs/benchmarks.md."""
    spec = importlib.util.spec_from_file_location("draw_pages", ROOT / "docs" / "draw_pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    readme, benchmarks = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/benchmarks.md"))
    assert pages.with_table(readme, benchmarks) == readme
    table = pages.speed_table(benchmarks)
    assert table in readme and len(table.splitlines()) == 2 + len(pages.SETS)
    for line in table.splitlines()[2:]:
        ours, theirs, ratio = (float(line.split("|")[k].replace(",", "")) for k in (4, 5, 7))
        assert theirs / ours == pytest.approx(ratio, rel=0.02)


def test_readme_shows_a_picture_on_its_first_screen():
    """The first picture stands before the first code, and its file exists."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    picture = re.search(r"!\[[^\]]+\]\(([^)]+)\)", readme)
    assert picture.start() < readme.index("```python")
    assert (ROOT / picture[1]).exists()


def test_docstrings_become_restructured_text():
    """A norm is no substitution, a name no link, a formula a literal block, an example stays as it is."""
    docstrings = module(ROOT / "docs" / "_ext" / "docstrings.py")
    lines = [
        "A norm |w| and ``|v|`` and coef_ of it:",
        "",
        "    |w|² = α'Kα",
        "",
        "Attributes",
        "----------",
        "coef_ : array",
        "    |w| of intercept_.",
        "gamma : as in ``SVC``.",
        "",
        ">>> abs(-1) | 2",
        "3",
    ]
    docstrings.process(None, "class", "x", None, None, lines)
    assert lines[0] == r"A norm \|w\| and ``|v|`` and coef\_ of it:"
    assert lines[2:5] == ["::", "", "    |w|² = α'Kα"]
    assert lines[8:11] == ["coef_ : array", r"    \|w\| of intercept\_.", "gamma : as in :class:`~mercer.SVC`."]
    assert lines[-2:] == [">>> abs(-1) | 2", "3"]


def test_links_work_in_the_repository_and_on_the_site():
    """A link to a file at the top of the repository leads to its page, one to a page of docs/ to that page."""
    links = module(ROOT / "docs" / "_ext" / "repository_links.py")
    docs = ROOT / "docs"
    text, file = links.page_text(docs, "design/svm", "[a](../../GLOSSARY.md#words) [b](linear.md) [c](https://x.org)")
    assert text == "[a](/glossary.md#words) [b](/design/linear.md) [c](https://x.org)" and file is None
    text, _ = links.page_text(
        docs,
        "learn",
        "[1 hard margin](../examples/systems/plot_01_hard_svm.py) [all](../examples/gallery/GALLERY_HEADER.rst)",
    )
    assert text == "[1 hard margin](/auto_systems/plot_01_hard_svm.rst) [all](/auto_gallery/index.rst)"
    text, file = links.page_text(docs, "glossary", "<!-- file: ../GLOSSARY.md -->\n")
    assert file.name == "GLOSSARY.md" and text.startswith("# Glossary")


def test_formulas_need_no_script():
    """TeX becomes MathML, which browsers draw."""
    mathml = module(ROOT / "docs" / "_ext" / "mathml.py")
    from docutils import nodes

    drawn = mathml._mathml(nodes.math(text=r"\tfrac12 |w|^2 + \sum_i \alpha_i"), block=False)
    assert drawn.startswith("<math") and "α" in drawn
    # the digits of a short fraction are its two parts
    assert re.search(r"<mfrac[^>]*>\s*<mn>1</mn>\s*<mn>2</mn>\s*</mfrac>", drawn)


def test_the_site_is_offline():
    """No page asks for a script, a style or a font from elsewhere; skipped where the site is not built."""
    built = ROOT / "build" / "docs"
    if not (built / "index.html").exists():
        pytest.skip("make docs builds the site")
    asked = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=[\"'](?:https?:)?//[^\"']+", re.IGNORECASE)
    found = {match[0] for page in built.rglob("*.html") for match in asked.finditer(page.read_text(encoding="utf-8"))}
    assert found == set()
    loaded = re.compile(r"url\([\"']?https?://[^)]+")
    assert {match[0] for file in built.rglob("*.css") for match in loaded.finditer(file.read_text())} == set()
