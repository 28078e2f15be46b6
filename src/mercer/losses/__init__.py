"""Losses, each with the dual quadratic program (`BoxQP`) that it leads to."""

from mercer.losses.base import BoxQP, Loss, Published
from mercer.losses.classification import GivenUpHinge, HardMargin, Hinge, NuHinge, SquaredHinge, nu_scale
from mercer.losses.functions import (
    LossFunction,
    epsilon_insensitive,
    hinge,
    pinball,
    ramp,
    squared_epsilon_insensitive,
    squared_hinge,
    zero_one,
)
from mercer.losses.one_class_loss import OneClass
from mercer.losses.regression import (
    EpsilonInsensitive,
    Huber,
    NuInsensitive,
    Pinball,
    Squared,
    SquaredEpsilonInsensitive,
    tube,
)

__all__ = [
    "BoxQP",
    "EpsilonInsensitive",
    "GivenUpHinge",
    "HardMargin",
    "Hinge",
    "Huber",
    "Loss",
    "LossFunction",
    "NuHinge",
    "NuInsensitive",
    "OneClass",
    "Pinball",
    "Published",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "epsilon_insensitive",
    "hinge",
    "nu_scale",
    "pinball",
    "ramp",
    "squared_epsilon_insensitive",
    "squared_hinge",
    "tube",
    "zero_one",
]
