"""The peers: mercer with its defaults, scikit-learn, scikit-learn-intelex and LIBSVM, all with tol = 1e-3.

Each is given the data in its preferred form, and the conversion is not timed: float64 in row order or CSR for
mercer and scikit-learn, float32 or float64 for scikit-learn-intelex, arrays of nodes for LIBSVM.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.svm
from datasets import Instance

import mercer

# LIBSVM's package is built with OpenMP, whose waiting threads spin by default: on a machine that does anything else its
# fits then take up to a hundred times as long. This is read when LIBSVM is loaded, which is later.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

TOL = 1e-3
CACHE_MB = 2000


@dataclass(frozen=True)
class Given:
    """A problem in the form one peer takes it. For LIBSVM X has the targets inside, and y the labels in its order."""

    X: Any
    y: np.ndarray
    X_test: Any


@dataclass(frozen=True)
class Judgement:
    """One fitted model, judged in float64 from the data and its coefficients."""

    dual: float
    relative_gap: float
    infeasibility: float
    n_support: int


@dataclass(frozen=True)
class Estimators:
    """A peer with scikit-learn's interface."""

    name: str
    module: str
    dtype: Any
    options: tuple[tuple[str, Any], ...] = ()

    def prepare(self, p: Instance) -> Given:
        return Given(p.X.astype(self.dtype, copy=False), p.y, p.X_test.astype(self.dtype, copy=False))

    def fit(self, p: Instance, given: Given) -> Any:
        module = _module(self.module)
        parameters = {"C": p.problem.C, "gamma": p.gamma, "tol": TOL, **dict(self.options)}
        if p.task == "classify":
            return module.SVC(**parameters).fit(given.X, given.y)
        return module.SVR(epsilon=p.problem.epsilon, **parameters).fit(given.X, given.y)

    def predict(self, model: Any, given: Given) -> np.ndarray:
        return model.predict(given.X_test)

    def judge(self, p: Instance, model: Any) -> Judgement:
        n_support = len(model.support_)
        if self.module == "mercer":
            return _judgement(mercer.certify(model, p.X, p.y), n_support)
        coef = model._dual_coef_.toarray() if sp.issparse(model._dual_coef_) else model._dual_coef_
        return _certified(p, p.y, np.asarray(model.support_), np.asarray(coef), np.asarray(model._intercept_))

    def remark(self, model: Any) -> str:
        if self.module == "sklearnex.svm" and not hasattr(model, "_onedal_estimator"):
            return "fell back to scikit-learn"
        return "stopped before tol was reached" if model.fit_status_ else ""


@dataclass(frozen=True)
class Libsvm:
    """The LIBSVM authors' own package. Classes are numbered by first appearance, which is the order it keeps."""

    name: str = "libsvm"

    def prepare(self, p: Instance) -> Given:
        from libsvm.svmutil import svm_problem

        codes, labels = _by_appearance(p.y) if p.task == "classify" else (p.y, p.y)
        test = svm_problem(np.zeros(p.X_test.shape[0]), sp.csr_matrix(p.X_test))
        return Given(svm_problem(codes.astype(np.float64), sp.csr_matrix(p.X)), labels, test)

    def fit(self, p: Instance, given: Given) -> Any:
        from libsvm.svmutil import svm_train

        kind = "-s 0" if p.task == "classify" else f"-s 3 -p {p.problem.epsilon!r}"
        return svm_train(given.X, f"{kind} -t 2 -c {p.problem.C!r} -g {p.gamma!r} -e {TOL} -m {CACHE_MB} -q")

    def predict(self, model: Any, given: Given) -> np.ndarray:
        from libsvm.svm import libsvm

        # svm_predict of its Python package converts every row anew: this calls the library itself
        rows = given.X_test
        values = np.array([libsvm.svm_predict(model, rows.x[i]) for i in range(rows.l)])
        return values if model.get_svm_type() else given.y[values.astype(np.intp)]

    def judge(self, p: Instance, model: Any) -> Judgement:
        coef = np.stack([np.ctypeslib.as_array(model.sv_coef[j], (model.l,)) for j in range(model.nr_class - 1)])
        n_problems = model.nr_class * (model.nr_class - 1) // 2
        intercept = -np.array(model.rho[:n_problems])
        y = _by_appearance(p.y)[0] if p.task == "classify" else p.y
        return _certified(p, y, np.array(model.get_sv_indices()) - 1, coef, intercept)

    def remark(self, model: Any) -> str:
        return ""


