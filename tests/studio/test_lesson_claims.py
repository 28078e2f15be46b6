"""Every number that a lesson says one will see is that of a machine fitted here, by the estimators alone."""

from __future__ import annotations

import json
import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer import (
    SVC,
    SVR,
    GaussianProcessRegressor,
    KernelLMS,
    OneClassSVM,
    PegasosClassifier,
    Perceptron,
    check_mercer,
    leave_one_out,
    parse_kernel,
)
from mercer.exceptions import NotSeparableError
from mercer.theory import kkt_report

FOLDER = Path(mercer.__file__).parent / "studio" / "lessons"
TOL = 1e-6


@cache
def cards() -> dict[str, Any]:
    """All cards by their id, in the order of their files."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]
    return {card["id"]: card for card in found}


def plane(card: dict[str, Any]) -> tuple[Any, Any]:
    """The points and classes of a card."""
    points = np.array(card["state"]["points"], dtype=float)
    return points[:, :2], points[:, 2].astype(int)


def curve(card: dict[str, Any]) -> tuple[Any, Any]:
    """The places and targets of a card of regression."""
    points = np.array(card["state"]["points"], dtype=float)
    return points[:, :1], points[:, 1]


def svc(card: dict[str, Any], **changes: Any) -> Any:
    """The fitted classifier of a card's state, with some parameters changed."""
    state = card["state"]
    C = np.inf if state["C"] == "inf" else state["C"]
    given = {"kernel": parse_kernel(state["kernel"]), "C": C, "fit_intercept": state.get("bias", True), "tol": TOL}
    return SVC(**given | changes).fit(*plane(card))


def svr(card: dict[str, Any], y: Any = None, **changes: Any) -> Any:
    """The fitted regression of a card's state."""
    state, (X, targets) = card["state"], curve(card)
    given = {"kernel": parse_kernel(state["kernel"]), "C": state["C"], "epsilon": state.get("epsilon", 0.1), "tol": TOL}
    return SVR(**given | changes).fit(X, targets if y is None else y)


def four(value: Any) -> str:
    """A number as the cards print it."""
    return f"{float(np.squeeze(value)):.4g}".replace("-", "−")


def says(card: dict[str, Any], *numbers: str) -> None:
    """Each of these is in what the card says one will see, as a number or phrase of its own."""
    text = " ".join(card["see"])
    for number in numbers:
        assert re.search(rf"(?<![\w.]){re.escape(number)}(?!\w|\.\d)", text), (number, text)


def test_the_cards():
    """There are at least 15 cards with distinct ids; each has a question, something to try and something to see."""
    files = sorted(FOLDER.glob("*.json"))
    assert len(files) == len(cards()) >= 15
    for path, card in zip(files, cards().values(), strict=True):
        assert path.stem.split("-", 1)[1] == card["id"]
        assert set(card) <= {"id", "title", "notes", "panel", "question", "try", "see", "state"}
        assert card["title"] and card["notes"] and card["question"].endswith("?")
        assert len(card["try"]) >= 2 and len(card["see"]) >= 2


def test_every_card_has_a_test():
    """For every card there is a test of its numbers in this file."""
    tested = {
        name.removeprefix("test_lesson_").replace("_", "-") for name in globals() if name.startswith("test_lesson_")
    }
    assert tested == set(cards())


def test_lesson_widest_street():
    """Two points: the margin is half their distance, |w| its reciprocal, and both α are 2/distance²."""
    card = cards()["widest-street"]
    model, (X, _) = svc(card), plane(card)
    distance = np.linalg.norm(X[0] - X[1])
    assert model.margin_[0] == pytest.approx(distance / 2, rel=TOL)
    assert np.abs(model.dual_coef_) == pytest.approx(np.full((1, 2), 2 / distance**2), rel=1e-5)
    says(card, four(distance / 2), four(model.rkhs_norm_), four(2 / distance**2))


def test_lesson_support_vectors():
    """The margin of the support vectors alone is that of all points."""
    card = cards()["support-vectors"]
    model, (X, y) = svc(card), plane(card)
    alone = SVC(kernel="linear", C=np.inf, tol=TOL).fit(X[model.support_], y[model.support_])
    assert alone.margin_[0] == pytest.approx(model.margin_[0], rel=1e-5)
    n, carrying = len(X), len(model.support_)
    says(card, f"{carrying} of the {n} points", four(model.margin_), f"other {n - carrying} points")


