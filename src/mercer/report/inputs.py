"""The section "Which inputs matter": the importance of each column, and the direction of its effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.display.canvas import axes, colour, marker
from mercer.report import html
from mercer.report.dependence import Dependence, partial_dependence, value_words
from mercer.report.importance import (
    MOST_COLUMNS,
    Importance,
    Slopes,
    input_columns,
    permutation_importance,
    shapley_values,
    slopes,
)
from mercer.report.names import class_words, feature_names
from mercer.report.quality import LINES, SHOWN, default_score
from mercer.workflow.training import Outcome

# partial dependence is drawn for at most this many columns
DRAWN = 6
# a direction is clear, or mostly clear, if the slope has the same sign in at least these shares of the rows
CLEAR, MOSTLY = 0.95, 0.7


def inputs_section(outcome: Outcome) -> Iterator[str]:
    """Yield the parts of the section."""
    importance, found, names = permutation_importance(outcome), slopes(outcome), feature_names(outcome)
    if importance is not None:
        yield from _importance(outcome, importance)
        drawn = (partial_dependence(outcome, importance.columns[j]) for j in np.argsort(-importance.loss)[:DRAWN])
        figures = [_dependence(outcome, one) for one in drawn if one is not None and len(one.outputs) <= LINES]
        if figures:
            yield html.heading("In which direction")
            yield html.paragraph(
                "The average prediction of the fitted model when the column is set to the same value in all rows "
                "(partial dependence), for the most important columns. All other columns keep their values, so some of "
                "these rows may be unlike any row of the data."
            )
            yield html.plots(figures, small=True)
    elif len(input_columns(outcome)) > MOST_COLUMNS:
        yield html.paragraph(
            f"The importance of single columns was not computed, because there are {len(input_columns(outcome)):,} "
            f"columns; the limit is {MOST_COLUMNS}."
        )
    yield from _shapley(outcome, names)
    if found is not None and len(names) == found.mean.shape[1]:
        yield from _slopes(outcome, found, names)
    elif importance is None:
        yield html.paragraph(
            "These samples have no columns to compare. The pictures below show the support vectors with the largest "
            "weights."
        )


def _importance(outcome: Outcome, found: Importance) -> Iterator[str]:
    name = default_score(outcome)
    order = np.argsort(-found.loss)
    largest = max(float(found.loss.max()), 1e-12)
    rows = []
    for j in order[:SHOWN]:
        spread = f" ± {found.spread[j]:.3f}" if np.isfinite(found.spread[j]) else ""
        rows.append((found.columns[j], html.bar(found.loss[j] / largest), f"{_loss(found.loss[j])}{spread}"))
    yield html.heading(f"How much {name} is lost without a column")
    several = f"one of {found.folds} machines that was" if found.folds > 1 else "a machine that was"
    ends = "± is the standard deviation over the folds. " if found.folds > 1 else ""
    yield html.paragraph(
        f"{name[0].upper() + name[1:]} lost on held-out rows when the cells of one column are shuffled: {found.rows:,} "
        f"rows, each predicted by {several} fitted without its fold. {ends}A loss near 0 means that the model does not "
        "need the column, perhaps because another column holds the same information."
    )
    yield html.table(f"loss of {name} by column", ("column", "", f"{name} lost"), rows)
    if len(order) > SHOWN:
        yield html.paragraph(
            f"For the other {len(order) - SHOWN} columns, at most {_loss(found.loss[order[SHOWN]])} is lost.", True
        )


def _shapley(outcome: Outcome, names: list[str]) -> Iterator[str]:
    """Yield a bar for the mean |Shapley value| of each preprocessed feature; nothing if it was not computed."""
    found = shapley_values(outcome.machine, outcome.prepared)
    if found is None or len(names) != len(found.feature_names):
        return
    size = found.importance.reshape(len(names), -1).mean(axis=1)
    order, largest = np.argsort(-size, kind="stable"), float(size.max()) or 1.0
    unit = f"units of {outcome.samples.target}" if outcome.task == "regression" else "units of the decision function"
    several = ", averaged over the pairs of classes" if found.values.ndim == 3 else ""
    yield html.heading("What each feature adds to the value of a row")
    yield html.paragraph(
        f"The mean size of exact Shapley values over {len(found):,} rows, in {unit}{several}. The Shapley values of "
        "a row divide the difference between its value and the average value among the features. "
        f"Features that are left out have the values of {found.n_background} other rows. In Python: mercer.explain."
    )
    rows = [(names[j], html.bar(size[j] / largest), f"{size[j]:.3g}") for j in order[:SHOWN]]
    yield html.table("mean |Shapley value| by feature", ("feature", "", "mean |Shapley value|"), rows)


# ---- direction -------------------------------------------------------------------------------------------------------


def _slopes(outcome: Outcome, found: Slopes, names: list[str]) -> Iterator[str]:
    order = np.argsort(-np.abs(found.mean).max(axis=0), kind="stable")[:SHOWN]
    what = "weight" if found.linear else "average slope"
    yield html.heading("Signed weights" if found.linear else "Signed slopes")
    yield html.paragraph(_slope_words(outcome, found))
    if len(found.outputs) > 1:
        head = ("feature", *(f"for {name}" for name in found.outputs))
        cells = [[names[j], *(f"{_arrow(v)} {_signed(v)}" for v in found.mean[:, j])] for j in order]

        def mark(i: int, j: int) -> str:
            return "" if j == 0 else _sign(found.mean[j - 1, order[i]])

        yield html.table(f"{what} of each feature for each class", head, cells, mark)
    else:
        largest = float(np.abs(found.mean).max()) or 1.0
        rows = []
        for j in order:
            value = float(found.mean[0, j])
            row = [names[j], html.signed_bar(value / largest), _signed(value), _direction(float(found.rising[0, j]))]
            rows.append(row if not found.linear else [*row[:3], _arrow(value)])
        yield html.table(f"{what} of each feature", ("feature", "", what, "direction"), rows)
    if len(names) > SHOWN:
        yield html.paragraph(f"The {SHOWN} largest of {len(names):,} features are shown.", True)


def _slope_words(outcome: Outcome, found: Slopes) -> str:
    kind = (
        "The weights of the linear machine"
        if found.linear
        else "The slope of the decision function, averaged over rows"
    )
    if outcome.task == "regression":
        text = f"{kind}, in units of {outcome.samples.target}. Positive: the prediction grows with the feature."
    elif len(found.outputs) == 1:
        first, second = map(class_words, outcome.classes)
        text = f"{kind}. Positive speaks for {second}, negative for {first}."
    else:
        pairs = "" if found.linear else " and over the machines of the class against each other class"
        text = f"{kind}{pairs}. Positive speaks for the class, negative against it."
    return text + _units(outcome, "weight" if found.linear else "slope")


def _units(outcome: Outcome, what: str) -> str:
    """Describe the unit of a slope."""
    if outcome.samples.kind == "matrix":
        kinds = set() if hasattr(outcome.samples.X, "toarray") else {"number"}
    else:
        kinds = {c.kind for c in outcome.samples.columns}
    parts = [
        text
        for kind, text in (
            ({"number", "boolean", "date"}, "one standard deviation of a numeric column"),
            ({"category"}, "a category that applies"),
            ({"text"}, "one unit of a word's tf-idf value"),
        )
        if kind & kinds
    ]
    return f" A {what} is the change for {', or '.join(parts)}." if parts else ""


def _loss(value: float) -> str:
    # the sum with 0 turns -0.0 into 0.0
    return _minus(f"{round(value, 3) + 0.0:.3f}")


def _minus(text: str) -> str:
    """Replace the hyphen of a negative number by a minus sign."""
    return text.replace("-", "−")


def _signed(value: float) -> str:
    """Format a number with its sign and three digits."""
    return _minus(f"{value:+.3g}")


def _sign(value: float) -> str:
    return "up" if value > 0 else "down" if value < 0 else ""


def _arrow(value: float) -> str:
    return {"up": "↑", "down": "↓", "": "·"}[_sign(value)]


def _direction(rising: float) -> str:
    """Describe a direction in words, from the share of rows with a positive slope."""
    for share, up in ((rising, "↑ up"), (1.0 - rising, "↓ down")):
        if share >= CLEAR:
            return up
        if share >= MOSTLY:
            return f"{up} in {100 * share:.0f} % of rows"
    return f"mixed: up in {100 * rising:.0f} % of rows"


def _dependence(outcome: Outcome, found: Dependence) -> str:
    fig, ax = axes(None, (6.4, 4.8))
    at = np.arange(len(found.values)) if found.categorical else np.array(found.values, dtype=np.float64)
    for number, (name, mean) in enumerate(zip(found.outputs, found.mean, strict=True)):
        style: dict[str, Any] = {"color": colour(number), "marker": marker(number), "ms": 5, "label": name}
        ax.plot(at, mean, ls="none" if found.categorical else "-", **style)
    if found.categorical:
        shown = [value_words(value, found.kind) for value in found.values]
        ax.set_xticks(at, [text if len(text) <= 14 else text[:13] + "…" for text in shown], rotation=30, ha="right")
        ax.set_xlim(-0.5, len(at) - 0.5)
    elif found.kind == "date":
        ticks = np.linspace(at[0], at[-1], 3).round()
        # cells of dates are days since 1970-01-01
        ax.set_xticks(ticks, [str(np.datetime64(int(day), "D")) for day in ticks])
    else:
        ax.locator_params(axis="x", nbins=5)
    single = found.outputs[0]
    if outcome.task == "regression":
        label, subject = f"average predicted {single}", f"predicted {single} "
    elif len(found.outputs) == 1:
        label, subject = f"average P({single})", f"P({single}) "
    else:
        label, subject = "average probability", ""
        ax.legend(fontsize="small")
    ax.set(xlabel=found.column, ylabel=label)
    words = f"{found.column}: {subject}{found.words()}"
    return html.figure(fig, words, "", f"{label.capitalize()} against {words}.", small=True)
