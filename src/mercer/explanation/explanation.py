"""The result of `explain`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.exceptions import InvalidInputError, MissingExtraError
from mercer.kernels.features import Matrix, Vector

# features that the table in a notebook shows
SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """f(x) = base + Σ_j values[x, j]: what each feature of each row adds to the value of a function.

    Made by `mercer.explain`.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_features) or (n_rows, n_features, n_functions)
        Shapley's values. The third axis is there if the model has several functions.
    base : float or ndarray of shape (n_functions,)
        The mean of the function over the background rows.
    data : ndarray of shape (n_rows, n_features)
        The rows.
    feature_names : tuple of str
        The columns of a data frame, or x0, x1, ...
    exact : bool
        Whether the values are exact up to rounding.
    error : ndarray of the shape of values
        The standard error of each value; 0 if they are exact.
    method : str
        How they were computed: "a linear formula", "an additive formula", "monomials", "quadrature",
        "enumeration" (of all coalitions) or "permutations" (random ones).
    output_names : tuple of str
        What a positive value favours: a class, a class against another, or f(x) of a regression.
    n_background : int
        The number of background rows.
    outputs : ndarray of shape (n_rows,) or (n_rows, n_functions)
        f(x), as the model gives it.
    importance : ndarray of shape (n_features,) or (n_features, n_functions)
        The mean of |values| over rows.

    Examples
    --------
    >>> from mercer import LinearSVR, explain
    >>> model = LinearSVR().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]], [0.0, 2.0, 4.0])
    >>> found = explain(model, [[2.0, 1.0]], background=[[0.0, 0.0]])
    >>> found.method, found.exact, found.values.shape
    ('a linear formula', True, (1, 2))
    """

    values: Matrix
    base: float | Vector
    data: Any
    feature_names: tuple[str, ...]
    exact: bool
    error: Matrix
    method: str
    output_names: tuple[str, ...]
    n_background: int
    outputs: Matrix

    @property
    def importance(self) -> Matrix:
        """The mean of |values| over rows."""
        return np.abs(self.values).mean(axis=0)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.values)

    def __getitem__(self, rows: Any) -> Explanation:
        """The explanation of some rows: a number, a slice, or an array of numbers or booleans."""
        rows = np.arange(len(self))[rows]
        if np.ndim(rows) != 1:
            if np.ndim(rows) > 1:
                raise InvalidInputError("Rows are chosen by a number, a slice, or one array of numbers or booleans.")
            rows = [rows]
        parts = {name: getattr(self, name)[rows] for name in ("values", "data", "error", "outputs")}
        same = ("base", "feature_names", "exact", "method", "output_names", "n_background")
        return Explanation(**parts, **{name: getattr(self, name) for name in same})

    def __repr__(self) -> str:
        n, d = self.values.shape[:2]
        several = f" × {len(self.output_names)} functions" if self.values.ndim == 3 else ""
        how = f"exact by {self.method}"
        if not self.exact:
            how = f"by {self.method}, standard error ≤ {self.error.max(initial=0.0):.2g}"
        return (
            f"Explanation({_count(n, 'row')} × {_count(d, 'feature')}{several}, {how}, "
            f"{_count(self.n_background, 'background row')})"
        )

    def __str__(self) -> str:
        """The features by importance."""
        if len(self) == 0:
            return repr(self)
        mean = self.importance.reshape(len(self.feature_names), -1).mean(axis=1)
        order = np.argsort(-mean, kind="stable")
        width = max(len(self.feature_names[j]) for j in order[:SHOWN])
        lines = [f"{self.feature_names[j]:<{width}}  {mean[j]:.4g}" for j in order[:SHOWN]]
        more = [f"… and {len(order) - SHOWN} more"] if len(order) > SHOWN else []
        return "\n".join([repr(self), "mean |value| of each feature:", *lines, *more])

    def _function(self, output: int | str | None) -> int:
        """The number of a function, given by number or name."""
        if output is None:
            if self.values.ndim == 3:
                raise InvalidInputError(
                    f"This explanation has {len(self.output_names)} functions: choose one by output=, a number or "
                    f"one of {', '.join(map(repr, self.output_names[:6]))}."
                )
            return 0
        if isinstance(output, str) and output in self.output_names:
            return self.output_names.index(output)
        if isinstance(output, int | np.integer) and 0 <= output < len(self.output_names):
            return int(output)
        raise InvalidInputError(
            f"output={output!r} is not a function of this explanation: give a number below {len(self.output_names)} or "
            f"one of {', '.join(map(repr, self.output_names[:6]))}."
        )

    def plot(
        self, kind: str = "bar", *, ax: Any = None, max_features: int = 15, output: int | str | None = None
    ) -> Any:
        """Draw the features by importance.

        Parameters
        ----------
        kind : {"bar", "beeswarm"}, default="bar"
            "bar": the mean of |values| of each feature, with several functions side by side. "beeswarm": a dot for
            each row and feature at its value, coloured by the value of the feature.
        ax : matplotlib axes, default=None
            Where to draw; None makes a figure.
        max_features : int, default=15
            The number of features to draw, the most important first.
        output : int or str, default=None
            The function, by number or name in ``output_names``; "beeswarm" needs it if there are several.

        Returns
        -------
        ax : matplotlib axes
        """
        from mercer.explanation.explanation_plots import draw_bars, draw_beeswarm

        draw = {"bar": draw_bars, "beeswarm": draw_beeswarm}.get(kind)
        if draw is None:
            raise InvalidInputError(f"kind={kind!r} is not known: it must be 'bar' or 'beeswarm'.")
        if not isinstance(max_features, int | np.integer) or max_features < 1:
            raise InvalidInputError(f"max_features={max_features!r} must be a whole number, at least 1.")
        number = None if kind == "bar" and output is None else self._function(output)
        return draw(self, ax, int(max_features), number)

    def to_shap(self) -> Any:
        """The same as a ``shap.Explanation``, for the plots of the package shap."""
        try:
            import shap
        except ImportError:
            raise MissingExtraError("to_shap", package="shap", extra="shap") from None
        base = np.broadcast_to(self.base, (len(self), *np.shape(self.base))).copy()
        return shap.Explanation(
            self.values, base, self.data, feature_names=list(self.feature_names),
            output_names=list(self.output_names) if self.values.ndim == 3 else None,
        )  # fmt: skip


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
