"""Every step of Pegasos or of the perceptron: ``trace=True``.

A traced run takes its steps one at a time, by the loops of any other run. Before each step its iterate is evaluated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels.features import Matrix, Vector
from mercer.online.sgd import Run
from mercer.online.sgd_certificate import primal
from mercer.problems.steps import MOST_STEPS, Steps

PEGASOS = {"t": np.int64, "i": np.int64, "margin": float, "updated": bool, "step_size": float, "objective": float}
PERCEPTRON = {"t": np.int64, "passes": np.int64, "i": np.int64, "margin": float, "mistake": bool, "mistakes": np.int64}


class Recorder:
    """Keeps the steps of a run, up to ``most`` drawn samples; further steps are taken without a record.

    ``offset`` is subtracted from the indices of samples; ``per_pass`` is the number of samples of a pass.
    """

    def __init__(self, offset: int = 0, per_pass: int = 1, most: int = MOST_STEPS) -> None:
        self.offset = offset
        self.per_pass = per_pass
        self.most = most
        self.kept = 0
        self.complete = True
        self._parts: list[dict[str, Any]] = []

    @property
    def full(self) -> bool:
        """Whether no further step is kept."""
        return self.kept >= self.most

    def advance(self, run: Run, order: Vector, n_threads: int = 1) -> None:
        """Take steps with these samples, ``rule.batch`` per step, and keep them."""
        batch = run.rule.batch
        for place in range(0, len(order), batch):
            if self.full:
                self.complete = False
                run.take_steps(order[place:], n_threads)
                return
            drawn = order[place : place + batch]
            part = self._pegasos(run, drawn, n_threads) if run.rule.lam > 0 else self._perceptron(run, drawn, n_threads)
            self._parts.append({"t": np.full(len(drawn), run.t), "i": drawn - self.offset, **part})
            self.kept += len(drawn)

    def _pegasos(self, run: Run, drawn: Vector, n_threads: int) -> dict[str, Any]:
        """Take one step; return its columns."""
        w = run.model(last=True)
        f = run.values_of_last(w, n_threads)
        objective = run.rule.lam * primal(run, run.squared_norms(w, f), f)
        # + 0.0: zero without a sign
        margin, before = run.y[:, drawn] * f[:, drawn] + 0.0, run.n_updates
        run.take_steps(drawn, n_threads)
        # w = theta / (lam t) is descent with steps of this size
        eta = 1.0 / (run.rule.lam * (run.t + 1)) if run.rule.eta is None else run.rule.eta(run.t)
        return {
            "margin": margin,
            "updated": _smallest(margin, run.n_updates - before),
            "step_size": np.full(len(drawn), eta),
            "objective": np.broadcast_to(objective[:, None], margin.shape),
        }

    def _perceptron(self, run: Run, drawn: Vector, n_threads: int) -> dict[str, Any]:
        """Take one step; return its columns."""
        margin = run.y[:, drawn] * run.values(run.model(last=True), n_threads, drawn) + 0.0
        before = run.n_updates
        run.take_steps(drawn, n_threads)
        return {
            "passes": np.full(len(drawn), self.kept // self.per_pass + 1),
            "margin": margin,
            "mistake": _smallest(margin, run.n_updates - before),
            "mistakes": run.n_updates[:, None],
        }

    def steps(self, run: Run) -> Steps | list[Steps]:
        """The steps so far; a list if the run has several problems."""
        if run.rule.lam > 0:
            method, names, measure = "Pegasos", PEGASOS, "objective"
            method = method if run.rule.eta is None else "stochastic subgradient descent"
        else:
            method, names, measure = "the perceptron", PERCEPTRON, "mistakes"
        found = []
        for c in range(len(run.y)):
            columns = {name: self._column(name, dtype, c)[: self.most] for name, dtype in names.items()}
            found.append(Steps(method, columns, measure, self.complete and self.kept <= self.most))
        return found[0] if len(found) == 1 else found

    def _column(self, name: str, dtype: type, problem: int) -> Vector:
        pieces = [part[name] if part[name].ndim == 1 else part[name][problem] for part in self._parts]
        return np.concatenate([np.empty(0, dtype), *pieces]).astype(dtype)


def _smallest(margin: Matrix, count: Vector) -> Matrix:
    """Mark the ``count[c]`` smallest margins of each row: the samples that the step updated."""
    rank = margin.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
    return np.asarray(rank < count[:, None])
