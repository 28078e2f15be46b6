"""Generated source code has the predictions of the model."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from tests.io.models import BINARY, HISTOGRAM_KERNELS, MODELS, REAL, THREE, VECTOR_KERNELS, X, kernel_model
from tests.naming import named

import mercer
from mercer import kernels as k
from mercer.exceptions import InvalidInputError
from mercer.io.source import to_c, to_python
from mercer.selection.linear_cv import LinearSVCCV
from mercer.selection.svc_cv import SVCCV

COMPILER = shutil.which("cc") or shutil.which("gcc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
NAMES = [
    "SVC", "SVC three classes", "SVC ovo", "SVC bool", "SVC object labels", "SVC sparse", "NuSVC", "RampSVC",
    "SVR", "NuSVR",
    "OneClassSVM", "LinearSVC", "LinearSVC three classes", "LinearSVC joint", "LinearSVR", "KernelRidge",
    "KernelRidgeCV",
    "GaussianProcessRegressor", "PegasosClassifier", "PegasosClassifier linear", "Perceptron", "KernelLMS",
    "KernelCentroid", "KernelCentroid binary",
    "KernelERM", "KernelERM labels", "KernelLogisticRegression", "KernelLogisticRegression binary",
    "KernelLogisticRegressionCV", "LSSVC", "ExpectileSVR", "LaplacianSVC",
]  # fmt: skip


def dense(data):
    return data.toarray() if hasattr(data, "toarray") else np.asarray(data)


def run_python(source):
    module = {}
    exec(source, module)
    return module


def assert_python_equal(model, data):
    module = run_python(to_python(model))
    rows = dense(data).tolist()
    expected = model.predict(data)
    found = [module["predict"](row) for row in rows]
    if hasattr(model, "decision_function"):
        assert found == expected.tolist()
        values = model.decision_function(data)
        np.testing.assert_allclose([module["decision"](row) for row in rows], values, rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def compiled(source, folder):
    path = folder / "model.c"
    path.write_text(source)
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
    subprocess.run([COMPILER, *flags, str(path), "-o", str(folder / "model.so"), "-lm"], check=True)
    return ctypes.CDLL(str(folder / "model.so"))


def c_array(values):
    return (ctypes.c_double * len(values))(*values)


def assert_c_equal(model, data, folder):
    library = compiled(to_c(model), folder)
    rows, expected = dense(data).astype(float).tolist(), model.predict(data)
    if hasattr(model, "decision_function"):
        numbers = [library.model_predict(c_array(row)) for row in rows]
        labels = model.classes_[numbers] if hasattr(model, "classes_") else np.array(numbers)
        assert np.array_equal(labels, expected)
        values = model.decision_function(data)
        out = c_array(np.zeros(values[0].size))
        for row, value in zip(rows, values, strict=True):
            library.model_decision(c_array(row), out)
            np.testing.assert_allclose(list(out), np.ravel(value), rtol=1e-9, atol=1e-9)
    elif expected.ndim == 1:
        library.model_predict.restype = ctypes.c_double
        np.testing.assert_allclose([library.model_predict(c_array(r)) for r in rows], expected, rtol=1e-9, atol=1e-9)
    else:
        out = c_array(np.zeros(expected.shape[1]))
        for row, value in zip(rows, expected, strict=True):
            library.model_predict(c_array(row), out)
            np.testing.assert_allclose(list(out), value, rtol=1e-9, atol=1e-9)


class TestPython:
    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("name", NAMES)
    def test_models(self, name):
        """The generated module gives the labels and values of the model."""
        assert_python_equal(*MODELS[name]())

    @pytest.mark.parametrize("kernel", VECTOR_KERNELS + HISTOGRAM_KERNELS, ids=named)
    def test_kernels(self, kernel):
        """Every kernel on vectors can be exported."""
        assert_python_equal(*kernel_model(kernel))

    def test_scalers(self):
        """Scalers before a model are part of the source code."""
        model = make_pipeline(StandardScaler(), MinMaxScaler(), MaxAbsScaler(), mercer.SVC()).fit(3.0 * X + 7.0, THREE)
        assert_python_equal(model, 3.0 * X + 7.0)

    def test_break_ties(self):
        """With break_ties the class with the largest decision value is predicted."""
        assert_python_equal(mercer.SVC(break_ties=True).fit(X, THREE), X)

    def test_labels_are_text(self):
        """Quotes in a label do not end its string."""
        names = np.array(['";import os;"', "a\\\n'"])
        assert_python_equal(mercer.SVC().fit(X, names[(BINARY == "yes").astype(int)]), X)

    def test_no_support_vectors(self):
        """A model without support vectors can be exported."""
        assert_python_equal(mercer.SVR(epsilon=10.0).fit(X, REAL), X)

    def test_wrong_length(self):
        """A sample with the wrong number of features is refused."""
        module = run_python(to_python(mercer.SVC().fit(X, BINARY)))
        with pytest.raises(ValueError, match="x has 3 features, but the model needs 4"):
            module["predict"]([1.0, 2.0, 3.0])

    @pytest.mark.parametrize(
        ("model", "data", "words"),
        [
            (mercer.SVC(kernel=lambda a, b: np.asarray(a) @ np.asarray(b).T), X, "Python function"),
            (mercer.SVC(kernel="precomputed"), X @ X.T, "precomputed kernel"),
            (mercer.SVC(kernel=k.Normalized(k.Linear() + k.White())), X, "cannot be exported"),
        ],
        ids=["function", "precomputed", "observations"],
    )
    def test_refused(self, model, data, words):
        """A model that cannot be exported is refused with a reason."""
        with pytest.raises(InvalidInputError, match=words):
            to_python(model.fit(data, BINARY))


@needs_compiler
class TestC:
    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("name", NAMES)
    def test_models(self, name, tmp_path):
        """The generated file compiles without a warning and gives the labels and values of the model."""
        assert_c_equal(*MODELS[name](), tmp_path)

    @pytest.mark.parametrize("kernel", VECTOR_KERNELS + HISTOGRAM_KERNELS, ids=named)
    def test_kernels(self, kernel, tmp_path):
        """Every kernel on vectors can be exported."""
        assert_c_equal(*kernel_model(kernel), tmp_path)

    def test_labels(self, tmp_path):
        """Labels with any characters are C strings."""
        names = np.array(['"@U@ é"', "b?\\"])
        model = mercer.SVC().fit(X, names[(BINARY == "yes").astype(int)])
        library = compiled(to_c(model), tmp_path)
        found = (ctypes.c_char_p * 2).in_dll(library, "model_classes")
        assert [text.decode() for text in found] == model.classes_.tolist()

    def test_prefix(self):
        """Names begin with the prefix, which must be an identifier."""
        assert "int spam_predict(const double *x)" in to_c(mercer.SVC().fit(X, BINARY), prefix="spam")
        with pytest.raises(InvalidInputError, match="cannot begin a name in C"):
            to_c(mercer.SVC().fit(X, BINARY), prefix="a-b")


# ---- probabilities ---------------------------------------------------------------------------------------------------


def with_probabilities(kind, method, n_classes):
    random = np.random.default_rng(n_classes)
    Z = random.normal(size=(80, 3))
    y = np.digitize(Z[:, 0] + 0.4 * random.normal(size=80), np.linspace(-1, 1, n_classes - 1))
    more = {"gammas": 2, "search": "grid"} if kind is SVCCV else {}
    model = make_pipeline(StandardScaler(), kind(Cs=2, cv=3, calibration=method, **more)).fit(Z, y)
    return model, np.concatenate([Z[:20], 4.0 * random.normal(size=(40, 3))])


def assert_probabilities(model, rows, expected, label):
    np.testing.assert_allclose(rows, expected, atol=1e-9)
    assert np.array_equal(model.classes_[np.argmax(rows, axis=1)], label)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("method", ["sigmoid", "beta", "isotonic", "venn_abers"])
@pytest.mark.parametrize("kind", [SVCCV, LinearSVCCV])
def test_probabilities_in_python(kind, method, n_classes):
    """They equal the model's, for every method, number of classes and scheme; the predicted class has the largest."""
    model, new = with_probabilities(kind, method, n_classes)
    module = run_python(to_python(model))
    rows = [module["probabilities"](row) for row in new.tolist()]
    assert_probabilities(model, rows, model.predict_proba(new), model.predict(new))
    assert [module["predict"](row) for row in new.tolist()] == model.predict(new).tolist()


