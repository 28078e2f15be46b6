"""OrdinalSVC: ordered thresholds on one function, compared with clarabel, with SVC and by invariances."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator
from tests.reference.ordering import solve_primal

from mercer import SVC, InvalidInputError, OrdinalSVC, certify
from mercer.losses.ordinal import ExplicitOrdinal, ImplicitOrdinal

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 3))
Y = np.digitize(X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=90), [-1.0, 0.2, 1.0])
BOTH = pytest.mark.parametrize("constraints", ["implicit", "explicit"])


def gaussian(A, B, gamma=0.3):
    return np.exp(-gamma * ((A[:, None] - B) ** 2).sum(axis=2))


def optimum(K, y, C, constraints):
    """The optimum of the primal problem as in the paper, with the order of the thresholds as a constraint."""
    n, k = len(y), int(y.max())
    pairs = [(i, j) for i in range(n) for j in range(k) if constraints == "implicit" or j in (y[i] - 1, y[i])]
    s = np.array([1.0 if y[i] > j else -1.0 for i, j in pairs])
    rows, columns = np.array(pairs).T
    A, T = s[:, None] * np.eye(n)[rows], -s[:, None] * np.eye(k)[columns]
    order = np.eye(k)[1:] - np.eye(k)[:-1]
    return solve_primal(K, A, T, np.ones(len(s)), np.broadcast_to(C, n)[rows], G=order)


@BOTH
def test_is_the_optimum(constraints):
    """Value, function and thresholds are those that clarabel finds; the certificate brackets the optimum."""
    model = OrdinalSVC(C=2.0, gamma=0.3, constraints=constraints, tol=1e-9).fit(X, Y)
    best = optimum(gaussian(X, X), Y, 2.0, constraints)
    proof = model.certificate_
    assert proof.valid and proof.relative_gap < 1e-8
    assert proof.dual - 1e-6 <= best.value <= proof.primal + 1e-6
    np.testing.assert_allclose(model.latent(X), best.F, atol=1e-4)
    np.testing.assert_allclose(model.thresholds_, best.thresholds, atol=1e-4)


def crossing():
    """Few samples whose explicit thresholds cross unless their order is demanded: class 1 is below class 0."""
    y = np.repeat([0, 1, 2, 3], [12, 5, 14, 9])
    return np.random.default_rng(2).normal(size=(40, 1)) * 0.3 + np.array([0.0, 2.0, -1.0, 1.5])[y][:, None], y


def test_explicit_thresholds_that_would_cross_are_merged():
    """The ordered optimum has equal thresholds, and its gap against clarabel's is that of the certificate."""
    Z, y = crossing()
    model = OrdinalSVC(C=3.0, kernel="linear", constraints="explicit", tol=1e-9).fit(Z, y)
    best = optimum(Z @ Z.T, y, 3.0, "explicit")
    assert np.diff(best.thresholds).min() < 1e-6
    assert np.diff(model.thresholds_).min() == 0.0
    proof = model.certificate_
    assert proof.valid and proof.relative_gap < 1e-8
    assert proof.primal == pytest.approx(best.value, rel=1e-7)


@BOTH
def test_two_classes_are_svc(constraints):
    """With two classes the machine is the soft-margin machine."""
    y = (Y > 1).astype(int)
    model, machine = OrdinalSVC(constraints=constraints, tol=1e-9).fit(X, y), SVC(tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), machine.decision_function(X), atol=1e-7)
    np.testing.assert_array_equal(model.predict(X), machine.predict(X))


@BOTH
def test_reversed_classes_mirror_the_machine(constraints):
    """Reversing the order of the classes turns f and the thresholds around."""
    one = OrdinalSVC(constraints=constraints, tol=1e-9).fit(X, Y)
    other = OrdinalSVC(constraints=constraints, tol=1e-9, classes=[3, 2, 1, 0]).fit(X, Y)
    np.testing.assert_allclose(other.latent(X), -one.latent(X), atol=1e-6)
    np.testing.assert_allclose(other.thresholds_, -one.thresholds_[::-1], atol=1e-6)
    np.testing.assert_array_equal(other.predict(X), one.predict(X))
    assert list(other.classes_) == [3, 2, 1, 0]


@BOTH
def test_working_sets_find_the_dense_optimum(constraints):
    """Larger problems run on working sets of all groups; the gap is small, and thresholds are in order."""
    many = np.random.default_rng(1)
    Z = many.normal(size=(900, 4))
    y = np.digitize(Z[:, 0] + 0.5 * Z[:, 1] ** 2 + 0.3 * many.normal(size=900), [-1.0, -0.3, 0.3, 0.9, 1.6])
    model = OrdinalSVC(constraints=constraints).fit(Z, y)
    assert model.plan_.working_set > 0
    assert model.certificate_.valid and model.certificate_.relative_gap < 1e-4
    assert np.all(np.diff(model.thresholds_) > 0)


@BOTH
def test_decisions_and_weights(constraints):
    """The predicted class has the largest decision value; zero weights are left out; certify agrees."""
    weight = np.where(np.arange(90) % 5 == 0, 0.0, 1.5)
    model = OrdinalSVC(constraints=constraints, class_weight={0: 2.0, 1: 1.0, 2: 1.0, 3: 0.5}).fit(X, Y, weight)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])
    kept = weight > 0
    alone = clone(model).set_params(gamma=model._gamma).fit(X[kept], Y[kept], weight[kept])
    np.testing.assert_allclose(alone.latent(X), model.latent(X), atol=5e-3)
    again = certify(model, X, Y, weight)
    assert again.valid and again.relative_gap < 1e-3
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-6)


