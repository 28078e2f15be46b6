"""The global alignment kernel between time series, which may differ in length and speed."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from mercer.exceptions import InvalidInputError
from mercer.kernels.base import Kernel, check_whole, check_width, gamma_of
from mercer.kernels.domains import as_objects
from mercer.kernels.features import Features, Matrix, Vector

# squares of larger differences overflow
LARGEST = 1e150


class SeriesFeatures:
    """Concatenated series: their points, where each begins, the numbers of the series used, and log k(x, x)."""

    def __init__(self, points: Matrix, start: Vector, which: Vector, logs: Vector, dtype: Any) -> None:
        self.points, self.start, self.which, self.logs = points, start, which, logs
        self.dtype = np.dtype(dtype)

    def __len__(self) -> int:
        return len(self.which)

    def take(self, index: Vector) -> SeriesFeatures:
        """The series at these positions."""
        return SeriesFeatures(self.points, self.start, self.which[index], self.logs[index], self.dtype)


@dataclass(frozen=True, repr=False)
class GlobalAlignment(Kernel):
    """k(x, z) = Σ over all alignments of x and z of Π κ(x_i, z_j) over the pairs (i, j) of the alignment.

    An alignment is a list of pairs (i, j) from the first points to the last, in which each step advances x, z or both
    by one. κ = g / (2 - g) with g = exp(-γ |x_i - z_j|²) makes k positive semidefinite; dynamic time warping, which
    uses only the best alignment, is not. With a ``band``, g is multiplied by max(0, 1 - |i - j| / band). Cuturi, Vert,
    Birkenes & Matsui (2007), Cuturi (2011). The time is O(|x| |z|), or O(|x| band).

    Parameters
    ----------
    gamma : float or "scale", default="scale"
        "scale" is 1 / (4 d var(X) length), with the variance of all points, their dimension d and the median length of
        the series: Cuturi's rule for the width.
    band : int, default=None
        Only points with |i - j| < band are paired; None for all. Series whose lengths differ by ``band`` or more have
        k = 0.
    normalize : bool, default=True
        Whether to divide by sqrt(k(x, x) k(z, z)). Without it, k overflows at lengths of a few hundred.

    Notes
    -----
    A sample is a sequence of numbers, or of vectors of equal length: an array of shape (length,) or (length, d). An
    empty series has k = 0.

    Examples
    --------
    >>> series = [[0.0, 0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 2.0, 2.0], [2.0, 1.0, 0.0]]
    >>> GlobalAlignment(gamma=0.1)(series).round(3)
    array([[1.   , 0.534, 0.17 ],
           [0.534, 1.   , 0.095],
           [0.17 , 0.095, 1.   ]])
    """

    gamma: float | Literal["scale"] = "scale"
    band: int | None = None
    normalize: bool = True

    def __post_init__(self) -> None:
        gamma = self.gamma
        if isinstance(gamma, str):
            if gamma != "scale":
                raise InvalidInputError(f"gamma={gamma!r} is not known: give a number, or 'scale'.")
        else:
            gamma = check_width("gamma", gamma)
            if not isinstance(gamma, float):
                raise InvalidInputError(f"gamma={self.gamma!r} must be one number for GlobalAlignment.")
        object.__setattr__(self, "gamma", gamma)
        if self.band is not None:
            object.__setattr__(self, "band", check_whole("band", self.band, 1))
        object.__setattr__(self, "normalize", bool(self.normalize))

    @property
    def domain(self) -> str:
        return "series"

    @property
    def preparation(self) -> Hashable:
        return replace(self, normalize=True)

    def check_samples(self, samples: Any) -> None:
        self._points(samples)

    def _points(self, samples: Any) -> tuple[Matrix, Vector]:
        """The concatenated points of all series, one per row, and where each series begins. Raises on bad samples."""
        arrays = []
        for i, sample in enumerate(as_objects(self, samples)):
            try:
                array = np.asarray(sample, dtype=np.float64)
            except (TypeError, ValueError):
                raise InvalidInputError(
                    f"{self!r} compares series of numbers, or of vectors of equal length, but sample {i} is not such a "
                    "series. Give each as an array of shape (length,) or (length, d)."
                ) from None
            if array.ndim == 1:
                array = array[:, None]
            if array.ndim != 2:
                raise InvalidInputError(
                    f"A series must have the shape (length,) or (length, d), but that of sample {i} is {array.shape}."
                )
            if not np.all(np.isfinite(array)):
                place = int(np.argmin(np.isfinite(array).all(axis=1)))
                raise InvalidInputError(
                    f"{self!r} needs finite numbers, but sample {i} has {array[place].tolist()} at step {place}. "
                    "Remove missing points: series may differ in length."
                )
            if np.abs(array).max(initial=0.0) > LARGEST:
                raise InvalidInputError(
                    f"{self!r} squares differences of points, which overflows for sample {i} with the value "
                    f"{np.abs(array).max():.3g}. Scale the series."
                )
            arrays.append(array)
        filled = [(i, array) for i, array in enumerate(arrays) if len(array)]
        for i, array in filled:
            if array.shape[1] != filled[0][1].shape[1]:
                raise InvalidInputError(
                    f"{self!r} compares series of one dimension, but sample {filled[0][0]} has points of "
                    f"{filled[0][1].shape[1]} numbers and sample {i} of {array.shape[1]}."
                )
        start = np.concatenate([[0], np.cumsum([len(array) for array in arrays], dtype=np.int64)]).astype(np.int64)
        points = np.concatenate([array for _, array in filled]) if filled else np.empty((0, 1))
        return np.ascontiguousarray(points), start

    def bind(self, samples: Any) -> GlobalAlignment:
        """The same kernel with gamma="scale" replaced by a number."""
        if self.gamma != "scale":
            return self
        points, start = self._points(samples)
        length = float(np.median(np.diff(start))) if len(start) > 1 else 1.0
        return replace(self, gamma=gamma_of(points, "scale") / (4.0 * max(1.0, length)))

    def prepare(self, samples: Any, dtype: Any = np.float64) -> SeriesFeatures:
        points, start = self._points(samples)
        n = len(start) - 1
        features = SeriesFeatures(points, start, np.arange(n), np.empty(n), dtype)
        features.logs = self._logs(features, features, paired=True)[:, 0]
        return features

    def _logs(self, a: SeriesFeatures, b: SeriesFeatures, paired: bool = False) -> Matrix:
        """log k(x, z) without normalisation; with ``paired``, of a_i and b_i only."""
        from mercer.kernels.objects._series_loops import log_alignments

        self._check_bound("gamma", self.gamma)
        if a.points.shape[1] != b.points.shape[1] and len(a.points) and len(b.points):
            raise InvalidInputError(
                f"{self!r} compares series of one dimension, but some have points of {a.points.shape[1]} numbers and "
                f"others of {b.points.shape[1]}."
            )
        out = np.empty((len(a), 1 if paired else len(b)))
        band = 0 if self.band is None else self.band
        log_alignments(a.points, a.start, a.which, b.points, b.start, b.which, self.gamma, band, paired, out)
        return out

    def block(self, a: Features, b: Features, out: Matrix | None = None) -> Matrix:
        assert isinstance(a, SeriesFeatures) and isinstance(b, SeriesFeatures)
        if out is None:
            out = np.empty((len(a), len(b)), b.dtype)
        if len(a) == 0 or len(b) == 0:
            return out
        logs = self._logs(a, b)
        if self.normalize:
            possible = logs > -np.inf
            halves = 0.5 * a.logs[:, None] + 0.5 * b.logs
            np.subtract(logs, halves, out=logs, where=possible)
        out[...] = self._exp(logs)
        return out

    def diagonal(self, a: Features) -> Vector:
        assert isinstance(a, SeriesFeatures)
        return (a.logs > -np.inf).astype(np.float64) if self.normalize else self._exp(a.logs)

    def __repr__(self) -> str:
        return self.brief()

    def _exp(self, logs: Matrix) -> Matrix:
        if logs.max(initial=-np.inf) > 709:
            raise InvalidInputError(
                f"{self!r} exceeds the range of floating-point numbers on these series: its logarithm is "
                f"{logs.max():.4g}. Use normalize=True."
            )
        return np.exp(logs)
