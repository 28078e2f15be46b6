"""States: what is read, what is refused, and that a refused part is named."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.studio.presets import all_presets
from mercer.studio.state import FIELDS, MOST_POINTS, State, StateError, parse_state


@pytest.mark.parametrize("preset", all_presets(), ids=lambda one: one["name"])
def test_a_state_survives_json(preset):
    """A preset is a valid state, and reading what `to_json` writes gives the same state."""
    state = parse_state(preset["state"])
    assert state.n == len(preset["state"]["points"]) > 0
    assert parse_state(json.loads(json.dumps(state.to_json(), allow_nan=False))) == state


def test_an_empty_object_is_the_default_state():
    """Fields that a state leaves out have their defaults."""
    assert parse_state({}) == State()


def test_hard_margins_are_the_text_inf():
    """C = "inf" is the hard margin, and is written as the same text."""
    state = parse_state({"C": "inf"})
    assert math.isinf(state.C) and state.to_json()["C"] == "inf"


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ([], "state"),
        ("{}", "state"),
        ({"colour": 1}, "'colour'"),
        ({"version": 2}, "version"),
        ({"mode": "cluster"}, "mode"),
        ({"points": {}}, "points"),
        ({"points": [[0, 0]]}, "points"),
        ({"points": [[0, float("nan"), 0]]}, "points"),
        ({"points": [[0, float("inf"), 0]]}, "points"),
        ({"points": [[0, 1e9, 0]]}, "points"),
        ({"points": [[0, 10**400, 0]]}, "points"),
        ({"points": [[0, "1", 0]]}, "points"),
        ({"points": [[0, True, 0]]}, "points"),
        ({"points": [[0, 0, 10]]}, "points"),
        ({"points": [[0, 0, -1]]}, "points"),
        ({"points": [[0, 0, 0.5]]}, "points"),
        ({"points": [[0, 0, 0]] * (MOST_POINTS + 1)}, "points"),
        ({"points": [[0, 0, 0]] * 1_000_000}, "points"),
        ({"view": [0, 1, 2]}, "view"),
        ({"view": [0, 0, 0, 1]}, "view"),
        ({"view": [1, 0, 0, 1]}, "view"),
        ({"kernel": 3}, "kernel"),
        ({"kernel": ""}, "kernel"),
        ({"kernel": "gaussian("}, "kernel"),
        ({"kernel": "gaussian(gamma=-1)"}, "kernel"),
        ({"kernel": "__import__('os').system('true')"}, "kernel"),
        ({"kernel": "spectrum(3)"}, "kernel"),
        ({"kernel": "precomputed()"}, "kernel"),
        ({"kernel": "(" * 400}, "kernel"),
        ({"kernel": "linear() + " * 300 + "linear()"}, "kernel"),
        ({"kernel": "+".join(["min"] * 30)}, "kernel"),
        ({"kernel": "gaussian() ** 99999"}, "kernel"),
        ({"kernel": "polynomial(degree=10000)"}, "kernel"),
        ({"C": 0}, "C"),
        ({"C": -1}, "C"),
        ({"C": "infinity"}, "C"),
        ({"C": None}, "C"),
        ({"loss": "ramp"}, "loss"),
        ({"bias": 1}, "bias"),
        ({"epsilon": -0.1}, "epsilon"),
        ({"nu": 0}, "nu"),
        ({"nu": 1.5}, "nu"),
        ({"quantiles": []}, "quantiles"),
        ({"quantiles": [0.5, 1.5]}, "quantiles"),
        ({"noise": 0}, "noise"),
        ({"procedure": {"name": "newton"}}, "procedure"),
        ({"procedure": {"name": "smo", "rule": ["a", "b", "c"]}}, "procedure"),
        ({"lesson": 7}, "lesson"),
        ({"selected": 0}, "selected"),
        ({"selected": -1}, "selected"),
        ({"show": {"axes": True}}, "show"),
        ({"show": {"slack": "yes"}}, "show"),
    ],
    ids=lambda one: repr(one)[:40],
)
def test_what_cannot_be_used_is_named(given, where):
    """A part that cannot be used raises one sentence, and the error names the part."""
    with pytest.raises(StateError) as error:
        parse_state(given)
    assert error.value.where == where
    assert error.value.what.endswith(".") and len(error.value.what) < 2500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6))
def test_any_json_is_a_state_or_a_sentence(given):
    """Whatever JSON is sent, it is a state or a StateError, nothing else."""
    try:
        state = parse_state(given)
    except StateError as error:
        assert str(error)
    else:
        json.dumps(state.to_json(), allow_nan=False)
