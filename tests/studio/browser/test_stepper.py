"""Procedures step by step on the page: their pictures, moving over the steps, the machine of a step on the plane."""

import numpy as np
import pytest
from tests.studio.browser.studio_page import PATIENCE

POINTS = [
    [-1.06, -1.08, 0], [-0.4, -1.06, 0], [0.41, 0.15, 0], [-1.02, -0.06, 0], [0.17, 1.3, 0],
    [0.25, 1.04, 1], [1.11, 0.23, 1], [1.46, 0.7, 1], [1.45, 0.08, 1], [0.8, 0.64, 1],
]  # fmt: skip
SEPARABLE = [
    [-1.5, -0.6, 0],
    [-0.2, 1.5, 0],
    [-1.2, 0.4, 0],
    [-0.8, -1.4, 0],
    [1.1, 0.5, 1],
    [1.6, -0.4, 1],
    [0.7, 1.5, 1],
]
LINE = [[x, round(float(np.sin(2 * x)), 3), 0] for x in np.linspace(-2, 2, 12).round(2).tolist()]
CASES = {
    "smo": ({"points": POINTS}, "dual", ".mp-box"),
    "coordinate": ({"points": POINTS, "bias": False}, "dual", ".mp-contour"),
    "pegasos": ({"points": POINTS, "bias": False}, "objective", ".mp-trail"),
    "perceptron": ({"points": SEPARABLE, "bias": False}, "updates so far", ".mp-trail"),
    "lms": ({"points": LINE, "mode": "regress", "kernel": "gaussian(gamma=1.0)"}, "error", ".mp-bar"),
}


def steps(open_studio, name, **more):
    """The page with a procedure chosen in the panel of steps."""
    state, _, _ = CASES[name]
    studio = open_studio({"kernel": "linear()", "C": 1.0, **state}, **more)
    studio.page.get_by_role("tab", name="Steps").click()
    studio.page.get_by_label("Procedure", exact=True).select_option(name)
    studio.page.locator("mercer-stepper .mp-chart").last.wait_for(timeout=1000 * PATIENCE)
    return studio


def step_of(studio):
    """The number of the present step."""
    return int(studio.page.locator("mercer-stepper .mp-count").inner_text().split()[1])


@pytest.mark.parametrize("name", CASES)
def test_each_procedure_has_its_picture_and_its_measure(open_studio, name):
    """Choosing a procedure draws its picture and its measure; a step changes the words and the machine on the plane."""
    studio = steps(open_studio, name)
    page = studio.page
    _, measure, picture = CASES[name]
    assert studio.state["procedure"]["name"] == name
    assert measure in page.locator("mercer-stepper .mp-figure").last.inner_text()
    assert page.locator("mercer-stepper .mp-words").inner_text() == "Start: every coefficient is 0."
    page.get_by_role("button", name="One step forward").click()
    studio.wait("mercerStudio.plane._frame?.step === 1")
    assert page.locator(f"mercer-stepper {picture}").count() > 0
    assert page.locator("mercer-stepper .mp-words").inner_text() != "Start: every coefficient is 0."
    first = page.evaluate("mercerStudio.plane._frame.answer.points.alpha")
    assert np.count_nonzero(first) > 0
    page.get_by_role("button", name="To the end").click()
    studio.wait("mercerStudio.plane._frame?.step > 1")
    assert page.evaluate("mercerStudio.plane._frame.answer.points.alpha") != first
    page.get_by_role("button", name="leave").click()
    studio.wait("mercerStudio.plane._frame === null")
    assert studio.state["procedure"] is None


def test_smo_ends_at_the_exact_machine(open_studio):
    """After the last step of SMO, the coefficients on the plane are those of the exact machine."""
    studio = steps(open_studio, "smo")
    exact = studio.result["points"]["alpha"]
    studio.page.get_by_role("button", name="To the end").click()
    studio.wait("mercerStudio.plane._frame?.step > 5")
    np.testing.assert_allclose(studio.page.evaluate("mercerStudio.plane._frame.answer.points.alpha"), exact, atol=1e-2)


