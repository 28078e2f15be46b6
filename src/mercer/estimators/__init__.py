"""scikit-learn's contract for the machines of mercer."""

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
