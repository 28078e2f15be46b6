"""`mercer fit` of a Parquet table that exceeds the memory."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from tests.clocks import Countdown

import mercer
from mercer import load, save
from mercer.cli import main
from mercer.io.blocks.table_rows import PreparedRows
from mercer.workflow.disk import _fit_all, _sample
from mercer.workflow.job import Job
from mercer.workflow.training import train

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

QUICK = ["--grid", "3", "--folds", "2"]


def table(n, seed=0):
    """Numbers, a category, missing cells, an uninformative column, two classes."""
    rng = np.random.default_rng(seed)
    frame = pandas.DataFrame({f"a{j}": rng.standard_normal(n) for j in range(5)})
    frame["city"] = rng.choice(["Rome", "Oslo", "Bonn"], n)
    frame["row"] = np.arange(n)
    frame.loc[rng.random(n) < 0.05, "a1"] = np.nan
    noise = rng.standard_normal(n)
    frame["y"] = np.where(frame["a0"] + (frame["city"] == "Rome") + noise > 0.3, "yes", "no")
    return frame


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = tmp_path_factory.mktemp("disk") / "t.parquet"
    table(20_000).to_parquet(found, row_group_size=3000)
    return found


def test_a_table_beyond_the_memory_is_read_from_disk(path, tmp_path, capsys):
    """The command says so, and the model predicts tables; its certificate is of all rows."""
    model = tmp_path / "m.mercer"
    assert main(["fit", str(path), *QUICK, "--memory", "1", "--model", str(model)]) == 0
    out, err = capsys.readouterr()
    assert "is read from disk, block by block: 20,000 rows would take about" in err
    assert "row: left out (row numbers)" in err and "y: category, the target" in err
    assert out.startswith("20,000 rows: classification of 'y'") and "fitted to all 20,000 rows" in " ".join(out.split())
    found = mercer.load(model)
    new = table(2000, seed=1)
    assert np.mean(found.predict(new) == new["y"]) > 0.7
    # the same pipeline, fitted to the table in memory with the C that was chosen
    machine = found[-1].best_estimator_
    Z = found[:-1].transform(table(20_000))
    same = mercer.LinearSVC(**machine.get_params()).fit(Z, table(20_000)["y"])
    assert machine.certificate_.relative_gap <= machine.tol
    assert np.isclose(machine.certificate_.primal, same.certificate_.primal, rtol=2 * machine.tol)


def test_a_regression_and_a_folder(path, tmp_path, capsys):
    """A folder is always read from disk; targets may be missing in some rows."""
    frame = table(6000).drop(columns="y").rename(columns={"a4": "z"})
    frame["z"] = frame["a0"] * 3 + frame["z"]
    frame.loc[::50, "z"] = np.nan
    (tmp_path / "parts").mkdir()
    for k in range(3):
        frame[2000 * k : 2000 * (k + 1)].to_parquet(tmp_path / "parts" / f"{k}.parquet", index=False)
    command = ["fit", str(tmp_path / "parts"), "--target", "z", *QUICK, "--model", str(tmp_path / "m"), "--json"]
    assert main([*command, "--na-target", "drop", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["task"] == "regression" and found["rows"] == 6000
    assert main([*command, "--quiet"]) != 0
    assert "column 'z': the target is missing, as in 120 of 6,000 rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kernel", "rbf"], "--kernel rbf needs all rows in memory"),
        (["--target", "z"], "--target z names the column 'z', which"),
        (["--missing", "refuse"], "The column 'a1' has"),
        (["--memory", "-1"], "must be greater than 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_cannot_be_done(options, message, path, tmp_path, capsys):
    """The error is one sentence."""
    command = ["fit", str(path), *QUICK, "--memory", "1", "--model", str(tmp_path / "m"), "--quiet", *options]
    try:
        status = main(command)
    except SystemExit as error:  # of argparse
        status = error.code
    assert status != 0 and message in capsys.readouterr().err


def test_a_time_limit_ends_the_fit_to_all_rows(path, tmp_path, capsys):
    """The model so far is written with its certificate, and the command says what ended the fit."""
    model = tmp_path / "m.mercer"
    assert main(["fit", str(path), *QUICK, "--memory", "1", "--model", str(model), "--time-limit", "0"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "--time-limit ended the fit to all rows before the optimum; the model is " in out
    found = mercer.load(model)
    proof = found[-1].best_estimator_.certificate_
    assert np.isfinite(proof.primal) and proof.relative_gap > found[-1].best_estimator_.tol
    assert found.predict(table(10)).shape == (10,)


def test_the_fit_to_all_rows_begins_at_the_machine_of_the_search(path, tmp_path, capsys):
    """Without time for all rows the machine of the search is written; the score is said not to be its own."""
    new, model = table(2000, seed=1), tmp_path / "m.mercer"
    rows = PreparedRows(path, "y", memory=1)
    outcome = train(_sample(rows, 2000), task="classification", kernel="linear", job=Job())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mercer.workflow.disk.Clock", lambda limit, progress: Countdown(0))
        found = _fit_all(outcome, rows, Job())
    assert np.mean(found.model.predict(new) == new["y"]) > 0.7
    proof = found.search.best_estimator_.certificate_
    assert proof.relative_gap >= 0.5 and any("score is that of machines fitted to the" in m for m in found.messages)
    zero = found.search.best_estimator_.C * rows.n  # the primal value of w = 0
    assert proof.primal < zero
    save(found.model, model)
    assert np.array_equal(load(model).predict(new), found.model.predict(new))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_leaves_a_certified_model(tmp_path):
    """During the fit to all rows: the model so far is written, and its certificate says how good it is."""
    table(100_000).to_parquet(tmp_path / "t.parquet", row_group_size=2000)
    code = "import mercer.cli.terminal as t; t.RELOG = 0.0; from mercer.cli import command; command()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "fit", "t.parquet", *QUICK, "--memory", "1", "--model", "m.mercer"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    for line in process.stderr:
        if "rows from disk" in line:
            break
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "interrupted: the machine so far is kept, with its certificate" in err and "certificate" in out
    model = mercer.load(tmp_path / "m.mercer")
    assert np.isfinite(model[-1].best_estimator_.certificate_.gap)
    assert model.predict(table(10)).shape == (10,)
