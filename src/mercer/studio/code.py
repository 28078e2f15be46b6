"""The Python code of a state: a script that fits the same machine and prints its certificate."""

from __future__ import annotations

import math
from typing import Any

from mercer.studio.state import State

_HEAD = '''"""Made by mercer studio: {title}."""

import numpy as np

{imports}

points = np.array([
{rows}
])
{samples}
'''
_TITLES = {
    "classify": "support vector classification",
    "regress": "support vector regression",
    "one_class": "a one-class machine",
    "quantiles": "quantiles of y given x",
    "process": "Gaussian process regression",
}


def code_json(state: State) -> dict[str, Any]:
    """The answer to `code`."""
    body = {
        "classify": _classify,
        "regress": _regress,
        "one_class": _one_class,
        "quantiles": _quantiles,
        "process": _process,
    }[state.mode](state)
    return {"python": body}


def _script(state: State, imports: str, body: str) -> str:
    rows = ",\n".join(f"    [{x!r}, {y!r}, {label}]" for x, y, label in state.points)
    samples = (
        "X, y = points[:, :2], points[:, 2].astype(int)" if state.in_plane else "X, y = points[:, :1], points[:, 1]"
    )
    if state.mode == "one_class":
        samples = "X = points[:, :2]"
    if not state.points:
        samples = f"points = points.reshape(0, 3)  # place some points first\n{samples}"
    head = _HEAD.format(title=_TITLES[state.mode], imports=imports, rows=f"{rows}," if rows else "", samples=samples)
    return head + body


def _C(state: State) -> str:
    return "np.inf" if math.isinf(state.C) else repr(state.C)


def _bias(state: State) -> str:
    return "" if state.bias else ", fit_intercept=False"


def _classify(state: State) -> str:
    loss = "" if state.loss == "hinge" else f", loss={state.loss!r}"
    body = f"""
model = SVC(kernel={state.kernel!r}, C={_C(state)}{loss}{_bias(state)}, tol=1e-6)
"""
    if math.isinf(state.C):
        body += """try:
    model.fit(X, y)
except NotSeparableError as error:
    raise SystemExit(f"There is no hard margin: {error}")
"""
    else:
        body += "model.fit(X, y)\n"
    body += """
print(model.certificate_)
print("margin", model.margin_, "support vectors", model.n_support_)
print("training accuracy", model.score(X, y))
print(kkt_report(model, X, y))
print(leave_one_out(model, X, y))
"""
    names = ["SVC", "kkt_report", "leave_one_out"] + (["NotSeparableError"] if math.isinf(state.C) else [])
    return _script(state, f"from mercer import {', '.join(sorted(names))}", body)


def _regress(state: State) -> str:
    loss = "" if state.loss == "hinge" else ", loss='squared_epsilon_insensitive'"
    body = f"""
model = SVR(kernel={state.kernel!r}, C={_C(state)}, epsilon={state.epsilon!r}{loss}{_bias(state)}, tol=1e-6).fit(X, y)

print(model.certificate_)
print("support vectors", len(model.support_), "of", len(X))
print(kkt_report(model, X, y))
x = np.linspace({state.view[0]!r}, {state.view[1]!r}, 9)[:, None]
print(np.column_stack([x, model.predict(x)]))
"""
    return _script(state, "from mercer import SVR, kkt_report", body)


def _one_class(state: State) -> str:
    body = f"""
model = OneClassSVM(kernel={state.kernel!r}, nu={state.nu!r}, tol=1e-6).fit(X)

print(model.certificate_)
f = model.decision_function(X)
edge = 1e-9 * max(1.0, np.abs(f).max())  # points on the boundary have f = 0 up to rounding
print("outside", int((f < -edge).sum()), "support vectors", len(model.support_), "of", len(X))
print(kkt_report(model, X))
"""
    return _script(state, "from mercer import OneClassSVM, kkt_report", body)


def _quantiles(state: State) -> str:
    body = f"""
for quantile in {list(state.quantiles)!r}:
    model = SVR(kernel={state.kernel!r}, C={_C(state)}, loss="pinball", quantile=quantile{_bias(state)}, tol=1e-6)
    model.fit(X, y)
    print(quantile, model.certificate_)
    print("share of points below the curve", np.mean(y < model.predict(X)))
"""
    return _script(state, "from mercer import SVR", body)


def _process(state: State) -> str:
    body = f"""
noise = {state.noise!r}  # standard deviation of the targets
model = GaussianProcessRegressor({state.kernel!r}, alpha=noise**2, optimizer=None).fit(X, y)

print("log marginal likelihood", model.log_marginal_likelihood_value_)
print("largest residual of the linear system", model.residual_)
x = np.linspace({state.view[0]!r}, {state.view[1]!r}, 9)[:, None]
mean, deviation = model.predict(x, return_std=True)
print(np.column_stack([x, mean, deviation]))
"""
    return _script(state, "from mercer import GaussianProcessRegressor", body)
