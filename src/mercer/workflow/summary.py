"""Summarise a trained model as text for people and as numbers for programs."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from mercer.problems.solution import FAR
from mercer.selection.search.candidates import short_params
from mercer.selection.search.search_record import scoring_name
from mercer.workflow.training import Outcome

WIDTH = 100
LABEL = 17
# the confusion matrix is shown for at most this many classes
SHOWN_CLASSES = 12
SHOWN_COLUMNS = 12
# names of scores in sentences
NAMES = {"r2": "R²", "roc_auc": "area under the ROC curve"}


def text_summary(outcome: Outcome) -> str:
    """Return a summary for the terminal."""
    lines = [f"{_rows(outcome)}: {outcome.task} of {outcome.samples.target!r}", ""]
    for label, text in (
        ("columns", _columns(outcome)),
        ("machine", _machine(outcome)),
        ("score", _score(outcome)),
        ("support vectors", _support(outcome)),
        ("margin", _margin(outcome)),
        ("certificate", _certificate(outcome)),
        ("time", _time(outcome)),
    ):
        if text:
            lines.append(_wrapped(text, f"{label:<{LABEL}} "))
    lines += ["", *_held_out(outcome)]
    found = symptoms(outcome)
    if found:
        lines += ["", "worth a look:"]
        lines += [_wrapped(text, "  - ") for text in found]
    return "\n".join(lines)


def _wrapped(text: str, start: str) -> str:
    """Wrap the text after its label. Options such as --class-weight are not split."""
    indent = " " * len(start)
    return textwrap.fill(text, WIDTH, initial_indent=start, subsequent_indent=indent, break_on_hyphens=False)


def numbers(outcome: Outcome) -> dict[str, Any]:
    """Return the numbers of the summary, for ``--json``."""
    certificate = outcome.search.certificate_
    found: dict[str, Any] = {
        "task": outcome.task,
        "target": outcome.samples.target,
        "rows": outcome.n,
        "search_rows": outcome.search_rows,
        "tried": outcome.tried,
        "interrupted": outcome.interrupted,
        "columns": {c.name: c.kind for c in outcome.samples.columns},
        "reading": [*outcome.samples.notes, *(str(c) for c in outcome.samples.columns if c.note or c.why)],
        "machine": type(outcome.machine).__name__,
        "parameters": {key: plain(value) for key, value in outcome.search.best_params_.items()},
        "search_score": float(outcome.search.best_score_),
        "baseline_score": plain(outcome.baseline),
        "support_vectors": support_count(outcome.machine),
        "certificate": {
            name: plain(getattr(certificate, name))
            for name in ("primal", "dual", "relative_gap", "kkt_violation", "valid")
        },
        "seconds": outcome.seconds,
        "messages": list(outcome.messages),
        "symptoms": symptoms(outcome),
    }
    if outcome.evaluation is not None:
        e = outcome.evaluation
        found["score"] = {
            "name": e.scoring, "mean": e.score, "method": e.method, "held_out_rows": e.held_out,
            "interval": [plain(v) for v in e.interval], "interval_method": e.interval_method,
            "training": e.training_score,
        }  # fmt: skip
    if outcome.task == "classification":
        found["classes"] = outcome.classes
        found["confusion"] = outcome.confusion.tolist()
    else:
        found["errors"] = outcome.errors
    return found


def plain(value: Any) -> Any:
    """Convert a value for JSON: infinities and unknown types become strings."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else str(float(value))
    return value if value is None or isinstance(value, str) else str(value)


def score_name(outcome: Outcome) -> str:
    """Return the name of the score that the search has maximised, for sentences."""
    name = scoring_name(outcome.search)
    return NAMES.get(name, name.replace("_", " "))


def is_fresh(outcome: Outcome) -> bool:
    """Whether the search did not use the held-out rows; else they are the rows of its folds."""
    return bool((np.asarray(outcome.search.cv_fold_)[outcome.known] < 0).any())


def support_count(machine: Any) -> int | None:
    """Return the number of support vectors; None if the machine has none."""
    support = getattr(machine, "support_", None)
    return None if support is None else len(support)


def _rows(outcome: Outcome) -> str:
    return f"{outcome.n:,} rows"


def _columns(outcome: Outcome) -> str:
    columns = outcome.samples.columns
    if not columns:
        X = outcome.samples.X
        if outcome.samples.kind == "strings":
            lengths = [len(x) for x in X]
            return f"strings of {min(lengths)} to {max(lengths)} characters"
        return f"{X.shape[1]:,} numbers"
    parts = []
    for kind, one, many in (
        ("number", "number", "numbers"), ("boolean", "boolean", "booleans"), ("date", "date", "dates"),
        ("category", "category", "categories"), ("text", "text", "texts"),
        ("left out", "left out", "left out"),
    ):  # fmt: skip
        names = [c.name + (f" [{c.why}]" if c.why else "") for c in columns if c.kind == kind]
        if names:
            more = f" and {len(names) - SHOWN_COLUMNS} more" if len(names) > SHOWN_COLUMNS else ""
            parts.append(f"{len(names)} {one if len(names) == 1 else many} ({', '.join(names[:SHOWN_COLUMNS])}{more})")
    missing = sum(c.missing for c in columns if c.kind != "left out")
    if missing:
        parts.append(f"{missing:,} missing {'cell' if missing == 1 else 'cells'} filled in")
    return ", ".join(parts)