def test_lesson_through_the_origin():
    """Without a bias the margin is smaller."""
    card = cards()["through-the-origin"]
    free, fixed = svc(card), svc(card, fit_intercept=False)
    assert fixed.margin_[0] < free.margin_[0]
    says(card, four(free.margin_), four(fixed.margin_))


def test_lesson_not_separable():
    """The proof names as many points as the card says; a finite C always has a machine."""
    card = cards()["not-separable"]
    with pytest.raises(NotSeparableError) as caught:
        svc(card)
    used = np.count_nonzero(np.concatenate([np.ravel(one) for one in caught.value.common_point_weights]))
    X, _ = plane(card)
    says(card, f"{used} of the {len(X)} points")
    assert [0.6, 0.1] in X.tolist()
    assert svc(card, C=1.0).certificate_.relative_gap < 1e-5


def test_lesson_soft_margin():
    """A larger C has a smaller margin and fewer support vectors here; from 10 to 100 nothing changes."""
    card = cards()["soft-margin"]
    small, one, ten, hundred = (svc(card, C=C) for C in (0.1, 1.0, 10.0, 100.0))
    says(card, *(four(model.margin_) for model in (small, one, ten)))
    n = len(plane(card)[0])
    says(
        card,
        f"{len(small.support_)} of {n} points",
        f"{len(one.support_)} support vectors",
        f"{len(ten.support_)} support vectors",
    )
    assert four(ten.margin_) == four(hundred.margin_)


def test_lesson_slack():
    """The slack of the outlier, and the sum of all."""
    card = cards()["slack"]
    model, (X, y) = svc(card), plane(card)
    xi = np.maximum(0.0, 1.0 - np.where(y == 1, 1, -1) * model.decision_function(X))
    chosen = card["state"]["selected"]
    assert X[chosen].tolist() == [0.6, 0.1] and xi[chosen] > 1
    says(card, four(xi[chosen]), four(xi.sum()))
    primal = 0.5 * float(model.rkhs_norm_[0]) ** 2 + model.C * xi.sum()
    assert primal == pytest.approx(model.certificate_.primal, rel=1e-5)


def test_lesson_kkt():
    """The numbers of points outside of the street, on its edge and inside of it."""
    card = cards()["kkt"]
    model, (X, y) = svc(card), plane(card)
    report = kkt_report(model, X, y)
    zero, free, bound = (report.count(kind) for kind in ("zero", "free", "bound"))
    says(card, f"({zero} of the {len(X)} points)", f"({free} points)", f"({bound} points)")


def test_lesson_duality():
    """Primal and dual values agree to a millionth."""
    card = cards()["duality"]
    for C in (1.0, 10.0):
        found = svc(card, C=C).certificate_
        assert found.relative_gap < 1e-6
        says(card, four(found.primal))
        assert four(found.primal) == four(found.dual)


def test_lesson_leave_one_out():
    """Points that flip when they are left out, and the bound by the number of support vectors."""
    card = cards()["leave-one-out"]
    model, (X, y) = svc(card), plane(card)
    error, n, carrying = leave_one_out(model, X, y).error, len(X), len(model.support_)
    assert error <= carrying / n
    says(card, f"{round(error * n)} of the {n} points", f"{100 * error:.3g} %", f"{carrying} support vectors",
         f"{carrying}/{n} = {100 * carrying / n:.3g} %")  # fmt: skip


def test_lesson_kernel_trick():
    """A line has three quarters of XOR right, a polynomial of degree 2 all."""
    card = cards()["kernel-trick"]
    X, y = plane(card)
    curved = svc(card)
    says(card, f"{100 * svc(card, kernel='linear').score(X, y):.3g} %", f"{100 * curved.score(X, y):.3g} %",
         f"{len(curved.support_)} support vectors")  # fmt: skip


def test_lesson_disc():
    """The squares of the coordinates separate a disc; the line in their plane is the one that the card prints."""
    card = cards()["disc"]
    X, y = plane(card)
    model, line = svc(card), SVC(kernel="linear", C=np.inf, tol=TOL).fit(X**2, y)
    assert line.margin_[0] == pytest.approx(model.margin_[0], rel=1e-4)
    says(card, f"all {len(X)} points", four(model.margin_), f"{len(model.support_)} support vectors")
    (first, second), offset = line.coef_[0], line.intercept_[0]
    assert f"{four(first)} x₁² {four(second).replace('−', '− ')} x₂² + {four(offset)} = 0" in " ".join(card["see"])


