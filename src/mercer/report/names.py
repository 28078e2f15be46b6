"""Readable names of the features of a machine: the only module that parses the names of encoders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from mercer.workflow.training import Outcome

# OneHotEncoder's name for the column of infrequent categories
RARE = "infrequent_sklearn"


def feature_names(outcome: Outcome) -> list[str]:
    """Return the names of the preprocessed features: "bmi", "sex = female", "note: word"; empty if unknown."""
    return names_of(outcome.model, outcome.samples.kind)


def names_of(model: Any, kind: str) -> list[str]:
    """Return the names of the preprocessed features of a model for samples of this kind, such as "table"."""
    if not isinstance(model, Pipeline) or len(model.steps) == 1:
        return []
    try:
        raw = [str(name) for name in model[:-1].get_feature_names_out()]
    except (AttributeError, ValueError):
        return []
    if kind == "matrix":
        return [f"feature {j}" for j in range(len(raw))]
    known = dict(_encoded(model[-2]))
    return [known.get(name, _plain(name)) for name in raw]


def _encoded(prepare: Any) -> Iterator[tuple[str, str]]:
    """Yield (the encoder's name, readable name) of every category."""
    for part, step, columns in getattr(prepare, "transformers_", ()):
        encoder = next((one for one in _steps(step) if isinstance(one, OneHotEncoder)), None)
        if encoder is None:
            continue
        for column, categories in zip(columns, encoder.categories_, strict=True):
            for category in categories:
                yield f"{part}__{column}_{category}", category_words(str(column), category)
            yield f"{part}__{column}_{RARE}", f"{column}: rare values"


def _steps(step: Any) -> list[Any]:
    return [one for _, one in step.steps] if isinstance(step, Pipeline) else [step]


def class_words(label: Any) -> str:
    """Return a class name for sentences: "setosa", but "class 1"."""
    text = str(label)
    return text if text[:1].isalpha() else f"class {text}"


def category_words(column: str, category: Any) -> str:
    """Return "sex = female", or "sex missing" for a missing cell."""
    return f"{column} missing" if is_missing(category) else f"{column} = {category}"


def is_missing(value: Any) -> bool:
    """Whether a cell is missing."""
    return value is None or (isinstance(value, float | np.floating) and bool(np.isnan(value)))


def _plain(name: str) -> str:
    part, _, rest = name.partition("__")
    if not rest:
        return name
    return f"{part.removeprefix('text ')}: {rest}" if part.startswith("text ") else rest
