"""The preprocessing of a table's columns: medians, scales, categories as 0/1 columns, words of free text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mercer.exceptions import InvalidInputError
from mercer.io.tables.columns import Column

# names of the first two steps of a table's pipeline
READ, PREPARE = "read", "prepare"
# kinds of columns that become one column of numbers
NUMERIC = ("number", "boolean", "date")


def names_of(columns: Sequence[Column], *kinds: str) -> list[str]:
    """Return the names of the columns of these kinds."""
    return [column.name for column in columns if column.kind in kinds]


def text_step(name: str) -> str:
    """Return the name of the step for a column of free text."""
    return f"text {name}".replace("__", "_")


def column_transformer(columns: Sequence[Column]) -> ColumnTransformer:
    """Build the unfitted preprocessing of a table with these columns."""
    parts: list[tuple[str, Any, Any]] = []
    numbers, categories = names_of(columns, *NUMERIC), names_of(columns, "category")
    if numbers:
        impute = [("impute", SimpleImputer(strategy="median"))]
        parts.append(("number", Pipeline([*impute, ("scale", StandardScaler())]), numbers))
    if categories:
        parts.append(("category", OneHotEncoder(handle_unknown="ignore"), categories))
    for name in names_of(columns, "text"):
        parts.append((text_step(name), TfidfVectorizer(sublinear_tf=True), name))
    if not parts:
        reasons = "; ".join(f"{column.name}: {column.why}" for column in columns)
        raise InvalidInputError(f"No column can be used as an input ({reasons}). Add informative columns.")
    return ColumnTransformer(parts)
