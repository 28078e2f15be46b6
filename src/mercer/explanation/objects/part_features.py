"""The parts of objects that count kernels compare, and where in a string or a graph they occur.

A kernel k(x, z) = Σ_p c_p(x) c_p(z) counts parts p: substrings, subtrees, items. Sums, multiples and normalised kernels
of such kernels have such counts, too; each of the count kernels they are made of is a leaf.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels import Kernel
from mercer.kernels.combinators import Constant, LearnedKernel, Scaled, Sum
from mercer.kernels.domains import as_objects
from mercer.kernels.features import Csr, Matrix, Vector, count_samples
from mercer.kernels.objects.counts import CountFeatures, CountKernel, Names, counted, scaled_rows
from mercer.kernels.objects.graph_kernels import PathNames, SubtreeNames, WeisfeilerLehman
from mercer.kernels.objects.sequences import WeightedDegree
from mercer.kernels.objects.substrings import CommonSubstrings, Mismatch, Spectrum
from mercer.kernels.wrappers import Normalized, On

# most characters of the description of a subtree
WIDEST = 60


class Leaf(NamedTuple):
    """A count kernel, the samples as it sees them, and their counts over named parts."""

    kernel: Kernel
    samples: Any
    counts: Csr
    names: Names


def leaves(kernel: Kernel, samples: Any) -> list[Leaf]:
    """The counts of every count kernel that a kernel is made of: k(x, z) is the sum of their products."""
    return _leaves(kernel, samples)


@singledispatch
def _leaves(kernel: Kernel, samples: Any) -> list[Leaf]:
    raise InvalidInputError(
        f"{kernel!r} does not count parts of objects, so a prediction is no sum over parts. Kernels that do: Spectrum, "
        "Mismatch, CommonSubstrings, WeightedDegree, WeisfeilerLehman, ShortestPath and Intersection, their sums, "
        "multiples and Normalized."
    )


@_leaves.register
def _(kernel: CountKernel | WeightedDegree | CommonSubstrings, samples: Any) -> list[Leaf]:
    objects = as_objects(kernel, samples)
    return [Leaf(kernel, objects, *counted(kernel, objects))]


@_leaves.register
def _(kernel: Constant, samples: Any) -> list[Leaf]:
    n = count_samples(samples)
    ones = Csr(np.arange(n + 1), np.zeros(n, np.int32), np.full(n, np.sqrt(kernel.value)), (n, 1))
    return [Leaf(kernel, samples, ones, Names(["constant"]))]


@_leaves.register
def _(kernel: Sum, samples: Any) -> list[Leaf]:
    return _leaves(kernel.left, samples) + _leaves(kernel.right, samples)


@_leaves.register
def _(kernel: Scaled, samples: Any) -> list[Leaf]:
    factors = np.full(count_samples(samples), np.sqrt(kernel.factor))
    return [leaf._replace(counts=scaled_rows(leaf.counts, factors)) for leaf in _leaves(kernel.kernel, samples)]


@_leaves.register
def _(kernel: LearnedKernel, samples: Any) -> list[Leaf]:
    return _leaves(kernel.expression(), samples)


@_leaves.register
def _(kernel: Normalized, samples: Any) -> list[Leaf]:
    scale = kernel.prepare(samples, np.float64).scale
    return [leaf._replace(counts=scaled_rows(leaf.counts, scale)) for leaf in _leaves(kernel.kernel, samples)]


@_leaves.register
def _(kernel: On, samples: Any) -> list[Leaf]:
    return _leaves(kernel.kernel, kernel.select(samples))


def part_weights(leaf: Leaf, trained: Leaf, coef: Matrix) -> Matrix:
    """W_p = Σᵢ coefᵢ c_p(xᵢ) of the parts of new samples, a row for each function; 0 if no training sample has p."""
    found = trained.counts
    C = sp.csr_array((found.data, found.indices, found.indptr), shape=found.shape)
    of_training = np.asarray((C.T @ coef.T).T)
    places = leaf.names.places_in(trained.names)
    weights = np.zeros((len(coef), len(places)))
    weights[:, places >= 0] = of_training[:, places[places >= 0]]
    return weights


def part_texts(names: Names) -> list[str]:
    """A description of every part: the substring, with its position if that counts; the subtree; the item."""
    if isinstance(names, SubtreeNames):
        return _subtree_texts(names)
    if isinstance(names, PathNames):
        return [f"{_label(u)} to {_label(v)} in {d} step{'' if d == 1 else 's'}" for u, v, d in names.names]
    placed = [isinstance(name, tuple) and len(name) == 2 and isinstance(name[1], str) for name in names.names]
    return [
        f"{name[1]} at {name[0]}" if is_placed else str(name)
        for name, is_placed in zip(names.names, placed, strict=True)
    ]


def _label(label: Any) -> str:
    return "•" if label is None else str(label)


def _subtree_texts(names: SubtreeNames) -> list[str]:
    """root(neighbour, edge-neighbour, ...): the neighbours of a tree of height h are trees of height h − 1."""
    below = roots = [_label(label) for label in names.labels.names]
    edges = ["" if label is None else f"{label}-" for label in names.edge_labels.names]
    found = list(below)
    for level in names.levels:
        above, tops = [], []
        for r, head in enumerate(level.head.tolist()):
            row = level.values[level.indptr[r] : level.indptr[r + 1]].tolist()
            children = ", ".join(sorted(edges[v // level.n_below] + below[v % level.n_below] for v in row))
            text = f"{roots[head]}({children})"
            above.append(text if len(text) <= WIDEST else text[: WIDEST - 1] + "…")
            tops.append(roots[head])
        found, below, roots = found + above, above, tops
    return found


# ---- places ----------------------------------------------------------------------------------------------------------


def part_places(leaf: Leaf, row: int, contributions: Vector) -> Vector | None:
    """The contributions of a sample's parts at its letters or nodes; None if its parts have no place.

    ``contributions`` has a number for each of the leaf's parts. A part that occurs several times shares its
    contribution equally among its occurrences, an occurrence of a substring among its letters.
    """
    sample, kernel = leaf.samples[row], leaf.kernel
    if isinstance(kernel, WeisfeilerLehman):
        return _at_nodes(kernel, sample, leaf.names, contributions)
    if isinstance(kernel, WeightedDegree):
        found = np.zeros(len(sample))
        used = np.flatnonzero(contributions)
        names = leaf.names.names
        for number in used.tolist():
            start, run = names[number]
            found[start : start + len(run)] += contributions[number] / len(run)
        return found
    if isinstance(kernel, Mismatch):
        return _at_windows(kernel, sample, leaf.names, contributions)
    if isinstance(kernel, Spectrum | CommonSubstrings):
        return _at_occurrences(sample, leaf.names, contributions)
    return None


def _at_occurrences(sample: str, names: Names, contributions: Vector) -> Vector:
    texts, used = names.names, np.flatnonzero(contributions)
    value = {texts[number]: float(contributions[number]) for number in used.tolist()}
    found = np.zeros(len(sample))
    for length in sorted({len(text) for text in value}):
        runs = [sample[p : p + length] for p in range(len(sample) - length + 1)]
        times = Counter(runs)
        for p, run in enumerate(runs):
            if run in value:
                found[p : p + length] += value[run] / (times[run] * length)
    return found


def _at_windows(kernel: Mismatch, sample: str, names: Names, contributions: Vector) -> Vector:
    """A string u belongs to the windows with at most m mismatches to it."""
    found = np.zeros(len(sample))
    windows = [sample[p : p + kernel.k] for p in range(len(sample) - kernel.k + 1)]
    if not windows:
        return found
    near = CountFeatures.of(counted(replace(kernel, normalize=False), windows), np.float64).over(names).X
    N = near if isinstance(near, np.ndarray) else near.toarray()
    times = N.sum(axis=0)
    shares = N @ np.divide(contributions, times, out=np.zeros(len(times)), where=times > 0)
    for p, share in enumerate(shares.tolist()):
        found[p : p + kernel.k] += share / kernel.k
    return found


def _at_nodes(kernel: WeisfeilerLehman, sample: Any, names: Names, contributions: Vector) -> Vector:
    """A subtree belongs to the nodes at which it is rooted."""
    _, numbers, own = kernel.subtrees(as_objects(kernel, [sample]))
    places = own.places_in(names)
    found = np.zeros(len(numbers[0]))
    for at in numbers:
        times = np.bincount(at, minlength=len(own))
        known = places[at] >= 0
        found[known] += contributions[places[at[known]]] / times[at[known]]
    return found