def test_lesson_gaussian_width():
    """Training accuracy, share of support vectors and leave-one-out error for four widths."""
    card = cards()["gaussian-width"]
    X, y = plane(card)
    models = [svc(card, kernel=parse_kernel(f"gaussian(gamma={gamma})")) for gamma in (0.1, 1.0, 10.0, 100.0)]
    right = [f"{100 * model.score(X, y):.3g} %" for model in models]
    assert set(right[1:]) == {"100 %"}
    says(card, right[0], *right[1:2])
    shares = [f"{100 * len(model.support_) / len(X):.3g} %" for model in models]
    errors = [f"{100 * leave_one_out(model, X, y).error:.3g} %" for model in models]
    for values in (shares, errors):
        assert f"{values[0]}, {values[1]}, {values[2]} and {values[3]}" in " ".join(card["see"])


def test_lesson_search_map():
    """Leave-one-out accuracy at two places of the map."""
    card = cards()["search-map"]
    X, y = plane(card)
    for gamma in (1.0, 100.0):
        model = svc(card, kernel=parse_kernel(f"gaussian(gamma={gamma})"))
        says(card, f"{100 * (1 - leave_one_out(model, X, y).error):.3g} %")
        assert model.score(X, y) == 1.0


def test_lesson_mercer():
    """The smallest eigenvalue of the sigmoid, and kernels that are positive semidefinite."""
    card = cards()["mercer"]
    X, _ = plane(card)
    report = check_mercer(parse_kernel(card["state"]["kernel"]), X)
    assert not report.positive_semidefinite
    says(card, four(report.smallest_eigenvalue))
    for text in ("gaussian(gamma=1.0)", "2*gaussian(gamma=1.0) + linear()", "gaussian(gamma=1.0)*linear()"):
        assert text in " ".join(card["try"])
        assert check_mercer(parse_kernel(text), X).positive_semidefinite


def test_lesson_smo():
    """The first two steps of SMO, and the dual value at the end."""
    card = cards()["smo"]
    model = svc(card, solver="smo", trace=True)
    first, second = model.steps_[0], model.steps_[1]
    assert first["unclipped"] == first["clipped"] and second["unclipped"] > second["clipped"] == second["H"] == 1.0
    says(
        card,
        f"points {first['i'] + 1} and {first['j'] + 1}",
        f"{first['clipped']:.3g}",
        four(second["unclipped"]),
        four(model.certificate_.dual),
    )
    assert np.all(np.diff(model.steps_.dual) >= 0)


def test_lesson_coordinate_ascent():
    """The dual value of all rules, and the steps until it is within 1 %."""
    card = cards()["coordinate-ascent"]
    steps = {}
    for rule in ("round-robin", "random", "greedy"):
        model = svc(card, solver="coordinate", rule=rule, trace=True, random_state=0, tol=1e-3)
        says(card, four(model.certificate_.dual))
        dual = model.steps_.dual
        steps[rule] = int(np.argmax(dual >= 0.99 * dual[-1])) + 1
    says(card, f"after {steps['greedy']} steps", f"after {steps['round-robin']}")
    assert steps["greedy"] == min(steps.values())


def test_lesson_perceptron():
    """The bound of the number of updates; 20 random orders stay below half of it, and have a smaller margin."""
    card = cards()["perceptron"]
    X, y = plane(card)
    hard = svc(card)
    radius, margin = np.linalg.norm(X, axis=1).max(), hard.margin_[0]
    says(card, four(radius), four(margin), four((radius / margin) ** 2))
    sign = np.where(y == 1, 1, -1)
    for seed in range(20):
        model = Perceptron(fit_intercept=False, tol=None, trace=True, random_state=seed).fit(X, y)
        assert model.steps_.mistakes[-1] < 0.5 * (radius / margin) ** 2
        w = np.ravel(model.coef_)
        assert 0 < np.min(sign * (X @ w)) / np.linalg.norm(w) < margin


def test_lesson_pegasos():
    """The optimum that Pegasos approaches from above, and λ."""
    card = cards()["pegasos"]
    X, y = plane(card)
    n, C = len(X), card["state"]["C"]
    exact = svc(card).certificate_.primal / (n * C)
    says(card, four(exact), f"{1 / (n * C):.3g}")
    for seed in range(3):
        model = PegasosClassifier(1 / (n * C), n_steps=1000, trace=True, fit_intercept=False, random_state=seed).fit(
            X, y
        )
        objective = model.steps_.objective
        assert objective[:10].max() > 1 and exact < objective[-1] < 1.05 * exact


