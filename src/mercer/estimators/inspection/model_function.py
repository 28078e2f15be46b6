"""``function_`` of kernel machines: the decision function without its intercept, as an element of the RKHS."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.kernels import Kernel
from mercer.kernels.features import Matrix, take_samples

if TYPE_CHECKING:
    from mercer.kernels.rkhs_function import RKHSFunction


class FunctionMixin:
    """For estimators whose decision functions are f(x) + b with f = Σ βᵢ k(xᵢ, ·)."""

    @abstractmethod
    def _expansion(self) -> tuple[Kernel, Any, Matrix]:
        """The kernel, the points, and their coefficients: a vector for one function, else a row for each."""

    @property
    def function_(self) -> RKHSFunction | list[RKHSFunction]:
        """The decision function without its intercept, as an ``RKHSFunction``: Σ βᵢ k(xᵢ, ·).

        A list if the model has several: one for each pair of classes (in the order of ``intercept_`` and of the
        decision values "ovo"), for each class (one-vs-rest), or for each target. Not available for a precomputed
        kernel.
        """
        from mercer.kernels.rkhs_function import RKHSFunction

        check_is_fitted(self)
        kernel, points, coef = self._expansion()
        if kernel.domain == "matrix":
            raise AttributeError(
                "function_ is not available for a precomputed kernel, whose values at other points are not known. Fit "
                "with the kernel itself: a kernel object, or CallableKernel(function)."
            )
        functions = []
        for row in np.atleast_2d(coef):
            used = np.flatnonzero(row)
            functions.append(RKHSFunction(kernel, take_samples(points, used), row[used]))
        return functions[0] if coef.ndim == 1 else functions
