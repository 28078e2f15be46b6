"""Small data sets for examples and lessons, and readers of data files.

Real sets are those that scikit-learn brings along, made ready for kernels: features scaled to [0, 1], with names.
Strings are generated: promoters as a simple model of bacteria has them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.utils import Bunch

from mercer.exceptions import InvalidInputError
from mercer.io.tables import Samples, read_samples

__all__ = ["NAMES", "load", "load_libsvm", "make_promoters", "read"]

NAMES = ("iris", "wine", "breast_cancer", "digits", "diabetes")


def load(name: str) -> Bunch:
    """A small real set: "iris", "wine", "breast_cancer", "digits" (images of 8 × 8) or "diabetes" (a regression).

    Returns
    -------
    data : Bunch
        ``X`` scaled to [0, 1] by its range, ``y``, ``feature_names``, ``target_names`` (of classes), ``description``.

    Examples
    --------
    >>> from mercer import SVC, datasets
    >>> wine = datasets.load("wine")
    >>> wine.X.shape, float(wine.X.max())
    ((178, 13), 1.0)
    """
    if name not in NAMES:
        raise InvalidInputError(f"There is no set {name!r}: choose one of {', '.join(NAMES)}.")
    found = getattr(datasets, f"load_{name}")()
    X = np.asarray(found.data, dtype=np.float64)
    low, high = (X.min(), X.max()) if name == "digits" else (X.min(axis=0), X.max(axis=0))
    return Bunch(
        X=(X - low) / np.where(high > low, high - low, 1.0),
        y=found.target,
        feature_names=list(found.feature_names),
        target_names=[str(c) for c in found.get("target_names", ())],
        description=found.DESCR,
    )


def read(path: Any, **more: Any) -> Samples:
    """A data file (CSV, TSV, Parquet, JSON lines, LIBSVM, npz, FASTA), as ``mercer fit`` reads it."""
    return read_samples(path, **more)


def load_libsvm(path: Any) -> tuple[Any, Any]:
    """(X, y) of a file in LIBSVM's format: X as a CSR matrix."""
    samples = read_samples(path, format="libsvm")
    return samples.X, samples.y


def make_promoters(n: int = 200, length: int = 57, seed: int | None = 0) -> tuple[list[str], Any]:
    """Strings of DNA, half of which have a promoter: TTGACA, then TATAAT 16 to 18 bases on, each base right by 85 %.

    Parameters
    ----------
    n : int, default=200
        How many strings.
    length : int, default=57
        Bases of each, at least 30.
    seed : int or None, default=0
        For the same strings again.

    Returns
    -------
    X : list of str
    y : array of shape (n,)
        1 for promoters.

    Examples
    --------
    >>> from mercer import datasets
    >>> X, y = datasets.make_promoters(4)
    >>> [len(x) for x in X], y.tolist()
    ([57, 57, 57, 57], [0, 1, 0, 1])
    """
    if length < 30:
        raise InvalidInputError(f"A promoter takes 30 bases, but length={length}.")
    rng = np.random.default_rng(seed)
    bases = np.array(list("ACGT"))
    X, y = [], np.arange(n) % 2
    for has in y:
        string = rng.choice(bases, length)
        if has:
            start = int(rng.integers(0, length - 29))
            for word, place in (("TTGACA", start), ("TATAAT", start + 6 + int(rng.integers(16, 19)))):
                for offset, base in enumerate(word):
                    if place + offset < length and rng.random() < 0.85:
                        string[place + offset] = base
        X.append("".join(string))
    return X, y
