"""Updates of KernelRidge and GaussianProcessRegressor: a linear system whose inverse is kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._compiled.blas import one_blas_thread
from mercer._sklearn_compat import num_samples
from mercer.estimators.exact_updates.updates_mixin import Change, new_weights
from mercer.exceptions import InvalidInputError
from mercer.gram.operator import Data, GramOperator
from mercer.kernels import Kernel
from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import NOT_PSD, Solution, Status, TracePoint
from mercer.ridge.solver import ridge_certificate
from mercer.svm.interior_qp import factor_seconds
from mercer.updates.inverse_system import InverseSystem
from mercer.validation import target_matrix, validate_samples

# if more samples than this come or leave at once, the system is solved anew
MOST_AT_ONCE = 64


class SystemUpdates:
    """Targets and weights of a ridge regression or Gaussian process, and the inverse of its system.

    The samples themselves are an attribute of the model. The inverse is not part of pickles and files: it is computed
    at the next update.
    """

    def __init__(self, targets: Matrix, weight: Vector, psd: bool) -> None:
        self.targets = targets
        self.weight = weight
        self.psd = psd
        self.version = 0
        self.system: InverseSystem | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("targets", "weight", "psd", "version")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.system = None
        vars(self).update(state)

    @property
    def n(self) -> int:
        """The number of training samples."""
        return len(self.weight)

    def samples_of(self, model: Any, X: Any) -> Any:
        """Samples as the model keeps them, validated."""
        return validate_samples(model, X, None, reset=False, domain=model._domain_of_updates())[0]

    def change_of(self, model: Any, removed: Vector, X: Any, y: Any, sample_weight: Any) -> Change:
        """Validate new samples and their targets."""
        if y is None:
            raise InvalidInputError(f"{type(model).__name__} requires y to be passed, but the target y is None.")
        X = self.samples_of(model, X)
        n, Y = num_samples(X), target_matrix(y)
        if len(Y) != n:
            raise InvalidInputError(f"X has {n} samples, but y has {len(Y)}: give one target for each sample.")
        if Y.shape[1] != self.targets.shape[1]:
            raise InvalidInputError(
                f"y has {Y.shape[1]} targets, but the model was fitted to {self.targets.shape[1]}: give as many."
            )
        return Change(removed, X, Y, new_weights(sample_weight, n, X))

    def apply(self, model: Any, change: Change) -> None:
        """Solve the changed system and publish it; after an error everything is as it was."""
        weight = change.of_vector(self.weight, change.weight)
        if not np.any(weight > 0):
            raise InvalidInputError("No sample with a positive weight would be left: give at least one a weight.")
        before, attributes = dict(vars(self)), dict(vars(model))
        try:
            with Clock(model.time_limit) as clock, one_blas_thread():
                self._apply(model, change, weight, clock)
        except BaseException:
            vars(self).update(before)
            self.system = None
            vars(model).clear()
            vars(model).update(attributes)
            raise
        self.version += 1  # a copy that shares these targets has the old version
        model._updates_version = self.version

    def _apply(self, model: Any, change: Change, weight: Vector, clock: Clock) -> None:
        kernel: Kernel = model._kernel
        samples = change.of_samples(model._updated_samples())
        targets = np.ascontiguousarray(change.of_vector(self.targets.T, getattr(change.targets, "T", None)).T)
        few = len(change.removed) + change.n_new <= MOST_AT_ONCE
        system = self._system(model, clock) if few else None
        data = Data(kernel, samples, len(weight), self.psd)
        right = model._right_sides(targets)
        if system is not None and not self._follow(model, system, data, change, weight, right):
            system = None
        self.targets, self.weight, self.system = targets, weight, system
        used = np.flatnonzero(weight > 0)
        found = None if system is None else system.refine(right[used])
        if found is None:
            self.system = None
            model._refit(data, targets, weight, clock)
        else:
            assert system is not None
            model._publish_update(data, targets, weight, *found, system.log_determinant, clock)

    def _system(self, model: Any, clock: Clock) -> InverseSystem | None:
        """The system before the change; None if it cannot or should not be kept."""
        noise = model._noise_of_updates()
        if noise is None or not self.psd or not model._has_memory(self.n):
            return None
        if self.system is not None and self.system.has_room:
            return self.system
        if clock.over_in(4.0 * factor_seconds(self.n)) is not None:
            return None
        used = np.flatnonzero(self.weight > 0)
        features = model._kernel.prepare(model._updated_samples(), np.float64)
        K = GramOperator(model._kernel, features if len(used) == self.n else features.take(used)).dense()
        system = InverseSystem(K, noise / self.weight[used], model._right_sides(self.targets)[used])
        return system if system.is_regular else None

    def _follow(
        self, model: Any, system: InverseSystem, data: Data, change: Change, weight: Vector, right: Matrix
    ) -> bool:
        """Let samples leave and come; samples without weight have no place in the system. False if it is singular."""
        number = np.cumsum(self.weight > 0) - 1
        for i in reversed(change.removed.tolist()):
            if self.weight[i] > 0:
                system.remove(int(number[i]))
        if change.n_new:
            n = len(weight)
            order = np.arange(n) if change.order is None else change.order
            final = np.argsort(order)  # where each sample, kept or new, ends
            features = data.kernel.prepare(data.samples, np.float64)
            noise = float(model._noise_of_updates())
            kept = final[: n - change.n_new]
            known = kept[weight[kept] > 0]  # in the order of the system
            for place in final[n - change.n_new :].tolist():
                if weight[place] == 0:
                    continue
                if not system.has_room:
                    return False
                column = data.kernel.block(features, features.take(np.array([place])))[:, 0]
                data.evaluations.add(n)
                if not system.append(column[known], float(column[place]), noise / weight[place], right[place]):
                    return False
                known = np.append(known, place)
            system.permute(np.argsort(known))
        return True


def ridge_solutions(
    S: Matrix, product: Matrix, targets: Matrix, weight: Vector, alpha: Vector, intercept: bool, psd: bool, clock: Clock
) -> list[Solution]:
    """Certified solutions of a ridge regression from those of its system; with a b, the last of these is for ones."""
    if intercept:
        total = float(S[:, -1].sum())
        b = S[:, :-1].sum(axis=0) / total if total != 0 else np.zeros(S.shape[1] - 1)
        S, product = S[:, :-1] - b * S[:, -1:], product[:, :-1] - b * product[:, -1:]
    found = []
    for beta, F, y, price in zip(S.T, product.T, targets.T, alpha, strict=True):
        b, proof = ridge_certificate(y, weight, float(price), intercept, beta, F, "" if psd else NOT_PSD)
        point = TracePoint(clock.seconds, 1, proof.kkt_violation, proof.dual, len(y))
        found.append(Solution(beta.copy(), F.copy(), b, Status.CONVERGED, 1, clock.seconds, proof, [point]))
    return found
