"""The conformance check for kernels: blocks, symmetry, precision, derivatives, storage, equality and printing."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import scipy.sparse as sp

import mercer.kernels
from mercer.exceptions import InvalidInputError
from mercer.kernels import Kernel, parse_kernel
from mercer.kernels.domains import is_sequence, noun_of
from mercer.kernels.features import as_matrix, count_samples, take_samples
from mercer.kernels.parse import KERNELS, kernel_class
from mercer.testing.comparison import DOUBLE, SINGLE, Matrix, claim, compare

# number of samples: a double loop over them is quick
MOST_SAMPLES = 12
# distances of CSR vectors come from inner products, and their square roots keep only half of the digits
STORAGE = 1e-6
# finite differences: their step, and the allowed error, which comes from STEP² and from rounding / STEP
STEP, DIFFERENCES = 1e-4, 1e-6


def check_kernel(kernel: Kernel, samples: Any) -> None:
    """Check that a kernel keeps the contract of ``mercer.kernels.Kernel`` on the first twelve of these samples.

    ``samples`` are samples that the kernel takes: a matrix, a list of strings, a data frame. Values are compared with
    those of single pairs, for which each sample is prepared separately. Further checks: symmetry, the diagonal, order,
    parts, eigenvalues, precision, derivatives, storage, missing samples, and that the kernel is comparable, hashable,
    picklable and printed as the expression that builds it.

    >>> check_kernel(mercer.kernels.Gaussian(), [[0.0, 1.0], [2.0, 3.0], [4.0, 6.0]])
    """
    claim(isinstance(kernel, Kernel), f"{kernel!r} is not a mercer.kernels.Kernel: derive its class from Kernel.")
    samples = _few(kernel, samples)
    bound = kernel.bind(samples)
    claim(bound.bind(samples) == bound, f"{kernel!r} changes when it is bound twice: bind must leave numbers alone.")
    check_kernel_is_a_value(kernel)
    check_kernel_is_a_value(bound)
    K = _pairs(bound, samples)
    check_kernel_blocks(bound, samples, K)
    check_kernel_symmetry(bound, K)
    check_kernel_precision(bound, samples)
    check_kernel_gradients(bound, samples)
    if bound.domain == "vectors":
        check_kernel_storage(bound, samples)
    if is_sequence(bound.domain):
        check_kernel_containers(bound, list(samples), K)


def check_kernel_is_a_value(kernel: Kernel) -> None:
    """A kernel equals its copies made by pickle, from its parameters and from its printed expression."""
    name = repr(kernel)
    if "<lambda>" not in name and "<locals>" not in name:
        copy = pickle.loads(pickle.dumps(kernel))
        claim(copy == kernel, f"{name} is not equal to its pickled copy, {copy!r}.")
        claim(hash(copy) == hash(kernel), f"{name} and its pickled copy are equal, but their hashes differ.")
    params = kernel.get_params(deep=False)
    claim(type(kernel)(**params) == kernel, f"{name} is not rebuilt by its parameters {params}.")
    claim(kernel.set_params(**kernel.get_params()) == kernel, f"{name}.set_params(**get_params()) is another kernel.")
    parts = [kernel, *(value for value in kernel.get_params().values() if isinstance(value, Kernel))]
    if any(isinstance(part, mercer.kernels.CallableKernel) for part in parts):
        return  # a function cannot be printed as an expression
    names = {name: getattr(mercer.kernels, name) for name in mercer.kernels.__all__}
    rebuilt = eval(
        name, {"__builtins__": {"slice": slice}, **names, **{type(part).__name__: type(part) for part in parts}}
    )
    claim(rebuilt == kernel, f"The printed expression {name} builds another kernel, {rebuilt!r}.")
    if all(type(part) in map(kernel_class, KERNELS) for part in parts):
        rebuilt = parse_kernel(name)
        claim(rebuilt == kernel, f"parse_kernel builds another kernel from {name}: {rebuilt!r}.")


def check_kernel_blocks(kernel: Kernel, samples: Any, K: Matrix) -> None:
    """Blocks, parts of blocks, blocks written to ``out`` and the diagonal agree with single pairs."""
    n = len(K)
    features = kernel.prepare(samples)
    claim(len(features) == n, f"{kernel!r} prepared {len(features)} samples of {n}.")
    whole = kernel.block(features, features)
    claim(whole.shape == (n, n), f"{kernel!r}.block has the shape {whole.shape} for {n} and {n} samples.")
    claim(whole.dtype == np.float64, f"{kernel!r}.block is of type {whole.dtype} for samples prepared as float64.")
    compare(whole, K, K, DOUBLE, f"{kernel!r}.block differs from single pairs")

    order = np.random.default_rng(0).permutation(n)
    shuffled = kernel.block(features.take(order), features.take(order))
    compare(shuffled, K[np.ix_(order, order)], K, DOUBLE, f"{kernel!r} depends on the order of the samples")
    rows, columns = order[: n // 2 + 1], order[: n - 1]
    part = kernel.block(features.take(rows), features.take(columns))
    compare(part, K[np.ix_(rows, columns)], K, DOUBLE, f"{kernel!r} gives other values for a part of the samples")

    around = np.full((len(rows) + 2, len(columns) + 3), 7.0)
    given = around[1:-1, 2:-1]
    result = kernel.block(features.take(rows), features.take(columns), given)
    claim(np.shares_memory(result, around), f"{kernel!r}.block(a, b, out) did not return out.")
    compare(given, K[np.ix_(rows, columns)], K, DOUBLE, f"{kernel!r}.block(a, b, out) wrote other values to out")
    given[...] = 7.0
    claim(bool(np.all(around == 7.0)), f"{kernel!r}.block(a, b, out) wrote outside of out.")

    diagonal = kernel.diagonal(features)
    claim(diagonal.dtype == np.float64, f"{kernel!r}.diagonal is of type {diagonal.dtype} instead of float64.")
    tolerance = STORAGE if getattr(features, "sparse", False) else DOUBLE
    compare(diagonal, np.diagonal(K), K, tolerance, f"{kernel!r}.diagonal differs from k(x, x)")
    empty = kernel.block(features.take(order[:0]), features)
    claim(empty.shape == (0, n), f"{kernel!r}.block of no samples has the shape {empty.shape} instead of {(0, n)}.")


def check_kernel_symmetry(kernel: Kernel, K: Matrix) -> None:
    """K equals its transpose, and has no negative eigenvalue if the kernel claims to be positive semidefinite."""
    compare(K, K.T, K, DOUBLE, f"{kernel!r} is not symmetric: k(x, z) differs from k(z, x)")
    if kernel.positive_semidefinite:
        eigenvalues = np.linalg.eigvalsh((K + K.T) / 2)
        claim(
            eigenvalues[0] >= -STORAGE * max(abs(eigenvalues[-1]), np.finfo(float).tiny),
            f"{kernel!r} says it is positive semidefinite, but has the eigenvalue {eigenvalues[0]:.3g} on these "
            "samples. Correct it, or make positive_semidefinite False.",
        )


def check_kernel_precision(kernel: Kernel, samples: Any) -> None:
    """Values in float32 agree with those in float64 of the same samples."""
    if kernel.domain == "vectors":
        samples = as_matrix(samples).astype(np.float32)
    features, single = kernel.prepare(samples), kernel.prepare(samples, np.float32)
    claim(single.dtype == np.float32, f"{kernel!r} prepared samples of type {single.dtype} instead of float32.")
    K, values = kernel.block(features, features), kernel.block(single, single)
    claim(values.dtype == np.float32, f"{kernel!r}.block is of type {values.dtype} for samples prepared as float32.")
    compare(values, K, K, SINGLE, f"{kernel!r} in float32 differs from float64")


def check_kernel_gradients(kernel: Kernel, samples: Any) -> None:
    """Hyper-parameters can be set, and the derivatives of blocks agree with finite differences."""
    hyperparameters = kernel.hyperparameters()
    theta = kernel.theta
    claim(
        bool(np.allclose(kernel.with_theta(theta).theta, theta, rtol=0, atol=1e-12)),
        f"{kernel!r}.with_theta(theta) has other hyper-parameters than theta.",
    )
    features = kernel.prepare(samples)
    n = len(features)
    rows, columns = np.arange(n), np.arange(n // 2, n)
    weights = np.random.default_rng(0).normal(size=(len(rows), len(columns)))

    def weighted(point: Matrix) -> tuple[float, float]:
        changed = kernel.with_theta(point)
        prepared = changed.prepare(samples)
        values = weights * changed.block(prepared.take(rows), prepared.take(columns))
        return float(values.sum()), float(np.abs(values).sum())

    found = kernel.gradient_products(features.take(rows), features.take(columns), weights)
    claim(
        found.shape == theta.shape,
        f"{kernel!r}.gradient_products gives {found.size} numbers for {len(theta)} hyper-parameters.",
    )
    for p, parameter in enumerate(hyperparameters):
        step = STEP * (np.arange(len(theta)) == p)
        (above, size), (below, _) = weighted(theta + step), weighted(theta - step)
        expected, scale = (above - below) / (2 * STEP), max(size, abs(found[p]), np.finfo(float).tiny)
        claim(
            abs(found[p] - expected) <= DIFFERENCES * scale,
            f"{kernel!r}.gradient_products differs from finite differences for {parameter.name}: {found[p]:.9g} "
            f"instead of {expected:.9g}.",
        )


def check_kernel_storage(kernel: Kernel, samples: Any) -> None:
    """Dense and CSR vectors, and one against the other, give the same values."""
    matrix = as_matrix(samples)
    dense, csr = matrix.toarray() if sp.issparse(matrix) else matrix, sp.csr_array(matrix)
    # samples prepared twice are different observations for White
    same, other = kernel(dense), kernel(dense, dense)
    a, b = kernel.prepare(dense), kernel.prepare(csr)
    for left, right, K, what in (
        (b, b, same, "CSR"),
        (a, b, other, "dense against CSR"),
        (b, a, other, "CSR against dense"),
    ):
        values = kernel.block(left, right)
        compare(values, K, K, STORAGE, f"{kernel!r} gives other values for {what} samples than for dense ones")


def check_kernel_containers(kernel: Kernel, samples: list[Any], K: Matrix) -> None:
    """Lists, tuples and arrays give the same values, no samples an empty matrix, and a missing sample an error."""
    array = np.empty(len(samples), dtype=object)
    array[:] = samples
    for given in (tuple(samples), array):
        compare(kernel(given), K, K, DOUBLE, f"{kernel!r} gives other values for a {type(given).__name__} of samples")
    nothing = kernel(samples[:0])
    claim(nothing.shape == (0, 0), f"{kernel!r} gives a matrix of shape {nothing.shape} for no samples.")
    try:
        kernel([*samples, None])
    except InvalidInputError as error:
        named = noun_of(kernel.domain) in str(error) and str(len(samples)) in str(error)
        claim(named, f"{kernel!r} does not say which sample is missing, and what it compares: {error}")
    else:
        claim(False, f"{kernel!r} takes None for one of its {noun_of(kernel.domain)}.")


def _few(kernel: Kernel, samples: Any) -> Any:
    """The first few samples; for a kernel matrix, the first few rows and columns."""
    n = count_samples(samples)
    claim(n >= 2, f"check_kernel needs at least two samples, but was given {n}.")
    if kernel.domain == "vectors":
        samples = as_matrix(samples)
    few = take_samples(samples, np.arange(min(n, MOST_SAMPLES)))
    return few[:, : len(few)] if kernel.domain == "matrix" else few


def _pairs(kernel: Kernel, samples: Any) -> Matrix:
    """K by a double loop over pairs, each sample prepared separately (except for rows of a kernel matrix)."""
    n = count_samples(samples)
    if kernel.domain == "matrix":
        together = kernel.prepare(samples)
        singles = [together.take(np.array([i])) for i in range(n)]
    else:
        singles = [kernel.prepare(take_samples(samples, np.array([i]))) for i in range(n)]
    K = np.array([[float(kernel.block(x, z)[0, 0]) for z in singles] for x in singles])
    claim(bool(np.all(np.isfinite(K))), f"{kernel!r} gives values that are not finite on these samples.")
    return K
