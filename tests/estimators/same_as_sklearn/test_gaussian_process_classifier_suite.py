"""scikit-learn's own tests of GaussianProcessClassifier pass with mercer's class in its place."""

import sys
import types
from importlib.util import find_spec
from pathlib import Path

import pytest
import sklearn.gaussian_process

import mercer

MODULE = "sklearn.gaussian_process.tests.test_gpc"
# derivatives are compared with finite differences in tests/process
LEFT_OUT = {"test_lml_gradient": "scikit-learn marks it as failing"}


def _swapped():
    """The test functions of scikit-learn's module, with mercer's class in sklearn.gaussian_process."""
    spec = find_spec(MODULE)
    real = sklearn.gaussian_process
    proxy = types.ModuleType("sklearn.gaussian_process")
    proxy.__dict__.update(real.__dict__)
    proxy.GaussianProcessClassifier = mercer.GaussianProcessClassifier
    namespace = {"__name__": "swapped_test_gpc", "__file__": spec.origin}
    try:
        sys.modules["sklearn.gaussian_process"] = sklearn.gaussian_process = proxy
        exec(compile(Path(spec.origin).read_text(), spec.origin, "exec"), namespace)
    finally:
        sys.modules["sklearn.gaussian_process"] = sklearn.gaussian_process = real
    names = [name for name in namespace if name.startswith("test_") and name not in LEFT_OUT]
    return {name: namespace[name] for name in names}


for _name, _test in _swapped().items():
    globals()[_name] = pytest.mark.filterwarnings("default")(_test)


def test_the_class_was_replaced():
    """The namespace in which the tests ran holds mercer's class."""
    assert test_multi_class.__globals__["GaussianProcessClassifier"] is mercer.GaussianProcessClassifier  # noqa: F821
