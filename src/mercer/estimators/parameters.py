"""Parameters that estimators share: ``kernel__name`` for kernel objects, and the loss given by ``loss`` and ``C``."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels import Kernel
from mercer.kernels.sklearn import is_sklearn_kernel
from mercer.losses import (
    EpsilonInsensitive,
    HardMargin,
    Hinge,
    Loss,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)


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


def classification_loss(machine: Any) -> Loss:
    """The loss given by ``loss`` and ``C``; scikit-learn's SVC has no ``loss`` and uses the hinge loss."""
    if np.isinf(machine.C):
        return HardMargin()
    return SquaredHinge() if getattr(machine, "loss", "hinge") == "squared_hinge" else Hinge()


def regression_loss(machine: Any) -> Loss:
    """The loss given by ``loss``, ``epsilon``, ``quantile`` and ``C``; scikit-learn's SVR has no ``loss``."""
    kind = getattr(machine, "loss", "epsilon_insensitive")
    if kind == "pinball":
        return Pinball(float(machine.quantile))
    # with C = inf no sample may leave the tube, so both losses give the same problem
    if kind == "squared_epsilon_insensitive" and np.isfinite(machine.C):
        return SquaredEpsilonInsensitive(float(machine.epsilon))
    return EpsilonInsensitive(float(machine.epsilon))
