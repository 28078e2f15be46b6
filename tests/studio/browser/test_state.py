"""The state lives in the address and in files; a damaged one gets a clear message and the default page."""

import json

import pytest
from tests.studio.browser.studio_page import Studio, fragment

POINTS = [[-1, 0, 0], [1, 0, 1]]
HOSTILE = {
    "not JSON": ("{nonsense", "not valid JSON"),
    "NaN": ('{"points": [[NaN, 0, 0]]}', "not valid JSON"),
    "null coordinate": ({"points": [[None, 0, 0]]}, "x of point 0 must be a finite number"),
    "infinite": ('{"points": [[1e999, 0, 0]]}', "x of point 0 must be a finite number"),
    "text as number": ({"points": [["1", 0, 0]]}, "x of point 0 must be a finite number"),
    "label": ({"points": [[0, 0, 10]]}, "The label of point 0 must be a whole number from 0 to 9, found 10."),
    "too many points": ({"points": [[0, 0, 0]] * 3000}, "A state has at most 2,000 points, found 3,000."),
    "unknown key": ({"colour": "red"}, 'A state has no field "colour"'),
    "prototype": ('{"__proto__": {"mode": "classify"}, "constructor": 1}', "A state has no field"),
    "mode": ({"mode": "<img src=x onerror=alert(1)>"}, "mode must be one of classify, regress"),
    "C": ({"C": -1}, "C must be between"),
    "version": ({"version": 7}, "version must be 1, found 7."),
    "view": ({"view": [1, 0, 0, 1]}, "view must have x_min < x_max"),
    "list": ("[1, 2]", "A state is an object, found [1,2]."),
    "number": ("3", "A state is an object, found 3."),
}


@pytest.mark.parametrize("name", ["not JSON", "infinite", "too many points", "mode"])
def test_a_wrong_state_gets_a_message_and_the_default(open_studio, name):
    """A state that cannot be shown is named with its fault; the page starts with its default and works."""
    state, message = HOSTILE[name]
    studio = open_studio(state)
    text = studio.page.inner_text(".message")
    assert text.startswith("This state cannot be shown: ") and message in text
    assert text.endswith("The page starts with its default.")
    assert len(studio.state["points"]) == 30 and studio.result["status"] == "optimal"


@pytest.mark.slow
def test_wrong_states_change_nothing(open_studio):
    """Each wrong state in the address of a running page is named with its fault, and the page stays as it was."""
    studio = open_studio({"points": POINTS, "kernel": "linear()"})
    before = studio.state
    for state, message in HOSTILE.values():
        studio.page.evaluate("hash => { location.hash = hash }", fragment(state))
        studio.wait(f"document.querySelector('.message').textContent.includes({json.dumps(message)})")
        assert studio.page.inner_text(".message").endswith("The page stays as it was.")
        assert studio.state == before


@pytest.mark.parametrize("after", ["#s=%%%", "#s=" + "A" * 5000])
def test_a_damaged_fragment_gets_a_message(open_studio, after):
    """Text after #s= that is no base64url is called damaged."""
    studio = open_studio(after=after)
    assert studio.page.inner_text(".message").startswith("This state cannot be shown: ")
    assert studio.result["status"] == "optimal"


def test_a_kernel_that_cannot_be_read(open_studio):
    """An unknown kernel in the address is refused by the back end: its message is shown with the default page."""
    studio = open_studio({"points": POINTS, "kernel": "import_os(1)"}, wait=False)
    studio.wait("document.querySelector('.message')?.textContent.includes('import_os')")
    studio.settle()
    assert "there is no kernel 'import_os'" in studio.page.inner_text(".message")
    assert studio.result["status"] == "optimal"
    # the refused request is a console error of the browser itself
    assert all("422" in error for error in studio.errors)
    studio.errors.clear()


def test_another_fragment_is_ignored(open_studio):
    """A fragment that is no state starts the page without a message."""
    studio = open_studio(after="#chapter-2")
    assert studio.page.locator(".message").is_hidden()


