"""KernelERM is SVC, SVR, KernelRidge and KernelLogisticRegression for their losses, and more for others."""

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVR, InvalidInputError, KernelERM, KernelLogisticRegression, KernelRidge, Spectrum, certify

X, y = load_breast_cancer(return_X_y=True)
X, y = StandardScaler().fit_transform(X)[:150, :5], np.array(["malignant", "benign"])[y[:150]]
A, t = load_diabetes(return_X_y=True)
A, t = StandardScaler().fit_transform(A)[:150], (t[:150] - t.mean()) / t.std()
LABELS, NUMBERS = ("hinge", "squared_hinge", "logistic"), ("squared", "huber", "epsilon_insensitive", "pinball")


def name_of(value):
    """The id of a parameter: the class of an object, and else the value itself."""
    return str(value) if isinstance(value, str | float | int) else type(value).__name__


class Exponential:
    """exp(−yf), for labels."""

    classification = True

    def value(self, y, f):
        return np.exp(-y * f)

    def derivative(self, y, f):
        return -y * np.exp(-y * f)

    def second_derivative(self, y, f):
        return np.exp(-y * f)

    def conjugate(self, y, u):
        p = np.maximum(-y * u, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = np.where(p > 0, p * np.log(p) - p, 0.0)
        return np.where(-y * u >= -1e-14, entropy, np.inf)


@pytest.mark.parametrize(
    ("loss", "other"),
    [
        ("hinge", SVC(C=2.0, tol=1e-8)),
        ("squared_hinge", SVC(C=2.0, loss="squared_hinge", tol=1e-8)),
        ("logistic", KernelLogisticRegression(2.0, tol=1e-13)),
    ],
)
def test_known_classifiers(loss, other):
    """For labels it is the machine of the same name."""
    ours = KernelERM(loss, C=2.0, tol=1e-10).fit(X, y)
    other.fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), other.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), other.predict(X))
    assert ours.score(X, y) == other.score(X, y)
    assert ours.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-9)
    assert is_classifier(ours) and not is_regressor(ours) and ours.classes_.tolist() == ["benign", "malignant"]


@pytest.mark.parametrize(
    ("loss", "other"),
    [
        ("epsilon_insensitive", SVR(C=2.0, tol=1e-8)),
        ("pinball", SVR(C=2.0, loss="pinball", quantile=0.5, tol=1e-8)),
        ("squared", KernelRidge(0.5, kernel="rbf", gamma="scale", fit_intercept=True)),
    ],
)
def test_known_regressors(loss, other):
    """For numbers, too."""
    ours = KernelERM(loss, C=2.0, tol=1e-10).fit(A, t)
    np.testing.assert_allclose(ours.predict(A), other.fit(A, t).predict(A), atol=1e-5)
    assert ours.score(A, t) == pytest.approx(other.score(A, t), abs=1e-6)
    assert is_regressor(ours) and not is_classifier(ours) and not hasattr(ours, "decision_function")


@pytest.mark.parametrize("penalty", ["squared", "norm", 1.5], ids=name_of)
@pytest.mark.parametrize("loss", [*LABELS, *NUMBERS, Exponential()], ids=name_of)
def test_certified(loss, penalty):
    """The gap is at most tol for every loss and penalty, and certify recomputes it from the coefficients."""
    labels = loss in LABELS or isinstance(loss, Exponential)
    samples, target = (X, y) if labels else (A, t)
    model = KernelERM(loss, penalty, C=0.5, tol=1e-6).fit(samples, target)
    assert model.certificate_.valid and model.certificate_.relative_gap <= 1e-6
    again = certify(model, samples, target)
    assert again.valid and again.relative_gap <= 2e-6
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert model.fit_status_ == 0 and model.rkhs_norm_[0] >= 0


