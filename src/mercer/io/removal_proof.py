"""Prove that a model does not depend on removed training samples, and that it holds none of them.

The certificate is computed anew from the remaining samples and the published coefficients: its gap bounds how far the
model is from the one that was never trained on the removed samples. Their values are searched for in the arrays of the
model and in the bytes of its model file and its pickle.
"""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.estimators.certification.certify_model import certify
from mercer.estimators.fitted_models import unwrap
from mercer.exceptions import InvalidInputError
from mercer.io.model_file.save_load import save
from mercer.kernels.features import count_samples
from mercer.problems.solution import Certificate

# bytes are searched for if they have at least this many different values: the bytes of zeros occur everywhere
DIFFERENT_BYTES = 6
DTYPES = (np.float64, np.float32)
# how deep attributes are followed
DEPTH = 12


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
    also_kept : positions among the removed samples that equal a remaining sample. They are not searched for.
    in_model : names of attributes that hold a removed sample.
    in_file : names of members of the model file that hold one; None if the model cannot be saved.
    in_pickle : whether the pickle holds one; None if the model cannot be pickled.

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
        if found:
            lines.append(f"REMOVED SAMPLES WERE FOUND in {', '.join(found)}.")
        else:
            lines.append(f"None of them was found in {' or '.join(searched)}.")
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
    updates = vars(machine).get("_updates")
    if updates is None:
        raise InvalidInputError(
            f"This {type(machine).__name__} does not keep its training samples, so its problem without the removed "
            "ones is not known. Fit it with updatable=True, and remove samples with remove."
        )
    kept = getattr(updates, "samples", None)
    if kept is None:
        kept = machine._updated_samples()
    as_given = [_sample_keys(removed), _sample_keys(rows)]
    also_kept = tuple(i for i, key in enumerate(as_given[1]) if key in set(_sample_keys(kept)))
    searched = {key for keys in as_given for i, key in enumerate(keys) if i not in also_kept}
    patterns = [pattern for key in searched for pattern in _patterns(key)]
    certificate = None
    if not hasattr(machine, "X_train_"):
        y = machine.classes_[updates.targets.astype(np.intp)] if hasattr(machine, "classes_") else updates.targets
        certificate = certify(machine, kept, y, sample_weight=updates.weight)
    return RemovalProof(
        certificate,
        float(getattr(machine, "residual_", 0.0)),
        updates.n,
        count_samples(removed),
        also_kept,
        tuple(dict.fromkeys(name for name, value in _values(model, "", set(), 0) if searched & set(value))),
        _in_file(model, patterns),
        _in_pickle(model, patterns),
    )


def _sample_keys(samples: Any) -> list[Any]:
    """One hashable value for each sample: the numbers of a vector, the column and number of each entry if sparse."""
    if sp.issparse(samples):
        rows = sp.csr_array(samples)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        ends = rows.indptr
        return [
            ("sparse", rows.indices[a:b].astype(np.int64).tobytes(), rows.data[a:b].astype(np.float64).tobytes())
            for a, b in pairwise(ends)
        ]
    if hasattr(samples, "to_numpy"):
        samples = samples.to_numpy()
    if isinstance(samples, np.ndarray | list | tuple) and len(samples) and np.ndim(samples[0]) == 1:
        try:
            return [("dense", row.tobytes()) for row in np.asarray(samples, dtype=np.float64)]
        except (TypeError, ValueError):
            pass
    return [("object", repr(samples[i])) for i in range(count_samples(samples))]


def _patterns(key: Any) -> Iterator[bytes]:
    """The bytes that a file with this sample would hold."""
    if key[0] == "object":
        text = json.dumps(str(key[1]).strip("'\""))[1:-1]
        found = [text.encode(), str(key[1]).strip("'\"").encode()]
    else:
        numbers = np.frombuffer(key[-1], dtype=np.float64)
        with np.errstate(over="ignore"):
            found = [numbers.astype(dtype).tobytes() for dtype in DTYPES]
    for pattern in found:
        if len(set(pattern)) >= DIFFERENT_BYTES:
            yield pattern


def _values(value: Any, name: str, seen: set[int], depth: int) -> Iterator[tuple[str, list[Any]]]:
    """(name, keys of its samples) of all arrays and lists of samples that a model holds."""
    if depth > DEPTH or id(value) in seen or value is None or isinstance(value, str | bytes | int | float | type):
        return
    seen.add(id(value))
    if sp.issparse(value) or (isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "fiub"):
        yield name, _sample_keys(value)
        return
    if isinstance(value, list | tuple) and len(value) and isinstance(value[0], str | set | frozenset | dict):
        yield name, _sample_keys(value)
    parts: dict[str, Any] = {}
    if isinstance(value, dict):
        parts = {str(key): part for key, part in value.items()}
    elif isinstance(value, list | tuple):
        parts = {str(i): part for i, part in enumerate(value)}
    elif hasattr(value, "__dict__"):
        parts = dict(vars(value))
    for key, part in parts.items():
        yield from _values(part, f"{name}.{key}".lstrip("."), seen, depth + 1)


def _in_file(model: Any, patterns: list[bytes]) -> tuple[str, ...] | None:
    file = io.BytesIO()
    try:
        save(model, file)
    except InvalidInputError:
        return None
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return tuple(name for name, data in members.items() if any(pattern in data for pattern in patterns))


def _in_pickle(model: Any, patterns: list[bytes]) -> bool | None:
    try:
        data = pickle.dumps(model)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    return any(pattern in data for pattern in patterns)
