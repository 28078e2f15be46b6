"""Each symptom appears where it was made, with its number, and not where nothing is wrong."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.svm import SVC as SklearnSVC
from sklearn.svm import LinearSVC as SklearnLinearSVC

from mercer import SVC, SVR, NuSVC, OneClassSVM, Polynomial
from mercer.theory import diagnose


def healthy(n=200, d=3, seed=0):
    """Two classes that a smooth boundary separates, in columns of one scale."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    return X + 0.3 * np.where(y == 1, 1, -1)[:, None], y


def names(diagnosis):
    return [finding.name for finding in diagnosis.symptoms]


@pytest.mark.parametrize("model", [SVC(), SVC(kernel="linear"), NuSVC(nu=0.1), SklearnSVC()], ids=repr)
def test_nothing_is_wrong(model):
    """A good fit to good data has no symptoms, and says what was looked at all the same."""
    X, y = healthy()
    found = diagnose(model.fit(X, y), X, y)
    assert names(found) == []
    assert str(found).startswith(f"{model!r} on 200 samples: no symptoms\n  support vectors")
    assert found["support vectors"].value == len(model.support_) / 200
    assert 0 < found["margin"].value < 1 and "margin" in found and "tube" not in found


def test_memorising():
    """A Gaussian kernel so narrow that each sample is alone: free support vectors, and a near-diagonal matrix."""
    X, y = healthy()
    found = diagnose(SVC(gamma=1e4, C=100.0, tol=1e-6).fit(X, y), X, y)
    assert names(found) == ["support vectors", "nearest similarity"]
    assert found["support vectors"].value == 1.0 and found["free"].value > 0.5
    assert "lower gamma" in found["support vectors"].suggestion
    assert found["nearest similarity"].value < 0.1
    assert "Lower gamma from 1e+04 to about" in found["nearest similarity"].suggestion


def test_too_stiff():
    """A C so small that every sample is inside the margin."""
    X, y = healthy()
    found = diagnose(SVC(C=1e-4).fit(X, y), X, y)
    assert names(found) == ["support vectors"]
    assert found["at the bound"].value > 0.5
    assert "Raise C" in found["support vectors"].suggestion


def test_small_margin():
    """Random labels and a C that insists: the margin is below what any bound could use."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    found = diagnose(SVC(C=1e4, gamma=1.0, tol=0.1).fit(X, y), X, y)
    assert "margin" in names(found)
    assert found["margin"].value < 1 / np.sqrt(300)


def test_advice_does_not_contradict_itself():
    """Where the margin asks for a smaller C, support vectors do not ask for a larger one."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    found = diagnose(SVC(C=100.0, gamma=1.0).fit(X, y), X, y)
    assert {"support vectors", "margin"} <= set(names(found))
    assert "lower C" in found["margin"].suggestion
    assert "the classes overlap. Choose another kernel" in found["support vectors"].suggestion


def test_columns():
    """A constant column is named; so are the widest and the narrowest where they differ a hundredfold."""
    X, y = healthy()
    X = np.column_stack([X * [1.0, 1.0, 1e-4], np.full(200, 3.0)])
    found = diagnose(SVC().fit(X, y), X, y)
    assert names(found) == ["constant columns", "scales of columns"]
    assert found["constant columns"].where == (3,) and found["constant columns"].value == 1
    assert found["scales of columns"].where[1] == 2 and 1e3 < found["scales of columns"].value < 1e5
    assert found["constant columns"].suggestion == (
        "Remove column 3, for example with VarianceThreshold: it says nothing about any sample."
    )


def test_many_constant_columns():
    """Only the first few are named."""
    X, y = healthy()
    X = np.column_stack([X, np.zeros((200, 8))])
    found = diagnose(SVC().fit(X, y), X, y)["constant columns"]
    assert found.suggestion.startswith("Remove columns 3, 4, 5, 6, 7 and 3 more, for example")
    assert len(found.where) == 8


def test_class_balance():
    """One in fifty, unless the classes are weighted already."""
    X, y = healthy(500)
    keep = (y == 1) | (np.cumsum(y == 0) <= 5)
    X, y = X[keep], y[keep]
    found = diagnose(SVC().fit(X, y), X, y)["class balance"]
    assert found.symptom and found.value == pytest.approx(5 / (y == 1).sum())
    assert found.where == (0, 1) and "class_weight='balanced'" in found.suggestion
    assert not diagnose(SVC(class_weight="balanced").fit(X, y), X, y)["class balance"].symptom


