"""The conformance checks find what is wrong, and say it in a sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.naming import named

from mercer.gram.operator import GramOperator
from mercer.kernels import CallableKernel, Gaussian, Linear
from mercer.kernels.features import VectorFeatures
from mercer.losses import EpsilonInsensitive, Hinge, Huber, NuInsensitive, Pinball, SquaredEpsilonInsensitive
from mercer.svm import solve as exact
from mercer.testing import check_gram, check_kernel, check_loss, check_solver
from mercer.testing.solvers import LOSSES

X = np.random.default_rng(0).normal(size=(15, 3))


@dataclass(frozen=True)
class Good(Linear):
    """A kernel of a user, with a parameter."""

    power: float = 1.0


def test_a_users_kernel_passes():
    """It need not be known to mercer's parser."""
    check_kernel(Good(2.0), X)
    check_kernel(Good(2.0) + Linear(), X)


@dataclass(frozen=True)
class ShiftedDiagonal(Linear):
    def diagonal(self, a):
        return super().diagonal(a) + 1.0


@dataclass(frozen=True)
class IgnoresOut(Linear):
    def block(self, a, b, out=None):
        return super().block(a, b)


@dataclass(frozen=True)
class AlwaysDouble(Linear):
    def block(self, a, b, out=None):
        values = super().block(a, b, out)
        return values if out is not None else values.astype(np.float64)


@dataclass(frozen=True)
class DependsOnTheBatch(Linear):
    def block(self, a, b, out=None):
        out = super().block(a, b, out)
        out *= 1.0 + 1e-3 * len(b)
        return out


@dataclass(frozen=True)
class ForgetsOrder(Linear):
    def prepare(self, samples, dtype=np.float64):
        return Forgetful(samples, dtype)


class Forgetful(VectorFeatures):
    def take(self, index):
        return super().take(np.sort(index))


@dataclass(frozen=True, repr=False)
class Unprintable(Linear):
    factor: float = 1.0

    def __repr__(self) -> str:
        return "Unprintable()"


class NotAValue(Linear):
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def asymmetric(A, B):
    return A @ B.T + A[:, :1]


def indefinite(A, B):
    return -(A @ B.T)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("linear", "'linear' is not a mercer.kernels.Kernel: derive its class from Kernel."),
        (ShiftedDiagonal(), "ShiftedDiagonal().diagonal differs from k(x, x): "),
        (IgnoresOut(), "IgnoresOut().block(a, b, out) did not return out."),
        (AlwaysDouble(), "AlwaysDouble().block is of type float64 for samples prepared as float32."),
        (DependsOnTheBatch(), "DependsOnTheBatch().block differs from single pairs: "),
        (ForgetsOrder(), "ForgetsOrder() depends on the order of the samples: "),
        (Unprintable(2.0), "The printed expression Unprintable() builds another kernel, Unprintable()."),
        (NotAValue(), "NotAValue() is not equal to its pickled copy, NotAValue()."),
        (CallableKernel(asymmetric), "CallableKernel(asymmetric) is not symmetric: k(x, z) differs from k(z, x): "),
        (
            CallableKernel(indefinite),
            "CallableKernel(indefinite) says it is positive semidefinite, but has the eigenvalue -",
        ),
        (
            CallableKernel(lambda A, B: np.full((len(A), len(B)), np.nan)),
            "CallableKernel(<lambda>) gives values that are",
        ),
    ],
    ids=lambda value: named(value)[:30],
)
def test_what_is_wrong_is_found(kernel, message):
    """One sentence, beginning with the kernel."""
    with pytest.raises(AssertionError) as error:
        check_kernel(kernel, X)
    assert str(error.value).startswith(message)


def test_one_sample_is_too_few():
    """check_kernel needs two samples."""
    with pytest.raises(AssertionError) as error:
        check_kernel(Linear(), X[:1])
    assert str(error.value) == "check_kernel needs at least two samples, but was given 1."


