"""The parameters ``kernel__name`` of estimators with a kernel object."""

from __future__ import annotations

from typing import Any

from mercer.kernels import Kernel
from mercer.kernels.sklearn import is_sklearn_kernel


class KernelParameters:
    """Mixin for estimators with a parameter ``kernel``; must come before BaseEstimator."""

    kernel: Any

    def set_params(self, **params: Any) -> Any:
        """Set parameters; ``kernel__name`` replaces the kernel by a copy with that parameter changed."""
        nested = {key.partition("__")[2]: params.pop(key) for key in list(params) if key.startswith("kernel__")}
        super().set_params(**params)  # type: ignore[misc]
        if nested:
            if is_sklearn_kernel(self.kernel):
                from sklearn.base import clone

                self.kernel = clone(self.kernel).set_params(**nested)
                return self
            if not isinstance(self.kernel, Kernel):
                raise ValueError(
                    f"Invalid parameter 'kernel__{next(iter(nested))}' for estimator {self!r}: kernel={self.kernel!r} "
                    "has no parameters of its own. Give a kernel object such as mercer.kernels.Gaussian()."
                )
            self.kernel = self.kernel.set_params(**nested)
        return self
