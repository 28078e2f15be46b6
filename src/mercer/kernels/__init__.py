"""What similarity is: kernels as values, and their algebra."""

from mercer.kernels.base import Kernel
from mercer.kernels.combinators import Constant, Power, Product, Scaled, Sum
from mercer.kernels.functions import CallableKernel, Precomputed
from mercer.kernels.mercer_check import MercerReport, check_mercer
from mercer.kernels.parse import parse_kernel
from mercer.kernels.radial import AdditiveChi2, Chi2, Gaussian, Laplacian, Matern
from mercer.kernels.vectors import Cosine, Linear, Min, Polynomial, PowerSeries, Sigmoid
from mercer.kernels.wrappers import Normalized, On

__all__ = [
    "AdditiveChi2",
    "CallableKernel",
    "Chi2",
    "Constant",
    "Cosine",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "MercerReport",
    "Min",
    "Normalized",
    "On",
    "Polynomial",
    "Power",
    "PowerSeries",
    "Precomputed",
    "Product",
    "Scaled",
    "Sigmoid",
    "Sum",
    "check_mercer",
    "parse_kernel",
]
