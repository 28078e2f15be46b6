"""Importance is measured on held-out rows, with signs and readable names."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris

from mercer.io.tables import read_samples
from mercer.report.dependence import Dependence, partial_dependence
from mercer.report.importance import permutation_importance, shapley_values, slopes
from mercer.report.inputs import _direction, inputs_section
from mercer.report.names import feature_names
from mercer.workflow import train

pytest.importorskip("matplotlib")


def trained(tmp_path, frame, **more):
    frame.to_csv(tmp_path / "data.csv", index=False)
    return train(
        read_samples(tmp_path / "data.csv"), judge="none", **{"Cs": 2, "gammas": 2, "search": "grid", "cv": 3} | more
    )


def test_importance_is_of_held_out_rows(tmp_path):
    """With random labels no column matters on held-out rows, even if the machine memorises its training rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    frame["label"] = rng.choice(["yes", "no"], 120)
    outcome = trained(tmp_path, frame, Cs=[1000.0], gammas=[30.0])
    assert np.mean(outcome.model.predict(outcome.samples.X) == outcome.samples.y) > 0.95
    found = permutation_importance(outcome)
    assert found.rows == 120 and found.folds == 3
    assert np.all(np.abs(found.loss) < 0.12)


def test_importance_finds_the_column_that_matters(tmp_path):
    """Shuffling the only informative column reduces the score to chance; the spread is over folds."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(150, 3)), columns=["noise", "signal", "more noise"])
    frame["y"] = 5.0 * frame.signal
    found = permutation_importance(trained(tmp_path, frame, kernel="linear"))
    order = [found.columns[j] for j in np.argsort(-found.loss)]
    assert order[0] == "signal"
    # shuffled predictions have twice the variance of the target as their mean squared error: R² falls by 2
    assert found.loss[1] == pytest.approx(2.0, abs=0.5) and np.all(np.abs(found.loss[[0, 2]]) < 0.01)
    assert 0 < found.spread[1] < 1


def test_slopes_of_a_linear_machine_are_its_signed_weights(tmp_path):
    """A falling column has a negative weight, per standard deviation."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(100, 2)) * [1.0, 10.0], columns=["up", "down"])
    frame["y"] = 3.0 * frame.up - 0.2 * frame.down
    outcome = trained(tmp_path, frame, kernel="linear")
    found = slopes(outcome)
    assert found.linear and found.outputs == ["y"]
    np.testing.assert_array_equal(found.mean[0], outcome.machine.coef_.ravel())
    np.testing.assert_allclose(found.mean[0], [3.0 * frame.up.std(ddof=0), -0.2 * frame.down.std(ddof=0)], rtol=0.02)
    text = "".join(inputs_section(outcome))
    assert "Signed weights" in text and f"{found.mean[0, 1]:+.3g}".replace("-", "−") in text and "↓" in text


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_slopes_of_classes_have_the_sign_of_what_speaks_for_them(kernel, tmp_path):
    """Large petals favour virginica over setosa, in one-vs-one and one-vs-rest machines."""
    found = slopes(trained(tmp_path, load_iris(as_frame=True).frame, kernel=kernel, task="classification"))
    assert (
        found.mean.shape == (3, 4)
        and found.outputs == ["class 0", "class 1", "class 2"]
        and found.linear == (kernel == "linear")
    )
    assert found.mean[2, 2] > 0 and found.mean[2, 3] > 0 and found.mean[0, 2] < 0 and found.mean[0, 3] < 0
    if kernel == "rbf":
        np.testing.assert_allclose(found.mean.sum(axis=0), 0.0, atol=1e-9)


