"""What all estimators with a kernel share: its parameters, its domain, and how samples decide what it is."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.machine import Machine
from mercer.estimators.parameters import KernelParameters
from mercer.estimators.progress import warn_user
from mercer.estimators.psd_check import find_indefinite
from mercer.exceptions import NotPositiveSemidefiniteWarning
from mercer.gram.data import Data
from mercer.kernels import Kernel, Linear
from mercer.validation import check_pairwise_kernel, domain_of, is_pairwise, set_input_tags, square_matrix


class KernelEstimator(KernelParameters, Machine):
    """A machine that compares samples with a kernel, whatever its model is made of."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [str, callable, Kernel],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left"), tuple, list, np.ndarray],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "n_jobs": [Integral, None],
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        "precision": [StrOptions({"auto", "float32", "float64"})],
    }

    kernel: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        set_input_tags(tags.input_tags, self._domain())
        return tags

    def _domain(self) -> str:
        """What the samples are, as in ``Kernel.domain``."""
        return domain_of(self.kernel)

    def _bind_kernel(self, kernel: Kernel, samples: Any, X: Any, n: int) -> Data:
        """The samples that the kernel compares, which may be its matrix for the samples X."""
        if is_pairwise(kernel):
            square_matrix(samples)
            check_pairwise_kernel(kernel)
        self._kernel = kernel.bind(samples)
        self._gamma = getattr(self._kernel, "gamma", 0.0)
        self._sparse = sp.issparse(samples)
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (n,)
        return Data(self._kernel, samples, n, psd=self._seems_psd(samples, n))

    def _seems_psd(self, samples: Any, n: int) -> bool:
        """Look at a part of a matrix whose positive semidefiniteness nobody vouches for; warn if it is not."""
        found = find_indefinite(self._kernel, samples, n) if self._kernel.psd_is_assumed else None
        if found is not None:
            warn_user(
                f"The kernel matrix is not positive semidefinite: the smallest eigenvalue of {found.n_examined} of its "
                f"{n} rows is {found.smallest:.4g}, the largest {found.largest:.4g}. The fit ends at a stationary "
                f"point and its certificate bounds nothing. Use another kernel, or add {-found.smallest:.4g} to the "
                "diagonal.",
                NotPositiveSemidefiniteWarning,
            )
        return found is None

    @property
    def coef_(self) -> Any:
        """Weights of the features, for a linear kernel."""
        if not isinstance(self._kernel, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        coef = self._get_coef()
        (coef.data if sp.issparse(coef) else coef).flags.writeable = False
        return coef

    @abstractmethod
    def _get_coef(self) -> Any:
        """Weights of the features, of a linear kernel."""
