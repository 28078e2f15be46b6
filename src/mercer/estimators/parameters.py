"""What parameters of estimators mean: ``kernel__name``, and the loss that ``loss``, ``C`` and ``epsilon`` describe."""

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
    """For estimators with a parameter ``kernel``; stands before BaseEstimator."""

    kernel: Any

    def set_params(self, **params: Any) -> Any:
        """Set parameters; those of a kernel object as ``kernel__name``, which puts a new kernel in its place."""
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
    """What loss and C of a classifier describe. scikit-learn's SVC knows the hinge loss only."""
    if np.isinf(machine.C):
        return HardMargin()
    return SquaredHinge() if getattr(machine, "loss", "hinge") == "squared_hinge" else Hinge()


def regression_loss(machine: Any) -> Loss:
    """What loss, epsilon, quantile and C of a regression machine describe. scikit-learn's SVR knows one loss only."""
    kind = getattr(machine, "loss", "epsilon_insensitive")
    if kind == "pinball":
        return Pinball(float(machine.quantile))
    # nobody leaves a hard tube, so that it does not matter what that would cost
    if kind == "squared_epsilon_insensitive" and np.isfinite(machine.C):
        return SquaredEpsilonInsensitive(float(machine.epsilon))
    return EpsilonInsensitive(float(machine.epsilon))
