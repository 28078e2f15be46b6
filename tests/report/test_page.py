"""The report is one file that needs nothing else, tells what the numbers are, and opens in a browser."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris

from mercer import SVC, SVR, InvalidInputError
from mercer.io.tables import read_samples
from mercer.report import write_report
from mercer.report.importance import _gradients, _weights
from mercer.workflow import train

pytest.importorskip("matplotlib")


class Page(HTMLParser):
    """Tags that are opened and closed in order, and the links to anything outside."""

    VOID = ("meta", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.outside, self.images, self.headings = [], [], [], []
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
                    "Which inputs matter", "Pictures", "How to use it"):  # fmt: skip
        assert heading in page.headings
    assert len(page.images) >= 3 and all(image["alt"] for image in page.images)
    assert f"{outcome.search.certificate_.primal:.10g}" in text
    assert "mercer.load(&quot;m.mercer&quot;)" in text
    assert "viewport" in text and "@media print" in text


def test_text_of_users_is_escaped(classification, tmp_path):
    write_report(classification, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<b>" not in re.sub(r'<div class="fact"><b>', "", text) and "&lt;b&gt;" in text and "b&amp;c" in text


def test_confusion_counts_all_rows(classification):
    assert classification.confusion.sum() == 150
    assert classification.confusion.trace() / 150 == pytest.approx(classification.search.best_score_, abs=0.02)


def test_report_cannot_be_written(regression, tmp_path):
    with pytest.raises(InvalidInputError, match="cannot be written"):
        write_report(regression, tmp_path / "nowhere" / "report.html")


def test_gradients_are_exact():
    """Against differences of the decision function."""
    X, y = load_iris(return_X_y=True)
    for kernel in ("linear", "rbf"):
        machine = SVC(kernel=kernel, gamma=0.3, decision_function_shape="ovo").fit(X, y)
        point = X[[3, 77]]
        for pair, beta in enumerate(_weights(machine)):
            slopes = _gradients(machine._kernel, point, machine.support_vectors_, beta)
            for j in range(4):
                step = np.zeros(4)
                step[j] = 1e-5
                ahead, behind = (machine.decision_function(point + s)[:, pair] for s in (step, -step))
                np.testing.assert_allclose(slopes[:, j], (ahead - behind) / 2e-5, rtol=1e-5, atol=1e-7)
    X, y = load_diabetes(return_X_y=True)
    machine = SVR(C=10.0).fit(X[:50], y[:50])
    assert _weights(machine).shape == (1, len(machine.support_))


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_page_opens_in_a_browser(classification, tmp_path):
    """No message on the console, every picture has a size, every table its rows."""
    path = tmp_path / "report.html"
    write_report(classification, path)
    probe = (
        "<script>addEventListener('load', () => { const bad = [...document.images].filter(i => !i.naturalWidth).length;"
        "const rows = document.querySelectorAll('tr').length;"
        "document.title = `images ${document.images.length} bad ${bad} rows ${rows}`; });"
        "</script></body>"
    )
    path.write_text(path.read_text(encoding="utf-8").replace("</body>", probe), encoding="utf-8")
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    ended = subprocess.run([*browser, path.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    title = re.search(r"<title>images (\d+) bad (\d+) rows (\d+)</title>", ended.stdout)
    assert int(title[1]) >= 3 and int(title[2]) == 0 and int(title[3]) >= 12
    assert "CONSOLE" not in ended.stderr


def test_a_table_of_texts(tmp_path):
    """Long strings become words; the machine is linear."""
    rng = np.random.default_rng(0)
    words = [["good great fine nice", "bad awful poor sad"][i % 2].split() for i in range(80)]
    texts = [" ".join(rng.choice(w, 6)) + f" number {i}" for i, w in enumerate(words)]
    frame = pd.DataFrame({"text": texts, "mood": ["up" if i % 2 == 0 else "down" for i in range(80)]})
    outcome = trained(tmp_path, frame, judge="none")
    assert outcome.search.best_score_ > 0.95 and type(outcome.machine).__name__ == "LinearSVC"
    write_report(outcome, tmp_path / "report.html")
