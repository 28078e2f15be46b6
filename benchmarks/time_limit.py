"""Does a fit keep its time limit? Every estimator and function that has ``time_limit``, on jobs that would take longer.

    python benchmarks/time_limit.py [--limits 0.3,1] [--only SVC] [--repeats 3] [--cpu] [--write FILE]

A small fit of the same kind comes first, so that nothing is compiled while the clock runs. A job that is over 1.1 times
its limit + 0.2 s is repeated, and the shortest run counts. Searches are run without the fit of the chosen machine,
which comes after their limit. --cpu counts the seconds of the processor on one thread
instead, in mercer's clock as well: for machines that are busy. Ends with status 1 if a limit is not kept. The gap is
that of the certificate where there is one: a model that was ended early is still a model. Progress goes to stderr, the
table to stdout.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_classification
from table import machine, small, table
from threadpoolctl import threadpool_limits

if "--cpu" in sys.argv:
    time.perf_counter = time.process_time  # before mercer's modules ask for it

import mercer
from mercer.kernels import Gaussian, GlobalAlignment, Matern, Spectrum, Subsequence

# a limit may be exceeded by this factor and these seconds
FACTOR, SECONDS = 1.1, 0.2

Data = tuple[Any, Any]
Run = Callable[[Any, Any, "float | None"], Any]


@dataclass(frozen=True)
class Job:
    """A fit: the call, its samples, and the number of samples that makes it slow."""

    name: str
    data: Callable[[int], Data]
    n: int
    run: Run
    tiny: int = 120


# ---- samples -------------------------------------------------------------------------------------------------------


def classes(d: int, k: int = 2, noise: float = 0.2) -> Callable[[int], Data]:
    """Vectors of k classes with wrong labels among them."""

    def make(n: int) -> Data:
        return make_classification(
            n,
            d,
            n_informative=max(4, d // 2),
            n_redundant=0,
            n_classes=k,
            n_clusters_per_class=1,
            flip_y=noise,
            random_state=0,
        )

    return make


def many_classes(n: int) -> Data:
    rng = np.random.default_rng(0)
    k = max(3, n // 100)
    return rng.normal(size=(n, 20)), np.arange(n) % k


def values(d: int) -> Callable[[int], Data]:
    """Vectors with a smooth target and noise."""

    def make(n: int) -> Data:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, d))
        return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)

    return make


def sparse(d: int) -> Callable[[int], Data]:
    """Rows of 40 entries."""

    def make(n: int) -> Data:
        rng = np.random.default_rng(0)
        columns = (d * rng.random((n, 40)) ** 3).astype(np.int32)
        X = sp.csr_array((rng.random(40 * n), columns.ravel(), np.arange(0, 40 * n + 1, 40, np.int32)), shape=(n, d))
        X.sum_duplicates()
        return X, (np.asarray(X[:, :20].sum(axis=1)).ravel() + rng.normal(size=n) > 1).astype(int)

    return make


def strings(length: int) -> Callable[[int], Data]:
    def make(n: int) -> Data:
        rng = np.random.default_rng(0)
        return ["".join(row) for row in rng.choice(list("ACGT"), size=(n, length))], rng.integers(0, 2, n)

    return make


def series(n: int) -> Data:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(60, 1)).cumsum(axis=0) for _ in range(n)], rng.integers(0, 2, n)


def matrix(n: int) -> Data:
    X, y = classes(20)(n)
    return Gaussian(0.05)(X), y


def matrices(n: int) -> Data:
    X, y = classes(20)(n)
    return np.stack([Gaussian(g)(X) for g in (0.01, 0.05, 0.2)], axis=2), y


# ---- jobs ----------------------------------------------------------------------------------------------------------


def limited(estimator: Any, limit: float | None) -> Any:
    """The estimator with a time limit; on one thread if the processor's seconds are counted."""
    estimator.set_params(time_limit=limit)
    return estimator.set_params(n_jobs=1) if "--cpu" in sys.argv and "n_jobs" in estimator.get_params() else estimator


