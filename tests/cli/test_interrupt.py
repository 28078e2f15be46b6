"""Ctrl-C as a real signal to a separate process: the results, messages and exit status of `mercer fit` and searches."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import mercer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

# the command, which reports each step of its search
COMMAND = "import sys, mercer.cli.terminal as t; t.RELOG = 0.0; from mercer.cli import command; command()"
# seconds after which a process that hangs is killed
TOO_LONG = 300


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Classes that overlap, so that a search takes seconds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 8))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + rng.normal(size=2500) > 1
    path = tmp_path_factory.mktemp("interrupt") / "data.csv"
    rows = [",".join(f"{v:.4f}" for v in x) + (",yes" if label else ",no") for x, label in zip(X, y, strict=True)]
    path.write_text("\n".join([",".join([*"abcdefgh", "label"]), *rows]) + "\n")
    return path


class Process:
    """A process whose standard error is read line by line."""

    def __init__(self, code, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"}, start_new_session=True,
        )  # fmt: skip
        self.began = time.monotonic()

    def wait_for(self, words):
        """Read standard error up to the line with these words."""
        for line in self.process.stderr:
            if words in line:
                return line
            assert time.monotonic() - self.began < TOO_LONG
        raise AssertionError(f"{words!r} was not said")

    def interrupt(self):
        os.kill(self.process.pid, signal.SIGINT)

    def end(self):
        """Exit status, standard output and the rest of standard error."""
        out, err = self.process.communicate(timeout=TOO_LONG)
        return self.process.returncode, out, err


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--judge", "nested"], ["--report"]], ids=" ".join)
def test_the_first_press_keeps_the_best_so_far(table, tmp_path, options):
    """The search ends with an immediate message, and the summary describes the model that is written."""
    model, page = tmp_path / "m.mercer", tmp_path / "m.html"
    options = [*options, page] if options == ["--report"] else options
    run = Process(COMMAND, "fit", table, "--model", model, "--json", *options)
    run.wait_for("best score so far")
    run.interrupt()
    said = run.wait_for("interrupted: keeping the best of ")
    assert said.rstrip().endswith("; press Ctrl-C again to stop without a model")
    status, out, _ = run.end()
    found = json.loads(out)
    assert status == 130 and found["interrupted"] is True
    assert 0 < found["tried"] < 40
    assert f"the best of {found['tried']} candidates" in found["score"]["method"]
    search = mercer.load(model)[-1]
    assert found["parameters"] == pytest.approx(search.best_params_)
    assert found["search_score"] == search.best_score_
    assert np.isfinite(search.cv_results_["mean_test_score"]).sum() == found["tried"]
    assert found["certificate"]["relative_gap"] < 0.01  # the last fit was not cut short
    assert found["written"] == [str(model), *([str(page)] if page.exists() else [])]
    assert page.exists() == ("--report" in options)


@pytest.mark.slow
def test_the_second_press_leaves_no_model(table, tmp_path):
    """Two presses end the command at once, without a model."""
    run = Process(COMMAND, "fit", table, "--model", tmp_path / "m.mercer", "--judge", "nested")
    run.wait_for("best score so far")
    run.interrupt()
    run.wait_for("interrupted: keeping")
    run.interrupt()
    status, out, err = run.end()
    assert status == 130 and out == "" and not (tmp_path / "m.mercer").exists()
    assert err.rstrip().endswith("mercer fit: interrupted, no model was written") and "Traceback" not in err


@pytest.mark.slow
def test_a_press_before_there_is_anything_to_keep(table, tmp_path):
    """Before any candidate was tried in all folds, the first press ends the command."""
    run = Process(COMMAND, "fit", table, "--model", tmp_path / "m.mercer")
    run.wait_for("reading")
    run.interrupt()
    status, out, err = run.end()
    assert status == 130 and out == "" and not (tmp_path / "m.mercer").exists()
    assert "no model was written" in err


SEARCH = """
import sys, warnings, numpy as np, mercer
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 8))
y = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + rng.normal(size=3000) > 1
warnings.simplefilter("always")
model = getattr(mercer, sys.argv[1])(**eval(sys.argv[2]))
model._on_step = lambda done, total, table: table.best and print("best", file=sys.stderr)
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print("KeyboardInterrupt", hasattr(model, "best_estimator_"))
    raise SystemExit(130)
scores = model.cv_results_["mean_test_score"]
print(np.isfinite(scores).sum(), len(scores), np.nanmax(scores) == model.best_score_, model.certificate_.relative_gap)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameters"),
    [("SVCCV", "{}"), ("SVCCV", "{'search': 'local'}"), ("LinearSVCCV", "{'Cs': 300, 'loss': 'hinge'}")],
)
def test_searches_end_with_the_best_so_far(name, parameters):
    """In Python a search warns, and the best of the tried candidates is fitted to the end."""
    run = Process(SEARCH, name, parameters)
    run.wait_for("best")
    run.interrupt()
    status, out, err = run.end()
    assert status == 0
    tried, known, best, gap = out.split()
    assert best == "True" and float(gap) < 0.01
    assert f"The search was interrupted: {tried} of " in err
    assert "the best of these is used; interrupt again to end without a model" in err
    assert "Solver was interrupted" not in err  # the last fit was not, and others were dropped
    assert int(tried) < (int(known) if name != "SVCCV" or parameters == "{}" else 40)


@pytest.mark.slow
def test_a_second_press_ends_a_search():
    """In Python: a KeyboardInterrupt, and no fitted machine."""
    slowed = SEARCH.replace("file=sys.stderr)\n", "file=sys.stderr) or __import__('time').sleep(0.5)\n", 1)
    run = Process(slowed, "SVCCV", "{}")
    run.wait_for("best")
    run.interrupt()
    time.sleep(0.1)
    run.interrupt()
    status, out, _ = run.end()
    assert status == 130 and out == "KeyboardInterrupt False\n"


EVALUATE = """
import sys, time, warnings, numpy as np, mercer
from sklearn.base import clone
warnings.simplefilter("always")
rng = np.random.default_rng(0)
X = rng.normal(size=(600, 5))
y = X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=600) > 0

class Slow(mercer.SVC):
    folds = 0
    def fit(self, X, y, sample_weight=None):
        Slow.folds += 1
        if Slow.folds == 4:
            print("fourth", file=sys.stderr, flush=True)
            time.sleep(1.0)
        return super().fit(X, y, sample_weight)

found = mercer.evaluate(Slow(), X, y)
whole = mercer.evaluate(mercer.SVC(), X, y)
print(len(found.scores), np.array_equal(found.scores, whole.scores[:3]))
"""


@pytest.mark.slow
def test_a_fold_that_was_cut_short_is_not_scored():
    """evaluate keeps the folds before the press, with unchanged scores."""
    run = Process(EVALUATE)
    run.wait_for("fourth")
    time.sleep(0.1)
    run.interrupt()
    status, out, err = run.end()
    assert status == 0 and out == "3 True\n"
    assert "evaluate ended early (it was interrupted): 3 of 5 folds were scored" in err
