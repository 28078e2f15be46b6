"""Contributions of substrings, subtrees and items to a prediction."""

from collections import Counter

import matplotlib
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.naming import named

from mercer import (
    SVC,
    SVR,
    CommonSubstrings,
    GaussianProcessRegressor,
    Graph,
    Intersection,
    InvalidInputError,
    KernelLogisticRegression,
    KernelRidge,
    Mismatch,
    MKLClassifier,
    Normalized,
    NuSVC,
    On,
    OneClassSVM,
    ShortestPath,
    Spectrum,
    Subsequence,
    WeightedDegree,
    WeisfeilerLehman,
    contributions,
)

matplotlib.use("Agg")

RNG = np.random.default_rng(0)
STRINGS = ["".join(RNG.choice(list("acgt"), size=n)) for n in RNG.integers(3, 20, size=40)]
LABELS = np.array([int("a" in s[:3]) for s in STRINGS])
NEW = ["acgtacgtac", "ttttt", "ac", "", "gattaca", "xyz"]


def random_graph(rng):
    n = int(rng.integers(2, 8))
    edges = [(i, int(rng.integers(0, i))) for i in range(1, n)] + [tuple(rng.integers(0, n, size=2).tolist())]
    return Graph([(u, v) for u, v in edges if u != v], n_nodes=n, node_labels=rng.choice(list("CNO"), size=n).tolist())


GRAPHS = [random_graph(RNG) for _ in range(30)]
GRAPH_LABELS = np.array([int("N" in g.node_labels) for g in GRAPHS])
STRING_KERNELS = {
    "spectrum": Spectrum(3),
    "weighted lengths": Spectrum(3, shortest=1, weights=(1.0, 0.5, 2.0)),
    "normalised": Spectrum(2, normalize=True),
    "mismatch": Mismatch(3, 1, alphabet="acgt"),
    "normalised mismatch": Mismatch(3, 1, normalize=True),
    "substrings": CommonSubstrings(),
    "repeated substrings": CommonSubstrings(repeated=True, normalize=True),
    "degree": WeightedDegree(3),
    "sum": 2.0 * Spectrum(2) + Normalized(WeightedDegree(2)),
    "normalised sum": Normalized(Spectrum(2) + 0.5 * Mismatch(3, 1)),
}


@pytest.mark.parametrize("name", STRING_KERNELS)
def test_contributions_of_strings_sum_to_the_decision(name):
    """f(x) − b is the sum over parts, and over letters."""
    model = SVC(kernel=STRING_KERNELS[name], C=3.0).fit(STRINGS, LABELS)
    found = contributions(model, NEW)
    f = model.decision_function(NEW)
    scale = np.abs(found.values).sum(axis=1).max() + 1.0
    np.testing.assert_allclose(found.decision_function[:, 0], f, atol=1e-12 * scale)
    for row, text in enumerate(NEW):
        letters = found.by_place(row)
        assert len(letters) == len(text)
        assert letters.sum() == pytest.approx(f[row] - model.intercept_[0], abs=1e-12 * scale)


def test_weights_are_those_of_the_feature_map():
    """A k-mer's contribution is its count times the sum of its counts in the support vectors, weighted by β."""
    model = SVC(kernel=Spectrum(2), C=3.0).fit(STRINGS, LABELS)
    found = contributions(model, NEW)

    def counts(text):
        return Counter(text[p : p + 2] for p in range(len(text) - 1))

    weight = Counter()
    for beta, text in zip(model.dual_coef_[0], model.support_vectors_, strict=True):
        for part, times in counts(text).items():
            weight[part] += beta * times
    for row, text in enumerate(NEW):
        expected = {part: times * weight[part] for part, times in counts(text).items() if weight[part] != 0}
        assert dict(found.top(row, 100)) == pytest.approx(expected, abs=1e-12)


def test_letters_of_overlapping_substrings():
    """Each letter has the k-mers that cover it, divided by k: by hand for one string."""
    model = SVC(kernel=Spectrum(2), C=3.0).fit(STRINGS, LABELS)
    parts = dict(contributions(model, ["acac"]).top(0))
    ac, ca = parts.get("ac", 0.0) / 2, parts.get("ca", 0.0)
    np.testing.assert_allclose(
        contributions(model, ["acac"]).by_place(0), [ac / 2, (ac + ca) / 2, (ca + ac) / 2, ac / 2]
    )


