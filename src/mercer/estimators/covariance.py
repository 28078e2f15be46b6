"""The covariance of a Gaussian process: what its parameter means, how it is learnt, what may be wrong with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.estimators.progress import warn_user
from mercer.exceptions import InvalidInputError
from mercer.gram.memory import MEGABYTE, available_bytes
from mercer.kernels import CallableKernel, Kernel, SklearnKernel, parse_kernel
from mercer.kernels.features import Vector
from mercer.kernels.sklearn import is_sklearn_kernel
from mercer.process.ascent import Objective
from mercer.process.evidence import Evidence

# bytes that are there: to ask takes a tenth of a small fit
NO_QUESTION = 8 * MEGABYTE


def resolve_covariance(kernel: Any) -> Kernel:
    """The kernel that the parameter describes."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type):
        raise InvalidInputError(f"kernel={kernel.__name__} is a class, not a kernel: write {kernel.__name__}().")
    if kernel is None:
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel

        return SklearnKernel(ConstantKernel() * RBF())
    if is_sklearn_kernel(kernel):
        return SklearnKernel(kernel)
    return parse_kernel(kernel) if isinstance(kernel, str) else CallableKernel(kernel)


def likelihood(kernel: Kernel, evidence: Evidence) -> Objective:
    """log p(y) and its derivatives as a function of the kernel's theta."""
    equal = kernel.equal if isinstance(kernel, SklearnKernel) else None
    if equal is None:
        return lambda theta: evidence.value_and_gradient(kernel.with_theta(theta))
    # scikit-learn's objects take longer to build than a small matrix to factor: their equal here goes the same way
    own, start, powers = equal.kernel, kernel.theta, equal.powers
    origin = own.theta

    def of_equal(theta: Vector) -> tuple[float, Vector]:
        value, gradient = evidence.value_and_gradient(own.with_theta(origin + powers * (theta - start)))
        return value, powers * gradient

    return of_equal


def public(kernel: Kernel, given: Any) -> Any:
    """The kernel as the user knows it: scikit-learn's if that is what was given."""
    return kernel.kernel if isinstance(kernel, SklearnKernel) and not isinstance(given, Kernel) else kernel


def check_memory(n: int) -> None:
    """Raise if the kernel matrix of so many samples does not fit in the memory that is left."""
    needed = 8 * n * n
    if needed <= NO_QUESTION:
        return
    available = available_bytes()
    if needed > available:
        most = int(np.sqrt(available / 8))
        raise InvalidInputError(
            f"A Gaussian process needs the whole kernel matrix: {n:,} samples take {needed / 1e9:,.1f} GB, but "
            f"{available / 1e9:,.1f} GB are available, enough for {most:,} samples. Fit it on a random part of the "
            "samples, or use SVR, which does not hold the matrix."
        )


def warn_at_bounds(kernel: Kernel) -> None:
    """Tell which parameters would go on if their bounds allowed it; scikit-learn's words."""
    close = np.isclose(kernel.bounds, kernel.theta[:, None])
    for parameter, (low, high) in zip(kernel.hyperparameters(), close.tolist(), strict=True):
        if not (low or high) or parameter.lower == parameter.upper:
            continue
        name, _, position = parameter.name.partition("[")
        side, bound, change = (
            ("lower", parameter.lower, "Decreasing") if low else ("upper", parameter.upper, "Increasing")
        )
        warn_user(
            f"The optimal value found for dimension {position.rstrip(']') or 0} of parameter {name} is close to the "
            f"specified {side} bound {bound}. {change} the bound and calling fit again may find a better value.",
            ConvergenceWarning,
        )


def not_definite(name: Any, kernel: Kernel, evidence: Evidence, order: int) -> str:
    """Why K + alpha has no Cholesky factor: scikit-learn's words, then what was found and what to do."""
    features = kernel.prepare(evidence.samples)
    last = features.take(np.array([order - 1]))
    row = kernel.block(last, features.take(np.arange(order)))[0].astype(np.float64)
    diagonal = kernel.diagonal(features)
    message = (
        f"The kernel, {name}, is not returning a positive definite matrix. Try gradually increasing the 'alpha' "
        "parameter of your GaussianProcessRegressor estimator."
    )
    if not (np.all(np.isfinite(row)) and np.all(np.isfinite(diagonal))):
        return f"{message} It has values that are NaN or infinite: scale the samples, or bound the kernel's parameters."
    if row[-1] <= 0:
        return f"{message} Here k(x, x) is {row[-1]:g} for sample {order - 1}: a covariance has k(x, x) > 0."
    least = len(diagonal) * np.finfo(np.float64).eps * float(np.abs(diagonal).max())
    twin = int(np.argmin(np.abs(row[:-1] - row[-1]) + np.abs(diagonal[: order - 1] - row[-1]))) if order > 1 else 0
    if order > 1 and abs(row[twin] - row[-1]) + abs(diagonal[twin] - row[-1]) <= 1e-12 * abs(row[-1]):
        what = f"samples {twin} and {order - 1} are equal to the kernel"
    else:
        what = f"sample {order - 1} is a combination of those before it, to within rounding"
    return (
        f"{message} Here {what}, and alpha is {float(np.max(evidence.variances)):g}: make it at least {least:.1g}, or "
        "add White(noise) to the kernel, whose noise is learnt."
    )
