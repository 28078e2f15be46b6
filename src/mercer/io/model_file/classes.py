"""The classes that a model file may contain, and how their objects are converted to plain state and back.

A file names a class, and the name is looked up in the tables of this module. Only these classes are ever imported, and
a file cannot add to them: public estimators and kernels of mercer, the objects that they keep in private attributes,
and the scikit-learn classes that pipelines need. Users add their own classes with `register`.
"""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any

from sklearn.base import BaseEstimator

import mercer
from mercer.exceptions import InvalidInputError, ModelFileError
from mercer.kernels import Kernel

# private classes, by the module that defines them; files name them without the module
INSIDE = {
    "mercer.estimators.exact_updates.machine_updates": ("MachineUpdates",),
    "mercer.estimators.exact_updates.system_updates": ("SystemUpdates",),
    "mercer.estimators.prediction": ("Expansion", "SupportVectors"),
    "mercer.estimators.kernel_ridge": ("TrainingSamples",),
    "mercer.estimators.linear.linear_machine": ("Warm",),
    "mercer.estimators.processes.binary_process": ("BinaryProcess",),
    "mercer.estimators.processes.sparse_gaussian_process": ("EvidenceBounds", "SparseRound"),
    "mercer.io.tables.columns": ("Column",),
    "mercer.io.model_file.compression": ("Compression",),
    "mercer.io.tables.number_formats": ("NumberFormat",),
    "mercer.io.tables.table_reader": ("TableReader",),
    "mercer.landmarks.growth": ("GrowthRound",),
    "mercer.problems.solution": ("Status", "TracePoint"),
    "mercer.problems.steps": ("Steps",),
    "mercer.process.latent": ("LatentPosterior",),
    "mercer.svm.plan": ("Plan",),
    "mercer.problems.parts_plan": ("PartsPlan",),
    "mercer.linear.linear_solution": ("LinearPlan", "LinearSolution", "LinearStage"),
    "mercer.linear.multiclass.crammer_singer": ("JointSolution",),
    "mercer.online.sgd": ("Memory", "ObjectivePoint"),
}
# classes that files name with their module: those of scikit-learn, and those whose bare name is not unique
# a FunctionTransformer can only be the identity here: files hold no functions
QUALIFIED = {
    "mercer.selection.calibration": ("Beta", "Calibration", "Isotonic", "Scheme", "Sigmoid"),
    "mercer.selection.conformal": ("ConformalIntervals", "ConformalSets"),
    "mercer.selection.venn_abers": ("VennAbers",),
    "sklearn.compose": ("ColumnTransformer", "TransformedTargetRegressor"),
    "sklearn.feature_extraction.text": ("CountVectorizer", "TfidfTransformer", "TfidfVectorizer"),
    "sklearn.gaussian_process.kernels": (
        "CompoundKernel", "ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern",
        "PairwiseKernel", "Product", "RBF", "RationalQuadratic", "Sum", "WhiteKernel",
    ),
    "sklearn.impute": ("MissingIndicator", "SimpleImputer"),
    "sklearn.model_selection": (
        "GroupKFold", "KFold", "LeaveOneOut", "RepeatedKFold", "RepeatedStratifiedKFold", "ShuffleSplit",
        "StratifiedGroupKFold", "StratifiedKFold", "StratifiedShuffleSplit", "TimeSeriesSplit",
    ),
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.preprocessing": (
        "FunctionTransformer", "LabelEncoder", "MaxAbsScaler", "MinMaxScaler", "Normalizer", "OneHotEncoder",
        "OrdinalEncoder", "RobustScaler", "StandardScaler",
    ),
}  # fmt: skip
# modules that have moved since files first named them: files keep the old name
MOVED = {
    "mercer.selection.calibration": "mercer.selection.calibration.class_probabilities",
    "mercer.selection.conformal": "mercer.selection.calibration.conformal",
    "mercer.selection.venn_abers": "mercer.selection.calibration.venn_abers",
}

_registered: dict[str, type] = {}


def register(cls: type) -> type:
    """Allow model files to hold objects of your own kernel or estimator class.

    ``save`` stores the result of ``__getstate__``, or the fields of a dataclass that does not define it; ``load``
    restores the object without calling ``__init__``. Register the class before ``save`` and before ``load``.

    Parameters
    ----------
    cls : type
        The class. Its name in files is ``module.name``, so it must be defined at the top level of its module.

    Returns
    -------
    cls : type
        The same class, so that `register` can be used as a decorator.
    """
    if not isinstance(cls, type) or "<locals>" in cls.__qualname__:
        raise InvalidInputError(f"{cls!r} cannot be registered: give a class defined at the top level of a module.")
    _registered[f"{cls.__module__}.{cls.__qualname__}"] = cls
    return cls