@pytest.mark.parametrize("loss", [ImplicitOrdinal(3), ExplicitOrdinal(3), ExplicitOrdinal(4, (0, 1, 1))], ids=str)
def test_weak_duality(loss):
    """The dual value of any feasible β is at most the primal value at any thresholds, best ones included."""
    y, weight = (np.arange(30) % loss.n_classes).astype(float), np.linspace(0.5, 2.0, 30)
    K = gaussian(X[:30], X[:30])
    qp = loss.box_qp(y, weight, True)
    from mercer.problems.dual import dual_objective, feasible_start

    for seed in range(20):
        draw = np.random.default_rng(seed)
        beta = feasible_start(qp, near=draw.normal(size=qp.n_vars))
        F = K @ qp.at_samples(beta, 30)
        best = loss.best_thresholds(y, F, weight)
        low = loss.primal(float(qp.at_variables(F) @ beta), y, F, weight, best, qp.sums)
        assert dual_objective(qp, beta, F) <= low + 1e-9
        for _ in range(5):
            other = best + 0.3 * draw.normal(size=len(best))
            assert loss.primal(float(qp.at_variables(F) @ beta), y, F, weight, other, qp.sums) >= low - 1e-9


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        (
            {"classes": [0, 1, 2]},
            Y,
            r"y contains the label 3, which is not in classes=\[0, 1, 2\]: add it in its place",
        ),
        ({"classes": [0, 0, 1]}, Y, "classes must be a list of different labels"),
        ({}, np.zeros(90), "The number of classes has to be greater than one; got 1 class"),
        ({}, np.arange(90) / 7.0, "Unknown label type: continuous"),
        ({"C": np.inf}, Y, "The 'C' parameter of OrdinalSVC"),
        ({"constraints": "both"}, Y, "The 'constraints' parameter of OrdinalSVC"),
        ({}, np.where(Y == 3, np.nan, Y), "Input y contains NaN|contains NaN"),
    ],
)
def test_bad_input(parameters, y, message):
    """Unknown labels, a single class, numbers instead of classes and an infinite C are named."""
    with pytest.raises(ValueError, match=message):
        OrdinalSVC(**parameters).fit(X, y)


def test_texts():
    """Texts are in alphabetical order unless the order is given; of three or more classes a warning says so."""
    names = np.array(["low", "mid", "good", "high"])
    with pytest.warns(UserWarning) as found:
        model = OrdinalSVC().fit(X, names[Y])
    assert [str(warning.message) for warning in found] == [
        "The classes are texts, and their order is alphabetical: 'good', 'high', 'low', 'mid'. If they have another "
        "order, give it in the parameter classes, the lowest class first."
    ]
    assert model.classes_.tolist() == sorted(names)
    given = OrdinalSVC(classes=names).fit(X, names[Y])
    np.testing.assert_array_equal(given.predict(X), names[OrdinalSVC().fit(X, Y).predict(X)])
    assert OrdinalSVC().fit(X, names[Y // 2]).classes_.tolist() == ["low", "mid"]


def test_ordered_categories():
    """Ordered categories of a pandas Series are classes in their order, also in a search; classes overrules it."""
    names = ["low", "mid", "good", "high"]
    y = pd.Series(pd.Categorical.from_codes(Y, [*names, "never"], ordered=True))
    model = OrdinalSVC().fit(X, y)
    assert model.classes_.tolist() == names
    given = OrdinalSVC(classes=names).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), given.predict(X))
    assert OrdinalSVC(classes=names[::-1]).fit(X, y).classes_.tolist() == names[::-1]
    assert GridSearchCV(OrdinalSVC(), {"C": [1.0]}, cv=2).fit(X, y).best_estimator_.classes_.tolist() == names
    assert model.fit(X, Y).classes_.tolist() == [0, 1, 2, 3]


def test_too_many_classes():
    """More classes than groups can be numbered are refused."""
    Z = np.arange(300.0)[:, None]
    with pytest.raises(InvalidInputError, match="300 ordered classes were given, but there must be 2 to 127"):
        OrdinalSVC().fit(Z, np.arange(300))


@BOTH
def test_limits(constraints):
    """A run that max_iter or the clock ends is a machine with a valid certificate and a warning."""
    for limit in ({"max_iter": 3}, {"time_limit": 0.0}):
        with pytest.warns(ConvergenceWarning, match="terminated early"):
            model = OrdinalSVC(constraints=constraints, **limit).fit(X, Y)
        assert model.certificate_.valid and model.certificate_.gap > 0
        assert np.all(np.diff(model.thresholds_) >= 0)


@pytest.mark.filterwarnings("ignore")
@BOTH
def test_conformance(constraints):
    """Every check of scikit-learn passes, except those of weights, where two fits stop at tol."""
    reason = "both fits stop at tol, but at different points"
    expected = {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    estimator = OrdinalSVC(constraints=constraints)
    results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}


@pytest.mark.parametrize("seed", range(12))
@BOTH
def test_random_problems(constraints, seed):
    """Labels without any relation to X, where explicit thresholds often cross: the optimum of clarabel."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(10, 40))
    Z, C = draw.normal(size=(n, 2)), 10.0 ** int(draw.integers(-2, 3))
    y = np.unique(draw.integers(0, draw.integers(2, 6), n), return_inverse=True)[1]
    model = OrdinalSVC(C=C, kernel="linear", constraints=constraints, tol=1e-7).fit(Z, y)
    assert model.certificate_.valid and model.certificate_.relative_gap < 1e-5
    assert model.certificate_.primal == pytest.approx(optimum(Z @ Z.T, y, C, constraints).value, rel=1e-5, abs=1e-6)
