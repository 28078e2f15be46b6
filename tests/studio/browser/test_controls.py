"""Every control changes the state it names, and the machine that is shown is the machine of that state."""

import numpy as np
import pytest

from mercer import SVC, leave_one_out

SLIDERS = [
    ("classify", "gamma", "kernel"),
    ("classify", "C", "C"),
    ("regress", "C", "C"),
    ("regress", "epsilon", "epsilon"),
    ("one_class", "nu", "nu"),
    ("quantiles", "C", "C"),
    ("process", "noise", "noise"),
    ("process", "gamma", "kernel"),
]


@pytest.fixture
def studio(open_studio):
    """A page with the default state."""
    return open_studio()


def slide(studio, name, share):
    """Move a slider to a share of its track with the mouse."""
    box = studio.page.locator(f"mercer-controls input[type=range][data-name='{name}']:visible").bounding_box()
    middle = box["y"] + box["height"] / 2
    studio.page.mouse.move(box["x"] + box["width"] / 2, middle)
    studio.page.mouse.down()
    for step in np.linspace(0.5, share, 5):
        studio.page.mouse.move(box["x"] + 8 + step * (box["width"] - 16), middle)
    studio.page.mouse.up()
    studio.settle()


@pytest.mark.parametrize(("mode", "slider", "field"), SLIDERS)
def test_each_slider_changes_its_field_and_the_machine(open_studio, mode, slider, field):
    """A slider that is dragged changes its field and the machine; one undo takes the whole movement back."""
    studio = open_studio()
    if mode != "classify":
        studio.page.click(f"[data-mode={mode}]")
        studio.settle()
    before, machine = studio.state, studio.result["points"]["f"]
    slide(studio, slider, 0.85)
    after = studio.state
    assert after[field] != before[field]
    assert {key for key in after if after[key] != before[key]} == {field}
    assert studio.result["points"]["f"] != machine
    slide(studio, slider, 0.1)
    assert studio.state[field] not in (before[field], after[field])
    for _ in range(2):
        studio.page.click("button[aria-label^=Undo]")
    studio.settle()
    assert studio.state[field] == before[field]
    np.testing.assert_allclose(studio.result["points"]["f"], machine, atol=1e-3)


def test_number_boxes_take_numbers_only(studio):
    """A typed number sets C; text and numbers outside the range are marked wrong and change nothing."""
    box = studio.page.get_by_label("C, as a number")
    box.fill("2.5")
    box.press("Enter")
    assert studio.settle().state["C"] == 2.5
    for wrong in ("-1", "nan", "1e9", "many", ""):
        box.fill(wrong)
        box.press("Enter")
        assert box.get_attribute("aria-invalid") == "true"
        assert studio.state["C"] == 2.5


def test_sliding_C_reads_the_exact_path(studio):
    """While C slides, machines come from the path without a fit, and equal those of a fit at the same C."""
    page = studio.page
    asked = []
    page.on("request", lambda request: asked.append(request.url.rsplit("/", 1)[-1]))
    box = page.locator("input[type=range][data-name=C]").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    page.mouse.down()
    for share in np.linspace(0.5, 0.7, 12):
        page.mouse.move(box["x"] + share * box["width"], middle)
        page.wait_for_timeout(40)
    studio.wait("mercerStudio.fitting.pending === 0")
    assert asked.count("at_C") >= 3 and "fit" not in asked
    on_path, C = studio.result, studio.state["C"]
    page.mouse.up()
    studio.settle()
    studio.update(bias=False)
    studio.update(bias=True)
    assert studio.state["C"] == C and "fit" in asked
    np.testing.assert_allclose(on_path["points"]["alpha"], studio.result["points"]["alpha"], atol=1e-3 * C)
    assert on_path["certificate"]["primal"] == pytest.approx(studio.result["certificate"]["primal"], rel=1e-5)


def test_breaks_of_the_path_are_marked_and_reached(studio):
    """The path's breaks are drawn below the slider; the arrows set C to the next and the previous break."""
    page = studio.page
    breaks = page.evaluate("document.querySelector('mercer-controls')._path.C")
    assert page.locator("canvas.slider-marks:visible").count() == 1
    assert f"{len(breaks)} breaks" in page.inner_text(".path-line")
    C = studio.state["C"]
    page.click("button[aria-label='C at the next break']")
    above = min(one for one in breaks if one > C)
    assert studio.settle().state["C"] == pytest.approx(above, rel=1e-6)
    page.click("button[aria-label='C at the previous break']")
    assert studio.settle().state["C"] == pytest.approx(max(one for one in breaks if one < above * (1 - 1e-6)), rel=1e-6)