@needs_compiler
@pytest.mark.parametrize(
    ("kind", "method", "n_classes"),
    [(SVCCV, "sigmoid", 2), (SVCCV, "beta", 4), (SVCCV, "isotonic", 3), (LinearSVCCV, "venn_abers", 3)],
    ids=str,
)
def test_probabilities_in_c(kind, method, n_classes, tmp_path):
    """The same in C."""
    model, new = with_probabilities(kind, method, n_classes)
    library, rows = compiled(to_c(model), tmp_path), []
    for row in new.tolist():
        out = c_array(np.zeros(n_classes))
        library.model_probabilities(c_array(row), out)
        rows.append(list(out))
    assert_probabilities(model, rows, model.predict_proba(new), model.predict(new))


@needs_compiler
@pytest.mark.parametrize("y", [BINARY, THREE], ids=["two classes", "three"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_logistic_probabilities(kernel, y, tmp_path):
    """The sigmoid or the softmax of logistic regression, in Python and C, also where values are huge."""
    model = mercer.KernelLogisticRegression(100.0, kernel=kernel).fit(X, y)
    new = np.concatenate([X, 1e4 * X[:5]])
    expected = model.predict_proba(new)
    module, library = run_python(to_python(model)), compiled(to_c(model), tmp_path)
    out = c_array(np.zeros(len(model.classes_)))
    for row, p in zip(new.tolist(), expected, strict=True):
        np.testing.assert_allclose(module["probabilities"](row), p, rtol=1e-9, atol=1e-12)
        library.model_probabilities(c_array(row), out)
        np.testing.assert_allclose(list(out), p, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("y", [BINARY, THREE], ids=["two classes", "three"])
def test_libsvm_probabilities(y):
    """The same for probability=True."""
    model = mercer.SVC(probability=True, random_state=0).fit(X, y)
    module = run_python(to_python(model))
    np.testing.assert_allclose([module["probabilities"](row) for row in X.tolist()], model.predict_proba(X), atol=1e-9)