def test_loose_certificate():
    """A run that was stopped is far from the optimum, and the number says how far."""
    X, y = healthy()
    with pytest.warns(ConvergenceWarning):
        model = SVC(max_iter=2).fit(X, y)
    found = diagnose(model, X, y)["certificate"]
    assert found.symptom and found.value == pytest.approx(model.certificate_.relative_gap, rel=1e-6)
    assert "lower tol (it is 0.001), raise max_iter" in found.suggestion


def test_no_kernel():
    """The sigmoid is not positive semidefinite: there is no margin to speak of, and the certificate says why."""
    X, y = healthy()
    found = diagnose(SVC(kernel="sigmoid").fit(X, y), X, y)
    assert "margin" not in found
    assert "the kernel is not positive semidefinite" in found["certificate"].suggestion


class TestRegression:
    def test_a_tube_too_wide(self):
        """Wider than the targets vary: nothing is learnt."""
        X = np.linspace(0, 6, 50)[:, None]
        found = diagnose(SVR(epsilon=2.0).fit(X, np.sin(X[:, 0])), X, np.sin(X[:, 0]))
        assert names(found) == ["support vectors", "tube"]
        assert found["support vectors"].value == 0.0
        assert found["tube"].value == pytest.approx(2.0 / np.std(np.sin(X[:, 0])))

    def test_a_tube_too_narrow(self):
        """Far narrower than the noise: nearly all samples are support vectors."""
        rng = np.random.default_rng(0)
        X = rng.uniform(0, 6, size=(80, 1))
        y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=80)
        found = diagnose(SVR(epsilon=1e-5).fit(X, y), X, y)
        assert names(found) == ["support vectors", "tube"]
        assert found["support vectors"].value > 0.9

    def test_a_good_tube(self):
        """As wide as the noise."""
        rng = np.random.default_rng(0)
        X = rng.uniform(0, 6, size=(80, 1))
        y = np.sin(X[:, 0]) + 0.05 * rng.normal(size=80)
        assert names(diagnose(SVR(epsilon=0.1, C=10).fit(X, y), X, y)) == []


class TestOtherInput:
    def test_novelty(self):
        """Without targets."""
        X, _ = healthy()
        found = diagnose(OneClassSVM(nu=0.1).fit(X), X)
        assert names(found) == [] and "class balance" not in found

    def test_linear_model(self):
        """Without dual coefficients there are no shares, but all the rest."""
        X, y = healthy()
        found = diagnose(SklearnLinearSVC(C=0.1, tol=1e-8, max_iter=100_000).fit(X, y), X, y)
        assert "support vectors" not in found and "margin" in found and "certificate" in found

    def test_kernel_matrix(self):
        """The similarity is read from the matrix; it has no columns to be scaled."""
        X, y = healthy()
        K = X @ X.T + 1.0
        found = diagnose(SVC(kernel="precomputed").fit(K, y), K, y)
        assert "scales of columns" not in found and found["nearest similarity"].value > 0.5

    def test_kernel_function(self):
        """A function is called with the samples that are looked at."""
        X, y = healthy()
        found = diagnose(SVC(kernel=lambda A, B: A @ B.T + 1.0).fit(X, y), X, y)
        assert found["nearest similarity"].value > 0.5

    def test_sparse(self):
        """Columns of counts differ by nature, and are not blamed for it."""
        X, y = healthy()
        X = sp.csr_array(np.where(np.abs(X) > 1, X, 0.0) * [1.0, 1.0, 1e4])
        found = diagnose(SVC(kernel="linear").fit(X, y), X, y)
        assert not found["scales of columns"].symptom and found["scales of columns"].value > 1e3

    def test_several_classes(self):
        """The margin is that of the worst pair."""
        X, y = healthy()
        y = y + (X[:, 2] > 1)
        model = SVC(kernel=Polynomial(2)).fit(X, y)
        found = diagnose(model, X, y)
        assert found["class balance"].where[0] in (0, 1, 2)
        assert " against " in found["margin"].text

    def test_unknown_finding(self):
        """A KeyError that says what there is."""
        X, y = healthy()
        with pytest.raises(KeyError, match="there are support vectors, at the bound, free, margin"):
            diagnose(SVC().fit(X, y), X, y)["weather"]

    def test_not_fitted(self):
        """scikit-learn's error."""
        with pytest.raises(NotFittedError):
            diagnose(SVC(), [[0.0]], [0])
