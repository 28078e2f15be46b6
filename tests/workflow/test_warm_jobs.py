"""`mercer warm` compiles or loads the loops of estimators, says what and how long, and shows how far it is."""

import io
from contextlib import redirect_stderr

import pytest
from sklearn.base import BaseEstimator

import mercer
from mercer._compiled import compile as compiling
from mercer._compiled import machine_code
from mercer.cli import main
from mercer.exceptions import InvalidInputError
from mercer.workflow.warm_jobs import SHARED, jobs

NAME = "KernelCentroid float64"


def test_every_estimator_has_jobs_for_dense_and_sparse_samples():
    """Its example is a job, too. A wheel ships the code that the jobs compile."""
    names = list(jobs())
    for estimator in mercer.__all__:
        found = getattr(mercer, estimator)
        if isinstance(found, type) and issubclass(found, BaseEstimator):
            own = [name for name in names if name.split()[0] == estimator]
            assert any("float64" in name for name in own) and any("float32" in name for name in own), estimator
            assert f"{estimator} example" in own
            assert estimator.endswith("ProcessRegressor") or any("CSR" in name for name in own), estimator


def test_jobs_run_and_are_listed():
    """Only requested jobs run, and the loops that any fit may share; the second time nothing is compiled."""
    shown = []
    mercer.warm(NAME)
    again = mercer.warm(NAME, progress=lambda done, total, text: shown.append((done, total, text)))
    assert [job.name for job in again] == [NAME, f"{NAME} classes", SHARED]
    assert [job.compiled for job in again] == [0, 0, 0] and all(job.seconds > 0 for job in again)
    assert shown == [(0, 3, NAME), (1, 3, f"{NAME} classes"), (2, 3, SHARED)]


def test_a_name_that_no_job_has():
    """The error names what there is."""
    with pytest.raises(InvalidInputError, match=r"nothing to compile for SVM: choose some of .*KernelRidge.*SVC.*\."):
        mercer.warm("SVM")


def test_the_command(capsys):
    """It prints a summary, and where the machine code is."""
    assert main(["warm", NAME]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("3 jobs, 0 functions compiled, ")
    assert printed[-1].startswith("Machine code of ")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_what_is_compiled_is_shown(terminal, monkeypatch, caplog):
    """On a terminal in one line, which is erased; elsewhere in the log."""
    caplog.set_level("INFO", "mercer")
    screen = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(machine_code, "cache_directory", lambda: None)  # nothing is found on disk

    @compiling.compiled()
    def double(x):
        return x * 2

    double.__module__ = double.py_func.__module__ = "mercer.tests"
    before = compiling.functions_compiled()
    with redirect_stderr(screen):
        assert double(3) == 6
    assert compiling.functions_compiled() == before + 1
    line = f"compiling double (function {before + 1} of 5 to 35, "
    text = screen.getvalue()
    if terminal:
        assert line in text and text.endswith("\r" + " " * compiling.LINE + "\r") and not caplog.records
    else:
        assert line not in text and line in caplog.text
