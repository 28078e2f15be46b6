"""An ONNX graph has the predictions of the model."""

import sys

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from tests.io.formats.test_source_code import NAMES, dense
from tests.io.models import BINARY, HISTOGRAM_KERNELS, MODELS, REAL, THREE, VECTOR_KERNELS, X, kernel_model
from tests.naming import named

import mercer
from mercer.exceptions import InvalidInputError, MissingExtraError
from mercer.io.formats.formulas import evaluate
from mercer.io.formats.plain_model import plain_model
from mercer.io.onnx import to_onnx

onnxruntime = pytest.importorskip("onnxruntime")


def run(graph, data, dtype):
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": dense(data).astype(dtype)}), strict=True))


def rounding(model, dtype):
    """A bound on the rounding error of the sum over support vectors."""
    plain = plain_model(model)
    if plain.coef is None:
        return 0.0
    m = len(plain.vectors)
    K = evaluate(plain.formula, np.repeat(plain.vectors, m, axis=0), np.tile(plain.vectors, (m, 1))).reshape(m, m)
    return 2.0 * float(np.finfo(dtype).eps * (np.abs(plain.coef) @ np.abs(K)).max(initial=0.0))


def assert_equal(model, data, dtype, tol):
    loss = rounding(model, dtype)
    found = run(to_onnx(model, dtype=dtype), data, dtype)
    expected = model.predict(data)
    if hasattr(model, "decision_function"):
        values = model.decision_function(data)
        if not hasattr(model, "classes_"):  # of a novelty detector
            assert found["label"].shape == found["scores"].shape == (len(values), 1)
            found = {name: value[:, 0] for name, value in found.items()}
        assert found["scores"].shape == values.shape
        np.testing.assert_allclose(
            found["scores"], values, rtol=tol, atol=max(loss, tol * max(1.0, np.abs(values).max()))
        )
        assert found["label"].shape == expected.shape
        # support vectors on the boundary have values of 1e-16 with a random sign
        clear = np.abs(values) > max(loss, tol) if values.ndim == 1 else np.ones(len(values), np.bool_)
        assert np.array_equal(found["label"].astype(expected.dtype)[clear], expected[clear]) and clear.mean() > 0.5
    else:
        expected = expected.reshape(len(expected), -1)
        assert list(found) == ["variable"] and found["variable"].shape == expected.shape
        np.testing.assert_allclose(found["variable"], expected, rtol=tol, atol=max(loss, tol))


precisions = pytest.mark.parametrize(
    ("dtype", "tol"), [(np.float32, 1e-5), (np.float64, 1e-9)], ids=["float32", "float64"]
)


@precisions
class TestEqual:
    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("name", NAMES)
    def test_models(self, name, dtype, tol):
        """onnxruntime gives the labels and values of the model."""
        assert_equal(*MODELS[name](), dtype, tol)

    @pytest.mark.parametrize("kernel", VECTOR_KERNELS + HISTOGRAM_KERNELS, ids=named)
    def test_kernels(self, kernel, dtype, tol):
        """Every kernel on vectors can be exported."""
        assert_equal(*kernel_model(kernel), dtype, tol)

    @pytest.mark.parametrize("scalers", [[StandardScaler()], [MinMaxScaler((-1, 2)), StandardScaler()]], ids=named)
    def test_scalers(self, scalers, dtype, tol):
        """Scalers are part of the graph, and a large mean loses no precision."""
        data = (100.0 + X).astype(np.float32).astype(np.float64)
        assert_equal(make_pipeline(*scalers, mercer.SVC()).fit(data, THREE), data, dtype, tol)

    def test_break_ties(self, dtype, tol):
        """With break_ties the class with the largest decision value is predicted."""
        assert_equal(mercer.SVC(break_ties=True).fit(X, THREE), X, dtype, tol)

    def test_no_support_vectors(self, dtype, tol):
        """A model without support vectors can be exported."""
        assert_equal(mercer.SVR(epsilon=10.0).fit(X, REAL), X, dtype, tol)

    def test_far_from_the_origin(self, dtype, tol):
        """Distances are computed without cancellation."""
        data = (1000.0 + X).astype(np.float32).astype(np.float64)
        assert_equal(mercer.SVC(gamma=0.5).fit(data, BINARY), data, dtype, tol)


class TestRefused:
    def test_missing_package(self, monkeypatch):
        """Without the package onnx, the error tells how to install it."""
        monkeypatch.setitem(sys.modules, "onnx", None)
        with pytest.raises(MissingExtraError, match=r"please run  pip install 'mercer\[onnx\]'"):
            to_onnx(mercer.SVC().fit(X, BINARY))

    def test_precision(self):
        """dtype must be float32 or float64."""
        with pytest.raises(InvalidInputError, match=r"numpy\.float32 or numpy\.float64"):
            to_onnx(mercer.SVC().fit(X, BINARY), dtype=np.float16)

    def test_not_fitted(self):
        """An unfitted model raises scikit-learn's error."""
        with pytest.raises(ValueError, match="is not fitted yet"):
            to_onnx(mercer.SVC())
