"""Conformance checks for kernels, Gram operators, losses and solvers: those of mercer and your own.

Each ``check_...`` returns None if all is well, else it raises an AssertionError that says what is wrong. They need no
test framework.
"""

from mercer.testing.gram import check_gram
from mercer.testing.kernels import check_kernel
from mercer.testing.losses import check_loss
from mercer.testing.solvers import check_solver

__all__ = ["check_gram", "check_kernel", "check_loss", "check_solver"]
