"""svm-train, svm-predict and svm-scale: LIBSVM's options, files and output."""

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_diabetes, load_digits, load_svmlight_file
from sklearn.svm import SVC
from tests.io.make_libsvm_data import libsvm_values

import mercer
from mercer.cli import main
from mercer.io.formats.libsvm_probabilities import density_marks


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = load_breast_cancer(return_X_y=True)
    dump_svmlight_file(X[:200], 2 * y[:200] - 1, "train", zero_based=False)
    dump_svmlight_file(X[200:300], 2 * y[200:300] - 1, "test", zero_based=False)
    return tmp_path


def test_scale_train_predict(files, capsys):
    assert main(["svm-scale", "-l", "-1", "-u", "1", "-s", "ranges", "train"]) == 0
    (files / "train.scale").write_text(capsys.readouterr().out)
    assert main(["svm-scale", "-r", "ranges", "test"]) == 0
    (files / "test.scale").write_text(capsys.readouterr().out)
    X, _ = load_svmlight_file("train.scale", n_features=30)
    assert X.min() == -1 and X.max() == 1
    assert main(["svm-train", "-c", "10", "-g", "0.1", "-w1", "2", "train.scale"]) == 0
    assert "Total nSV" in capsys.readouterr().out
    assert main(["svm-predict", "test.scale", "train.scale.model", "out"]) == 0
    X_test, y_test = load_svmlight_file("test.scale", n_features=30)
    X, y = load_svmlight_file("train.scale", n_features=30)
    expected = SVC(C=10, gamma=0.1, class_weight={1: 2}).fit(X.toarray(), y).predict(X_test.toarray())
    np.testing.assert_array_equal(np.loadtxt("out"), expected)
    right = int(np.sum(expected == y_test))
    assert f"Accuracy = {right}% ({right}/100) (classification)" in capsys.readouterr().out


@pytest.mark.parametrize(("kind", "machine"), [(1, "NuSVC"), (2, "OneClassSVM"), (3, "SVR"), (4, "NuSVR")])
def test_other_machines(files, kind, machine, capsys):
    X, y = load_diabetes(return_X_y=True)
    X = 20 * X  # with features of 0.05 all kernel values are nearly 1, and tol=1e-3 decides nothing
    y = y[:80] if kind > 2 else np.where(y[:80] > 140, 1, -1)
    dump_svmlight_file(X[:80], y, "d", zero_based=False)
    assert main(["svm-train", "-s", str(kind), "-n", "0.3", "-q", "d", "m"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["svm-predict", "d", "m", "out"]) == 0
    assert ("Mean squared error" if kind > 2 else "Accuracy") in capsys.readouterr().out
    model = getattr(mercer, machine)(nu=0.3, gamma=0.1) if kind != 3 else mercer.SVR(gamma=0.1)
    expected = model.fit(X[:80], None if kind == 2 else y).predict(X[:80])
    np.testing.assert_allclose(np.loadtxt("out"), expected, rtol=1e-3)


def test_cross_validation(files, capsys):
    assert main(["svm-train", "-v", "3", "-t", "0", "-c", "0.001", "train"]) == 0
    accuracy = float(capsys.readouterr().out.split("=")[1].rstrip("%\n"))
    assert 85 < accuracy < 100


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["svm-train"], "a training file"),
        (["svm-train", "-z", "1", "train"], "unknown option -z"),
        (["svm-train", "-s", "9", "train"], "-s 9 is not"),
        (["svm-train", "-c", "much", "train"], "not a number"),
        (["svm-train", "-c", "-1", "train"], "-c -1 is not more than 0"),
        (["svm-train", "-e", "0", "train"], "-e 0 is not more than 0"),
        (["svm-train", "-g", "-2", "train"], "-g -2 is not at least 0"),
        (["svm-train", "-s", "1", "-n", "2", "train"], "-n 2 is more than 1"),
        (["svm-train", "-wx", "2", "train"], "-wx is not -w with an integer class label"),
        (["svm-train", "-w1", "much", "train"], "-w1 much is not a number"),
        (["svm-train", "-h"], "the option -h has no value"),
        (["svm-scale", "-y", "0", "one", "train"], "-y one is not a number"),
        (["svm-predict", "test"], "a test file"),
        (["svm-scale", "-l", "2", "-u", "1", "train"], "not below"),
        (["svm-scale", "-r", "train", "test"], "was not written by svm-scale"),
    ],
)
def test_usage(files, capsys, arguments, words):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error and "usage: mercer svm-" in error


