"""Laplace's approximation for two classes with the logistic likelihood.

The mode of the posterior of the latent function f = Ka (Rasmussen & Williams, 3.4) solves the convex problem

    min  ½ a'Ka + Σ log(1 + exp(−sᵢ fᵢ)),        sᵢ = ±1,

kernel logistic regression with C = 1 and no intercept. With π = σ(f), W = π(1 − π) and g = y − π, the mode has a = g.
Newton's step δ solves (I + WK) δ = g − a; for S = √W,

    δ = r − S B⁻¹ S K r,        r = g − a,        B = I + SKS.

Far from the mode an approximate step is as good as an exact one, so B⁻¹ is applied by conjugate gradients with one
product with K per iteration; if these take too long, B is factored (Algorithm 3.1). At the mode B is factored once:

    log q(y) = −½ a'f − Σ log(1 + exp(−s f)) − ½ log |B|

Its derivatives (Algorithm 5.1) are sums of ∂K with weights ½(gg' − S B⁻¹ S + vg' + gv'), v = (I − S B⁻¹ S K) s₂, and
s₂ = −½ Σᵢᵢ π(1 − π)(1 − 2π) = −½ (1 − (B⁻¹)ᵢᵢ)(1 − 2π), because the posterior's covariance Σ is S⁻¹(I − B⁻¹)S⁻¹.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.special import expit, xlogy

from mercer.kernels.base import Kernel
from mercer.kernels.features import Matrix, Vector
from mercer.process.latent import Covariance, LatentPosterior, evidence_gradient, log_determinant, times

# the mode is found when no entry of g − a, a difference of probabilities, is larger
TOL = 1e-12
# below, rounding of f = Ka may stop the descent of g − a
NEAR = 1e-6
# a mode's largest relative duality gap: where kernel values are 1e8, a violation of NEAR is far from the mode
GAP = 1e-6
# one factorisation takes as long as n / COST products with K
COST = 30
# sizes below which B is factored at once
DIRECT = 200
# the longest accepted decrease of the objective by rounding, and the number of halvings of a step
ROUNDING, HALVINGS = 1e-12, 40


class Mode(NamedTuple):
    """a, f = Ka, the number of steps, and whether g − a is small, or as small as rounding allows, and so is the gap."""

    a: Vector
    f: Vector
    steps: int
    converged: bool


class Laplace:
    """The approximate evidence of labels y ∈ {0, 1} as a function of the kernel.

    Each search for a mode begins at the last one found.
    """

    probit = False

    def __init__(self, covariance: Covariance, y: Vector, max_iter: int = 100, start: Vector | None = None) -> None:
        self.covariance, self.y, self.max_iter = covariance, y, max_iter
        self.start: Vector = np.zeros(len(y)) if start is None else start

    def posterior(self, kernel: Kernel) -> LatentPosterior | None:
        """The approximation for one kernel; None if K is not a covariance matrix."""
        found = self._factored(kernel)
        if found is None:
            return None
        K, mode, L, value = found
        g, root = slopes(mode.f, self.y)
        primal, dual = bounds(K, mode.a, mode.f, self.y)
        violation = float(np.abs(g - mode.a).max())
        L = self.covariance.release_factor(L)
        return LatentPosterior(g, root, L, value, False, mode.steps, mode.converged, primal, dual, violation)

    def value_and_gradient(self, kernel: Kernel) -> tuple[float, Vector]:
        """log q(y) and its derivatives by ``kernel.theta``; -inf and zeros if K is not a covariance matrix."""
        failed = -np.inf, np.zeros(len(kernel.theta))
        found = self._factored(kernel)
        if found is None:
            return failed
        K, mode, L, value = found
        g, root = slopes(mode.f, self.y)
        inverse, wrong = lapack.dpotri(L, lower=1, overwrite_c=1)
        if wrong:
            return failed
        inverse = inverse.T  # its upper triangle, in rows
        second = -0.5 * (1.0 - np.diagonal(inverse)) * (1.0 - 2.0 * (self.y - g))
        implicit = second - root * times(inverse, root * times(K, second))
        return value, evidence_gradient(self.covariance, kernel, inverse, root, g, implicit)

    def value(self, kernel: Kernel) -> float:
        """log q(y); -inf if K is not a covariance matrix."""
        found = self._factored(kernel)
        return -np.inf if found is None else found[3]

    def _factored(self, kernel: Kernel) -> tuple[Matrix, Mode, Matrix, float] | None:
        K = self.covariance.matrix(kernel)
        mode = find_mode(self.covariance, K, self.y, self.start, self.max_iter)
        if mode is None:
            return None
        L = self.covariance.factor(K, slopes(mode.f, self.y)[1])
        if L is None:
            return None
        self.start = mode.a
        likelihood = log_likelihood(mode.f, 2.0 * self.y - 1.0)
        return K, mode, L, -0.5 * float(mode.a @ mode.f) + likelihood - log_determinant(L)


def log_likelihood(f: Vector, s: Vector) -> float:
    """Σ log σ(sᵢ fᵢ)."""
    return -float(np.logaddexp(0.0, -s * f).sum())


def slopes(f: Vector, y: Vector) -> tuple[Vector, Vector]:
    """g = y − σ(f), and S = √(σ(f)(1 − σ(f))), both without cancellation."""
    up, down = expit(f), expit(-f)
    return np.where(y > 0.5, down, -up), np.sqrt(up * down)


def find_mode(covariance: Covariance, K: Matrix, y: Vector, start: Vector, max_iter: int) -> Mode | None:
    """Newton's method for the mode, from a = ``start``; None if K is not a covariance matrix."""
    s, n = 2.0 * y - 1.0, len(y)
    a, f = start, times(K, start) if start.any() else np.zeros(n)
    objective = log_likelihood(f, s) - 0.5 * float(a @ f)
    if not np.isfinite(objective):
        return find_mode(covariance, K, y, np.zeros(n), max_iter) if start.any() else None
    direct, before = n < DIRECT, np.inf
    for step in range(max_iter):
        g, root = slopes(f, y)
        r = g - a
        violation = float(np.abs(r).max())
        slow = before <= NEAR and violation > 0.5 * before
        if (violation <= TOL or slow) and is_mode(K, a, f, y):
            return Mode(a, f, step, True)
        before = violation
        right = root * times(K, r)
        x = None if direct else conjugate_gradients(K, root, right, min(0.1, violation) * violation, n // COST)
        if x is None:
            direct = True
            L = covariance.factor(K, root)
            if L is None:
                return None
            x, _ = lapack.dpotrs(L, right, lower=1)
        delta = r - root * x
        shift = times(K, delta)
        slope, curvature = float((g - a) @ shift), float(delta @ shift)
        if not np.isfinite(slope) or curvature < -NEAR * n:
            return None
        t = 1.0
        for _ in range(HALVINGS):
            reached = log_likelihood(f + t * shift, s) - 0.5 * float((a + t * delta) @ (f + t * shift))
            if reached >= objective + 1e-4 * t * slope - ROUNDING * (1.0 + abs(objective)):
                break
            t *= 0.5
        a, f, objective = a + t * delta, f + t * shift, reached
        if violation <= NEAR:  # f is accumulated until here: remove its rounding
            f = times(K, a)
    return Mode(a, f, max_iter, float(np.abs(slopes(f, y)[0] - a).max()) <= NEAR and is_mode(K, a, f, y))


def bounds(K: Matrix, a: Vector, f: Vector, y: Vector) -> tuple[float, float]:
    """The value of the convex problem at a, with f = Ka, and that of its dual at g, which is feasible for any f."""
    g, _ = slopes(f, y)
    u = np.abs(g)
    primal = 0.5 * float(a @ f) - log_likelihood(f, 2.0 * y - 1.0)
    return primal, -0.5 * float(g @ times(K, g)) - float((xlogy(u, u) + xlogy(1.0 - u, 1.0 - u)).sum())


def is_mode(K: Matrix, a: Vector, f: Vector, y: Vector) -> bool:
    """Whether the relative duality gap is at most GAP."""
    primal, dual = bounds(K, a, f, y)
    return abs(primal - dual) <= GAP * max(abs(primal), abs(dual))


def conjugate_gradients(K: Matrix, root: Vector, right: Vector, tol: float, max_iter: int) -> Vector | None:
    """x with |S((I + SKS) x − right)| ≤ tol in every entry; None after ``max_iter`` iterations."""
    x, residual = np.zeros(len(right)), right.copy()
    direction, square = residual.copy(), float(residual @ residual)
    for _ in range(max_iter):
        if np.abs(root * residual).max() <= tol:
            return x
        image = direction + root * times(K, root * direction)
        curvature = float(direction @ image)
        if not curvature > 0.0:  # K is not a covariance matrix, or not finite
            return None
        length = square / curvature
        x += length * direction
        residual -= length * image
        last, square = square, float(residual @ residual)
        direction = residual + (square / last) * direction
    return None
