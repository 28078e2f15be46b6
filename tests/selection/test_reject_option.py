"""Decisions by expected cost, and no answer where each is too dear."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from mercer import SVC, InvalidInputError, KernelLogisticRegression, RejectOption, RiskCoverageDisplay, certify

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)[:, :3]
COSTS = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [0.5, 3.0, 0.0]])


class Given(ClassifierMixin, BaseEstimator):
    """Says that the features are the probabilities."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.asarray(X)


def given(classes=(0, 1, 2), **parameters):
    """A reject option whose samples are their own probabilities, and 500 of these."""
    P = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], 500)
    return RejectOption(Given(), **parameters).fit(np.zeros((3, 3)), np.array(classes)), P


@pytest.mark.filterwarnings("ignore")
def test_sklearn_checks():
    """scikit-learn's own checks pass."""
    check_estimator(RejectOption(KernelLogisticRegression(gamma=0.1, tol=1e-10)))


def test_equal_costs_answer_the_likeliest_class():
    """Without costs, predictions and probabilities are those of the classifier."""
    model = RejectOption(KernelLogisticRegression()).fit(X, y)
    alone = KernelLogisticRegression().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))
    assert not model.rejects(X).any()
    assert model.mean_cost(X, y) == pytest.approx(1.0 - alone.score(X, y))


def test_chow():
    """With equal costs a sample is rejected if its largest probability is below 1 - reject_cost."""
    model, P = given(reject_cost=0.4)
    np.testing.assert_array_equal(model.rejects(P), P.max(axis=1) < 0.6)
    np.testing.assert_array_equal(model.predict(P), np.where(P.max(axis=1) < 0.6, -1, P.argmax(axis=1)))


def test_costs_by_brute_force():
    """Each sample gets the answer whose expected cost, summed over the classes, is least."""
    model, P = given(cost_matrix=COSTS, reject_cost=0.5)
    for p, label in zip(P, model.predict(P), strict=True):
        costs = [sum(p[i] * COSTS[i, j] for i in range(3)) for j in range(3)]
        assert label == (-1 if min(costs) > 0.5 else int(np.argmin(costs)))
    values = model.decision_function(P)
    answered = ~model.rejects(P)
    np.testing.assert_array_equal(values.argmax(axis=1)[answered], model.predict(P)[answered])


def test_two_classes_have_one_decision_value():
    """The second class is predicted where the first would cost more."""
    costs = [[0.0, 1.0], [10.0, 0.0]]
    model = RejectOption(KernelLogisticRegression(), cost_matrix=costs).fit(X, y == 0)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X)[:, 1] > 1 / 11)


def test_no_rule_is_cheaper():
    """Where probabilities are right, the mean cost is below that of other limits and of other answers."""
    model, P = given(cost_matrix=COSTS, reject_cost=0.6)
    best = np.minimum(P @ COSTS, 0.6).min(axis=1).mean()
    reached = np.where(model.rejects(P), 0.6, (P @ COSTS).min(axis=1)).mean()
    assert reached == pytest.approx(best)


def test_risk_coverage():
    """The curve is that of answering the surest samples only, and its limits reproduce it."""
    A, t = load_breast_cancer(return_X_y=True)
    A = StandardScaler().fit_transform(A)
    model = RejectOption(KernelLogisticRegression()).fit(A[::2], t[::2])
    curve = model.risk_coverage(A[1::2], t[1::2])
    assert curve.coverage[-1] == 1.0
    assert curve.risk[-1] == pytest.approx(model.mean_cost(A[1::2], t[1::2]))
    for k in (len(curve.risk) // 2, len(curve.risk) - 20):
        model.set_params(reject_cost=curve.reject_cost[k])
        answered = ~model.rejects(A[1::2])
        assert answered.mean() == pytest.approx(curve.coverage[k])
        wrong = model.predict(A[1::2])[answered] != t[1::2][answered]
        assert wrong.mean() == pytest.approx(curve.risk[k])
    assert "RiskCoverage(all samples: mean cost" in repr(curve)
    display = RiskCoverageDisplay.from_estimator(model, A[1::2], t[1::2])
    assert display.coverage == pytest.approx(curve.coverage[len(curve.risk) - 20])
    with pytest.raises(InvalidInputError, match="rejects no samples"):
        RiskCoverageDisplay.from_estimator(SVC(), A, t)


@pytest.mark.parametrize(
    ("classes", "label", "expected"),
    [
        ((0, 1, 2), None, -1),
        (("a", "b", "c"), None, "rejected"),
        ((0, 1, 2), 99, 99),
        ((0, 1, 2), "ask", "ask"),
        (("a", "b", "c"), None, "rejected"),
    ],
    ids=str,
)
def test_labels_of_rejected_samples(classes, label, expected):
    """Numbers and names have a label of their kind, and any other may be given."""
    model, P = given(classes, reject_cost=0.3, reject_label=label)
    said = model.predict(P)
    assert {said[i] for i in np.flatnonzero(model.rejects(P))} == {expected}
    assert set(said[~model.rejects(P)].tolist()) == set(classes)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"estimator": SVC()}, "SVC has no predict_proba, from which expected costs are computed. Use SVCCV"),
        (
            {"cost_matrix": [[0.0, 1.0], [1.0, 0.0]]},
            "there are 3 classes: give a row and a column for each, in the order",
        ),
        ({"cost_matrix": -COSTS}, "cost_matrix has the entry -5, but costs must be at least 0"),
        ({"cost_matrix": np.full((3, 3), np.nan)}, "cost_matrix contains NaN"),
        ({"reject_cost": 0.1, "reject_label": 2}, "labelled 2, which is one of the classes"),
        ({"reject_cost": -1.0}, "The 'reject_cost' parameter of RejectOption must be"),
    ],
    ids=["no probabilities", "shape", "negative", "nan", "label", "negative limit"],
)
def test_bad_input(parameters, message):
    """Errors say what is wrong and what is allowed."""
    with pytest.raises(ValueError, match=message):
        RejectOption(**{"estimator": KernelLogisticRegression(), **parameters}).fit(X, y)


@pytest.mark.parametrize(
    ("classes", "label"),
    [
        ([False, True, True], None),
        (["a", "b", "c"], -1),
        (["a", "b", "c"], None),
        ([0.0, 1.0, 2.0], None),
        ([0, 1, 2], "none"),
    ],
)
def test_score(classes, label):
    """The score is the share of right answers, whatever the types of classes and of the label of rejected samples."""
    names = np.array(classes)[y]
    model = RejectOption(KernelLogisticRegression(), reject_cost=0.1, reject_label=label).fit(X, names)
    rejected, plain = model.rejects(X), model.estimator_.predict(X)
    assert 0 < rejected.sum() < len(y)
    assert model.score(X, names) == np.mean((plain == names) & ~rejected)
    weight = np.arange(len(y))
    assert model.score(X, names, weight) == pytest.approx(weight @ ((plain == names) & ~rejected) / weight.sum())


def test_other_lengths():
    """As many labels as samples are needed, and the error says so."""
    model = RejectOption(KernelLogisticRegression(), reject_cost=0.1).fit(X, y)
    for question in (model.score, model.mean_cost, model.risk_coverage):
        with pytest.raises(ValueError, match="Found input variables with inconsistent numbers of samples"):
            question(X, y[:-1])


def test_it_is_certified_by_its_classifier():
    """certify names the classifier inside."""
    model = RejectOption(KernelLogisticRegression()).fit(X, y)
    with pytest.raises(InvalidInputError, match="certify its estimator_"):
        certify(model, X, y)
    assert certify(model.estimator_, X, y).relative_gap < 1e-3
