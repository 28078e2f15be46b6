"""Each symptom appears where it was made, with its number, and not where nothing is wrong."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.svm import SVC as SklearnSVC
from sklearn.svm import LinearSVC as SklearnLinearSVC
from sklearn.tree import DecisionTreeClassifier

from mercer import SVC, SVR, KernelRidge, NuSVC, OneClassSVM, Polynomial, RankSVC, SurvivalSVM
from mercer.theory import HeldOutScores, diagnose
from mercer.theory.findings import optimism


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
    """A good fit to good data has no symptoms, and still says what was examined."""
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
    assert names(found) == ["nearest similarity"]
    assert found["support vectors"].value == 1.0 and found["free"].value > 0.5
    assert found["nearest similarity"].value < 0.1
    assert "Lower gamma from 1e+04 to about" in found["nearest similarity"].suggestion


def test_samples_that_hold_the_margin():
    """Most support vectors free: training samples do not tell whether the model memorises, held-out ones do."""
    X, y = healthy()
    model = SVC(gamma=8.0, C=100.0).fit(X, y)
    found = diagnose(model, X, y)
    assert names(found) == ["support vectors"] and found["free"].value > found["at the bound"].value
    assert found["support vectors"].suggestion == (
        "Most samples are free support vectors, as in a model that memorises. Compare its training and held-out scores "
        "with mercer.evaluate; if they differ much, lower gamma or C."
    )
    good = HeldOutScores.of_folds(np.full(5, 0.99), np.full(5, 1.0), 0.25, 0.5)
    assert names(diagnose(model, X, y, held_out=good)) == []
    bad = HeldOutScores.of_folds(np.array([0.6, 0.62, 0.61, 0.6, 0.63]), np.full(5, 1.0), 0.25, 0.5)
    assert names(diagnose(model, X, y, held_out=bad)) == ["optimism"]


def test_too_simple():
    """A straight line through two rings: most samples are inside the margin, and half of them are misclassified."""
    rng = np.random.default_rng(0)
    angle, y = rng.uniform(0, 2 * np.pi, 200), np.arange(200) % 2
    X = (1 + 2 * y)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    found = diagnose(SVC(kernel="linear").fit(X, y), X, y)
    assert names(found) == ["support vectors"] and found["at the bound"].value > 0.5
    assert found["support vectors"].suggestion == (
        "The score is poor, and most samples are inside the margin or on the wrong side: the model is too simple, or "
        "the features carry little information. Raise C, choose a richer kernel, or other features, and compare by "
        "cross-validation."
    )
    assert found["support vectors"].command.endswith("Try another --kernel, or other columns.")
    search = GridSearchCV(SVC(kernel="linear"), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    assert "Raise C" not in diagnose(search, X, y)["support vectors"].suggestion
    assert names(diagnose(SVC().fit(X, y), X, y)) == []


def test_many_support_vectors_of_a_good_model():
    """A small C makes all samples support vectors; the model predicts well all the same, and nothing is to be done."""
    X, y = healthy()
    model = SVC(C=1e-2, kernel="linear").fit(X, y)
    found = diagnose(model, X, y)
    assert found["support vectors"].value > 0.5 and model.score(X, y) > 0.9 and names(found) == []


def test_small_margin():
    """Random labels and a C that insists: the margin is a symptom where the score is poor, not where it is good."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    model = SVC(C=100.0, gamma=1.0).fit(X, y)
    found = diagnose(model, X, y)
    assert names(found) == ["margin"] and found["margin"].value < 1 / np.sqrt(300)
    assert found["margin"].suggestion == (
        "The score is poor, and the margin is below 1/√n = 0.058 of the radius: the classes overlap. Choose another "
        "kernel, or other features, that separate them better."
    )
    y = X[:, 0] > 0
    found = diagnose(SVC(C=1e6, kernel="linear", tol=1e-8).fit(X, y), X, y)
    assert found["margin"].value < 1 / np.sqrt(300) and names(found) == []


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("gamma", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("noise", [0.0, 0.2, 0.5])
def test_advice_does_not_contradict_itself(C, gamma, noise):
    """No model is told to become richer and simpler at once, with held-out scores or without."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = (np.hypot(*X.T) > 1) ^ (rng.uniform(size=120) < noise)
    model = SVC(C=C, gamma=gamma).fit(X, y)
    scores = cross_validate(model, X, y, cv=4, return_train_score=True)
    chance = max(y.mean(), 1 - y.mean())
    held_out = HeldOutScores.of_folds(scores["test_score"], scores["train_score"], 1 / 3, chance)
    for found in (diagnose(model, X, y), diagnose(model, X, y, held_out=held_out)):
        advice = " ".join(finding.suggestion for finding in found.symptoms).lower()
        assert not ("raise c" in advice or "richer" in advice) or not ("lower gamma" in advice or "lower c" in advice)


class TestOptimism:
    """Training samples that are scored better than held-out ones."""

    @pytest.mark.parametrize(
        ("scores", "training", "expected"),
        [
            ([0.97, 0.98, 0.975, 0.97, 0.975], [0.987] * 5, False),  # twice as many errors, but few
            ([0.93, 0.99, 0.86, 0.99, 0.85], [0.98] * 5, False),  # within the noise
            ([0.78, 0.80, 0.77, 0.79, 0.78], [0.97] * 5, True),
            ([0.78, 0.80, 0.77, 0.79, 0.78], [0.82] * 5, False),  # both are bad: something else is wrong
            ([-4.0, -4.1, -3.9], [-0.1] * 3, True),  # a loss
        ],
    )
    def test_when_it_is_a_symptom(self, scores, training, expected):
        """Beyond its noise, and large enough to matter."""
        assert HeldOutScores.of_folds(np.array(scores), np.array(training), 0.25).overfits == expected

    def test_advice_names_parameters_of_the_model(self):
        """Advice names parameters that the model has, that its kernel uses, and that no search has chosen."""
        bad = HeldOutScores.of_folds(np.array([0.6, 0.62, 0.61]), np.full(3, 1.0), 0.5, 0.5)
        start = "The model overfits: it predicts its training samples much better than held-out samples. "
        for machine, advice in (
            (SVC(), "Lower C or lower gamma, or choose by cross-validation."),
            (SVC(kernel="linear"), "Lower C, or choose by cross-validation."),
            (KernelRidge(kernel="rbf"), "Lower gamma or raise alpha, or choose by cross-validation."),
            (DecisionTreeClassifier(), "Collect more samples, or remove features that are not related to the target."),
        ):
            assert optimism(bad, machine, frozenset()).suggestion == start + advice
        searched = optimism(bad, SVC(), frozenset({"C"}))
        assert searched.suggestion.startswith(f"{start}The search has found no simpler model that is better. Collect")
        assert searched.command.endswith("Collect more rows, or remove columns that are not related to the target.")


def test_columns():
    """A constant column is named; so are the widest and the narrowest where they differ a hundredfold."""
    X, y = healthy()
    X = np.column_stack([X * [1.0, 1.0, 1e-4], np.full(200, 3.0)])
    found = diagnose(SVC().fit(X, y), X, y)
    assert names(found) == ["constant columns", "scales of columns"]
    assert found["constant columns"].where == (3,) and found["constant columns"].value == 1
    assert found["scales of columns"].where[1] == 2 and 1e3 < found["scales of columns"].value < 1e5
    assert found["constant columns"].suggestion == (
        "Remove column 3, for example with VarianceThreshold: it carries no information."
    )


def test_columns_of_categories():
    """A column of two values that is 1 for few samples is narrow by nature."""
    X, y = healthy()
    X = np.column_stack([X, np.arange(200) == 0]) * [100.0, 100.0, 100.0, 1.0]
    assert "scales of columns" not in names(diagnose(SVC().fit(X, y), X, y))


def test_many_constant_columns():
    """Only the first few are named."""
    X, y = healthy()
    X = np.column_stack([X, np.zeros((200, 8))])
    found = diagnose(SVC().fit(X, y), X, y)["constant columns"]
    assert found.suggestion.startswith("Remove columns 3, 4, 5, 6, 7 and 3 more, for example")
    assert len(found.where) == 8


def test_class_balance():
    """One in fifty, where it is missed, unless the classes are weighted already."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [5, 250])
    X = rng.normal(size=(255, 3)) + y[:, None]
    found = diagnose(SVC().fit(X, y), X, y)["class balance"]
    assert found.symptom and found.value == pytest.approx(5 / 250)
    assert found.where == (0, 1) and found.suggestion == (
        "Class 0 is 50 times as rare as class 1, and 80% of its training samples are predicted as another class: try "
        "class_weight='balanced', and scoring='balanced_accuracy', which does not hide rare classes."
    )
    assert "--class-weight balanced, and --scoring balanced_accuracy" in found.command
    assert not diagnose(SVC(class_weight="balanced").fit(X, y), X, y)["class balance"].symptom
    far = X + 10.0 * y[:, None]
    assert not diagnose(SVC().fit(far, y), far, y)["class balance"].symptom


def test_loose_certificate():
    """A run that was stopped is far from the optimum, and the number says how far."""
    X, y = healthy()
    with pytest.warns(ConvergenceWarning):
        model = SVC(max_iter=2).fit(X, y)
    found = diagnose(model, X, y)["certificate"]
    assert found.symptom and found.value == pytest.approx(model.certificate_.relative_gap, rel=1e-6)
    assert found.suggestion.endswith("lower tol (it is 0.001), raise max_iter (it is 2), or scale the features.")


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
        model = SVR(epsilon=1e-5).fit(X, y)
        found = diagnose(model, X, y)
        assert names(found) == ["tube"]
        assert found["support vectors"].value > 0.9 and "raise --epsilon" in found["tube"].command
        good = HeldOutScores.of_folds(np.array([0.9, 0.91]), np.array([0.92, 0.92]), 0.5, 0.0)
        assert names(diagnose(model, X, y, held_out=good)) == []

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
        """A function is called with the examined samples."""
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
        with pytest.raises(KeyError, match="the findings are support vectors, at the bound, free, margin"):
            diagnose(SVC().fit(X, y), X, y)["weather"]

    def test_not_fitted(self):
        """scikit-learn's error."""
        with pytest.raises(NotFittedError):
            diagnose(SVC(), [[0.0]], [0])


@pytest.mark.parametrize("structured", [False, True])
def test_survival_times(structured):
    """A SurvivalSVM is judged by the order of its predictions, for both forms of targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    seen, time = rng.uniform(size=60) < 0.7, np.exp(X[:, 0])
    y = np.column_stack([seen, time])
    if structured:
        y = np.array(list(zip(seen, time, strict=True)), dtype=[("event", bool), ("time", float)])
    model = SurvivalSVM().fit(X, y)
    assert diagnose(model, X, y)["certificate"].value == pytest.approx(model.certificate_.relative_gap, abs=1e-9)
    ranks = RankSVC().fit(X, np.round(X[:, 0]), groups=np.arange(60) % 4)
    assert str(diagnose(ranks, X, np.round(X[:, 0])))
