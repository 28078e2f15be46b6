"""The numbers that pages state about the studio are those of the code."""

from pathlib import Path

import pytest

from mercer.studio import answers, export, server, state, table_files, tables
from mercer.studio.lessons import package_lessons
from mercer.studio.panels import fitted_machine, path, point, search_map, step_frames
from mercer.studio.presets import all_presets

ROOT = Path(__file__).parents[2]
LESSONS = len(package_lessons())
# of each page the sentences with a number, with the number that the code has
STATED = {
    "README.md": [f"{LESSONS} lessons, SMO step by step"],
    "CHANGELOG.md": [f"{LESSONS} lesson cards follow the lecture notes"],
    "docs/studio.md": [
        f"{LESSONS} lesson cards follow the [notes]",
        f"Up to {state.MOST_POINTS:,} points in up to {state.MOST_CLASSES} classes",
        f"At most {state.MOST_POINTS:,} points; the path for at most {path.MOST_POINTS:,}, step mode for at most "
        f"{step_frames.MOST_POINTS}.",
        f"Tables have at most {table_files.MOST_COLUMNS:,} columns and {table_files.MOST_CELLS // 10**6} million cells",
        f"At most {state.MOST_POINTS:,} rows are shown, {tables.MOST_COMPONENTS} as kernel components and "
        f"{tables.MOST_STRINGS} as strings",
    ],
    "docs/design/studio.md": [
        f"Fits have a time limit of {fitted_machine.TIME_LIMIT:.0f} s, paths {path.TIME_LIMIT:.0f} s, "
        f"leave-one-out {point.LEAVING_OUT:.0f} s, maps {search_map.TIME_LIMIT:.0f} s, "
        f"pages {export.TIME_LIMIT:.0f} s.",
        f"A state has at most {state.MOST_POINTS:,} points",
        f"at most {state.MOST_KERNELS} parts and exponents up to {state.LARGEST_EXPONENT:,}, "
        f"a grid {answers.MOST_GRID:,} points",
        f"more than {server.TIME_LIMIT:.0f} s is given up",
        f"up to {export.MOST_STOPS} machines",
        f"on a {export.GRID[0]} × {export.GRID[1]} grid",
    ],
}


@pytest.mark.parametrize("page", STATED)
def test_stated_numbers_are_those_of_the_code(page):
    """Each sentence with a number of lessons, points, cells or seconds is on its page as the code has it."""
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert [sentence for sentence in STATED[page] if sentence not in text] == []


def test_fifteen_presets():
    """There are fifteen point sets to begin with, and exported pages have labels on a grid four times as fine."""
    assert "Fifteen presets" in (ROOT / "docs" / "studio.md").read_text(encoding="utf-8")
    assert len(all_presets()) == 15
    assert "four times as fine" in (ROOT / "docs" / "design" / "studio.md").read_text(encoding="utf-8")
    assert export.FINER == 4
