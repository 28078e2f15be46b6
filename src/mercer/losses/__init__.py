"""What is paid: the losses, and the dual quadratic program that each of them gives."""

from mercer.losses.base import BoxQP, Loss, Published
from mercer.losses.classification import HardMargin, Hinge, NuHinge, SquaredHinge, nu_scale
from mercer.losses.novelty import OneClass
from mercer.losses.regression import EpsilonInsensitive, NuInsensitive, Pinball, SquaredEpsilonInsensitive, tube

__all__ = [
    "BoxQP",
    "EpsilonInsensitive",
    "HardMargin",
    "Hinge",
    "Loss",
    "NuHinge",
    "NuInsensitive",
    "OneClass",
    "Pinball",
    "Published",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "nu_scale",
    "tube",
]
