"""scikit-learn's contract for the machines of mercer; each is imported when it is first asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.estimators.certification import certify
    from mercer.estimators.linear_svc import LinearSVC
    from mercer.estimators.linear_svr import LinearSVR
    from mercer.estimators.novelty import OneClassSVM
    from mercer.estimators.process import GaussianProcessRegressor
    from mercer.estimators.ridge import KernelRidge
    from mercer.estimators.ridge_cv import KernelRidgeCV
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
    "certification": ("certify",),
    "linear_svc": ("LinearSVC",),
    "linear_svr": ("LinearSVR",),
    "novelty": ("OneClassSVM",),
    "process": ("GaussianProcessRegressor",),
    "ridge": ("KernelRidge",),
    "ridge_cv": ("KernelRidgeCV",),
    "svc": ("SVC", "NuSVC"),
    "svr": ("SVR", "NuSVR"),
}
_HOME = {name: f"mercer.estimators.{module}" for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mercer.estimators' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
