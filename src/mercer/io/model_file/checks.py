"""Check that objects read from a model file are consistent, above all the array sizes that compiled loops rely on.

Checksums detect damaged files. These checks are against forged files: whatever the file contains, a loaded model either
predicts or raises, and never reads memory outside its arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from mercer.estimators.gaussian_process import GaussianProcessRegressor
from mercer.estimators.kernel_ridge import BaseRidge, TrainingSamples
from mercer.estimators.linear.linear_machine import LinearMachine
from mercer.estimators.online.online_classifier import OnlineClassifier
from mercer.estimators.prediction import Expansion, SupportVectors
from mercer.estimators.processes.binary_process import BinaryProcess
from mercer.estimators.processes.gaussian_process_classifier import GaussianProcessClassifier
from mercer.estimators.processes.sparse_gaussian_process import SparseGaussianProcessRegressor
from mercer.estimators.svc import BaseSVC
from mercer.exceptions import ModelFileError
from mercer.io.tables.columns import Column
from mercer.io.tables.table_reader import TableReader
from mercer.kernels import Kernel
from mercer.kernels.features import count_samples
from mercer.online.sgd import Memory


def check_object(value: Any) -> None:
    """Raise ModelFileError unless the object could have been written by `save`."""
    try:
        if isinstance(value, SupportVectors):
            _check_vectors(value)
        elif isinstance(value, TrainingSamples):
            _require(
                isinstance(value.kernel, Kernel) and "samples" in vars(value), "the training samples have no kernel"
            )
            value._features = None
        elif isinstance(value, BaseEstimator):
            _check_estimator(value)
        elif type(value).__name__ == "Graph":
            _check_graph(value)
    except ModelFileError:
        raise
    except Exception as error:  # a missing attribute, or a type that cannot be compared
        what = str(error) or type(error).__name__
        raise ModelFileError(f"its {type(value).__name__} is not consistent: {what:.300}") from None


def _require(truth: Any, what: str) -> None:
    if not truth:
        raise ModelFileError(f"it is not consistent: {what}")


def _numbers(value: Any, dimensions: int, kinds: str = "f") -> Any:
    """Return the value if it is an array or sparse matrix of numbers with this many dimensions; else raise."""
    array = value.data if sp.issparse(value) else value
    _require(isinstance(array, np.ndarray) and array.dtype.kind in kinds, "expected an array of numbers")
    _require(value.ndim == dimensions, f"expected an array of {dimensions} dimensions, found {value.ndim}")
    return value


def _check_vectors(vectors: SupportVectors) -> None:
    vectors._features = {}
    _require(isinstance(vectors.kernel, Kernel), "the support vectors have no kernel")
    support = _numbers(vectors.support, 1, "iu")
    _require(
        type(vectors.n_train) is int and vectors.n_train >= 0,
        "the number of training samples is not a non-negative integer",
    )
    if len(support):
        _require(
            support.min() >= 0 and support.max() < max(vectors.n_train, 1),
            "a support vector's index is beyond the training samples",
        )
    ends = _numbers(vectors.ends, 1, "iu")
    _require(
        len(ends) >= 2 and ends[0] == 0 and np.all(np.diff(ends) >= 0), "the classes of the support vectors overlap"
    )
    _require(ends[-1] == len(support), f"{ends[-1]} support vectors in classes, but {len(support)} indices")
    _numbers(vectors.norms, 1)
    if vectors.kernel.domain != "matrix":
        found = count_samples(vectors.vectors)
        _require(found == len(support), f"{found} support vectors, but {len(support)} indices")
    if vectors.kernel.domain == "vectors":
        _numbers(vectors.vectors, 2, "fiub")


def _check_graph(graph: Any) -> None:
    """Check that edges join existing nodes, and that labels and weights have the right lengths."""
    n, edges = graph.n_nodes, _numbers(graph.edges, 2, "i")
    _require(type(n) is int and 0 <= n < 2**31 and type(graph.directed) is bool, "a graph has no valid size")
    _require(edges.dtype == np.int64 and edges.shape[1] == 2, "the edges are not pairs of nodes")
    _require(len(edges) == 0 or (edges.min() >= 0 and edges.max() < n), f"an edge leads to a node beyond the {n} nodes")
    counts = {"names": n, "node_labels": n, "edge_labels": len(edges)}
    for name, count in counts.items():
        labels = getattr(graph, name)
        _require(labels is None or (isinstance(labels, tuple) and len(labels) == count), f"{name} has the wrong length")
    _require(
        graph.weights is None or _numbers(graph.weights, 1).shape == (len(edges),),
        "there is not one weight for each edge",
    )


def _check_estimator(model: BaseEstimator) -> None:
    if hasattr(model, "_parameter_constraints"):
        model._validate_params()
    state = vars(model)
    if "_kernel" in state:
        _require(isinstance(model._kernel, Kernel), "the kernel is not a kernel object")
    if "classes_" in state:
        _require(isinstance(model.classes_, np.ndarray) and model.classes_.ndim == 1, "the classes are not a vector")
    if "vocabulary_" in state:
        # the numbers become column indices of a matrix
        places = list(model.vocabulary_.values())
        whole = all(isinstance(p, int | np.integer) and not isinstance(p, bool) for p in places)
        _require(
            whole and sorted(places) == list(range(len(places))),
            "the words of the vocabulary are not numbered 0, 1, 2, ...",
        )
    if isinstance(model, TableReader):
        columns = [*model.columns, *([] if model.target is None else [model.target])]
        _require(all(isinstance(column, Column) for column in columns), "a column of the table has no description")
    if isinstance(model, LinearMachine):
        _check_linear(model)
    elif isinstance(model, BaseRidge):
        _check_ridge(model)
    elif isinstance(model, GaussianProcessRegressor):
        _check_process(model)
    elif isinstance(model, GaussianProcessClassifier):
        _check_processes(model)
    elif isinstance(model, SparseGaussianProcessRegressor):
        _check_inducing(model)
    elif "_support" in state:
        _check_machine(model)
    if isinstance(model, OnlineClassifier) and "_memory" in state:
        _check_memory(model)


def _check_machine(model: Any) -> None:
    """Check that coefficients, intercepts and classes fit the support vectors."""
    support: SupportVectors = model._support
    _require(isinstance(support, SupportVectors) and support.kernel == model._kernel, "it has two different kernels")
    coef, m = _numbers(model._dual_coef_, 2), len(support.support)
    _require(coef.shape[1] == m, f"coefficients for {coef.shape[1]} support vectors, but there are {m}")
    intercept = _numbers(model.intercept_ if isinstance(model, OnlineClassifier) else model._intercept_, 1)
    problems = len(intercept)
    _require(np.array_equal(np.diff(support.ends), model._n_support), "the counts of support vectors differ")
    if isinstance(support, Expansion) or not isinstance(model, BaseSVC):
        _require(coef.shape[0] == problems, f"{coef.shape[0]} rows of coefficients, but {problems} intercepts")
    else:
        k = len(model.classes_)
        _require(k >= 2 and coef.shape[0] == k - 1 == len(support.ends) - 2, f"the coefficients do not fit {k} classes")
        _require(problems == k * (k - 1) // 2, f"{problems} intercepts for {k} classes")
        for name in ("_probA", "_probB"):
            _require(len(_numbers(getattr(model, name), 1)) in (0, problems), f"{name} has the wrong length")
    _require(len(support.norms) in (0, problems), "there is not one norm for each problem")
    _check_features(model, support.kernel, support.vectors)


def _check_features(model: Any, kernel: Kernel, vectors: Any) -> None:
    _require("_sparse" not in vars(model) or type(model._sparse) is bool, "the storage is neither sparse nor dense")
    if kernel.domain == "vectors" and count_samples(vectors):
        d = vectors.shape[1]
        _require(
            model.n_features_in_ == d, f"support vectors with {d} features, but {model.n_features_in_!r:.40} in all"
        )


def _check_linear(model: LinearMachine) -> None:
    if "coef_" not in vars(model):
        return
    coef = _numbers(model.coef_, 1 if np.ndim(model.coef_) == 1 and not sp.issparse(model.coef_) else 2)
    _require(coef.shape[-1] == model.n_features_in_, "the weights do not fit the number of features")
    rows = coef.shape[0] if coef.ndim == 2 else 1
    _require(np.size(model.intercept_) in (1, rows), "the intercepts do not fit the number of problems")
    if "classes_" in vars(model):
        _require(rows == (1 if len(model.classes_) == 2 else len(model.classes_)), "the weights do not fit the classes")


def _check_ridge(model: BaseRidge) -> None:
    if "_training" not in vars(model):
        return
    _require(isinstance(model._training, TrainingSamples), "it has no training samples")
    coef = _numbers(model.dual_coef_, np.ndim(model.dual_coef_))
    _require(coef.ndim in (1, 2), "the coefficients are neither a vector nor a matrix")
    n = count_samples(model._training.samples)
    _require(len(coef) == n, f"coefficients for {len(coef)} samples, but there are {n}")
    _require(model._training.kernel == model._kernel, "it has two different kernels")
    _check_features(model, model._kernel, model._training.samples)


def _check_process(model: GaussianProcessRegressor) -> None:
    if "X_train_" not in vars(model):
        return
    n = count_samples(model.X_train_)
    alpha = _numbers(model.alpha_, np.ndim(model.alpha_))
    _require(alpha.ndim in (1, 2) and len(alpha) == n, f"the coefficients do not fit {n} samples")
    _require(_numbers(model.L_, 2).shape == (n, n), f"the Cholesky factor does not fit {n} samples")


def _check_processes(model: GaussianProcessClassifier) -> None:
    if "processes_" not in vars(model):
        return
    total, processes = count_samples(model.X_train_), model.processes_
    k = len(model.classes_)
    pairs = k * (k - 1) // 2 if model.multi_class == "one_vs_one" else k
    _require(
        isinstance(processes, list) and len(processes) == (1 if k == 2 else pairs),
        f"its processes do not fit {k} classes",
    )
    for process in processes:
        _require(isinstance(process, BinaryProcess), "one of its processes is not valid")
        n, found = len(_numbers(process.y, 1)), process.posterior
        _require(
            n == (total if process.index is None else len(process.index)), f"a process does not fit {total} samples"
        )
        if process.index is not None:
            _require(
                bool(np.all((process.index >= 0) & (process.index < total))), f"a process does not fit {total} samples"
            )
        shapes = _numbers(found.coef, 1).shape, _numbers(found.root, 1).shape, _numbers(found.L, 2).shape
        _require(shapes == ((n,), (n,), (n, n)), f"the posterior does not fit {n} samples")


def _check_inducing(model: SparseGaussianProcessRegressor) -> None:
    if "dual_coef_" not in vars(model):
        return
    m = count_samples(model.inducing_points_)
    shapes = _numbers(model.dual_coef_, 1).shape, _numbers(model._L, 2).shape, _numbers(model._LB, 2).shape
    _require(shapes == ((m,), (m, m), (m, m)), f"the factors do not fit {m} inducing points")


def _check_memory(model: Any) -> None:
    memory = model._memory
    _require(
        isinstance(memory, Memory) and type(memory.t) is int and memory.t >= 0,
        "the state of the online learner is not valid",
    )
    rows = 1 if len(model.classes_) == 2 else len(model.classes_)
    v, A, state = (_numbers(part, 2) for part in (memory.v, memory.A, memory.state))
    _require(
        v.shape == A.shape and len(v) == len(state) == rows and state.shape[1] == 6,
        "the state of the online learner does not fit the classes",
    )
    if model._is_linear:
        w = _numbers(model._w, 2)
        _require(w.shape == v.shape == (rows, model.n_features_in_), "the weights do not fit the number of features")
    elif model._memory_samples is not None:
        _require(
            count_samples(model._memory_samples) == v.shape[1],
            "the state of the online learner does not fit its samples",
        )
