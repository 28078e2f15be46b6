"""Exports: code that runs, model files that load, a page with a slider that needs no server; and the widget."""

import base64
import io
import json
import math
import re
import shutil
import zipfile

import numpy as np
import pytest

import mercer
from mercer import parse_kernel
from mercer.kernels.parse import KERNELS
from mercer.studio.answers import answer
from mercer.studio.panels.formula import formula_of, mathml_of
from mercer.studio.presets import all_presets
from mercer.studio.state import StateError, parse_state

PRESETS = {preset["name"]: preset["state"] for preset in all_presets()}
ONE_OF_EACH = {
    "classify": PRESETS["moons"],
    "hard": PRESETS["separable"],
    "classes": PRESETS["three_classes"],
    "regress": PRESETS["sine"],
    "one_class": PRESETS["ring"],
    "quantiles": PRESETS["heteroscedastic"],
    "process": PRESETS["gaps"],
}


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_the_code_of_a_state_runs(name, capsys):
    """The script runs without a warning and prints the certificate of the page's machine."""
    script = answer("code", {"state": ONE_OF_EACH[name]})["python"]
    exec(compile(script, name, "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    shown = answer("fit", {"state": ONE_OF_EACH[name]})["certificate"]
    if shown is None:
        assert "log marginal likelihood" in printed
    elif name != "quantiles":
        primal = float(re.search(r"primal (\S+?),", printed)[1])
        assert primal == pytest.approx(shown["primal"], rel=1e-5)
    else:
        assert printed.count("within") == 3


@pytest.mark.parametrize("more", [{"loss": "squared_hinge"}, {"bias": False}, {"kernel": "0.5*rbf + linear"}])
def test_options_are_part_of_the_code(more, capsys):
    """Loss, bias and kernel expressions appear in a script that runs and gives the same objective."""
    state = {**PRESETS["blobs"], **more}
    exec(compile(answer("code", {"state": state})["python"], "code", "exec"), {})
    primal = float(re.search(r"primal (\S+?),", capsys.readouterr().out)[1])
    assert primal == pytest.approx(answer("fit", {"state": state})["certificate"]["primal"], rel=1e-5)


def test_a_hard_margin_that_does_not_exist_ends_the_script_in_words():
    """The script of an inseparable hard margin stops with the reason."""
    state = {"points": [[0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1]], "kernel": "linear()", "C": "inf"}
    with pytest.raises(SystemExit, match="There is no hard margin"):
        exec(compile(answer("code", {"state": state})["python"], "code", "exec"), {})


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_model_files_load(name):
    """The exported model has the values of the page."""
    state = ONE_OF_EACH[name]
    found = answer("export_model", {"state": state})
    data = io.BytesIO(base64.b64decode(found["base64"]))
    if name == "quantiles":
        with zipfile.ZipFile(data) as folder:
            assert folder.namelist() == ["quantile-0.1.mercer", "quantile-0.5.mercer", "quantile-0.9.mercer"]
            data = io.BytesIO(folder.read("quantile-0.5.mercer"))
    model = mercer.load(data)
    points = np.array(state["points"])
    f = answer("fit", {"state": state})["points"]["f"]
    if name in ("classify", "hard", "one_class"):
        assert np.allclose(model.decision_function(points[:, :2]), f, atol=1e-5)
    elif name != "classes":
        assert np.allclose(model.predict(points[:, :1]), f, atol=1e-5)


def page_data(html):
    """The data of an exported page."""
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.S)[1])


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_exported_pages_hold_exact_machines(name):
    """Each position has its certificate, the page names no address, and begins at the state's own machine."""
    found = answer("export_page", {"state": ONE_OF_EACH[name]})
    data = page_data(found["html"])
    assert len(data["stops"]) == found["stops"] and (found["stops"] > 10 or name == "process")
    addresses = set(re.findall(r"https?://[^\"' <]+", found["html"])) - {"http://www.w3.org/1998/Math/MathML"}
    assert not addresses and "src=" not in found["html"]
    own = data["stops"][data["start"]]
    shown = answer("fit", {"state": ONE_OF_EACH[name]})["certificate"]
    if shown is not None:
        assert own["primal"] == pytest.approx(shown["primal"], rel=1e-4)
        assert all(stop["primal"] - stop["dual"] <= 1e-3 * abs(stop["primal"]) for stop in data["stops"])


def test_the_page_of_several_classes_has_the_labels_of_the_model():
    """The labels, unrolled from runs, are SVC's predictions at 999 of 1,000 places of a grid of 253 × 253."""
    state = PRESETS["three_classes"]
    data = page_data(answer("export_page", {"state": state})["html"])
    grid = data["stops"][data["start"]]["grid"]
    runs = np.frombuffer(base64.b64decode(grid["runs"]), dtype=np.uint8).reshape(-1, 2)
    labels = np.repeat(runs[:, 0], runs[:, 1]).reshape(grid["rows"], grid["columns"])
    own = parse_state(state)
    model = mercer.SVC(kernel=own.kernel, C=own.C, tol=1e-6).fit(own.X, own.y)
    x, y = np.meshgrid(np.linspace(*own.view[:2], 253), np.linspace(*own.view[2:], 253))
    predicted = model.predict(np.column_stack([x.ravel(), y.ravel()])).reshape(253, 253)
    assert np.mean(labels != predicted) < 1e-3


def test_a_page_cannot_be_broken_by_its_texts():
    """A kernel text cannot end the script element of the page."""
    state = {**PRESETS["two_points"], "C": 1.0, "lesson": "</script><script>alert(1)</script>"}
    html = answer("export_page", {"state": state})["html"]
    assert "alert(1)" not in html and html.count("<script") == 2


