"""Expectation propagation for two classes with the probit likelihood Φ(sᵢ fᵢ), sᵢ = ±1.

Each likelihood term is replaced by a Gaussian site exp(νᵢ fᵢ − ½ τᵢ fᵢ²) (Minka, 2001; Rasmussen & Williams, 3.6). With
S = √τ and B = I + SKS the approximate posterior has the covariance Σ = K − KSB⁻¹SK and the mean Σν = Kb,
b = ν − S B⁻¹ S K ν. At a fixed point, a site times the other sites (the cavity) has the same mean and variance
as the exact term times the cavity.

All sites are updated together (Algorithm 3.5 updates them one by one, with the same fixed points). So a sweep is one
factorisation and one inverse instead of n updates of an n × n matrix. Steps are damped when they grow. The evidence
is (3.65), in the form of (3.73) and (3.74); its derivatives at a fixed point are ½ Σ (bb' − S B⁻¹ S)ᵢⱼ ∂Kᵢⱼ
(Algorithm 5.2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.special import log_ndtr

from mercer.kernels.base import Kernel
from mercer.kernels.features import Matrix, Vector
from mercer.process.latent import Covariance, LatentPosterior, evidence_gradient, log_determinant, times

# the sites have converged when no mean and no variance, in units of the prior, differs by more
TOL = 1e-9
# the shortest step, and how steps shrink and grow again
SHORTEST, SHRINK, GROW = 0.05, 0.5, 1.2
# below this share of the prior variance explained by the sample's own site, 1 − (B⁻¹)ᵢᵢ has lost too many digits
CANCELLED = 1e-5


class Marginals(NamedTuple):
    """Means and variances of the posterior at the samples, b, and ½ log |B|."""

    mean: Vector
    variance: Vector
    b: Vector
    half_log_det: float


class ExpectationPropagation:
    """The approximate evidence of labels y ∈ {0, 1} as a function of the kernel.

    The sweeps for a kernel begin at the sites of the last one; ``start`` is not used.
    """

    probit = True

    def __init__(self, covariance: Covariance, y: Vector, max_iter: int = 100, start: Vector | None = None) -> None:
        self.covariance, self.y, self.max_iter = covariance, y, max_iter
        self.sign = 2.0 * y - 1.0
        self.tau, self.nu = np.zeros(len(y)), np.zeros(len(y))

    def posterior(self, kernel: Kernel) -> LatentPosterior | None:
        """The approximation for one kernel; None if K is not a covariance matrix."""
        found = self._swept(kernel)
        if found is None:
            return None
        K, marginals, value, steps, converged = found
        L = self.covariance.factor(K, np.sqrt(self.tau))
        if L is None:
            return None
        L = self.covariance.release_factor(L)
        return LatentPosterior(marginals.b, np.sqrt(self.tau), L, value, True, steps, converged)

    def value_and_gradient(self, kernel: Kernel) -> tuple[float, Vector]:
        """log Z and its derivatives by ``kernel.theta``; -inf and zeros if K is not a covariance matrix."""
        found = self._swept(kernel)
        if found is None:
            return -np.inf, np.zeros(len(kernel.theta))
        _, marginals, value, _, _ = found
        root, inverse = np.sqrt(self.tau), self.covariance.factor_memory
        return value, evidence_gradient(self.covariance, kernel, inverse, root, marginals.b, np.zeros(len(marginals.b)))

    def value(self, kernel: Kernel) -> float:
        """log Z; -inf if K is not a covariance matrix."""
        found = self._swept(kernel)
        return -np.inf if found is None else found[2]

    def _swept(self, kernel: Kernel) -> tuple[Matrix, Marginals, float, int, bool] | None:
        """Sweep from the last sites, and again without sites if that fails. Then the memory of the factor holds B⁻¹."""
        K = self.covariance.matrix(kernel)
        found = self._sweeps(K)
        if (found is None or not found[2]) and self.tau.any():
            self.tau, self.nu = np.zeros(len(self.y)), np.zeros(len(self.y))
            found = self._sweeps(K)
        if found is None:
            self.tau, self.nu = np.zeros(len(self.y)), np.zeros(len(self.y))
            return None
        marginals, steps, converged = found
        return K, marginals, self._evidence(marginals), steps, converged

    def _sweeps(self, K: Matrix) -> tuple[Marginals, int, bool] | None:
        prior = np.diagonal(K)
        if not np.all(np.isfinite(prior)) or not np.all(prior > 0):
            return None
        scale = np.sqrt(prior)
        marginals, step, before = self._marginals(K), 1.0, np.inf
        for sweep in range(self.max_iter):
            if marginals is None:
                return None
            mean, variance = marginals.mean, marginals.variance
            tau_cavity, nu_cavity = 1.0 / variance - self.tau, mean / variance - self.nu
            if not np.all(tau_cavity > 0):
                return None
            mean_hat, variance_hat = tilted(self.sign, nu_cavity / tau_cavity, 1.0 / tau_cavity)
            error = float(
                max(np.abs((mean_hat - mean) / scale).max(), np.abs((variance_hat - variance) / scale**2).max())
            )
            if error <= TOL:
                return marginals, sweep, True
            step = max(SHORTEST, SHRINK * step) if error > before else min(1.0, GROW * step)
            before = error
            tau_new = np.maximum(1.0 / variance_hat - tau_cavity, 0.0)
            nu_new = mean_hat / variance_hat - nu_cavity
            self.tau = self.tau + step * (tau_new - self.tau)
            self.nu = self.nu + step * (nu_new - self.nu)
            marginals = self._marginals(K)
        return None if marginals is None else (marginals, self.max_iter, False)

    def _marginals(self, K: Matrix) -> Marginals | None:
        """The posterior of the present sites. Leaves B⁻¹ in the memory of the factor."""
        root = np.sqrt(self.tau)
        L = self.covariance.factor(K, root)
        if L is None:
            return None
        half_log_det = log_determinant(L)
        solved, _ = lapack.dpotrs(L, root * times(K, self.nu), lower=1)
        b = self.nu - root * solved
        prior, mean = np.diagonal(K), times(K, b)
        # sites that explain little of their own variance: Σᵢᵢ by its definition
        rough = np.flatnonzero(self.tau * prior <= CANCELLED)
        exact = prior[rough].copy()
        if len(rough):
            columns = np.array([np.concatenate([K[:i, i], K[i, i:]]) for i in rough]) * root
            V, _ = lapack.dtrtrs(L, columns.T, lower=1)
            exact -= np.einsum("ij,ij->j", V, V)
        inverse, wrong = lapack.dpotri(L, lower=1, overwrite_c=1)
        if wrong:
            return None
        variance = np.empty(len(prior))
        fine = np.setdiff1d(np.arange(len(prior)), rough, assume_unique=True)
        variance[fine] = (1.0 - np.diagonal(inverse)[fine]) / self.tau[fine]
        variance[rough] = exact
        return Marginals(mean, variance, b, half_log_det) if np.all(variance > 0) else None

    def _evidence(self, found: Marginals) -> float:
        """log Z_EP; no term divides by τ, which may be 0."""
        tau_cavity = 1.0 / found.variance - self.tau
        cavity = (found.mean / found.variance - self.nu) / tau_cavity
        likelihood = log_ndtr(self.sign * cavity / np.sqrt(1.0 + 1.0 / tau_cavity)).sum()
        total = self.tau + tau_cavity
        quadratic = 0.5 * (self.nu @ found.mean - (self.nu**2 / total).sum())
        rest = 0.5 * (cavity * tau_cavity / total * (self.tau * cavity - 2.0 * self.nu)).sum()
        return float(likelihood + 0.5 * np.log1p(self.tau / tau_cavity).sum() - found.half_log_det + quadratic + rest)


def tilted(sign: Vector, mean: Vector, variance: Vector) -> tuple[Vector, Vector]:
    """Mean and variance of the density proportional to Φ(s f) N(f; mean, variance): (3.58)."""
    width = np.sqrt(1.0 + variance)
    z = sign * mean / width
    ratio = np.exp(-0.5 * z * z - 0.5 * np.log(2.0 * np.pi) - log_ndtr(z))  # N(z) / Φ(z)
    shrunk = variance * variance * ratio / (1.0 + variance) * (z + ratio)
    return mean + sign * variance * ratio / width, variance - shrunk