def test_second_of_two_classes_is_positive(tmp_path):
    """A column that grows with the second class has a positive slope and a rising partial dependence."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(size=120), "z": rng.normal(size=120)})
    frame["side"] = np.where(frame.x > 0, "right", "left")
    outcome = trained(tmp_path, frame)
    found = slopes(outcome)
    assert found.outputs == ["right"] and found.mean[0, 0] > 0 and found.rising[0, 0] > 0.7
    dependence = partial_dependence(outcome, "x")
    assert dependence.words() == "rises from 0 to 1"
    assert "Positive speaks for right, negative for left." in "".join(inputs_section(outcome))


def test_partial_dependence_is_the_average_prediction(tmp_path):
    """It equals the mean prediction with the column set to the value in all rows."""
    outcome = trained(tmp_path, load_diabetes(as_frame=True).frame[::4][["bmi", "bp", "target"]])
    found = partial_dependence(outcome, "bmi")
    for place in (0, 7, -1):
        rows = outcome.samples.X.copy()
        rows["bmi"] = found.values[place]
        assert found.mean[0, place] == pytest.approx(outcome.model.predict(rows).mean())
    assert found.words().startswith("rises from ")


def test_courses_in_words():
    """The words describe the course of one output, or the most likely of several outputs at each end."""

    def words(*mean, values=(1, 2, 3), kind="number", outputs=("y",)):
        return Dependence("x", list(values), kind, list(outputs), np.array(mean, dtype=float)).words()

    assert words([1, 2, 4]) == "rises from 1 to 4"
    assert words([4, 2, 1]) == "falls from 4 to 1"
    assert words([1, 4, 1]) == "goes up and down between 1 and 4"
    assert words([2, 1, 3], values=("a", None, "c"), kind="category") == "is lowest for missing, highest for c"
    assert words([0.9, 0.5, 0.1], [0.1, 0.5, 0.9], outputs=("a", "b")) == "low values favour a, high values b"
    assert words([0.9, 0.8, 0.7], [0.1, 0.2, 0.3], outputs=("a", "b")) == "P(a) falls from 0.9 to 0.7"


def test_dates_and_booleans_have_their_own_axes(tmp_path):
    """The axis of a date shows calendar days, that of a boolean "no" and "yes"."""
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"day": pd.date_range("2019-01-01", periods=90, freq="9D").strftime("%Y-%m-%d")})
    frame["member"] = rng.choice(["yes", "no", ""], 90)
    frame["y"] = np.arange(90) / 30 + 2.0 * (frame.member == "yes") + rng.normal(0, 0.1, 90)
    outcome = trained(tmp_path, frame, kernel="linear")
    day, member = partial_dependence(outcome, "day"), partial_dependence(outcome, "member")
    assert day.kind == "date" and day.words().startswith("rises from ")
    assert {str(value) for value in member.values} == {"0.0", "1.0", "nan"}
    assert member.words() in ("is lowest for no, highest for yes", "is lowest for missing, highest for yes")
    text = "".join(inputs_section(outcome))
    assert f"member: predicted y {member.words()}" in text
    assert "one standard deviation of a numeric column" in text


def test_directions_in_words():
    """The direction follows from the share of rows with a positive slope."""
    assert [_direction(share) for share in (1.0, 0.8, 0.5, 0.2, 0.0)] == [
        "↑ up", "↑ up in 80 % of rows", "mixed: up in 50 % of rows", "↓ down in 80 % of rows", "↓ down"
    ]  # fmt: skip


def test_names_of_features(tmp_path):
    """A missing category is called "missing", never "None"; words are shown with their column."""
    rng = np.random.default_rng(4)
    n = 90
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "sex": rng.choice(["female", "male", ""], n),
            "note": [" ".join(rng.choice(["good", "bad", "fine"], 6)) + f" number {i}" for i in range(n)],
            "label": rng.choice(["yes", "no"], n),
        }
    )
    outcome = trained(tmp_path, frame)
    names = feature_names(outcome)
    assert names[:4] == ["age", "sex = female", "sex = male", "sex missing"] and "note: fine" in names
    text = "".join(inputs_section(outcome))
    assert "sex_None" not in text and "sex missing" in text
    assert [c for c in partial_dependence(outcome, "sex").values if c is not None] in (
        ["female", "male"], ["male", "female"]
    )  # fmt: skip
    assert partial_dependence(outcome, "note") is None


def test_many_columns_are_not_shuffled(tmp_path):
    """The section then says so and still has slopes."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 205))
    np.savez(tmp_path / "data.npz", X=X, y=np.where(X[:, 0] > 0, 1, 0))
    outcome = train(read_samples(tmp_path / "data.npz"), Cs=2, gammas=2, search="grid", cv=2, judge="none")
    assert permutation_importance(outcome) is None
    text = "".join(inputs_section(outcome))
    assert (
        "because there are 205 columns; the limit is 200" in text
        and "The 25 largest of 205 features are shown." in text
    )


def test_shapley_values_of_a_report_are_exact_and_named(tmp_path):
    """The column that decides has the largest; categories have names; a kernel without a formula has none."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"noise": rng.normal(size=120), "signal": rng.normal(size=120)})
    frame["kind"] = rng.choice(["a", "b", "c"], 120)
    frame["y"] = frame.signal**2
    outcome = trained(tmp_path, frame)
    found = shapley_values(outcome.machine, outcome.prepared)
    assert found.exact and len(found) == 100 and found.n_background == 30
    assert feature_names(outcome)[int(np.argmax(found.importance))] == "signal"
    text = "".join(inputs_section(outcome))
    assert "What each feature adds to the value of a row" in text and "in units of y" in text
    assert text.index("mean |Shapley value|") < text.index("Signed slopes")
    other = trained(tmp_path, frame, kernel="matern()")
    assert shapley_values(other.machine, other.prepared) is None
    assert "Shapley" not in "".join(inputs_section(other))