def fitted(make: Callable[[], Any]) -> Run:
    """The fit of an estimator with the limit as its parameter."""

    def run(X: Any, y: Any, limit: float | None) -> Any:
        return limited(make(), limit).fit(X, y)

    return run


def unlabelled(make: Callable[[], Any]) -> Run:
    def run(X: Any, y: Any, limit: float | None) -> Any:
        return limited(make(), limit).fit(X)

    return run


class LeaveOneOut:
    """`leave_one_out` of a model that is fitted before the clock starts."""

    def __init__(self) -> None:
        self.models: dict[int, Any] = {}

    def __call__(self, X: Any, y: Any, limit: float | None) -> Any:
        if len(y) not in self.models:
            self.models[len(y)] = limited(mercer.SVC(C=10), None).fit(X, y)
        return mercer.leave_one_out(self.models[len(y)], X, y, time_limit=limit)


def evaluated(X: Any, y: Any, limit: float | None) -> Any:
    return mercer.evaluate(limited(mercer.SVCCV(Cs=5, gammas=3, cv=3), None), X, y, time_limit=limit)


def path(X: Any, y: Any, limit: float | None) -> Any:
    return mercer.solution_path(limited(mercer.SVC(gamma=0.1), None), X, y, time_limit=limit)


def linear_function(A: Any, B: Any) -> Any:
    return (np.asarray(A) @ np.asarray(B).T + 1.0) ** 2


