"""Rows 23 and 24: kernels on sets, and kernels of heat that spreads."""

import numpy as np
import pytest

from mercer import SVC, Graph, GraphDiffusion, Hellinger, InformationDiffusion, Intersection, Jaccard, datasets
from mercer.theory import bounds


def test_23_sets():
    """[SSBD] 16.2: |x ∩ z| is the inner product of indicator vectors; shares of common items are a kernel too."""
    x, z = {"milk", "bread", "eggs"}, {"milk", "tea"}
    items = sorted(x | z)
    indicators = [np.array([item in basket for item in items], float) for basket in (x, z)]
    assert Intersection()([x], [z])[0, 0] == indicators[0] @ indicators[1] == 1
    assert Jaccard()([x], [z])[0, 0] == pytest.approx(1 / 4)


@pytest.mark.parametrize("d", [200, 20_000])
def test_23_supermarket(d):
    """[SSBD] Ex. 16.5: margin 1/√(4k+1) on the sphere √(s+1), the k items found, whatever the number of items."""
    s, k, n = 8, 3, 600
    data = datasets.make_baskets(n, d, s, k)
    X, y = data.X, data.y
    model = SVC(kernel=Intersection() + 1.0, C=np.inf, fit_intercept=False).fit(X[:400], y[:400])
    # the hyperplane of the hint has this margin, so that the largest one is not smaller
    assert model.margin_[0] >= (1 - 1e-3) / np.sqrt(4 * k + 1)
    error = 1 - model.score(X[400:], y[400:])
    assert error < 0.02 < bounds.hard_margin(gamma=(4 * k + 1) ** -0.5, rho=(s + 1) ** 0.5, n=400)
    weights = {item: 0.0 for basket in X for item in basket}
    for basket, beta in zip(model.support_vectors_, model.dual_coef_[0], strict=True):
        for item in basket:
            weights[item] += beta
    assert set(sorted(weights, key=weights.get)[-k:]) == data.secret


def test_24_diffusion_on_graphs():
    """[M5]: exp(-βL), the limit of (1 - βL/m)^m: many small steps of heat to the neighbours."""
    graph = Graph([(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)])
    A = graph.adjacency.toarray()
    L = np.diag(A.sum(axis=1)) - A
    steps = np.linalg.matrix_power(np.eye(5) - 0.8 * L / 2**20, 2**20)
    np.testing.assert_allclose(GraphDiffusion(graph, 0.8)(range(5)), steps, atol=1e-5)


def test_24_information_diffusion():
    """[M5]: heat on the simplex of distributions, where the distance is 2 arccos Σ√(θη)."""
    x, z = np.array([3.0, 1.0, 0.0]), np.array([1.0, 1.0, 2.0])
    cosine = np.sqrt(x / 4) @ np.sqrt(z / 4)
    assert Hellinger()([x], [z])[0, 0] == pytest.approx(cosine)
    distance = 2 * np.arccos(cosine)
    assert InformationDiffusion(0.2)([x], [z])[0, 0] == pytest.approx(np.exp(-(distance**2) / (4 * 0.2)))