@pytest.mark.parametrize("tool", ["svm-train", "svm-predict", "svm-scale"])
def test_help(capsys, tool):
    """All options of the program are listed."""
    assert main([tool, "--help"]) == 0
    shown = capsys.readouterr().out
    letters = {"svm-train": "stdgrcnpemhbvwq", "svm-predict": "bq", "svm-scale": "lusry"}[tool]
    assert shown.startswith(f"usage: mercer {tool} [options]")
    assert all(f"-{letter}" in shown.partition("\n")[2] for letter in letters)


def test_missing_files(files, capsys):
    assert main(["svm-train", "nowhere"]) == 1
    assert "nowhere" in capsys.readouterr().err


# ---- the order of the classes --------------------------------------------------------------------------------------

ORDERS = {
    "1 0": [1, 0],
    "0 1": [0, 1],
    "-1 first": [-1, 1],
    "+1 first": [1, -1],
    "three": [2, 9, -4],
    "five": [3, 1, 5, -2, 4],
}


def header_of(path):
    with open(path) as file:
        return {line.split()[0]: line.split()[1:] for line in file.read().split("SV\n")[0].splitlines()}


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("order", ORDERS)
def test_order_of_classes(tmp_path, monkeypatch, capsys, kind, order):
    """The model file has LIBSVM's order of labels, so all its decision values have LIBSVM's signs."""
    svmutil = pytest.importorskip("libsvm.svmutil")
    monkeypatch.chdir(tmp_path)
    labels = np.array(ORDERS[order])
    X, codes = load_digits(return_X_y=True, n_class=len(labels))
    X, codes = X[:120] / 16, codes[:120]
    assert [codes.tolist().index(c) for c in range(len(labels))] == sorted(codes.tolist().index(c) for c in set(codes))
    y = labels[codes]
    dump_svmlight_file(X, y, "train", zero_based=False)
    options = ["-s", str(kind), "-n", "0.2", "-c", "3", "-g", "0.2", "-e", "1e-7", f"-w{labels[-1]}", "2"]
    assert main(["svm-train", "-q", *options, "train", "ours"]) == 0
    _, samples = svmutil.svm_read_problem("train")
    theirs = svmutil.svm_train(y, samples, " ".join([*options, "-q"]))
    svmutil.svm_save_model("theirs", theirs)
    ours = svmutil.svm_load_model("ours")
    assert header_of("ours")["label"] == header_of("theirs")["label"]
    thresholds = [np.array(header_of(name)["rho"], dtype=float) for name in ("ours", "theirs")]
    np.testing.assert_allclose(*thresholds, atol=1e-5)
    new = [{j: v + 0.3 * (j % 3) for j, v in sample.items()} for sample in samples]
    found = libsvm_values(ours, new, False)
    expected = libsvm_values(theirs, new, False)
    np.testing.assert_allclose(found["values"], expected["values"], atol=1e-5)
    assert found["labels"] == expected["labels"]
    dump_svmlight_file([[sample.get(j, 0.0) for j in range(1, 65)] for sample in new], y, "test", zero_based=False)
    for name in ("ours", "theirs"):
        assert main(["svm-predict", "-q", "test", name, "out"]) == 0
        assert np.loadtxt("out").tolist() == expected["labels"]