def test_rings_slack_and_card_are_those_of_the_step(open_studio):
    """At the start no point is a support vector, each has slack 1, and the card says so; grey is the optimum."""
    studio = steps(open_studio, "coordinate")
    page = studio.page
    studio.wait("mercerStudio.plane._frame?.grey")
    assert page.locator("mercer-plane .point.zero").count() == len(POINTS)
    assert page.locator("mercer-plane .point.free, mercer-plane .point.bound").count() == 0
    page.mouse.move(*studio.pixels(*POINTS[0][:2]))
    card = page.locator(".point-card")
    card.get_by_text("after step 0").wait_for()
    assert "α\n0" in card.inner_text() and "slack ξ\n1" in card.inner_text()
    # the machine of this procedure has no bias, that of the state has one
    studio.update(bias=True)
    studio.wait("mercerStudio.plane._frame?.grey")
    grey, shown = page.evaluate("[mercerStudio.plane._frame.grey.points.f, mercerStudio.plane.result.points.f]")
    assert np.abs(np.subtract(grey, shown)).max() > 1e-2
    page.get_by_role("button", name="To the end").click()
    studio.wait("mercerStudio.plane._frame?.step > 5")
    end = page.evaluate("mercerStudio.plane._frame.answer.points.f")
    np.testing.assert_allclose(end, grey, atol=1e-2)
    svg = page.evaluate("mercerStudio.plane.toSVG()")
    assert (
        svg.count("<circle")
        == page.locator("mercer-plane .point.free").count() + 2 * page.locator("mercer-plane .point.bound").count()
    )


def test_grey_of_lms_is_the_function_of_least_squares(open_studio):
    """The grey curve is the limit of LMS, not the regression machine of the state."""
    studio = steps(open_studio, "lms")
    studio.wait("mercerStudio.plane._frame?.grey")
    grey, tube = studio.page.evaluate("[mercerStudio.plane._frame.grey.points.f, mercerStudio.plane.result.points.f]")
    target = np.array([point[1] for point in LINE])
    assert np.abs(grey - target).sum() < 0.5 * np.abs(tube - target).sum()


def bars(studio):
    """The shares of the track that the dual and the primal bar cover."""
    widths = studio.page.evaluate("[...document.querySelectorAll('.bars .bar')].map((bar) => bar.style.width)")
    return [float(width.rstrip("%")) for width in widths]


def test_the_bars_of_primal_and_dual_meet_at_the_last_step(open_studio):
    """At the start the bars are far apart, at the end they meet; leaving the steps shows those of the exact machine."""
    studio = steps(open_studio, "smo")
    studio.wait("mercerStudio.plane._frame?.step === 0")
    dual, primal = bars(studio)
    assert dual < 5 and dual + primal < 60
    studio.page.get_by_role("button", name="To the end").click()
    studio.wait("mercerStudio.plane._frame?.step > 5")
    assert sum(bars(studio)) == pytest.approx(100, abs=1)
    assert studio.page.locator("mercer-certificate .badge").inner_text().startswith("Step ")
    studio.page.get_by_role("button", name="leave").click()
    studio.wait("mercerStudio.plane._frame === null")
    assert "Optimal" in studio.page.locator("mercer-certificate .badge").inner_text()


def test_the_bars_move_with_the_value(open_studio):
    """A machine of another value has its bars meet elsewhere on the same scale."""
    studio = open_studio({"points": POINTS, "kernel": "linear()"})
    before, value = bars(studio), studio.result["certificate"]["primal"]
    assert sum(before) == pytest.approx(100, abs=0.1)
    after = bars(studio.update(C=1.3))
    assert after[0] == pytest.approx(before[0] * studio.result["certificate"]["primal"] / value, rel=1e-3)
    assert after[0] > before[0] + 2


def test_forward_back_slider_and_keys_agree(open_studio):
    """Buttons, slider and arrow keys move over the same steps; the state keeps the step; undo does not count them."""
    studio = steps(open_studio, "smo")
    page = studio.page
    forward = page.get_by_role("button", name="One step forward")
    forward.click()
    forward.click()
    assert step_of(studio) == 2
    page.get_by_role("button", name="One step back").click()
    assert step_of(studio) == 1
    page.keyboard.press("ArrowRight")
    assert step_of(studio) == 2
    slider = page.get_by_label("Step", exact=True)
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert step_of(studio) == 3
    assert slider.get_attribute("aria-valuetext").startswith("step 3 of")
    assert studio.state["procedure"]["step"] == 3
    page.get_by_role("button", name="To the start").click()
    assert step_of(studio) == 0


