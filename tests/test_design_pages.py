"""The pages of docs/design say what the code does: the walks, the folders, the links, and where thresholds stand.

``python tests/test_design_pages.py`` prints the files of each walk in the order in which they run.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mercer

ROOT = Path(__file__).parent.parent
DESIGN = ROOT / "docs" / "design"
PACKAGE = Path(mercer.__file__).parent
# a bullet of a walk: "- `svm/plan.py`: what it does"
BULLET = re.compile(r"^- `([\w/]+\.py)`", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
# names of constants that compare sizes
THRESHOLD = re.compile(r"(_UP_TO|_FROM)(_|$)")
# most files that a reader of ``SVC().fit`` opens
FILES_OF_A_FIT = 25

JOBS = ("SVC().fit", "predict", "SVCCV().fit")


def _job(name: str) -> Callable[[], object]:
    """What a walk is about: two classes, 3,000 samples of 10 features; 600 of them in a search."""
    X = np.random.default_rng(0).standard_normal((3000, 10))
    y = X[:, 0] * X[:, 1] > 0
    if name == "SVCCV().fit":
        return lambda: mercer.SVCCV(Cs=3, gammas=3).fit(X[:600], y[:600])
    if name == "predict":
        model = mercer.SVC().fit(X, y)
        return lambda: model.predict(X)
    return lambda: mercer.SVC().fit(X, y)


def visited(job: Callable[[], object]) -> list[str]:
    """The files of the package that run, in order; the second time, so that imports and compilation do not count."""
    job()
    seen: dict[str, None] = {}
    package = f"{PACKAGE}{os.sep}"

    def look(frame, event, arg):
        name = frame.f_code.co_filename
        if name.startswith(package):
            seen.setdefault(Path(name).relative_to(PACKAGE).as_posix())

    before = sys.getprofile()
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        job()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return list(seen)


def named(job: str) -> list[str]:
    """The files that the page names for a job: the bullets of the section with its name."""
    page = (DESIGN / "README.md").read_text(encoding="utf-8")
    section = page.partition(f"### `{job}`")[2]
    assert section, f"docs/design/README.md has no section '### `{job}`'."
    return BULLET.findall(re.split(r"^#", section, maxsplit=1, flags=re.MULTILINE)[0])


@pytest.mark.parametrize("job", JOBS)
def test_the_walk_names_every_file_that_runs(job):
    """A reader who follows the list misses nothing. Files that run on other machines only may be named, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = visited(_job(job))
    page = named(job)
    missing = [name for name in seen if name not in page]
    if job == "SVC().fit":
        assert len(seen) <= FILES_OF_A_FIT
    assert not missing, (
        f"docs/design/README.md, '{job}': these files run and are not named: {', '.join(missing)}. "
        f"Named, but not run here: {', '.join(name for name in page if name not in seen) or 'none'}. "
        "`python tests/test_design_pages.py` prints all walks."
    )


@pytest.mark.parametrize("job", JOBS)
def test_the_walk_names_files_that_exist_and_each_once(job):
    """Files that were moved or removed are moved or removed on the page."""
    page = named(job)
    assert [name for name in page if not (PACKAGE / name).is_file()] == []
    assert len(page) == len(set(page))


def test_the_page_names_every_folder_of_the_package():
    """Each folder has its line in the list of layers."""
    page = (DESIGN / "README.md").read_text(encoding="utf-8")
    folders = {
        path.parent.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if path.parent != PACKAGE and path.name != "__init__.py"
    }
    assert {folder for folder in folders if f"`{folder}/`" not in page} == set()


@pytest.mark.parametrize("page", sorted(DESIGN.rglob("*.md")), ids=lambda path: path.relative_to(DESIGN).as_posix())
def test_links_and_files_of_design_pages_exist(page):
    """A link leads somewhere, and a path with a folder (`svm/plan.py`) is one of the package, the tests or the root."""
    text = page.read_text(encoding="utf-8")
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []
    if page.parent.name == "decisions":
        return  # records of their day: files may have moved since
    paths = re.findall(r"`((?:\w+/)+\w+\.(?:py|md))`", text)
    assert [path for path in paths if not ((PACKAGE / path).exists() or (ROOT / path).exists())] == []