def test_the_state_survives_a_reload(open_studio):
    """Every change is in the address: a reload shows the same points, kernel and C."""
    studio = open_studio()
    studio.click(2.5, 2.5)
    studio.update(kernel="polynomial(degree=3, gamma=1.0, coef0=1.0)", C=7.5)
    before = studio.state
    studio.page.wait_for_timeout(400)
    studio.page.reload()
    after = studio.settle().state
    assert {**after, "selected": None} == {**before, "selected": None}


def test_a_new_address_in_the_same_page(open_studio):
    """Following a link to another state shows it; undo goes back."""
    studio = open_studio()
    studio.page.evaluate("hash => { location.hash = hash }", fragment({"points": POINTS, "kernel": "linear()"}))
    studio.wait("mercerStudio.store.state.points.length === 2")
    assert studio.settle().state["kernel"] == "linear()"
    studio.page.click("button[aria-label^=Undo]")
    assert len(studio.state["points"]) == 30


CLIPBOARD = ["clipboard-read", "clipboard-write"]


def test_a_copied_link_opens(open_studio):
    """The copied link has no token; it opens in the same browser, and on another page when it is pasted there."""
    studio = open_studio({"points": POINTS, "kernel": "linear()", "C": 3.5}, permissions=CLIPBOARD)
    studio.page.get_by_role("button", name="Copy the address of this state").click()
    studio.wait("document.querySelector('.message').textContent.includes('is copied')")
    link = studio.page.evaluate("navigator.clipboard.readText()")
    assert "token" not in link
    studio.page.goto("about:blank")
    studio.page.goto(link)
    assert {key: studio.settle().state[key] for key in ("points", "C")} == {"points": POINTS, "C": 3.5}
    other = open_studio(permissions=CLIPBOARD)
    other.page.evaluate("link => navigator.clipboard.writeText(link)", link)
    other.page.keyboard.press("Control+V")
    other.wait("mercerStudio.store.state.points.length === 2")
    assert other.settle().state["C"] == 3.5


def test_a_link_without_token_in_another_browser(studio_address, chromium):
    """The refusal keeps the state: joined with the printed address it opens."""
    context = chromium.new_context()
    page = context.new_page()
    shown = page.goto(studio_address.split("?")[0] + fragment({"points": POINTS, "C": 3.5}))
    assert shown.status == 403 and page.get_by_text("This link holds a state").is_visible()
    page.get_by_label("Printed address").fill(studio_address)
    page.get_by_text("Open the state", exact=True).click()
    assert Studio(page, []).settle().state["C"] == 3.5
    context.close()


def test_save_and_open_a_file(open_studio, tmp_path):
    """A saved file is JSON of the state; opening it brings the state back; a wrong file gets a message."""
    studio = open_studio({"points": POINTS, "kernel": "linear()"})
    with studio.page.expect_download() as saving:
        studio.page.click("button[aria-label^=Save]")
    assert saving.value.suggested_filename == "classify.mercer-studio.json"
    file = tmp_path / saving.value.suggested_filename
    saving.value.save_as(file)
    assert json.loads(file.read_text())["points"] == POINTS
    studio.click(2, 2)
    assert len(studio.state["points"]) == 3
    studio.page.set_input_files("input[type=file][aria-label='State file']", file)
    studio.wait("mercerStudio.store.state.points.length === 2")
    assert studio.settle().state["points"] == POINTS
    file.write_text('{"points": "many"}')
    studio.page.set_input_files("input[type=file][aria-label='State file']", file)
    studio.wait("document.querySelector('.message').textContent.includes('points must be a list')")
    assert studio.state["points"] == POINTS


def test_text_of_a_state_is_never_markup(open_studio):
    """Names in a state are shown as text: no element is made of them."""
    studio = open_studio({"points": POINTS, "lesson": "<img src=x onerror='window.hacked=1'>"})
    assert studio.page.evaluate("[document.querySelectorAll('img').length, window.hacked === undefined]") == [0, True]
