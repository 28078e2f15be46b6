"""Small data sets for examples and lessons, and readers of data files.

Real data sets come with scikit-learn; their features are scaled to [0, 1]. The others are generated: promoter strings
by a simple model of bacterial DNA, and the examples of the lecture notes (docs/exercises.md), whose labels are ±1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.utils import Bunch

from mercer.exceptions import InvalidInputError
from mercer.io.tables import Samples, read_samples

__all__ = [
    "NAMES",
    "load",
    "load_libsvm",
    "make_baskets",
    "make_circle",
    "make_ellipse",
    "make_line",
    "make_margin",
    "make_motifs",
    "make_outliers",
    "make_promoters",
    "make_signatures",
    "read",
]

NAMES = ("iris", "wine", "breast_cancer", "digits", "digits16", "diabetes")

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


def load(name: str) -> Bunch:
    """Load a small real data set.

    Parameters
    ----------
    name : {"iris", "wine", "breast_cancer", "digits", "digits16", "diabetes"}
        "digits" are images of 8 × 8 pixels, "digits16" the same enlarged to the 16 × 16 of [CS229] 5.4 by linear
        interpolation. "diabetes" is a regression, the others are classifications.

    Returns
    -------
    data : Bunch
        ``X`` with features scaled to [0, 1], ``y``, ``feature_names``, ``target_names`` (of classes), ``description``.

    Examples
    --------
    >>> from mercer import SVC, datasets
    >>> wine = datasets.load("wine")
    >>> wine.X.shape, float(wine.X.max())
    ((178, 13), 1.0)
    """
    if name not in NAMES:
        raise InvalidInputError(f"There is no data set {name!r}: choose one of {', '.join(NAMES)}.")
    images = name.startswith("digits")
    found = getattr(datasets, "load_digits" if images else f"load_{name}")()
    X = np.asarray(found.data, dtype=np.float64)
    feature_names = list(found.feature_names)
    if name == "digits16":
        X = _enlarged(X.reshape(-1, 8, 8), 16).reshape(-1, 256)
        feature_names = [f"pixel_{i}_{j}" for i in range(16) for j in range(16)]
    low, high = (X.min(), X.max()) if images else (X.min(axis=0), X.max(axis=0))
    return Bunch(
        X=(X - low) / np.where(high > low, high - low, 1.0),
        y=found.target,
        feature_names=feature_names,
        target_names=[str(c) for c in found.get("target_names", ())],
        description=found.DESCR,
    )


def _enlarged(images: Any, size: int) -> Any:
    """Square images with ``size`` pixels a side, by linear interpolation between the centres of the pixels."""
    old = images.shape[1]
    centres = (np.arange(size) + 0.5) * old / size - 0.5
    P = np.array([np.interp(centres, np.arange(old), unit) for unit in np.eye(old)]).T
    return P @ images @ P.T


def read(path: Any, **more: Any) -> Samples:
    """Read a data file (CSV, TSV, Parquet, JSON lines, LIBSVM, npz, FASTA) as ``mercer fit`` does."""
    return read_samples(path, **more)


def load_libsvm(path: Any) -> tuple[Any, Any]:
    """Read (X, y) from a file in LIBSVM's format; X is a CSR matrix."""
    samples = read_samples(path, format="libsvm")
    return samples.X, samples.y


