"""Each subcommand works on small files and reports errors in one sentence."""

import csv
import io
import json
import signal

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_diabetes, load_iris

import mercer
import mercer.datasets
from mercer.cli import main
from mercer.io.tables import read_samples
from mercer.workflow.job import SEARCH, Job
from mercer.workflow.summary import text_summary
from mercer.workflow.training import train

QUICK = ["--grid", "3", "--folds", "2", "--quiet"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """iris.csv with a column of names and a missing cell, diabetes.csv, and a model of the first."""
    path = tmp_path_factory.mktemp("cli")
    data = load_iris(as_frame=True)
    frame = data.frame.drop(columns="target")
    frame.columns = ["a", "b", "c", "d"]
    frame["colour"] = np.where(np.arange(150) % 3, "red", "blue")
    frame["species"] = data.target_names[data.target]
    frame.loc[3, "a"] = None
    frame.to_csv(path / "iris.csv", index=False)
    load_diabetes(as_frame=True).frame[::4].to_csv(path / "diabetes.csv", index=False)
    model = ["--model", str(path / "iris.mercer")]
    assert main(["fit", str(path / "iris.csv"), *QUICK, "--judge", "none", *model]) == 0
    return path


def test_fit_prints_a_summary(folder, capsys):
    model = folder / "m.mercer"
    status = main(
        ["fit", str(folder / "iris.csv"), "--target", "species", *QUICK, "--judge", "nested", "--model", str(model)]
    )
    shown = capsys.readouterr().out
    assert status == 0 and model.exists()
    for word in ("150 rows: classification of 'species'", "4 numbers", "1 category", "SVC with", "accuracy 0.9",
                 "support vectors", "certificate", "setosa", "virginica", "within"):  # fmt: skip
        assert word in shown


def test_options_reach_the_search(folder, capsys):
    """--class-weight, --scoring and --epsilon reach the machine and the score."""
    model = ["--model", str(folder / "o.mercer")]
    given = ["--class-weight", "setosa=5,virginica=0.5", "--scoring", "balanced_accuracy"]
    assert main(["fit", str(folder / "iris.csv"), *QUICK, *given, *model, "--json"]) == 0
    found, search = json.loads(capsys.readouterr().out), mercer.load(folder / "o.mercer")[-1]
    assert search.best_estimator_.class_weight == {"setosa": 5.0, "virginica": 0.5}
    assert found["score"]["name"] == "balanced_accuracy"
    assert found["score"]["interval_method"] == "bootstrap over 150 held-out rows"
    assert main(["fit", str(folder / "diabetes.csv"), *QUICK, "--epsilon", "7.5", *model, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"]["epsilon"] == 7.5
    linear = ["--kernel", "linear", "--class-weight", "balanced"]
    assert main(["fit", str(folder / "iris.csv"), *QUICK, *linear, *model]) == 0
    assert mercer.load(folder / "o.mercer")[-1].best_estimator_.class_weight == "balanced"
    capsys.readouterr()


def test_the_search_judges_itself(folder, capsys):
    """Without another fit, the corrected score of the search is near that of nested cross-validation."""
    arguments = ["fit", str(folder / "iris.csv"), *QUICK, "--json", "--model", str(folder / "j.mercer")]
    found = {}
    for way in ("auto", "nested"):
        assert main([*arguments, "--judge", way]) == 0
        found[way] = json.loads(capsys.readouterr().out)
    own, nested = found["auto"]["score"], found["nested"]["score"]
    assert own["mean"] <= found["auto"]["search_score"] + 0.005
    assert own["interval"][0] < nested["mean"] < own["interval"][1] < 1.0
    tried = found["auto"]["tried"]
    assert own["method"] == f"held-out rows of the search, corrected for choosing the best of {tried} candidates"
    assert "each with its own preparation and search" in nested["method"]


def test_many_rows_are_searched_in_part_and_judged_on_the_others(tmp_path, capsys):
    """The score is estimated on rows that the search did not use, and the summary says so."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    np.savez(tmp_path / "d.npz", X=X, y=np.where((X**2).sum(axis=1) > 1.4 + rng.normal(size=600), "out", "in"))
    arguments = ["fit", str(tmp_path / "d.npz"), *QUICK, "--search-rows", "200", "--model", str(tmp_path / "m.mercer")]
    assert main(arguments) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "by 2-fold cross-validation on 200 rows" in shown
    assert "estimated by 120 rows that the search did not use, predicted by a machine fitted to all other" in shown
    assert "predictions of 120 held-out rows that the search did not use" in shown
    assert "The parameters were searched on 200 of the 600 rows; the model is fitted to all rows." in shown
    search = mercer.load(tmp_path / "m.mercer")[-1]
    assert len(search.cv_fold_) == 600 and np.sum(search.cv_fold_ >= 0) == 200
    assert search.best_estimator_.shape_fit_ == (600, 2)


def test_only_machines_that_were_tried_are_counted(folder):
    """A search that ends early reports how many candidates it has compared."""

    def press(progress):
        """Ctrl-C as soon as some candidates were tried."""
        if progress.stage == SEARCH and progress.detail and not job.interrupted:
            signal.raise_signal(signal.SIGINT)

    with Job(press) as job:
        outcome = train(read_samples(folder / "iris.csv"), job=job, n_jobs=1)
    shown, tried = " ".join(text_summary(outcome).split()), outcome.tried
    assert outcome.interrupted and tried == np.isfinite(outcome.search.cv_results_["mean_test_score"]).sum()
    assert 0 < tried < 16 and f"the best of {tried} candidates by" in shown
    assert any(f"{tried} of 40 candidates were tried in all folds" in message for message in outcome.messages)


def test_fit_for_programs(folder, capsys):
    arguments = ["fit", str(folder / "diabetes.csv"), *QUICK, "--judge", "holdout", "--json"]
    assert main([*arguments, "--model", str(folder / "d.mercer")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["task"] == "regression" and found["rows"] == 111
    assert 0 < found["errors"]["R²"] < 1 and found["certificate"]["relative_gap"] < 0.1
    assert found["score"]["mean"] == pytest.approx(found["errors"]["R²"], abs=0.5)


def test_the_model_holds_the_preparation(folder, capsys):
    """The command predicts the same labels from raw cells as the pipeline in Python."""
    assert main(["predict", str(folder / "iris.mercer"), str(folder / "iris.csv"), "--target", "species"]) == 0
    shown = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(shown.out)))
    assert len(rows) == 150 and rows[0] == {"prediction": "setosa"}
    right = np.mean([row["prediction"] == label for row, label in zip(rows, _species(folder), strict=True)])
    assert right > 0.9 and f"accuracy {right:.4g}" in shown.err


def _species(folder):
    return [line.rsplit(",", 1)[1] for line in (folder / "iris.csv").read_text().splitlines()[1:]]


def test_predict_names_columns_that_the_model_has_not_seen(tmp_path, capsys):
    frame = load_iris(as_frame=True).frame
    model = mercer.SVC().fit(frame.drop(columns="target"), frame["target"])
    mercer.save(model, tmp_path / "model.mercer")
    frame.to_csv(tmp_path / "flowers.csv", index=False)
    assert main(["predict", str(tmp_path / "model.mercer"), str(tmp_path / "flowers.csv")]) != 0
    shown = capsys.readouterr().err
    assert "unseen at fit time: - target. If that is the target, add --target." in shown and "Traceback" not in shown


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (mercer.KernelPCA(2), "A KernelPCA does not predict. In Python, mercer.load returns it: its transform"),
        (mercer.SpectralClustering(3, random_state=0), "A SpectralClustering does not predict new samples."),
    ],
)
def test_models_that_do_not_predict(model, message, tmp_path, capsys):
    """A model without predictions is refused in a sentence."""
    frame = load_iris(as_frame=True).data
    mercer.save(model.fit(frame), tmp_path / "model.mercer")
    frame.to_csv(tmp_path / "flowers.csv", index=False)
    assert main(["predict", str(tmp_path / "model.mercer"), str(tmp_path / "flowers.csv")]) != 0
    shown = capsys.readouterr().err
    assert message in shown and "Traceback" not in shown


def test_probabilities_and_sets(folder, capsys):
    arguments = ["predict", str(folder / "iris.mercer"), str(folder / "iris.csv"), "--probabilities", "--sets", "0.1"]
    assert main([*arguments, "--json", "--decision"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    classes = ["setosa", "versicolor", "virginica"]
    for row in rows:
        p = [row[f"p({c})"] for c in classes]
        assert sum(p) == pytest.approx(1.0) and classes[int(np.argmax(p))] == row["prediction"]
    covered = np.mean([label in row["set"].split("|") for row, label in zip(rows, _species(folder), strict=True)])
    assert covered >= 0.85


def test_new_rows_without_a_target(folder, tmp_path, capsys):
    """Columns in another order, an unknown category, a missing number."""
    (tmp_path / "new.csv").write_text("colour,d,c,b,a\ngreen,0.2,1.4,3.5,5.1\nred,2.3,,3.0,6.5\n")
    assert (
        main(["predict", str(folder / "iris.mercer"), str(tmp_path / "new.csv"), "--output", str(tmp_path / "o.csv")])
        == 0
    )
    assert (tmp_path / "o.csv").read_text().split() == ["prediction", "setosa", "virginica"]
    (tmp_path / "bad.csv").write_text("colour,d,c,b,a\nred,x,1,1,1\n")
    assert main(["predict", str(folder / "iris.mercer"), str(tmp_path / "bad.csv")]) == 1
    assert "line 2, column 'd': 'x' is not a number" in capsys.readouterr().err


def test_inspect(folder, capsys):
    assert main(["inspect", str(folder / "iris.mercer")]) == 0
    shown = capsys.readouterr().out
    assert "SVC" in shown and "setosa, versicolor, virginica" in shown and "a=number" in shown
    assert main(["inspect", str(folder / "iris.mercer"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["machine"] == "SVC"


def test_inspect_explains_rows(folder, tmp_path, capsys):
    """With a data file, the mean |Shapley value| of each preprocessed feature, largest first."""
    arguments = ["inspect", str(folder / "iris.mercer"), "--data", str(folder / "iris.csv")]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "mean |Shapley value| of each feature:\n  " in shown and "█" in shown
    assert main([*arguments, "--json"]) == 0
    sizes = json.loads(capsys.readouterr().out)["mean |Shapley value|"]
    assert list(sizes.values()) == sorted(sizes.values(), reverse=True)
    assert {"a", "b", "c", "d", "colour = red"} <= set(sizes)
    assert set(list(sizes)[:2]) == {"c", "d"}  # the length and width of petals
    lines = tmp_path / "dna.csv"
    lines.write_text("text,label\n" + "".join(f"{'ab' * (i % 5 + 2)}c,{i % 2}\n" for i in range(20)))
    mercer.save(mercer.SVC(kernel=mercer.Spectrum(2)).fit(["abab", "cdcd"], [0, 1]), tmp_path / "dna.mercer")
    assert main(["inspect", str(tmp_path / "dna.mercer"), "--data", str(lines)]) == 1
    assert "compares strings, which have no columns to explain" in capsys.readouterr().err


def test_certify_recomputes(folder, capsys):
    arguments = ["certify", str(folder / "iris.mercer"), str(folder / "iris.csv")]
    assert main([*arguments, "--tol", "0.1"]) == 0
    assert "within the tolerance of 0.1" in capsys.readouterr().out
    assert main([*arguments, "--tol", "1e-14", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["within"] is False


def test_certify_a_pickled_model_of_scikit_learn(folder, tmp_path, capsys):
    import joblib
    from sklearn.svm import SVC

    X, y = load_iris(return_X_y=True)
    joblib.dump(SVC().fit(X, y), tmp_path / "theirs.joblib")
    np.savez(tmp_path / "iris.npz", X=X, y=y)
    arguments = ["certify", str(tmp_path / "theirs.joblib"), str(tmp_path / "iris.npz")]
    assert main(arguments) == 1  # not without being asked to
    assert capsys.readouterr().err == (
        f"mercer certify: {tmp_path / 'theirs.joblib'} is a pickle, and loading it can run any code. If you trust it, "
        "add --trust-pickle.\n"
    )
    assert main(["inspect", str(tmp_path / "theirs.joblib")]) == 1
    assert "is not a model file but a pickle, which runs code when it is loaded" in capsys.readouterr().err
    assert main([*arguments, "--trust-pickle"]) == 0
    shown = capsys.readouterr()
    assert "runs the code" in shown.err and "SVC: within" in shown.out


def test_kernel_check(folder, tmp_path, capsys):
    assert main(["kernel-check", str(folder / "diabetes.csv"), "--kernel", "gaussian(gamma=1.0) + linear()"]) == 0
    np.savetxt(tmp_path / "K.csv", [[1.0, 2.0], [2.0, 1.0]], delimiter=",")
    assert main(["kernel-check", str(tmp_path / "K.csv")]) == 1
    assert "-1" in capsys.readouterr().out


def test_convert(folder, tmp_path, capsys):
    X, y = load_iris(return_X_y=True)
    model = mercer.SVC(kernel="rbf", gamma=0.5).fit(X, y)
    mercer.save(model, tmp_path / "m.mercer")
    for name in ("m.py", "m.c", "m.model", "copy.mercer"):
        assert main(["convert", str(tmp_path / "m.mercer"), str(tmp_path / name)]) == 0
    made = {}
    exec(compile((tmp_path / "m.py").read_text(), "m.py", "exec"), made)
    assert [made["predict"](list(x)) for x in X[::10]] == model.predict(X[::10]).tolist()
    assert main(["convert", str(tmp_path / "m.model"), str(tmp_path / "again.mercer")]) == 0
    np.testing.assert_array_equal(mercer.load(tmp_path / "again.mercer").predict(X), model.predict(X))
    assert main(["convert", str(tmp_path / "m.mercer"), str(tmp_path / "m.xyz")]) == 1
    assert ".onnx" in capsys.readouterr().err


def test_sequences(tmp_path, capsys):
    """FASTA files with labels: a kernel on strings, a report, predictions by name."""
    X, y = mercer.datasets.make_promoters(60)
    text = "".join(
        f">s{i} {'promoter' if label else 'other'}\n{x}\n" for i, (x, label) in enumerate(zip(X, y, strict=True))
    )
    (tmp_path / "dna.fasta").write_text(text)
    model, page = tmp_path / "dna.mercer", tmp_path / "dna.html"
    arguments = ["fit", str(tmp_path / "dna.fasta"), *QUICK, "--judge", "none", "--model", str(model)]
    assert main([*arguments, "--report", str(page)]) == 0
    assert "strings of 57 to 57 characters" in capsys.readouterr().out and "Spectrum" in page.read_text(
        encoding="utf-8"
    )
    assert main(["predict", str(model), str(tmp_path / "dna.fasta")]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert rows[0]["name"] == "s0" and {row["prediction"] for row in rows} == {"promoter", "other"}


def test_no_time_at_all(folder, tmp_path, capsys):
    """A search that ends before its first fold still gives a model, and tells what is missing."""
    arguments = ["fit", str(folder / "iris.csv"), *QUICK, "--judge", "none", "--time-limit", "0"]
    files = ["--model", str(tmp_path / "m.mercer"), "--report", str(tmp_path / "m.html")]
    assert main([*arguments, *files]) in (0, 1)
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err and (
        shown.err.startswith("mercer fit: ") or "held-out predictions" in shown.out
    )


def test_few_rows(tmp_path, capsys):
    """Six rows: fewer folds, or a sentence."""
    (tmp_path / "few.csv").write_text("x,y\n1,0.5\n2,0.7\n3,0.1\n4,0.9\n5,1.2\n6,2.5\n")
    arguments = ["fit", str(tmp_path / "few.csv"), "--task", "regression", "--grid", "2", "--quiet"]
    assert main([*arguments, "--judge", "none", "--model", str(tmp_path / "m.mercer")]) == 0
    assert "6 rows: regression of 'y'" in capsys.readouterr().out


def test_bench(capsys):
    assert main(["bench", "--repeats", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["library"] for one in found["results"]] == ["mercer", "scikit-learn"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "nowhere.csv"], "nowhere.csv cannot be read"),
        (["fit", "iris.csv", "--target", "nothing"], "no column 'nothing'"),
        (["fit", "iris.csv", "--task", "regression"], "--task classification"),
        (["fit", "iris.csv", "--kernel", "gaussian(gamma="], "gaussian"),
        (["fit", "iris.csv", "--scoring", "acuracy"], "Unknown score 'acuracy' for --scoring: use the name of a "),
        (["fit", "iris.csv", "--scoring", "f1"], "--scoring f1 does not fit the target 'species'"),
        (
            ["fit", "iris.csv", "--class-weight", "rose=2"],
            "--class-weight names the class 'rose', but the classes are ",
        ),
        (["fit", "iris.csv", "--epsilon", "1"], "--epsilon is for regression, but the task is classification."),
        (
            ["fit", "diabetes.csv", "--class-weight", "balanced"],
            "--class-weight is for classification, but the task is ",
        ),
        (["fit", "iris.csv", "--missing", "refuse"], "'a' has 1 missing cells"),
        (["predict", "iris.csv", "iris.csv"], "iris.csv"),
        (["predict", "iris.mercer", "diabetes.csv"], "lacks the columns a, b, c, d, colour"),
        (["predict", "iris.mercer", "iris.csv", "--intervals", "0.1"], "--intervals is not possible"),
        (["inspect", "nowhere.mercer"], "nowhere.mercer: No such file or directory"),
        (["inspect", "."], ".: Is a directory"),
        (["predict", ".", "iris.csv"], ".: Is a directory"),
        (["predict", "iris.mercer", "new.csv", "--target", "species"], "new.csv has no column 'species'"),
        (
            ["predict", "iris.mercer", "new.csv", "--output", "no/o.csv"],
            "no/o.csv cannot be written",
        ),
        (["fit", "iris.csv", "--model", "no/m.mercer"], "no/m.mercer cannot be written: there is no folder no."),
        (["fit", "iris.csv", "--model", "."], ". is a folder: give the name of a file."),
        (["fit", "iris.csv", "--report", "no/r.html"], "no/r.html cannot be written: there is no folder no."),
        (["convert", "iris.mercer", "no/m.c"], "no/m.c cannot be written: there is no folder no."),
        (["kernel-check", "iris.csv"], "If it is a table of samples, give --kernel."),
        (["kernel-check", "empty.csv"], "empty.csv is empty"),
        (["kernel-check", "nowhere.csv"], "nowhere.csv not found."),
    ],
)
def test_what_is_wrong_is_one_sentence(folder, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(folder)
    (folder / "empty.csv").touch()
    (folder / "new.csv").write_text("a,b,c,d,colour\n1,2,3,4,red\n")
    assert main(arguments) == 1
    error = capsys.readouterr().err.strip().splitlines()
    assert words in error[-1] and error[-1].startswith(f"mercer {arguments[0]}: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "iris.csv", "--folds", "1"], "argument --folds: 1 was given, but it must be at least 2"),
        (["fit", "iris.csv", "--folds", "few"], "argument --folds: invalid int value: 'few'"),
        (["fit", "iris.csv", "--grid", "0"], "argument --grid: 0 was given, but it must be at least 1"),
        (["fit", "iris.csv", "--time-limit", "-1"], "--time-limit: -1 was given, but it must be at least 0"),
        (["fit", "iris.csv", "--time-limit", "nan"], "--time-limit: nan was given, but it must be at least 0"),
        (
            ["fit", "iris.csv", "--class-weight", "much"],
            "is neither 'balanced' nor label=weight",
        ),
        (
            ["fit", "iris.csv", "--class-weight", "a=-1"],
            "is neither 'balanced' nor label=weight",
        ),
        (["bench", "--repeats", "0"], "argument --repeats: 0 was given, but it must be at least 1"),
        (["bench", "--C", "-1"], "argument --C: -1 was given, but it must be greater than 0"),
        (["certify", "iris.mercer", "iris.csv", "--tol", "-1"], "--tol: -1 was given, but it must be at least 0"),
        (
            ["convert", "iris.mercer", "m.mercer", "--compress", "0"],
            "but it must be greater than 0",
        ),
    ],
)
def test_numbers_out_of_range_are_refused_before_any_work(folder, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2 and words in capsys.readouterr().err


def test_a_target_with_one_value(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("a,y\n" + "".join(f"{i},same\n" for i in range(9)))
    assert main(["fit", str(tmp_path / "d.csv"), *QUICK]) == 1
    assert "The target 'y' is 'same' in all 9 rows: there is nothing to learn." in capsys.readouterr().err


def test_run_as_a_module():
    """`python -m mercer` is the command."""
    import subprocess
    import sys

    ended = subprocess.run([sys.executable, "-m", "mercer", "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout == f"mercer {mercer.__version__}\n"


def test_empty_standard_input(monkeypatch, capsys):
    """Errors call the file - "the standard input"."""
    import io

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n")))
    assert main(["fit", "-", *QUICK]) == 1
    assert "The standard input has a line of names, but no rows" in capsys.readouterr().err


def test_inspect_explains_models_from_python(tmp_path, capsys):
    """Models that were saved from Python have no columns of a table; files may be tables or LIBSVM's."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    model = mercer.SVC().fit(X, X[:, 0] > 0)
    mercer.save(model, tmp_path / "m.mercer")
    np.savetxt(tmp_path / "X.csv", X, delimiter=",", header="a,b,c", comments="")
    np.savetxt(tmp_path / "one.csv", X[:1], delimiter=",", header="a,b,c", comments="")
    np.savetxt(tmp_path / "two.csv", X[:, :2], delimiter=",", header="a,b", comments="")
    dump_svmlight_file(X, np.zeros(60), str(tmp_path / "X.libsvm"), zero_based=False)
    for data in ("X.csv", "X.libsvm"):
        assert main(["inspect", str(tmp_path / "m.mercer"), "--data", str(tmp_path / data)]) == 0, data
        assert "mean |Shapley value| of each feature:" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path / "m.mercer"), "--data", str(tmp_path / "two.csv")]) == 1
    assert "X has 2 features, but SVC is expecting 3" in capsys.readouterr().err
    mercer.save(mercer.LinearSVC().fit(X, X[:, 0] > 0), tmp_path / "linear.mercer")
    assert main(["inspect", str(tmp_path / "linear.mercer"), "--data", str(tmp_path / "one.csv")]) == 1
    assert "would be its own background" in capsys.readouterr().err
