"""The decision functions of a fitted kernel machine as sums over points: f(x) = Σᵢ βᵢ k(xᵢ, x) + b."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitted_models import Kind
from mercer.estimators.prediction import pair_coefficients
from mercer.exceptions import InvalidInputError
from mercer.kernels import Kernel
from mercer.kernels.features import Matrix, Vector
from mercer.svm.batch import class_pairs
from mercer.validation import resolve_kernel

# mercer's estimators whose predictions are such sums; scikit-learn's that are read, too
EXPANSIONS = (
    "SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "KernelRidge", "KernelRidgeCV", "GaussianProcessRegressor",
    "KernelERM", "KernelLogisticRegression",
)  # fmt: skip
OF_SKLEARN = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")


class DecisionFunctions(NamedTuple):
    """Kernel, points, coefficients (a row for each function), intercepts, and names of the functions.

    With two classes there is one function, positive for the second. With several there is one for each pair, positive
    for the first of the two.
    """

    kernel: Kernel
    points: Any
    coef: Matrix
    intercept: Vector
    names: tuple[str, ...]


def decision_functions(machine: Any, caller: str, allowed: tuple[str, ...] = EXPANSIONS) -> DecisionFunctions:
    """The functions of a fitted machine; an error that names the caller if it is not an allowed one."""
    kind = kind_among(machine, caller, allowed)
    check_is_fitted(machine)
    if kind.package == "sklearn":
        kernel, points, coef = _of_sklearn(machine)
    else:
        kernel, points, coef = machine._expansion()
    if kernel.domain == "matrix":
        raise InvalidInputError(
            f"{caller} needs the kernel itself, but this {kind.name} was fitted to a matrix of kernel values. Fit it "
            "with a kernel object and the samples."
        )
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    intercept = machine._y_train_mean if kind.name == "GaussianProcessRegressor" else machine.intercept_
    names = function_names(machine, len(coef))
    return DecisionFunctions(kernel, points, coef, np.broadcast_to(np.ravel(intercept), len(coef)).copy(), names)


def kind_among(machine: Any, caller: str, allowed: tuple[str, ...], of_sklearn: tuple[str, ...] = OF_SKLEARN) -> Kind:
    """The first base class of the machine that is allowed, in mercer or in scikit-learn; an error if there is none."""
    for base in type(machine).__mro__:
        package = base.__module__.partition(".")[0]
        name = base.__name__
        if name in allowed and (package == "mercer" or (package == "sklearn" and name in of_sklearn)):
            return Kind(name, package)
    raise InvalidInputError(
        f"{caller} supports {', '.join(allowed)}, but was given {type(machine).__name__}. Pass one of these, or a "
        "pipeline or search that ends in one."
    )


def _of_sklearn(machine: Any) -> tuple[Kernel, Any, Matrix]:
    if callable(machine.kernel) or machine.kernel == "precomputed":
        raise InvalidInputError(
            f"The kernel of this scikit-learn {type(machine).__name__} is {machine.kernel!r}, whose values at other "
            "points are not known. Fit it with a kernel by name."
        )
    coef = machine.dual_coef_.toarray() if sp.issparse(machine.dual_coef_) else machine.dual_coef_
    if hasattr(machine, "classes_"):
        coef = pair_coefficients(coef, np.concatenate([[0], np.cumsum(machine.n_support_)]))
    return resolve_kernel(machine.kernel, machine.degree, machine._gamma, machine.coef0), machine.support_vectors_, coef


def function_names(machine: Any, n_functions: int) -> tuple[str, ...]:
    """ "a / b" for a function that is positive for a and negative for b; "f" or "target t" for regression."""
    if hasattr(machine, "classes_"):
        classes = np.asarray(machine.classes_).tolist()
        if len(classes) == 2:
            return (f"{classes[1]} / {classes[0]}",)
        pairs = class_pairs(len(classes))
        if n_functions == len(pairs):
            return tuple(f"{classes[i]} / {classes[j]}" for i, j in pairs)
        return tuple(f"{name} / rest" for name in classes)
    return ("f",) if n_functions == 1 else tuple(f"target {t}" for t in range(n_functions))
