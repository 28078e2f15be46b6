"""Conformance checks for kernels, Gram operators, losses and solvers, of mercer and of your own.

Each ``check_...`` returns nothing if all is well and raises an AssertionError with a sentence otherwise. They need no
test framework.
"""

from mercer.testing.gram import check_gram
from mercer.testing.kernels import check_kernel
from mercer.testing.losses import check_loss
from mercer.testing.solvers import check_solver

__all__ = ["check_gram", "check_kernel", "check_loss", "check_solver"]
