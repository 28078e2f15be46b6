"""Certificates of LaplacianSVC from its coefficients and the data: one for each class against the rest, added up.

With α the coefficients of f = Σ αᵢ k(xᵢ, ·) + b at all samples, F = Kα and L the Laplacian that the data give, the
primal value is ½α'F + s/2 F'LᵖF + Σ C max(0, 1 − y(f + b)). Where f is a minimiser over functions with given values
at the labelled samples, β = α + s LᵖF is 0 at all others, and the dual is that of the deformed kernel at the labelled
ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.erm.kernel_matrix import check_room
from mercer.estimators.certification.kernel_machines import training_data
from mercer.estimators.fitted_models import codes_of, different_classes
from mercer.estimators.least_squares.one_vs_rest import label_columns
from mercer.estimators.manifold.laplacian_svc import is_labelled
from mercer.estimators.manifold.neighbour_graph import deformation, neighbour_graph, normalised_laplacian
from mercer.losses import Hinge
from mercer.problems.dual import DualProblem, feasible_start
from mercer.problems.solution import Certificate, certificate, combine, with_dual
from mercer.validation import class_weights, thread_count, validate_weights

# a β = α + s LᵖF closer to its bound than this share of C is at the bound
ROUNDING = 1e-9


def certify_laplacian(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """The certificate of ½|f|² + s/2 f'Lᵖf + Σ C max(0, 1 − y(f + b)), summed over the classes against the rest."""
    data, labels = training_data(estimator, X), np.asarray(y)
    weight = validate_weights(sample_weight, data.n, X)
    used = np.flatnonzero(weight > 0)
    labelled = np.flatnonzero(is_labelled(labels[used]))
    codes = codes_of(estimator, labels[used[labelled]])
    if len(np.unique(codes)) < 2:
        raise different_classes(len(estimator.classes_), len(np.unique(codes)))
    own = weight[used[labelled]]
    C = float(estimator.C) * own * class_weights(estimator.class_weight, estimator.classes_, codes, own)[codes]
    check_room(len(used), estimator._options().budget, 2 * len(used) ** 2)
    part = data if len(used) == data.n else data.take(used)
    K = part.matrix(np.float64, thread_count(estimator.n_jobs))
    laplacian = normalised_laplacian(neighbour_graph(K, int(estimator.n_neighbors)))
    smoothness, power = float(estimator.smoothness), int(estimator.power)
    P = deformation(K, laplacian, power, smoothness, labelled)
    deformed = K[labelled] @ P
    deformed = 0.5 * (deformed + deformed.T)
    alpha = np.zeros((data.n, len(estimator.dual_coef_)))
    alpha[np.asarray(estimator.support_, dtype=np.intp)] = estimator.dual_coef_.T
    alpha = alpha[used]
    F = K @ alpha
    smooth = F
    for _ in range(power):
        smooth = laplacian @ smooth
    beta = (alpha + smoothness * smooth)[labelled]
    norms = np.einsum("ij,ij->j", F, alpha + smoothness * smooth)
    found = []
    for k, target in enumerate(label_columns(codes, len(estimator.classes_)).T):
        problem = DualProblem(None, Hinge(), target, C, bool(estimator.fit_intercept))
        b = np.asarray(estimator.intercept_[k : k + 1], dtype=np.float64)
        values = np.ascontiguousarray(F[labelled, k])
        paid = float(C @ problem.loss.value(target, values + b.sum()))
        asked = (problem.qp, problem.loss, problem.y, problem.weight)
        thresholds = b[: problem.qp.n_groups]
        published = beta[:, k]
        for end in (problem.qp.lower, problem.qp.upper):
            published = np.where(np.abs(published - end) <= ROUNDING * C, end, published)
        shown = certificate(*asked, published, values, thresholds, data.psd)
        inside = feasible_start(problem.qp, published)
        bound = certificate(*asked, inside, deformed @ inside, thresholds, data.psd)
        found.append(with_dual(replace(shown, primal=0.5 * float(norms[k]) + paid), bound.dual, bound.reason))
    return combine(found, of="LaplacianSVC" if len(found) == 1 else f"{len(found)} classes against the rest")
