"""The panels beside the plane: kernel card, Gram matrix, feature space, γ × C map, take away."""

import json
import math

import numpy as np
import pytest
from tests.studio.browser.studio_page import PATIENCE

POINTS = [
    [-1.2, -0.5, 0], [-0.8, 0.6, 0], [-1.6, 0.2, 0], [-0.5, -1.0, 0], [-0.9, -0.1, 0],
    [1.1, 0.4, 1], [0.7, -0.5, 1], [1.5, 0.1, 1], [0.4, 1.1, 1], [0.9, 0.8, 1],
]  # fmt: skip
DISC = "constant(1.0) + on(0, linear()) ** 2 + on(1, linear()) ** 2"
INNER = [[0.4, 0.2, 1], [-0.3, 0.5, 1], [0.1, -0.6, 1], [-0.5, -0.3, 1]]
OUTER = [[1.8, 0.3, 0], [-1.7, 0.6, 0], [0.4, 1.9, 0], [-0.5, -1.8, 0], [1.3, -1.4, 0]]


def show(open_studio, tab, state, **more):
    """The page of a state with a tab open."""
    studio = open_studio(state, **more)
    studio.page.get_by_role("tab", name=tab).click()
    return studio


def gaussian(gamma=0.5):
    """The kernel matrix of the points."""
    X = np.array(POINTS)[:, :2]
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))


def test_mercer_light(open_studio):
    """The card has the formula as MathML, the smallest eigenvalue, and says in words whether the kernel is one."""
    studio = show(open_studio, "Kernel", {"points": POINTS, "kernel": "gaussian(gamma=0.5)"})
    page = studio.page
    light = page.locator("mercer-kernel .mp-light")
    light.get_by_text("Positive semidefinite on these points").wait_for(timeout=1000 * PATIENCE)
    assert page.locator("mercer-kernel math mo").count() > 0
    smallest = float(np.linalg.eigvalsh(gaussian())[0])
    assert f"{float(f'{smallest:.4g}'):g}" in page.locator("mercer-kernel .mp-numbers").inner_text()
    studio.update(kernel="sigmoid(gamma=1.0, coef0=-1.0)")
    light.get_by_text("Not positive semidefinite").wait_for(timeout=1000 * PATIENCE)
    assert light.get_by_text("✗").count() == 1
    assert page.locator("mercer-kernel .mp-advice li").count() > 0


def test_gram_matrix_is_in_step_with_the_selection(open_studio):
    """The readout of a cell is k(x, z); a click marks its pair; arrow keys and Enter do the same."""
    studio = show(open_studio, "Gram matrix", {"points": POINTS, "kernel": "gaussian(gamma=0.5)"})
    page = studio.page
    studio.wait("document.querySelector('mercer-gram').answer")
    order = page.evaluate("document.querySelector('mercer-gram').answer.order")
    canvas = page.locator("mercer-gram .mp-gram")
    box = canvas.bounding_box()
    row, column = 2, 7
    canvas.click(position={"x": (column + 0.5) / 10 * box["width"], "y": (row + 0.5) / 10 * box["height"]})
    assert studio.state["selected"] == order[row]
    words = page.locator("mercer-gram .mp-words")
    expected = gaussian()[order[row], order[column]]
    assert words.inner_text().startswith(f"k(x{order[row] + 1}, x{order[column] + 1}) = ")
    assert float(words.inner_text().split("= ")[1].split(" (")[0]) == pytest.approx(expected, rel=1e-3)
    assert "different classes" in words.inner_text()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert studio.state["selected"] == order[row + 1]


def test_feature_space_of_a_regression_is_not_asked_for(open_studio):
    """In modes over one variable the panel says what it is for, without a refused question; in the plane it draws."""
    studio = show(open_studio, "Feature space", {"points": INNER + OUTER, "kernel": DISC, "C": 10.0})
    caption = studio.page.locator("mercer-lift .mp-words").first
    studio.page.click("[data-mode=regress]")
    studio.settle()
    assert "for classification and one-class machines" in caption.inner_text()
    assert not studio.page.locator("mercer-lift canvas").is_visible()
    studio.page.click("[data-mode=classify]")
    studio.settle()
    studio.wait("document.querySelector('mercer-lift').answer?.plane")
    assert studio.page.locator("mercer-lift canvas").is_visible()


def test_feature_space_turns(open_studio):
    """The disc's map is drawn exactly with its line; dragging and arrow keys turn it; a click selects a point."""
    studio = show(open_studio, "Feature space", {"points": INNER + OUTER, "kernel": DISC, "C": 10.0})
    page = studio.page
    studio.wait("document.querySelector('mercer-lift').answer?.plane")
    answer = page.evaluate("document.querySelector('mercer-lift').answer")
    np.testing.assert_allclose(np.array(answer["points"])[:, :2], np.array(INNER + OUTER)[:, :2] ** 2, atol=1e-5)
    value = np.array(answer["points"]) @ answer["plane"]["normal"] + answer["plane"]["offset"]
    np.testing.assert_allclose(value, studio.result["points"]["f"], atol=1e-3)
    canvas = page.locator("mercer-lift canvas")
    turn = page.evaluate("document.querySelector('mercer-lift').view.turn")
    canvas.focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.querySelector('mercer-lift').view.turn") > turn
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 150, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 40, steps=4)
    page.mouse.up()
    assert page.evaluate("document.querySelector('mercer-lift').view.tilt") > 0.42
    x, y, index = page.evaluate("document.querySelector('mercer-lift').screen[0]")
    canvas.click(position={"x": x, "y": y})
    assert studio.state["selected"] is not None
    chosen = page.evaluate("i => document.querySelector('mercer-lift').screen.find(p => p[2] === i)", index)
    assert math.hypot(chosen[0] - x, chosen[1] - y) < 1e-6


