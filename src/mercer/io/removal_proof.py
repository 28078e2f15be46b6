"""Prove that a model does not depend on removed training samples, and that it holds none of them.

The certificate is computed anew from the remaining samples and the published coefficients: its gap bounds how far the
model is from the one that was never trained on the removed samples. Their values are searched for in the attributes of
the model, in the bytes of its model file and its pickle, and in the models that these are loaded to.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.estimators.certification.certify_model import certify
from mercer.estimators.fitted_models import unwrap
from mercer.exceptions import InvalidInputError
from mercer.io.model_file.save_load import load, save
from mercer.io.sample_search import Search, as_numbers, is_matrix, items_of, object_key, vector_keys
from mercer.kernels.features import count_samples, take_samples
from mercer.problems.solution import Certificate


@dataclass(frozen=True)
class RemovalProof:
    """The result of `proof_of_removal` for a model from which training samples were removed.

    Attributes
    ----------
    certificate : Certificate or None
        The certificate of the problem without the removed samples, in float64, from the remaining samples and the
        coefficients. None for a Gaussian process.
    residual : float
        For a Gaussian process: the largest residual of its linear system. Else 0.
    n_samples, n_removed : the numbers of remaining and of removed samples.
    also_kept : positions among the removed samples that equal a remaining sample, in the lower of both precisions.
        They are not searched for.
    in_model : names of attributes that hold a removed sample.
    in_file : names of members of the model file that hold one, or of attributes of the model that is loaded from it;
        None if the model cannot be saved, so that there is no file.
    in_pickle : whether the pickle, or the model that is loaded from it, holds one; None if there is no pickle.

    Examples
    --------
    >>> from mercer import OneClassSVM, proof_of_removal
    >>> X = [[0.1], [0.2], [0.3], [0.4], [0.7]]
    >>> model = OneClassSVM(gamma=1.0, updatable=True).fit(X).remove(4)
    >>> print(proof_of_removal(model, X[4:]).in_model)
    ()
    """

    certificate: Certificate | None
    residual: float
    n_samples: int
    n_removed: int
    also_kept: tuple[int, ...]
    in_model: tuple[str, ...]
    in_file: tuple[str, ...] | None
    in_pickle: bool | None

    @property
    def holds_none(self) -> bool:
        """Whether no removed sample was found."""
        return not (self.in_model or self.in_file or self.in_pickle)

    def __str__(self) -> str:
        found = [*self.in_model, *(f"{name} of its file" for name in self.in_file or ())]
        found += ["its pickle"] if self.in_pickle else []
        searched = [
            "its attributes",
            *(["its model file"] if self.in_file is not None else []),
            *(["its pickle"] if self.in_pickle is not None else []),
        ]
        lines = [f"{self.n_removed} removed samples, {self.n_samples} remaining."]
        if self.certificate is not None:
            lines.append(f"The model without them: it is {self.certificate}.")
        else:
            lines.append(f"The model without them: the largest residual of its system is {self.residual:.1e}.")
        if len(self.also_kept) == self.n_removed:
            lines.append("Nothing was searched for: each of them equals a remaining sample.")
            return "\n".join(lines)
        if found:
            lines.append(f"REMOVED SAMPLES WERE FOUND in {', '.join(found)}.")
        else:
            lines.append(f"None of them was found in {' or '.join(searched)}.")
        if self.in_file is None:
            lines.append("Its model file was not searched: the model cannot be saved.")
        if self.in_pickle is None:
            lines.append("Its pickle was not searched: the model cannot be pickled.")
        if self.also_kept:
            lines.append(f"{len(self.also_kept)} of them equal remaining samples and were not searched for.")
        return "\n".join(lines)

    __repr__ = __str__


def proof_of_removal(model: Any, removed: Any) -> RemovalProof:
    """Certify a model without its removed samples, and search the model, its file and its pickle for them.

    For every dual point, dual ≤ optimum ≤ primal: the gap of the certificate bounds how far the model is from the
    machine that was never trained on the removed samples. Preprocessing steps of a pipeline are searched too, but
    statistics that they learnt from removed samples (means, scales) stay as they are.

    Parameters
    ----------
    model : SVC, SVR, OneClassSVM, KernelRidge or GaussianProcessRegressor, or a pipeline that ends in one
        Fitted with ``updatable=True``; samples were removed with ``remove`` or ``replace``.
    removed : {array-like, sparse matrix} of shape (n_removed, n_features) or list of object
        The removed samples, as they were given to the model.

    Returns
    -------
    proof : RemovalProof
        ``print`` it, or read its attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC, proof_of_removal
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = SVC(gamma=0.5, updatable=True).fit(X, X[:, 0] > 0)
    >>> proof = proof_of_removal(model.remove([3, 7]), X[[3, 7]])
    >>> proof.holds_none, proof.certificate.relative_gap < 1e-3
    (True, True)
    """
    machine, rows, _ = unwrap(model, removed)
    updates = getattr(machine, "_updates", None)
    if updates is None:
        raise InvalidInputError(
            f"This {type(machine).__name__} does not keep its training samples, so its problem without the removed "
            "ones is not known. Fit it with updatable=True, and remove samples with remove."
        )
    kept = getattr(updates, "samples", None)
    if kept is None:
        kept = machine._updated_samples()
    rows = updates.samples_of(machine, rows)
    n_removed = count_samples(rows)
    also_kept = _also_kept(machine, rows, kept)
    gone = np.setdiff1d(np.arange(n_removed), also_kept)
    search = Search()
    if len(gone):
        _search_for(search, take_samples(rows, gone))
        if machine is not model:  # samples before the other steps of a pipeline
            _search_for(search, take_samples(removed, gone))
    certificate = None
    if not hasattr(machine, "X_train_"):
        y = machine.classes_[updates.targets.astype(np.intp)] if hasattr(machine, "classes_") else updates.targets
        certificate = certify(machine, kept, y, sample_weight=updates.weight)
    return RemovalProof(
        certificate,
        float(getattr(machine, "residual_", 0.0)),
        updates.n,
        n_removed,
        also_kept,
        tuple(search.in_value(model)),
        _in_file(model, search),
        _in_pickle(model, search),
    )


def _also_kept(machine: Any, rows: Any, kept: Any) -> tuple[int, ...]:
    """The positions of rows that equal a remaining sample, in the lower of their precisions."""
    machine._kernel.prepare(rows, np.float64)  # raises for samples that the kernel does not compare
    if is_matrix(rows) and is_matrix(kept):
        dtype = np.float32 if np.float32 in (rows.dtype, kept.dtype) else np.float64
        keys, known = vector_keys(rows, dtype), set(vector_keys(kept, dtype))
    else:
        keys, known = [object_key(sample) for sample in items_of(rows)], set(map(object_key, items_of(kept)))
    return tuple(i for i, key in enumerate(keys) if key in known)


def _search_for(search: Search, samples: Any) -> None:
    """Add samples of any kind."""
    if is_matrix(samples):
        search.add_vectors(samples)
        return
    if hasattr(samples, "to_numpy"):
        numbers = as_numbers(samples.to_numpy())
        if numbers is not None and numbers.ndim == 2:
            search.add_vectors(numbers)
    items = items_of(samples)
    numbers = as_numbers(items)
    if numbers is not None and numbers.ndim == 2:
        search.add_vectors(numbers)
    search.add_objects(items)


def _in_file(model: Any, search: Search) -> tuple[str, ...] | None:
    file = io.BytesIO()
    try:
        save(model, file)
    except InvalidInputError:
        return None
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    found = [name for name, data in members.items() if search.in_bytes(data)]
    file.seek(0)
    return tuple(found or search.in_value(load(file)))


def _in_pickle(model: Any, search: Search) -> bool | None:
    try:
        data = pickle.dumps(model)
        return search.in_bytes(data) or bool(search.in_value(pickle.loads(data)))
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
