"""What similarity is: kernels as values, and their algebra."""

from mercer.kernels.base import Kernel
from mercer.kernels.combinators import Constant, Power, Product, Scaled, Sum
from mercer.kernels.diffusion import GraphDiffusion
from mercer.kernels.distributions import Hellinger, InformationDiffusion
from mercer.kernels.functions import CallableKernel, Precomputed
from mercer.kernels.graph_kernels import RandomWalk, ShortestPath, WeisfeilerLehman
from mercer.kernels.graphs import Graph
from mercer.kernels.hyperparameters import Hyperparameter
from mercer.kernels.learning import Bounded, Fixed
from mercer.kernels.mercer_check import MercerReport, check_mercer
from mercer.kernels.mercer_repair import MercerRepair, repair_mercer
from mercer.kernels.noise import White
from mercer.kernels.parse import parse_kernel
from mercer.kernels.periodic import Periodic
from mercer.kernels.radial import AdditiveChi2, Chi2, Gaussian, Laplacian, Matern, RationalQuadratic
from mercer.kernels.sequences import Subsequence, WeightedDegree, Window
from mercer.kernels.series import GlobalAlignment
from mercer.kernels.sets import Intersection, Jaccard, SetOf
from mercer.kernels.sklearn import SklearnKernel
from mercer.kernels.strings import CommonSubstrings, Mismatch, Spectrum
from mercer.kernels.vectors import Cosine, Linear, Min, Polynomial, PowerSeries, Sigmoid
from mercer.kernels.wrappers import Normalized, On

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
    "Product",
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