def test_decisions_are_short_dated_and_numbered():
    """One decision each, on less than a screen, and listed on the page of decisions."""
    folder = DESIGN / "decisions"
    records = sorted(path for path in folder.glob("*.md") if path.name != "README.md")
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert [int(path.name[:3]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) < 25, path.name
        assert re.match(rf"# {path.name[:3]} .+\n\n20\d\d-\d\d-\d\d\n", text), path.name
        assert all(f"**{part}.**" in text for part in ("Context", "Measurement", "Decision")), path.name
        assert path.name in index, path.name


@pytest.mark.parametrize("page", sorted(DESIGN.glob("*.md")), ids=lambda path: path.name)
def test_design_pages_have_no_times(page):
    """Milliseconds and microseconds are those of one machine on one day: they stand in the decisions."""
    assert re.findall(r".*\d+ ?(?:ms|µs)\b.*", page.read_text(encoding="utf-8")) == []


def _constants(path: Path) -> list[str]:
    """Names in capitals that a module assigns; those that it imports do not count."""
    found = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        found += [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return [name for name in found if name.isupper()]


def test_size_thresholds_of_kernel_machines_stand_in_the_plan():
    """svm/plan.py alone decides by sizes; searches take their thresholds from there, rows in parts from PoolSizes."""
    files = [*sorted((PACKAGE / "svm").rglob("*.py")), PACKAGE / "selection/chains.py", PACKAGE / "selection/engine.py"]
    files += [*sorted((PACKAGE / "updates").glob("*.py")), PACKAGE / "parts/kernel_solver.py"]
    found = {path.name: [name for name in _constants(path) if THRESHOLD.search(name)] for path in files}
    assert found.pop("plan.py")
    assert {name: constants for name, constants in found.items() if constants} == {}


UNNAMED = 0, 0.5, 1, 2


def test_no_number_decides_without_a_name():
    """Kernel machines and updates compare with named constants only; 0, 1, 2 and a half need no name."""
    found = [
        f"{path.name}:{node.lineno}: {ast.unparse(node)}"
        for folder in ("svm", "updates")
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        for number in ast.walk(side)
        if isinstance(number, ast.Constant) and type(number.value) in (int, float) and number.value not in UNNAMED
    ]
    # the dtype of an array in compiled code is told by the bytes of a number
    assert [line for line in found if ".itemsize == " not in line] == []


def test_the_constants_of_working_sets_have_one_value_each():
    """Decomposition, the driver and what both call: no name stands for two numbers."""
    values = {}
    for name in ("_driver_loops", "decomposition", "_round_loops", "_smo_loops", "plan"):
        for node in ast.parse((PACKAGE / "svm" / f"{name}.py").read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign):
                (target,) = node.targets
                both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                pairs = zip(target.elts, node.value.elts, strict=True) if both else [(target, node.value)]
                for constant, value in pairs:
                    values.setdefault(ast.unparse(constant), set()).add(ast.unparse(value))
    assert {name: found for name, found in values.items() if len(found) > 1} == {}


def test_one_function_calls_solve_block():
    """All runs solve their working sets through `solve_members`."""
    calls = [
        f"{path.name}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and "solve_block" in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))
    ]
    assert len(calls) == 1, calls


if __name__ == "__main__":
    for title in JOBS:
        print(f"\n### `{title}`\n")
        known = named(title)
        for one in visited(_job(title)):
            print(f"- `{one}`" + ("" if one in known else "    <- not on the page"))
        print()


def test_hand_written_llvm_stands_in_one_folder_and_on_one_page():
    page = (DESIGN / "compiled_code.md").read_text(encoding="utf-8")
    section = page[page.index("## Hand-written LLVM") : page.index("## Threads")]
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if re.search(r"^from llvmlite import ir$", text, re.MULTILINE):
            name = path.relative_to(PACKAGE).as_posix()
            assert name.startswith("_compiled/"), name
            assert f"`{name}`" in section, f"docs/design/compiled_code.md does not name {name}"
