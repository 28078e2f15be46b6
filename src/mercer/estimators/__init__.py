"""scikit-learn's contract for the machines of mercer; each is imported when it is first asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.estimators.certification.certify import certify
    from mercer.estimators.gaussian_process import GaussianProcessRegressor
    from mercer.estimators.kernel_ridge import KernelRidge
    from mercer.estimators.kernel_ridge_cv import KernelRidgeCV
    from mercer.estimators.linear.linear_svc import LinearSVC
    from mercer.estimators.linear.linear_svr import LinearSVR
    from mercer.estimators.one_class import OneClassSVM
    from mercer.estimators.svc import SVC, NuSVC
    from mercer.estimators.svr import SVR, NuSVR

__all__ = [
    "SVC",
    "SVR",
    "GaussianProcessRegressor",
    "KernelRidge",
    "KernelRidgeCV",
    "LinearSVC",
    "LinearSVR",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "certify",
]

_MODULES = {
    "certification.certify": ("certify",),
    "gaussian_process": ("GaussianProcessRegressor",),
    "kernel_ridge": ("KernelRidge",),
    "kernel_ridge_cv": ("KernelRidgeCV",),
    "linear.linear_svc": ("LinearSVC",),
    "linear.linear_svr": ("LinearSVR",),
    "one_class": ("OneClassSVM",),
    "svc": ("SVC", "NuSVC"),
    "svr": ("SVR", "NuSVR"),
}
_HOME = {name: f"mercer.estimators.{module}" for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mercer.estimators' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME[name]), name)  # asked for once
    return found
