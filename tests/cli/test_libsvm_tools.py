"""svm-train, svm-predict and svm-scale: LIBSVM's options, files and output."""

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_diabetes, load_svmlight_file
from sklearn.svm import SVC

import mercer
from mercer.cli import main


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
        (["svm-predict", "test"], "a test file"),
        (["svm-scale", "-l", "2", "-u", "1", "train"], "not below"),
        (["svm-scale", "-r", "train", "test"], "no file of ranges"),
    ],
)
def test_usage(files, capsys, arguments, words):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error and "usage: mercer svm-" in error


def test_missing_files(files, capsys):
    assert main(["svm-train", "nowhere"]) == 1
    assert "nowhere" in capsys.readouterr().err