class TestGram:
    @staticmethod
    def operator(cls=GramOperator, n=50):
        kernel = Gaussian(0.3)
        return cls(kernel, kernel.prepare(np.random.default_rng(1).normal(size=(n, 3))))

    def test_operators_pass(self):
        """Operators of one sample and of several blocks pass."""
        for n in (1, 2, 50, 300):
            check_gram(self.operator(n=n))

    def test_what_is_wrong_is_found(self):
        """One sentence that names the kernel, what was asked for and where it differs."""

        class Shifted(GramOperator):
            def diagonal(self):
                return super().diagonal() + 1e-3

        class HalfMirrored(GramOperator):
            def dense(self):
                return np.triu(super().dense())

        class Repeats(GramOperator):
            def take(self, index):
                return super().take(np.sort(index))

        class DependsOnThreads(GramOperator):
            def dense(self):
                return super().dense() * (1 + 1e-15 * self.n_threads)

        class DoesNotCount(GramOperator):
            def block(self, rows, columns):
                return self.kernel.block(self.features.take(rows), self.features.take(columns))

        start = "The operator of Gaussian(gamma=0.3): "
        for cls, message in (
            (Shifted, start + "diagonal differs from k(x, x): 1.001 instead of 1 at [0]."),
            (HalfMirrored, start + "dense differs from rows: 0 instead of "),
            (Repeats, start + "take gives other samples: "),
            (DependsOnThreads, start + "dense has other bits with 3 threads than with one."),
            (DoesNotCount, "0 evaluations were counted for a block of 40 values."),
        ):
            with pytest.raises(AssertionError) as error:
                check_gram(self.operator(cls))
            assert str(error.value).startswith(message)


class TestLoss:
    @pytest.mark.parametrize("loss", LOSSES, ids=named)
    def test_losses_pass(self, loss):
        """Losses pass, on labels or on numbers."""
        check_loss(loss)
        if isinstance(loss, (EpsilonInsensitive, SquaredEpsilonInsensitive, Pinball, NuInsensitive, Huber)):
            check_loss(loss, np.random.default_rng(0).normal(size=30))

    def test_what_is_wrong_is_found(self):
        """A sign, a box, a shape, a threshold: one sentence each."""

        class Negative(Hinge):
            def value(self, y, f):
                return 1.0 - y * f

        class TwiceTheBox(Hinge):
            def box_qp(self, y, weight, intercept):
                return super().box_qp(y, 2 * weight, intercept)

        class Generous(Hinge):
            def box_qp(self, y, weight, intercept):
                qp = super().box_qp(y, weight, intercept)
                return replace(qp, linear=20 * qp.linear)

        class WrongLinear(Hinge):
            def box_qp(self, y, weight, intercept):
                qp = super().box_qp(y, weight, intercept)
                return replace(qp, linear=0.5 * qp.linear)

        class Short(Hinge):
            def box_qp(self, y, weight, intercept):
                qp = super().box_qp(y, weight, intercept)
                return replace(qp, l1=qp.l1[1:])

        class NoThreshold(Hinge):
            def best_thresholds(self, y, f, weight):
                return np.zeros(1)

        class TooSteep(Hinge):
            lipschitz = 0.5

        class NotSmooth(Hinge):
            smoothness = 2.0

        for cls, message in (
            (TooSteep, ".lipschitz is 0.5, but its values on a grid give 1."),
            (NotSmooth, ".smoothness is 2, but its values on a grid give 100."),
            (Negative, ".value is "),
            (TwiceTheBox, ": at the program's optimum primal "),
            (Generous, ": a feasible beta has the dual value "),
            (WrongLinear, ": at the program's optimum primal "),
            (Short, ".box_qp: l1 has the shape (23,), but there are 24 variables."),
            (NoThreshold, ".best_thresholds are not the best: [0.] give "),
        ):
            with pytest.raises(AssertionError) as error:
                check_loss(cls())
            assert message in str(error.value)
        with pytest.raises(AssertionError) as error:
            check_loss("hinge")
        assert str(error.value) == "'hinge' is not a mercer.losses.Loss: derive its class from Loss."


class TestSolver:
    def test_what_is_wrong_is_found(self):
        """A loose tol, an infeasible beta, a certificate of another beta, an edited start: one sentence each."""

        def loose(data, problem, options, clock, start=None):
            return exact.solve(data, problem, replace(options, tol=0.5), clock, start)

        def infeasible(data, problem, options, clock, start=None):
            solution = exact.solve(data, problem, options, clock, start)
            return replace(solution, beta=solution.beta + 1e-3)

        def flattering(data, problem, options, clock, start=None):
            solution = exact.solve(data, problem, options, clock, start)
            return replace(solution, certificate=replace(solution.certificate, gap=0.0))

        def editing(data, problem, options, clock, start=None):
            solution = exact.solve(data, problem, options, clock, start)
            if start is not None:
                start[:] = 0.0
            return solution

        def idle(data, problem, options, clock, start=None):
            return exact.solve(data, problem, replace(options, max_iter=3), clock, start)

        name = "Hinge(), Gaussian(gamma=0.5), with an intercept: "
        for solve, message in (
            (loose, "the KKT violation is "),
            (infeasible, "beta is infeasible by "),
            (flattering, "the certificate says gap = 0, but K beta gives "),
            (editing, "the solver has edited the start."),
            (idle, "the run ended as MAX_ITER."),
        ):
            with pytest.raises(AssertionError) as error:
                check_solver(solve, (Hinge(),))
            assert str(error.value).startswith(name + message)
