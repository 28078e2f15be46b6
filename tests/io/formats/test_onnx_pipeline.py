"""A whole pipeline, from the raw columns to probabilities, is one ONNX graph."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.svm
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

import mercer
from mercer.cli import main
from mercer.exceptions import InvalidInputError
from mercer.io.formats.plain_model import plain_model
from mercer.io.formats.plain_probabilities import plain_probabilities
from mercer.io.onnx import to_onnx
from mercer.io.tables import read_samples
from mercer.selection.calibration.prediction_mixins import problem_values
from mercer.selection.linear_cv import LinearSVCCV
from mercer.selection.svc_cv import SVCCV
from mercer.workflow import train

onnxruntime = pytest.importorskip("onnxruntime")

rng = np.random.default_rng(5)
N = 90
Z = rng.normal(size=(N, 3))
LABEL = np.where(Z[:, 0] + (Z[:, 2] > 0) + 0.3 * rng.normal(size=N) > 0.5, "yes", "no")
THREE = np.digitize(Z[:, 0] + 0.4 * rng.normal(size=N), [-0.6, 0.6])


def session(graph):
    return onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])


def run(graph, frame, dtype):
    """The outputs by name. String inputs are strings, empty where missing."""
    running = session(graph)
    given = {}
    for one in running.get_inputs():
        column = frame[one.name if one.name in frame else one.name[:-1]]
        if one.type == "tensor(string)":
            values = np.array(["" if v is None or v != v else str(v) for v in column], dtype=object)
        else:
            values = column.to_numpy(dtype=dtype)
        given[one.name] = values[:, None]
    names = [output.name for output in running.get_outputs()]
    return dict(zip(names, running.run(None, given), strict=True))


def assert_equal(model, frame, dtype, tol):
    found = run(to_onnx(model, dtype=dtype), frame, dtype)
    expected = model.predict(frame)
    if not hasattr(model, "classes_"):
        np.testing.assert_allclose(found["variable"][:, 0], expected, rtol=tol, atol=tol * np.abs(expected).max())
        return found
    values = model.decision_function(frame)
    assert np.array_equal(found["label"].astype(expected.dtype), expected)
    np.testing.assert_allclose(found["scores"], values, rtol=tol, atol=tol * max(1.0, np.abs(values).max()))
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(frame)
        np.testing.assert_allclose(found["probabilities"], p, atol=tol)
        assert np.array_equal(model.classes_[found["probabilities"].argmax(axis=1)], expected)
    return found


def table(**columns):
    return pd.DataFrame(columns)


NUMBERS = table(a=100 + Z[:, 0], b=1e-3 * Z[:, 1])
MIXED = table(
    a=Z[:, 0], ä=50 * Z[:, 1], scores=Z[:, 2],
    colour=np.where(Z[:, 2] > 0, "rot", np.where(Z[:, 1] > 0, "grün", "blue")),
)  # fmt: skip
MISSING = MIXED.assign(a=np.where(np.arange(N) % 7 == 0, np.nan, Z[:, 0]))
MISSING.loc[::5, "colour"] = None
TABLES = {"numbers": NUMBERS, "mixed": MIXED, "missing": MISSING}
precisions = pytest.mark.parametrize(
    ("dtype", "tol"), [(np.float32, 1e-5), (np.float64, 1e-9)], ids=["float32", "float64"]
)


def fitted(tmp_path, frame, y, **more):
    frame.assign(y=y).to_csv(tmp_path / "data.csv", index=False)
    samples = read_samples(tmp_path / "data.csv")
    outcome = train(samples, judge="none", Cs=2, gammas=2, search="grid", cv=3, **more)
    return outcome.model, samples.X


@precisions
@pytest.mark.parametrize("y", [LABEL, THREE, Z[:, 0] + np.sin(Z[:, 1])], ids=["two classes", "three", "regression"])
@pytest.mark.parametrize("name", TABLES)
def test_what_fit_makes(tmp_path, name, y, dtype, tol):
    """`mercer fit` on tables of numbers, with categories and with missing cells: labels equal, values to 1e-5."""
    model, X = fitted(tmp_path, TABLES[name], y)
    X = X.assign(**{c: X[c].astype(np.float32).astype(float) for c in X if X[c].dtype.kind == "f"})
    assert_equal(model, X, dtype, tol)


@precisions
def test_unknown_categories(tmp_path, dtype, tol):
    """An unseen category gives zeros in all columns, as in the pipeline itself."""
    model, X = fitted(tmp_path, MISSING, LABEL)
    new = X.astype({"a": np.float32, "ä": np.float32, "scores": np.float32})[:6].assign(
        colour=["lila", "rot", None, "ROT", "", "blue"]
    )
    graph = to_onnx(model, dtype=dtype)
    found = run(graph, new, dtype)
    with pytest.warns(UserWarning, match=r"colour: 2 of 6 cells hold a category .* \('lila', 'ROT'\)"):
        assert np.array_equal(found["label"], model.predict(new))
        np.testing.assert_allclose(found["scores"], model.decision_function(new), atol=tol)
    assert {one.name for one in session(graph).get_inputs()} == {"a", "ä", "scores_", "colour"}


def test_linear_machines(tmp_path):
    """Linear machines against the rest have probabilities in their graph, too."""
    for y in (LABEL, THREE, Z[:, 1]):
        model, X = fitted(tmp_path, MIXED, y, kernel="linear")
        assert_equal(model, X, np.float64, 1e-9)


def test_every_step():
    """Each supported step, on an array and on a data frame, with unusual options."""
    frame = MISSING.assign(k=np.where(Z[:, 0] > 0, 3.0, np.where(Z[:, 1] > 0, 7.0, np.nan)), empty=np.nan)
    steps = ColumnTransformer(
        [
            ("a", make_pipeline(SimpleImputer(strategy="mean"), MinMaxScaler((-1, 2), clip=True)), ["a", "empty"]),
            ("b", make_pipeline(RobustScaler(), "passthrough", MaxAbsScaler()), ["ä"]),
            ("c", OneHotEncoder(drop="first", handle_unknown="ignore"), ["colour", "k"]),
            ("d", StandardScaler(with_mean=False), ["scores"]),
            ("e", "drop", []),
        ],
        remainder="passthrough",
    )
    with pytest.warns(UserWarning, match="Skipping features"):
        model = make_pipeline(steps, StandardScaler(), mercer.SVC()).fit(frame, LABEL)
        new = frame.assign(a=3.0 * frame["a"])
        assert_equal(model, new, np.float64, 1e-9)
    X = Z.copy()
    X[::4, 0] = -1.0
    chosen = ColumnTransformer([("a", SimpleImputer(missing_values=-1.0), [0, 2])], remainder=StandardScaler())
    model = make_pipeline(chosen, mercer.SVR()).fit(X, Z[:, 1])
    (found,) = session(to_onnx(model, dtype=np.float64)).run(None, {"X": X})
    np.testing.assert_allclose(found[:, 0], model.predict(X), rtol=1e-9)


def test_refused(tmp_path):
    """An error names the step that cannot be exported and those that can."""
    texts = pd.DataFrame({"t": [f"word{i % 5} and word{i % 3}" for i in range(N)], "a": Z[:, 0]})
    steps = ColumnTransformer([("t", TfidfVectorizer(), "t"), ("a", StandardScaler(), ["a"])])
    model = make_pipeline(steps, mercer.LinearSVC()).fit(texts, LABEL)
    with pytest.raises(InvalidInputError, match=r"TfidfVectorizer \(of 't'\) cannot be exported to ONNX"):
        to_onnx(model)
    with warnings.catch_warnings(action="ignore"):
        model = make_pipeline(KBinsDiscretizer(3), mercer.LinearSVC()).fit(Z, LABEL)
    with pytest.raises(InvalidInputError, match="KBinsDiscretizer cannot be exported to ONNX"):
        to_onnx(model)
    many = ColumnTransformer([("c", OneHotEncoder(max_categories=2), ["colour"])])
    with pytest.raises(InvalidInputError, match="leave out min_frequency and max_categories"):
        to_onnx(make_pipeline(many, mercer.LinearSVC()).fit(MIXED, LABEL))
    marked = SimpleImputer(add_indicator=True)
    with pytest.raises(InvalidInputError, match="without add_indicator"):
        to_onnx(make_pipeline(marked, mercer.LinearSVC()).fit(Z, LABEL))
    with pytest.raises(InvalidInputError, match="fit it to a data frame"):
        to_onnx(make_pipeline(OneHotEncoder(), mercer.LinearSVC()).fit(MIXED[["colour"]].to_numpy(), LABEL))


def test_command(tmp_path, monkeypatch):
    """`mercer convert model.mercer model.onnx` exports the whole pipeline."""
    monkeypatch.chdir(tmp_path)
    model, X = fitted(tmp_path, MIXED, THREE)
    mercer.save(model, "model.mercer")
    assert main(["convert", "model.mercer", "model.onnx"]) == 0
    onnx = pytest.importorskip("onnx")
    found = run(onnx.load("model.onnx"), X, np.float32)
    assert np.array_equal(found["label"], model.predict(X)) and found["probabilities"].shape == (N, 3)


# ---- probabilities ---------------------------------------------------------------------------------------------------

METHODS = ("sigmoid", "beta", "isotonic", "venn_abers")


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("method", METHODS)
def test_plain_maps(method, n_classes):
    """Each reduced map has the values of the original, also at its knots."""
    rng = np.random.default_rng([n_classes, METHODS.index(method)])
    y = np.digitize(Z[:, 0] + 0.4 * rng.normal(size=N), np.linspace(-1, 1, n_classes - 1))
    model = SVCCV(Cs=2, gammas=2, cv=3, calibration=method, search="grid").fit(Z, y)
    plain = plain_probabilities(model)
    values = np.concatenate([problem_values(model.best_estimator_, Z), model.cv_decision_function_.reshape(N, -1)])
    for column, (one, reduced) in enumerate(zip(model._calibration.maps, plain.maps, strict=True)):
        np.testing.assert_allclose(reduced(values[:, column]), one(values[:, column]), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [SVCCV, LinearSVCCV])
def test_probabilities(kind, method, n_classes):
    """The graph has the probabilities of the model, for every method and number of classes."""
    rng = np.random.default_rng([n_classes, METHODS.index(method)])
    y = np.digitize(Z[:, 0] + 0.4 * rng.normal(size=N), np.linspace(-1, 1, n_classes - 1))
    more = {"gammas": 2, "search": "grid"} if kind is SVCCV else {}
    model = kind(Cs=2, cv=3, calibration=method, **more).fit(Z, y)
    new = np.concatenate([Z, 5.0 * rng.normal(size=(200, 3))]).astype(np.float32).astype(float)
    p, expected = model.predict_proba(new), model.predict(new)
    for dtype, tol in ((np.float32, 1e-5), (np.float64, 1e-9)):
        running = session(to_onnx(model, dtype=dtype))
        label, found, _ = running.run(None, {"X": new.astype(dtype)})
        assert np.array_equal(label, expected) and np.array_equal(found.argmax(axis=1), expected)
        off = np.abs(found - p).max(axis=1) > tol
        # a step of the map lies between two numbers that are equal in float32
        assert off.sum() <= (3 if dtype == np.float32 and method in ("isotonic", "venn_abers") else 0)


def test_values_that_hardly_differ():
    """A tiny C makes a steep map from values to probabilities: arithmetic is in float64 then."""
    y = (Z[:, 0] + 0.4 * np.random.default_rng(20).normal(size=N) > -1.0).astype(int)
    model = SVCCV(Cs=[0.01], gammas=[0.0017], cv=3, calibration="beta", search="grid").fit(Z, y)
    steep = max(one.steepness for one in plain_probabilities(model).maps)
    assert steep * np.finfo(np.float32).eps > 1e-5
    new = Z.astype(np.float32)
    found = session(to_onnx(model)).run(["probabilities"], {"X": new})[0]
    np.testing.assert_allclose(found, model.predict_proba(new.astype(float)), atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("y", [LABEL, THREE], ids=["two classes", "three"])
def test_libsvm_probabilities(y):
    """The same for probability=True, where the predicted class need not have the largest probability."""
    model = mercer.SVC(probability=True, random_state=0).fit(Z, y)
    running = session(to_onnx(model, dtype=np.float64))
    label, found = running.run(["label", "probabilities"], {"X": Z})
    assert np.array_equal(label, model.predict(Z))
    np.testing.assert_allclose(found, model.predict_proba(Z), atol=1e-9)


@pytest.mark.parametrize("y", [LABEL, THREE], ids=["two classes", "three"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_logistic_probabilities(kernel, y):
    """The sigmoid or the softmax of logistic regression."""
    model = mercer.KernelLogisticRegression(10.0, kernel=kernel).fit(Z, y)
    for dtype, tol in ((np.float32, 1e-5), (np.float64, 1e-9)):
        new = Z.astype(np.float32).astype(dtype)
        label, found = session(to_onnx(model, dtype=dtype)).run(["label", "probabilities"], {"X": new})
        np.testing.assert_allclose(found, model.predict_proba(new.astype(float)), atol=tol)
        assert np.mean(label == model.predict(new.astype(float))) > 0.99


def test_no_probabilities():
    """Machines without probabilities have no such output."""
    assert plain_model(mercer.SVC().fit(Z, LABEL)).probabilities is None
    outputs = session(to_onnx(mercer.SVC().fit(Z, LABEL))).get_outputs()
    assert [output.name for output in outputs] == ["label", "scores"]


def skl2onnx_outputs(model, X):
    """Names, element types and shapes of the outputs that skl2onnx gives a model, without dictionaries."""
    skl2onnx = pytest.importorskip("skl2onnx")
    options = {"zipmap": False} if hasattr(model, "predict_proba") else {}
    graph = skl2onnx.to_onnx(model, X[:1].astype(np.float32), options={id(model): options} if options else None)
    return described(graph)


def described(graph):
    return [(one.name, one.type, one.shape[1:]) for one in session(graph).get_outputs()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("y", [LABEL, THREE, np.array(["a", "b", "c"])[THREE]], ids=["two classes", "three", "texts"])
@pytest.mark.parametrize("scaled", [False, True], ids=["machine", "pipeline"])
def test_outputs_of_classifiers_are_those_of_skl2onnx(y, scaled):
    """Label first, then probabilities, by the same names; the scores follow, which skl2onnx does not have then."""

    def fitted(machine):
        return (make_pipeline(StandardScaler(), machine) if scaled else machine).fit(Z, y)

    theirs = skl2onnx_outputs(fitted(sklearn.svm.SVC(probability=True)), Z)
    for machine in (mercer.SVC(probability=True), SVCCV(Cs=2, gammas=2, cv=3)):
        ours = described(to_onnx(fitted(machine)))
        assert ours[:2] == theirs and [name for name, _, _ in ours[2:]] == ["scores"]
    # without probabilities the second output is the scores
    assert [name for name, _, _ in described(to_onnx(fitted(mercer.SVC())))] == ["label", "scores"]


@pytest.mark.parametrize("scaled", [False, True], ids=["machine", "pipeline"])
@pytest.mark.parametrize("name", ["SVR", "NuSVR", "LinearSVR", "OneClassSVM"])
def test_other_outputs_are_those_of_skl2onnx(name, scaled):
    """A regressor has one column named variable; a novelty detector has label and scores, a column each."""
    both = []
    for package in (mercer, sklearn.svm):
        machine = getattr(package, name)()
        model = make_pipeline(StandardScaler(), machine) if scaled else machine
        both.append(model.fit(Z) if name == "OneClassSVM" else model.fit(Z, Z[:, 1]))
    assert described(to_onnx(both[0])) == skl2onnx_outputs(both[1], Z)
