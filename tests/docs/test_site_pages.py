"""The pages of the documentation site run as printed, from an empty folder, and print what they say."""

import re
from pathlib import Path

import matplotlib
import pytest
from tests.pages import run, steps

DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = ("guide", "howto", "coming_from")
PAGES = [DOCS / "getting_started.md", DOCS / "faq.md"]
PAGES += sorted(file for part in FOLDERS for file in (DOCS / part).glob("*.md"))
LINKED = [
    *PAGES,
    *(DOCS / name for name in ("index.md", "learn.md", "project.md", "studio.md", "exercises.md", "practice.md")),
]
LINKED += [DOCS.parent / "README.md", *sorted((DOCS / "tutorials").glob("*.md"))]
RUN = [page for page in PAGES if steps(page)]
# pages whose code takes more than five seconds
SLOW = ("faq", "calibrate")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#([^)]*))?\)")
# the pages of the gallery and of the reference are generated
GENERATED = ("auto_gallery", "auto_systems")


def of(page):
    marks = [pytest.mark.slow] if page.stem in SLOW else []
    return pytest.param(page, id=page.stem, marks=marks)


@pytest.mark.parametrize("page", [of(page) for page in RUN])
def test_page_runs_as_printed(page, tmp_path, monkeypatch):
    """Every python block of a page works in the order of the page, and prints what the page says."""
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    found = steps(page)
    assert sum(step.output is not None for step in found) >= 1
    namespace = {"__name__": page.stem}
    for step in found:
        run(step, namespace)


def slug(heading):
    """The anchor of a heading, as the hosting service and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def anchors(file):
    return {slug(line.lstrip("#")) for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("#")}


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    """Every relative link names a file that exists, and every anchor a heading of it."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target, anchor in LINK.findall(prose):
        if target.startswith(GENERATED):
            continue
        file = (page.parent / target).resolve()
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            top = {"contributing.md": DOCS.parent / "CONTRIBUTING.md"}.get(file.name, file)
            assert anchor in anchors(top), f"{page.name} links to {target}#{anchor}"


def test_every_complaint_names_its_thread():
    """Each question of the FAQ cites where it was asked."""
    questions = re.split(r"^## ", (DOCS / "faq.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert len(questions) >= 11
    assert [text.splitlines()[0] for text in questions if not re.search(r"\]\(https://", text)] == []


def test_the_index_leads_to_every_page_of_the_notes():
    """Each of the forty systems has a script, and the index links to its page once."""
    linked = re.findall(
        r"\]\(../examples/systems/(plot_\d\d_\w+)\.py\)", (DOCS / "learn.md").read_text(encoding="utf-8")
    )
    assert sorted(linked) == sorted(file.stem for file in (DOCS.parent / "examples" / "systems").glob("plot_*.py"))
    assert len(linked) == 40