def test_ties(tmp_path, monkeypatch):
    """A tie between three classes goes to the class of the first sample, and a value of 0 to the second label."""
    svmutil = pytest.importorskip("libsvm.svmutil")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.tile([7, 1, 4], 20)  # labels without any rule, so that many samples have one vote from each class
    dump_svmlight_file(rng.uniform(-1, 1, (60, 2)), y, "train", zero_based=False)
    dump_svmlight_file(rng.uniform(-1, 1, (500, 2)), np.ones(500), "test", zero_based=False)
    options = "-q -g 5 -c 10 -e 1e-7"
    assert main(["svm-train", *options.split(), "train", "model"]) == 0
    assert main(["svm-predict", "-q", "test", "model", "out"]) == 0
    labels, samples = svmutil.svm_read_problem("test")
    theirs = svmutil.svm_train(y, svmutil.svm_read_problem("train")[1], options)
    expected, _, values = svmutil.svm_predict(labels, samples, theirs, "-q")
    # 7 against 1, 7 against 4, 1 against 4
    tied = [label for label, v in zip(expected, values, strict=True) if (v[0] > 0) == (v[2] > 0) != (v[1] > 0)]
    assert len(tied) > 5 and set(tied) == {7}
    assert np.loadtxt("out").tolist() == expected
    (tmp_path / "zero").write_text("1 1:1\n0 1:-1\n")
    assert main(["svm-train", "-q", "-t", "0", "zero", "model"]) == 0
    (tmp_path / "test").write_text("1 2:1\n1 1:1\n")
    assert main(["svm-predict", "-q", "test", "model", "out"]) == 0
    theirs = svmutil.svm_load_model("model")
    assert np.loadtxt("out").tolist() == svmutil.svm_predict([1, 1], [{2: 1}, {1: 1}], theirs, "-q")[0] == [0, 1]


def test_unknown_weight(files, capsys):
    """As in LIBSVM, a weight for a missing class is a warning, not an error."""
    assert main(["svm-train", "-q", "-w5", "3", "-w1", "2", "train", "weighted"]) == 0
    assert capsys.readouterr().err == "WARNING: class label 5 specified in weight is not found\n"
    assert main(["svm-train", "-q", "-w1", "2", "train", "other"]) == 0
    assert (files / "weighted").read_text() == (files / "other").read_text()


# ---- probabilities -------------------------------------------------------------------------------------------------


def written(path):
    """The first line and the numbers of svm-predict's output."""
    with open(path) as file:
        head = file.readline().split()
        return head, np.array([line.split() for line in file], dtype=float)


