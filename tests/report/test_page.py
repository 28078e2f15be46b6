"""The report is one self-contained file that explains its numbers and opens in a browser."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.naming import named

from mercer import SVC, SVR, InvalidInputError, KernelRidge, LinearSVC, OneClassSVM
from mercer.display.plane import DecisionDisplay
from mercer.io.tables import read_samples
from mercer.kernels import Chi2, Cosine, Gaussian, Laplacian, Linear, Matern, Normalized, On, Polynomial
from mercer.report import decision_gradients, write_report
from mercer.report.importance import slopes
from mercer.report.page import _with_names
from mercer.workflow import train

pytest.importorskip("matplotlib")


class Page(HTMLParser):
    """Tags that are opened and closed in order, and the links to anything outside."""

    VOID = ("meta", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.outside, self.images, self.headings, self.titles = [], [], [], [], []
        self.sections = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.outside += [v for k, v in attrs if k in ("src", "href") and not v.startswith("data:")]
        if tag == "img":
            self.images.append(found)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)
        if self.open[-2:] == ["figcaption", "b"]:
            self.titles.append(data)
        if self.open[-1:] == ["h2"]:
            self.sections.append([data, ""])
        elif self.sections and "section" in self.open:
            self.sections[-1][1] += data

    @property
    def empty_sections(self):
        return [heading for heading, text in self.sections if not text.strip()]


def trained(tmp_path, frame, **more):
    frame.to_csv(tmp_path / "data.csv", index=False)
    return train(read_samples(tmp_path / "data.csv"), Cs=2, gammas=2, search="grid", cv=2, **more)


@pytest.fixture(scope="module")
def classification(tmp_path_factory):
    data = load_iris(as_frame=True)
    frame = data.frame.drop(columns="target").assign(species=np.array(["<b>", "b&c", "d"])[data.target])
    return trained(tmp_path_factory.mktemp("c"), frame, judge="nested")


@pytest.fixture(scope="module")
def regression(tmp_path_factory):
    frame = load_diabetes(as_frame=True).frame[::4][["bmi", "target"]]
    return trained(tmp_path_factory.mktemp("r"), frame, judge="none")


@pytest.mark.parametrize("name", ["classification", "regression"])
def test_page_is_complete(name, request, tmp_path):
    outcome = request.getfixturevalue(name)
    write_report(outcome, tmp_path / "report.html", model_path="m.mercer", source="data.csv")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == [] and page.outside == []
    for heading in ("What was learnt", "How good it is", "How certain the optimum is", "What to worry about",
                    "Which inputs matter", "Pictures of the search and the machine", "How to use it"):  # fmt: skip
        assert heading in page.headings
    assert len(page.images) >= 3 and all(image["alt"] for image in page.images)
    assert len(page.titles) == len(page.images) == len(set(page.titles))
    assert not page.empty_sections
    assert f"{outcome.search.certificate_.primal:.10g}" in text
    assert "mercer.load(&quot;m.mercer&quot;)" in text
    assert "viewport" in text and "@media print" in text


def test_text_of_users_is_escaped(classification, tmp_path):
    write_report(classification, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    bold = r'(<div class="fact">|<figcaption>)<b>'
    assert "<b>" not in re.sub(bold, "", text) and "&lt;b&gt;" in text and "b&amp;c" in text


def test_axes_of_the_plane_are_called_as_the_columns_are(tmp_path):
    frame = load_iris(as_frame=True).frame.iloc[:, [0, 2, 4]]
    frame.columns = ["sepal", "petal", "species"]
    outcome = trained(tmp_path, frame, judge="none", task="classification")
    figure = _with_names(outcome, DecisionDisplay.from_estimator(outcome.search, outcome.prepared, outcome.samples.y))
    assert figure.axes[0].get_xlabel() == "sepal, standardised" and figure.axes[0].get_ylabel() == "petal, standardised"


def test_confusion_counts_all_rows(classification):
    assert classification.confusion.sum() == 150
    assert classification.confusion.trace() / 150 == pytest.approx(classification.search.best_score_, abs=0.02)


def test_report_cannot_be_written(regression, tmp_path):
    path = tmp_path / "nowhere" / "report.html"
    with pytest.raises(InvalidInputError) as found:
        write_report(regression, path)
    assert str(found.value) == (
        f"{path} cannot be written: No such file or directory. Choose another path or free the file."
    )


def slopes_by_differences(function, X, step=1e-5):
    columns = []
    for move in step * np.eye(X.shape[1]):
        columns.append((function(X + move) - function(X - move)) / (2.0 * step))
    return np.stack([np.reshape(c, (len(X), -1)) for c in columns], axis=-1).transpose(1, 0, 2)


GRADIENT_CASES = [
    *(SVC(kernel=kernel, gamma=0.3, decision_function_shape="ovo") for kernel in ("linear", "rbf", "poly")),
    SVC(kernel="sigmoid", gamma=0.01, decision_function_shape="ovo"),
    SVC(kernel=0.5 * Matern(2.5, (1.0, 2.0, 0.5, 3.0)) + Normalized(Polynomial(2, 0.5, 1.0)), C=5.0),
    SVC(kernel=On((0, 2), Laplacian(0.3)) * Chi2(0.2), decision_function_shape="ovo"),
    SVR(kernel=Cosine() + Linear()),
    LinearSVC(),
    KernelRidge(kernel=Gaussian(0.2)),
    OneClassSVM(gamma=0.2),
    make_pipeline(StandardScaler(), SVR(kernel="poly", degree=2, coef0=1.0)),
]


@pytest.mark.parametrize("model", GRADIENT_CASES, ids=named)
def test_gradients_are_exact(model):
    """Gradients equal finite differences of the decision values, for every type of machine."""
    X, y = load_iris(return_X_y=True)
    model.fit(X[::3], y[::3])
    points = X[[5, 77]] + 0.013
    classifier = getattr(model, "classes_", None) is not None
    if classifier and getattr(model, "decision_function_shape", "") == "ovr":
        model.set_params(decision_function_shape="ovo").fit(X[::3], y[::3])
    function = getattr(model, "decision_function", model.predict)
    found, expected = decision_gradients(model, points), slopes_by_differences(function, points)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_gradients_of_sparse_samples():
    """Sparse samples have the gradients of the same dense samples."""
    X, y = load_iris(return_X_y=True)
    X = np.where(X > 1.5, X, 0.0)
    model = SVC(kernel="poly", coef0=1.0).fit(sp.csr_array(X[:100]), y[:100])
    found = decision_gradients(model, sp.csr_array(X[:7]))
    np.testing.assert_allclose(found, decision_gradients(model, X[:7]), rtol=1e-10)
    with pytest.raises(InvalidInputError, match="X has 3 features, but the model was fitted to 4"):
        decision_gradients(model, X[:7, :3])
    with pytest.raises(InvalidInputError, match="Gradients of SVC cannot be computed"):
        decision_gradients(SVC(kernel="precomputed").fit(X[:100] @ X[:100].T, y[:100]), X[:7])


def test_slopes_of_any_kernel_are_on_the_page(tmp_path):
    frame = load_iris(as_frame=True).frame
    frame.to_csv(tmp_path / "data.csv", index=False)
    outcome = train(
        read_samples(tmp_path / "data.csv"), Cs=2, cv=2, judge="none", kernel="poly(degree=2, coef0=1) + laplacian()"
    )
    assert np.all(slopes(outcome).mean != 0)
    write_report(outcome, tmp_path / "report.html")
    assert "The slope of the decision function" in (tmp_path / "report.html").read_text(encoding="utf-8")


def browser_title(path, script, *flags):
    """The title of the page after a script has set it in a headless browser, and the messages of its console."""
    shown = path.with_name("probe.html")
    probe = f"<script>addEventListener('load', () => {{ {script} }});</script></body>"
    shown.write_text(path.read_text(encoding="utf-8").replace("</body>", probe), encoding="utf-8")
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
               "--enable-logging=stderr", "--dump-dom", f"--user-data-dir={path.with_name('profile')}"]  # fmt: skip
    ended = subprocess.run([*browser, *flags, shown.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    return re.search("<title>(.*)</title>", ended.stdout)[1], [e for e in ended.stderr.splitlines() if "CONSOLE" in e]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_page_opens_in_a_browser(classification, tmp_path):
    """No message on the console, every picture has a size, every table its rows."""
    write_report(classification, tmp_path / "report.html")
    title, messages = browser_title(
        tmp_path / "report.html",
        "const bad = [...document.images].filter(i => !i.naturalWidth).length;"
        "const rows = document.querySelectorAll('tr').length;"
        "document.title = `${document.images.length} ${bad} ${rows}`;",
    )
    images, bad, rows = map(int, title.split())
    assert images >= 3 and bad == 0 and rows >= 12
    assert messages == []


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_page_fits_a_phone(tmp_path):
    """At 390 pixels the page does not scroll sideways; a wide table scrolls within its own box, to its last column."""
    X, y = load_digits(return_X_y=True)
    frame = pd.DataFrame(X[:300, 18:22], columns=[f"a_long_name_without_any_space_{j}" for j in range(4)])
    frame["a very long name of a target"] = [f"the digit {label}" for label in y[:300]]
    write_report(trained(tmp_path, frame, judge="none"), tmp_path / "report.html")
    inside = (
        "<!doctype html><html><head><title></title></head><body>"
        "<iframe src='report.html' style='width:390px;height:3000px;border:0'></iframe></body></html>"
    )
    (tmp_path / "phone.html").write_text(inside, encoding="utf-8")
    title, _ = browser_title(
        tmp_path / "phone.html",
        "const page = document.querySelector('iframe').contentDocument;"
        "const boxes = [...page.querySelectorAll('.scroll')];"
        "const wide = boxes.filter(b => b.scrollWidth > b.clientWidth);"
        "const reached = wide.filter(b => { b.scrollLeft = 1e6; const cell = b.querySelector('tr').lastElementChild;"
        "  return cell.getBoundingClientRect().right <= b.getBoundingClientRect().right + 1; });"
        "const out = [...page.body.querySelectorAll('*')].filter(e => !e.closest('.scroll, pre') &&"
        "  e.getBoundingClientRect().right > 391).length;"
        "document.title = `${page.documentElement.scrollWidth} ${wide.length} ${reached.length} ${out}`;",
        "--allow-file-access-from-files",
    )
    width, wide, reached, outside = map(int, title.split())
    assert width <= 390 and outside == 0
    assert wide == reached >= 2


def test_a_table_of_texts(tmp_path):
    """Long strings become words; the machine is linear."""
    rng = np.random.default_rng(0)
    words = [["good great fine nice", "bad awful poor sad"][i % 2].split() for i in range(80)]
    texts = [" ".join(rng.choice(w, 6)) + f" number {i}" for i, w in enumerate(words)]
    frame = pd.DataFrame({"text": texts, "mood": ["up" if i % 2 == 0 else "down" for i in range(80)]})
    outcome = trained(tmp_path, frame, judge="none")
    assert outcome.search.best_score_ > 0.95 and type(outcome.machine).__name__ == "LinearSVC"
    write_report(outcome, tmp_path / "report.html")
