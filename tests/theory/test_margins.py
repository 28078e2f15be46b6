"""Margins: by hand, in explicit feature spaces, and of models that others have fitted."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as SklearnSVC
from sklearn.svm import LinearSVC as SklearnLinearSVC

from mercer import (
    SVC,
    SVR,
    KernelCentroid,
    Linear,
    NuSVC,
    OrdinalSVC,
    OutputCodeSVC,
    PegasosClassifier,
    Perceptron,
    Polynomial,
    error_bounds,
)
from mercer.exceptions import InvalidInputError
from mercer.theory import margins


def three_classes(n=60, d=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, d)) + 2.5 * np.eye(3, d)[y], y


def test_by_hand():
    """w = (1, 0), b = −1: distances are the first coordinate less one; the margin of the strip is 1/|w| = 1."""
    X, y = np.array([[0.0, 0.0], [2.0, 3.0], [4.0, 0.0], [-3.0, 0.0]]), np.array(["a", "b", "b", "a"])
    report = margins(SVC(C=np.inf, kernel="linear").fit(X[:2] * [1, 0], y[:2]), X, y)
    (problem,) = report.problems
    np.testing.assert_allclose(report.functional, [1.0, 1.0, 3.0, 4.0])
    np.testing.assert_allclose(report.geometric, [1.0, 1.0, 3.0, 4.0])
    assert (problem.positive, problem.negative) == ("b", "a")
    assert report.gamma == pytest.approx(1.0) and report.rho == pytest.approx(4.0)
    assert problem.ratio == pytest.approx(16.0) and problem.separates and not problem.homogeneous


def test_in_an_explicit_feature_space():
    """With (⟨x, z⟩ + 1)², distances are those of (x², √2 x, 1) to the plane whose normal vector is Σ β φ(x)."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    y = np.where(np.abs(x) > 0.7, 1, -1)
    X, phi = x[:, None], np.column_stack([x**2, np.sqrt(2) * x, np.ones(40)])
    model = SVC(C=3.0, kernel=Polynomial(2, 1.0, 1.0), tol=1e-8).fit(X, y)
    w = model.dual_coef_[0] @ phi[model.support_]
    report = margins(model, X, y)
    np.testing.assert_allclose(report.geometric, y * (phi @ w + model.intercept_) / np.linalg.norm(w), rtol=1e-6)
    assert report.rho == pytest.approx(np.linalg.norm(phi, axis=1).max())


def test_the_hard_margin_is_attained():
    """γ of a hard-margin machine is its margin_, and every support vector has it."""
    X, y = three_classes()
    X, y = X[y < 2] + 4 * y[y < 2, None], y[y < 2]
    model = SVC(C=np.inf, kernel="linear", tol=1e-9).fit(X, y)
    report = margins(model, X, y)
    assert report.gamma == pytest.approx(model.margin_[0], rel=1e-7)
    np.testing.assert_allclose(report.geometric[model.support_], report.gamma, rtol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_inside_a_hard_margin(kernel, seed):
    """Samples on the edge, within the fit's tolerance, are not inside; those inside a soft margin are counted."""
    rng = np.random.default_rng(seed)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 2)) + 7.0 * y[:, None]
    (hard,) = margins(SVC(C=np.inf, kernel=kernel).fit(X, y), X, y).problems
    assert np.min(hard.functional) == pytest.approx(1.0, abs=1e-3)
    assert hard.n_inside == 0 and "inside the strip: 0; closest" in str(hard)
    soft = SVC(C=1e-3, kernel=kernel).fit(X, y)
    (problem,) = margins(soft, X, y).problems
    assert problem.n_inside == np.sum((problem.functional > 0) & (problem.functional < 1 - soft.tol)) > 30


def test_the_tolerance_of_the_edge():
    """tol tells how far below 1 a sample is still on the edge."""
    X, y = three_classes()
    X, y = X[y < 2], y[y < 2]
    model = SVC().fit(X, y)
    f = margins(model, X, y).functional
    for tol in (0.0, 0.01, 0.5):
        assert margins(model, X, y, tol=tol).problems[0].n_inside == np.sum((f > 0) & (f < 1 - tol))


