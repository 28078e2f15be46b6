"""Model files of LIBLINEAR: a line of weights per feature.

    solver_type L2R_L2LOSS_SVC_DUAL
    nr_class 3
    label 1 2 3                 for classes
    nr_feature 4
    bias 1                      the value of a constant feature, whose weights come last; negative if there is none
    w                           then a line per feature with one weight per class (a single one for two classes)

Fan, Chang, Hsieh, Wang & Lin, "LIBLINEAR: a library for large linear classification", JMLR 9 (2008).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.linear.linear_svc import LinearSVC
from mercer.estimators.linear.linear_svr import LinearSVR
from mercer.exceptions import InvalidInputError
from mercer.io.formats.from_parts import mark_uncertified
from mercer.io.formats.libsvm_lines import CLASSES, Lines, text_of
from mercer.linear.linear_solution import LinearPlan

# scikit-learn's parameters for each of LIBLINEAR's solvers
CLASSIFIERS: dict[str, dict[str, Any]] = {
    "L2R_L2LOSS_SVC_DUAL": {},
    "L2R_L2LOSS_SVC": {},
    "L2R_L1LOSS_SVC_DUAL": {"loss": "hinge"},
    "MCSVM_CS": {"multi_class": "crammer_singer", "loss": "hinge"},
    "L1R_L2LOSS_SVC": {"penalty": "l1"},
}
REGRESSORS: dict[str, dict[str, Any]] = {
    "L2R_L2LOSS_SVR": {"loss": "squared_epsilon_insensitive"},
    "L2R_L2LOSS_SVR_DUAL": {"loss": "squared_epsilon_insensitive"},
    "L2R_L1LOSS_SVR_DUAL": {"loss": "epsilon_insensitive"},
}
FEATURES = 2**31 - 2


def read_linear(lines: Lines, first: list[str], n_features: int | None) -> Any:
    """Read a model whose first line has already been read."""
    solver = first[1] if len(first) == 2 else ""
    if solver not in CLASSIFIERS and solver not in REGRESSORS:
        lines.fail(
            f"solver_type is {solver!r:.40}, which is not a support vector machine for classification or regression: "
            f"{', '.join([*CLASSIFIERS, *REGRESSORS])} can be read"
        )
    header: dict[str, list[str]] = {}
    places: dict[str, int] = {}
    while (words := lines.next().split()) != ["w"]:
        if not words or words[0] not in ("nr_class", "label", "nr_feature", "bias", "rho") or words[0] in header:
            lines.fail(f"{' '.join(words)!r:.60} is not a line of a LIBLINEAR model, or occurs twice")
        header[words[0]], places[words[0]] = words[1:], lines.number
    last = lines.number

    def one(name: str) -> str:
        lines.number = places.get(name, last)
        if len(header.get(name, [])) != 1:
            lines.fail(f"the model needs one value for {name}")
        return header[name][0]

    k = lines.whole(one("nr_class"), "nr_class", 2, CLASSES)
    d = lines.whole(one("nr_feature"), "nr_feature", 0, FEATURES)
    bias = lines.real(one("bias"), "bias")
    classifier = solver in CLASSIFIERS
    labels = np.empty(0, np.int64)
    if classifier:
        lines.number = places.get("label", last)
        words = header.get("label", [])
        labels = np.array([lines.whole(w, "a label", -(2**31), 2**31 - 1) for w in words], dtype=np.int64)
        if len(labels) != k or len(np.unique(labels)) < k:
            lines.fail(f"label must be {k} different numbers, but is {' '.join(words)!r:.60}")
    elif k != 2:
        lines.fail(f"nr_class of a regression is 2, but is {k}")
    lines.number = last
    columns = 1 if not classifier or (k == 2 and solver != "MCSVM_CS") else k
    rows = [lines.reals(line.split(), "a line of weights", columns) for line in lines.rest()]
    expected = d + (bias >= 0)
    if len(rows) != expected:
        lines.number += 1
        lines.fail(f"there are {len(rows)} lines of weights, but {expected} are needed")
    W = np.array(rows).reshape(expected, columns).T
    intercept = bias * W[:, d] if bias >= 0 else np.zeros(columns)
    W = W[:, :d]
    if n_features is not None and n_features != d:
        if n_features < d:
            raise InvalidInputError(
                f"n_features={n_features} was given, but {lines.name} has weights for {d} features: give at least {d}."
            )
        W = np.hstack([W, np.zeros((columns, n_features - d))])
    scaling: dict[str, Any] = (
        {"fit_intercept": True, "intercept_scaling": bias} if bias > 0 else {"fit_intercept": False}
    )
    if classifier:
        return _classifier(LinearSVC(**CLASSIFIERS[solver], **scaling), W, intercept, labels)
    return _publish(LinearSVR(**REGRESSORS[solver], **scaling), W[0], intercept, 1)


def _classifier(model: Any, W: Any, intercept: Any, labels: Any) -> Any:
    if len(labels) == 2:
        if len(W) == 2:  # Crammer and Singer's machine: only the difference of the two rows matters
            W, intercept = W[[0]] - W[[1]], intercept[[0]] - intercept[[1]]
        # LIBLINEAR's decision value is positive for the first label, ours for the second
        if labels[0] > labels[1]:
            labels = labels[::-1]
        else:
            W, intercept = -W, -intercept
    model.classes_ = labels
    model.class_weight_ = np.ones(len(labels))
    return _publish(model, W, intercept, len(W))


def _publish(model: Any, W: Any, intercept: Any, n_problems: int) -> Any:
    model.coef_ = np.ascontiguousarray(W + 0.0)
    model.intercept_ = intercept + 0.0 if model.fit_intercept else 0.0
    model.n_features_in_ = W.shape[-1]
    model.n_iter_ = 0
    with np.errstate(divide="ignore"):
        model.margin_ = 1.0 / np.linalg.norm(np.atleast_2d(model.coef_), axis=1)
    model._warm = None
    mark_uncertified(model, n_problems)
    model.plan_ = LinearPlan(())
    return model


def linear_text(model: Any) -> str:
    """Return the text of LIBLINEAR's model file."""
    from mercer.io.formats.libsvm_files import whole_labels

    classifier = isinstance(model, LinearSVC)
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else np.asarray(model.coef_)
    W = np.atleast_2d(coef)
    b = np.broadcast_to(np.ravel(model.intercept_), len(W))
    labels = whole_labels(model.classes_) if classifier else []
    if classifier and model.multi_class == "crammer_singer":
        solver = "MCSVM_CS"
        if len(W) == 1:
            W, b = np.vstack([-0.5 * W, 0.5 * W]), np.concatenate([-0.5 * b, 0.5 * b])
    elif classifier:
        if len(labels) == 2:
            labels = labels[::-1]  # the first label is the positive class
        solver = "L2R_L1LOSS_SVC_DUAL" if model.loss == "hinge" else "L2R_L2LOSS_SVC_DUAL"
        if model.penalty == "l1" and model.loss == "squared_hinge":
            solver = "L1R_L2LOSS_SVC"
    else:
        solver = "L2R_L2LOSS_SVR" if model.loss == "squared_epsilon_insensitive" else "L2R_L1LOSS_SVR_DUAL"
    bias = float(model.intercept_scaling) if np.any(b) else -1.0
    lines = [f"solver_type {solver}", f"nr_class {len(labels) if classifier else 2}"]
    if classifier:
        lines.append(" ".join(["label", *(str(label) for label in labels)]))
    lines += [f"nr_feature {W.shape[1]}", f"bias {text_of(bias)}", "w"]
    rows = np.vstack([W.T, b[None, :] / bias]) if bias >= 0 else W.T
    lines += [" ".join(text_of(v) for v in row) + " " for row in rows.tolist()]
    return "\n".join(lines) + "\n"
