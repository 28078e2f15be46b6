"""Read support vector machines from ONNX graphs of other programs: the operators SVMClassifier and SVMRegressor.

    SVMClassifier    f_ij(x) = Σ coef k(v, x) + rho, class i if f_ij > 0, as in LIBSVM and scikit-learn
    SVMRegressor     f(x) = Σ coef k(v, x) + rho, also for one-class machines

Only the numbers of the file are read; the graph is not run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mercer.estimators.one_class import OneClassSVM
from mercer.estimators.svc import SVC, NuSVC
from mercer.estimators.svr import SVR, NuSVR
from mercer.exceptions import MissingExtraError, ModelFileError
from mercer.io.formats.from_parts import make_fitted, mark_uncertified
from mercer.kernels import Gaussian, Kernel, Linear, Polynomial, Sigmoid
from mercer.kernels.features import Matrix, Vector

UNKNOWN = "ONNX files do not tell which samples the support vectors are: mercer.io.with_training_data finds them"
# operators that scale features
SCALES = ("Scaler", "Sub", "Div", "Mul", "Add")
# the largest number of support vectors
LARGEST = 10**9


def read_onnx(path: Any, *, nu: bool = False) -> Any:
    """Read a support vector machine from an ONNX file, such as those of skl2onnx.

    Parameters
    ----------
    path : str or path
        The file. Scalers before the machine become the model's attribute ``before_``; `prepared_for` applies them.
    nu : bool, default=False
        Whether to read a classifier as NuSVC and a regressor as NuSVR: the graph does not tell.

    Returns
    -------
    model : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        The fitted estimator. Its numbers have float32 precision, as in the file.
    """
    try:
        import onnx
    except ImportError:
        raise MissingExtraError("Reading an ONNX file", package="onnx", extra="onnx") from None
    try:
        graph = onnx.load_model_from_string(Path(path).read_bytes()).graph
    except FileNotFoundError:
        raise
    except Exception as error:  # protobuf may raise anything on a damaged file
        raise ModelFileError(f"{path} is not an ONNX file: {str(error)[:200] or type(error).__name__}.") from None
    machines = [node for node in graph.node if node.op_type in ("SVMClassifier", "SVMRegressor")]
    if len(machines) != 1:
        kinds = ", ".join(sorted({node.op_type for node in graph.node})[:8]) or "no operator"
        raise ModelFileError(
            f"{path} has {len(machines)} SVMClassifier or SVMRegressor operators, but exactly one is needed (found "
            f"{kinds}): other graphs do not keep support vectors. Certify the model from which it was exported."
        )
    node = machines[0]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    reader = _Reader(str(path), attributes)
    one_class = bool(attributes.get("one_class", 0)) or any(other.op_type == "Sign" for other in graph.node)
    if node.op_type == "SVMClassifier":
        model = reader.classifier(NuSVC if nu else SVC)
    else:
        model = reader.regressor(OneClassSVM if one_class else NuSVR if nu else SVR)
    model.before_ = _before(onnx, graph, node, str(path), model.n_features_in_)
    return model


def prepared_for(model: Any, X: Matrix) -> Matrix:
    """Scale samples as the graph does before its machine."""
    scale, shift = model.before_
    return np.asarray(X, dtype=np.float64) * scale + shift


class _Reader:
    """Builds a machine from the attributes of one operator."""

    def __init__(self, name: str, attributes: dict[str, Any]) -> None:
        self.name, self.attributes = name, attributes

    def fail(self, what: str) -> ModelFileError:
        return ModelFileError(f"{self.name}: {what}.")

    def numbers(self, name: str) -> Vector:
        found = self.attributes.get(name, ())
        try:
            array = np.asarray(list(found), dtype=np.float64)
        except (TypeError, ValueError):
            raise self.fail(f"{name} is not a list of numbers") from None
        if array.ndim != 1 or not np.isfinite(array).all():
            raise self.fail(f"{name} has numbers that are not finite")
        return array

    def kernel(self) -> Kernel:
        kind = self.attributes.get("kernel_type", b"LINEAR")
        kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
        if kind == "LINEAR":
            return Linear()
        params = self.numbers("kernel_params")
        if len(params) != 3 or kind not in ("RBF", "POLY", "SIGMOID"):
            raise self.fail(
                f"kernel_type is {kind!r:.40} with {len(params)} kernel_params, but must be LINEAR, or RBF, POLY or "
                "SIGMOID with 3"
            )
        gamma, coef0, degree = params.tolist()
        if gamma < 0 or degree < 0 or degree != int(degree):
            raise self.fail(
                f"gamma is {gamma:g} and degree is {degree:g}, but must not be negative, and degree must be an integer"
            )
        if kind == "RBF":
            return Gaussian(gamma)
        return Polynomial(int(degree), gamma, coef0) if kind == "POLY" else Sigmoid(gamma, coef0)

    def vectors(self, m: int) -> Matrix:
        flat = self.numbers("support_vectors")
        if m < 1 or len(flat) == 0 or len(flat) % m:
            raise self.fail(
                f"support_vectors has {len(flat)} numbers, which do not form {m} support vectors; without support "
                "vectors the distance from the optimum is unknown"
            )
        return flat.reshape(m, -1)

    def classifier(self, cls: type) -> Any:
        counts = self.numbers("vectors_per_class").astype(np.int64)
        ints, texts = self.attributes.get("classlabels_ints", ()), self.attributes.get("classlabels_strings", ())
        classes = np.asarray(list(ints), dtype=np.int64) if len(ints) else np.array([t.decode() for t in texts])
        k = len(classes)
        if k < 2 or len(counts) != k or counts.min(initial=0) < 0 or counts.sum() > LARGEST:
            raise self.fail(f"there are {k} classes, but vectors_per_class is {counts.tolist()!r:.60}")
        if len(set(classes.tolist())) < k:
            raise self.fail("a class is named twice")
        m = int(counts.sum())
        X, coef, rho = self.vectors(m), self.numbers("coefficients"), self.numbers("rho")
        if len(coef) != (k - 1) * m or len(rho) != k * (k - 1) // 2:
            raise self.fail(f"{len(coef)} coefficients and {len(rho)} thresholds do not fit {m} vectors of {k} classes")
        coef = coef.reshape(k - 1, m)
        if k == 2 and classes[0] > classes[1]:
            order = np.r_[counts[0] : m, 0 : counts[0]]
            coef, rho, classes, counts, X = -coef[:, order], -rho, classes[::-1], counts[::-1], X[order]
        return self._fitted(cls, X, coef, rho, counts.tolist(), classes)

    def regressor(self, cls: type) -> Any:
        m = int(self.attributes.get("n_supports", 0))
        X, coef, rho = self.vectors(m), self.numbers("coefficients"), self.numbers("rho")
        if len(coef) != m or len(rho) != 1:
            raise self.fail(f"{len(coef)} coefficients and {len(rho)} thresholds do not fit {m} vectors")
        return self._fitted(cls, X, coef[None, :], rho, [m], None)

    def _fitted(self, cls: type, X: Matrix, coef: Matrix, b: Vector, counts: list[int], classes: Any) -> Any:
        kernel = self.kernel()
        names = {Linear: "linear", Gaussian: "rbf", Polynomial: "poly", Sigmoid: "sigmoid"}
        shown = {name: getattr(kernel, name) for name in ("gamma", "coef0", "degree") if hasattr(kernel, name)}
        model = cls(kernel=names[type(kernel)], **shown)
        m, d = X.shape
        make_fitted(
            model, kernel, X, coef, b,
            support=np.arange(m), n_support=counts, n_train=m, n_features=d, classes=classes,
        )  # fmt: skip
        mark_uncertified(model, len(b), UNKNOWN)
        return model


def _before(onnx: Any, graph: Any, node: Any, path: str, d: int) -> tuple[Vector, Vector]:
    """Return (scale, shift) of all operators between the input and the machine; raise if one does not scale."""
    constants = {tensor.name: tensor for tensor in graph.initializer}
    makers = {output: other for other in graph.node for output in other.output}
    scale, shift, name = np.ones(d), np.zeros(d), node.input[0]
    for _ in range(len(graph.node) + 1):
        if name not in makers:
            return scale, shift
        other = makers[name]
        found = {a.name: onnx.helper.get_attribute_value(a) for a in other.attribute}
        inputs = [i for i in other.input if i not in constants]
        if other.op_type not in (*SCALES, "Cast", "Identity") or len(inputs) != 1:
            raise ModelFileError(
                f"{path} applies {other.op_type} to samples before its machine, but only scaling can be read. Export "
                "the machine alone, and certify it with preprocessed samples."
            )
        factor, move = np.ones(1), np.zeros(1)
        if other.op_type == "Scaler":
            factor = np.asarray(found.get("scale", [1.0]), dtype=np.float64)
            move = -np.asarray(found.get("offset", [0.0]), dtype=np.float64) * factor
        elif other.op_type in SCALES:
            values = onnx.numpy_helper.to_array(constants[next(i for i in other.input if i in constants)])
            number = np.ravel(np.asarray(values, dtype=np.float64))
            if other.op_type in ("Sub", "Div") and other.input[0] in constants:
                raise ModelFileError(f"{path} has a {other.op_type} whose first input is a constant: not a scaling.")
            if other.op_type in ("Mul", "Div"):
                factor = number if other.op_type == "Mul" else 1.0 / number
            else:
                move = number if other.op_type == "Add" else -number
        if any(len(v) not in (1, d) for v in (factor, move)):
            raise ModelFileError(
                f"{path}: a {other.op_type} has {max(len(factor), len(move))} numbers, but must have 1 or {d}, one for "
                "each feature."
            )
        # this operator runs before those visited so far
        scale, shift, name = scale * factor, shift + scale * move, inputs[0]
    raise ModelFileError(f"{path}: its operators form a cycle.")
