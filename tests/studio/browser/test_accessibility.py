"""The page works with the keyboard alone, on a phone, in the dark, and tells screen readers what it shows."""

import pytest

MODES = ["classify", "regress", "one_class", "quantiles", "process"]
TABS = ["kernel", "lessons", "stepper", "gram", "lift", "map", "data", "takeaway"]
TWO = {"points": [[-1, 0, 0], [1, 0, 1]], "kernel": "linear()", "C": 1.0, "view": [-3, 3, -3, 3]}
NAMELESS = """() => [...document.querySelectorAll("button, input, select, textarea, a[href], [tabindex='0']")]
  .filter(one => one.checkVisibility() && !one.matches("[type=hidden], [role=tabpanel]"))
  .filter(one => !(one.getAttribute("aria-label") || one.getAttribute("aria-labelledby") || one.textContent.trim()
    || one.title || [...(one.labels ?? [])].some(label => label.textContent.trim())))
  .map(one => one.outerHTML.slice(0, 120))"""
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_keyboard_only(open_studio):
    """Points are added, walked through, moved, recoloured, removed and restored without a mouse."""
    studio = open_studio(TWO)
    press = studio.page.keyboard.press
    for _ in range(40):
        press("Tab")
        if studio.page.evaluate("document.activeElement.classList.contains('surface')"):
            break
    else:
        pytest.fail("the plane is not reached by Tab")
    for _ in range(5):
        press("Shift+ArrowRight")
    press("ArrowUp")
    press("1")
    press("Enter")
    x, y, label = studio.state["points"][2]
    assert x > 0.5 and y > 0 and label == 1
    press("n")
    assert studio.state["selected"] == 0
    live = studio.page.locator("mercer-plane [aria-live]").last
    assert live.inner_text().startswith("Point 1 of 3, class 0, blue circle, x −1, y 0")
    press("p")
    assert studio.state["selected"] == 2
    press("ArrowLeft")
    assert studio.state["points"][2][0] < x
    press("3")
    assert studio.state["points"][2][2] == 3
    press("Delete")
    assert len(studio.state["points"]) == 2
    press("Escape")
    assert studio.state["selected"] is None
    for _ in range(4):
        press("Control+z")
    assert studio.state["points"] == TWO["points"]
    press("Control+y")
    assert len(studio.state["points"]) == 3


def test_modes_and_tabs_by_arrow_keys(open_studio):
    """Radio buttons and tabs are walked with the arrow keys; one of each group is in the tab order."""
    studio = open_studio(TWO)
    page = studio.page
    page.focus("[data-mode=classify]")
    page.keyboard.press("ArrowRight")
    assert studio.settle().state["mode"] == "regress"
    assert page.evaluate("document.activeElement.dataset.mode") == "regress"
    assert page.locator(".segment[tabindex='0']").count() == 1
    page.focus("[role=tab][aria-selected=true]")
    page.keyboard.press("End")
    assert page.locator("[role=tab][aria-selected=true]").get_attribute("data-panel") == "takeaway"
    assert page.locator("[role=tabpanel]:visible").count() == 1


def test_everything_has_a_name(open_studio):
    """Every button, field and tab has an accessible name, in every mode and every panel."""
    studio = open_studio()
    for tab in TABS:
        studio.page.click(f"[role=tab][data-panel={tab}]")
        assert studio.page.evaluate(NAMELESS) == []
    studio.page.click("[role=tab][data-panel=kernel]")
    for mode in MODES:
        studio.page.click(f"[data-mode={mode}]")
        studio.settle()
        assert studio.page.evaluate(NAMELESS) == []


def test_ids_are_unique(open_studio):
    """No two elements share an id, so that labels name the right field."""
    ids = open_studio().page.eval_on_selector_all("[id]", "all => all.map(one => one.id)")
    assert len(ids) == len(set(ids)) > 10


def test_the_certificate_is_spoken(open_studio):
    """Once the machine has settled, a polite live region says that it is optimal and names the gap."""
    studio = open_studio(TWO)
    studio.wait(
        "document.querySelector('mercer-certificate [aria-live=polite]').textContent.startsWith('Optimal. Gap ')"
    )
    assert "primal value" in studio.page.locator("mercer-certificate [aria-live=polite]").inner_text()


