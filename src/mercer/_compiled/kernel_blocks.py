"""Blocks of kernel values within compiled code. The type of the formula selects the loop at compile time.

A run-time test would compile both loops into every caller.
"""

from typing import Any, NamedTuple

from numba.extending import overload

from mercer._compiled.gaussian_tiles import gaussian_block
from mercer._compiled.tiles import DOT, is_gaussian, mapped_block


class GaussianPlan(NamedTuple):
    """exp(-gamma |x - z|^2), its distances from inner products or from differences."""

    products: Any
    gamma: Any


class MappedPlan(NamedTuple):
    """Any term and map: see `tiles` and `kernel_maps`."""

    term: Any
    code: Any
    params: Any


def plan_of(term: int, code: int, params: Any) -> GaussianPlan | MappedPlan:
    """The Gaussian plan if the kernel is Gaussian, else the general one; params has the dtype of the samples."""
    if is_gaussian(term, code, params):
        return GaussianPlan(term == DOT, params[1])
    return MappedPlan(term, code, params)


def fill_block(plan, A, a_norms, panels, b_norms, start, stop, out):
    """`tiles.dense_block` for a plan, callable from compiled code only."""
    raise TypeError("This is for compiled code: call tiles.dense_block instead.")


@overload(fill_block)
def _fill_block(plan, A, a_norms, panels, b_norms, start, stop, out):
    if plan.instance_class is GaussianPlan:

        def fill(plan, A, a_norms, panels, b_norms, start, stop, out):
            gaussian_block(plan.products, plan.gamma, A, a_norms, panels, b_norms, start, stop, out)

    else:

        def fill(plan, A, a_norms, panels, b_norms, start, stop, out):
            mapped_block(plan.term, plan.code, plan.params, A, a_norms, panels, b_norms, start, stop, out)

    return fill
