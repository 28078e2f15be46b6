"""The problems of the benchmark: their data, scaling and parameters.

A name may end in ``@ROWS``: the same problem on that many training rows, drawn without replacement with seed 0 (the
draws are nested). ``generated_NxD`` is a two-class problem made by scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn import datasets as bundled

# if a set has no test part, this many of its first training rows are predicted
PREDICTED_ROWS = 10_000

Scale = Callable[[np.ndarray], Callable[[np.ndarray], np.ndarray]]


@dataclass(frozen=True)
class Split:
    """Training rows and the rows to predict; dense float64 in row order, or CSR."""

    X: Any
    y: np.ndarray
    X_test: Any

    def rows(self, n: int) -> Split:
        """At most n training rows, the same in every run, and at most n rows to predict."""
        if n >= len(self.y):
            return self
        index = np.random.default_rng(0).permutation(len(self.y))[:n]
        return Split(self.X[index], self.y[index], self.X_test[:n])


@dataclass(frozen=True)
class Problem:
    """An SVC or an SVR with a tube of half width epsilon, to be fitted with the Gaussian kernel exp(-gamma |x - z|²).

    ``slow`` marks problems that a peer may not finish: its first fit then runs in a process that is ended at the cap.
    """

    name: str
    load: Callable[[Path | None], Split]
    task: Literal["classify", "regress"]
    C: float
    gamma: float | Literal["scale"]
    epsilon: float = 0.0
    slow: bool = False


@dataclass(frozen=True)
class Instance:
    """A problem with its data. ``gamma`` is a number: every peer is given the same one."""

    problem: Problem
    X: Any
    y: np.ndarray
    X_test: Any
    gamma: float

    @property
    def name(self) -> str:
        return self.problem.name

    @property
    def task(self) -> str:
        return self.problem.task

    @property
    def n_classes(self) -> int:
        return len(np.unique(self.y)) if self.task == "classify" else 0

    def head(self, n: int) -> Instance:
        """A tiny problem of the same kind, to warm up with: rows of each class in turn."""
        codes = np.unique(self.y, return_inverse=True)[1] if self.task == "classify" else np.zeros(len(self.y), int)
        order = np.argsort(codes, kind="stable")
        first = np.searchsorted(codes[order], codes[order])
        turn = np.empty(len(order), dtype=np.intp)
        turn[order] = np.arange(len(order)) - first
        index = np.argsort(turn, kind="stable")[:n]
        return replace(self, X=self.X[index], y=self.y[index], X_test=self.X_test[:n])


# ---- scales: fitted to the training rows, applied to both parts ----------------------------------------------------


def standard(X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Mean 0 and variance 1; a constant column becomes 0."""
    mean, spread = X.mean(axis=0), X.std(axis=0)
    return lambda A: (A - mean) / np.where(spread > 0, spread, 1.0)


