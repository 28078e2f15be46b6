"""The section "How good it is": scores and pictures of held-out predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import binomtest
from sklearn.metrics import roc_curve

from mercer.display.canvas import GREY, axes, colour
from mercer.kernels.features import Vector
from mercer.report import html
from mercer.report.importance import targets
from mercer.report.names import class_words
from mercer.workflow.class_scores import HeldOutClasses, held_out_classes
from mercer.workflow.summary import is_fresh, score_name
from mercer.workflow.training import Outcome

# the largest number of rows of a table, and of lines of a picture
SHOWN, LINES = 25, 8
# bins of a calibration curve, and the fewest rows for which it is drawn
BINS, CALIBRATION_ROWS = 10, 50
# the fewest rows of a bin
BIN_ROWS = 10
# up to this many classes, each has its own calibration curve
CURVES = 4
# parts of the predictions whose median residual is drawn, and the fewest rows of a part
PARTS, PART_ROWS = 10, 10


def quality(outcome: Outcome) -> Iterator[str]:
    """Yield the parts of the section."""
    yield html.paragraph(_judgement(outcome))
    found = held_out_classes(outcome) if outcome.task == "classification" else None
    if found is None and (outcome.task == "classification" or not outcome.known.any()):
        yield html.paragraph(
            "The search ended before the first fold was complete, so there are no held-out predictions and this page "
            "shows no errors. Allow more time with --time-limit."
        )
    elif found is not None:
        yield html.paragraph(_which_rows(outcome, len(found.codes)))
        yield from _classification(found)
    else:
        yield html.paragraph(_which_rows(outcome, int(outcome.known.sum())))
        yield from _regression(outcome)


def default_score(outcome: Outcome) -> str:
    """Return the name of the default score."""
    return "accuracy" if outcome.task == "classification" else "R²"


def _judgement(outcome: Outcome) -> str:
    evaluation, name = outcome.evaluation, score_name(outcome)
    if evaluation is None:
        best = outcome.search.best_score_
        seen = (
            f" The best candidate of the search has a cross-validated {name} of {best:.3f}. As the best of many "
            "scores, it is slightly too optimistic for new rows."
        )
        return "The score on new rows was not estimated." + (seen if np.isfinite(best) else "")
    low, high = evaluation.interval
    ends = f"95 % interval {low:.3f} to {high:.3f}" if np.isfinite([low, high]).all() else evaluation.interval_method
    return (
        f"Expect {name} {evaluation.score:.3f} on new rows ({ends}), estimated by {evaluation.method}. "
        f"On its training rows, the model has {name} {evaluation.training_score:.3f}."
    )


def _which_rows(outcome: Outcome, n: int) -> str:
    rows = f"all {n:,} rows" if n == len(outcome.samples) else f"{n:,} of {len(outcome.samples):,} rows"
    if outcome.task == "regression" and is_fresh(outcome):
        return (
            f"Tables and pictures below show held-out predictions of {rows}, by a machine with the chosen parameters "
            "that was fitted without them."
        )
    return (
        f"Tables and pictures below show held-out predictions of {rows}: the machine with the chosen parameters was "
        f"fitted {outcome.search.n_splits_} times, each time without one fold, and predicted that fold. The parameters "
        "were chosen on the same folds, so these numbers may be slightly too good."
    )


# ---- regression ------------------------------------------------------------------------------------------------------


def _regression(outcome: Outcome) -> Iterator[str]:
    y, f = targets(outcome)[outcome.known], np.asarray(outcome.held_out, dtype=np.float64)[outcome.known]
    errors = outcome.errors
    always = {
        "root mean squared error": float(np.std(y)),
        "mean absolute error": float(np.mean(np.abs(y - y.mean()))),
        "R²": 0.0,
    }
    rows = [(name, f"{value:.4g}", f"{always[name]:.4g}" if name in always else "") for name, value in errors.items()]
    yield html.heading("Errors of held-out predictions")
    yield html.table("errors", ("error", "this model", "always predicting the mean"), rows)
    if outcome.evaluation is not None:
        yield html.paragraph(
            f"R² {errors['R²']:.3f} in this table is computed from all these predictions together. The score to expect "
            f"on new rows is {score_name(outcome)} {outcome.evaluation.score:.3f}, as stated above"
            + ("." if is_fresh(outcome) else ": it is corrected for parameters that were chosen on the same rows."),
            True,
        )
    target = str(outcome.samples.target)
    rmse = errors["root mean squared error"]
    yield html.plots(
        [
            html.figure(
                _against_truth(y, f, target),
                "Predicted against true values: points should lie along the dashed line",
                "A cloud flatter than the line means that extreme values are predicted too close to the mean.",
                f"Scatter plot of {len(y)} predicted against true values of {target}, R² {errors['R²']:.3f}.",
            ),
            html.figure(
                _residuals(y, f, target),
                "Residuals: they should scatter evenly around 0",
                "A curved orange line, or a spread that grows to one side, means that the model misses something.",
                f"Scatter plot of {len(y)} residuals against predictions of {target}; root mean squared error "
                f"{rmse:.4g}.",
            ),
        ]
    )


def _against_truth(y: Vector, f: Vector, target: str) -> Any:
    fig, ax = axes(None)
    ax.scatter(y, f, s=12, color=colour(0), alpha=0.6, linewidths=0)
    ends = [min(y.min(), f.min()), max(y.max(), f.max())]
    ax.plot(ends, ends, color="black", lw=1, ls="--", label="prediction = truth")
    ax.set(xlabel=f"true {target}", ylabel=f"predicted {target}")
    ax.legend(fontsize="small", loc="upper left")
    return fig


def _residuals(y: Vector, f: Vector, target: str) -> Any:
    fig, ax = axes(None)
    ax.scatter(f, y - f, s=12, color=colour(0), alpha=0.6, linewidths=0)
    ax.axhline(0.0, color="black", lw=1, ls="--")
    parts = min(PARTS, len(y) // PART_ROWS)
    if parts >= 3:
        groups = np.array_split(np.argsort(f, kind="stable"), parts)
        middle = [(np.median(f[g]), np.median((y - f)[g])) for g in groups]
        ax.plot(*zip(*middle, strict=True), color=colour(1), lw=2, label="median of neighbouring rows")
        ax.legend(fontsize="small", loc="best")
    ax.set(xlabel=f"predicted {target}", ylabel="true minus predicted")
    return fig


# ---- classification --------------------------------------------------------------------------------------------------


def _classification(found: HeldOutClasses) -> Iterator[str]:
    classes = [str(c) for c in found.classes]
    scores = found.by_class()
    if len(classes) <= SHOWN:
        yield html.heading("Confusion matrix")
        yield _confusion(found.confusion, classes)
    worst = sorted(scores, key=lambda one: (np.isnan(one.f1), one.f1))[:SHOWN]
    rows = [
        (str(one.label), f"{one.rows:,}", *map(_share, (one.precision, one.recall, one.f1, one.auc)))
        for one in (scores if len(scores) <= SHOWN else worst)
    ]
    if len(scores) > 2:
        means = [[getattr(one, name) for one in scores] for name in ("precision", "recall", "f1", "auc")]
        rows.append(("mean over classes", f"{len(found.codes):,}", *map(_share, map(_mean, means))))
    yield html.heading("Scores of each class" if len(scores) <= SHOWN else f"The {SHOWN} classes with the lowest F1")
    yield html.table("scores of each class", ("class", "rows", "precision", "recall", "F1", "AUC"), rows)
    yield html.paragraph(
        "Precision: of the rows predicted as this class, the share that belongs to it. Recall: of the rows of this "
        "class, the share that was found. F1: their harmonic mean. AUC: how often a row of this class is ranked above "
        "a row of another class; 0.5 is chance.",
        True,
    )
    yield html.plots([_roc(found, scores), _calibration(found)])
    if found.probabilities is not None and len(found.codes) < CALIBRATION_ROWS:
        yield html.paragraph(
            f"A calibration curve needs at least {CALIBRATION_ROWS} rows; there are {len(found.codes)}.", True
        )


def _share(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else "–"


def _mean(values: list[float]) -> float:
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else np.nan


def _confusion(counts: Any, classes: list[str]) -> str:
    rows = [
        (name, *(f"{count:,}" for count in counts[i]), f"{100 * counts[i, i] / max(counts[i].sum(), 1):.0f} %")
        for i, name in enumerate(classes)
    ]

    def mark(i: int, j: int) -> str:
        if not 1 <= j <= len(classes) or not counts[i, j - 1]:
            return ""
        return "right" if i == j - 1 else "wrong"

    head = ("true class", *(f"as {name}" for name in classes), "correct")
    return html.table("confusion matrix: true classes in rows, predicted classes in columns", head, rows, mark)


def _roc(found: HeldOutClasses, scores: list[Any]) -> str:
    known = [c for c, one in enumerate(scores) if np.isfinite(one.auc)]
    if not known:
        return ""
    # the two curves of two classes mirror each other
    drawn = known[-1:] if len(scores) == 2 else sorted(known, key=lambda c: scores[c].auc)[:LINES]
    fig, ax = axes(None, (6.4, 5.6))
    for number, c in enumerate(sorted(drawn)):
        false, true, _ = roc_curve(found.codes == c, found.scores[:, c])
        ax.plot(false, true, color=colour(number), lw=2, label=f"{scores[c].label}: AUC {scores[c].auc:.3f}")
    ax.plot([0, 1], [0, 1], color=GREY, lw=1, ls="--", label="chance: AUC 0.5")
    ax.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.legend(loc="lower right", fontsize="small")
    text = "One curve per class, against all other classes."
    if len(scores) == 2:
        text = f"Rows are ranked by the decision value for {class_words(scores[known[-1]].label)}."
    elif len(known) > len(drawn):
        text += f" The {LINES} classes with the smallest areas are drawn."
    areas = ", ".join(f"{scores[c].label} {scores[c].auc:.3f}" for c in drawn)
    return html.figure(
        fig, "ROC curves: the closer to the upper left corner, the better", text, f"ROC curves with areas: {areas}."
    )


def _calibration(found: HeldOutClasses) -> str:
    """Draw stated probabilities against observed shares, of each class if there are few, else of the predicted one."""
    p = found.probabilities
    if p is None or len(found.codes) < CALIBRATION_ROWS:
        return ""
    if len(found.classes) <= CURVES:
        drawn = [1] if len(found.classes) == 2 else list(range(len(found.classes)))
        curves = [(str(found.classes[c]), p[:, c], found.codes == c) for c in drawn]
        what = class_words(found.classes[1]) if len(drawn) == 1 else "the class"
    else:
        own = p[np.arange(len(p)), found.predicted]
        curves, what = [("the predicted class", own, found.predicted == found.codes)], "the predicted class"
    fig, ax = axes(None, (6.4, 5.6))
    ax.plot([0, 1], [0, 1], color=GREY, lw=1, ls="--", label="perfect calibration")
    gaps = []
    for number, (name, stated, own) in enumerate(curves):
        mean, share, low, high, count = reliability(stated, own)
        gaps.append(float(np.average(np.abs(mean - share), weights=count)))
        bars = np.clip([share - low, high - share], 0.0, None)
        style = {"color": colour(number), "marker": "o", "ms": 5, "lw": 1.5, "capsize": 2, "elinewidth": 0.8}
        ax.errorbar(mean, share, bars, label=name, **style)
    ax.set(
        xlabel=f"stated probability of {what}", ylabel="observed share of rows", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02)
    )
    ax.legend(loc="upper left", fontsize="small")
    off = f"On average the stated probability is off by {np.mean(gaps):.3f}."
    return html.figure(
        fig,
        "Calibration: points should lie on the diagonal",
        f"Below it, stated probabilities are too high. Bars are 95 % intervals. {off} The probabilities of a fold were "
        "learnt on the other folds.",
        f"Calibration curve: observed shares against stated probabilities. {off}",
    )


def reliability(stated: Vector, own: Vector) -> tuple[Vector, Vector, Vector, Vector, Vector]:
    """Return, for each bin of probabilities: mean, observed share, both ends of its 95 % interval (Wilson), rows."""
    found = []
    for inside in _bins(stated):
        hits, count = int(own[inside].sum()), len(inside)
        ends = binomtest(hits, count).proportion_ci(method="wilson")
        found.append((stated[inside].mean(), hits / count, ends.low, ends.high, count))
    mean, share, low, high, count = np.array(found).T
    return mean, share, low, high, count


def _bins(stated: Vector) -> list[Vector]:
    """Return the rows of bins of equal width; neighbouring bins are merged until each has enough rows."""
    place = np.minimum((stated * BINS).astype(np.intp), BINS - 1)
    found: list[Vector] = []
    waiting = np.empty(0, dtype=np.intp)
    for b in range(BINS):
        waiting = np.concatenate([waiting, np.flatnonzero(place == b)])
        if len(waiting) >= BIN_ROWS:
            found.append(waiting)
            waiting = waiting[:0]
    if len(waiting):
        found.append(np.concatenate([found.pop(), waiting]) if found else waiting)
    return found