Peer = Estimators | Libsvm

MERCER = Estimators("mercer", "mercer", np.float64)
SKLEARN = Estimators("scikit-learn", "sklearn.svm", np.float64, (("cache_size", CACHE_MB),))
ALL: tuple[Peer, ...] = (
    MERCER,
    SKLEARN,
    Estimators("intelex float32", "sklearnex.svm", np.float32, (("cache_size", CACHE_MB),)),
    Estimators("intelex float64", "sklearnex.svm", np.float64, (("cache_size", CACHE_MB),)),
    Libsvm(),
)
# the better of the two precisions is shown
COLUMNS = {
    "mercer": ("mercer",),
    "scikit-learn": ("scikit-learn",),
    "intelex": ("intelex float32", "intelex float64"),
    "libsvm": ("libsvm",),
}


def available() -> list[Peer]:
    """The installed peers; mercer and scikit-learn always are."""
    present = {"intelex": find_spec("sklearnex") is not None, "libsvm": find_spec("libsvm") is not None}
    return [peer for peer in ALL if present.get(peer.name.split()[0], True)]


def _module(name: str) -> Any:
    if name == "mercer":
        return mercer
    if name == "sklearn.svm":
        return sklearn.svm
    import sklearnex.svm

    return sklearnex.svm


def _by_appearance(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(class numbers in order of first appearance, the labels in that order)."""
    labels, first, inverse = np.unique(y, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return rank[inverse], labels[order]


def _certified(p: Instance, y: np.ndarray, support: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> Judgement:
    """Put the coefficients, in LIBSVM's signs, into a scikit-learn estimator and certify that."""
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    if p.task == "classify":
        shell = sklearn.svm.SVC(C=p.problem.C, gamma=p.gamma, tol=TOL)
        shell.classes_, codes = np.unique(y, return_inverse=True)
        shell.class_weight_ = np.ones(len(shell.classes_))
        coef = _feasible_pairs(coef, codes[support], len(shell.classes_), p.problem.C)
    else:
        shell = sklearn.svm.SVR(C=p.problem.C, gamma=p.gamma, tol=TOL, epsilon=p.problem.epsilon)
        row = np.clip(coef[0], -p.problem.C, p.problem.C)
        coef = sum(_balanced(np.maximum(row, 0.0), np.minimum(row, 0.0)))[None, :]
    shell.support_ = support.astype(np.int32)
    shell.support_vectors_ = p.X[shell.support_]
    shell._dual_coef_ = coef
    shell.dual_coef_ = -coef if p.task == "classify" and coef.shape[0] == 1 else coef
    shell._intercept_ = np.atleast_1d(np.asarray(intercept, dtype=np.float64))
    shell.intercept_ = -shell._intercept_ if shell.dual_coef_ is not coef else shell._intercept_
    shell.shape_fit_ = p.X.shape
    shell.fit_status_ = 0
    shell._gamma = p.gamma
    shell._sparse = False
    shell.n_features_in_ = p.X.shape[1]
    return _judgement(mercer.certify(shell, p.X, y), len(support))


def _feasible_pairs(coef: np.ndarray, codes: np.ndarray, n_classes: int, C: float) -> np.ndarray:
    """Each pair of classes within its box and with sum zero: float32 coefficients miss it by their rounding."""
    out = np.zeros_like(coef)
    members = [np.flatnonzero(codes == c) for c in range(n_classes)]
    for i in range(n_classes):
        for j in range(i + 1, n_classes):
            up = np.clip(coef[j - 1, members[i]], 0.0, C)
            down = np.clip(coef[i, members[j]], -C, 0.0)
            out[j - 1, members[i]], out[i, members[j]] = _balanced(up, down)
    return out


def _balanced(up: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shrink the heavier side until both sum to the same: this keeps the bounds."""
    above, below = float(up.sum()), -float(down.sum())
    if above > below:
        return up * (below / above), down
    return up, down * (above / below if below > 0 else 1.0)


def _judgement(certificate: Any, n_support: int) -> Judgement:
    return Judgement(certificate.dual, certificate.relative_gap, certificate.infeasibility, n_support)