def test_a_page_without_a_machine_says_so():
    """Nothing to show is an error in words."""
    with pytest.raises(StateError, match="two classes"):
        answer("export_page", {"state": {}})


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
@pytest.mark.parametrize("name", ["classify", "classes", "regress"])
def test_the_page_moves_in_a_browser(name, tmp_path):
    """Arrow keys move along the machines, the picture changes, and the console stays empty, in dark mode, too."""
    playwright = pytest.importorskip("playwright.sync_api")
    path = tmp_path / "page.html"
    path.write_text(answer("export_page", {"state": ONE_OF_EACH[name]})["html"], encoding="utf-8")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme="dark", offline=True)
        errors = []
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(path.as_uri())
        slider = page.get_by_role("slider", name="C")
        slider.focus()
        before = page.locator("output").inner_text(), page.locator("canvas").screenshot()
        for _ in range(8):
            page.keyboard.press("ArrowLeft")
        after = page.locator("output").inner_text(), page.locator("canvas").screenshot()
        assert before[0] != after[0] and before[1] != after[1]
        assert slider.get_attribute("aria-valuetext") == after[0]
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.get_by_role("button", name="play").click()
        page.wait_for_function("text => document.querySelector('output').textContent !== text", arg=after[0])
        browser.close()
    assert not errors


# ---- formulas ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "plain"),
    [
        ("linear", "⟨x, z⟩"),
        ("rbf(gamma=2.0)", "exp(−γ|x − z|²)"),
        ("poly(degree=2, gamma=1.0, coef0=1.0)", "(⟨x, z⟩ + c)²"),
        ("0.5*rbf(gamma=0.1) + linear", "0.5 exp(−0.1|x − z|²) + ⟨x, z⟩"),
        ("rbf(gamma=1.0) * linear", "exp(−|x − z|²) · ⟨x, z⟩"),
        ("constant(1.0) + on(0, linear()) ** 2", "1 + (x₁z₁)²"),
        ("on(1, rbf(gamma=2.0))", "exp(−2|x₂ − z₂|²)"),
        ("(1.0 + linear) ** 3", "(1 + ⟨x, z⟩)³"),
    ],
)
def test_formulas_read_as_in_the_notes(kernel, plain):
    """The formula of a kernel as plain text."""
    assert formula_of(parse_kernel(kernel)).plain == plain


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name not in ("learnedkernel", "bounded")])
def test_every_formula_is_well_formed_mathml(kernel):
    """MathML of each kernel that needs no arguments parses as XML."""
    from xml.etree import ElementTree

    for text in (
        kernel,
        f"{kernel}(linear())",
        f"{kernel}(linear(), 2)",
        f"{kernel}(linear(), linear())",
        f"{kernel}(0, linear())",
    ):
        try:
            parsed = parse_kernel(text)
        except ValueError:
            continue
        assert ElementTree.fromstring(mathml_of(parsed)).tag.endswith("math")
        return
    raise AssertionError(f"no form of {kernel} was read")


# ---- the widget -------------------------------------------------------------------------------------------------


def test_the_widget_answers_by_messages():
    """A question of the notebook's page gets the answer of the same name, or the error."""
    pytest.importorskip("anywidget")
    from mercer.studio import StudioWidget

    sent = []

    class Recorded(StudioWidget):
        def send(self, content, buffers=None):
            sent.append(content)

    widget = Recorded(PRESETS["two_points"])
    widget._answer({"id": 1, "name": "fit", "payload": {"state": widget.state, "grid": [4, 4]}})
    widget._answer({"id": 2, "name": "fit", "payload": {"state": {"C": -1}}})
    assert sent[0]["id"] == 1 and sent[0]["answer"]["status"] == "separable"
    assert sent[1]["id"] == 2 and sent[1]["error"]["where"] == "C"
    assert "main.js" in widget.modules and not {"boot.js", "refused.js"} & set(widget.modules)
    with pytest.raises(StateError):
        widget.state = {"mode": "magic"}
    assert widget.state["mode"] == "classify"


def test_the_widget_takes_python_data():
    """Arrays, tuples, NumPy numbers and an infinite C are written as JSON has them, also when the state is set."""
    pytest.importorskip("anywidget")
    from mercer.studio import StudioWidget

    X, y = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([0, 1])
    widget = StudioWidget({"points": np.column_stack([X, y]), "C": math.inf, "view": (-3, 3, np.int64(-3), 4.0)})
    assert widget.state["points"] == [[0.0, 1.0, 0], [2.0, 3.0, 1]] and widget.state["C"] == "inf"
    widget.state = {"points": [(*x, label) for x, label in zip(X, y, strict=True)], "C": np.float64(2.0)}
    assert widget.state["points"] == [[0.0, 1.0, 0], [2.0, 3.0, 1]] and widget.state["C"] == 2.0
    with pytest.raises(StateError, match=r"^points 0 must be"):
        StudioWidget({"points": [[math.nan, 0, 0]]})


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_the_page_of_a_process_has_no_support_vectors(tmp_path):
    """A Gaussian process has no dual: its page shows neither bars nor a sentence about support vectors."""
    playwright = pytest.importorskip("playwright.sync_api")
    path = tmp_path / "page.html"
    path.write_text(answer("export_page", {"state": PRESETS["gaps"]})["html"], encoding="utf-8")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(offline=True)
        page.goto(path.as_uri())
        assert page.locator(".bars").is_hidden()
        shown = page.locator("body").inner_text()
        assert "support vector" not in shown.partition("Python code")[0] and "two standard deviations" in shown
        browser.close()