def test_map_marks_the_present_place_and_goes_elsewhere(open_studio):
    """The nearest cell is marked; a click sets γ and C; arrow keys move over the cells; undo goes back."""
    studio = show(open_studio, "γ × C map", {"points": POINTS, "kernel": "gaussian(gamma=1.0)", "C": 1.0})
    page = studio.page
    page.locator("mercer-map .mp-here").wait_for(timeout=1000 * PATIENCE)
    assert page.locator("mercer-map .mp-here").get_attribute("aria-label").startswith("γ 1, C 1:")
    page.get_by_role("gridcell", name="γ 0.1, C 100:").click()
    assert (studio.state["kernel"], studio.state["C"]) == ("gaussian(gamma=0.1)", 100)
    assert page.locator("mercer-map .mp-here").get_attribute("aria-label").startswith("γ 0.1, C 100:")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert studio.state["C"] == 10
    page.get_by_role("button", name="go to the best").click()
    best = page.evaluate("document.querySelector('mercer-map').answer.best")
    assert studio.state["C"] == best["C"]
    assert page.locator("mercer-map .mp-here").inner_text().endswith("★")


def test_map_of_a_kernel_without_width(open_studio):
    """A linear kernel has a map over C alone."""
    studio = show(open_studio, "γ × C map", {"points": POINTS, "kernel": "linear()", "C": 1.0})
    studio.page.locator("mercer-map .mp-map-cell").first.wait_for(timeout=1000 * PATIENCE)
    assert studio.page.locator("mercer-map .mp-map-cell").count() == 7
    studio.page.get_by_role("gridcell", name="C 100:").click()
    assert (studio.state["kernel"], studio.state["C"]) == ("linear()", 100)


def test_take_away_files(open_studio, tmp_path):
    """Code, PNG, SVG, model, page and state are handed out; model and state are those of the page."""
    studio = show(open_studio, "Take away", {"points": POINTS, "kernel": "gaussian(gamma=0.5)", "C": 2.0})
    page = studio.page
    page.locator("mercer-takeaway pre").get_by_text("certificate").first.wait_for(timeout=1000 * PATIENCE)
    kept = {}
    for button in (
        "download studio.py",
        "picture, PNG",
        "picture, SVG",
        "model, .mercer",
        "page that moves",
        "state, JSON",
    ):
        with page.expect_download(timeout=1000 * PATIENCE) as waiting:
            page.locator("mercer-takeaway").get_by_role("button", name=button).click()
        found = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(found)
        kept[button] = found
    assert kept["picture, PNG"].read_bytes().startswith(b"\x89PNG")
    assert kept["picture, SVG"].read_text(encoding="utf-8").lstrip().startswith(("<svg", "<?xml"))
    compile(kept["download studio.py"].read_text(encoding="utf-8"), "studio.py", "exec")
    assert "<html" in kept["page that moves"].read_text(encoding="utf-8").lower()
    assert json.loads(kept["state, JSON"].read_text(encoding="utf-8")) == studio.state
    import mercer

    model = mercer.load(kept["model, .mercer"])
    f = model.decision_function(np.array(POINTS)[:, :2])
    np.testing.assert_allclose(f, studio.result["points"]["f"], atol=1e-4)


@pytest.mark.parametrize("dark", [False, True])
def test_panels_fit_a_phone(open_studio, dark):
    """At 390 pixels no panel is wider than the page, in the light and in the dark theme."""
    studio = open_studio({"points": POINTS, "kernel": "gaussian(gamma=0.5)"}, width=390, height=844, dark=dark)
    page = studio.page
    for tab in ("Kernel", "Lessons", "Steps", "Gram matrix", "Feature space", "γ × C map", "My data", "Take away"):
        page.get_by_role("tab", name=tab).click()
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, tab


def test_every_control_of_the_panels_has_a_name(open_studio):
    """Buttons, inputs, selects and canvases of the panels have a name for screen readers."""
    studio = open_studio({"points": POINTS})
    nameless = studio.page.evaluate("""() => [...document.querySelectorAll(
        ".mp button, .mp select, .mp input, .mp canvas:not([aria-hidden]), .mp svg[role=img], .mp progress"
        )].filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() ||
          e.closest("label")?.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML.slice(0, 120))""")
    assert nameless == []


def test_another_task_clears_the_map(open_studio):
    """In other tasks no old map is shown, and none can be computed; back in classification it is computed."""
    studio = show(open_studio, "γ × C map", {"points": POINTS, "kernel": "gaussian(gamma=1.0)"})
    page = studio.page
    page.locator("mercer-map .mp-map-cell").first.wait_for(timeout=1000 * PATIENCE)
    studio.update(mode="regress")
    assert page.locator("mercer-map .mp-map-cell").count() == 0
    assert page.locator("mercer-map .mp-words").inner_text() == "The map is for classification."
    assert page.get_by_role("button", name="compute the map").is_disabled()
    studio.update(mode="classify")
    page.get_by_role("button", name="compute the map").click()
    page.locator("mercer-map .mp-map-cell").first.wait_for(timeout=1000 * PATIENCE)
