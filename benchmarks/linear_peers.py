"""The peers of the linear benchmark: each fits a `Problem` to a tolerance and gives w and b."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from linear_problems import EPSILON, Problem

Model = tuple[np.ndarray, float]

# from loose to tight: the first with which a peer reaches the value is timed
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
MANY = 1_000_000


class Peer(ABC):
    """A solver. ``needs`` is the package that provides it."""

    name: str
    needs: str = ""
    losses: tuple[str, ...] = ()

    def prepare(self, p: Problem, n_threads: int) -> Any:
        """The data in the peer's preferred form: not timed."""
        return p.X

    @abstractmethod
    def fit(self, p: Problem, given: Any, tol: float, n_threads: int) -> Model: ...

    def takes(self, p: Problem) -> bool:
        return p.loss in self.losses and (not self.needs or find_spec(self.needs) is not None)


BOTH = ("hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive")


class Mercer(Peer):
    name = "mercer"
    losses = BOTH

    def __init__(self, solver: str = "auto") -> None:
        self.solver = solver
        self.name = "mercer" if solver == "auto" else f"mercer {solver}"

    def fit(self, p: Problem, given: Any, tol: float, n_threads: int) -> Model:
        from mercer import LinearSVC, LinearSVR

        settings = {"loss": p.loss, "C": p.C, "tol": tol, "n_jobs": n_threads, "solver": self.solver}
        machine = LinearSVC(**settings) if p.set.task == "classify" else LinearSVR(**settings, epsilon=EPSILON)
        model = machine.fit(given, p.y)
        return model.coef_.ravel(), float(model.intercept_[0])


class ScikitLearn(Peer):
    """LIBLINEAR as built into scikit-learn."""

    losses = BOTH

    def __init__(self, dual: bool) -> None:
        self.dual = dual
        self.name = f"liblinear-sklearn {'dual' if dual else 'primal'}"

    def takes(self, p: Problem) -> bool:
        return self.dual or p.loss.startswith("squared")

    def fit(self, p: Problem, given: Any, tol: float, n_threads: int) -> Model:
        from sklearn.svm import LinearSVC, LinearSVR

        settings = {"loss": p.loss, "C": p.C, "tol": tol, "dual": self.dual, "max_iter": MANY, "random_state": 0}
        machine = LinearSVC(**settings) if p.set.task == "classify" else LinearSVR(**settings, epsilon=EPSILON)
        model = machine.fit(given, p.y)
        return model.coef_.ravel(), float(model.intercept_[0])


class Liblinear(Peer):
    """LIBLINEAR from its authors: the package liblinear-official."""

    needs = "liblinear"
    losses = BOTH
    types: ClassVar[dict[tuple[str, bool], int]] = {
        ("hinge", True): 3,
        ("squared_hinge", True): 1,
        ("squared_hinge", False): 2,
        ("epsilon_insensitive", True): 13,
        ("squared_epsilon_insensitive", True): 12,
        ("squared_epsilon_insensitive", False): 11,
    }

    def __init__(self, dual: bool) -> None:
        self.dual = dual
        self.name = f"liblinear-official {'dual' if dual else 'primal'}"

    def takes(self, p: Problem) -> bool:
        return super().takes(p) and (p.loss, self.dual) in self.types

    def prepare(self, p: Problem, n_threads: int) -> Any:
        from liblinear.liblinearutil import problem

        return problem(p.y, p.X if sp.issparse(p.X) else sp.csr_matrix(p.X), 1)

    def fit(self, p: Problem, given: Any, tol: float, n_threads: int) -> Model:
        from liblinear.liblinearutil import parameter, train

        tube = f" -p {EPSILON}" if p.set.task == "regress" else ""
        model = train(given, parameter(f"-s {self.types[p.loss, self.dual]} -c {p.C} -e {tol} -B 1 -q{tube}"))
        # from the model's memory: its own get_decfun asks for one weight after the other, which takes longer than a fit
        stored = np.ctypeslib.as_array(model.w, (model.nr_feature + 1,))
        sign = 1.0 if p.set.task == "regress" or model.label[0] == 1 else -1.0
        w = np.zeros(p.X.shape[1])
        w[: model.nr_feature] = sign * stored[:-1]
        return w, sign * float(stored[-1])


class Skglm(Peer):
    """Working sets over the coordinates of the dual. It has no penalised intercept: it is given a column of 1."""

    name = "skglm"
    needs = "skglm"
    losses = ("hinge",)

    def prepare(self, p: Problem, n_threads: int) -> Any:
        ones = np.ones((p.X.shape[0], 1))
        return sp.csr_matrix(sp.hstack([p.X, ones])) if sp.issparse(p.X) else np.hstack([p.X, ones])

    def fit(self, p: Problem, given: Any, tol: float, n_threads: int) -> Model:
        from skglm.estimators import LinearSVC

        model = LinearSVC(C=p.C, tol=tol, max_iter=100, fit_intercept=False).fit(given, p.y)
        w = model.coef_.ravel()
        return w[:-1], float(w[-1])


class Sgd(Peer):
    """Stochastic gradient descent, the column of 1 as above."""

    name = "SGDClassifier"
    losses = ("hinge", "squared_hinge")
    prepare = Skglm.prepare

    def fit(self, p: Problem, given: Any, tol: float, n_threads: int) -> Model:
        from sklearn.linear_model import SGDClassifier

        model = SGDClassifier(
            loss=p.loss, alpha=1.0 / (p.C * len(p.y)), tol=tol, max_iter=1000, fit_intercept=False, random_state=0
        ).fit(given, p.y)
        w = model.coef_.ravel()
        return w[:-1], float(w[-1])


class Snap(Peer):
    """Coordinate descent of IBM's Snap ML."""

    name = "snapml"
    needs = "snapml"
    losses = ("hinge", "squared_hinge")

    def fit(self, p: Problem, given: Any, tol: float, n_threads: int) -> Model:
        from snapml import SupportVectorMachine

        model = SupportVectorMachine(
            loss=p.loss, regularizer=1.0 / p.C, tol=tol, n_jobs=n_threads, fit_intercept=True, max_iter=10_000
        ).fit(given, p.y)
        w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
        return w, b


def peers(solvers: bool) -> list[Peer]:
    """mercer first; with ``solvers``, its solvers by name as well."""
    named = [Mercer(name) for name in ("interior", "coordinate", "newton")] if solvers else []
    others = [ScikitLearn(True), ScikitLearn(False), Liblinear(True), Liblinear(False), Skglm(), Sgd(), Snap()]
    return [Mercer(), *named, *others]


def quiet(peer: Peer, p: Problem, given: Any, tol: float, n_threads: int) -> Model:
    """Fit without warnings: the value of the model shows how close it is to the optimum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return peer.fit(p, given, tol, n_threads)
