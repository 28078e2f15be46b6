"""Assemble the report page from its sections."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import mercer
from mercer.display.canvas import pyplot
from mercer.display.fitted_model import (
    ConvergenceDisplay,
    GramDisplay,
    MarginDisplay,
    SupportVectorDisplay,
    distance_words,
)
from mercer.display.plane import DecisionDisplay, TubeDisplay
from mercer.display.searches import SearchCurveDisplay, SearchMapDisplay
from mercer.exceptions import InvalidInputError, MercerError
from mercer.kernels import Kernel
from mercer.report import html
from mercer.report.inputs import inputs_section
from mercer.report.names import feature_names
from mercer.report.quality import SHOWN, quality
from mercer.workflow.summary import score_name, support_count, symptoms
from mercer.workflow.training import Outcome


def write_report(outcome: Outcome, path: Any, *, model_path: Any = "model.mercer", source: Any = "the data") -> None:
    """Write a self-contained HTML file about a trained model, with embedded pictures.

    Parameters
    ----------
    outcome : Outcome
        The result of ``mercer.workflow.train``.
    path : str or path
        The file to write.
    model_path : str or path
        The path of the model file, for the code that loads it.
    source : str or path
        The name of the data.
    """
    plt = pyplot()
    backend = plt.get_backend()
    switched = backend.lower() != "agg"
    if switched:
        plt.switch_backend("agg")
    try:
        text = html.page(f"{outcome.task} of {outcome.samples.target}", _body(outcome, str(model_path), str(source)))
    finally:
        if switched:
            plt.switch_backend(backend)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(
            f"{path} cannot be written: {error.strerror}. Choose another path or free the file."
        ) from None


def _body(outcome: Outcome, model_path: str, source: str) -> Iterator[str]:
    yield f"<h1>{escape(f'{outcome.task.capitalize()} of “{outcome.samples.target}”')}</h1>"
    made = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    yield html.paragraph(
        f"{Path(source).name}, {outcome.n:,} rows. Made by mercer {mercer.__version__} on {made}.", True
    )
    yield html.facts(_facts(outcome))
    yield html.section("What was learnt", *_learnt(outcome))
    yield html.section("How good it is", *quality(outcome))
    worries = symptoms(outcome)
    yield html.section(
        "What to worry about",
        html.bullets(worries, "worry") if worries else html.paragraph(_no_worries(outcome)),
    )
    yield html.section("Which inputs matter", *inputs_section(outcome))
    pictures = html.plots(_pictures(outcome))
    if pictures:
        yield html.section("Pictures of the search and the machine", pictures)
    yield html.section("How certain the optimum is", *_certainty(outcome))
    yield html.section(
        "How to use it",
        html.paragraph("In Python:"),
        html.code(f'import mercer\n\nmodel = mercer.load("{Path(model_path).name}")\nmodel.predict(new_rows)'),
        html.paragraph("On the command line:"),
        html.code(f"mercer predict {Path(model_path).name} new_rows.csv"),
    )


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    certificate, evaluation, name = outcome.search.certificate_, outcome.evaluation, score_name(outcome)
    pairs = []
    if evaluation is not None:
        pairs.append((f"{name} to expect on new rows", f"{evaluation.score:.3f}"))
    elif np.isfinite(outcome.search.best_score_):
        pairs.append((f"{name} in the cross-validation of the search", f"{outcome.search.best_score_:.3f}"))
    if outcome.task == "classification":
        pairs.append(("accuracy of always predicting the largest class", f"{outcome.baseline:.3f}"))
    elif outcome.errors:
        pairs.append(("root mean squared error of held-out rows", f"{outcome.errors['root mean squared error']:.4g}"))
    count = support_count(outcome.machine)
    if count is not None:
        pairs.append((f"of {outcome.n:,} rows are support vectors", f"{count:,}"))
    words = distance_words(certificate)
    if words.startswith("within "):
        near = words.removeprefix("within ").partition(" of ")[0]
        pairs.append(("largest possible distance of the objective from its optimum", near))
    pairs.append(("seconds to search, fit and estimate the score", f"{sum(outcome.seconds.values()):.1f}"))
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
    part = f" on {outcome.search_rows:,} rows" if outcome.search_rows < outcome.n else ""
    choice = (
        f"the best of {tried} candidates by {search.n_splits_}-fold cross-validation{part}"
        if tried
        else "not compared with others, because the search ended before any candidate was tried in all folds"
    )
    yield html.paragraph(
        f"{'A' if name.startswith('L') else 'An'} {name} with {chosen}: {choice}. It was then fitted to all "
        f"{outcome.n:,} rows."
    )
    columns = outcome.samples.columns
    if columns:
        some = any(c.missing for c in columns)
        rows = [
            (html.named(c.name, c.why or c.note), c.kind, f"{c.different:,}", *([c.missing or ""] if some else []))
            for c in columns[:SHOWN]
        ]
        head = ("column", "used as", "distinct values", *(["missing cells"] if some else []))
        yield html.table("columns", head, rows)
        if len(columns) > SHOWN:
            yield html.paragraph(f"… and {len(columns) - SHOWN} more columns.", True)


def _no_worries(outcome: Outcome) -> str:
    if outcome.evaluation is None:
        return "The model was not checked for symptoms of a bad fit, because its score on new rows was not estimated."
    return "No symptoms of a bad fit were found."


def _certainty(outcome: Outcome) -> Iterator[str]:
    certificate = outcome.search.certificate_
    if certificate.valid and np.isfinite(certificate.relative_gap):
        yield html.paragraph(
            f"The objective of the fitted machine is {distance_words(certificate)}. The table has the proof: no "
            "machine with these parameters has an objective below the lower bound. Both numbers were recomputed in "
            "double precision from the data and the fitted coefficients, so they hold whatever the solver did."
        )
    else:
        reason = certificate.reason if not certificate.valid and certificate.reason else "the run ended early"
        yield html.paragraph(f"The distance from the best possible objective is unknown, because {reason}.")
    rows = [
        ("objective of this machine (primal)", f"{certificate.primal:.10g}"),
        ("lower bound for every machine (dual)", f"{certificate.dual:.10g}"),
        ("difference, relative to the objective", f"{certificate.relative_gap:.2e}"),
        ("largest violation of the optimality conditions", f"{certificate.kkt_violation:.2e}"),
    ]
    yield html.table("certificate", ("certificate", "value"), rows)
    if len(getattr(outcome.machine, "trace_", ())) > 2:
        yield html.plots(
            [
                _guarded(
                    lambda: ConvergenceDisplay.from_estimator(outcome.machine).figure_,
                    "Convergence: the run ends when the violation is below the dashed line",
                    "The distance from the optimum is an upper bound, computed from the dual value at that time.",
                    "Violation and distance from the optimum against time, on a logarithmic scale.",
                )
            ]
        )


def _with_names(outcome: Outcome, display: Any) -> Any:
    """Label the axes of a display with the names of the columns; return its figure. Edits the display."""
    names = feature_names(outcome)
    set_label = (display.ax_.set_xlabel, display.ax_.set_ylabel)
    for name, label in zip(names, set_label[: len(names)], strict=True):
        label(f"{name}, standardised")
    return display.figure_


def _pictures(outcome: Outcome) -> Iterator[str]:
    search, prepared, target = outcome.search, outcome.prepared, outcome.samples.target
    several = [key for key, values in _candidates(search).items() if len(values) > 1]
    if several:
        display = SearchMapDisplay if len(several) >= 2 else SearchCurveDisplay
        title = "Candidates of the search: the best one should not lie at the edge"
        text = "If it does, better values may lie beyond the edge."
        if len(several) >= 2:
            text += " Grey cells were not tried."
        names = ", ".join(several)
        yield _guarded(
            lambda: display.from_estimator(search).figure_,
            title,
            text,
            f"Cross-validated scores for values of {names}.",
        )
    if outcome.task == "classification":
        yield _guarded(
            lambda: MarginDisplay.from_estimator(search, prepared, outcome.samples.y).figure_,
            "Margins of the training rows: below 0, a row is on the wrong side",
            "Rows near 0 are close calls.",
            "Histogram of the margins of the training rows.",
        )
        gram = "Bright blocks along the diagonal mean that rows of one class resemble each other."
    else:
        gram = f"Rows are ordered by {target}: a bright diagonal means that similar rows have similar targets."
    yield _guarded(
        lambda: GramDisplay.from_estimator(outcome.machine, prepared, outcome.samples.y).figure_,
        "Kernel matrix: the similarity of each pair of rows",
        gram,
        f"Heat map of the kernel matrix, rows ordered by {target}.",
    )
    width = getattr(prepared, "shape", (0, 0))[1] if hasattr(prepared, "shape") else 0
    if outcome.task == "classification" and width == 2:
        yield _guarded(
            lambda: _with_names(outcome, DecisionDisplay.from_estimator(search, prepared, outcome.samples.y)),
            "Regions: the predicted class at each point",
            "Points are the training rows; rings mark support vectors.",
            "The plane of both columns, coloured by the predicted class, with the training rows.",
        )
    if outcome.task == "regression" and width == 1:
        yield _guarded(
            lambda: _with_names(outcome, TubeDisplay.from_estimator(search, prepared, outcome.samples.y)),
            "The fitted function: it should follow the points",
            "Errors within the shaded tube cost nothing.",
            f"The predicted {target} and its tube, with the training rows.",
        )
    if outcome.samples.kind == "strings":
        yield _guarded(
            lambda: SupportVectorDisplay.from_estimator(outcome.machine, outcome.samples.y).figure_,
            "Support vectors with the largest weights: the most influential samples",
            "",
            "A list of the support vectors with the largest weights.",
        )


def _candidates(search: Any) -> dict[str, set[str]]:
    return {key: {str(one.get(key)) for one in search.cv_results_["params"]} for key in search.cv_results_["params"][0]}


def _guarded(draw: Callable[[], Any], title: str, text: str, alt: str) -> str:
    """Return a picture, or an empty string if the display does not support this model."""
    try:
        return html.figure(draw(), title, text, alt)
    except MercerError:
        return ""
