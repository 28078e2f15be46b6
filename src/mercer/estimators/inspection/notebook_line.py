"""One more line below scikit-learn's diagram of a fitted model in a notebook: certificate, support vectors, plan."""

from __future__ import annotations

from html import escape
from typing import Any

STYLE = "margin: 0.4em 0.6em; font-size: 0.85em; line-height: 1.5"


class NotebookLineMixin:
    """Adds the line to what notebooks show. Machines that are not fitted have scikit-learn's diagram alone."""

    def _repr_html_inner(self) -> str:
        """scikit-learn's diagram, and the line."""
        return str(super()._repr_html_inner()) + notebook_line(self)  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The diagram and the line for Jupyter, or text, as scikit-learn is configured."""
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += notebook_line(self)
        return bundle


def notebook_line(model: Any) -> str:
    """The line as HTML, for a search that of its best machine; empty for a model without a certificate."""
    fitted = vars(vars(model).get("best_estimator_", model))
    if fitted.get("certificate_") is None:
        return ""
    parts = [("certificate", str(fitted["certificate_"]))]
    support = fitted.get("support_")
    if support is not None:
        rows = fitted.get("shape_fit_")
        parts.append(("support vectors", f"{len(support):,}" + (f" of {rows[0]:,} samples" if rows else "")))
    if fitted.get("plan_") is not None:
        parts.append(("plan", str(fitted["plan_"])))
    lines = "<br>".join(f"<b>{escape(name)}</b>: {escape(text)}" for name, text in parts)
    return f'<div class="mercer-notebook-line" style="{STYLE}">{lines}</div>'
