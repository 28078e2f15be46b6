"""The page itself."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mercer
from mercer.display.canvas import axes, colour, pyplot
from mercer.display.machines import ConvergenceDisplay, GramDisplay, MarginDisplay, SupportVectorDisplay
from mercer.display.plane import DecisionDisplay, TubeDisplay
from mercer.display.searches import SearchCurveDisplay, SearchMapDisplay
from mercer.exceptions import InvalidInputError, MercerError
from mercer.kernels import Kernel
from mercer.report import html
from mercer.report.importance import permuted, steepness
from mercer.workflow.summary import support_count, symptoms
from mercer.workflow.training import Outcome

# columns of the tables, at most
SHOWN = 25


def write_report(outcome: Outcome, path: Any, *, model_path: Any = "model.mercer", source: Any = "the data") -> None:
    """Write one HTML file about a trained model. It needs no network, and holds its pictures.

    Parameters
    ----------
    outcome : Outcome
        What ``mercer.workflow.train`` has returned.
    path : str or path
        The file to write.
    model_path : str or path
        Where the model was written, for the lines that load it.
    source : str or path
        What the data are called.
    """
    plt = pyplot()
    backend = plt.get_backend()
    plt.switch_backend("agg")
    try:
        text = html.page(f"{outcome.task} of {outcome.samples.target}", _body(outcome, str(model_path), str(source)))
    finally:
        plt.switch_backend(backend)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written: {error.strerror}.") from None


def _body(outcome: Outcome, model_path: str, source: str) -> Iterator[str]:
    yield f"<h1>{html.escape(f'{outcome.task.capitalize()} of “{outcome.samples.target}”')}</h1>"
    made = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    yield html.paragraph(
        f"{Path(source).name}, {len(outcome.samples):,} rows. Made by mercer {mercer.__version__} on {made}.", True
    )
    yield html.facts(_facts(outcome))
    yield html.section("What was learnt", *_learnt(outcome))
    yield html.section("How good it is", *_quality(outcome))
    yield html.section("How certain the optimum is", *_certainty(outcome))
    worries = symptoms(outcome)
    yield html.section(
        "What to worry about",
        html.bullets(worries, "worry")
        if worries
        else html.paragraph("None of the symptoms that were looked for was found."),
    )
    yield html.section("Which inputs matter", *_inputs(outcome))
    pictures = html.plots(_pictures(outcome))
    if pictures:
        yield html.section("Pictures", pictures)
    yield html.section(
        "How to use it",
        html.code(f'import mercer\n\nmodel = mercer.load("{Path(model_path).name}")\nmodel.predict(new_rows)'),
        html.code(f"mercer predict {Path(model_path).name} new_rows.csv"),
    )


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    certificate, evaluation = outcome.search.certificate_, outcome.evaluation
    pairs = []
    name = "accuracy" if outcome.task == "classification" else "R²"
    if evaluation is not None:
        pairs.append((f"{name} on new rows", f"{evaluation.score:.3f}"))
    else:
        pairs.append((f"{name} in cross-validation", f"{outcome.search.best_score_:.3f}"))
    if outcome.task == "classification":
        pairs.append(("guessing the largest class", f"{outcome.baseline:.3f}"))
    count = support_count(outcome.machine)
    if count is not None:
        pairs.append(("support vectors", f"{count:,}"))
    gap = f"{certificate.relative_gap:.0e}" if certificate.valid else "unknown"
    pairs.append(("from the optimum, relative", gap))
    pairs.append(("seconds", f"{sum(outcome.seconds.values()):.1f}"))
    return pairs


def _learnt(outcome: Outcome) -> Iterator[str]:
    search = outcome.search
    chosen = ", ".join(
        f"{key} = {value:.4g}" if isinstance(value, float) else f"{key} = {value}"
        for key, value in search.best_params_.items()
    )
    if isinstance(getattr(search, "kernel", None), Kernel):
        chosen += f" and the kernel {search.kernel!r}"
    tried, name = outcome.tried, type(outcome.machine).__name__
    yield html.paragraph(
        f"{'A' if name.startswith('L') else 'An'} {name} with {chosen}, the best of {tried} candidates by "
        f"{search.n_splits_}-fold cross-validation, fitted to all rows."
    )
    columns = outcome.samples.columns
    if columns:
        rows = [(html.named(c.name, c.why), c.kind, c.missing or "", f"{c.different:,}") for c in columns[:SHOWN]]
        yield html.table(("column", "kind", "missing", "values"), rows)
        if len(columns) > SHOWN:
            yield html.paragraph(f"… and {len(columns) - SHOWN} more columns.", True)


def _quality(outcome: Outcome) -> Iterator[str]:
    evaluation = outcome.evaluation
    if evaluation is None:
        yield html.paragraph(
            "The model was not judged on rows of its own; the score of the search is too good, as it was maximised."
        )
    else:
        low, high = evaluation.interval
        ends = f"95 % interval {low:.3f} to {high:.3f}, " if np.isfinite(low) else ""
        spread = f" ({ends}{evaluation.interval_method})"
        yield html.paragraph(
            f"On rows that had no part in fit or search: {evaluation.score:.4f}{spread}. On the training rows: "
            f"{evaluation.training_score:.4f}. Judged by {evaluation.method}."
        )
    if not outcome.known.any():
        yield html.paragraph("The time was over before the first fold: there are no held-out predictions.")
    elif outcome.task == "classification":
        counts = outcome.confusion
        classes = [str(c) for c in outcome.classes]
        if len(classes) <= SHOWN:
            rows = [
                (name, *counts[i], f"{100 * counts[i, i] / max(counts[i].sum(), 1):.0f} %")
                for i, name in enumerate(classes)
            ]

            def mark(i: int, j: int) -> str:
                if not 1 <= j <= len(classes) or not counts[i, j - 1]:
                    return ""
                return "right" if i == j - 1 else "wrong"

            yield html.paragraph(
                "Held-out predictions in the folds of the search; rows are true classes, columns predicted ones.", True
            )
            yield html.table(("true class", *classes, "right"), rows, mark)
    else:
        yield html.table(
            ("held-out error", "value"), [(name, f"{value:.5g}") for name, value in outcome.errors.items()]
        )
        yield html.plots(
            [
                _guarded(
                    lambda: _residuals(outcome), "Held-out predictions in the folds of the search against true values."
                )
            ]
        )


def _residuals(outcome: Outcome) -> Any:
    fig, ax = axes(None)
    y, f = np.asarray(outcome.samples.y, dtype=float)[outcome.known], outcome.held_out[outcome.known]
    ax.scatter(y, f, s=10, color=colour(0), alpha=0.6)
    ends = [min(y.min(), f.min()), max(y.max(), f.max())]
    ax.plot(ends, ends, color="black", lw=1, ls="--")
    ax.set(xlabel=f"true {outcome.samples.target}", ylabel="predicted")
    return fig


def _certainty(outcome: Outcome) -> Iterator[str]:
    certificate = outcome.search.certificate_
    if certificate.valid and np.isfinite(certificate.relative_gap):
        yield html.paragraph(
            f"No model of this kind has an objective below {certificate.dual:.6g}; this one has "
            f"{certificate.primal:.6g}. It is therefore within {100 * certificate.relative_gap:.2g} % of the best, "
            "whatever the solver did: both numbers were computed afresh from the data and the coefficients, "
            "in double precision."
        )
    else:
        yield html.paragraph(
            "The kernel is not positive semidefinite, or the run ended early: the distance to the optimum is unknown."
        )
    rows = [
        ("primal objective", f"{certificate.primal:.10g}"),
        ("dual objective", f"{certificate.dual:.10g}"),
        ("relative gap", f"{certificate.relative_gap:.2e}"),
        ("largest violation of the optimality conditions", f"{certificate.kkt_violation:.2e}"),
    ]
    yield html.table(("certificate", "value"), rows)
    if len(getattr(outcome.machine, "trace_", ())) > 2:
        caption = "How the run came to its end."
        yield html.plots([_guarded(lambda: ConvergenceDisplay.from_estimator(outcome.machine).figure_, caption)])


def _inputs(outcome: Outcome) -> Iterator[str]:
    found = permuted(outcome)
    if found:
        largest = max(found[0][1], 1e-12)
        rows = [(name, html.bar(mean / largest), f"{mean:.4f} ± {std:.4f}") for name, mean, std in found[:SHOWN]]
        yield html.paragraph("What the score loses when the cells of one column are shuffled.")
        yield html.table(("column", "", "loss of score"), rows)
    slopes = steepness(outcome)
    names = _feature_names(outcome)
    if slopes is not None and len(slopes) == len(names) > 1:
        order = np.argsort(-slopes)[:SHOWN]
        largest = float(slopes.max()) or 1.0
        rows = [(names[j], html.bar(slopes[j] / largest), f"{slopes[j]:.4g}") for j in order]
        yield html.paragraph(
            "How steep the decision function is along each feature after scaling: its exact gradient, as a root mean "
            "square over rows."
        )
        yield html.table(("feature", "", "slope"), rows)
    if not found and slopes is None:
        yield html.paragraph(
            "For these samples there is no list of inputs; the support vectors below show what decides."
        )


def _feature_names(outcome: Outcome) -> list[str]:
    if len(outcome.model.steps) == 1:
        return []
    try:
        return [str(name).partition("__")[2] or str(name) for name in outcome.model[:-1].get_feature_names_out()]
    except (AttributeError, ValueError):
        return []


def _with_names(outcome: Outcome, display: Any) -> Any:
    """The figure of a display in the plane, whose axes are called as the columns are. Edits the display."""
    names = _feature_names(outcome)
    set_label = (display.ax_.set_xlabel, display.ax_.set_ylabel)
    for name, label in zip(names, set_label[: len(names)], strict=True):
        label(f"{name}, prepared")
    return display.figure_


def _pictures(outcome: Outcome) -> Iterator[str]:
    search, prepared = outcome.search, outcome.prepared
    several = [key for key, values in _candidates(search).items() if len(values) > 1]
    if len(several) >= 2:
        yield _guarded(lambda: SearchMapDisplay.from_estimator(search).figure_, "Scores of the candidates.")
    elif several:
        yield _guarded(lambda: SearchCurveDisplay.from_estimator(search).figure_, "Scores of the candidates.")
    if outcome.task == "classification":
        yield _guarded(
            lambda: MarginDisplay.from_estimator(search, prepared, outcome.samples.y).figure_,
            "Margins of the training rows: below 0 on the wrong side.",
        )
    yield _guarded(
        lambda: GramDisplay.from_estimator(outcome.machine, prepared, outcome.samples.y).figure_,
        "The kernel matrix, rows ordered by target.",
    )
    width = getattr(prepared, "shape", (0, 0))[1] if hasattr(prepared, "shape") else 0
    if outcome.task == "classification" and width == 2:
        yield _guarded(
            lambda: _with_names(outcome, DecisionDisplay.from_estimator(search, prepared, outcome.samples.y)),
            "Regions of the classes.",
        )
    if outcome.task == "regression" and width == 1:
        yield _guarded(
            lambda: _with_names(outcome, TubeDisplay.from_estimator(search, prepared, outcome.samples.y)),
            "The function and its tube.",
        )
    if outcome.samples.kind == "strings":
        yield _guarded(
            lambda: SupportVectorDisplay.from_estimator(outcome.machine, outcome.samples.y).figure_, "Support vectors."
        )


def _candidates(search: Any) -> dict[str, set[str]]:
    return {key: {str(one.get(key)) for one in search.cv_results_["params"]} for key in search.cv_results_["params"][0]}


def _guarded(draw: Callable[[], Any], caption: str) -> str:
    """A picture, or nothing where this model has none of this kind."""
    try:
        return html.figure(draw(), caption)
    except MercerError:
        return ""