@pytest.mark.slow
def test_no_sideways_scroll_on_a_phone(open_studio):
    """At 390 pixels nothing is wider than the screen, in every mode and every panel."""
    studio = open_studio(width=390, height=844, has_touch=True)
    for mode in MODES:
        studio.page.click(f"[data-mode={mode}]")
        studio.settle()
        assert studio.page.evaluate(SIDEWAYS) <= 0, mode
    studio.page.click("[data-mode=classify]")
    for tab in TABS:
        studio.page.click(f"[role=tab][data-panel={tab}]")
        studio.page.wait_for_timeout(400)
        assert studio.page.evaluate(SIDEWAYS) <= 0, tab
    width = studio.page.locator("mercer-plane .surface").bounding_box()["width"]
    assert width > 340


def test_targets_are_large_enough_for_fingers(open_studio):
    """On a phone buttons and fields are at least 24 pixels high and wide."""
    studio = open_studio(TWO, width=390, height=844, has_touch=True)
    small = studio.page.evaluate(
        """() => ["header button", "mercer-plane button", "mercer-controls button", "mercer-controls select"]
        .flatMap(name => [...document.querySelectorAll(name)])
        .filter(one => one.checkVisibility()).map(one => [one.getBoundingClientRect(), one.outerHTML.slice(0, 90)])
        .filter(([box]) => box.width < 24 || box.height < 24).map(([, text]) => text)"""
    )
    assert small == []


def test_dark_and_light(open_studio):
    """The theme follows the system, the switch overrides it, and the choice outlives a reload."""
    studio = open_studio(TWO, dark=True)
    page = studio.page
    paper = "getComputedStyle(document.querySelector('.mercer-studio')).backgroundColor"
    assert page.get_attribute(".mercer-studio", "data-theme") == "dark"
    dark = page.evaluate(paper)
    page.click(".theme-switch")
    assert page.get_attribute(".mercer-studio", "data-theme") == "light"
    assert page.evaluate(paper) != dark
    page.reload()
    studio.settle()
    assert page.get_attribute(".mercer-studio", "data-theme") == "light"


def test_the_theme_of_a_notebook(open_studio):
    """In JupyterLab, which names its theme in an attribute of the body, the theme follows it."""
    studio = open_studio(TWO)
    for light in ("false", "true"):
        studio.page.evaluate("light => { document.body.dataset.jpThemeLight = light; }", light)
        theme = "light" if light == "true" else "dark"
        studio.wait(f"document.querySelector('.mercer-studio').dataset.theme === '{theme}'")


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(open_studio, dark):
    """Text colours have a contrast of at least 4.5 to 1 on the papers they stand on."""
    page = open_studio(TWO, dark=dark).page
    ratios = page.evaluate(
        """() => {
        const style = getComputedStyle(document.querySelector(".mercer-studio"));
        const light = name => { const v = style.getPropertyValue(name).trim().slice(1);
          const c = [0, 2, 4].map(k => parseInt(v.slice(k, k + 2), 16) / 255)
            .map(x => x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
          return .2126 * c[0] + .7152 * c[1] + .0722 * c[2]; };
        const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort(); return (y + .05) / (x + .05); };
        return [["--ink", "--paper"], ["--ink", "--panel"], ["--ink-soft", "--panel"], ["--ink-soft", "--paper"],
          ["--warn", "--panel"], ["--good", "--paper"], ["--accent", "--accent-soft"], ["--on-accent", "--accent"]]
          .map(pair => [pair.join(" on "), ratio(...pair)]); }"""
    )
    assert [name for name, ratio in ratios if not ratio >= 4.5] == []


@pytest.mark.parametrize(("motion", "speed"), [("reduce", "1"), ("no-preference", "5")])
def test_less_motion(open_studio, motion, speed):
    """Where the reader asks for less motion, nothing in any panel has a transition and steps play at one a second."""
    page = open_studio(reduced_motion=motion).page
    moving = set()
    for tab in TABS:
        page.click(f"[role=tab][data-panel={tab}]")
        moving |= set(
            page.evaluate(
                """() => [...document.querySelectorAll(".mercer-studio, .mercer-studio *")].map(getComputedStyle)
                .filter(style => style.animationName !== "none" || /[1-9]/.test(style.transitionDuration))
                .map(style => style.transitionDuration)"""
            )
        )
    assert (moving == set()) == (motion == "reduce")
    assert page.locator("mercer-stepper").get_by_label("Speed").input_value() == speed


def test_focus_is_visible(open_studio):
    """An element reached by Tab has an outline of at least two pixels."""
    page = open_studio(TWO).page
    seen = 0
    for _ in range(12):
        page.keyboard.press("Tab")
        outline = page.evaluate(
            """() => { const style = getComputedStyle(document.activeElement);
            return [style.outlineStyle, parseFloat(style.outlineWidth)]; }"""
        )
        assert outline[0] != "none" and outline[1] >= 2
        seen += 1
    assert seen == 12