def test_a_perceptron_has_no_strip():
    """Its values depend on eta0: 1 is not the edge of anything."""
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    for eta0 in (1e-3, 1e3):
        (problem,) = margins(Perceptron(eta0=eta0).fit(X, y), X, y).problems
        assert problem.n_inside == 0 and "strip" not in str(problem)


def test_pipelines_and_searches():
    """The machine within is asked, about the samples as it sees them."""
    X, y = three_classes()
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    Z = pipeline[0].transform(X)
    np.testing.assert_array_equal(margins(pipeline, X, y).geometric, margins(pipeline[-1], Z, y).geometric)
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 10.0]}, cv=3).fit(X, y)
    best = search.best_estimator_[-1]
    np.testing.assert_array_equal(margins(search, X, y).geometric, margins(best, Z, y).geometric)


def test_scikit_learns_kernel_matrix():
    """|w| of scikit-learn's SVC with a precomputed kernel is computed from the matrix of the training samples."""
    X, y = three_classes()
    K = X @ X.T
    expected = [p.norm for p in margins(SklearnSVC(kernel="linear").fit(X, y), X, y).problems]
    model = SklearnSVC(kernel="precomputed").fit(K, y)
    np.testing.assert_allclose([p.norm for p in margins(model, K, y).problems], expected, rtol=1e-6)
    with pytest.raises(InvalidInputError, match="60 training samples, but 5 samples were given"):
        margins(model, K[:5], y[:5])


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_scikit_learns_machine_has_the_same(kernel):
    """|w| of scikit-learn's SVC is computed from its dual coefficients."""
    X, y = three_classes()
    ours = margins(SVC(kernel=kernel, tol=1e-7).fit(X, y), X, y)
    theirs = margins(SklearnSVC(kernel=kernel, tol=1e-7).fit(X, y), X, y)
    for one, other in zip(ours.problems, theirs.problems, strict=True):
        assert one.norm == pytest.approx(other.norm, rel=1e-4)
        np.testing.assert_allclose(one.geometric, other.geometric, rtol=1e-3, atol=1e-4)
        assert one.name == other.name


def test_linear_models_are_one_against_the_rest():
    """coef_ has a row per class: every sample takes part in each problem."""
    X, y = three_classes()
    model = SklearnLinearSVC().fit(X, y)
    report = margins(model, X, y)
    assert [p.name for p in report.problems] == [f"{c} against the rest" for c in range(3)]
    sign = np.where(y == 1, 1, -1)
    expected = sign * model.decision_function(X)[:, 1] / np.linalg.norm(model.coef_[1])
    np.testing.assert_allclose(report.problems[1].geometric, expected)
    np.testing.assert_allclose(report.geometric, np.min([p.geometric for p in report.problems], axis=0))


def test_machines_without_pairs():
    """Perceptrons, Pegasos and class means say what |w| is; their decision function has the signs of the classes."""
    X, y = three_classes()
    two, labels = X[y < 2], y[y < 2]
    sign = np.where(labels == 1, 1, -1)
    for model in (
        Perceptron(kernel="rbf", early_stopping=True),
        PegasosClassifier(kernel="rbf", random_state=0),
        KernelCentroid(),
    ):
        report = margins(model.fit(two, labels), two, labels)
        np.testing.assert_allclose(report.functional, sign * model.decision_function(two))
        np.testing.assert_allclose(report.geometric * model.rkhs_norm_[0], report.functional)
        assert report.problems[0].positive == 1
    with pytest.raises(InvalidInputError, match="Use two classes"):
        margins(KernelCentroid().fit(X, y), X, y)


def test_any_linear_classifier():
    """coef_, intercept_ and decision_function are enough."""
    X, y = three_classes()
    model = LogisticRegression().fit(X, y == 0)
    report = margins(model, X, y == 0)
    w = model.coef_[0]
    expected = np.where(y == 0, 1, -1) * (X @ w + model.intercept_) / np.linalg.norm(w)
    np.testing.assert_allclose(report.geometric, expected)


