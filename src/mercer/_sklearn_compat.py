"""The only file that imports private names of scikit-learn, or names that some supported versions lack.

Check it after a release of scikit-learn: `make test-sklearn` runs the tests with the oldest and the newest version.
Three public decorators are wrapped here as well, because scikit-learn has no type hints and an untyped decorator hides
the types of the function below it.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils import compute_class_weight as _compute_class_weight
from sklearn.utils import deprecated as _deprecated
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils._param_validation import validate_params as _validate_params
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.metaestimators import available_if as _available_if
from sklearn.utils.multiclass import _ovr_decision_function as ovr_decision_function
from sklearn.utils.validation import _num_samples as num_samples

__all__ = [
    "BALANCES_SAMPLE_WEIGHTS",
    "CallbackSupportMixin",
    "Hidden",
    "Interval",
    "StrOptions",
    "available_if",
    "compute_class_weight",
    "deprecated",
    "fit_context",
    "in_configured_interface",
    "is_sklearn_scorer",
    "num_samples",
    "ovr_decision_function",
    "safe_indexing",
    "safe_split",
    "validate_params",
]

F = TypeVar("F", bound=Callable[..., Any])

# since 1.7 scikit-learn's LinearSVC with class_weight="balanced" balances sample weights, before it counts samples
BALANCES_SAMPLE_WEIGHTS = "sample_weight" in signature(_compute_class_weight).parameters

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # before 1.9

    class _NoCallbacks:
        """A callback context that calls nothing."""

        def call_on_fit_task_begin(self, **task: Any) -> None:
            """No callback is called."""

        def call_on_fit_task_end(self, **task: Any) -> bool:
            """No callback asks to stop."""
            return False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks; there is no `set_callbacks` then."""

        def _init_callback_context(self, **tasks: Any) -> _NoCallbacks:
            return _NoCallbacks()


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[F], F]:
    """Validate the parameters before ``fit``, and tear callbacks down after it."""
    decorator: Callable[[F], F] = _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)
    return decorator


def validate_params(constraints: dict[str, Any], *, prefer_skip_nested_validation: bool) -> Callable[[F], F]:
    """Validate the arguments of a function."""
    decorator: Callable[[F], F] = _validate_params(
        constraints, prefer_skip_nested_validation=prefer_skip_nested_validation
    )
    return decorator


def available_if(check: Callable[[Any], bool]) -> Callable[[F], F]:
    """Hide a method where the check is false or raises an AttributeError."""
    decorator: Callable[[F], F] = _available_if(check)
    return decorator


def deprecated(message: str) -> Callable[[F], F]:
    """Warn with a FutureWarning when the function or property is used."""
    decorator: Callable[[F], F] = _deprecated(message)
    return decorator


def compute_class_weight(class_weight: Any, *, classes: Any, y: Any, sample_weight: Any = None) -> Any:
    """The factor of each class, balanced by sample weights in every version. ``classes`` are sorted."""
    if BALANCES_SAMPLE_WEIGHTS:
        return _compute_class_weight(class_weight, classes=classes, y=y, sample_weight=sample_weight)
    factors = _compute_class_weight(class_weight, classes=classes, y=y)
    if sample_weight is None or not isinstance(class_weight, str):
        return factors
    of_class = np.bincount(np.searchsorted(classes, y), sample_weight, len(classes))
    return of_class.sum() / (len(classes) * of_class)


def in_configured_interface(X: Any) -> Any:
    """A sparse X as a sparse matrix, or as a sparse array if ``sparse_interface="sparray"``; a dense X as it is.

    The setting exists since 1.9; earlier versions return sparse matrices.
    """
    if not sp.issparse(X):
        return X
    to_array = get_config().get("sparse_interface", "spmatrix") == "sparray"
    if to_array != sp.isspmatrix(X):
        return X
    return getattr(sp, f"{X.format}_{'array' if to_array else 'matrix'}")(X)


def is_sklearn_scorer(scorer: Any) -> bool:
    """Whether a scorer was made by scikit-learn, so that it takes ``sample_weight``."""
    # imported here: loading SVC does not load sklearn.metrics
    from sklearn.metrics._scorer import _BaseScorer

    return isinstance(scorer, _BaseScorer)
