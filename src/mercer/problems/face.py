"""The optimum on a face of the box, followed by steps of an active-set method.

    min  ½β'Qβ − linear'β + Σ l1|β| + ½Σ ridge β²    s.t.  lower ≤ β ≤ upper,  Aβ = sums

If the free variables are known, the optimum follows by linear algebra: with the others at their bounds and all signs
fixed, the free ones solve  (Q + ridge) Δβ + A'b = slope,  AΔβ = sums − Aβ.  If the guess of the free variables is
nearly right, Algorithm 16.3 of Nocedal & Wright, *Numerical Optimization*, corrects it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from mercer.losses.base import BoxQP, Index, Vector
from mercer.problems.dual import rates

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

# added to the diagonal, relative to its largest entry, for singular matrices; iterative refinement corrects for it
REGULARISATION = 1e-11


@dataclass(frozen=True, eq=False)
class Saddle:
    """Solves  (Q + diagonal) x + A'b = r,  Ax = s  by Cholesky, a Schur complement and iterative refinement.

    ``A`` has one row of zeros and ones per group; ``responses`` are the columns (Q + diagonal)⁻¹A'.
    """

    Q: Matrix
    diagonal: Vector
    A: Matrix
    factor: tuple[Matrix, bool]
    responses: Matrix
    schur: Matrix

    @classmethod
    def build(cls, Q: Matrix, diagonal: Vector, A: Matrix, regularisation: float) -> Saddle | None:
        """Factor the system, adding as little as possible to the diagonal; None if it is clearly indefinite."""
        if not np.isfinite(diagonal).all():
            return None
        # relative to Q, not to the diagonal, so that variables with a small diagonal entry are not swamped
        scale = float(np.abs(np.diag(Q)).max(initial=0.0)) or float(np.abs(diagonal).max(initial=0.0)) or 1.0
        for power in range(6):
            regularised = Q.copy()
            regularised[np.diag_indices_from(Q)] += diagonal + regularisation * 100.0**power * scale
            try:
                factor = linalg.cho_factor(regularised, lower=True, overwrite_a=True, check_finite=False)
            except linalg.LinAlgError:
                continue
            responses = linalg.cho_solve(factor, A.T, check_finite=False) if len(A) else A.T
            # a group without variables has no constraint
            schur = A @ responses + np.diag((A.sum(axis=1) == 0).astype(np.float64))
            return cls(Q, diagonal, A, factor, responses, schur)
        return None

    def solve(self, r: Vector, s: Vector, refinements: int = 2) -> tuple[Vector, Vector]:
        """(x, b)."""
        x, b = self._once(r, s)
        for _ in range(refinements):
            dx, db = self._once(r - self.Q @ x - self.diagonal * x - b @ self.A, s - self.A @ x)
            x, b = x + dx, b + db
        return x, b

    def _once(self, r: Vector, s: Vector) -> tuple[Vector, Vector]:
        x: Vector = linalg.cho_solve(self.factor, r, check_finite=False)
        if len(s) == 0:
            return x, s
        b = np.linalg.solve(self.schur, self.A @ x - s).astype(np.float64)
        return x - self.responses @ b, b


def polish(Q: Matrix, qp: BoxQP, beta: Vector, is_free: Mask, max_changes: int = 50) -> None:
    """Move to the optimum on the face of the free variables, and on to better faces. Edits beta and is_free in place.

    Q is K over variables. The first variable that meets a bound on the way is fixed there. If none does, the pair of
    each group that violates optimality most is freed. β must be in the box; its sums are corrected.
    """
    # a variable with an l1 term stays on one side of its kink; at the kink it is not free
    sign = np.where(qp.l1 > 0, np.sign(beta), 0.0)
    is_free &= (sign != 0) | (qp.l1 == 0)
    norm = np.sqrt(np.abs(np.diag(Q)))
    for _ in range(max_changes):
        free = np.flatnonzero(is_free)
        missing = qp.sums - qp.group_sums(beta)
        if len(free):
            step = _face_step(Q, qp, beta, sign, free, missing)
            if step is None:
                return
            met_bound = _move(qp, beta, sign, free, step)
            if met_bound is not None:
                is_free[met_bound] = False
                continue
        rounding = 8 * np.finfo(np.float64).eps * (norm.max() * float(norm @ np.abs(beta)) + np.abs(qp.linear).max())
        # deficits of sums that no free variable can correct
        stuck = np.where(qp.group_sums(is_free.astype(np.float64)) == 0, missing, 0.0)
        released = [(v, d) for v, d in _violators(qp, beta, Q @ beta, float(rounding), stuck) if not is_free[v]]
        if not released:
            return
        for v, direction in released:
            is_free[v] = True
            if qp.l1[v] > 0 and beta[v] == 0:
                sign[v] = direction


def _face_step(Q: Matrix, qp: BoxQP, beta: Vector, sign: Vector, free: Index, missing: Vector) -> Vector | None:
    """The step from β to the optimum over the free variables, ignoring their bounds; None if there is none."""
    slope = (qp.linear - Q @ beta - qp.ridge * beta - qp.l1 * sign)[free]
    saddle = Saddle.build(Q[np.ix_(free, free)], qp.ridge[free], qp.incidence()[:, free], REGULARISATION)
    if saddle is None:
        return None
    step, _ = saddle.solve(slope, missing, refinements=5)
    return step if np.isfinite(step).all() else None


def _move(qp: BoxQP, beta: Vector, sign: Vector, free: Index, step: Vector) -> int | None:
    """Go along the step as far as the box allows. Edits beta in place. Returns the variable that met its bound."""
    lower = np.where(sign[free] > 0, np.maximum(qp.lower[free], 0.0), qp.lower[free])
    upper = np.where(sign[free] < 0, np.minimum(qp.upper[free], 0.0), qp.upper[free])
    end = np.where(step < 0, lower, upper)
    reach = np.divide(end - beta[free], step, out=np.full(len(free), np.inf), where=step != 0)
    first = int(np.argmin(reach))
    beta[free] = np.clip(beta[free] + min(1.0, max(0.0, float(reach[first]))) * step, lower, upper)
    if reach[first] >= 1.0:
        return None
    beta[free[first]] = end[first]
    return int(free[first])


def _violators(qp: BoxQP, beta: Vector, F: Vector, rounding: float, stuck: Vector) -> list[tuple[int, float]]:
    """(variable, direction) of the pair of each group that violates optimality most."""
    u, l = rates(qp, beta, F)  # noqa: E741
    if qp.n_groups == 0:
        i, j = int(np.argmax(u)), int(np.argmin(l))
        return [(v, d) for v, d, by in ((i, 1.0, u[i]), (j, -1.0, -l[j])) if by > rounding]
    found: list[tuple[int, float]] = []
    for g in range(qp.n_groups):
        members = np.flatnonzero(qp.group == g)
        if len(members) == 0:
            continue
        i, j = int(members[np.argmax(u[members])]), int(members[np.argmin(l[members])])
        if u[i] - l[j] > rounding:
            found += [(i, 1.0), (j, -1.0)]
        elif stuck[g] != 0:
            found.append((i, 1.0) if stuck[g] > 0 else (j, -1.0))
    return found