def test_samples_take_part_in_the_pairs_of_their_class():
    """Of three classes each sample has the smaller margin of two problems."""
    X, y = three_classes()
    report = margins(SVC().fit(X, y), X, y)
    assert [len(p.rows) for p in report.problems] == [40, 40, 40]
    smallest = np.full(60, np.inf)
    for problem in report.problems:
        assert set(y[problem.rows]) == {problem.positive, problem.negative}
        smallest[problem.rows] = np.minimum(smallest[problem.rows], problem.geometric)
    np.testing.assert_array_equal(report.geometric, smallest)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_scaling_the_samples(scale):
    """Scales γ and ρ, and leaves (ρ/γ)² as it was."""
    X, y = three_classes()
    X, y = X[y < 2] + 4 * y[y < 2, None], y[y < 2]
    report = margins(SVC(C=np.inf, kernel="linear").fit(scale * X, y), scale * X, y)
    reference = margins(SVC(C=np.inf, kernel="linear").fit(X, y), X, y)
    assert report.gamma == pytest.approx(scale * reference.gamma, rel=1e-3)
    assert report.problems[0].ratio == pytest.approx(reference.problems[0].ratio, rel=1e-3)


@pytest.mark.parametrize("kind", ["csr", "frame", "list", "float32"])
def test_input_formats(kind):
    """margins takes the same formats as fit."""
    X, y = three_classes()
    given = {"csr": sp.csr_array, "frame": pd.DataFrame, "list": np.ndarray.tolist, "float32": np.float32}[kind](X)
    model = SVC(kernel="rbf").fit(given, y)
    expected = margins(SVC(kernel="rbf").fit(X, y), X, y).geometric
    np.testing.assert_allclose(margins(model, given, y).geometric, expected, rtol=1e-2, atol=1e-3)


def test_a_kernel_matrix_and_a_function():
    """The radius of a precomputed kernel is read from the diagonal, that of a function from what it returns."""
    X, y = three_classes()
    reference = margins(SVC(kernel=Linear()).fit(X, y), X, y)
    K = X @ X.T
    for model, given in ((SVC(kernel="precomputed").fit(K, y), K), (SVC(kernel=lambda A, B: A @ B.T).fit(X, y), X)):
        report = margins(model, given, y)
        assert report.rho == pytest.approx(reference.rho)
        assert report.gamma == pytest.approx(reference.gamma, rel=1e-2)
    with pytest.raises(InvalidInputError, match=r"^The kernel values of 5 samples with each other are needed"):
        margins(SVC(kernel="precomputed").fit(K, y), K[:5], y[:5])


def test_no_hyperplane():
    """w = 0 separates nothing: samples are infinitely far on the side of the intercept."""
    X, y = np.zeros((5, 2)), np.array([0, 0, 0, 1, 1])
    report = margins(SVC(kernel="linear").fit(X, y), X, y)
    assert report.problems[0].norm == 0
    assert set(report.geometric) <= {-np.inf, 0.0, np.inf}
    assert not report.separates and "NOT separated" in str(report)


def test_nu_svc():
    """The published machine has the margin 1 in functional units, like SVC's."""
    X, y = three_classes()
    model = NuSVC(nu=0.2, tol=1e-8).fit(X, y)
    report = margins(model, X, y)
    for problem, certificate in zip(report.problems, model.certificates_, strict=True):
        assert problem.norm > 0 and certificate.valid
        on_edge = np.isclose(problem.functional, 1.0, atol=1e-5)
        assert on_edge.sum() >= 2


