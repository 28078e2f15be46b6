"""The conformance check of kernels finds what is wrong, and says it in a sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from mercer.kernels import CallableKernel, Linear
from mercer.kernels.features import VectorFeatures
from mercer.testing import check_kernel

X = np.random.default_rng(0).normal(size=(15, 3))


@dataclass(frozen=True)
class Good(Linear):
    """A kernel of a user, with a parameter."""

    power: float = 1.0


def test_a_users_kernel_passes():
    """Without being known to mercer's parser."""
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
    ids=lambda value: repr(value)[:30],
)
def test_what_is_wrong_is_found(kernel, message):
    """One sentence, beginning with the kernel."""
    with pytest.raises(AssertionError) as error:
        check_kernel(kernel, X)
    assert str(error.value).startswith(message)


def test_one_sample_is_too_few():
    """There is no pair."""
    with pytest.raises(AssertionError) as error:
        check_kernel(Linear(), X[:1])
    assert str(error.value) == "check_kernel needs at least two samples, but was given 1."
