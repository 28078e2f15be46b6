"""Plans say what runs, and refuse combinations that cannot run."""

import re

import numpy as np
import pytest

import mercer
from mercer.svm.plan import Plan


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"precision": "float16"}, "precision='float16' of a Plan is not 'float32' or 'float64'"),
        ({"storage": "disk"}, "storage='disk' of a Plan is not 'matrix' or 'rows'"),
        ({"storage": "rows"}, "a Plan with storage='rows' needs a working_set of at least 1"),
        (
            {"storage": "matrix", "working_set": 64, "shrinking": True},
            "shrinking and first_samples of a Plan need storage='rows'",
        ),
        (
            {"storage": "matrix", "working_set": 64, "first_samples": 50},
            "shrinking and first_samples of a Plan need storage='rows'",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_plans_that_cannot_run_are_refused(choices: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Plan(400, **choices)  # type: ignore[arg-type]


def test_small_problems_plan_one_thread() -> None:
    """So few kernel values are computed by one thread, whatever n_jobs allows; the plan says so."""
    X = np.random.default_rng(0).normal(size=(700, 4))
    y = X[:, 0] > 0
    assert mercer.SVC(n_jobs=2).fit(X[:300], y[:300]).plan_.n_threads == 1
    assert mercer.SVC(n_jobs=2).fit(X, y).plan_.n_threads == 2
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    assert mercer.SVC(n_jobs=2).fit(X[:300], three[:300]).plan_.n_threads == 1


def test_a_run_that_goes_on_in_float64_has_that_plan(caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 4))
    y = X[:, 0] + 0.3 * rng.normal(size=800) > 0
    with caplog.at_level("INFO", logger="mercer"):
        model = mercer.SVC(C=1e7, gamma=0.01, tol=1e-4, verbose=1).fit(X, y)
    plans = [record.getMessage() for record in caplog.records if record.getMessage().startswith("plan: ")]
    assert len(plans) == 2
    assert "dense matrix in float32" in plans[0]
    assert plans[1] == f"plan: {model.plan_}"
    assert model.plan_.precision == "float64"
