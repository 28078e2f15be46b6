"""Progress covers the whole job, and messages are worded for the command."""

import math
import os
import re
import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer.cli.terminal import JobDisplay, progress_text, time_left
from mercer.io.tables import Samples
from mercer.workflow.job import FIT, JUDGING, REPORT, SEARCH, Job, Progress
from mercer.workflow.preparation import MANY_ROWS
from mercer.workflow.summary import _wrapped
from mercer.workflow.training import plain_messages, train


def samples(n=80):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return Samples("matrix", X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, "a", "b"), "y")


@pytest.mark.parametrize("judge", ["auto", "nested"])
def test_the_progress_of_a_job_goes_one_way(judge):
    """The share of the whole job never decreases and stays between 0 and 1."""
    seen = []
    with Job(seen.append) as job:
        train(samples(), judge=judge, job=job, Cs=2, gammas=2, cv=2)
    assert list(dict.fromkeys(p.stage for p in seen)) == [SEARCH, FIT, JUDGING]
    shares = [p.share for p in seen]
    assert all(0.0 <= a <= b <= 1.0 for a, b in pairwise(shares))
    if judge == "nested":
        # the search is one of six
        assert next(p.share for p in seen if p.stage == FIT) < 0.25


def test_a_report_is_part_of_the_job():
    """Work planned by the caller after training counts in the share and in the estimate."""
    seen = []
    with Job(seen.append) as job:
        job.plan(report=1e6)
        train(samples(), job=job, Cs=2, gammas=2, cv=2)
        job.begin(REPORT)
    assert seen[-1].stage == REPORT and 0.0 < seen[-1].share < 0.01


def test_a_job_of_its_own_is_made_if_none_is_given():
    """In Python nothing is shown, and the outcome is the same."""
    outcome = train(samples(), Cs=2, gammas=2, cv=2)
    assert not outcome.interrupted and outcome.tried == 28 and outcome.search_rows == 80


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, ""), (0.0, "a few seconds left"), (4.9, "a few seconds left"), (12.3, "about 15 s left"),
     (89.0, "about 90 s left"), (91.0, "about 2 min left")],
)  # fmt: skip
def test_estimates_are_as_exact_as_they_can_be(seconds, words):
    """Neither "0.0 s" nor tenths of a second."""
    assert time_left(seconds) == words


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="pseudo-terminals of POSIX")
def test_a_terminal_has_one_line():
    """The progress line is overwritten, not more than a few times a second, and erased at the end."""
    reader, terminal = os.openpty()
    with open(terminal, "w") as stream, JobDisplay(quiet=False, stream=stream) as display:
        display.show(Progress(SEARCH, 0.25, 12.0, "best score so far 0.9000", begins=True))
        display.drawn = math.inf  # as if it had just been drawn, however long that takes
        for k in range(100):
            display.show(Progress(SEARCH, 0.26 + k / 1000, 11.0, ""))
        display.clear()
        shown = ""
        while not shown.endswith(" \r"):  # a terminal passes on what is written piece by piece
            shown += os.read(reader, 10_000).decode()
    os.close(reader)
    line = "[#####...............]  25 %  search  best score so far 0.9000  about 15 s left"
    assert shown == f"\r{line}\r{' ' * len(line)}\r"


def test_a_log_has_a_line_for_each_stage(capsys):
    """Without a terminal: few lines; quiet: none."""
    for quiet in (False, True):
        with JobDisplay(quiet) as display, Job(display.show, display.say) as job:
            train(samples(), job=job, Cs=2, gammas=2, cv=2)
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == (0 if quiet else 3)
        assert not any(re.search(r"\d{7}", line) for line in lines)


def test_text_without_a_share():
    """Before the amount of work is known only the stage is named."""
    assert progress_text(Progress("reading", None, None, "data.csv")) == "reading  data.csv"


def test_messages_of_libraries_are_not_shown():
    """scikit-learn's warnings are reworded for the command, or left out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("The least populated class in y has only 1 members, which is less than n_splits=5.", stacklevel=1)
        warnings.warn("penalty is deprecated and goes in 1.9", FutureWarning, stacklevel=1)
        warnings.warn_explicit("theirs", UserWarning, "/lib/site-packages/sklearn/svm/_base.py", 1)
        text = "Solver terminated early (max_iter=5).  Consider pre-processing your data with StandardScaler or MinMax"
        warnings.warn(f"{text}. The model is within 1e-2 of the optimum.", ConvergenceWarning, stacklevel=1)
        warnings.warn("ours", UserWarning, stacklevel=1)
        warnings.warn("ours", UserWarning, stacklevel=1)
    assert plain_messages(caught) == [
        "A class has only 1 of the rows, fewer than the 5 folds: some folds do not contain it. Add rows of this "
        "class, or use fewer --folds.",
        "A fit ended before the optimum; it is within 1e-2 of the optimum.",
        "ours",
    ]


def test_a_linear_machine_says_why():
    """With more rows than the limit the machine is linear, and the next step is named."""
    outcome, asked = train(samples(MANY_ROWS + 1), Cs=2, cv=2), train(samples(60), kernel="linear", Cs=2, cv=2)
    assert outcome.messages == (
        f"The machine is linear because there are more than {MANY_ROWS:,} rows. A Gaussian kernel may be better, but "
        "takes longer: --kernel rbf.",
    )
    assert asked.messages == ()


def test_options_are_not_broken_at_their_hyphens():
    """Options are not split across lines."""
    for length in range(60, 100):
        lines = _wrapped("x" * length + " try --class-weight balanced", "  - ").splitlines()
        assert any("--class-weight" in line for line in lines) and max(map(len, lines)) <= 100
