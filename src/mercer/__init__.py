"""Support vector machines and kernel methods: fast, exact and certified.

A public name is imported when it is first used, so that ``mercer --help`` loads neither numba nor scikit-learn.
"""

from importlib import import_module
from typing import Any

# where each public name is defined
_NAMES = {
    "mercer.estimators": ("SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR", "certify"),
    "mercer.kernels": (
        "CallableKernel", "Chi2", "Constant", "Cosine", "Gaussian", "Kernel", "Laplacian", "Linear", "Matern", "Min",
        "Normalized", "On", "Polynomial", "Power", "PowerSeries", "Precomputed", "Product", "Scaled", "Sigmoid", "Sum",
        "MercerReport", "check_mercer", "parse_kernel",
    ),
    "mercer.problems": ("Certificate",),
    "mercer.exceptions": (
        "InfeasibleNuError", "InvalidInputError", "MercerError", "MissingExtraError", "NotPositiveSemidefiniteError",
        "NotPositiveSemidefiniteWarning", "NotSeparableError", "NotSymmetricError",
    ),
}  # fmt: skip
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("mercer")
    if name not in _HOME:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
