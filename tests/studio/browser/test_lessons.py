"""Lesson cards on the page: set up, previous and next, progress, cards of a teacher."""

import json

import pytest
from tests.studio.browser.studio_page import PATIENCE

CARD = {
    "id": "mine", "title": "My card", "question": "What?", "try": ["Drag."], "see": ["It moves."],
    "state": {"points": [[-1, 0, 0], [1, 0, 1]], "kernel": "linear()", "C": 10},
}  # fmt: skip
WRONG = [
    ("{", "The file is not JSON"),
    ("[]", "The file has no cards"),
    (json.dumps({**CARD, "title": ""}), "title must be a text that is not empty"),
    (json.dumps({**CARD, "try": "Drag."}), "try must be a list of texts"),
    (json.dumps({**CARD, "colour": 1}), 'unknown field "colour"'),
    (json.dumps({**CARD, "panel": "oven"}), "panel must be one of stepper"),
    (json.dumps([CARD, CARD]), 'the id "mine" is taken'),
    (json.dumps({**CARD, "state": {"points": [[0, 0, 77]]}}), "state:"),
    (json.dumps({**CARD, "state": {**CARD["state"], "kernel": "gausian()"}}), "there is no kernel 'gausian'"),
]


def lessons(open_studio, **more):
    """The page with the lessons open."""
    studio = open_studio(**more)
    studio.page.get_by_role("tab", name="Lessons").click()
    studio.wait("document.querySelector('mercer-lessons').cards.length >= 15")
    return studio


def give(studio, text, name="cards.json"):
    """Open a file of cards."""
    studio.page.get_by_text("For teachers").click()
    file = {"name": name, "mimeType": "application/json", "buffer": text.encode()}
    studio.page.locator("mercer-lessons input[type=file]").set_input_files(file)


@pytest.mark.slow
def test_every_lesson_sets_up_its_state(open_studio):
    """Next goes through all lessons; each shows its card and the machine of its state, without an error."""
    studio = lessons(open_studio)
    page = studio.page
    cards = page.evaluate("document.querySelector('mercer-lessons').cards")
    for card in cards:
        page.locator("mercer-lessons").get_by_role("button", name="→").click()
        studio.settle()
        assert page.locator("mercer-lessons article h3").inner_text() == card["title"]
        state = studio.state
        assert state["lesson"] == card["id"]
        assert {key: state[key] for key in card["state"]} == card["state"]
        wanted = "not_separable" if card["id"] == "not-separable" else "optimal"
        assert studio.result["status"] in (wanted, "separable"), card["id"]
        if card.get("panel") == "stepper":
            studio.wait(
                "(s => s.key === s.keyOf() && !s.body.inert && !s.body.hidden && s.asked.name === s.choice.value)"
                "(document.querySelector('mercer-lessons mercer-stepper'))"
            )
            page.locator("mercer-lessons mercer-stepper").get_by_role("button", name="One step forward").click()
            studio.wait("mercerStudio.plane._frame?.step === 1")
    assert page.locator("mercer-lessons").get_by_role("button", name="next").is_disabled()


@pytest.mark.slow
def test_previous_next_and_progress(open_studio):
    """Opening what one should see marks a lesson as done; previous and next move between cards; a reload remembers."""
    studio = lessons(open_studio)
    page = studio.page
    panel = page.locator("mercer-lessons")
    panel.get_by_role("button", name="first lesson").click()
    first = studio.state["lesson"]
    assert panel.get_by_role("button", name="previous").is_disabled()
    panel.get_by_text("What you should see").click()
    panel.get_by_text("1 of 24 done").wait_for()
    panel.get_by_role("button", name="next").click()
    assert studio.state["lesson"] != first
    panel.get_by_role("button", name="previous").click()
    assert studio.state["lesson"] == first
    page.reload()
    studio.settle()
    panel.get_by_text("1 of 24 done").wait_for()


def test_a_lesson_can_be_set_up_again(open_studio):
    """After a change, "set up again" brings back the state of the card."""
    studio = lessons(open_studio)
    panel = studio.page.locator("mercer-lessons")
    panel.get_by_role("button", name="first lesson").click()
    points = studio.state["points"]
    studio.update(points=[*points, [2.0, 2.0, 1]])
    panel.get_by_role("button", name="set up again").click()
    assert studio.state["points"] == points


def test_a_lesson_begins_with_the_tool_that_moves_points(open_studio):
    """With the eraser chosen, a lesson that is set up chooses "Point" again: a point that is dragged is not removed."""
    studio = lessons(open_studio)
    studio.page.get_by_role("button", name="Erase").click()
    studio.page.locator("mercer-lessons").get_by_role("button", name="first lesson").click()
    studio.settle()
    assert studio.page.locator("button.tool[aria-pressed=true]").inner_text() == "Point"
    x, y, _ = studio.state["points"][0]
    studio.drag((x, y), (x - 0.5, y))
    assert len(studio.settle().state["points"]) == 2


def test_dropped_cards(open_studio):
    """A file of cards dropped on the panel is opened."""
    studio = lessons(open_studio)
    studio.drop("mercer-lessons", "cards.json", json.dumps([CARD]))
    studio.wait(f"document.querySelector('mercer-lessons').cards.map(card => card.id).join() === '{CARD['id']}'")


def test_cards_of_a_teacher(open_studio):
    """A file of cards replaces mercer's own, which can be brought back."""
    studio = lessons(open_studio)
    give(studio, json.dumps({"lessons": [CARD, {**CARD, "id": "other", "title": "Another"}]}))
    panel = studio.page.locator("mercer-lessons")
    panel.get_by_role("heading", name="My card").wait_for(timeout=1000 * PATIENCE)
    studio.settle()
    assert studio.state["C"] == 10 and len(studio.state["points"]) == 2
    panel.get_by_role("button", name="next").click()
    panel.get_by_role("heading", name="Another").wait_for()
    panel.get_by_role("button", name="mercer's own lessons").click()
    assert studio.page.evaluate("document.querySelector('mercer-lessons').cards.length") >= 15


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_wrong_cards_are_refused_with_a_reason(open_studio, text, message):
    """A file with a mistake changes nothing, and the message says which card and what is wrong."""
    studio = lessons(open_studio)
    before = studio.state
    give(studio, text)
    error = studio.page.locator("mercer-lessons > .mp-error")
    error.wait_for(timeout=1000 * PATIENCE)
    assert message in error.inner_text()
    assert studio.state == before
    studio.errors.clear()  # the browser logs the answer 422 to a wrong kernel
