"""Solve a linear machine over rows in parts, with the certificate of all rows.

    min over w, b   P(w) + Σ weightᵢ ℓ(yᵢ, xᵢ·w + b),     P(w) = ½ l2 |w|²

The methods are those of `mercer.linear`, with everything that belongs to a row left with its part:

* Losses with kinks: the central path on the samples near a kink (`parts/kinks.py`).
* Squared losses: Newton's method (`parts/newton_over_parts.py`), with conjugate gradients for many columns.
* Losses with kinks and more columns than `FACTORED_UP_TO`: dual coordinate descent in each part (`parts/rounds.py`).

The first model is that of a random sample of rows, which comes to the caller. The certificate is that of
`linear_certificate`: primal and dual are sums over the parts in their order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mercer._compiled.blas import one_blas_thread
from mercer.linear.linear_solution import LinearOptions, LinearSolution
from mercer.losses.base import Vector
from mercer.parts import kinks, newton_over_parts, rounds
from mercer.parts.layout import Parts
from mercer.parts.linear_part import Statement
from mercer.parts.linear_run import FACTORED_UP_TO, PartsRun
from mercer.problems.clock import Clock
from mercer.problems.solution import Status


def solve_parts(
    parts: Parts,
    statement: Statement,
    options: LinearOptions,
    clock: Clock,
    start: Vector | None = None,
    keep: Callable[[Vector], None] | None = None,
) -> LinearSolution:
    """Minimise until the relative duality gap is at most ``options.tol``, or a limit ends the run.

    The β of the solution is empty: it stays with the parts, in ``part.state.beta``. ``keep`` is called with the model
    of each step; a later run that gets it as ``start`` continues there. A run that a limit ends above the primal value
    of ``start`` returns that model.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.linear.linear_solution import LinearOptions
    >>> from mercer.losses import Hinge
    >>> from mercer.parts.layout import Held, LocalParts
    >>> from mercer.parts.linear_part import Statement
    >>> from mercer.problems.clock import Clock
    >>> X = np.linspace(-1, 1, 40).reshape(20, 2)
    >>> y = np.where(X[:, 0] > 0.1, 1.0, -1.0)
    >>> parts = LocalParts([Held(X[:8], y[:8]), Held(X[8:], y[8:])])
    >>> solution = solve_parts(parts, Statement(Hinge(), intercept=True), LinearOptions(), Clock())
    >>> solution.certificate.relative_gap <= 1e-4
    True
    """
    with one_blas_thread(), np.errstate(all="ignore"):
        run = PartsRun(parts, statement, options, clock, start, keep)
        found = run.zero_model()
        if found is not None:
            return found
        has_many_columns = run.d - statement.intercept > FACTORED_UP_TO
        other = rounds.solve if has_many_columns and not run.total else kinks.solve
        if not run.smooth:
            found = other(run)
            return found if found.status is Status.CONVERGED else run.not_above_start(found)
        found = newton_over_parts.solve(run)  # its steps descend
        if found.status is not Status.STALLED:
            return found
        again = other(run)
        best = again if again.certificate.relative_gap <= found.certificate.relative_gap else found
        return replace(best, stages=(*found.stages, *again.stages))
