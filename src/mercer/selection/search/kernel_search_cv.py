"""The base class of searches over kernel machines: which kernels are tried, on a grid or by local refinement."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import ParameterGrid

from mercer._sklearn_compat import Interval, StrOptions, num_samples
from mercer.estimators.inspection.feature_importances import Expansion, ImportancesMixin
from mercer.estimators.parameters import KernelParameters
from mercer.exceptions import InvalidInputError
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.features import Vector
from mercer.problems.clock import Clock
from mercer.selection.engine import Engine
from mercer.selection.folds import ClassifierFolds, Folds, SingleFolds
from mercer.selection.search.candidates import Candidate, KernelChoice, Prune, SettingChoice, Table
from mercer.selection.search.grids import gamma_range, product_range, values_of
from mercer.selection.search.scoring import Score, highest_score
from mercer.selection.search.search_cv import GridTask, SearchCV
from mercer.validation import (
    check_pairwise_kernel,
    domain_of,
    is_pairwise,
    resolve_kernel,
    square_matrix,
    training_matrix,
    validate_samples,
)

# kernels whose gamma is searched, and their parameters in the estimator
WITH_GAMMA = ("rbf", "poly", "sigmoid")
NAMED_PARAMETERS = ("gamma", "degree", "coef0")
# local search: values of each parameter in the coarse grid, and number of refinements
COARSE, ROUNDS = 4, 3


class KernelSearchCV(KernelParameters, ImportancesMixin, SearchCV):
    """Base of searches over kernel machines: lists the kernels and runs the engine that tries them."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SearchCV._parameter_constraints,
        "kernel": [str, callable, Kernel, list, tuple],
        "gammas": [Interval(Integral, 1, None, closed="left"), "array-like", Interval(Real, 0, None, closed="neither")],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_grid": [dict, list, None],
        "search": [StrOptions({"grid", "local"})],
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "precision": [StrOptions({"auto", "float32", "float64"})],
    }

    kernel: Any
    _intercept: bool = True

    def _expansion(self) -> Expansion:
        found: Expansion = self.best_estimator_._expansion()
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._domain() == "matrix"
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags

    def _given_kernels(self) -> list[Any]:
        return list(self.kernel) if isinstance(self.kernel, list | tuple) else [self.kernel]

    def _domain(self) -> str:
        given = self._given_kernels()
        return domain_of(given[0]) if given else "vectors"

    def _validate_samples(self, X: Any, y: Any) -> tuple[Any, Any]:
        given = self._given_kernels()
        if not given:
            raise InvalidInputError("kernel is an empty list: give at least one kernel.")
        domains = {domain_of(kernel) for kernel in given}
        if len(domains) > 1:
            raise InvalidInputError(
                f"The kernels compare samples of different kinds ({', '.join(sorted(domains))}), but there is one X "
                "for all of them."
            )
        if len(given) > 1 and any(self._is_function(kernel) for kernel in given):
            raise InvalidInputError("A kernel function cannot be one of several kernels: wrap it in CallableKernel.")
        return validate_samples(self, X, y, reset=True, domain=domains.pop())

    @staticmethod
    def _is_function(kernel: Any) -> bool:
        return callable(kernel) and not isinstance(kernel, Kernel)

    # ---- candidates ------------------------------------------------------------------------------------------

    def _kernels(self, X: Any) -> list[KernelChoice]:
        """All candidate kernels, bound to the samples."""
        given = self._given_kernels()
        choices: list[KernelChoice] = []
        for kernel in given:
            outer = {} if len(given) == 1 else {"kernel": kernel}
            grid = list(ParameterGrid(self.kernel_grid)) if self.kernel_grid else [{}]
            if isinstance(kernel, str) and kernel in WITH_GAMMA:
                unknown = {key for params in grid for key in params} - set(NAMED_PARAMETERS)
                if unknown:
                    raise InvalidInputError(
                        f"kernel_grid has the parameter {min(unknown)!r}, but kernel={kernel!r} has "
                        f"{', '.join(NAMED_PARAMETERS)} only."
                    )
                gammas = values_of("gammas", self.gammas, partial(gamma_range if kernel == "rbf" else product_range, X))
                for params in grid:
                    inner = [params] if "gamma" in params else [{**params, "gamma": gamma} for gamma in gammas]
                    choices += [self._named(kernel, one, outer, X) for one in inner]
                continue
            base = resolve_kernel(kernel, self.degree, "scale", self.coef0)
            for params in grid:
                described = outer if not params else {"kernel": base.set_params(**params)}
                choices.append(KernelChoice(self._bound(base.set_params(**params), X), described))
        return choices

    def _named(self, kernel: str, params: dict[str, Any], outer: dict[str, Any], X: Any) -> KernelChoice:
        """A named kernel ("rbf", "poly", "sigmoid") with these parameters."""
        used = {"degree": self.degree, "coef0": self.coef0, **params}
        resolved = resolve_kernel(kernel, used["degree"], used["gamma"], used["coef0"])
        return KernelChoice(self._bound(resolved, X), {**outer, **params})

    def _bound(self, kernel: Kernel, X: Any) -> Kernel:
        if is_pairwise(kernel):
            check_pairwise_kernel(kernel)
        return kernel.bind(X)

    @abstractmethod
    def _settings(self, X: Any, y: Vector, kernels: Sequence[KernelChoice]) -> list[SettingChoice]:
        """All candidate settings (loss and C, or nu), in order of C."""

    @abstractmethod
    def _setting(self, params: dict[str, Any]) -> SettingChoice:
        """The setting given by these parameters."""

    @abstractmethod
    def _family(self, folds: Folds, y: Vector, weight: Vector) -> ClassifierFolds | SingleFolds:
        """The problems of all folds: pairs of classes, or one problem per fold."""

    @abstractmethod
    def _score(self, X: Any, y: Vector, weight: Vector, folds: list[tuple[Any, Any]]) -> Score:
        """A function that turns the held-out values of a fold (one matrix per setting) into scores."""

    def _table(self, n_folds: int) -> Table:
        rule = getattr(self, "prune", None)
        if rule is None:
            return Table(n_folds)
        top = highest_score(self.scoring)
        if rule == "bound" and not np.isfinite(top):
            raise InvalidInputError(
                f"prune='bound' needs a score with a known highest value, but that of scoring={self.scoring!r} is not "
                "known. Use prune='race', or None."
            )
        return Table(n_folds, prune=Prune(rule, top))

    # ---- the search ------------------------------------------------------------------------------------------

    def _engine(
        self, samples: Any, movable: bool, y: Vector, weight: Vector, folds: list[tuple[Any, Any]], clock: Clock
    ) -> Any:
        """The engine that solves the candidates in all folds. ``movable`` samples may be sorted by fold and class."""
        codes = y.astype(np.intp) if hasattr(self, "classes_") else None
        layout = Folds.of(folds, num_samples(samples), codes, movable=movable)
        family = self._family(layout, y, weight)
        return Engine(layout.samples(samples), family, self._options(self.cache_size, self.precision), clock)

    def _search(self, X: Any, y: Vector, weight: Vector, folds: list[tuple[Any, Any]], clock: Clock) -> Table:
        samples = X
        if self._is_function(self.kernel):
            samples = training_matrix(self.kernel, X)
            kernels = [KernelChoice(Precomputed(), {})]
        else:
            kernels = self._kernels(X)
        pairwise = is_pairwise(kernels[0].kernel)
        if pairwise:
            square_matrix(samples)
        engine = self._engine(samples, not pairwise and self._domain() == "vectors", y, weight, folds, clock)
        table = self._table(len(folds))
        task = GridTask(engine, table, self._score(X, y, weight, folds), folds, self._progress(table))
        settings = self._settings(samples, y, kernels)
        if self.search == "grid":
            task.run(kernels, settings)
        else:
            self._local(task, kernels, settings, X, clock)
        self.kernel_evaluations_ = engine.evaluations
        return table

    def _local(
        self, task: GridTask, kernels: list[KernelChoice], settings: list[SettingChoice], X: Any, clock: Clock
    ) -> None:
        """Search a coarse grid, then refine around the best candidate.

        Each round tries gamma and C (or nu) half a step to either side on a logarithmic scale. epsilon is chosen
        before, at the best candidate of the coarse grid.
        """
        groups: dict[Any, list[KernelChoice]] = {}
        for choice in kernels:
            groups.setdefault(repr({k: v for k, v in choice.params.items() if k != "gamma"}), []).append(choice)
        coarse = [choice for group in groups.values() for choice in _spread(group)]
        name = next((key for key in ("C", "nu") if key in settings[0].params), "C")
        # the middle value of other parameters such as epsilon first; all values at the best of these later
        others: dict[Any, list[SettingChoice]] = {}
        for setting in settings:
            others.setdefault(repr({k: v for k, v in setting.params.items() if k != name}), []).append(setting)
        several = list(others.values())
        first = _spread(several.pop(len(several) // 2))
        gamma_step = _step([choice.params.get("gamma") for choice in _spread(max(groups.values(), key=len))])
        step = _step([choice.params[name] for choice in first])
        # each round tries the neighbours of the best candidate, which itself is known
        per_round = (3 if gamma_step > 1.0 else 1) * (3 if step > 1.0 else 1) - 1
        task.table.planned = len(coarse) * len(first) + len(several) + ROUNDS * per_round
        task.run(coarse, first)
        best = task.table.best
        if best is not None and several and clock.over() is None:
            same = [self._setting({**one[0].params, name: best.params[name]}) for one in several]
            task.run([choice for choice in coarse if choice.params.items() <= best.params.items()][:1], same)
        tried = {_key(candidate) for candidate in task.table.candidates}
        for _ in range(ROUNDS):
            best = task.table.best
            if best is None or clock.over() is not None:
                return
            step, gamma_step = float(np.sqrt(step)), float(np.sqrt(gamma_step))
            value, outer = best.params[name], {k: v for k, v in best.params.items() if k == "kernel"}
            values = [v for v in (value / step, value, value * step) if name != "nu" or v <= 1.0]
            rest = {k: v for k, v in best.params.items() if k not in (*NAMED_PARAMETERS, "kernel", name)}
            new_settings = [self._setting({**rest, name: v}) for v in values]
            near = self._around(best, kernels, gamma_step, outer, X)
            for choice in near:
                fresh = [s for s in new_settings if _params_key({**s.params, **choice.params}) not in tried]
                if fresh:
                    found = task.run([choice], fresh)
                    tried |= {_key(candidate) for candidate in found}

    def _around(
        self, best: Candidate, kernels: list[KernelChoice], step: float, outer: dict[str, Any], X: Any
    ) -> list[KernelChoice]:
        """The kernel of a candidate, and the same kernel with gamma a step lower and higher."""
        gamma, given = best.params.get("gamma"), outer.get("kernel", self.kernel)
        if not isinstance(gamma, float) or not (isinstance(given, str) and given in WITH_GAMMA) or step == 1.0:
            return [choice for choice in kernels if all(best.params.get(k) == v for k, v in choice.params.items())][:1]
        params = {k: v for k, v in best.params.items() if k in NAMED_PARAMETERS}
        return [
            self._named(given, {**params, "gamma": float(value)}, outer, X)
            for value in (gamma, gamma / step, gamma * step)
        ]

    def _publish_names(self) -> None:
        """Set C_, gamma_, …: the best parameters, named as in scikit-learn's estimators with built-in search."""
        for name, value in self.best_params_.items():
            setattr(self, f"{name}_", value)


def _spread(choices: Sequence[Any]) -> list[Any]:
    """At most COARSE of them, evenly spread, the outer ones half a step from the ends."""
    if len(choices) <= COARSE:
        return list(choices)
    return [choices[round((k + 0.5) * len(choices) / COARSE - 0.5)] for k in range(COARSE)]


def _step(values: Sequence[float | None]) -> float:
    """The ratio of neighbouring values; 1 for fewer than two."""
    numbers = sorted({float(v) for v in values if v is not None})
    if len(numbers) < 2:
        return 1.0
    return float(np.exp(np.log(numbers[-1] / numbers[0]) / (len(numbers) - 1)))


def _params_key(params: dict[str, Any]) -> str:
    """A key that is equal for parameters that differ by rounding only."""
    return repr(sorted((k, f"{v:.6g}" if isinstance(v, Real) else repr(v)) for k, v in params.items()))


def _key(candidate: Candidate) -> str:
    return _params_key(candidate.params)