@pytest.mark.slow
def test_kernels_by_name(studio):
    """Each kernel of the list is read by the back end with the parameters of its sliders."""
    names = studio.page.eval_on_selector_all("#mercer-kernel-name option", "all => all.map(one => one.value)")
    assert len(names) == 9 and "matern" in names
    for name in filter(None, names):
        studio.page.select_option("#mercer-kernel-name", name)
        studio.settle()
        assert studio.state["kernel"].startswith(f"{name}(")
        assert studio.result["status"] in ("optimal", "limit")
        assert studio.page.input_value("#mercer-kernel-text") == studio.state["kernel"]
        sliders = studio.page.locator("mercer-controls fieldset:nth-of-type(3) input[type=range]").count()
        assert sliders == studio.state["kernel"].count("=")


def test_a_kernel_by_expression(studio):
    """An expression is fitted as typed; one that cannot be read shows why, and the machine stays."""
    page = studio.page
    page.fill("#mercer-kernel-text", "0.5*gaussian(gamma=2) + linear()")
    page.keyboard.press("Enter")
    studio.wait("mercerStudio.store.state.kernel === '0.5*gaussian(gamma=2) + linear()'")
    studio.settle()
    assert page.input_value("#mercer-kernel-name") == ""
    shown = studio.result
    page.fill("#mercer-kernel-text", "gauss(")
    page.keyboard.press("Enter")
    studio.wait("!document.querySelector('#mercer-kernel-error').hidden")
    assert "Cannot read the kernel 'gauss('" in page.inner_text("#mercer-kernel-error")
    assert page.get_attribute("#mercer-kernel-text", "aria-invalid") == "true"
    assert studio.state["kernel"] == "0.5*gaussian(gamma=2) + linear()"
    assert studio.result["points"] == shown["points"]
    page.fill("#mercer-kernel-text", "linear()")
    page.keyboard.press("Enter")
    studio.wait("mercerStudio.store.state.kernel === 'linear()'")
    assert page.locator("#mercer-kernel-error").is_hidden()
    assert page.input_value("#mercer-kernel-name") == "linear"
    # the refused expression is a console error of the browser itself
    assert all("422" in error for error in studio.errors)
    studio.errors.clear()


def test_hard_margin_loss_and_bias(open_studio):
    """The hard margin sets C to infinity and back; loss and bias change the machine."""
    studio = open_studio({"points": [[-1, 0.5, 0], [1.5, 0, 1], [2, 1, 1]], "kernel": "linear()", "C": 3.0})
    page = studio.page
    page.check("#mercer-hard")
    assert studio.settle().state["C"] == "inf"
    assert studio.result["status"] == "separable"
    assert page.locator("input[type=range][data-name=C]").is_disabled()
    page.uncheck("#mercer-hard")
    assert studio.settle().state["C"] == 3.0
    hinge = studio.result["certificate"]["primal"]
    page.select_option("#mercer-loss", "squared_hinge")
    assert studio.settle().state["loss"] == "squared_hinge"
    page.select_option("#mercer-loss", "hinge")
    page.uncheck("#mercer-bias")
    studio.settle()
    assert studio.result["line"]["b"] == 0
    assert studio.result["certificate"]["primal"] >= hinge - 1e-9


def test_quantiles_are_typed(studio):
    """A list of quantiles gives one curve each; a wrong list says what is allowed."""
    page = studio.page
    page.click("[data-mode=quantiles]")
    studio.settle()
    page.fill("#mercer-quantiles", "0.25; 0.75")
    page.keyboard.press("Enter")
    assert studio.settle().state["quantiles"] == [0.25, 0.75]
    assert len(studio.result["grid"]["curves"]) == 2
    page.fill("#mercer-quantiles", "0.5, 2")
    page.keyboard.press("Enter")
    assert "from 0.001 to 0.999" in page.inner_text("#mercer-quantiles-error")
    assert studio.state["quantiles"] == [0.25, 0.75]