JOBS = [
    Job("SVC, 2 classes", classes(60), 30_000, fitted(lambda: mercer.SVC(C=10))),
    Job("SVC, 2 classes, float64", classes(30), 12_000, fitted(lambda: mercer.SVC(C=10, tol=1e-6))),
    Job("SVC, 100,000 rows", classes(10), 100_000, fitted(lambda: mercer.SVC(C=10))),
    Job("SVC, whole matrix", classes(5, noise=0.4), 1_500, fitted(lambda: mercer.SVC(C=1e6, tol=1e-4))),
    Job("SVC, 5 classes", classes(60, 5), 20_000, fitted(lambda: mercer.SVC(C=10))),
    Job("SVC, 10 classes", classes(60, 10), 20_000, fitted(lambda: mercer.SVC(C=10))),
    Job("SVC, 100 classes", many_classes, 10_000, fitted(lambda: mercer.SVC(C=10))),
    Job("SVC, linear kernel", classes(60), 60_000, fitted(lambda: mercer.SVC(kernel="linear", C=10))),
    Job("SVC, linear kernel, wide", classes(600), 10_000, fitted(lambda: mercer.SVC(kernel="linear", C=10))),
    Job("SVC, CSR", sparse(5_000), 30_000, fitted(lambda: mercer.SVC(C=10, gamma=0.1))),
    Job("SVC, Matern", classes(60), 20_000, fitted(lambda: mercer.SVC(kernel=Matern(2.5, 8.0), C=10))),
    Job("SVC, function", classes(10), 4_000, fitted(lambda: mercer.SVC(kernel=linear_function, C=10))),
    Job("SVC, precomputed", matrix, 6_000, fitted(lambda: mercer.SVC(kernel="precomputed", C=100))),
    Job("SVC, Spectrum", strings(300), 10_000, fitted(lambda: mercer.SVC(kernel=Spectrum(4, normalize=True), C=10))),
    Job("SVC, Subsequence", strings(60), 1_500, fitted(lambda: mercer.SVC(kernel=Subsequence(4), C=10)), 30),
    Job("SVC, GlobalAlignment", series, 1_500, fitted(lambda: mercer.SVC(kernel=GlobalAlignment(), C=10)), 30),
    Job("SVC, probability", classes(30), 8_000, fitted(lambda: mercer.SVC(C=10, probability=True))),
    Job("SVC, interior point", classes(20), 2_500, fitted(lambda: mercer.SVC(C=10, solver="qp"))),
    Job("SVC, hard margin", classes(40, noise=0.0), 8_000, fitted(lambda: mercer.SVC(C=np.inf))),
    Job("NuSVC", classes(60), 15_000, fitted(lambda: mercer.NuSVC(nu=0.1))),
    Job("NuSVC, 5 classes", classes(60, 5), 12_000, fitted(lambda: mercer.NuSVC(nu=0.1))),
    Job("SVR", values(30), 30_000, fitted(lambda: mercer.SVR(C=10))),
    Job("NuSVR", values(30), 20_000, fitted(lambda: mercer.NuSVR(C=10))),
    Job("OneClassSVM", classes(60), 20_000, unlabelled(lambda: mercer.OneClassSVM(nu=0.05))),
    Job("RampSVC", classes(30), 10_000, fitted(lambda: mercer.RampSVC(C=10))),
    Job("KernelRidge", values(20), 10_000, fitted(lambda: mercer.KernelRidge(kernel="rbf", alpha=0.1))),
    Job("KernelRidge, large", values(20), 40_000, fitted(lambda: mercer.KernelRidge(kernel="rbf", alpha=0.1))),
    Job("KernelRidge, 5,000", values(20), 5_000, fitted(lambda: mercer.KernelRidge(kernel="rbf", alpha=1e-6))),
    Job("KernelRidgeCV", values(20), 4_000, fitted(lambda: mercer.KernelRidgeCV(kernel="rbf"))),
    Job("GaussianProcessRegressor", values(10), 1_500, fitted(
        lambda: mercer.GaussianProcessRegressor(1.0 * Matern(2.5, 3.0), alpha=0.1, n_restarts_optimizer=3)
    )),
    Job("PegasosClassifier", classes(60), 40_000, fitted(
        lambda: mercer.PegasosClassifier(kernel="rbf", lam=1e-5, max_iter=50, tol=None)
    )),
    Job("PegasosClassifier, linear", classes(200), 200_000, fitted(
        lambda: mercer.PegasosClassifier(lam=1e-6, max_iter=1000, tol=None)
    )),
    Job("Perceptron", classes(60), 20_000, fitted(lambda: mercer.Perceptron(kernel="rbf", max_iter=50, tol=None))),
    Job("Perceptron, linear", classes(200), 200_000, fitted(lambda: mercer.Perceptron(max_iter=1000, tol=None))),
    Job("KernelLMS", values(20), 10_000, fitted(lambda: mercer.KernelLMS(kernel="rbf", max_iter=100_000, tol=1e-12))),
    *(
        Job(f"LinearSVC, {solver}, {loss}", classes(200), 100_000, fitted(
            lambda solver=solver, loss=loss, more=more: mercer.LinearSVC(
                C=10, loss=loss, solver=solver, tol=1e-9, max_iter=100_000, **more
            )
        ))
        for solver, loss, more in [
            ("auto", "hinge", {}), ("auto", "squared_hinge", {}), ("interior", "hinge", {}),
            ("newton", "squared_hinge", {}), ("coordinate", "hinge", {}),
            ("proximal", "squared_hinge", {"penalty": "l1", "dual": False}),
        ]
    ),
    Job("LinearSVC, CSR", sparse(50_000), 200_000, fitted(lambda: mercer.LinearSVC(C=10, loss="hinge", tol=1e-9))),
    Job("LinearSVC, 10 classes", classes(100, 10), 100_000, fitted(lambda: mercer.LinearSVC(C=10, tol=1e-9))),
    Job("LinearSVC, Crammer-Singer", classes(60, 5), 50_000, fitted(
        lambda: mercer.LinearSVC(C=10, multi_class="crammer_singer", tol=1e-9, max_iter=100_000)
    )),
    *(
        Job(f"LinearSVR, {solver}, {loss}", values(200), 100_000, fitted(
            lambda solver=solver, loss=loss: mercer.LinearSVR(
                C=10, loss=loss, solver=solver, tol=1e-9, max_iter=100_000
            )
        ))
        for solver, loss in [
            ("auto", "epsilon_insensitive"), ("interior", "epsilon_insensitive"), ("coordinate", "epsilon_insensitive"),
            ("newton", "squared_epsilon_insensitive"),
        ]
    ),
    Job("MKLClassifier", classes(20), 3_000, fitted(
        lambda: mercer.MKLClassifier([Gaussian(0.01), Gaussian(0.05), Gaussian(0.2)], C=10)
    )),
    Job("MKLClassifier, precomputed", matrices, 2_000, fitted(lambda: mercer.MKLClassifier("precomputed", C=100))),
    Job("MKLRegressor", values(20), 3_000, fitted(lambda: mercer.MKLRegressor([Gaussian(0.01), Gaussian(0.2)], C=10))),
    Job("SVCCV", classes(30), 5_000, fitted(lambda: mercer.SVCCV(refit=False))),
    Job("SVCCV, 10 classes", classes(30, 10), 5_000, fitted(lambda: mercer.SVCCV(refit=False))),
    Job("NuSVCCV", classes(30), 4_000, fitted(lambda: mercer.NuSVCCV(refit=False))),
    Job("SVRCV", values(20), 4_000, fitted(lambda: mercer.SVRCV(refit=False))),
    Job("OneClassSVMCV", classes(30), 5_000, unlabelled(lambda: mercer.OneClassSVMCV(refit=False))),
    Job("LinearSVCCV", classes(200), 50_000, fitted(lambda: mercer.LinearSVCCV(refit=False))),
    Job("LinearSVRCV", values(200), 50_000, fitted(lambda: mercer.LinearSVRCV(refit=False))),
    Job("evaluate", classes(20), 2_000, evaluated),
    Job("leave_one_out", classes(20), 2_000, LeaveOneOut()),
    Job("solution_path", classes(10), 1_000, path, 60),
]  # fmt: skip