class TestErrors:
    def test_regression(self):
        """A regression has no sides."""
        model = SVR().fit([[0.0], [1.0]], [0.0, 1.0])
        with pytest.raises(InvalidInputError) as found:
            margins(model, [[0.0], [1.0]], [0.0, 1.0])
        assert str(found.value) == ("margins needs a fitted classifier such as SVC, but was given SVR.")

    def test_unknown_label(self):
        """Labels that the model does not know have no side."""
        model = SVC().fit([[0.0], [1.0]], ["a", "b"])
        with pytest.raises(InvalidInputError) as found:
            margins(model, [[0.0]], ["c"])
        assert str(found.value) == "y contains the label 'c', but the model was fitted to the classes ['a', 'b']."

    def test_not_fitted(self):
        """scikit-learn's error."""
        with pytest.raises(NotFittedError):
            margins(SVC(), [[0.0]], [0])

    def test_indefinite_kernel(self):
        """No feature space, no distances."""
        X, y = three_classes()
        model = SVC(kernel="sigmoid", coef0=-1.0).fit(X, y)
        with pytest.raises(InvalidInputError, match="so there is no feature space with distances"):
            margins(model, X, y)

    def test_different_lengths(self):
        """As many labels as samples."""
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            margins(SVC().fit([[0.0], [1.0]], [0, 1]), [[0.0], [1.0]], [0])

    def test_nan(self):
        """Missing values are found before they make a margin."""
        with pytest.raises(ValueError, match="NaN"):
            margins(SVC().fit([[0.0], [1.0]], [0, 1]), [[np.nan]], [0])


@pytest.mark.parametrize("constraints", ["implicit", "explicit"])
def test_thresholds_between_ordered_classes(constraints):
    """Each threshold of OrdinalSVC is a hyperplane with the same w, between the classes above and those below."""
    X, y = three_classes(d=3)
    names = np.array(["high", "low", "mid"])[y]
    model = OrdinalSVC(kernel="linear", constraints=constraints, classes=["low", "mid", "high"]).fit(X, names)
    problems = margins(model, X, names).problems
    assert [problem.name for problem in problems] == [
        "'mid' or 'high' against 'low'",
        "'high' against 'low' or 'mid'",
    ]
    rank = np.array([["low", "mid", "high"].index(name) for name in names])
    w = model.coef_[0]
    for j, problem in enumerate(problems):
        distance = np.where(rank > j, 1.0, -1.0) * (X @ w - model.thresholds_[j]) / np.linalg.norm(w)
        np.testing.assert_allclose(problem.geometric, distance, atol=1e-9)
        assert problem.bias == -model.thresholds_[j] and problem.edge == 1 - model.tol
    assert "the losses of all thresholds have one w" in str(error_bounds(model, X, names))
    two = OrdinalSVC(kernel="linear", C=2.0, tol=1e-8).fit(X, y > 0)
    alone = SVC(kernel="linear", C=2.0, tol=1e-8).fit(X, y > 0)
    np.testing.assert_allclose(margins(two, X, y > 0).geometric, margins(alone, X, y > 0).geometric, atol=1e-5)


def test_words_of_a_code():
    """Each word of OutputCodeSVC is a hyperplane between the classes with +1 and with −1; others are left out."""
    X, y = three_classes()
    pairs, alone = OutputCodeSVC("ovo", gamma=0.3, tol=1e-8).fit(X, y), SVC(gamma=0.3, tol=1e-8).fit(X, y)
    for ours, theirs in zip(margins(pairs, X, y).problems, margins(alone, X, y).problems, strict=True):
        assert {ours.positive, ours.negative} == {theirs.positive, theirs.negative}
        np.testing.assert_allclose(ours.geometric, theirs.geometric, atol=1e-6)
    code = np.array([[1, 1, 0], [1, -1, 1], [-1, 1, -1]])
    model = OutputCodeSVC(code).fit(X, y)
    problems = margins(model, X, y).problems
    assert [problem.name for problem in problems] == ["0 or 1 against 2", "0 or 2 against 1", "1 against 2"]
    for word, values, norm, problem in zip(code.T, model.word_values(X).T, model.rkhs_norm_, problems, strict=True):
        rows = np.flatnonzero(word[y])
        np.testing.assert_array_equal(problem.rows, rows)
        np.testing.assert_allclose(problem.geometric, (word[y] * values)[rows] / norm)
    assert margins(OutputCodeSVC().fit(X, y), X, y).problems[1].name == "1 against the rest"