@pytest.mark.slow
def test_every_point_set_is_fitted(studio):
    """Each preset of each mode loads, is fitted without an error, and its points lie in the view."""
    page = studio.page
    names = []
    for mode in ("classify", "regress", "one_class", "quantiles", "process"):
        page.click(f"[data-mode={mode}]")
        studio.settle()
        for name in page.eval_on_selector_all("#mercer-preset option", "all => all.map(one => one.value)"):
            if not name:
                continue
            page.select_option("#mercer-preset", name)
            studio.settle()
            names.append(name)
            assert studio.state["mode"] == mode
            assert studio.result["status"] in ("optimal", "separable"), name
            assert page.input_value("#mercer-preset") == name
            x_min, x_max, y_min, y_max = page.evaluate("mercerStudio.plane.view")
            X = np.array(studio.state["points"])
            assert np.all((X[:, 0] >= x_min) & (X[:, 0] <= x_max) & (X[:, 1] >= y_min) & (X[:, 1] <= y_max)), name
    assert {"disc", "xor", "moons", "spirals", "outliers", "two_points", "separable", "three_classes"} <= set(names)
    assert {"sine", "ring", "heteroscedastic", "gaps"} <= set(names)


def test_a_mode_keeps_its_points(studio):
    """Going to another mode and back shows the points and settings the mode had."""
    studio.click(2.5, 2.5)
    before = studio.settle().state
    studio.page.click("[data-mode=regress]")
    assert studio.settle().state["mode"] == "regress"
    studio.page.click("[data-mode=classify]")
    after = studio.settle().state
    assert after["points"] == before["points"] and after["kernel"] == before["kernel"]


def test_switches_hide_what_they_name(studio):
    """Without support vectors no ring is drawn; without margins and slack fewer lines; without regions one colour."""
    page = studio.page
    shapes = "mercerStudio.plane.scene().shapes.length"
    before = page.evaluate(shapes)
    page.uncheck("[data-show=support]")
    studio.wait("document.querySelectorAll('.point.plain').length === 30")
    page.uncheck("[data-show=margins]")
    page.uncheck("[data-show=slack]")
    assert page.evaluate(shapes) < before
    page.uncheck("[data-show=regions]")
    assert page.evaluate("mercerStudio.plane.regions([0, 1])") is None
    assert studio.state["show"] == {"margins": False, "slack": False, "support": False, "regions": False}


def test_the_certificate_shows_bars_that_meet(studio):
    """Primal and dual bars meet at the optimum; each number has an explanation that opens."""
    page = studio.page
    dual = page.locator(".bar.dual").bounding_box()
    primal = page.locator(".bar.primal").bounding_box()
    assert dual["x"] + dual["width"] == pytest.approx(primal["x"], abs=1.5)
    text = page.inner_text("mercer-certificate")
    assert "Gap" in text and "margin" in text and "|w|" in text and "support vectors" in text
    assert page.locator(".number-help").first.is_hidden()
    for row in page.locator("mercer-certificate .numbers > .number-row").all():
        row.locator("button").click()
        assert len(row.locator(".number-help").inner_text()) > 10
    page.click(".bounds summary")
    assert page.locator(".bounds .number").first.is_visible()


def test_the_leave_one_out_error_is_shown(studio):
    """The open part of the card has the leave-one-out error of the machine; it follows a change of C."""
    page = studio.page
    page.click(".bounds summary")
    for C in (1.0, 100.0):
        state = studio.update(C=C).state
        X, y = np.array(state["points"])[:, :2], np.array(state["points"])[:, 2].astype(int)
        error = leave_one_out(SVC(kernel=state["kernel"], C=C, tol=1e-6).fit(X, y), X, y).error
        page.locator(".bounds").get_by_text(f": {error * len(y):.0f} of {len(y)} points").wait_for()


def test_an_indefinite_kernel_is_not_called_optimal(studio):
    """A machine without a valid certificate is shown as not certified, with the reason; a kernel's is optimal."""
    badge = studio.page.locator("mercer-certificate .badge")
    assert "Optimal" in badge.inner_text()
    studio.update(kernel="sigmoid(gamma=0.5, coef0=-1.0)")
    assert studio.result["certificate"]["valid"] is False
    assert "Not certified" in badge.inner_text()
    assert studio.result["certificate"]["why"] in studio.page.locator("mercer-certificate").inner_text()


def test_a_machine_that_cannot_be_fitted_has_no_badge(open_studio):
    """After a refused fit the certificate says that it is of the machine before; the next machine has its own again."""
    studio = open_studio()
    badge = studio.page.locator("mercer-certificate .badge")
    assert "Optimal" in badge.inner_text()
    studio.page.evaluate("mercerStudio.store.update({ kernel: 'unknown()' })")
    studio.wait("document.querySelector('.message').textContent.includes('unknown')")
    assert badge.inner_text() == "– Of the machine before"
    studio.update(kernel="linear()")
    assert "Optimal" in badge.inner_text()
    studio.errors.clear()  # the browser logs the answer 422
