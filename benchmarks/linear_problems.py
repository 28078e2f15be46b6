"""The problems of the linear benchmark: which rows, which loss, which C. Names are SET-LOSS-C, as in a9a-hinge-1."""

from __future__ import annotations

import lzma
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from datasets import by_255, dense, sparse, standard
from sklearn.datasets import make_classification, make_regression

CS = (0.1, 1.0, 10.0)
EPSILON = 0.1
# seconds a peer may take to reach a value, all its attempts together
Load = Callable[[Path | None], tuple[Any, np.ndarray]]


def made(n: int, d: int, folder: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping classes, 5 % of the labels drawn anew."""
    X, y = make_classification(
        n, d, n_informative=max(2, d // 2), n_redundant=0, flip_y=0.05, class_sep=0.7, random_state=0
    )
    return np.ascontiguousarray(standard(X)(X)), np.where(y > 0, 1.0, -1.0)


def made_regression(n: int, d: int, folder: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """A plane with noise as large as itself, in units of its spread."""
    X, y = make_regression(n, d, n_informative=max(2, d // 2), random_state=0)
    y = y / y.std() + np.random.default_rng(0).standard_t(3, size=n)
    return np.ascontiguousarray(standard(X)(X)), y


def stored(name: str, scale: Any, positive: float, folder: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """One class of a dense set against the rest."""
    split = dense(name, scale, folder)
    return split.X, np.where(split.y == positive, 1.0, -1.0)


def stored_regression(name: str, folder: Path | None) -> tuple[np.ndarray, np.ndarray]:
    split = dense(name, standard, folder)
    y = split.y.astype(np.float64)
    return split.X, (y - y.mean()) / y.std()


def stored_sparse(name: str, folder: Path | None) -> tuple[Any, np.ndarray]:
    """As stored; of several classes the first half against the others, rows scaled to length 1."""
    split = sparse(name, folder)
    X, y = split.X, split.y
    classes = np.unique(y)
    if len(classes) > 2:
        X = sp.csr_matrix(sp.diags(1.0 / np.sqrt(np.maximum(X.multiply(X).sum(axis=1).A1, 1e-300))) @ X)
    return X, np.where(np.isin(y, classes[: len(classes) // 2]), -1.0, 1.0)


def messages(folder: Path | None) -> tuple[Any, np.ndarray]:
    """tf-idf of the words and word pairs of short messages."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    if folder is None or not (folder / "sms_spam.tsv.xz").exists():
        raise FileNotFoundError("sms_spam.tsv.xz is read from the folder given by --data")
    with lzma.open(folder / "sms_spam.tsv.xz", "rt", encoding="utf-8") as lines:
        pairs = [line.rstrip("\n").split("\t", 1) for line in lines]
    X = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True).fit_transform([text for _, text in pairs])
    return sp.csr_matrix(X), np.where(np.array([label for label, _ in pairs]) == "spam", 1.0, -1.0)


@dataclass(frozen=True)
class Set:
    """Rows with labels ±1, or with numbers. ``kind`` is "dense" or "sparse"."""

    name: str
    kind: str
    task: str
    load: Load


@dataclass(frozen=True)
class Problem:
    """½|w|² + C Σ loss, the intercept being the weight of a feature of value 1."""

    X: Any
    y: np.ndarray
    set: Set
    loss: str
    C: float

    @property
    def name(self) -> str:
        return f"{self.set.name}-{self.loss}-{self.C:g}"

    def value(self, w: np.ndarray, b: float) -> float:
        """The primal, from the model alone."""
        f = self.X @ w + b
        if self.set.task == "regress":
            paid = np.maximum(0.0, np.abs(self.y - f) - EPSILON)
        else:
            paid = np.maximum(0.0, 1.0 - self.y * f)
        return float(0.5 * (w @ w + b * b) + self.C * np.sum(paid**2 if self.loss.startswith("squared") else paid))


LOSSES = {
    "classify": ("hinge", "squared_hinge"),
    "regress": ("epsilon_insensitive", "squared_epsilon_insensitive"),
}

SETS = (
    Set("made_20000x10", "dense", "classify", partial(made, 20_000, 10)),
    Set("made_20000x500", "dense", "classify", partial(made, 20_000, 500)),
    Set("made_50000x100", "dense", "classify", partial(made, 50_000, 100)),
    Set("made_100000x30", "dense", "classify", partial(made, 100_000, 30)),
    Set("plane_20000x20", "dense", "regress", partial(made_regression, 20_000, 20)),
    Set("plane_50000x100", "dense", "regress", partial(made_regression, 50_000, 100)),
    Set("skin_nonskin", "dense", "classify", partial(stored, "skin_nonskin", by_255, 1)),
    Set("a9a", "sparse", "classify", partial(stored_sparse, "a9a")),
    Set("w8a", "sparse", "classify", partial(stored_sparse, "w8a")),
    Set("news20", "sparse", "classify", partial(stored_sparse, "news20")),
    Set("sms", "sparse", "classify", messages),
)
