"""Answers about machines: they are those of mercer's estimators, and agree with each other."""

import json
import math
import sys

import numpy as np
import pytest

from mercer import SVC, SVR, OneClassSVM, leave_one_out
from mercer.studio.answers import ANSWERS, answer
from mercer.studio.panels.fitted_machine import fitted
from mercer.studio.presets import all_presets
from mercer.studio.state import StateError, parse_state
from mercer.svm.solve import solve_problem

PRESETS = {preset["name"]: preset["state"] for preset in all_presets()}
TWO_CLASSES = ["disc", "xor", "moons", "outliers", "separable", "blobs"]
GRID = [17, 13]


def ask(name, state, **more):
    """An answer that is valid JSON."""
    found = answer(name, {"state": state, **more})
    json.dumps(found, allow_nan=False)
    return found


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_fitted_to_the_optimum(name):
    """The machine of every preset is optimal, and its certificate proves it."""
    found = ask("fit", PRESETS[name], grid=GRID)
    n = len(PRESETS[name]["points"])
    assert found["status"] in ("optimal", "separable") and found["message"] is None
    assert {len(found["points"][key]) for key in ("alpha", "state", "f", "slack", "kkt", "margin")} == {n}
    if PRESETS[name]["mode"] == "process":
        assert found["certificate"] is None and "residual" in found["why"]
    else:
        assert found["certificate"]["valid"] and found["certificate"]["relative_gap"] < 1e-4
        assert max(found["points"]["kkt"]) < 1e-4
    assert all(one["text"] and one["help"] for one in found["numbers"])


@pytest.mark.parametrize("name", TWO_CLASSES)
def test_values_on_the_grid_are_those_of_svc(name):
    """Rows of the grid go up from y_min, and its values are SVC's decision function."""
    state = parse_state(PRESETS[name])
    found = ask("fit", PRESETS[name], grid=GRID)
    model = SVC(kernel=state.kernel, C=state.C, tol=1e-6).fit(state.X, state.y)
    x, y = np.linspace(*state.view[:2], GRID[0]), np.linspace(*state.view[2:], GRID[1])
    expected = [[model.decision_function([[a, b]])[0] for a in x] for b in y]
    assert np.allclose(found["grid"]["values"], expected, rtol=1e-4, atol=1e-4)
    assert np.allclose(found["points"]["f"], model.decision_function(state.X), rtol=1e-4, atol=1e-4)
    assert found["classes"] == [0, 1]


def test_the_line_of_a_linear_machine_separates():
    """w and b of the answer give the values of the answer."""
    found = ask("fit", PRESETS["separable"], grid=GRID)
    X = np.array(PRESETS["separable"]["points"])[:, :2]
    assert np.allclose(X @ found["line"]["w"] + found["line"]["b"], found["points"]["f"], atol=1e-5)
    assert found["status"] == "separable"


def test_several_classes_have_labels_and_the_margin_of_the_winner():
    """The labels on the grid are SVC's predictions."""
    state = parse_state(PRESETS["three_classes"])
    found = ask("fit", PRESETS["three_classes"], grid=GRID)
    model = SVC(kernel=state.kernel, C=state.C, tol=1e-6).fit(state.X, state.y)
    x, y = np.meshgrid(np.linspace(*state.view[:2], GRID[0]), np.linspace(*state.view[2:], GRID[1]))
    expected = model.predict(np.column_stack([x.ravel(), y.ravel()])).reshape(GRID[1], GRID[0])
    assert np.array_equal(found["grid"]["labels"], expected)
    assert np.shape(found["grid"]["values"]) == (GRID[1], GRID[0])


