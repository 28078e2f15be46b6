"""Random features: cosines and sines of random frequencies, whose inner products estimate kernel values."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._compiled.blas import one_blas_thread
from mercer._compiled.thread_pool import run_tasks
from mercer._sklearn_compat import Interval, StrOptions, fit_context
from mercer.estimators.kernel_ridge import resolve_pairwise
from mercer.estimators.parameters import KernelParameters
from mercer.exceptions import InvalidInputError
from mercer.kernels import Kernel
from mercer.kernels.features import Matrix, Vector, VectorFeatures, take_samples
from mercer.kernels.spectral import SpectralSum, no_spectral_measure, spectral_sum
from mercer.validation import thread_count, validate_samples

# phases that are computed together, and the largest number of samples that they belong to
PHASES_AT_A_TIME, ROWS_AT_A_TIME = 1 << 17, 4096
# float32 samples: phases are computed in float32 if their rounding error is below this
PHASE_ERROR = 1e-4
# number of samples for the error estimate
EXAMINED = 256


class RandomFeatures(KernelParameters, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Random feature map: φ(x) with E <φ(x), φ(z)> = k(x, z), for use before a linear machine.

    A kernel of x − z is an expectation of cosines, k(x, z) = k(0) E cos<ω, x − z> (Bochner's theorem). m frequencies ω
    are drawn, and φ(x) has their cosines and sines, √(k(0)/m) cos<ω, x> and √(k(0)/m) sin<ω, x> (Rahimi & Recht, 2007).
    The features need no training samples, and their number does not grow with the data. The error of a kernel value
    falls like 1/√m, whatever the kernel; ``error_`` measures it. `Nystroem` adapts to the samples and takes any kernel:
    it mostly needs fewer features, but more time for each.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        "rbf" or "laplacian", an expression, or a kernel object. Available are Gaussian, Laplacian, Matern,
        RationalQuadratic and Periodic kernels, their products, powers, sums and multiples, ``Normalized`` of them, and
        ``On`` of them with columns by number. ``Constant`` and ``Linear`` may be added.
    gamma : float, "scale" or "auto", default=None
        Parameter of the kernels "rbf" and "laplacian". None is 1 / n_features, as in `Nystroem`; scikit-learn's
        RBFSampler has 1.0.
    n_components : int, default=100
        Number of random features: two for each frequency. If it is odd, the last frequency has one feature,
        √(2 k(0)/n_components) cos(<ω, x> + b) with a random b. A sum of kernels has the features of its terms side by
        side, in numbers proportional to their values k(0). ``Constant`` and ``Linear`` have no error and are not
        counted: they add one feature, and one for each feature of X.
    orthogonal : bool, default=True
        Draw orthogonal frequencies instead of independent ones, as many at a time as there are features (Yu et al.,
        2016). The expectation is the same and the error smaller, most of all for n_components up to twice the number
        of features. It concerns Gaussian, Matern and RationalQuadratic kernels. Laplacian and Periodic kernels are not
        invariant under rotations: their frequencies are always independent.
    random_state : int, RandomState instance or None, default=None
        Seed of the frequencies.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores, or one inside a joblib worker. The result does not depend on it.

    Attributes
    ----------
    random_weights_ : ndarray of shape (n_features, n_frequencies)
        The frequencies; n_frequencies is half of n_components, rounded up. float32 if the training samples are
        float32 and this precision is enough for the phases.
    random_offset_ : ndarray of shape (n_frequencies,)
        Added to the phases: 0 for frequencies with two features, random for those with one.
    feature_scale_ : ndarray of shape (n_frequencies,)
        Factors of the cosines and sines. The features are the cosines of all frequencies, then the sines of the first
        n_components − n_frequencies, then those of ``Constant`` and ``Linear``.
    kernel_ : Kernel
        The kernel, with numbers for gamma="scale" and "auto".
    error_ : float
        The root mean square of <φ(x), φ(z)> − k(x, z) over all pairs of different samples among 256 random training
        samples, or all of them if there are fewer; with one sample, the error of k(x, x).
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from mercer import LinearSVC, RandomFeatures
    >>> X, y = load_digits(return_X_y=True)
    >>> machine = make_pipeline(RandomFeatures(gamma=0.1, n_components=500, random_state=0), LinearSVC())
    >>> machine.fit(X / 16.0, y).score(X / 16.0, y) > 0.98
    True
    >>> machine[0].error_ < 0.05
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [str, callable, Kernel],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="left"), None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "orthogonal": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: Any = None,
        n_components: int = 100,
        orthogonal: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> RandomFeatures:
        """Draw the frequencies.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training samples. They determine the number of features, gamma="scale" and ``error_``.
        y : ignored

        Returns
        -------
        self : object
            The fitted transformer.
        """
        model = SimpleNamespace(gamma=self.gamma, coef0=1.0, degree=3, kernel_params=None)
        kernel = resolve_pairwise(self.kernel, model)
        if kernel.domain not in ("vectors", "any"):
            raise no_spectral_measure(kernel)
        X, _ = validate_samples(self, X, None, reset=True, domain="vectors")
        self.kernel_ = kernel.bind(X)
        found = spectral_sum(self.kernel_, X.shape[1])
        self._draw(found, X)
        nothing = not found.terms and not found.linear.any()
        self._constant = np.full(int(found.constant > 0 or nothing), np.sqrt(found.constant))
        self._linear = np.sqrt(found.linear)
        self._n_features_out = self._n_random + len(self._constant) + int(np.count_nonzero(self._linear))
        self._measure_error(X)
        return self

    def _draw(self, found: SpectralSum, X: Any) -> None:
        """Set the frequencies: first those with a cosine and a sine, then those with one feature."""
        random = check_random_state(self.random_state)
        d = X.shape[1]
        counts = split(int(self.n_components), [term.weight for term in found.terms])
        weights, scale, alone = np.empty((d, 0)), np.empty(0), np.empty(0, dtype=bool)
        for term, count in zip(found.terms, counts, strict=True):
            drawn = term.draw(d, -(-count // 2), random, self.orthogonal)
            weights = np.append(weights, drawn, axis=1)
            scale = np.append(scale, np.full(drawn.shape[1], np.sqrt(2.0 * term.weight / count)))
            alone = np.append(alone, np.arange(drawn.shape[1]) >= count // 2)
        if not np.isfinite(weights).all():
            raise InvalidInputError(
                f"The random frequencies of {self.kernel_!r} exceed the range of floating-point numbers: its widths "
                "are too small. Scale the features, for example with StandardScaler, and choose larger widths."
            )
        order = np.argsort(alone, kind="stable")
        weights, scale, alone = weights[:, order], scale[order], alone[order]
        offset = np.where(alone, random.uniform(0.0, 2.0 * np.pi, size=len(alone)), 0.0)
        dtype = np.float32 if _float32_suffices(X, weights) else np.float64
        self.random_weights_ = np.ascontiguousarray(weights, dtype=dtype)
        self.random_offset_ = offset.astype(dtype)
        self.feature_scale_ = scale.astype(dtype)
        self._n_random = sum(counts)

    def _measure_error(self, X: Any) -> None:
        """Set error_ from the training samples or a random subset."""
        n = X.shape[0]
        if n > EXAMINED:
            X = take_samples(X, np.sort(np.random.default_rng(0).choice(n, EXAMINED, replace=False)))
        with np.errstate(over="ignore", invalid="ignore"):
            phi = self._features(X).astype(np.float64)
            prepared = self.kernel_.prepare(X)
            lost = phi @ phi.T - self.kernel_.block(prepared, prepared)
            pairs = np.triu_indices(len(lost), 1) if n > 1 else ([0], [0])
            self.error_ = float(np.sqrt(np.mean(np.square(lost[pairs]))))
        if not np.isfinite(self.error_):
            raise InvalidInputError(
                f"{self.kernel_!r} has values that are NaN or infinite: scale the features, for example with "
                "StandardScaler."
            )

    def _features(self, X: Any) -> Matrix:
        """φ of validated samples, in blocks of a fixed number of rows."""
        n, n_frequencies = X.shape[0], self.random_weights_.shape[1]
        n_sines = self._n_random - n_frequencies
        used = np.flatnonzero(self._linear)
        out = np.empty((n, self._n_features_out), dtype=X.dtype)
        step = min(ROWS_AT_A_TIME, max(16, PHASES_AT_A_TIME // max(1, n_frequencies)))
        scale = self.feature_scale_

        def block(task: int) -> None:
            rows, features = X[task * step : (task + 1) * step], out[task * step : (task + 1) * step]
            with np.errstate(over="ignore", invalid="ignore"):
                phases = rows @ self.random_weights_
            if not np.isfinite(phases).all():
                raise InvalidInputError(
                    "The products of samples and random frequencies exceed the range of floating-point numbers: scale "
                    "the features, for example with StandardScaler."
                )
            phases += self.random_offset_
            cosines, sines = cosines_and_sines(phases)
            np.multiply(cosines, scale, out=features[:, :n_frequencies], casting="same_kind")
            np.multiply(
                sines[:, :n_sines],
                scale[:n_sines],
                out=features[:, n_frequencies : self._n_random],
                casting="same_kind",
            )
            features[:, self._n_random : self._n_features_out - len(used)] = self._constant
            if len(used):
                chosen = rows[:, used]
                chosen = chosen if isinstance(chosen, np.ndarray) else chosen.toarray()
                features[:, self._n_features_out - len(used) :] = chosen * self._linear[used]

        with one_blas_thread():
            run_tasks(block, -(-n // step), thread_count(self.n_jobs))
        return out

    def transform(self, X: Any) -> Matrix:
        """Compute φ of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        X_transformed : ndarray of shape (n_samples, n_features_out)
            One row per sample, in the precision of X.
        """
        check_is_fitted(self)
        X, _ = validate_samples(self, X, None, reset=False, domain="vectors")
        return self._features(X)


def cosines_and_sines(phases: Matrix) -> tuple[Matrix, Matrix]:
    """The cosine and the sine of each phase, to some 1e-16 in float64. Edits phases.

    With t = tan(phase / 2) they are (1 − t²) / (1 + t²) and 2t / (1 + t²). In float64 NumPy has vector instructions for
    the tangent, but not for cosine and sine: this takes a tenth of the time where the processor has AVX-512, else half.
    """
    if phases.dtype != np.float64:
        return np.cos(phases), np.sin(phases)
    phases *= 0.5
    t = np.tan(phases, out=phases)
    square = np.square(t)
    factor = square + 1.0
    np.divide(1.0, factor, out=factor)
    np.subtract(1.0, square, out=square)
    square *= factor
    t *= factor
    t *= 2.0
    return square, t


def split(n_components: int, weights: Sequence[float]) -> list[int]:
    """Share the features among the terms in proportion to their weights, which minimises the variance of their sum.

    Numbers are even, so that each frequency has a cosine and a sine. One is odd if n_components is; several are 1 if
    there are not enough features for two each.

    >>> split(100, [4.0, 1.0]), split(7, [1.0, 1.0]), split(3, [1.0, 5.0])
    ([80, 20], [5, 2], [1, 2])
    """
    if not weights:
        return []
    if n_components < len(weights):
        raise InvalidInputError(
            f"n_components={n_components} is too small: the kernel is a sum of {len(weights)} terms, and each needs at "
            f"least one random feature. Use n_components of at least {2 * len(weights)}."
        )
    by_weight = np.argsort(-np.asarray(weights), kind="stable")
    if n_components < 2 * len(weights):
        counts = np.ones(len(weights), dtype=int)
        counts[by_weight[: n_components - len(weights)]] += 1
        return [int(count) for count in counts]
    share = np.asarray(weights) / max(weights)  # their sum might overflow
    ideal = share / share.sum() * (n_components // 2)
    pairs = np.maximum(1, ideal.astype(int))
    while (missing := n_components // 2 - pairs.sum()) != 0:
        surplus = np.where(pairs > 1, pairs - ideal, -np.inf)
        pairs[np.argmin(pairs - ideal) if missing > 0 else np.argmax(surplus)] += np.sign(missing)
    counts = 2 * pairs
    counts[by_weight[0]] += n_components % 2
    return [int(count) for count in counts]


def _float32_suffices(X: Any, weights: Matrix) -> bool:
    """Whether rounding the phases of float32 samples to float32 changes the features by little."""
    if X.dtype != np.float32 or weights.size == 0:
        return False
    with np.errstate(over="ignore"):
        fastest: Vector = np.sqrt(np.einsum("ij,ij->j", weights, weights).max())
        longest = np.sqrt(VectorFeatures(X, np.float32).largest_norm)
        return bool(np.finfo(np.float32).eps * fastest * longest <= PHASE_ERROR)