def test_positions_of_weighted_degree():
    """A run at another position is another part."""
    model = SVC(kernel=WeightedDegree(2), C=3.0).fit(["acgt", "acga", "tcgt", "tgca"], [1, 1, 0, 0])
    found = contributions(model, ["acgt", "gtac"])
    assert "ac at 0" in dict(found.top(0, 20))
    assert "ac at 0" not in dict(found.top(1, 20))


@pytest.mark.parametrize(
    "kernel",
    [WeisfeilerLehman(2), WeisfeilerLehman(3, normalize=True), ShortestPath(), WeisfeilerLehman(1) + 1.0],
    ids=named,
)
def test_contributions_of_graphs_sum_to_the_decision(kernel):
    """f(x) − b is the sum over subtrees, and over nodes for subtrees."""
    model = SVC(kernel=kernel, C=3.0).fit(GRAPHS[:20], GRAPH_LABELS[:20])
    found = contributions(model, GRAPHS[20:])
    f = model.decision_function(GRAPHS[20:])
    np.testing.assert_allclose(found.decision_function[:, 0], f, atol=1e-10)
    if isinstance(kernel, ShortestPath):
        with pytest.raises(InvalidInputError, match="have no place in a sample"):
            found.by_place(0)
        return
    constant = dict(found.top(0, 10_000)).get("constant", 0.0)
    for row in range(10):
        nodes = found.by_place(row)
        assert len(nodes) == GRAPHS[20 + row].n_nodes
        assert nodes.sum() + constant == pytest.approx(f[row] - model.intercept_[0], abs=1e-10)


def test_subtrees_are_described():
    """A subtree is written as its root with its neighbours in brackets."""
    water, peroxide = Graph([(0, 1), (0, 2)], node_labels="OHH"), Graph([(0, 1), (1, 2), (2, 3)], node_labels="HOOH")
    model = SVC(kernel=WeisfeilerLehman(1), C=3.0).fit([water, peroxide], [0, 1])
    found = contributions(model, [water])
    assert sorted(found.parts) == ["H", "H(O)", "O", "O(H, H)"]
    assert {part for part, _ in found.top(0, 20)} == {"O", "O(H, H)"}  # the others occur equally often in both
    model = SVC(kernel=ShortestPath(), C=3.0).fit([water, peroxide], [0, 1])
    assert "H to H in 2 steps" in contributions(model, [water]).parts


def test_sets_and_records():
    """Items of sets contribute by their weights; a column of records is explained as its values are."""
    baskets = [{"milk", "bread"}, {"milk", "tea"}, {"beer"}, {"beer", "crisps"}]
    model = SVC(kernel=Intersection()).fit(baskets, [0, 0, 1, 1])
    found = contributions(model, [{"beer", "milk"}])
    assert {part for part, _ in found.top(0)} == {"beer", "milk"}
    assert found.decision_function[0, 0] == pytest.approx(model.decision_function([{"beer", "milk"}])[0])
    records = [{"text": text} for text in STRINGS]
    model = SVC(kernel=On("text", Spectrum(2))).fit(records, LABELS)
    found = contributions(model, records[:3])
    np.testing.assert_allclose(found.decision_function[:, 0], model.decision_function(records[:3]), atol=1e-12)
    assert len(found.by_place(0)) == len(STRINGS[0])