def test_regression_one_class_and_quantiles_are_mercers():
    """The other modes show what SVR and OneClassSVM predict."""
    state = parse_state(PRESETS["sine"])
    found = ask("fit", PRESETS["sine"], grid=GRID)
    model = SVR(kernel=state.kernel, C=state.C, epsilon=state.epsilon, tol=1e-6).fit(state.X, state.y)
    assert np.allclose(found["grid"]["f"], model.predict(np.array(found["grid"]["x"])[:, None]), atol=1e-4)
    assert np.allclose(np.subtract(found["grid"]["upper"], found["grid"]["f"]), state.epsilon, atol=1e-5)
    ring = parse_state(PRESETS["ring"])
    novelty = OneClassSVM(kernel=ring.kernel, nu=ring.nu, tol=1e-6).fit(ring.X)
    assert np.allclose(ask("fit", PRESETS["ring"])["points"]["f"], novelty.decision_function(ring.X), atol=1e-5)
    curves = np.array(ask("fit", PRESETS["heteroscedastic"], grid=GRID)["grid"]["curves"])
    assert curves.shape == (3, GRID[0]) and (np.diff(curves, axis=0) > 0).mean() > 0.95


def test_the_band_of_a_process_widens_in_gaps():
    """Far from points the deviation of a Gaussian process is larger than at them."""
    found = ask("fit", PRESETS["gaps"], grid=[61, 2])
    deviation = np.array(found["grid"]["deviation"])
    assert deviation.max() > 3 * max(found["points"]["deviation"])
    assert np.shape(found["grid"]["samples"]) == (3, 61)


def numbers(found):
    """The numbers beside the picture by name."""
    return {one["name"]: one["text"] for one in found["numbers"]}


def test_counts_of_several_classes_are_points():
    """A point that is free in one pair of classes and at C in another counts once."""
    found = ask("fit", {**PRESETS["three_classes"], "kernel": "linear()", "C": 0.01}, grid=GRID)
    shown, states = numbers(found), found["points"]["state"]
    n = len(states)
    assert int(shown["free"]) == states.count("free") and int(shown["at C"]) == states.count("bound") <= n
    carrying = n - states.count("zero")
    assert shown["support vectors"] == f"{carrying} of {n} ({100 * carrying / n:.0f} %)"


def test_a_large_gap_is_not_optimal():
    """With C = 10⁹ small violations leave a large gap: the machine is not called optimal."""
    found = ask("fit", {**PRESETS["moons"], "kernel": "gaussian(gamma=0.5)", "C": 1e9}, grid=GRID)
    assert found["certificate"]["relative_gap"] > 1e-2
    assert found["status"] == "limit" and "its relative gap is" in found["message"]


def test_the_ring_has_three_strangers():
    """The last three points of the preset are outside, no others, and the script counts the same."""
    values = np.array(ask("fit", PRESETS["ring"])["points"]["f"])
    assert np.flatnonzero(values < -1e-6).tolist() == [80, 81, 82]
    assert numbers(ask("fit", PRESETS["ring"]))["outside"] == "3 of 83 (3.6 %)"


@pytest.mark.parametrize("points", [[], [[0, 0, 0]], [[0, 0, 3], [1, 0, 3]]])
def test_too_few_points_are_said_so(points):
    """Without two classes there is no machine: the answer says what to do instead of failing."""
    found = ask("fit", {"points": points})
    assert found["status"] == "waiting" and found["message"] == "Place points of at least two classes."
    assert found["grid"] is None


def test_an_inseparable_hard_margin_has_its_proof():
    """The weights of both classes sum to 1 and combine to the same point."""
    state = {"points": [[0, 0, 0], [2, 2, 0], [0, 2, 1], [2, 0, 1]], "kernel": "linear()", "C": "inf"}
    found = ask("fit", state)
    proof, points = found["proof"], np.array(state["points"])[:, :2]
    assert found["status"] == "not_separable" and "not separable" in found["message"]
    sides = [sum(weight * points[i] for i, weight in proof[side]) for side in ("positive", "negative")]
    assert [sum(weight for _, weight in proof[side]) for side in ("positive", "negative")] == pytest.approx([1, 1])
    assert np.allclose(sides, [proof["point"], proof["point"]], atol=1e-6)