def _machine(outcome: Outcome) -> str:
    search, tried = outcome.search, outcome.tried
    text = f"{type(outcome.machine).__name__} with {short_params(search.best_params_)}"
    if not tried:
        return f"{text}: not compared with others, because time ran out before a candidate was tried in all folds"
    spread = float(search.cv_results_["std_test_score"][search.best_index_])
    rows = f" on {outcome.search_rows:,} rows" if outcome.search_rows < outcome.n else ""
    return (
        f"{text}: the best of {tried} candidates by {search.n_splits_}-fold cross-validation{rows}, "
        f"{search.best_score_:.4g} ± {spread:.2g}" + (" (interrupted)" if outcome.interrupted else "")
    )


def _score(outcome: Outcome) -> str:
    evaluation = outcome.evaluation
    if evaluation is None:
        return ""
    low, high = evaluation.interval
    text = f"{score_name(outcome)} {evaluation.score:.4g}"
    if np.isfinite(low) and np.isfinite(high):
        text += f", 95 % interval {low:.3g} to {high:.3g}"
    text += f" ({evaluation.interval_method}); estimated by {evaluation.method}"
    text += f"; {evaluation.training_score:.4g} on training rows"
    if evaluation.scoring == "accuracy":
        text += f"; {outcome.baseline:.4g} by always predicting the largest class"
    return text


def _certificate(outcome: Outcome) -> str:
    certificate = outcome.search.certificate_
    if not certificate.valid or certificate.relative_gap < FAR:
        return str(certificate)
    larger = f"C={outcome.search.best_params_['C']:.4g}" if "C" in outcome.search.best_params_ else "the largest values"
    return f"{certificate}. Next: allow more time (a larger --time-limit, or none), or search below {larger} (--grid)"


def _support(outcome: Outcome) -> str:
    count, n = support_count(outcome.machine), outcome.n
    return "" if count is None else f"{count:,} of {n:,} rows ({100 * count / n:.0f} %)"


def _margin(outcome: Outcome) -> str:
    margin = getattr(outcome.machine, "margin_", None)
    if margin is None:
        return ""
    margin = np.atleast_1d(margin)
    if len(margin) == 1:
        return f"{margin[0]:.4g}"
    return f"{margin.min():.4g} to {margin.max():.4g} over {len(margin)} machines"


def _time(outcome: Outcome) -> str:
    seconds = outcome.seconds
    text = f"{seconds['search']:.1f} s for the search, {seconds['final fit']:.1f} s for the fit to all rows"
    return text + ("" if outcome.evaluation is None else f", {seconds['judging']:.1f} s to estimate the score")


def _held_out(outcome: Outcome) -> list[str]:
    if not outcome.known.any():
        return ["held-out predictions: none, because time ran out before the first fold"]
    where = "that the search did not use" if is_fresh(outcome) else "in the folds of the search"
    rows_where = f"predictions of {outcome.known.sum():,} held-out rows {where}"
    if outcome.task == "regression":
        found = ", ".join(f"{name} {value:.4g}" for name, value in outcome.errors.items())
        return [f"{rows_where}, all together:", f"  {found}"]
    counts, classes = outcome.confusion, [str(c) for c in outcome.classes]
    if len(classes) > SHOWN_CLASSES:
        wrong = counts.copy()
        np.fill_diagonal(wrong, 0)
        order = np.argsort(wrong, axis=None)[::-1][:5]
        places = [divmod(int(place), len(classes)) for place in order if wrong.flat[place]]
        pairs = ", ".join(f"{classes[i]} as {classes[j]} {wrong[i, j]}" for i, j in places)
        return [f"held-out errors {wrong.sum():,} of {counts.sum():,}; most often {pairs}"]
    width = max(*(len(c) for c in classes), len(str(counts.max())), 4)
    first = max(len("true class"), *(len(c) for c in classes))
    head = f"{'true class':<{first}}  " + "  ".join(f"{c:>{width}}" for c in classes) + "   right"
    rows = [
        f"{name:<{first}}  "
        + "  ".join(f"{value:>{width}}" for value in row)
        + f"   {100 * row[i] / max(row.sum(), 1):.0f} %"
        for i, (name, row) in enumerate(zip(classes, counts, strict=True))
    ]
    return [f"{rows_where} (rows: true class, columns: predicted class)", head, *rows]


def symptoms(outcome: Outcome) -> list[str]:
    """Return the symptoms of a bad fit, and the warnings of the training."""
    found = () if outcome.evaluation is None else outcome.evaluation.symptoms
    return [*(f"{s.name}: {s.text}. {s.command or s.suggestion}" for s in found), *outcome.messages]
