"""The held-out scores equal scikit-learn's, computed on rows that the machine was not fitted to."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import classification_report, roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler

from mercer.io.tables import read_samples
from mercer.report.quality import BINS, _bins, quality, reliability
from mercer.workflow import train
from mercer.workflow.class_scores import held_out_classes

pytest.importorskip("matplotlib")


def trained(tmp_path, frame, **more):
    frame.to_csv(tmp_path / "data.csv", index=False)
    return train(read_samples(tmp_path / "data.csv"), Cs=2, gammas=2, search="grid", judge="none", **more)


@pytest.fixture(scope="module")
def two_classes(tmp_path_factory):
    data = load_breast_cancer(as_frame=True)
    frame = data.frame.iloc[:, [1, 4, 8, 30]].rename(columns={"target": "benign"})
    return trained(tmp_path_factory.mktemp("two"), frame[::2], cv=3)


@pytest.fixture(scope="module")
def three_classes(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("three"), load_iris(as_frame=True).frame, cv=3)


@pytest.mark.parametrize("name", ["two_classes", "three_classes"])
def test_scores_of_classes_are_those_of_scikit_learn(name, request):
    """Precision, recall and F1 of each class, from the same labels."""
    outcome = request.getfixturevalue(name)
    found = held_out_classes(outcome)
    y = np.asarray(outcome.samples.y)
    expected = classification_report(y, outcome.held_out, output_dict=True)
    for one in found.by_class():
        values = expected[str(one.label)]
        assert (one.rows, one.precision, one.recall, one.f1) == (
            values["support"], pytest.approx(values["precision"]), pytest.approx(values["recall"]),
            pytest.approx(values["f1-score"]),
        )  # fmt: skip
    np.testing.assert_array_equal(found.confusion, outcome.confusion)


def test_area_of_two_classes_is_that_of_held_out_decision_values(two_classes):
    """The chosen machine, fitted to the other folds, gives each row its decision value."""
    machine, search = two_classes.machine, two_classes.search
    X, y = StandardScaler().fit_transform(two_classes.samples.X), np.asarray(two_classes.samples.y)
    folds = [(np.flatnonzero(search.cv_fold_ != f), np.flatnonzero(search.cv_fold_ == f)) for f in range(3)]
    values = cross_val_predict(machine, X, y, cv=folds, method="decision_function")
    both = held_out_classes(two_classes).by_class()
    assert both[1].auc == pytest.approx(roc_auc_score(y, values), abs=1e-3)
    assert both[0].auc == pytest.approx(both[1].auc)
    assert both[1].auc < roc_auc_score(y, machine.decision_function(X))


def test_probabilities_are_crossfitted(three_classes):
    """The probability of a row does not change with its own label, but with the labels of other folds."""
    search = three_classes.search
    found = held_out_classes(three_classes)
    assert found.probabilities.shape == (150, 3)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(found.probabilities.argmax(axis=1), found.predicted)
    y = three_classes.samples.y.copy()
    own = search.cv_fold_ == 0
    changed = np.asarray(three_classes.samples.y).copy()
    changed[own] = (changed[own] + 1) % 3
    object.__setattr__(three_classes.samples, "y", changed)
    try:
        again = held_out_classes(three_classes)
    finally:
        object.__setattr__(three_classes.samples, "y", y)
    np.testing.assert_array_equal(again.probabilities[own], found.probabilities[own])
    assert not np.allclose(again.probabilities[~own], found.probabilities[~own])


def test_calibration_curve_is_that_of_scikit_learn():
    """Where each bin has enough rows, bins are those of calibration_curve; others are merged with their neighbours."""
    rng = np.random.default_rng(0)
    stated = rng.random(2000)
    own = rng.random(2000) < stated
    mean, share, low, high, count = reliability(stated, own)
    expected = calibration_curve(own, stated, n_bins=BINS)
    np.testing.assert_allclose((share, mean), expected)
    assert count.sum() == 2000 and np.all((low <= share) & (share <= high))
    assert np.mean((low <= mean) & (mean <= high)) >= 0.8
    sparse = np.concatenate([np.full(30, 0.01), [0.35, 0.45, 0.55], np.full(30, 0.99)])
    bins = _bins(sparse)
    assert [len(part) for part in bins] == [30, 33]
    assert sorted(np.concatenate(bins)) == list(range(63))


def test_page_of_classes_has_curves(two_classes, three_classes):
    """Pictures of ROC and calibration; the alternative text has the area of each class, of two classes one."""
    for outcome, areas in ((two_classes, 1), (three_classes, 3)):
        text = "".join(quality(outcome))
        roc = text.split('alt="ROC curves with areas: ')[1].split('"')[0]
        assert roc.count(",") == areas - 1
        assert "Calibration: points should lie on the diagonal" in text
        assert '<th scope="col">F1</th>' in text and "Confusion matrix" in text


def test_errors_of_a_regression_have_two_labels(tmp_path):
    """The page distinguishes the R² of pooled predictions from the one to expect on new rows, and has pictures."""
    frame = load_diabetes(as_frame=True).frame[::3][["bmi", "bp", "target"]]
    frame.to_csv(tmp_path / "data.csv", index=False)
    outcome = train(read_samples(tmp_path / "data.csv"), Cs=2, gammas=2, search="grid", cv=3, judge="nested")
    text = "".join(quality(outcome))
    assert f"Expect R² {outcome.evaluation.score:.3f} on new rows" in text
    pooled = outcome.errors["R²"]
    assert f"R² {pooled:.3f} in this table is computed from all these predictions together" in text
    y = np.asarray(outcome.samples.y)
    for value in (outcome.errors["root mean squared error"], np.std(y), np.mean(np.abs(y - y.mean()))):
        assert f"<td>{value:.4g}</td>" in text
    assert "Residuals: they should scatter evenly around 0" in text and "Predicted against true values" in text


def test_classes_of_two_rows(tmp_path):
    """Six rows of three classes have scores, but no calibration curve, and the page says why."""
    frame = pd.DataFrame({"x": [1.0, 1.2, 5.0, 5.2, 9.0, 9.2], "label": list("aabbcc")})
    outcome = trained(tmp_path, frame, cv=2)
    text = "".join(quality(outcome))
    assert "A calibration curve needs at least 50 rows; there are 6." in text
    assert "Calibration: points" not in text and "ROC curves" in text


def test_no_fold_was_complete(two_classes, tmp_path):
    """A search without time leaves no held-out predictions; the section says so."""
    frame = load_iris(as_frame=True).frame
    frame.to_csv(tmp_path / "data.csv", index=False)
    outcome = train(read_samples(tmp_path / "data.csv"), judge="none", time_limit=0.0)
    text = "".join(quality(outcome))
    assert "The search ended before the first fold was complete" in text and "nan" not in text