@pytest.mark.parametrize("name", TWO_CLASSES)
def test_the_path_agrees_with_fits(name):
    """The machine that the path gives at a C is the fit at that C."""
    state = {**PRESETS[name], "C": 0.7}
    path = ask("path", state)
    assert path["C"] == sorted(path["C"]) and len(path["C"]) == len(path["intercept"])
    there, fit = ask("at_C", state, C=0.7, grid=GRID), ask("fit", state, grid=GRID)
    assert there["certificate"]["relative_gap"] < 1e-8
    assert there["certificate"]["primal"] == pytest.approx(fit["certificate"]["primal"], rel=1e-5)
    assert np.allclose(there["points"]["f"], fit["points"]["f"], atol=1e-3)
    assert np.allclose(there["grid"]["values"], fit["grid"]["values"], atol=2e-3, rtol=1e-3)


def test_beyond_a_constant_path_nothing_changes():
    """Where the path has become the hard margin, any larger C gives it."""
    path = ask("path", PRESETS["separable"])
    assert path["constant"] and path["complete"]
    end, far = (ask("at_C", PRESETS["separable"], C=C, grid=GRID) for C in (path["C"][-1], 1e6))
    assert np.allclose(end["points"]["f"], far["points"]["f"], atol=1e-6)
    with pytest.raises(StateError, match="outside of the path"):
        ask("at_C", PRESETS["separable"], C=1e-9)


@pytest.mark.parametrize("name", ["moons", "three_classes", "sine", "ring", "heteroscedastic", "gaps"])
def test_a_point_tells_its_condition(name):
    """The card of a point has the numbers of the fit, a sentence, and the answer of the machine without it."""
    fit = ask("fit", PRESETS[name])
    for index in (0, 5):
        found = ask("point", PRESETS[name], index=index)
        assert found["alpha"] == pytest.approx(fit["points"]["alpha"][index], abs=1e-4)
        assert found["state"] == fit["points"]["state"][index]
        assert found["kkt"].endswith(".") and found["leave_one_out"]["text"].endswith(".")


@pytest.mark.parametrize("name", ["blobs", "three_classes"])
def test_leave_one_out_is_exact(name):
    """`leave_one_out`, `point` and a new fit without the point agree."""
    state = parse_state(PRESETS[name])
    found = ask("leave_one_out", PRESETS[name])
    model = SVC(kernel=state.kernel, C=state.C, tol=1e-6).fit(state.X, state.y)
    assert found["left_out_error"] == pytest.approx(leave_one_out(model, state.X, state.y).error)
    assert found["exact"] and sum(found["wrong"]) == round(found["left_out_error"] * state.n)
    wrong = [i for i in range(state.n) if found["wrong"][i]]
    for i in [*wrong[:3], 0]:
        assert ask("point", PRESETS[name], index=i)["leave_one_out"]["correct"] != found["wrong"][i]


def test_a_map_finds_the_best_score():
    """The best cell of the map is its largest score, and its kernel parses."""
    found = ask("search_map", PRESETS["moons"], gammas=[0.1, 1.0, 10.0], Cs=[0.1, 1.0, 10.0, 100.0])
    assert np.shape(found["scores"]) == (3, 4)
    assert found["best"]["score"] == pytest.approx(np.max(found["scores"]))
    assert parse_state({"kernel": found["best"]["kernel"]})
    assert ask("search_map", PRESETS["blobs"], Cs=[1.0])["gammas"] is None  # a linear kernel has no width


def test_the_mercer_light_is_red_for_tanh():
    """A sigmoid kernel is not positive semidefinite: there is a witness, and the certificate is not valid."""
    state = {**PRESETS["blobs"], "kernel": "tanh(gamma=1.0, coef0=-1.0)"}
    found = ask("kernel", state)
    witness = np.array(found["witness"])
    K = np.tanh(np.array(state["points"])[:, :2] @ np.array(state["points"])[:, :2].T - 1.0)
    assert found["psd"] is False and found["smallest_eigenvalue"] < 0 and found["advice"]
    assert witness @ K @ witness == pytest.approx(found["smallest_eigenvalue"], rel=1e-3)
    fit = ask("fit", state)
    assert fit["certificate"]["valid"] is False
    assert [(one["name"], one["text"]) for one in fit["numbers"][:2]] == [
        ("|w|", "not defined"),
        ("margin", "not defined"),
    ]
    assert ask("kernel", PRESETS["moons"])["psd"] is True