def test_other_models():
    """Regressions, novelty detection, several classes and several targets: a sum for each function."""
    y = np.array([len(text) for text in STRINGS], dtype=float)
    for model in (
        SVR(kernel=Spectrum(2)),
        KernelRidge(kernel=Spectrum(2)),
        KernelRidge(kernel=Spectrum(2), fit_intercept=True),
    ):
        np.testing.assert_allclose(
            contributions(model.fit(STRINGS, y), NEW).decision_function[:, 0], model.predict(NEW), atol=1e-9
        )
    process = GaussianProcessRegressor(Spectrum(2), alpha=1.0, optimizer=None, normalize_y=True).fit(STRINGS, y)
    np.testing.assert_allclose(contributions(process, NEW).decision_function[:, 0], process.predict(NEW), atol=1e-9)
    both = KernelRidge(kernel=Spectrum(2)).fit(STRINGS, np.column_stack([y, -y]))
    found = contributions(both, NEW)
    np.testing.assert_allclose(found.decision_function, both.predict(NEW), atol=1e-9)
    assert found.functions == ("target 0", "target 1")
    for model in (
        OneClassSVM(kernel=Spectrum(2)),
        NuSVC(kernel=Spectrum(2), nu=0.2),
        KernelLogisticRegression(kernel=Spectrum(2)),
    ):
        model.fit(STRINGS, LABELS)
        np.testing.assert_allclose(
            contributions(model, NEW).decision_function[:, 0], model.decision_function(NEW), atol=1e-9
        )
    learnt = MKLClassifier([Spectrum(2), Spectrum(3)]).fit(STRINGS, LABELS)
    np.testing.assert_allclose(
        contributions(learnt, NEW).decision_function[:, 0], learnt.decision_function(NEW), atol=1e-9
    )
    three = np.array([min(2, text.count("g")) for text in STRINGS])
    model = SVC(kernel=Spectrum(2), decision_function_shape="ovo").fit(STRINGS, three)
    found = contributions(model, NEW)
    np.testing.assert_allclose(found.decision_function, model.decision_function(NEW), atol=1e-9)
    assert found.functions == ("0 / 1", "0 / 2", "1 / 2")
    assert found.by_place(0, function=2).sum() == pytest.approx(found.decision_function[0, 2] - found.intercept[2])


def test_pictures_and_text():
    """Letters and nodes are drawn in colours; notebooks show coloured letters."""
    model = SVC(kernel=Spectrum(2)).fit(STRINGS, LABELS)
    found = contributions(model, NEW)
    figure = found.plot(0, k=4)
    assert len(figure.axes) == 2 and len(figure.axes[1].patches) <= 4
    assert "<span style" in found._repr_html_()
    assert repr(found).startswith("contributions of ")
    model = SVC(kernel=WeisfeilerLehman(1)).fit(GRAPHS, GRAPH_LABELS)
    graphs = contributions(model, GRAPHS)
    assert len(graphs.plot(3).axes) == 2
    assert graphs._repr_html_().startswith("<pre>")
    model = SVC(kernel=ShortestPath()).fit(GRAPHS, GRAPH_LABELS)
    assert len(contributions(model, GRAPHS).plot(3).axes) == 1
    matplotlib.pyplot.close("all")


def test_pipeline():
    """A pipeline's steps are applied first."""
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    model = make_pipeline(lower, SVC(kernel=Spectrum(2))).fit(STRINGS, LABELS)
    upper = [text.upper() for text in NEW]
    np.testing.assert_allclose(
        contributions(model, upper).decision_function[:, 0], model.decision_function(upper), atol=1e-12
    )


def test_unusable():
    """Questions that cannot be answered are refused with a reason."""
    model = SVC(kernel=Subsequence(2)).fit(STRINGS, LABELS)
    with pytest.raises(InvalidInputError, match=r"Subsequence\(k=2.*\) does not count parts"):
        contributions(model, NEW)
    model = SVC().fit(RNG.normal(size=(20, 2)), LABELS[:20])
    with pytest.raises(InvalidInputError, match=r"Gaussian\(.*\) does not count parts"):
        contributions(model, [[0.0, 1.0]])
    with pytest.raises(InvalidInputError, match="matrix of kernel values"):
        contributions(SVC(kernel="precomputed").fit(np.eye(20), LABELS[:20]), np.eye(20))
    with pytest.raises(InvalidInputError, match="was given FunctionTransformer"):
        contributions(FunctionTransformer(), NEW)
    model = SVC(kernel=Spectrum(2)).fit(STRINGS, LABELS)
    with pytest.raises(InvalidInputError, match="sample 1 is missing"):
        contributions(model, ["a", None])
    found = contributions(model, NEW)
    for call, words in (
        (lambda: found.top(6), "row=6 was given: allowed are whole numbers from 0 to 5"),
        (lambda: found.of(1), "function=1 was given"),
        (lambda: found.top(0, 0), "k=0 was given"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            call()
