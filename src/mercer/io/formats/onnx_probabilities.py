"""Write probabilities into an ONNX graph, all in float64: powers of small numbers magnify float32's rounding errors."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from mercer.io.formats.onnx_graph import Graph
from mercer.io.formats.plain_probabilities import (
    ADVANTAGE,
    SMALLEST,
    SMALLEST_POWER,
    Logistic,
    Pieces,
    PlainProbabilities,
)


def write_probabilities(graph: Graph, plain: PlainProbabilities, values: str, winner: str, k: int) -> str:
    """Write the probabilities of k classes, from the values of all problems and the index of the predicted class."""
    double = graph.onnx.TensorProto.DOUBLE
    f = graph.op("Cast", values, to=double)
    if plain.softmax:
        return graph.op("Softmax", f, axis=1)
    p = _maps(graph, plain, f)
    if plain.clipped:
        p = graph.op("Min", graph.op("Max", p, np.array(SMALLEST), exact=True), np.array(1.0 - SMALLEST), exact=True)
    if k == 2:
        # the columns 1 - p and p
        p = graph.op("Add", graph.op("Mul", p, np.array([[-1.0, 1.0]]), exact=True), np.array([[1.0, 0.0]]), exact=True)
    elif plain.pairs:
        p = _coupled(graph, p, k)
    else:
        p = _shares(graph, graph.op("Max", p, np.array(SMALLEST_POWER), exact=True))
    if plain.power != 1.0:
        logs = graph.op("Log", graph.op("Max", p, np.array(SMALLEST_POWER), exact=True))
        p = graph.op("Softmax", graph.op("Mul", logs, np.full((1, k), plain.power), exact=True), axis=1)
    return _agreed(graph, p, winner, k) if plain.agree else p


def _shares(graph: Graph, p: str) -> str:
    return graph.op("Div", p, graph.total(p, 1))


def _maps(graph: Graph, plain: PlainProbabilities, f: str) -> str:
    """Write the probability of each problem's positive class, a column per problem."""
    if all(isinstance(one, Logistic) for one in plain.maps):
        table = np.array([[m.slope, m.offset, m.a, m.b, m.c] for m in plain.maps if isinstance(m, Logistic)]).T
        return _logistic(graph, f, *(row[None, :] for row in table))
    columns = []
    for number, one in enumerate(plain.maps):
        column = graph.op("Gather", f, np.array([number], np.int64), axis=1)
        if isinstance(one, Logistic):
            columns.append(
                _logistic(graph, column, *(np.array([[v]]) for v in (one.slope, one.offset, one.a, one.b, one.c)))
            )
        else:
            columns.append(_pieces(graph, column, one))
    return graph.op("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]


def _logistic(graph: Graph, f: str, slope: object, offset: object, a: object, b: object, c: object) -> str:
    z = graph.op("Add", graph.op("Mul", f, slope, exact=True), offset, exact=True)
    above = graph.op("Mul", _softplus(graph, z), b, exact=True)
    below = graph.op("Mul", _softplus(graph, graph.op("Neg", z)), a, exact=True)
    return graph.op("Sigmoid", graph.op("Add", graph.op("Sub", above, below), c, exact=True))


def _softplus(graph: Graph, z: str) -> str:
    """log(1 + exp(z)) without overflow."""
    small = graph.op("Exp", graph.op("Neg", graph.op("Abs", z)))
    return graph.op("Add", graph.op("Relu", z), graph.op("Log", graph.op("Add", small, np.array([[1.0]]), exact=True)))


def _pieces(graph: Graph, f: str, one: Pieces) -> str:
    if len(one.thresholds) == 0:
        return graph.op("Add", graph.op("Mul", f, np.zeros((1, 1)), exact=True), one.base[:1, None], exact=True)
    x, whole = one.thresholds[None, :], graph.onnx.TensorProto.INT64
    below = graph.op("Cast", graph.op("Greater", f, x, exact=True), to=whole)
    reached = graph.op("Cast", graph.op("GreaterOrEqual", f, x, exact=True), to=whole)
    i = graph.total(graph.op("Add", below, reached), 1)
    base, slope, anchor = (
        graph.op("Gather", table, i, axis=0, exact=True) for table in (one.base, one.slope, one.anchor)
    )
    return graph.op("Add", base, graph.op("Mul", slope, graph.op("Sub", f, anchor)))


def _coupled(graph: Graph, r: str, k: int) -> str:
    """Pairwise coupling: solve Qp = λe, e'p = 1. p is a multiple of z with (Q + ee')z = e, by Gaussian elimination.

    Q + ee' is positive definite, because v'Qv > 0 for every v ≠ 0 with e'v = 0: elimination needs no pivoting.
    """
    pairs = list(combinations(range(k), 2))
    place, other, constant = np.zeros((len(pairs), k * k)), np.zeros((len(pairs), k * k)), np.zeros((1, k * k))
    for number, (i, j) in enumerate(pairs):
        place[number, i * k + j], place[number, j * k + i] = 1.0, -1.0
        other[number, j * k + i], other[number, i * k + j] = 1.0, -1.0
        constant[0, j * k + i] = 1.0
    flipped = constant.reshape(k, k).T.reshape(1, k * k)
    R = graph.op("Add", graph.op("MatMul", r, place, exact=True), constant, exact=True)  # R[i, j] = P(i | i or j)
    T = graph.op("Add", graph.op("MatMul", r, other, exact=True), flipped, exact=True)  # its transpose
    # the diagonal: Σ_i R[i, j]²; R[i, i] is 0
    spread = np.zeros((k * k, k * k))
    for i in range(k):
        for j in range(k):
            spread[i * k + j, j * k + j] = 1.0
    squares = graph.op("MatMul", graph.op("Mul", R, R), spread, exact=True)
    Q = graph.op("Add", graph.op("Sub", squares, graph.op("Mul", R, T)), np.ones((1, k * k)), exact=True)
    # the matrix of the system and its right-hand side
    system = graph.op("Reshape", Q, np.array([-1, k, k], np.int64))
    right = graph.op(
        "Add", graph.op("Mul", graph.total(system, 2), np.zeros((1, k, 1)), exact=True), np.ones((1, k, 1)), exact=True
    )
    A = graph.op("Concat", system, right, axis=2)
    for t in range(k):
        row = graph.op("Gather", A, np.array([t], np.int64), axis=1)
        row = graph.op("Div", row, graph.op("Gather", row, np.array([t], np.int64), axis=2))
        column = graph.op("Gather", A, np.array([t], np.int64), axis=2)
        unit = np.zeros((1, k, 1))
        unit[0, t] = 1.0
        # row t becomes the pivot row; a multiple of it is subtracted from all others
        kept = graph.op("Mul", A, 1.0 - unit, exact=True)
        gained = graph.op(
            "Mul", graph.op("Sub", unit, graph.op("Mul", column, 1.0 - unit, exact=True), exact=True), row
        )
        A = graph.op("Add", kept, gained)
    z = graph.op("Squeeze", graph.op("Gather", A, np.array([k], np.int64), axis=2), np.array([2], np.int64))
    return _shares(graph, graph.op("Relu", z))


def _agreed(graph: Graph, p: str, winner: str, k: int) -> str:
    """Project on the nearest probabilities whose largest is that of the predicted class; see ``calibration.agree``."""
    numbers = np.arange(k)[None, :]
    is_winner = graph.op("Equal", graph.op("Unsqueeze", winner, np.array([1], np.int64)), numbers)
    own = graph.total(graph.op("Where", is_winner, p, np.zeros((1, k)), exact=True), 1)
    others = graph.op("Where", is_winner, -np.ones((1, k)), p, exact=True)
    # the level is the largest average of the winner with the 0, 1, 2, … largest others
    graph.nodes.append(
        graph.onnx.helper.make_node(
            "TopK", [others, graph.constant(np.array([k - 1], np.int64))], ["_largest", "_places"], axis=1
        )
    )
    sums = graph.op("MatMul", "_largest", np.triu(np.ones((k - 1, k)), 1), exact=True)
    averages = graph.op("Mul", graph.op("Add", sums, own), 1.0 / np.arange(1, k + 1)[None, :], exact=True)
    level = graph.op("ReduceMax", averages, axes=[1], keepdims=1)
    agreed = graph.op("Where", is_winner, level, graph.op("Min", p, level))
    share = graph.op("Add", graph.op("Mul", own, np.array([[0.5]]), exact=True), np.array([[0.25]]), exact=True)
    rest = graph.op(
        "Mul", graph.op("Sub", np.array([[1.0]]), share, exact=True), np.array([[ADVANTAGE / k]]), exact=True
    )
    agreed = graph.op("Add", graph.op("Mul", agreed, np.full((1, k), 1.0 - ADVANTAGE), exact=True), rest)
    advantage = graph.op("Mul", share, np.array([[ADVANTAGE]]), exact=True)
    more = graph.op("Where", is_winner, advantage, np.zeros((1, k)), exact=True)
    return _shares(graph, graph.op("Add", agreed, more))
