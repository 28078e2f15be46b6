"""Every question to a fitted model has an answer, or an error that says what to do: for every estimator."""

import numpy as np
import pytest
from sklearn import kernel_ridge, linear_model, svm
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.naming import named

from mercer import (
    LSSVC,
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    ConvergenceDisplay,
    DecisionDisplay,
    ExpectileSVR,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    GramDisplay,
    InvalidInputError,
    KernelCentroid,
    KernelERM,
    KernelLMS,
    KernelLogisticRegression,
    KernelRidge,
    KernelRidgeCV,
    LaplacianSVC,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    MarginDisplay,
    MKLClassifier,
    MKLRegressor,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OrdinalSVC,
    OutputCodeSVC,
    PegasosClassifier,
    Perceptron,
    RampSVC,
    RejectOption,
    SparseGaussianProcessRegressor,
    SupportVectorDisplay,
    TubeDisplay,
    certify,
    diagnose,
    error_bounds,
    kkt_report,
    margins,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

CLASSIFIERS = [
    SVC(),
    SVC(kernel="sigmoid"),
    SVC(loss="squared_hinge"),
    SVC(kernel=lambda A, B: A @ B.T),
    NuSVC(nu=0.1),
    LinearSVC(),
    LinearSVC(multi_class="crammer_singer"),
    LinearSVC(penalty="l1"),
    MKLClassifier(),
    KernelLogisticRegression(),
    LSSVC(),
    OrdinalSVC(),
    OrdinalSVC(constraints="explicit"),
    OutputCodeSVC("ovr"),
    OutputCodeSVC("ovo"),
    OutputCodeSVC("dense", random_state=0),
    PegasosClassifier(random_state=0),
    PegasosClassifier(kernel="rbf", random_state=0),
    PegasosClassifier(kernel="rbf", n_steps=3, random_state=0),
    svm.SVC(),
    svm.SVC(kernel=lambda A, B: A @ B.T),
    svm.NuSVC(nu=0.1),
    svm.LinearSVC(),
    linear_model.SGDClassifier(random_state=0),
    SVCCV(Cs=2, gammas=2, cv=2),
    LinearSVCCV(Cs=2, cv=2),
    make_pipeline(StandardScaler(), SVC()),
    GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1.0]}, cv=2),
]
REGRESSORS = [
    SVR(),
    SVR(loss="pinball", quantile=0.9),
    NuSVR(),
    LinearSVR(),
    KernelRidge(),
    KernelRidge(kernel="rbf"),
    KernelRidgeCV(),
    MKLRegressor(),
    KernelERM("huber"),
    ExpectileSVR(0.8),
    SVRCV(Cs=2, gammas=2, epsilons=1, cv=2),
    svm.SVR(),
    svm.NuSVR(),
    svm.LinearSVR(),
    kernel_ridge.KernelRidge(),
    kernel_ridge.KernelRidge(kernel="rbf"),
    make_pipeline(StandardScaler(), SVR()),
]
DETECTORS = [OneClassSVM(), svm.OneClassSVM()]
# without a certificate
OTHERS = [
    Perceptron(),
    KernelCentroid(),
    RampSVC(),
    KernelLMS(),
    GaussianProcessRegressor(),
    GaussianProcessClassifier(),
    SparseGaussianProcessRegressor("gaussian(gamma=1.0)", n_inducing=10, optimizer=None),
    linear_model.LogisticRegression(),
]


