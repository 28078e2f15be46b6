"""A fitted model for `explain`: its decision functions, their names, and an expansion in a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_clusterer
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitted_models import unwrap
from mercer.estimators.svc import BaseSVC
from mercer.exceptions import InvalidInputError
from mercer.explanation.kernel_terms import Term, terms_of
from mercer.io.formats.plain_model import PlainModel, plain_model
from mercer.kernels.domains import noun_of
from mercer.kernels.features import Matrix
from mercer.svm.batch import class_pairs


@dataclass(frozen=True, eq=False)
class ExplainedModel:
    """The functions of a fitted model.

    Attributes
    ----------
    model : the fitted estimator, pipeline or search.
    machine : the estimator at its end.
    plain : its functions as expansions in a kernel or as weights, in the space of X; None if they are not known.
    terms : the kernel as a sum of terms with exact values; None if it has another form.
    """

    model: Any
    machine: Any
    plain: PlainModel | None
    terms: list[Term] | None

    @property
    def formula(self) -> bool:
        """Whether the values have an exact formula."""
        return self.plain is not None and (self.plain.weights is not None or self.terms is not None)

    def values(self, X: Any) -> Matrix:
        """The values of all functions at the rows of X, one column for each."""
        machine, X, _ = unwrap(self.model, X)
        if isinstance(machine, BaseSVC) and len(machine.classes_) > 2:
            found = machine._values(X)  # values of pairs, whatever the shape of the decision function is
        elif hasattr(machine, "decision_function"):
            found = machine.decision_function(X)
        else:
            found = machine.predict(X)
        found = np.asarray(found, dtype=np.float64)
        return found.reshape(len(found), -1)

    def output_names(self, count: int) -> tuple[str, ...]:
        """A name for each function."""
        if not is_classifier(self.machine):
            return ("f(x)",) if count == 1 else tuple(f"output {k}" for k in range(count))
        classes = [str(c) for c in self.machine.classes_]
        if count == 1:
            return (classes[-1],)
        if count == len(classes) and not isinstance(self.machine, BaseSVC):
            return tuple(classes)
        return tuple(f"{classes[i]} against {classes[j]}" for i, j in class_pairs(len(classes)))

    def kept_rows(self) -> Matrix | None:
        """The support vectors or training rows that the model keeps, before scaling; None if it keeps none."""
        plain = self.plain
        if plain is None or plain.vectors is None:
            vectors: Any = getattr(self.machine, "support_vectors_", None) if self.machine is self.model else None
            usable = hasattr(vectors, "shape") and len(vectors.shape) == 2 and 0 not in vectors.shape
            return (vectors.toarray() if hasattr(vectors, "toarray") else np.asarray(vectors)) if usable else None
        if plain.scale is None or plain.shift is None:
            return plain.vectors
        if np.any(plain.scale == 0):
            return None
        return (plain.vectors - plain.shift) / plain.scale


def explained_model(model: Any) -> ExplainedModel:
    """The functions of a fitted model; raise if its samples have no features."""
    check_is_fitted(model)
    machine = unwrap(model).machine
    if not hasattr(machine, "decision_function") and not hasattr(machine, "predict"):
        raise InvalidInputError(
            f"{type(machine).__name__} has no function to explain: give a fitted model with decision_function "
            "or predict."
        )
    if is_classifier(machine) and not hasattr(machine, "decision_function"):
        raise InvalidInputError(
            f"{type(machine).__name__} predicts labels only, and explain needs decision values: give a classifier with "
            "decision_function."
        )
    if is_clusterer(machine):
        raise InvalidInputError(
            f"{type(machine).__name__} is a clusterer: the numbers of its clusters are no function to explain. Explain "
            "a classifier that is fitted to its labels, such as SVC().fit(X, clusters.labels_)."
        )
    _check_kernel(machine)
    try:
        plain = plain_model(_best(model))
    except InvalidInputError:
        return ExplainedModel(model, machine, None, None)
    terms = None if plain.formula is None else terms_of(plain.formula)
    return ExplainedModel(model, machine, plain, terms)


def _best(model: Any) -> Any:
    """The best estimator of a search, of any kind."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    return model


def _check_kernel(machine: Any) -> None:
    """Raise if the kernel compares something else than vectors."""
    kernel = getattr(machine, "_kernel", None)
    if kernel is None or getattr(machine, "_function_samples", None) is not None:
        return
    if kernel.domain == "matrix":
        raise InvalidInputError(
            f"This {type(machine).__name__} has a precomputed kernel, so the features of its samples are not known. "
            "Fit it with the kernel itself, or ask which training samples matter: mercer.influence."
        )
    if kernel.domain not in ("vectors", "records", "any"):
        raise InvalidInputError(
            f"{kernel!r} compares {noun_of(kernel.domain)}, which have no features that explain could replace. Ask "
            "which training samples matter instead: mercer.influence."
        )
