"""The losses of the linear machines: the machine, its settings, and the parameter that `linear_reference` takes."""

from mercer import LinearSVC, LinearSVR

LOSSES = {
    "hinge": (LinearSVC, {}, 0.0),
    "squared_hinge": (LinearSVC, {}, 0.0),
    "epsilon_insensitive": (LinearSVR, {"epsilon": 0.2}, 0.2),
    "squared_epsilon_insensitive": (LinearSVR, {"epsilon": 0.2}, 0.2),
    "pinball": (LinearSVR, {"quantile": 0.3}, 0.3),
}
