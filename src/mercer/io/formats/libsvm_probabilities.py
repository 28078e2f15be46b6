"""LIBSVM's probabilities (-b 1): the entries of its model files, and the probabilities that its programs compute.

    c_svc, nu_svc            probA, probB        a sigmoid for each pair of classes; pairwise coupling
    epsilon_svr, nu_svr      probA               scale σ of a Laplace distribution of the residuals
    one_class                prob_density_marks  ten values of f; the probability of a normal sample rises at each

Wu, Lin & Weng, JMLR 5 (2004), algorithm 2 with LIBSVM's stopping rule; Lin & Weng, "Simple probabilistic predictions
for support vector regression" (2004); Que & Lin, "One-class SVM probabilistic outputs" (2022).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_predict

from mercer.estimators.prediction import FOLDS, couple
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Matrix, Vector

# LIBSVM's stopping rule of the coupling: tolerance (divided by the number of classes) and largest number of steps
ENOUGH, STEPS = 0.005, 100
# residuals beyond this many standard deviations are ignored
OUTLIERS = 5.0
# number of marks of one-class machines; the probability beyond the last mark
N_MARKS, SURE = 10, 0.999


def has_probabilities(model: Any) -> bool:
    """Whether a model has the parameters that -b 1 needs."""
    return any(np.size(getattr(model, name, ())) > 0 for name in ("_probA", "_prob_density_marks"))


def residual_scale(model: Any, X: Any, y: Vector, random_state: int = 0) -> float:
    """Return σ of the residuals of held-out samples, without outliers."""
    if len(y) < FOLDS:
        raise InvalidInputError(
            f"Probabilities need at least {FOLDS} samples, one for each fold, but there are {len(y)}."
        )
    folds = KFold(FOLDS, shuffle=True, random_state=random_state)
    error = np.abs(y - cross_val_predict(clone(model), X, y, cv=folds))
    usual = error <= OUTLIERS * np.sqrt(2.0) * error.mean()
    return float(error[usual].mean())


def density_marks(values: Vector) -> Vector | None:
    """Return the marks for the decision values of the training samples; None if one side of 0 has too few samples."""
    values, half = np.sort(values), N_MARKS // 2
    n_outside = int(np.searchsorted(values, 0.0))
    n_inside = len(values) - n_outside
    if min(n_outside, n_inside) < half:
        return None
    steps = np.arange(half)
    below = values[steps * n_outside // half]
    above = values[n_outside - 1 + (steps + 1) * n_inside // half]
    ends = np.concatenate([below, [0.0], above])
    return np.asarray((ends[:-1] + ends[1:]) / 2.0)


def normal_probability(values: Vector, marks: Vector) -> Vector:
    """Return the probability that samples with these decision values are normal."""
    place = np.searchsorted(marks, values, side="right")
    found = np.where(place < N_MARKS, place / N_MARKS, 0.0)
    found[values < marks[0]] = 1.0 - SURE
    found[values > marks[-1]] = SURE
    return found


def class_probabilities(model: Any, X: Any) -> Matrix:
    """Return the class probabilities of an SVC or NuSVC, equal to LIBSVM's in all digits that it prints."""
    r = expit(-(model._probA * model._values(X) + model._probB))
    return couple(r, len(model.classes_), _as_libsvm)


def _as_libsvm(Q: Matrix) -> Matrix:
    """Minimise p'Qp on the simplex by coordinate descent, with LIBSVM's stopping rule."""
    n, k = Q.shape[:2]
    p = np.full((n, k), 1.0 / k)
    left = np.arange(n)
    for _ in range(max(STEPS, k)):
        Qp = np.einsum("nij,nj->ni", Q[left], p[left])
        total = np.einsum("ni,ni->n", p[left], Qp)
        going_on = np.abs(Qp - total[:, None]).max(axis=1) >= ENOUGH / k
        left, Qp, total = left[going_on], Qp[going_on], total[going_on]
        if len(left) == 0:
            break
        part, matrix = p[left], Q[left]
        for t in range(k):
            own = matrix[:, t, t]
            step = (total - Qp[:, t]) / own
            part[:, t] += step
            total = (total + step * (step * own + 2.0 * Qp[:, t])) / (1.0 + step) ** 2
            Qp = (Qp + step[:, None] * matrix[:, t]) / (1.0 + step)[:, None]
            part /= (1.0 + step)[:, None]
        p[left] = part
    return p
