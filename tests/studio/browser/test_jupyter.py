"""The widget in a real JupyterLab; run where jupyterlab, ipykernel and chromium are installed."""

import json
import os
import re
import subprocess
import sys
import time

import pytest
from tests.studio.browser.conftest import CHROMIUM
from tests.studio.browser.studio_page import PATIENCE, SOURCES

START = "{'points': [[-1, 0, 0], [1, 0, 1]], 'kernel': 'linear()', 'C': 'inf', 'view': [-3, 3, -3, 3]}"
SHOW, PRINT, CHANGE = 0, 1, 2
CELLS = [
    f"from mercer.studio import StudioWidget\npage = StudioWidget({START})\npage",
    "print('last point', page.state['points'][-1], 'of', len(page.state['points']))",
    "page.state = {**page.state, 'points': [[0, 1, 0], [0, -1, 1], [1, -1, 1], [1, 1, 0], [-1, 1, 0]]}",
]


class Notebook:
    """A notebook in JupyterLab that shows the widget."""

    def __init__(self, page):
        self.page = page

    def run(self, cell):
        """Run one cell."""
        self.page.locator(".jp-Notebook .jp-Cell").nth(cell).locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")

    def wait(self, condition, what):
        """Wait until a condition is true."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"never true: {what}"
            self.page.wait_for_timeout(100)

    def printed(self):
        """The last point and the number of points that Python has."""
        prompts = self.page.locator(".jp-InputPrompt")
        before = prompts.all_inner_texts()
        self.run(PRINT)
        self.wait(
            lambda: prompts.all_inner_texts() != before and "[*]:" not in prompts.all_inner_texts(), "cell has run"
        )
        output = self.page.locator(".jp-OutputArea-output pre", has_text="last point")
        output.wait_for()
        x, y, label, count = map(float, re.findall(r"-?[\d.]+", output.inner_text()))
        return [x, y, label], int(count)

    def points(self):
        """The number of points that the widget shows."""
        return self.page.locator(".mercer-studio .point").count()

    def at(self, x, y):
        """Where a point of the plane, whose view is [-3, 3, -3, 3] or wider, is on the page: in shares of the plane."""
        self.page.locator("mercer-plane .surface").scroll_into_view_if_needed()
        box = self.page.locator("mercer-plane .surface").bounding_box()
        return box["x"] + x * box["width"], box["y"] + y * box["height"]


@pytest.fixture
def lab_address(tmp_path):
    """The address of a notebook in a running JupyterLab."""
    pytest.importorskip("jupyterlab")
    pytest.importorskip("ipykernel")
    if CHROMIUM is None:
        pytest.skip("needs chromium")
    cells = [
        {"cell_type": "code", "id": f"cell-{k}", "metadata": {}, "outputs": [], "execution_count": None, "source": text}
        for k, text in enumerate(CELLS)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (folder / "studio.ipynb").write_text(json.dumps(notebook))
    homes = {f"JUPYTER_{name}_DIR": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    log = tmp_path / "log"
    with log.open("w") as errors:
        server = subprocess.Popen(
            [
                *command,
                "--ip=127.0.0.1",
                "--port=0",
                f"--ServerApp.root_dir={folder}",
                "--IdentityProvider.token=studio",
            ],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, **homes, "PYTHONPATH": str(SOURCES), "IPYTHONDIR": str(tmp_path / "ipython")},
        )
    try:
        end = time.monotonic() + PATIENCE
        while not (found := re.search(r"http://127\.0\.0\.1:\d+/lab", log.read_text())):
            assert server.poll() is None and time.monotonic() < end, f"JupyterLab did not start: {log.read_text()}"
            time.sleep(0.2)
        yield f"{found.group()}/tree/studio.ipynb?token=studio"
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


@pytest.mark.slow
def test_the_widget_works_in_jupyterlab(lab_address, chromium):
    """Points added and dragged reach Python, a state set in Python reaches the page, and keys stay in the widget."""
    context = chromium.new_context(viewport={"width": 1280, "height": 1000})
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(lab_address)
    page.get_by_text("| Idle").wait_for(timeout=1000 * PATIENCE)
    notebook = Notebook(page)
    notebook.run(SHOW)
    badge = page.locator(".mercer-studio .badge")
    badge.wait_for(timeout=1000 * PATIENCE)
    notebook.wait(lambda: "Optimal, hard margin" in badge.inner_text(), "the machine is optimal")
    assert notebook.points() == 2

    page.mouse.click(*notebook.at(0.8, 0.25))
    for key in ("n", "a", "b", "d", "d", "x"):  # commands of a notebook: they would add, delete and cut cells
        page.keyboard.press(key)
    assert page.locator(".jp-Notebook .jp-Cell").count() == len(CELLS)
    notebook.wait(lambda: notebook.printed()[1] == 3, "Python has the new point")
    added, _ = notebook.printed()
    assert added[0] > 1 and added[1] > 1

    page.mouse.move(*notebook.at(0.8, 0.25))
    page.mouse.down()
    page.mouse.move(*notebook.at(0.9, 0.6), steps=8)
    page.mouse.up()
    notebook.wait(lambda: notebook.printed()[0][1] < 0, "Python has the dragged point")
    assert notebook.printed()[0][0] > added[0]

    notebook.run(CHANGE)
    notebook.wait(lambda: notebook.points() == 5, "the page shows the points set in Python")

    theme = page.locator(".mercer-studio")
    assert theme.get_attribute("data-theme") == "light"
    page.get_by_text("Settings", exact=True).first.click()
    page.get_by_text("Theme", exact=True).hover()
    page.get_by_text("JupyterLab Dark", exact=True).click()
    notebook.wait(lambda: theme.get_attribute("data-theme") == "dark", "the widget follows the theme of JupyterLab")
    assert errors == []
    context.close()