def cases(models):
    """Classifiers with two classes and with three."""
    for model in models:
        name = named(model).replace("\n", "")[:60]
        yield pytest.param(model, (0, 1), id=name)
        if is_classifier(model):
            yield pytest.param(model, ("a", "b", "c"), id=f"{name}, three classes")


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def task(model, labels=(0, 1)):
    """Two features, and labels, numbers or nothing to learn."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    if is_outlier_detector(model):
        return X, None
    if is_regressor(model):
        return X, X[:, 0] + 0.1 * rng.normal(size=60)
    return X, np.array(labels)[np.digitize(X[:, 0], np.linspace(-1, 1, len(labels) + 1)[1:-1])]


def fitted(model, X, y):
    model = clone(model)
    return model.fit(X) if y is None else model.fit(X, y)


def ask(question, *arguments):
    """The answer, or the error that belongs to mercer; anything else is a crash."""
    try:
        return question(*arguments)
    except InvalidInputError as error:
        return error


@pytest.mark.filterwarnings("ignore:The classes are texts")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "labels"), [*cases([*CLASSIFIERS, *REGRESSORS, *DETECTORS])])
def test_a_diagnosis_for_every_certified_model(model, labels):
    """diagnose and certify accept the same models, and agree about the gap."""
    X, y = task(model, labels)
    one = fitted(model, X, y)
    found = diagnose(one, X, y)
    assert found["certificate"].value == pytest.approx(certify(one, X, y).relative_gap, rel=1e-6, abs=1e-12)
    assert str(found) and found.n == 60
    for report in (ask(margins, one, X, y), ask(kkt_report, one, X, y), ask(error_bounds, one, X, y)):
        assert str(report)


@pytest.mark.filterwarnings("ignore:The classes are texts")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "labels"), [*cases([*CLASSIFIERS, *REGRESSORS, *DETECTORS, *OTHERS])])
def test_pictures_of_every_model(model, labels):
    """A display draws a model, or says which display does."""
    X, y = task(model, labels)
    one = fitted(model, X, y)
    drawn = [
        ask(ConvergenceDisplay.from_estimator, one),
        ask(SupportVectorDisplay.from_estimator, one, y),
        ask(GramDisplay.from_estimator, one, X, y),
        ask(MarginDisplay.from_estimator, one, X, y),
        ask(DecisionDisplay.from_estimator, one, X, y),
        ask(TubeDisplay.from_estimator, fitted(model, X[:, :1], y), X[:, :1], y),
    ]
    assert any(not isinstance(one, Exception) for one in drawn)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "labels"), [*cases(OTHERS)])
def test_models_without_a_certificate(model, labels):
    """They have the other findings; the certificate's says why there is none. Models that are not known are refused."""
    X, y = task(model, labels)
    X = X * [1.0, 0.0]
    one = fitted(model, X, y)
    if isinstance(one, linear_model.LogisticRegression):
        with pytest.raises(InvalidInputError, match=r"^certify supports SVC, "):
            diagnose(one, X, y)
        return
    found = diagnose(one, X, y)
    with pytest.raises(InvalidInputError, match=r"has no certificate\. ") as error:
        certify(one, X, y)
    assert str(error.value).endswith(found["certificate"].text.removeprefix("none. "))
    assert np.isnan(found["certificate"].value) and not found["certificate"].symptom
    assert found["constant columns"].where == (1,)
    if is_classifier(model):
        assert found["training errors"].value == pytest.approx(1.0 - one.score(X, y))


def test_reject_option():
    """The findings are those of its classifier, inside a pipeline too, certified or not."""
    X, y = task(SVC())
    for inner in (
        KernelLogisticRegression(),
        GaussianProcessClassifier(),
        make_pipeline(StandardScaler(), SVCCV(Cs=2, gammas=2)),
    ):
        model = RejectOption(inner).fit(X, y)
        found, expected = diagnose(model, X, y), diagnose(model.estimator_, X, y)
        assert [str(f) for f in found.findings] == [str(f) for f in expected.findings]


def test_unlabelled_samples():
    """The certificate of a LaplacianSVC is that of all samples, the other findings are about the labelled ones."""
    X, y = task(SVC())
    given = np.where(np.arange(60) % 3, -1, y)
    model = LaplacianSVC().fit(X, given)
    found = diagnose(model, X, given)
    assert found["certificate"].value == pytest.approx(model.certificate_.relative_gap, rel=1e-3, abs=1e-9)
    assert found["training errors"].value == np.mean(model.predict(X)[::3] != y[::3])


def test_a_kernel_matrix():
    """Machines with a precomputed kernel, of mercer and of scikit-learn."""
    X, y = task(SVC())
    K = X @ X.T + 1.0
    for model in (SVC(kernel="precomputed"), svm.SVC(kernel="precomputed"), PegasosClassifier(kernel="precomputed")):
        assert diagnose(model.fit(K, y), K, y)["margin"].value > 0
    for model in (SVR(kernel="precomputed"), kernel_ridge.KernelRidge(kernel="precomputed")):
        assert diagnose(model.fit(K, X[:, 0]), K, X[:, 0])["nearest similarity"].value > 0


def test_a_loose_certificate_names_the_limits_that_the_model_has():
    """tol=None is not a tolerance to be lowered; what ended the run is named."""
    X, y = task(SVC())
    few = PegasosClassifier(max_iter=1, random_state=0).fit(X, y)
    assert diagnose(few, X, y)["certificate"].suggestion.endswith(
        "above its optimum: raise max_iter (it is 1), or scale the features."
    )
    steps = PegasosClassifier(n_steps=5, random_state=0).fit(X, y)
    assert "raise n_steps (it is 5)" in diagnose(steps, X, y)["certificate"].suggestion
    with pytest.warns(ConvergenceWarning):
        stopped = SVC(time_limit=0.0).fit(X, y)
    assert "raise time_limit (it is 0 s)" in diagnose(stopped, X, y)["certificate"].suggestion
