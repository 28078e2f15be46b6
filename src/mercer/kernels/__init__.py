"""Kernels, as values that can be compared and printed, and their algebra: sums, products, powers.

Kernels on objects (strings, sets, graphs, ...) and rarely used kernels are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mercer.kernels.base import Hyperparameter, Kernel
from mercer.kernels.combinators import Constant, LearnedKernel, Power, Product, Scaled, Sum
from mercer.kernels.mercer_check import MercerReport, check_mercer
from mercer.kernels.parse import KERNELS, parse_kernel
from mercer.kernels.radial import AdditiveChi2, Chi2, Gaussian, Laplacian, Matern, Periodic, RationalQuadratic
from mercer.kernels.user_defined import CallableKernel, Precomputed, PrecomputedLayer
from mercer.kernels.vectors import Cosine, Linear, Min, Polynomial, PowerSeries, Sigmoid
from mercer.kernels.wrappers import Normalized, On

if TYPE_CHECKING:
    from mercer.kernels.learnable import Bounded, Fixed
    from mercer.kernels.mercer_repair import MercerRepair, repair_mercer
    from mercer.kernels.noise import White
    from mercer.kernels.objects.distributions import Hellinger, InformationDiffusion
    from mercer.kernels.objects.graph_diffusion import GraphDiffusion
    from mercer.kernels.objects.graph_kernels import RandomWalk, ShortestPath, WeisfeilerLehman
    from mercer.kernels.objects.graphs import Graph
    from mercer.kernels.objects.sequences import Subsequence, WeightedDegree, Window
    from mercer.kernels.objects.series import GlobalAlignment
    from mercer.kernels.objects.sets import Intersection, Jaccard, SetOf
    from mercer.kernels.objects.substrings import CommonSubstrings, Mismatch, Spectrum
    from mercer.kernels.rkhs_function import RKHSFunction
    from mercer.kernels.sklearn import SklearnKernel

__all__ = [
    "AdditiveChi2",
    "Bounded",
    "CallableKernel",
    "Chi2",
    "CommonSubstrings",
    "Constant",
    "Cosine",
    "Fixed",
    "Gaussian",
    "GlobalAlignment",
    "Graph",
    "GraphDiffusion",
    "Hellinger",
    "Hyperparameter",
    "InformationDiffusion",
    "Intersection",
    "Jaccard",
    "Kernel",
    "Laplacian",
    "LearnedKernel",
    "Linear",
    "Matern",
    "MercerRepair",
    "MercerReport",
    "Min",
    "Mismatch",
    "Normalized",
    "On",
    "Periodic",
    "Polynomial",
    "Power",
    "PowerSeries",
    "Precomputed",
    "PrecomputedLayer",
    "Product",
    "RKHSFunction",
    "RandomWalk",
    "RationalQuadratic",
    "Scaled",
    "SetOf",
    "ShortestPath",
    "Sigmoid",
    "SklearnKernel",
    "Spectrum",
    "Subsequence",
    "Sum",
    "WeightedDegree",
    "WeisfeilerLehman",
    "White",
    "Window",
    "check_mercer",
    "parse_kernel",
    "repair_mercer",
]

# names that are imported on first use: all kernels that a text may name, and these
_LAZY = {
    "Graph": "objects.graphs",
    "GraphDiffusion": "objects.graph_diffusion",
    "MercerRepair": "mercer_repair",
    "RKHSFunction": "rkhs_function",
    "SklearnKernel": "sklearn",
    "repair_mercer": "mercer_repair",
}
_HOME = {name: f"mercer.kernels.{module}" for module, name in KERNELS.values()} | {
    name: f"mercer.kernels.{module}" for name, module in _LAZY.items()
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mercer.kernels' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