def test_play_runs_to_the_end_and_pauses(open_studio):
    """Play moves on by itself, pause stops it, and at the end it stops by itself."""
    studio = steps(open_studio, "smo")
    page = studio.page
    page.get_by_label("Speed").select_option("5")
    page.get_by_role("button", name="play").click()
    studio.wait("document.querySelector('mercer-stepper').position >= 2")
    page.get_by_role("button", name="pause").click()
    stopped = step_of(studio)
    page.wait_for_timeout(500)
    assert step_of(studio) == stopped
    page.get_by_label("Speed").select_option("30")
    page.get_by_role("button", name="play").click()
    studio.wait(
        "(() => { const s = document.querySelector('mercer-stepper'); "
        "return !s.playing && s.position === s.answer.frames.length - 1 })()"
    )


def test_a_changed_machine_gets_new_steps(open_studio):
    """A new C computes the steps again: the box of SMO has the new C."""
    studio = steps(open_studio, "smo")
    studio.update(C=0.25)
    studio.wait("document.querySelector('mercer-stepper').answer?.box[0].C === 0.25")


def test_coordinate_rules_and_axes(open_studio):
    """The three rules give runs of different lengths; the axes are the chosen points, and wrong ones are refused."""
    studio = steps(open_studio, "coordinate")
    page = studio.page
    lengths = {}
    for rule in ("round-robin", "random", "greedy"):
        page.get_by_label("Next coordinate").select_option(rule)
        studio.wait(f"document.querySelector('mercer-stepper').asked?.rule === '{rule}'")
        lengths[rule] = page.evaluate("document.querySelector('mercer-stepper').answer.n_steps")
    assert lengths["greedy"] < lengths["round-robin"]
    page.get_by_label("Point of the horizontal axis").fill("3")
    page.get_by_label("Point of the vertical axis").fill("7")
    page.keyboard.press("Tab")
    studio.wait("document.querySelector('mercer-stepper').answer.contours.coordinates.join() === '2,6'")
    page.get_by_label("Point of the vertical axis").fill("99")
    page.keyboard.press("Tab")
    assert page.locator("mercer-stepper .mp-error").inner_text() == "Choose two different points between 1 and 10."


def test_perceptron_stays_below_its_bound(open_studio):
    """The chart has the bound (ρ/γ)² as a line, and the updates stay below it."""
    studio = steps(open_studio, "perceptron")
    answer = studio.page.evaluate("document.querySelector('mercer-stepper').answer")
    assert 0 < max(answer["columns"]["mistakes"]) <= answer["bound"]
    assert "at most (ρ/γ)²" in studio.page.locator("mercer-stepper .mp-chart").last.text_content()


def test_a_procedure_that_cannot_run_says_why(open_studio):
    """SMO with a hard margin is refused in words, and the exact machine stays on the plane."""
    studio = open_studio({"points": SEPARABLE, "kernel": "linear()", "C": "inf"})
    studio.page.get_by_role("tab", name="Steps").click()
    studio.page.get_by_label("Procedure", exact=True).select_option("smo")
    error = studio.page.locator("mercer-stepper .mp-error")
    error.wait_for(timeout=1000 * PATIENCE)
    assert "finite C" in error.inner_text()
    assert studio.page.evaluate("mercerStudio.plane._frame") is None
    studio.errors.clear()  # the browser logs the answer 422


def test_steps_in_the_address(open_studio):
    """An address with a procedure and a step opens at that step."""
    state = {"points": POINTS, "kernel": "linear()", "procedure": {"name": "smo", "rule": None, "step": 4}}
    studio = open_studio(state)
    studio.page.get_by_role("tab", name="Steps").click()
    studio.wait("mercerStudio.plane._frame?.step === 4")
    assert step_of(studio) == 4
