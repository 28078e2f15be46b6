"""Check the edges, labels and weights that users give for a graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Vector


def square_of_numbers(matrix: Any) -> Any:
    """Return a square matrix of numbers, or raise."""
    if not sp.issparse(matrix):
        try:
            matrix = np.asarray(matrix)
        except ValueError:
            raise InvalidInputError("An adjacency matrix must be square, but its rows differ in length.") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        edges = " For an array of edges, use Graph(edges)." if matrix.ndim == 2 and matrix.shape[1] == 2 else ""
        raise InvalidInputError(f"An adjacency matrix must be square, but the shape is {matrix.shape}.{edges}")
    if matrix.dtype.kind not in "fiub":
        raise InvalidInputError(f"An adjacency matrix must contain numbers, but it is of type {matrix.dtype}.")
    return matrix


def is_symmetric(n: int, rows: Vector, columns: Vector, values: Vector) -> bool:
    """Whether a sparse matrix of n rows, given by its entries, equals its transpose."""
    here, there = (
        np.argsort(key) for key in (rows.astype(np.int64) * n + columns, columns.astype(np.int64) * n + rows)
    )
    same = np.array_equal(rows[here], columns[there]) and np.array_equal(columns[here], rows[there])
    return same and np.array_equal(values[here], values[there])


def pairs_of(edges: Any) -> tuple[Any, bool]:
    """(pairs, of_numbers): the edges as an array of whole numbers, or as a list of pairs of any nodes."""
    if isinstance(edges, np.ndarray):
        if edges.size == 0:
            return np.empty((0, 2), np.int64), True
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise InvalidInputError(f"An array of edges must have the shape (m, 2), but the shape is {edges.shape}.")
        if edges.dtype.kind in "iu":
            return edges.astype(np.int64), True
        return edges.tolist(), False
    if isinstance(edges, str | bytes | Mapping) or not isinstance(edges, Iterable):
        raise InvalidInputError(f"edges must be pairs of nodes such as [(0, 1), (1, 2)], but is {edges!r}.")
    pairs = list(edges)
    for i, pair in enumerate(pairs):
        if isinstance(pair, str | bytes) or not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
            raise InvalidInputError(
                f"Edge {i} is {pair!r}: an edge is a pair of nodes. Give labels and weights as edge_labels and weights."
            )
    if all(type(u) is int and type(v) is int for u, v in pairs):
        return np.array(pairs, dtype=np.int64).reshape(-1, 2), True
    return pairs, False


def named_by_edges(pairs: Any, of_numbers: bool) -> tuple[list[Hashable] | None, Vector]:
    """(names, ends): the nodes are those that have edges; names is None if they are 0, ..., n - 1."""
    if of_numbers:
        distinct, ends = np.unique(pairs, return_inverse=True)
        ends = ends.reshape(-1, 2)
        return (None if np.array_equal(distinct, np.arange(len(distinct))) else distinct.tolist()), ends
    numbers: dict[Hashable, int] = {}
    try:
        found = [(numbers.setdefault(u, len(numbers)), numbers.setdefault(v, len(numbers))) for u, v in pairs]
    except TypeError:
        raise InvalidInputError("The nodes of a graph must be hashable: numbers, strings or tuples.") from None
    return list(numbers), np.array(found, dtype=np.int64).reshape(-1, 2)


def ends_of_named(pairs: Any, numbers: dict[Hashable, int]) -> Vector:
    """The numbers of the two nodes of each edge, for named nodes."""
    pairs = pairs.tolist() if isinstance(pairs, np.ndarray) else pairs
    for u, v in pairs:
        for end in (u, v):
            if not isinstance(end, Hashable) or end not in numbers:
                raise InvalidInputError(f"The edge ({u!r}, {v!r}) leads to {end!r}, which is not a node of the graph.")
    return np.array([(numbers[u], numbers[v]) for u, v in pairs], dtype=np.int64).reshape(-1, 2)


def ends_of_numbered(pairs: Any, of_numbers: bool, n: int) -> Vector:
    """The numbers of the two nodes of each edge, for nodes 0, ..., n - 1."""
    if not of_numbers:
        pairs = ends_of_named(pairs, {i: i for i in range(n)})
    outside = (pairs < 0) | (pairs >= n)
    if outside.any():
        u, v = pairs[int(np.argmax(outside.any(axis=1)))].tolist()
        numbered = f"{n} nodes, numbered 0 to {n - 1}" if n else "no nodes"
        raise InvalidInputError(f"The edge ({u}, {v}) leads out of the graph: it has {numbered}.")
    return pairs


def sequence_of(name: str, values: Any) -> list[Any]:
    """Labels as a list; raises if they are not a sequence."""
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InvalidInputError(
                f"{name} has the shape {values.shape}: give one label per element. For vectors, see SetOf."
            )
        return values.tolist()
    if not isinstance(values, Iterable):
        raise InvalidInputError(f"{name}={values!r} must be a sequence with one label per element, or a dict.")
    return list(values)


def labels_of(what: str, labels: list[Any] | None) -> tuple[Hashable, ...] | None:
    """Labels as a tuple, None if all of them are None; raises if one is not hashable, or NaN."""
    if labels is None or all(label is None for label in labels):
        return None
    try:
        distinct = set(labels)
    except TypeError:
        raise InvalidInputError(f"A {what} label must be hashable: a number, a string or a tuple.") from None
    if any(label != label for label in distinct):
        raise InvalidInputError(f"A {what} label is NaN, which is not equal to itself: replace missing labels.")
    return tuple(labels)


def edge_labels_of(labels: Any, pairs: Any, directed: bool) -> list[Any] | None:
    """The label of each edge, as a list; None if there are none."""
    if labels is None:
        return None
    if isinstance(labels, Mapping):
        found = []
        for u, v in pairs:
            if (u, v) in labels:
                found.append(labels[u, v])
            elif not directed and (v, u) in labels:
                found.append(labels[v, u])
            else:
                raise InvalidInputError(f"edge_labels has no label for the edge ({u!r}, {v!r}).")
        return found
    labels = sequence_of("edge_labels", labels)
    if len(labels) != len(pairs):
        raise InvalidInputError(
            f"There are {len(pairs)} edges, but {len(labels)} edge labels: give one label for each edge."
        )
    return labels


def weights_of(weights: Any, m: int) -> Vector | None:
    """The weight of each edge, finite and not 0; None if all are 1."""
    if weights is None:
        return None
    try:
        found = np.array(weights if isinstance(weights, np.ndarray) else list(weights), dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError("weights must be numbers, one for each edge.") from None
    if found.shape != (m,):
        raise InvalidInputError(f"There are {m} edges, but weights has the shape {found.shape}.")
    if not np.all(np.isfinite(found)) or np.any(found == 0):
        raise InvalidInputError("weights must be finite and not 0: leave out edges of weight 0.")
    return None if np.all(found == 1) else found


def attributes_of(what: str, name: str, data: list[Any]) -> list[Any] | None:
    """An attribute of all nodes or edges of a networkx graph; None if no node or edge has it."""
    found = sum(name in entry for entry in data)
    if found == 0:
        return None
    if found < len(data):
        raise InvalidInputError(
            f"{len(data) - found} of the {len(data)} {what} have no attribute {name!r}: give it to all of them, or to "
            "none."
        )
    return [entry[name] for entry in data]