def test_lesson_kernel_lms():
    """The error at the start; it falls in every step."""
    card = cards()["kernel-lms"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the number of steps is limited
        model = KernelLMS(kernel=parse_kernel(card["state"]["kernel"]), trace=True).fit(*curve(card))
    says(card, four(model.steps_.error[0]))
    assert np.all(np.diff(model.steps_.error) < 0)


def test_lesson_epsilon_tube():
    """A wider tube has fewer support vectors."""
    card = cards()["epsilon-tube"]
    counts = [len(svr(card, epsilon=epsilon).support_) for epsilon in (0.0, 0.1, 0.2, 0.8, 1.6)]
    n = len(card["state"]["points"])
    assert counts == sorted(counts, reverse=True)
    assert f"{counts[0]}, {counts[1]}, {counts[2]}, {counts[3]} and {counts[4]} of {n} points" in " ".join(card["see"])


def test_lesson_robust_line():
    """Moving an outlier away from the tube leaves the machine as it is, but not least squares."""
    card = cards()["robust-line"]
    X, y = curve(card)
    chosen = card["state"]["selected"]
    assert (X[chosen, 0], y[chosen]) == (1.5, -1.6)
    slopes, squares = [], []
    for target in (-1.6, -2.6, 0.2):
        moved = y.copy()
        moved[chosen] = target
        slopes.append(float(svr(card, moved).coef_[0, 0]))
        squares.append(np.polyfit(X[:, 0], moved, 1)[0])
    assert np.ptp(slopes) < 1e-5
    says(card, four(slopes[0]), four(squares[0]), four(squares[1]))


def test_lesson_quantiles():
    """Points below and above the curves."""
    card = cards()["quantiles"]
    X, y = curve(card)
    below, on, above = {}, {}, {}
    for q in card["state"]["quantiles"]:
        residual = y - svr(card, loss="pinball", quantile=q).predict(X)
        below[q], above[q] = np.sum(residual < -1e-4), np.sum(residual > 1e-4)
        on[q] = len(y) - below[q] - above[q]
        assert below[q] <= q * len(y) + 1e-9 and above[q] <= (1 - q) * len(y) + 1e-9
    says(card, f"{below[0.1]} points are below the curve of 0.1 and {on[0.1]} on it")
    says(card, f"{below[0.5]} below the curve of 0.5", f"{above[0.9]} above the curve of 0.9", f"of {len(y)} points")


def test_lesson_one_class():
    """Points outside and support vectors; ν lies between their shares; the centre is outside."""
    card = cards()["one-class"]
    X, _ = plane(card)
    outside, carrying = [], []
    for nu in (0.05, 0.2, 0.5):
        model = OneClassSVM(kernel=parse_kernel(card["state"]["kernel"]), nu=nu, tol=TOL).fit(X)
        outside.append(int(np.sum(model.decision_function(X) < -1e-5)))
        carrying.append(len(model.support_))
        assert outside[-1] / len(X) <= nu <= carrying[-1] / len(X)
        assert model.decision_function([[0.0, 0.0]])[0] < 0
    text = " ".join(card["see"])
    assert f"{outside[0]}, {outside[1]} and {outside[2]} of the {len(X)} points" in text
    assert f"{carrying[0]}, {carrying[1]} and {carrying[2]} support vectors" in text


def test_lesson_gaussian_process():
    """The deviation in the gap, at the first point and far away; a point in the gap narrows it, whatever its target."""
    card = cards()["gaussian-process"]
    X, y = curve(card)
    kernel, noise = parse_kernel(card["state"]["kernel"]), card["state"]["noise"] ** 2
    model = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(X, y)
    _, deviation = model.predict([[0.0], X[0], [100.0]], return_std=True)
    says(card, f"{deviation[0]:.3f}", f"{deviation[1]:.3f}", f"{deviation[2]:.3g}")
    wider = [
        GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(np.vstack([X, [[0.0]]]), np.append(y, target))
        for target in (-2.0, 2.0)
    ]
    after = [float(one.predict([[0.0]], return_std=True)[1][0]) for one in wider]
    assert after[0] == pytest.approx(after[1]) and after[0] < 0.2 * deviation[0]
