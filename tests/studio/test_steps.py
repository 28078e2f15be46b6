"""Step mode: replayed coefficients are those of the estimators, and end at the optimum."""

import json

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import KernelLMS, PegasosClassifier, Perceptron
from mercer.studio.answers import answer
from mercer.studio.panels.step_frames import read_procedure, walk
from mercer.studio.presets import all_presets
from mercer.studio.state import StateError, parse_state

PRESETS = {preset["name"]: preset["state"] for preset in all_presets()}


def run(preset, /, **procedure):
    """The steps of a procedure on a preset."""
    found = answer("steps", {"state": PRESETS[preset], "procedure": procedure})
    json.dumps(found, allow_nan=False)
    return found


def replayed(preset, /, **procedure):
    """State and walk of a procedure."""
    state = parse_state(PRESETS[preset])
    return state, walk(state, read_procedure(procedure))


@pytest.mark.parametrize("name", ["xor", "moons", "sine"])
@pytest.mark.parametrize("procedure", [{"name": "smo"}, {"name": "coordinate", "rule": "greedy"}])
def test_dual_procedures_end_at_the_optimum(name, procedure):
    """The dual rises with every step, and ends at that of the exact machine."""
    found = run(name, **procedure)
    dual = np.array(found["columns"]["dual"])
    assert (np.diff(dual) >= -1e-6 * abs(dual[-1])).all()
    assert dual[-1] == pytest.approx(found["optimum"], rel=1e-4)
    assert found["frame_steps"][0] == 0 and found["frame_steps"][-1] == found["n_steps"]
    assert len(found["frames"]) == len(found["frame_steps"]) <= 300


def test_the_boxes_of_smo_are_the_pictures_of_the_notes():
    """Each step stays on its segment inside the box, and its quadratic is the dual value of the step."""
    found = run("xor", name="smo")
    for k, box in enumerate(found["box"]):
        before, after = np.array(box["before"]), np.array(box["after"])
        sign = 1.0 if box["same_sign"] else -1.0
        assert before[0] + sign * before[1] == pytest.approx(after[0] + sign * after[1], abs=1e-9)
        assert box["L"] - 1e-9 <= after[1] <= box["H"] + 1e-9 and 0 <= box["L"] <= box["H"] <= box["C"] + 1e-9
        p, q, a, c, d, constant = box["quadratic"]
        i, j = after
        dual = p * i + q * j - 0.5 * (a * i * i + c * j * j) - d * i * j + constant
        assert dual == pytest.approx(found["columns"]["dual"][k], rel=1e-5)


def test_the_contours_of_coordinate_ascent_are_its_dual():
    """The quadratic of a frame at its own two coordinates is the dual value of its step."""
    found = run("xor", name="coordinate", rule="random", seed=3)
    shown = found["contours"]
    assert len(shown["path"]) == found["n_steps"] + 1 and len(shown["quadratics"]) == len(found["frames"])
    for frame, quadratic in zip(found["frame_steps"][1:], shown["quadratics"][1:], strict=True):
        (i, j), (p, q, a, c, d, constant) = shown["path"][frame], quadratic
        dual = p * i + q * j - 0.5 * (a * i * i + c * j * j) - d * i * j + constant
        assert dual == pytest.approx(found["columns"]["dual"][frame - 1], rel=1e-4)
    assert "bias" in found["note"]


@pytest.mark.parametrize("name", ["blobs", "moons"])
@pytest.mark.parametrize("step_size", [None, 0.5])
def test_pegasos_is_replayed_exactly(name, step_size):
    """The last frame is the last iterate of PegasosClassifier with the same draws."""
    state, found = replayed(name, name="pegasos", passes=2, seed=4, step_size=step_size)
    model = PegasosClassifier(
        1.0 / (state.C * state.n), kernel=state.kernel, n_steps=2 * state.n, average="last", random_state=4,
        step_size="pegasos" if step_size is None else step_size,
    ).fit(state.X, state.y)  # fmt: skip
    assert np.allclose(found.K @ found.beta[-1] + found.b[-1], model.decision_function(state.X), atol=1e-8)
    assert found.steps.objective[-1] >= found.optimum * (1 - 1e-6)


def test_the_perceptron_keeps_its_bound():
    """The last frame separates, after at most (ρ/γ)² mistakes, and is that of Perceptron."""
    state, found = replayed("separable", name="perceptron", passes=50)
    model = Perceptron(kernel=state.kernel, tol=None, shuffle=False, max_iter=50).fit(state.X, state.y)
    values = found.K @ found.beta[-1] + found.b[-1]
    assert np.allclose(values, model.decision_function(state.X), atol=1e-9)
    assert ((values > 0) == (state.y == 1)).all() and found.steps.mistakes[-1] <= found.bound
    inseparable = run("blobs", name="perceptron")
    assert inseparable["bound"] is None and "not separable" in inseparable["note"]


