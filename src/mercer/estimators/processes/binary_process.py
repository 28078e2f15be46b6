"""The problems of two classes that a Gaussian process classifier solves, and their certificates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.kernels import Kernel
from mercer.kernels.features import Vector
from mercer.problems.solution import Certificate, finished
from mercer.process.latent import LatentPosterior
from mercer.svm.batch import class_pairs


@dataclass(frozen=True)
class BinaryProcess:
    """The process of one class against the rest, or of two classes.

    Attributes
    ----------
    kernel : the kernel with its learnt parameters, bound to the samples.
    y : 1 for samples of the second class, else 0.
    index : the samples of the two classes; None for all samples.
    posterior : the Gaussian approximation of the latent function's posterior.
    """

    kernel: Kernel
    y: Vector
    index: Vector | None
    posterior: LatentPosterior


def binary_problems(codes: Vector, n_classes: int, multi_class: str) -> list[tuple[Vector | None, Vector]]:
    """The problems of two classes: which samples (None for all), and 1 for those of the second class, else 0."""
    if n_classes == 2:
        return [(None, codes.astype(np.float64))]
    if multi_class == "one_vs_rest":
        return [(None, (codes == k).astype(np.float64)) for k in range(n_classes)]
    pairs = [(np.flatnonzero((codes == i) | (codes == j)), j) for i, j in class_pairs(n_classes)]
    return [(index, (codes[index] == j).astype(np.float64)) for index, j in pairs]


def certificate_of(process: BinaryProcess, name: str) -> Certificate:
    """The certificate of the mode of one process."""
    found = process.posterior
    reason = "" if process.kernel.positive_semidefinite else "the kernel is not positive semidefinite"
    if found.probit:
        reason = "expectation propagation looks for a fixed point and minimises nothing"
    # by rounding the dual value may be above the primal one
    gap = abs(found.primal - found.dual)
    gap = gap if np.isfinite(gap) else np.inf
    return finished(found.primal, found.dual, gap, found.violation, 0.0, name, reason)
