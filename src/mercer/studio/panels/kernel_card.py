"""The card of a kernel: its formula, and whether it is positive semidefinite on these points."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels.mercer_check import check_mercer
from mercer.studio.panels.fitted_machine import plain, quietly, refusal, rounded
from mercer.studio.panels.formula import formula_of, mathml_of, parameters_of
from mercer.studio.state import State, StateError

# eigenvalues take time n³
MOST_POINTS = 600


def kernel_card(state: State) -> dict[str, Any]:
    """The answer to `kernel`."""
    kernel = state.machine_kernel
    bound = kernel
    if state.n:
        try:
            bound = kernel.bind(state.X)
        except (ValueError, ArithmeticError) as error:
            raise StateError(refusal(error), "kernel") from None
    card = {
        "text": state.kernel,
        "repr": repr(bound),
        "formula": mathml_of(kernel),
        "plain": formula_of(kernel).plain,
        "parameters": parameters_of(bound),
    }
    return card | _condition(state)


def _condition(state: State) -> dict[str, Any]:
    """Mercer's condition on the points."""
    if state.n == 0:
        empty = {"psd": None, "smallest_eigenvalue": None, "largest_eigenvalue": None, "near_diagonal": None}
        return {**empty, "advice": [], "witness": None, "report": "There are no points.", "eigenvalues": []}
    try:
        with quietly():
            report = check_mercer(state.machine_kernel, state.X, max_samples=MOST_POINTS)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        raise StateError(refusal(error), "kernel") from None
    return {
        "psd": report.positive_semidefinite,
        "smallest_eigenvalue": plain(report.smallest_eigenvalue),
        "largest_eigenvalue": plain(report.largest_eigenvalue),
        "rounding": plain(report.rounding),
        "near_diagonal": report.near_diagonal,
        "similarity": plain(report.offdiagonal_ratio),
        "advice": list(report.advice),
        "witness": None if report.witness is None else rounded(report.witness),
        "report": str(report),
    }
