"""What similarity is: kernels as values, and their algebra."""

from mercer.kernels.base import Kernel
from mercer.kernels.combinators import Constant, Power, Product, Scaled, Sum
from mercer.kernels.functions import CallableKernel, Precomputed, PrecomputedLayer
from mercer.kernels.hyperparameters import Hyperparameter
from mercer.kernels.learned import LearnedKernel
from mercer.kernels.learning import Bounded, Fixed
from mercer.kernels.mercer_check import MercerReport, check_mercer
from mercer.kernels.noise import White
from mercer.kernels.parse import parse_kernel
from mercer.kernels.periodic import Periodic
from mercer.kernels.radial import AdditiveChi2, Chi2, Gaussian, Laplacian, Matern, RationalQuadratic
from mercer.kernels.sklearn import SklearnKernel
from mercer.kernels.vectors import Cosine, Linear, Min, Polynomial, PowerSeries, Sigmoid
from mercer.kernels.wrappers import Normalized, On

__all__ = [
    "AdditiveChi2",
    "Bounded",
    "CallableKernel",
    "Chi2",
    "Constant",
    "Cosine",
    "Fixed",
    "Gaussian",
    "Hyperparameter",
    "Kernel",
    "Laplacian",
    "LearnedKernel",
    "Linear",
    "Matern",
    "MercerReport",
    "Min",
    "Normalized",
    "On",
    "Periodic",
    "Polynomial",
    "Power",
    "PowerSeries",
    "Precomputed",
    "PrecomputedLayer",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "Sigmoid",
    "SklearnKernel",
    "Sum",
    "White",
    "check_mercer",
    "parse_kernel",
]
