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
        mercer.warm("SVC", "SVM")
    with pytest.raises(InvalidInputError, match=r"warm got 3: give names or classes of estimators, such as \"SVC\"\."):
        mercer.warm(3)
    with pytest.raises(InvalidInputError) as told:
        mercer.warm("SVM")
    listed = str(told.value)[:-1].split("some of ")[1].split(", ")
    assert all(issubclass(getattr(mercer, name), BaseEstimator) for name in listed)


def test_classes_and_lists():
    """They stand for their names."""
    by_name = [job.name for job in mercer.warm("KernelCentroid")]
    assert [job.name for job in mercer.warm(mercer.KernelCentroid)] == by_name
    assert [job.name for job in mercer.warm(["KernelCentroid", NAME])] == by_name


def test_a_bar_on_a_terminal():
    """By default, and erased at the end; False shows nothing."""
    screen = Terminal()
    with redirect_stderr(screen):
        mercer.warm(NAME, progress=False)
        assert screen.getvalue() == ""
        mercer.warm(NAME)
    lines = screen.getvalue().split("\r")
    assert f"0 of 3  {NAME}" in lines[1] and lines[-2].strip() == lines[-1] == ""


def test_the_command(capsys):
    """It prints a summary, and where the machine code is."""
    assert main(["warm", NAME]) == 0
    printed = capsys.readouterr().out.splitlines()
    for name, line in zip([NAME, f"{NAME} classes", SHARED], printed[:3], strict=True):  # when each is done
        assert line.startswith(f"{name:<50}    0 functions ")
    assert printed[3].startswith("3 jobs, 0 functions compiled, ")
    assert printed[-1].startswith("Machine code of ")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_what_is_compiled_is_shown(terminal, monkeypatch, caplog):
    """On a terminal in one line of its width, which is erased; elsewhere in the log."""
    monkeypatch.setenv("COLUMNS", "60")
    compiling._announce.cache_clear()
    caplog.set_level("INFO", "mercer")
    screen = Terminal() if terminal else io.StringIO()
    for module in (machine_code, compiling):
        monkeypatch.setattr(module, "cache_directory", lambda: None)  # nothing is found on disk

    @compiling.compiled()
    def double(x):
        return x * 2

    double.__module__ = double.py_func.__module__ = "mercer.tests"
    before = compiling.functions_compiled()
    with redirect_stderr(screen):
        assert double(3) == 6
    assert compiling.functions_compiled() == before + 1
    why = "mercer: compiling its loops for this process (2 to 15 s) ..."
    line = f"mercer: compiling double (function {before + 1}"
    lines = screen.getvalue().split("\r")
    if terminal:
        assert lines[0] == f"{why}\n" and lines[1].startswith(line) and lines[2:] == [" " * 59, ""]
        assert len(lines[1]) == 59 and not caplog.records
    else:
        assert lines == [""] and [f"mercer: {text}"[: len(line)] for text in caplog.messages][-1] == line
        assert "mercer: " + caplog.messages[-2] == "mercer: compiling its loops for this process (2 to 15 s) ..."