# ---- measuring -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """The result of a job with a limit: the shortest of its runs."""

    job: str
    limit: float
    seconds: float
    status: str
    gap: float

    @property
    def kept(self) -> bool:
        return self.seconds <= FACTOR * self.limit + SECONDS

    def row(self) -> list[str]:
        over = "" if self.kept else "over"
        return [self.job, f"{self.limit:g}", f"{self.seconds:.2f}", self.status, small(self.gap), over]


def measure(job: Job, X: Any, y: Any, limit: float, repeats: int) -> Outcome:
    """Run until the limit is kept, a few times at most."""
    found = None
    for _ in range(repeats):
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result = job.run(X, y, limit)
        seconds = time.perf_counter() - start
        status, gap = describe(result, said)
        if found is None or seconds < found.seconds:
            found = Outcome(job.name, limit, seconds, status, gap)
        if found.kept:
            break
    assert found is not None
    return found


def describe(result: Any, said: list[Any]) -> tuple[str, float]:
    """How a run ended, and how near to the optimum its model is."""
    statuses = {status.name.lower() for status in getattr(result, "_statuses", [])}
    if any("time_limit" in str(warning.message) for warning in said):
        statuses.add("time_limit")
    certificate = getattr(result, "certificate_", None)
    return ", ".join(sorted(statuses)) or "done", getattr(certificate, "relative_gap", np.nan)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--limits", default="0.3,1", help="seconds, separated by commas")
    parser.add_argument("--only", default="", help="jobs whose name has one of these words, separated by commas")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="count the processor's seconds, on one thread")
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1 if arguments.cpu else None):
        return report(arguments)


def report(arguments: argparse.Namespace) -> int:
    limits = [float(limit) for limit in arguments.limits.split(",")]
    outcomes = []
    for job in JOBS:
        if not any(word in job.name for word in arguments.only.split(",")):
            continue
        # compiles, also the loops that only large samples need
        for n, limit in ((job.tiny, 60.0), (job.n, limits[-1])):
            X, y = job.data(n)
            job.run(X, y, limit)
        for limit in limits:
            outcomes.append(measure(job, X, y, limit, arguments.repeats))
            print(" ".join(outcomes[-1].row()), file=sys.stderr, flush=True)
    text = table(["job", "limit", "seconds", "status", "relative gap", ""], [outcome.row() for outcome in outcomes])
    print(f"{machine()}\n\nLoad {os.getloadavg()[0]:.1f}.\n\n{text}")
    if arguments.write:
        arguments.write.write_text(text + "\n")
    return 0 if all(outcome.kept for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