@pytest.mark.parametrize("loss", ["logistic", "hinge", "huber"])
def test_weights_are_repetitions(loss):
    """A weight of 2 is a sample twice, a weight of 0 none."""
    samples, target = (X, y) if loss in LABELS else (A, t)
    weight = np.random.default_rng(1).integers(0, 3, len(samples))
    again = np.repeat(np.arange(len(samples)), weight)
    known = {"loss": loss, "penalty": "norm", "gamma": 0.1, "C": 0.2, "tol": 1e-11}
    ours, theirs = (
        KernelERM(**known).fit(samples, target, weight),
        KernelERM(**known).fit(samples[again], target[again]),
    )
    np.testing.assert_allclose(ours._values(samples), theirs._values(samples), atol=1e-4)


def test_pinball_is_a_quantile():
    """A share τ of the targets lies below."""
    model = KernelERM("pinball", quantile=0.8, C=0.1).fit(A, t)
    assert np.mean(t < model.predict(A)) == pytest.approx(0.8, abs=0.03)


def test_strings():
    """Samples may be anything that the kernel compares."""
    texts = ["abab", "baba", "abba", "xyxy", "yxyx", "xxyy"]
    model = KernelERM("logistic", "norm", C=10.0, kernel=Spectrum(2)).fit(texts, [0, 0, 0, 1, 1, 1])
    assert model.predict(["aba", "yxy"]).tolist() == [0, 1]
    assert model.certificate_.relative_gap <= 1e-6


def test_more_classes():
    """Two classes at a time; scikit-learn makes more of it."""
    three = np.where(X[:, 0] > 1, "large", y)
    with pytest.raises(InvalidInputError, match=r"Only binary classification is supported.*y has 3 classes.*OneVsRest"):
        KernelERM("logistic").fit(X, three)
    model = OneVsRestClassifier(KernelERM("logistic", C=10.0)).fit(X, three)
    assert model.score(X, three) > 0.9


def test_refused():
    """Parameters and targets that cannot be used are named before the fit."""
    for parameters, message in (
        ({"class_weight": "balanced"}, "the squared loss has no classes: use sample_weight"),
        ({"loss": "l1"}, "loss='l1' is not known"),
        ({"penalty": "l1"}, "penalty='l1' is not known"),
        ({"loss": "huber", "delta": -1.0}, "The 'delta' parameter of KernelERM must be"),
        ({"C": 0.0}, "The 'C' parameter of KernelERM must be"),
    ):
        with pytest.raises(ValueError, match=message):
            KernelERM(**parameters).fit(A, t)
    with pytest.raises(InvalidInputError, match=r"The kernel matrix of 100,000 samples takes 74.5 GB"):
        KernelERM("logistic").fit(np.zeros((100_000, 1)), np.arange(100_000) % 2)
    with pytest.raises(InvalidInputError, match="number of classes has to be greater than one"):
        KernelERM("hinge").fit(A, np.zeros(len(A)))


def test_ends_early():
    """Fewer steps leave a certified model and a warning."""
    for loss in ("logistic", "hinge"):
        with pytest.warns(ConvergenceWarning, match=r"Solver terminated early \(max_iter=1\): raise max_iter or tol"):
            model = KernelERM(loss, max_iter=1).fit(X, y)
        assert model.certificate_.valid and model.certificate_.gap > 0 and model.fit_status_ == 1


def test_warm_start():
    """The second fit starts where the first ended."""
    model = KernelERM("logistic", warm_start=True).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ < first


def test_wrong_conjugate_is_reported():
    """A conjugate that is wrong where it was not probed: the certificate is not valid, and a warning says so."""

    class Late(Exponential):
        def conjugate(self, y, u):
            p = -y * u
            return super().conjugate(y, u) - 5.0 * (np.abs(p - 0.2) < 0.05)

    with pytest.warns(UserWarning, match="The fit is not certified: the conjugate of the Late does not belong"):
        model = KernelERM(Late()).fit(X, y)
    assert not model.certificate_.valid and model.certificate_.gap < 0
