"""The page as a notebook widget: its modules come as text, its questions go through messages."""

import pytest
from tests.studio.browser.studio_page import Studio

# a model as anywidget gives it, whose messages are answered by the server's answers
WIDGET = """async () => {
  const names = [...new Set(performance.getEntriesByType("resource").map(one => one.name)
    .filter(name => name.endsWith(".js")).map(name => name.split("/").pop()))].filter(name => name !== "boot.js");
  const sources = await Promise.all(names.map(name => fetch("/static/" + name).then(answer => answer.text())));
  const token = new URLSearchParams(location.search).get("token");
  const values = { modules: Object.fromEntries(names.map((name, k) => [name, sources[k]])), state: START };
  const listeners = {};
  const tell = (name, detail) => (listeners[name] ?? []).forEach(listener => listener(detail));
  globalThis.saved = [];
  globalThis.model = {
    get: name => values[name],
    set: (name, value) => { values[name] = value; tell("change:" + name); },
    save_changes: () => saved.push(values.state),
    on: (name, listener) => (listeners[name] ??= []).push(listener),
    off: (name, listener) => { listeners[name] = listeners[name].filter(one => one !== listener); },
    send: async ({ id, name, payload }) => {
      const answer = await fetch("/api/" + name, { method: "POST", body: JSON.stringify(payload),
        headers: { "Content-Type": "application/json", "X-Mercer-Token": token } }).then(one => one.json());
      tell("msg:custom", answer.error ? { id, error: answer.error } : { id, answer });
    } };
  document.body.innerHTML = "<div id='cell'></div>";
  const { default: widget } = await import("/static/widget.js");
  globalThis.leave = await widget.render({ model, el: document.getElementById("cell") });
}"""


@pytest.mark.slow
def test_the_widget_shows_the_same_page(open_studio):
    """A widget starts with its state, reports changes after a pause, follows its model, and cleans up."""
    # a notebook allows modules from blobs; the page's own policy does not
    studio = open_studio(bypass_csp=True)
    page = studio.page
    start = '{"points": [[-1, 0, 0], [1, 0, 1]], "kernel": "linear()", "C": "inf", "view": [-3, 3, -3, 3]}'
    page.evaluate(WIDGET.replace("START", start))
    studio.wait("document.querySelectorAll('#cell .point').length === 2")
    studio.wait("document.querySelector('#cell .badge').textContent.includes('Optimal')")
    shown = Studio(page, [])
    box = page.locator("#cell mercer-plane .surface").bounding_box()
    page.mouse.click(box["x"] + 0.8 * box["width"], box["y"] + 0.2 * box["height"])
    studio.wait("saved.length > 0 && saved.at(-1).points.length === 3")
    page.evaluate("model.set('state', {...model.get('state'), points: [[0, 1, 0], [0, -1, 1], [1, -1, 1], [1, 1, 0]]})")
    shown.wait("document.querySelectorAll('#cell .point').length === 4")
    page.evaluate("leave()")
    assert page.locator("#cell .point").count() == 0
