"""Support vector machines and kernel methods: fast, exact and certified.

A public name is imported when it is first used, so that ``mercer --help`` loads neither numba nor scikit-learn.
"""

from importlib import import_module
from typing import Any

# public name -> where it is defined
_HOME = {
    "NuSVC": "mercer.estimators",
    "NuSVR": "mercer.estimators",
    "OneClassSVM": "mercer.estimators",
    "SVC": "mercer.estimators",
    "SVR": "mercer.estimators",
    "certify": "mercer.estimators",
    "check_mercer": "mercer.kernels",
}

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM", "certify", "check_mercer"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("mercer")
    if name not in _HOME:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