def unit_box(X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """[-1, 1], as LIBSVM's svm-scale."""
    low, high = X.min(axis=0), X.max(axis=0)
    return lambda A: 2.0 * (A - low) / np.where(high > low, high - low, 1.0) - 1.0


def divided(by: float, X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda A: A / by


def signed(X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """[0, 1] to [-1, 1]."""
    return lambda A: 2.0 * A - 1.0


# ---- loaders -------------------------------------------------------------------------------------------------------


def dense(
    name: str,
    scale: Scale,
    folder: Path | None,
    *,
    train: int | None = None,
    relabel: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Split:
    """NAME.npz. With ``train``, that many rows drawn with seed 0; the others are the test part if it has none."""
    stored = np.load(_file(folder, f"{name}.npz"))
    X, y = stored["X"].astype(np.float64), stored["y"]
    X_test = stored["X_test"].astype(np.float64) if "X_test" in stored else None
    if train is not None:
        order = np.random.default_rng(0).permutation(len(y))
        X_test = X[order[train:]] if X_test is None else X_test
        X, y = X[order[:train]], y[order[:train]]
    to = scale(X)
    y = y.astype(np.float64) if relabel is None and y.dtype.kind == "f" else y
    return _split(to(X), y if relabel is None else relabel(y), None if X_test is None else to(X_test))


def sparse(name: str, folder: Path | None, *, train: int | None = None) -> Split:
    """NAME.csr.npz, as it is stored."""
    stored = np.load(_file(folder, f"{name}.csr.npz"))
    X, y = _csr(stored, ""), stored["y"]
    X_test = _csr(stored, "_test") if "data_test" in stored else None
    if train is not None:
        order = np.random.default_rng(0).permutation(len(y))
        X, y, X_test = X[order[:train]], y[order[:train]], X[order[train:]]
    return _split(X, y, X_test)


def from_sklearn(load: Callable[..., Any], scale: Scale, folder: Path | None) -> Split:
    X, y = load(return_X_y=True)
    X = scale(X)(X)
    return _split(X, normal(y) if y.dtype.kind == "f" else y, None)


def made(n: int, d: int, folder: Path | None) -> Split:
    """Two overlapping classes, 5 % of the labels drawn anew; as many rows to predict, at most PREDICTED_ROWS."""
    extra = min(n, PREDICTED_ROWS)
    X, y = bundled.make_classification(
        n + extra, n_features=d, n_informative=max(2, d // 2), n_redundant=0, flip_y=0.05, random_state=0
    )
    X = standard(X)(X)
    return Split(X[:n], y[:n], X[n:])


def normal(y: np.ndarray) -> np.ndarray:
    return (y - y.mean()) / y.std()


def small_digit(y: np.ndarray) -> np.ndarray:
    """Digits 0-4 against 5-9."""
    return (y < 5).astype(np.int64)


def _split(X: Any, y: np.ndarray, X_test: Any) -> Split:
    if X_test is None:
        X_test = X[:PREDICTED_ROWS]
    if not sp.issparse(X):
        X, X_test = np.ascontiguousarray(X), np.ascontiguousarray(X_test)
    return Split(X, y.astype(np.int64) if y.dtype.kind in "iu" else y, X_test)


def _csr(stored: Any, part: str) -> sp.csr_matrix:
    # 32-bit indices spare every peer a conversion
    fields = [stored[f"{key}{part}"] for key in ("data", "indices", "indptr")]
    values = (fields[0].astype(np.float64), fields[1].astype(np.int32), fields[2].astype(np.int32))
    return sp.csr_matrix(values, shape=tuple(int(side) for side in stored[f"shape{part}"]))


def _file(folder: Path | None, name: str) -> Path:
    if folder is None:
        raise FileNotFoundError(f"{name} is read from the folder given by --data")
    if not (folder / name).exists():
        raise FileNotFoundError(f"no {name} in {folder}")
    return folder / name


# ---- the list ------------------------------------------------------------------------------------------------------

by_255 = partial(divided, 255.0)
mnist = partial(dense, "mnist", by_255)

STORED = (
    Problem("german_numer", partial(dense, "german_numer", standard), "classify", 1.0, "scale"),
    Problem("svmguide1", partial(dense, "svmguide1", unit_box), "classify", 2.0, 2.0),
    Problem("spam_C1", partial(dense, "spam", standard), "classify", 1.0, "scale"),
    Problem("spam_C100", partial(dense, "spam", standard), "classify", 100.0, "scale"),
    Problem("satimage", partial(dense, "satimage", unit_box), "classify", 16.0, 1.0),
    Problem("usps", partial(dense, "usps", signed), "classify", 10.0, 2.0**-7),
    Problem("letter", partial(dense, "letter", unit_box), "classify", 16.0, 4.0),
    Problem("a9a_C1", partial(sparse, "a9a"), "classify", 1.0, 2.0**-5),
    Problem("a9a_C100", partial(sparse, "a9a"), "classify", 100.0, 2.0**-7, slow=True),
    Problem("w8a", partial(sparse, "w8a", train=40_000), "classify", 8.0, 2.0**-5),
    Problem("mnist_10k", partial(mnist, train=10_000), "classify", 10.0, 0.02),
    Problem("mnist_20k", partial(mnist, train=20_000), "classify", 10.0, 0.02, slow=True),
    Problem("mnist_60k_binary", partial(mnist, relabel=small_digit), "classify", 10.0, 0.02, slow=True),
    Problem("skin_nonskin", partial(dense, "skin_nonskin", by_255, train=200_000), "classify", 10.0, 10.0),
    Problem("abalone", partial(dense, "abalone", standard, relabel=normal), "regress", 10.0, "scale", 0.1),
    Problem("concrete", partial(dense, "concrete", standard, relabel=normal), "regress", 10.0, "scale", 0.1),
)

# problems that need no file
BUNDLED = (
    Problem("breast_cancer", partial(from_sklearn, bundled.load_breast_cancer, standard), "classify", 1.0, "scale"),
    Problem("digits", partial(from_sklearn, bundled.load_digits, partial(divided, 16.0)), "classify", 10.0, "scale"),
    Problem("diabetes", partial(from_sklearn, bundled.load_diabetes, standard), "regress", 10.0, "scale", 0.1),
    Problem("generated_5000x10", partial(made, 5_000, 10), "classify", 1.0, "scale"),
    Problem("generated_10000x50", partial(made, 10_000, 50), "classify", 1.0, "scale"),
)


def find(name: str) -> Problem:
    """The problem of this name, ``@ROWS`` included."""
    base, _, rows = name.partition("@")
    kind, _, size = base.partition("_")
    n, _, d = size.partition("x")
    if kind == "generated" and n.isdigit() and d.isdigit():
        problem = Problem(base, partial(made, int(n), int(d)), "classify", 1.0, "scale")
    else:
        known = {p.name: p for p in (*STORED, *BUNDLED)}
        if base not in known:
            raise ValueError(f"no problem is called {base!r}. Known are {', '.join(known)} and generated_NxD.")
        problem = known[base]
    if not rows:
        return problem
    whole = problem.load
    return replace(problem, name=name, load=lambda folder: whole(folder).rows(int(rows)), slow=False)


def instance(name: str, folder: Path | None) -> Instance:
    """Read and scale the data. FileNotFoundError if the folder does not have it."""
    problem = find(name)
    split = problem.load(folder)
    gamma = 1.0 / (split.X.shape[1] * split.X.var()) if problem.gamma == "scale" else problem.gamma
    return Instance(problem, split.X, split.y, split.X_test, float(gamma))
