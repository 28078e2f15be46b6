"""Blocks of kernel values within compiled code. The type of the formula selects the loop at compile time.

A run-time test would compile both loops into every caller.
"""

from typing import Any, NamedTuple

from mercer._compiled.compile import compiled
from mercer._compiled.tiles import DOT, gaussian_block, is_gaussian, mapped_block


class GaussianFormula(NamedTuple):
    """exp(-gamma |x - z|^2), its distances from inner products or from differences."""

    products: Any
    gamma: Any


class MappedFormula(NamedTuple):
    """Any term and map: see `tiles` and `kernel_maps`."""

    term: Any
    code: Any
    params: Any


class Formula(NamedTuple):
    """A kernel as compiled code takes it; one of the two is None."""

    gaussian: Any
    mapped: Any


def formula_of(term: int, code: int, params: Any) -> Formula:
    """The formula of a kernel; params has the dtype of the samples."""
    if is_gaussian(term, code, params):
        return Formula(GaussianFormula(term == DOT, params[1]), None)
    return Formula(None, MappedFormula(term, code, params))


@compiled()
def _fill_block(gaussian, mapped, A, a_norms, panels, b_norms, start, stop, out):
    if gaussian is not None:  # numba drops the branch of an argument that is None
        gaussian_block(gaussian.products, gaussian.gamma, A, a_norms, panels, b_norms, start, stop, out)
    if mapped is not None:
        mapped_block(mapped.term, mapped.code, mapped.params, A, a_norms, panels, b_norms, start, stop, out)


@compiled()
def fill_block(formula, A, a_norms, panels, b_norms, start, stop, out):
    """`tiles.dense_block` for a formula."""
    _fill_block(formula.gaussian, formula.mapped, A, a_norms, panels, b_norms, start, stop, out)
