"""`add`, `remove` and `replace` of models that were fitted with ``updatable=True``.

The model keeps its training samples, targets and weights (``_updates``). Everything else that an update needs follows
from these and from the published coefficients, so pickles and model files hold nothing more.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from mercer._sklearn_compat import available_if, num_samples
from mercer.exceptions import InvalidInputError
from mercer.kernels import Kernel
from mercer.kernels.features import Vector, stack_samples, take_samples, without_index
from mercer.sources.row_source import RowSource
from mercer.updates.kernel_columns import without
from mercer.validation import is_pairwise, validate_weights

UPDATABLE = {"updatable": ["boolean"]}


class Change(NamedTuple):
    """Samples that leave and samples that come.

    Attributes
    ----------
    removed : the positions of the samples that leave, sorted.
    samples, targets, weight : the samples that come, validated; None if there are none.
    order : how to arrange the samples that stay, followed by those that come; None keeps this order.
    """

    removed: Vector
    samples: Any = None
    targets: Any = None
    weight: Any = None
    order: Vector | None = None

    @property
    def n_new(self) -> int:
        """The number of samples that come."""
        return 0 if self.samples is None else num_samples(self.samples)

    def of_numbers(self, samples: Vector) -> Vector:
        """The new numbers of samples; -1 of those that leave, and of those that have left before (-1)."""
        if len(self.removed) == 0:
            return samples
        leaves = samples == self.removed[0] if len(self.removed) == 1 else np.isin(samples, self.removed)
        leaves |= samples < 0
        found = samples - np.searchsorted(self.removed, samples)
        if self.order is not None:
            found = np.argsort(self.order)[found]
        found[leaves] = -1
        return found

    def of_vector(self, values: Vector, new: Any = None) -> Vector:
        """``values`` of the samples after the change, along the last axis; those of new samples are 0 if not given."""
        if len(self.removed):
            values = without(values, self.removed, -1)
        if self.n_new:
            new = np.zeros((*values.shape[:-1], self.n_new)) if new is None else new
            values = np.concatenate([values, new], axis=-1)
        return values if self.order is None else values[..., self.order]

    def of_samples(self, samples: Any) -> Any:
        """The samples after the change."""
        if len(self.removed):
            if isinstance(samples, np.ndarray):
                samples = without(samples, self.removed, 0)
            else:
                samples = take_samples(samples, np.delete(np.arange(num_samples(samples)), self.removed))
        if self.n_new:
            new = self.samples
            if isinstance(samples, np.ndarray):
                new = new.astype(samples.dtype, copy=False)
            samples = stack_samples(samples, new)
        return samples if self.order is None else take_samples(samples, self.order)


class UpdatesMixin:
    """Exact updates of a fitted model."""

    updatable: bool = False
    _updates: Any

    def add(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add training samples: afterwards the model is that of a fit to all samples, to ``tol``.

        The model must have been fitted with ``updatable=True``. Its kernel keeps the parameters of ``fit``, such as the
        value of ``gamma="scale"``: the model equals a fit with this value. Attributes and ``certificate_`` are those of
        the new problem. ``time_limit``, ``max_iter`` and Ctrl-C work as in ``fit``. An update that raises an error
        leaves the model as it was.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features) or list of object
            New samples, which are appended to the training samples.
        y : array-like of shape (n_new,) or (n_new, n_targets)
            Their labels or targets; a classifier may be given new labels. Ignored by OneClassSVM.
        sample_weight : array-like of shape (n_new,), default=None
            Their weights.

        Returns
        -------
        self : object
            The updated model.
        """
        updates = self._updates_or_error()
        return self._change(updates.change_of(self, np.empty(0, np.intp), X, y, sample_weight))

    def remove(self, index: Any) -> Self:
        """Remove training samples: afterwards the model is that of a fit without them, to ``tol``.

        Neither the model nor its pickle or model file holds the samples any longer. See ``add`` for what an update
        keeps; `mercer.proof_of_removal` checks the result.

        Parameters
        ----------
        index : int or array-like of int
            Positions among the present training samples, as NumPy counts them. Later samples move up.

        Returns
        -------
        self : object
            The updated model.
        """
        updates = self._updates_or_error()
        removed = np.sort(positions(index, updates.n))
        if len(removed) == updates.n:
            raise InvalidInputError(
                f"index contains all {updates.n} training samples, but a model needs at least one. Use replace, or fit "
                "the model to other samples."
            )
        return self._change(Change(removed))

    def replace(self, index: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Replace training samples by others at the same positions: ``remove`` and ``add`` in one update.

        Parameters
        ----------
        index : int or array-like of int
            Positions among the present training samples.
        X, y, sample_weight :
            The new samples, one for each position, as in ``add``.

        Returns
        -------
        self : object
            The updated model.
        """
        updates = self._updates_or_error()
        n, places = updates.n, positions(index, updates.n)
        change = updates.change_of(self, np.sort(places), X, y, sample_weight)
        if change.n_new != len(places):
            raise InvalidInputError(
                f"index has {len(places)} positions, but X has {change.n_new} samples: give one for each."
            )
        order = np.empty(n, np.intp)
        order[np.delete(np.arange(n), places)] = np.arange(n - len(places))
        order[places] = np.arange(n - len(places), n)
        return self._change(change._replace(order=order))

    def _takes_batches(self) -> bool:
        name = type(self).__name__
        if is_classifier(self):
            raise AttributeError(
                f"{name} has no partial_fit: its first samples need not be of all classes, and a machine says nothing "
                f"of a class without samples. Use {name}(updatable=True), fit and add, which takes new classes."
            )
        if not self.updatable:
            raise AttributeError(
                f"partial_fit is not available when updatable=False: it needs the earlier samples. Use "
                f"{name}(updatable=True)."
            )
        return True

    @available_if(_takes_batches)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """``fit`` in the first call, ``add`` in the following ones, for code that passes samples in batches.

        Available with ``updatable=True``, and not for classifiers. Afterwards the model is that of a fit to the samples
        of all batches, to ``tol``. It keeps them, so memory grows with their number; the first batch decides on the
        parameters of the kernel, such as ``gamma="scale"``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features) or list of object
            New samples.
        y : array-like of shape (n_new,) or (n_new, n_targets)
            Their targets. Ignored by OneClassSVM.
        sample_weight : array-like of shape (n_new,), default=None
            Their weights; a Gaussian process has none.

        Returns
        -------
        self : object
            The updated model.
        """
        model: Any = self
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if any(name.endswith("_") for name in vars(model)):  # fitted: check_is_fitted takes a prior process for fitted
            return self.add(X, y, **weights)
        fitted: Self = model.fit(X, y, **weights)
        return fitted

    def _change(self, change: Change) -> Self:
        self._updates.apply(self, change)
        return self

    def _updates_or_error(self) -> Any:
        """The data that updates need; raise if the model does not keep them."""
        updates = vars(self).get("_updates")
        name = type(self).__name__
        if updates is None:
            check_is_fitted(self)
            raise InvalidInputError(
                f"This {name} does not keep its training samples, so it cannot be updated. Fit it with "
                f"{name}(updatable=True)."
            )
        if updates.version != vars(self).get("_updates_version"):
            raise InvalidInputError(
                f"The training samples of this {name} have changed since: another model shares them, or an update was "
                "cut off by an exception. Fit it again; to update copies of a model, copy it with copy.deepcopy."
            )
        self._validate_changed(updates)
        return updates

    def _validate_changed(self, updates: Any) -> None:
        """Validate the parameters if one has changed since the last update: each time would take too long."""
        model: Any = self
        known = vars(updates).get("validated")
        names = model._get_param_names() if known is None else known
        now = {name: getattr(model, name) for name in names}
        if known is None or any(now[name] is not known[name] for name in names):
            model._validate_params()
            updates.validated = now

    def _keep_updates(self, updates: Any) -> None:
        self._updates = updates
        self._updates_version = updates.version


class MachineUpdatesMixin(UpdatesMixin):
    """Updates of SVC, SVR and OneClassSVM."""

    def _check_updatable(self, X: Any) -> None:
        """Raise if a model with these parameters cannot be updated."""
        model: Any = self
        kernel, name = model.kernel, type(self).__name__
        reason = ""
        if model.landmarks is not None:
            reason = "landmarks: use landmarks=None"
        elif getattr(model, "probability", False) not in (False, "deprecated"):
            reason = "probability=True, which needs further fits: use probability=False"
        elif getattr(model, "trace", False):
            reason = "trace=True, which keeps the steps of one fit: use trace=False"
        elif is_pairwise(kernel) or (callable(kernel) and not isinstance(kernel, Kernel)):
            reason = (
                "a kernel matrix or a function of two sets of samples, since an update compares a few samples with all "
                "others: pass a kernel object, such as CallableKernel(k, pairwise=True) for a function k(x, z)"
            )
        elif isinstance(X, RowSource) and model._exceeds_memory(X):
            reason = "rows on disk that do not fit into memory: fit the model to an array"
        if reason:
            raise InvalidInputError(f"{name}(updatable=True) cannot be combined with {reason}.")

    def _keep_training(self, X: Any, targets: Vector, weight: Vector, psd: bool) -> None:
        """Keep a copy of the training samples, their targets and weights."""
        from mercer.estimators.exact_updates.machine_updates import MachineUpdates

        X = without_index(X)
        copy = getattr(X, "copy", None) or getattr(X, "clone", None)  # polars has clone
        samples = list(X) if copy is None else copy()
        self._keep_updates(MachineUpdates(samples, targets.copy(), weight.copy(), psd))


def new_weights(sample_weight: Any, n: int, X: Any) -> Vector:
    """The weights of new samples; unlike those of a fit, all may be 0."""
    if sample_weight is not None:
        try:
            given = np.asarray(sample_weight, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInputError(
                f"sample_weight={sample_weight!r:.60} was given: it must have one number for each new sample."
            ) from None
        if given.shape == (n,) and np.all(given <= 0):
            return np.zeros(n)
    return validate_weights(sample_weight, n, X)


def positions(index: Any, n: int) -> Vector:
    """The positions, counted from 0, of n samples that ``index`` names."""
    if type(index) is int and 0 <= index < n:  # the general case would take a tenth of an update
        return np.array([index])
    try:
        found = np.asarray(index)
    except ValueError:  # lists of different lengths
        found = np.empty(0)
    if found.dtype.kind not in "iu" or found.ndim > 1 or found.size == 0:
        raise InvalidInputError(
            f"index={index!r:.60} was given, but it must be a whole number or a list of at least one."
        )
    found = np.atleast_1d(found).astype(np.intp)
    wrong = found[(found < -n) | (found >= n)]
    if len(wrong):
        raise InvalidInputError(f"index contains {wrong[0]}, but the model has {n} training samples: 0 to {n - 1}.")
    found = np.where(found < 0, found + n, found)
    in_order = np.sort(found)
    twice = in_order[1:][in_order[1:] == in_order[:-1]]
    if len(twice):
        raise InvalidInputError(f"index contains {twice[0]} more than once: give each position once.")
    return found