def scaled(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_class_probabilities(tmp_path, monkeypatch, capsys, kind, n_classes):
    """mercer and LIBSVM give the same probabilities for the same file, whichever wrote it; their models agree, too."""
    svmutil = pytest.importorskip("libsvm.svmutil")
    monkeypatch.chdir(tmp_path)
    X, y = load_digits(return_X_y=True, n_class=n_classes)
    X = scaled(X[:, X.std(axis=0) > 0])[::2]
    y = (1 - 2 * y if n_classes == 2 else 7 - y)[::2]  # the larger label comes first in the file
    new, y_new = X[150:] + 0.6, y[150:]
    dump_svmlight_file(X[:150], y[:150], "train", zero_based=False)
    dump_svmlight_file(new, y_new, "test", zero_based=False)
    options = ["-s", str(kind), "-n", "0.1", "-c", "2", "-g", "0.02", "-b", "1"]
    assert main(["svm-train", "-q", *options, "train", "ours"]) == 0
    labels, samples = svmutil.svm_read_problem("train")
    theirs = svmutil.svm_train(labels, samples, " ".join([*options, "-q"]))
    svmutil.svm_save_model("theirs", theirs)
    capsys.readouterr()
    found = {}
    for name in ("ours", "theirs"):
        assert main(["svm-predict", "-b", "1", "test", name, "out"]) == 0
        assert "(classification)" in capsys.readouterr().out
        head, values = written("out")
        model = svmutil.svm_load_model(name)
        labels, samples = svmutil.svm_read_problem("test")
        predicted, _, expected = svmutil.svm_predict(labels, samples, model, "-b 1 -q")
        assert head == ["labels", *(str(label) for label in model.get_labels())]
        assert np.array_equal(values[:, 0], predicted)
        np.testing.assert_allclose(values[:, 1:], expected, rtol=2e-5, atol=1e-7)
        found[name] = values[:, 1:][:, np.argsort(model.get_labels())]
    # their folds differ
    assert np.abs(found["ours"] - found["theirs"]).mean() < 0.05
    assert main(["svm-predict", "test", "ours", "out"]) == 0
    assert "but disabled in prediction" in capsys.readouterr().out


@pytest.mark.parametrize("kind", [3, 4])
def test_residuals(tmp_path, monkeypatch, capsys, kind):
    """The scale of residuals equals LIBSVM's up to the choice of folds, and both programs read it."""
    svmutil = pytest.importorskip("libsvm.svmutil")
    monkeypatch.chdir(tmp_path)
    X, y = load_diabetes(return_X_y=True)
    dump_svmlight_file(10 * X[:200], y[:200] / 100, "train", zero_based=False)
    assert main(["svm-train", "-s", str(kind), "-b", "1", "train", "ours"]) == 0
    sigma = float(capsys.readouterr().out.split("sigma= ")[1].split()[0])
    labels, samples = svmutil.svm_read_problem("train")
    theirs = svmutil.svm_train(labels, samples, f"-s {kind} -b 1 -q")
    assert abs(sigma - theirs.get_svr_probability()) < 0.05 * sigma
    assert svmutil.svm_load_model("ours").get_svr_probability() == pytest.approx(sigma, rel=1e-5)
    svmutil.svm_save_model("theirs", theirs)
    assert main(["svm-predict", "-b", "1", "train", "theirs", "out"]) == 0
    shown = capsys.readouterr().out
    assert f"sigma={theirs.get_svr_probability():g}" in shown and "(regression)" in shown
    np.testing.assert_allclose(np.loadtxt("out"), svmutil.svm_predict(labels, samples, theirs, "-q")[0], rtol=1e-6)


def test_density_marks(tmp_path, monkeypatch, capsys):
    """One-class machines have LIBSVM's marks and its two columns."""
    svmutil = pytest.importorskip("libsvm.svmutil")
    monkeypatch.chdir(tmp_path)
    X, _ = load_diabetes(return_X_y=True)
    dump_svmlight_file(10 * X, np.ones(len(X)), "train", zero_based=False)
    assert main(["svm-train", "-s", "2", "-n", "0.2", "-b", "1", "-q", "-e", "1e-6", "train", "ours"]) == 0
    labels, samples = svmutil.svm_read_problem("train")
    theirs = svmutil.svm_train(labels, samples, "-s 2 -n 0.2 -b 1 -q -e 0.000001")
    svmutil.svm_save_model("theirs", theirs)
    values = np.ravel(svmutil.svm_predict(labels, samples, theirs, "-q")[2])
    text = (tmp_path / "theirs").read_text()
    marks = np.array(text.split("marks ")[1].split("\n")[0].split(), float)
    np.testing.assert_allclose(density_marks(values), marks, rtol=1e-12)
    for name in ("ours", "theirs"):
        assert main(["svm-predict", "-b", "1", "-q", "train", name, "out"]) == 0
        head, values = written("out")
        assert head == ["labels", "normal", "outlier"]
        model = svmutil.svm_load_model(name)
        predicted, _, expected = svmutil.svm_predict(labels, samples, model, "-b 1 -q")
        # on a mark or on the boundary rounding errors decide
        assert np.sum(np.abs(values[:, 1:] - np.array(expected)).max(axis=1) > 1e-6) <= 12
        assert np.mean(values[:, 0] == predicted) > 0.95


def test_no_probabilities(files, capsys):
    assert main(["svm-train", "-q", "train"]) == 0
    assert main(["svm-predict", "-b", "1", "test", "train.model", "out"]) == 1
    assert "train.model has no probabilities: train it with -b 1." in capsys.readouterr().err
    few = files / "few"
    few.write_text("1 1:1\n1 1:2\n1 1:3\n")
    assert main(["svm-train", "-q", "-s", "2", "-b", "1", "few"]) == 0
    assert "the model is written without probabilities" in capsys.readouterr().err
    assert main(["svm-train", "-q", "-s", "3", "-b", "1", "few"]) == 1
    assert "at least 5 samples" in capsys.readouterr().err


def test_cross_validation_with_probabilities(files, capsys):
    assert main(["svm-train", "-v", "3", "-b", "1", "-t", "0", "-c", "0.001", "train"]) == 0
    assert 85 < float(capsys.readouterr().out.split("=")[1].rstrip("%\n")) < 100