def test_the_gram_matrix_is_ordered_by_class():
    """Rows of one class stand together, and the values are those of the kernel."""
    found = ask("gram", PRESETS["three_classes"])
    X = np.array(PRESETS["three_classes"]["points"])[found["order"], :2]
    squared = ((X[:, None] - X) ** 2).sum(axis=-1)
    assert np.allclose(found["matrix"], np.exp(-0.5 * squared), atol=1e-5)
    assert found["labels"] == sorted(found["labels"])


@pytest.mark.parametrize("name", ["disc", "separable", "moons"])
def test_the_plane_of_the_lifted_picture_has_the_values_of_the_machine(name):
    """⟨normal, φ⟩ + offset is f at every point if the picture is exact."""
    found, fit = ask("lift", PRESETS[name]), ask("fit", PRESETS[name])
    values = np.array(found["points"]) @ found["plane"]["normal"] + found["plane"]["offset"]
    if found["exact"]:
        assert np.allclose(values, fit["points"]["f"], atol=1e-3)
    else:  # three directions of many: the projection keeps the sides, not the values
        assert np.corrcoef(values, fit["points"]["f"])[0, 1] > 0.5
    assert found["exact"] == (name != "moons")


def calls_of(function, job):
    """How often a function of Python is called during a job."""
    code, seen = function.__code__, []

    def look(frame, event, arg):
        if event == "call" and frame.f_code is code:
            seen.append(event)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        job()
    finally:
        sys.setprofile(before)
    return len(seen)


def test_a_position_of_a_dragged_point_costs_one_fit():
    """Each answer with 200 points solves one problem, in fewer steps than points and with each kernel value once."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    labels = (X[:, 0] * X[:, 1] > 0).astype(int)
    for k in range(12):
        points = [[float(x) + 1e-3 * k, float(y), int(label)] for (x, y), label in zip(X, labels, strict=True)]
        state = {"points": points, "kernel": "gaussian(gamma=1.0)"}
        assert calls_of(solve_problem, lambda state=state: ask("fit", state, grid=[72, 72])) == 1
        model = fitted(parse_state(state))
        assert sum(model.n_iter_) <= len(X) and model.kernel_evaluations_ <= len(X) ** 2
        assert calls_of(solve_problem, lambda state=state: ask("fit", state, grid=[36, 36])) == 0


def test_names_of_answers_are_those_of_the_contract():
    """Every answer that the page may ask for is there."""
    assert set(ANSWERS) == {
        "presets", "lessons", "fit", "point", "leave_one_out", "path", "at_C", "search_map", "kernel", "gram", "lift",
        "steps", "frame", "code", "export_page", "export_model", "table_open", "table_plane", "table_strings",
        "table_fit", "job", "job_stop", "session",
    }  # fmt: skip
    assert len(answer("lessons", {})["lessons"]) >= 15


@pytest.mark.parametrize(
    ("name", "payload", "where"),
    [
        ("fit", {}, "state"),
        ("fit", {"state": {}, "grid": [5]}, "grid"),
        ("fit", {"state": {}, "grid": [1000, 1000]}, "grid"),
        ("fit", {"state": {}, "grid": [2.5, 3]}, "grid"),
        ("point", {"state": {}, "index": 0}, "index"),
        ("point", {"state": {}, "index": "0"}, "index"),
        ("path", {"state": PRESETS["three_classes"]}, "mode"),
        ("at_C", {"state": PRESETS["blobs"], "C": "1"}, "C"),
        ("leave_one_out", {"state": PRESETS["ring"]}, "mode"),
        ("search_map", {"state": PRESETS["two_points"]}, "points"),
        ("search_map", {"state": PRESETS["moons"], "Cs": [math.nan]}, "Cs"),
        ("lift", {"state": PRESETS["sine"]}, "mode"),
        ("nonsense", {}, "name"),
    ],
)
def test_questions_that_make_no_sense_are_refused(name, payload, where):
    """A question that cannot be answered names its part."""
    with pytest.raises(StateError) as error:
        answer(name, payload)
    assert error.value.where == where