@cache
def _table() -> dict[str, str]:
    """Map each class name in files to the module that defines the class."""
    own = {name: module for name, module in mercer._HOME.items() if name[:1].isupper()}
    inside = {name: module for module, names in INSIDE.items() for name in names}
    foreign = {f"{module}.{name}": MOVED.get(module, module) for module, names in QUALIFIED.items() for name in names}
    return {**own, **inside, **foreign}


def find_class(name: Any) -> type:
    """Return the class that a file names."""
    if isinstance(name, str) and name in _registered:
        return _registered[name]
    if not isinstance(name, str) or name not in _table():
        raise ModelFileError(f"it names the class {name!r:.80}, which a model file may not hold")
    found = getattr(import_module(_table()[name]), name.rpartition(".")[2])
    if not isinstance(found, type) or issubclass(found, BaseException):
        raise ModelFileError(f"it names {name!r}, which is not a class of values")
    return found


def name_of(cls: type) -> str | None:
    """Return the name of a class in files; None if files may not hold it."""
    for name in (f"{cls.__module__}.{cls.__qualname__}", cls.__name__):
        if name in _registered:
            return name
    candidates = [cls.__name__]
    # scikit-learn's classes are named by their public package, not by the private module that defines them
    candidates += [
        f"{module}.{cls.__name__}" for module in QUALIFIED if cls.__module__.startswith(MOVED.get(module, module))
    ]
    for name in candidates:
        if name in _table() and getattr(import_module(_table()[name]), cls.__name__, None) is cls:
            return name
    return None


def _is_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def _is_sklearn_kernel(cls: type) -> bool:
    return cls.__module__ == "sklearn.gaussian_process.kernels"


def state_of(value: Any) -> dict[str, Any]:
    """Return the state of an object of an allowed class: attribute name -> value."""
    cls = type(value)
    if _is_tuple(cls):
        return value._asdict()
    if _is_sklearn_kernel(cls):
        return value.get_params(deep=False)
    if is_dataclass(cls) and cls.__getstate__ is object.__getstate__:
        return {field.name: getattr(value, field.name) for field in fields(cls) if field.init}
    state = value.__getstate__() if not isinstance(value, BaseEstimator) else vars(value)
    return {name: part for name, part in (state or {}).items() if not name.startswith("_skl_callback")}


def object_from_state(cls: type, state: dict[str, Any]) -> Any:
    """Restore the object with this state."""
    if issubclass(cls, Enum):
        raise ModelFileError(f"{cls.__name__} is an enumeration and has no attributes to restore")
    try:
        if _is_tuple(cls):
            return cls(**state)
        if _is_sklearn_kernel(cls) or is_dataclass(cls):
            return _call(cls, state)
    except ModelFileError:
        raise
    except Exception as error:  # a constructor may raise anything on bad arguments
        raise ModelFileError(f"its {cls.__name__} is not valid: {str(error) or type(error).__name__}") from None
    if inspect.isabstract(cls) or not (issubclass(cls, BaseEstimator) or _has_plain_state(cls)):
        raise ModelFileError(f"an object of class {cls.__name__} cannot be stored in a model file")
    for name in state:
        known = inspect.getattr_static(cls, name, None)
        if not name.isidentifier() or name.startswith("__") or callable(known) or isinstance(known, property):
            raise ModelFileError(
                f"its {cls.__name__} has an attribute {name!r:.60}, which would override a method or property"
            )
    value: Any = cls.__new__(cls)
    if hasattr(cls, "__setstate__") and not issubclass(cls, BaseEstimator):
        value.__setstate__(state)
    else:
        vars(value).update(_defaults(cls) | state)
    return value


def _call(cls: type, state: dict[str, Any]) -> Any:
    expected = set(inspect.signature(cls).parameters)
    unknown = sorted(set(state) - expected)
    if unknown:
        raise ModelFileError(f"its {cls.__name__} has an unknown parameter {unknown[0]!r:.60}")
    return cls(**state)


def _has_plain_state(cls: type) -> bool:
    """Whether the attributes of an object are its whole state."""
    return not issubclass(cls, Kernel | BaseException | type) and cls.__new__ is object.__new__


def _defaults(cls: type) -> dict[str, Any]:
    """Default parameters of an estimator: files of older versions lack parameters that were added later."""
    if not issubclass(cls, BaseEstimator):
        return {}
    parameters = inspect.signature(cls).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}
