"""Mixin of estimators without labels: samples of any kind, their kernel, and the matrix between them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._sklearn_compat import Interval, StrOptions, num_samples
from mercer.estimators.kernel_ridge import TrainingSamples, domain_of_ridge, resolve_pairwise
from mercer.estimators.parameters import KernelParameters
from mercer.estimators.transformers.nystroem import Nystroem
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import GramOperator, product
from mercer.kernels import Kernel
from mercer.kernels.features import Features, Matrix, Vector, span, take_samples
from mercer.kernels.user_defined import PrecomputedFeatures
from mercer.validation import (
    check_pairwise_kernel,
    is_pairwise,
    set_input_tags,
    square_matrix,
    thread_count,
    validate_samples,
)

# landmarks are chosen among this many samples, drawn at random, or all if there are fewer
POOL = 20_000
# samples whose landmark features are computed at a time
ROWS_AT_A_TIME = 8192

KERNEL_PARAMETERS: dict[str, Any] = {
    "kernel": [str, callable, Kernel],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="left"), None],
    "degree": [Interval(Real, 0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "kernel_params": [dict, None],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
    "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    "landmarks": [Interval(Integral, 1, None, closed="left"), "array-like", "sparse matrix", None],
}


class LandmarkFeatures(NamedTuple):
    """φ(x) = root · k(landmarks, x): the projection of x onto the span of the landmarks.

    ``second`` is Σ φφ' over the training samples, ``mean`` their mean, and ``lost`` Σ k(x, x) − |φ(x)|², the trace of
    the kernel matrix that the projection loses; ``total`` is the whole trace.
    """

    samples: Any
    prepared: Features
    root: Matrix
    second: Matrix
    mean: Vector
    lost: float
    total: float


class TrainingGram(KernelParameters):
    """Mixin with the parameters kernel, gamma, degree, coef0, kernel_params and n_jobs; comes before BaseEstimator."""

    _parameter_constraints: ClassVar[dict[str, Any]] = KERNEL_PARAMETERS
    gamma: Any
    degree: Any
    coef0: Any
    kernel_params: Any
    n_jobs: Any
    landmarks: Any
    random_state: Any
    _kernel: Kernel
    _training: TrainingSamples
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        set_input_tags(tags.input_tags, domain_of_ridge(self.kernel))
        return tags

    def _training_gram(self, X: Any, y: Any = None) -> tuple[Any, GramOperator]:
        """Validate training samples, bind the kernel to them, and return both. Sets the kernel."""
        X, _ = validate_samples(self, X, y, reset=True, domain=domain_of_ridge(self.kernel))
        kernel = resolve_pairwise(self.kernel, self)
        if is_pairwise(kernel):
            square_matrix(X)
            check_pairwise_kernel(kernel)
        self._kernel = kernel.bind(X)
        return X, GramOperator(self._kernel, self._kernel.prepare(X, np.float64), thread_count(self.n_jobs))

    def _new_samples(self, X: Any) -> tuple[Any, Features]:
        """Validate new samples, and prepare them for the kernel."""
        check_is_fitted(self)
        X, _ = validate_samples(self, X, None, reset=False, domain=domain_of_ridge(self.kernel))
        return X, self._kernel.prepare(X, np.float64)

    def _compared(self, features: Features, coef: Matrix) -> Matrix:
        """K(features, training samples) @ coef."""
        return product(self._kernel, features, self._training.features(), coef, thread_count(self.n_jobs))

    def _landmark_features(self, X: Any, gram: GramOperator) -> LandmarkFeatures:
        """Choose landmarks, unless they are given, and add up their features over all training samples."""
        n, random = gram.n, check_random_state(self.random_state)
        given = not isinstance(self.landmarks, Integral)
        pool = X
        if not given and n > POOL and not is_pairwise(self._kernel):
            pool = take_samples(X, np.sort(random.choice(n, POOL, replace=False)))
        model = Nystroem(
            self._kernel,
            n_components=1 if given else min(int(self.landmarks), num_samples(pool)),
            landmarks=self.landmarks if given else None,
            selection="random_cholesky",
            random_state=random,
            n_jobs=self.n_jobs,
        ).fit(pool)
        prepared = model._landmarks.features(np.float64)
        m = len(model.normalization_)
        second, mean, lost = np.zeros((m, m)), np.zeros(m), 0.0
        for start in range(0, n, ROWS_AT_A_TIME):
            rows = span(gram.features, start, min(start + ROWS_AT_A_TIME, n))
            phi = product(self._kernel, rows, prepared, model.normalization_.T, gram.n_threads)
            second += phi.T @ phi
            mean += phi.sum(axis=0) / n
            lost += float(np.maximum(self._kernel.diagonal(rows) - np.einsum("ij,ij->i", phi, phi), 0.0).sum())
        total = float(gram.diagonal().sum())
        return LandmarkFeatures(model.components_, prepared, model.normalization_, second, mean, lost, total)

    def _keep(self, samples: Any, prepared: Features | None = None) -> None:
        """Keep the samples that new ones are compared with."""
        self._training = TrainingSamples(self._kernel, samples)
        if prepared is not None:
            is_matrix = isinstance(prepared, PrecomputedFeatures)
            self._training._features = prepared.without_matrix() if is_matrix else prepared  # type: ignore[attr-defined]


def check_count(name: str, count: int, n: int, what: str) -> None:
    """Raise if more clusters or components are asked for than there are samples."""
    if count > n:
        raise InvalidInputError(
            f"{name}={count} was given, but X has n_samples={n}: {name} must be at most n_samples, since {what}."
        )