def test_a_seed_gives_the_perceptron_another_order():
    """Seed 0 is the order of the points, others are shuffled; the bound is the same, and each run keeps it."""
    runs = [run("separable", name="perceptron", passes=50, seed=seed) for seed in (0, 1, 2)]
    orders = [tuple(found["columns"]["i"][: len(PRESETS["separable"]["points"])]) for found in runs]
    assert orders[0] == tuple(range(len(orders[0]))) and len(set(orders)) == 3
    assert len({found["bound"] for found in runs}) == 1
    assert all(max(found["columns"]["mistakes"]) <= found["bound"] for found in runs)


def test_lms_is_replayed_exactly():
    """The last frame is KernelLMS after as many steps."""
    state, found = replayed("sine", name="lms", passes=20)
    model = KernelLMS(kernel=state.kernel, tol=0.0, max_iter=200)
    with pytest.warns(ConvergenceWarning, match="max_iter=200"):
        model.fit(state.X, state.y)
    assert np.allclose(found.K @ found.beta[-1], model.predict(state.X), atol=1e-6)


def test_frames_are_the_machine_of_their_step():
    """The values of a frame at the points are those of its coefficients; -1 is the exact machine."""
    procedure = {"name": "smo"}
    steps = run("moons", **procedure)
    last, exact = (
        answer("frame", {"state": PRESETS["moons"], "procedure": procedure, "step": k, "grid": [9, 9]})
        for k in (steps["n_steps"], -1)
    )
    fit = answer("fit", {"state": PRESETS["moons"], "grid": [9, 9]})
    assert np.allclose(exact["grid"]["values"], fit["grid"]["values"], atol=1e-5)
    assert np.allclose(last["grid"]["values"], exact["grid"]["values"], atol=1e-2)
    assert np.allclose(last["points"]["f"], fit["points"]["f"], atol=1e-2)
    for name in ("alpha", "f", "slack"):
        assert np.allclose(exact["points"][name], fit["points"][name], atol=1e-5)
    assert exact["points"]["state"] == fit["points"]["state"]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("name", ["smo", "coordinate"])
def test_primal_and_dual_of_the_steps_enclose_the_optimum(name, loss):
    """At each frame the dual is below the optimum and the primal above it; they meet at the end."""
    state = {**PRESETS["moons"], "loss": loss, "bias": name == "smo"}
    found = answer("steps", {"state": state, "procedure": {"name": name}})
    exact = answer("fit", {"state": state})["certificate"]["primal"]
    primal, dual = (np.array(found["bounds"][which]) for which in ("primal", "dual"))
    assert len(primal) == len(found["frames"]) and dual[0] == 0 and primal[0] > 2 * exact
    assert (dual <= exact * (1 + 1e-6)).all() and (primal >= exact * (1 - 1e-6)).all()
    # the violation 1e-4 at which they end costs up to C·n·1e-4 in the primal
    assert primal[-1] <= exact + 1e-4 * state["C"] * len(state["points"]) and dual[-1] == pytest.approx(exact, rel=1e-3)


def test_steps_of_lms_have_residuals_and_no_dual():
    """LMS has no tube and no dual: the slack of a point is its residual; the exact machine is least squares."""
    question = {"state": PRESETS["sine"], "procedure": {"name": "lms"}, "grid": [9, 2]}
    assert answer("steps", question)["bounds"] is None
    y = np.array([point[1] for point in PRESETS["sine"]["points"]])
    start, exact = (answer("frame", {**question, "step": step}) for step in (0, -1))
    assert np.allclose(start["points"]["slack"], np.abs(y)) and set(start["points"]["state"]) == {"zero"}
    assert np.sum(np.square(exact["points"]["slack"])) < 0.5 * np.sum(np.square(y))


@pytest.mark.parametrize(
    ("name", "procedure", "where"),
    [
        ("separable", {"name": "smo"}, "C"),
        ("separable", {"name": "pegasos"}, "C"),
        ("sine", {"name": "perceptron"}, "mode"),
        ("ring", {"name": "smo"}, "mode"),
        ("three_classes", {"name": "smo"}, "points"),
        ("moons", {"name": "magic"}, "procedure"),
        ("moons", {"name": "smo", "speed": 3}, "procedure"),
        ("moons", {"name": "coordinate", "rule": "cyclic"}, "rule"),
        ("moons", {"name": "coordinate", "coordinates": [1, 1]}, "coordinates"),
        ("moons", {"name": "pegasos", "passes": 0}, "passes"),
        ("moons", {"name": "pegasos", "step_size": -1}, "step_size"),
        ("moons", {"name": "lms", "step_size": 1000.0}, "procedure"),
        ("moons", None, "procedure"),
    ],
)
def test_procedures_that_cannot_run_say_why(name, procedure, where):
    """A procedure that does not fit the state names the reason's place."""
    with pytest.raises(StateError) as error:
        answer("steps", {"state": PRESETS[name], "procedure": procedure})
    assert error.value.where == where
