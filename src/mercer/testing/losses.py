"""A loss and the quadratic program that it becomes are dual to each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mercer.exceptions import InvalidInputError
from mercer.losses import BoxQP, Loss
from mercer.losses.base import Vector
from mercer.problems import certificate, dual_objective, feasible_start, infeasibility, thresholds
from mercer.svm.interior_qp import interior_point
from mercer.testing.comparison import Matrix, claim

N_SAMPLES = 24
# allowed rounding error of a sum, relative to its terms
ROUNDING = 1e-9
# relative gap that the interior-point method may leave
STRONG = 1e-6
TRIALS = 20
# the grid on which slopes are measured, and how far they may be off: rounding divided by the square of a step
FAR, GRID, CONSTANTS = 8.0, 1601, 1e-6


def check_loss(loss: Loss, y: ArrayLike | None = None) -> None:
    """Check that a loss keeps the contract of ``mercer.losses.Loss`` on targets y, by default labels 1 and -1.

    Values are not negative and change no faster than ``lipschitz`` and ``smoothness`` say. The arrays of the program
    have the right shapes. For random feasible beta and random thresholds the dual is at most the primal, and both are
    equal at the optimum. No thresholds give a lower primal than `best_thresholds`.

    >>> from mercer.losses import Hinge
    >>> check_loss(Hinge())
    """
    claim(isinstance(loss, Loss), f"{loss!r} is not a mercer.losses.Loss: derive its class from Loss.")
    rng = np.random.default_rng(0)
    target = rng.permutation(np.repeat([1.0, -1.0], N_SAMPLES // 2)) if y is None else np.asarray(y, np.float64)
    n = len(target)
    claim(n >= 4, f"check_loss needs at least four targets, but was given {n}.")
    f = 2 * rng.normal(size=n)
    value = loss.value(target, f)
    claim(value.shape == (n,), f"{loss!r}.value has the shape {value.shape} for {n} samples.")
    claim(bool(np.all(value >= 0)), f"{loss!r}.value is {np.min(value):.3g} for some sample: a loss is at least 0.")
    check_constants(loss, target)
    weight = rng.uniform(0.5, 2.0, size=n)
    weight[n // 2] = 0.0
    X = rng.normal(size=(n, 3))
    K = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2))
    _check_forms(loss, target, weight, K)


def check_constants(loss: Loss, y: Vector) -> None:
    """Values and slopes on a grid change no faster than the constants allow."""
    grid = np.linspace(-FAR, FAR, GRID)
    step = float(grid[1] - grid[0])
    with np.errstate(invalid="ignore"):  # a hard margin is infinite
        values = np.array([loss.value(np.full(GRID, target), grid) for target in np.unique(y)])
        slopes = np.diff(values, axis=1) / step
        steepest, fastest = np.abs(slopes).max(), np.abs(np.diff(slopes, axis=1)).max() / step
    for name, found, claimed in (("lipschitz", steepest, loss.lipschitz), ("smoothness", fastest, loss.smoothness)):
        claim(
            claimed == np.inf or found <= (1 + CONSTANTS) * claimed,
            f"{loss!r}.{name} is {claimed:g}, but its values on a grid give {found:g}.",
        )


def _check_forms(loss: Loss, y: Vector, weight: Vector, K: Matrix) -> None:
    """With an intercept, and without one where the loss allows it."""
    for intercept in (True, False):
        try:
            qp = loss.box_qp(y, weight, intercept)
        except InvalidInputError:
            # losses with a threshold of their own need an intercept
            if intercept:
                raise
            continue
        check_program(loss, qp, weight, intercept)
        check_thresholds(loss, qp, y, weight)
        check_duality(loss, qp, y, weight, K)


def check_program(loss: Loss, qp: BoxQP, weight: Vector, intercept: bool) -> None:
    """Every variable has its data and a sample, every group has a sum, and samples of weight 0 are fixed at 0."""
    n, n_vars, name = len(weight), len(qp.linear), f"{loss!r}.box_qp"
    for field in ("linear", "l1", "ridge", "lower", "upper", "group"):
        shape = getattr(qp, field).shape
        claim(shape == (n_vars,), f"{name}: {field} has the shape {shape}, but there are {n_vars} variables.")
    sample = np.arange(n) if qp.sample is None else qp.sample
    claim(sample.shape == (n_vars,), f"{name}: {n_vars} variables need as many samples, but there are {sample.shape}.")
    claim(bool(np.all((sample >= 0) & (sample < n))), f"{name}: sample must contain numbers from 0 to {n - 1}.")
    claim(bool(np.all(qp.lower <= qp.upper)), f"{name}: a lower bound is above its upper bound.")
    claim(bool(np.all((qp.l1 >= 0) & (qp.ridge >= 0))), f"{name}: l1 and ridge must not be negative.")
    claim((qp.n_groups > 0) == intercept, f"{name}: {qp.n_groups} sums, but intercept is {intercept}.")
    claim(
        bool(np.all((qp.group >= 0) & (qp.group < max(1, qp.n_groups)))),
        f"{name}: group contains numbers beyond the {qp.n_groups} groups.",
    )
    fixed = weight[sample] == 0
    claim(not np.any(qp.lower[fixed]) and not np.any(qp.upper[fixed]), f"{name}: a sample of weight 0 may move.")
    start = feasible_start(qp)
    missed = infeasibility(qp, start)
    claim(
        missed <= ROUNDING * max(1.0, np.abs(start).max()),
        f"{name}: no beta in the box has the required sums (off by {missed:.3g}).",
    )


def check_thresholds(loss: Loss, qp: BoxQP, y: Vector, weight: Vector) -> None:
    """No random thresholds, near or far, give a lower primal than `best_thresholds`."""
    if qp.n_groups == 0:
        return
    rng = np.random.default_rng(1)
    f = rng.normal(size=len(y))
    best = loss.best_thresholds(y, f, weight)
    claim(
        best.shape == (qp.n_groups,), f"{loss!r}.best_thresholds has the shape {best.shape} for {qp.n_groups} groups."
    )
    lowest = loss.primal(1.0, y, f, weight, best, qp.sums)
    for size in (1e-3, 1e-1, 1.0, 10.0):
        for _ in range(TRIALS):
            other = best + size * rng.normal(size=len(best))
            value = loss.primal(1.0, y, f, weight, other, qp.sums)
            claim(
                value == np.inf or value >= lowest - ROUNDING * (1 + abs(lowest)),
                f"{loss!r}.best_thresholds are not the best: {best} give {lowest:.9g}, but {other} give {value:.9g}.",
            )


def check_duality(loss: Loss, qp: BoxQP, y: Vector, weight: Vector, K: Matrix) -> None:
    """Every dual value is at most every primal value, and at the optimum they are equal."""
    rng = np.random.default_rng(2)
    n = len(y)
    primals, duals = [], []
    for _ in range(TRIALS):
        beta = feasible_start(qp, near=rng.normal(scale=rng.choice([0.1, 1.0, 10.0]), size=qp.n_vars))
        F = K @ qp.at_samples(beta, n)
        b = thresholds(qp, beta, F) + rng.normal(size=qp.n_groups) * rng.choice([0.0, 1.0])
        primals.append(loss.primal(float(qp.at_variables(F) @ beta), y, F, weight, b, qp.sums))
        duals.append(dual_objective(qp, beta, F))
    claim(not np.any(np.isnan(primals)), f"{loss!r}.primal is not a number.")
    lowest, highest = min(primals), max(duals)
    claim(
        highest <= lowest + ROUNDING * (abs(lowest) + abs(highest)) or lowest == np.inf,
        f"{loss!r}: a feasible beta has the dual value {highest:.9g}, above a primal value of {lowest:.9g}.",
    )
    beta, _, converged = interior_point(K, qp)
    claim(converged, f"{loss!r}: the program of a small random problem has no solution.")
    proof = certificate(qp, loss, y, weight, beta, K @ qp.at_samples(beta, n))
    claim(
        proof.valid and proof.relative_gap <= STRONG,
        f"{loss!r}: at the program's optimum primal {proof.primal:.9g} and dual {proof.dual:.9g} differ.",
    )
    claim(
        highest <= proof.primal + STRONG * (1 + abs(proof.primal)) and lowest >= proof.dual - STRONG * abs(proof.dual),
        f"{loss!r}: the optimum {proof.dual:.9g} is not between the values of random models.",
    )
    published = loss.publish(qp.at_samples(beta, n), thresholds(qp, beta, K @ qp.at_samples(beta, n)))
    claim(
        published.beta.shape == (n,) and np.isfinite(published.intercept) and published.scale > 0,
        f"{loss!r}.publish gives {published.beta.shape} coefficients, the intercept {published.intercept} and the "
        f"scale {published.scale} for {n} samples.",
    )