def make_promoters(n: int = 200, length: int = 57, seed: int | None = 0) -> tuple[list[str], Any]:
    """Generate DNA strings, half of which contain a promoter.

    A promoter is TTGACA, 16 to 18 random bases, then TATAAT; each of its bases is replaced by a random one with
    probability 15 %.

    Parameters
    ----------
    n : int, default=200
        Number of strings.
    length : int, default=57
        Number of bases of each string, at least 30.
    seed : int or None, default=0
        Seed of the random generator; None gives different strings in each call.

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
        raise InvalidInputError(f"length={length} was given, but a promoter takes 30 bases: give at least 30.")
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


def make_line() -> Bunch:
    """The points −10, −9, …, 10 of a line, positive where |x| > 2: [SSBD] 16.1. Not separable by x, but by (x, x²).

    Returns
    -------
    data : Bunch
        ``X`` of shape (21, 1), ``y``; ``psi``, the features (x, x²), and the halfspace ``w`` = (0, 1), ``b`` = −5 that
        separates them.

    Examples
    --------
    >>> from mercer import datasets
    >>> data = datasets.make_line()
    >>> bool((data.y * (data.psi @ data.w + data.b) > 0).all())
    True
    """
    x = np.arange(-10.0, 11.0)
    return Bunch(
        X=x[:, None],
        y=np.where(np.abs(x) > 2, 1, -1),
        psi=np.column_stack([x, x**2]),
        w=np.array([0.0, 1.0]),
        b=-5.0,
        feature_names=["x"],
        description="-10, ..., 10 with the labels sign(|x| - 2): [SSBD] 16.1",
    )


def make_circle(n: int = 200, gap: float = 0.1, seed: int | None = 0) -> Bunch:
    """Generate points of the plane with the labels sign(x₁² + x₂² − 1): [L8] 1.

    Parameters
    ----------
    n : int, default=200
        Number of points, half of them inside the unit circle.
    gap : float, default=0.1
        |x₁² + x₂² − 1| is at least this, in [0, 1).
    seed : int or None, default=0
        Seed of the random generator; None gives different points in each call.

    Returns
    -------
    data : Bunch
        ``X`` of shape (n, 2), ``y``; ``psi``, the features (1, x₁², x₂²), and ``w`` = (−1, 1, 1), which separates them.

    Examples
    --------
    >>> from mercer import datasets
    >>> data = datasets.make_circle()
    >>> round(float((data.y * (data.psi @ data.w)).min()), 3) >= 0.1
    True
    """
    _check_gap(gap)
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1, -1)
    # uniform in area on each side: the square of the radius is uniform in [0, 1 - gap] or [1 + gap, 4]
    square = np.where(y > 0, 1 + gap + (3 - gap) * rng.random(n), (1 - gap) * rng.random(n))
    angle = 2 * np.pi * rng.random(n)
    X = np.sqrt(square)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return Bunch(
        X=X,
        y=y,
        psi=np.column_stack([np.ones(n), X**2]),
        w=np.array([-1.0, 1.0, 1.0]),
        feature_names=["x1", "x2"],
        description="points inside (-1) and outside (1) the unit circle: [L8] 1",
    )


def make_ellipse(n: int = 200, gap: float = 0.1, seed: int | None = 0) -> Bunch:
    """Generate points of the plane that are positive inside an ellipse, neither centred nor upright: [SSBD] 16.2.1.

    Parameters
    ----------
    n : int, default=200
        Number of points, half of them inside.
    gap : float, default=0.1
        The quadratic form that is 1 on the ellipse differs from 1 by at least this, in [0, 1).
    seed : int or None, default=0
        Seed of the random generator; None gives different points in each call.

    Returns
    -------
    data : Bunch
        ``X`` of shape (n, 2), ``y``; ``psi``, the monomials (1, x₁, x₂, x₁², x₁x₂, x₂²), and the ``w`` that separates
        them; ``center``, and ``matrix``, the A of the ellipse (x − center)'A(x − center) = 1.

    Examples
    --------
    >>> from mercer import datasets
    >>> data = datasets.make_ellipse()
    >>> data.psi.shape, bool((data.y * (data.psi @ data.w) > 0).all())
    ((200, 6), True)
    """
    _check_gap(gap)
    circle = make_circle(n, gap, seed)
    center, turn, half_axes = np.array([0.5, -0.5]), np.pi / 6, np.array([2.0, 0.7])
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    X = center + (circle.X * half_axes) @ rotation.T
    A = rotation @ np.diag(half_axes**-2.0) @ rotation.T
    x1, x2 = X.T
    linear = 2 * A @ center
    return Bunch(
        X=X,
        y=-circle.y,
        psi=np.column_stack([np.ones(n), x1, x2, x1**2, x1 * x2, x2**2]),
        w=np.array([1 - center @ A @ center, linear[0], linear[1], -A[0, 0], -2 * A[0, 1], -A[1, 1]]),
        center=center,
        matrix=A,
        feature_names=["x1", "x2"],
        description="points inside (1) and outside (-1) an ellipse: [SSBD] 16.2.1",
    )


def _check_gap(gap: float) -> None:
    if not 0 <= gap < 1:
        raise InvalidInputError(
            f"gap={gap} was given, but inside there is only room for a gap of less than 1: choose one in [0, 1)."
        )


def make_margin(n: int = 200, d: int = 100, gamma: float = 0.5, wrong: float = 0.0, seed: int | None = 0) -> Bunch:
    """Generate samples of length ρ = 1 that are separable with the margin γ through the origin: [SSBD] Def. 15.3.

    The first coordinate is yγ; the others have a random direction.

    Parameters
    ----------
    n : int, default=200
        Number of samples.
    d : int, default=100
        Number of features, at least 2.
    gamma : float, default=0.5
        The margin of ``w`` = e₁, in (0, 1).
    wrong : float, default=0.0
        The probability that a label is flipped. With one such label the margin is lost.
    seed : int or None, default=0
        Seed of the random generator; None gives different samples in each call.

    Returns
    -------
    data : Bunch
        ``X`` of shape (n, d), ``y``, ``w`` = e₁, and ``wrong``, the samples whose label is flipped.

    Examples
    --------
    >>> from mercer import datasets
    >>> data = datasets.make_margin(gamma=0.25)
    >>> float((data.y * (data.X @ data.w)).min())
    0.25
    """
    if not 0 < gamma < 1 or d < 2:
        raise InvalidInputError(
            f"gamma={gamma} and d={d} were given, but samples of length 1 need a margin in (0, 1) and two features or "
            "more: change these."
        )
    if not 0 <= wrong <= 1:
        raise InvalidInputError(f"wrong={wrong} is not a share of labels: give a number from 0 to 1.")
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 1], n)
    rest = rng.normal(size=(n, d - 1))
    rest *= np.sqrt(1 - gamma**2) / np.linalg.norm(rest, axis=1)[:, None]
    flipped = rng.random(n) < wrong
    return Bunch(
        X=np.column_stack([gamma * y, rest]),
        y=np.where(flipped, -y, y),
        w=np.eye(d)[0],
        wrong=np.flatnonzero(flipped),
        feature_names=[f"x{j + 1}" for j in range(d)],
        description="samples of length 1, separable through the origin but for wrong labels: [SSBD] Def. 15.3",
    )


def make_signatures(
    n: int = 200,
    length: int = 30,
    signature: str = "e8f1",
    alphabet: str = "0123456789abcdef",
    seed: int | None = 0,
) -> Bunch:
    """Generate files, as strings, half of which contain a virus: its signature is a substring ([SSBD] 16.2.1).

    Parameters
    ----------
    n : int, default=200
        Number of strings.
    length : int, default=30
        The longest string; the shortest has half as many letters, or as many as the signature.
    signature : str, default="e8f1"
        The substring that marks a virus.
    alphabet : str, default="0123456789abcdef"
        The letters of the strings, two or more.
    seed : int or None, default=0
        Seed of the random generator; None gives different strings in each call.

    Returns
    -------
    data : Bunch
        ``X``, a list of str, ``y``, 1 where the signature is a substring, and ``signature``.

    Examples
    --------
    >>> from mercer import datasets
    >>> data = datasets.make_signatures(6, length=8, signature="101", alphabet="01")
    >>> ["101" in x for x in data.X], data.y.tolist()
    ([False, True, False, True, False, True], [-1, 1, -1, 1, -1, 1])
    """
    if not signature or len(signature) > length or len(set(alphabet)) < 2 or not set(signature) <= set(alphabet):
        raise InvalidInputError(
            f"signature={signature!r} was given with length={length} and alphabet={alphabet!r}, but a signature has 1 "
            f"to {length} letters of an alphabet of two or more: change one of these."
        )
    rng = np.random.default_rng(seed)
    X, y = [], np.where(np.arange(n) % 2, 1, -1)
    for label in y:
        letters = _letters(rng, alphabet, max(len(signature), length // 2), length)
        if label > 0:
            _insert(rng, letters, signature)
        while label < 0 and (place := "".join(letters).find(signature)) >= 0:
            offset = int(rng.integers(len(signature)))
            letters[place + offset] = rng.choice([c for c in alphabet if c != signature[offset]])
        X.append("".join(letters))
    description = f"strings with (1) and without (-1) the substring {signature!r}: [SSBD] 16.2.1"
    return Bunch(X=X, y=y, signature=signature, description=description)


def make_motifs(
    n: int = 200, length: int = 40, motif: str = "CPWKHGEY", mutations: int = 2, seed: int | None = 0
) -> Bunch:
    """Generate proteins, as strings of amino acids, half of which contain a mutated motif ([M5], [CS229] 5.4).

    Parameters
    ----------
    n : int, default=200
        Number of strings.
    length : int, default=40
        The longest string; the shortest has half as many letters, or as many as the motif.
    motif : str, default="CPWKHGEY"
        The substring that the positive strings contain, before mutations.
    mutations : int, default=2
        Number of letters of the motif that are replaced by others, at random in each string.
    seed : int or None, default=0
        Seed of the random generator; None gives different strings in each call.

    Returns
    -------
    data : Bunch
        ``X``, a list of str, ``y``, 1 where the motif was inserted, ``motif``, and ``places``: where it begins, −1 for
        none.

    Examples
    --------
    >>> from mercer import datasets
    >>> data = datasets.make_motifs(100, motif="HEAGAWGHEE", mutations=1)
    >>> x, place = data.X[1], data.places[1]
    >>> sum(a == b for a, b in zip(x[place : place + 10], data.motif))
    9
    """
    if not set(motif) <= set(AMINO_ACIDS) or not 0 <= mutations < len(motif) <= length:
        raise InvalidInputError(
            f"motif={motif!r} was given with length={length} and mutations={mutations}, but a motif has at most "
            f"{length} of the letters {AMINO_ACIDS}, and keeps one or more: change one of these."
        )
    rng = np.random.default_rng(seed)
    X, y, places = [], np.where(np.arange(n) % 2, 1, -1), np.full(n, -1)
    for i in range(n):
        letters = _letters(rng, AMINO_ACIDS, max(len(motif), length // 2), length)
        if y[i] > 0:
            changed = list(motif)
            for k in rng.choice(len(motif), mutations, replace=False):
                changed[k] = rng.choice([c for c in AMINO_ACIDS if c != motif[k]])
            places[i] = _insert(rng, letters, changed)
        X.append("".join(letters))
    description = f"strings with (1) and without (-1) {motif}, {mutations} of its letters replaced: [M5], [CS229] 5.4"
    return Bunch(X=X, y=y, motif=motif, places=places, description=description)


def _letters(rng: np.random.Generator, alphabet: str, shortest: int, longest: int) -> list[str]:
    """Random letters, of a random number between the shortest and the longest."""
    return [str(c) for c in rng.choice(list(alphabet), int(rng.integers(shortest, longest + 1)))]


def _insert(rng: np.random.Generator, letters: list[str], word: Any) -> int:
    """Overwrite letters by a word at a random place, and return that place. Edits letters."""
    start = int(rng.integers(len(letters) - len(word) + 1))
    letters[start : start + len(word)] = word
    return start


def make_outliers(
    n: int = 100, share: float = 0.1, size: float = 20.0, noise: float = 0.1, seed: int | None = 0
) -> Bunch:
    """Generate a regression whose targets lie on a line, but for noise and outliers above it ([M5]).

    Parameters
    ----------
    n : int, default=100
        Number of samples.
    share : float, default=0.1
        Share of the samples that are outliers, in [0, 1): the ones with the largest x, where they turn the line most.
    size : float, default=20.0
        The number added to an outlier's target.
    noise : float, default=0.1
        Standard deviation of the noise.
    seed : int or None, default=0
        Seed of the random generator; None gives different samples in each call.

    Returns
    -------
    data : Bunch
        ``X`` of shape (n, 1), ``y``; ``truth``, the targets without noise and outliers; ``outliers``, their indices;
        ``w`` and ``b`` of the line.

    Examples
    --------
    >>> from mercer import datasets
    >>> data = datasets.make_outliers()
    >>> len(data.outliers), bool((data.y - data.truth)[data.outliers].min() > 19)
    (10, True)
    """
    if not 0 <= share < 1:
        raise InvalidInputError(f"share={share} was given, but a share of outliers is in [0, 1): choose one in it.")
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 10.0, n)
    w, b = 0.5, 1.0
    truth = w * x + b
    outliers = np.sort(np.argsort(x)[n - int(share * n) :])
    y = truth + noise * rng.normal(size=n)
    y[outliers] += size
    return Bunch(
        X=x[:, None],
        y=y,
        truth=truth,
        outliers=outliers,
        w=w,
        b=b,
        feature_names=["x"],
        description="a line with noise, and outliers above it: [M5]",
    )


def make_baskets(n: int = 400, d: int = 1000, s: int = 20, k: int = 5, seed: Any = 0) -> Bunch:
    """Generate shopping baskets, as sets of items: who buys one of k items has a baby ([SSBD] Ex. 16.5).

    Parameters
    ----------
    n : int, default=400
        Number of customers, about half of them with a baby.
    d : int, default=1000
        Number of items: "baby 0", …, and others, some of which are bought often and most of them rarely.
    s : int, default=20
        A basket has at most s items.
    k : int, default=5
        Number of items that tell of a baby.
    seed : int, Generator or None, default=0
        Seed of the random generator; None gives different baskets in each call.

    Returns
    -------
    data : Bunch
        ``X``, a list of sets, ``y``, 1 for a baby, and ``secret``, the set of the k items.

    Examples
    --------
    >>> from mercer import datasets
    >>> data = datasets.make_baskets(4)
    >>> [bool(x & data.secret) for x in data.X] == (data.y > 0).tolist()
    True
    """
    if not (1 <= k < d and s >= 2):
        raise InvalidInputError(
            f"s={s}, k={k} and d={d} were given, but a basket has room for 2 items or more, and k of the d items, not "
            "all of them, tell of a baby: change one of these."
        )
    rng = np.random.default_rng(seed)
    items = np.array([f"baby {j}" for j in range(k)] + [f"item {j}" for j in range(k, d)])
    popularity = np.cumsum(1.0 / np.arange(1, d - k + 1))
    baskets, babies = [], rng.random(n) < 0.5
    for baby in babies:
        drawn = popularity[-1] * rng.random(rng.integers(2, s + 1))
        basket = items[k + np.searchsorted(popularity, drawn, side="right")].tolist()
        if baby:
            basket[-1] = str(items[rng.integers(k)])
        baskets.append(set(basket))
    description = f"sets of at most {s} of {d} items, with (1) and without (-1) one of {k}: [SSBD] Ex. 16.5"
    return Bunch(X=baskets, y=np.where(babies, 1, -1), secret=set(items[:k].tolist()), description=description)
