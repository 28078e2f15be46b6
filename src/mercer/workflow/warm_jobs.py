"""Small jobs that together call the compiled loops of all estimators: `warm` runs them before the loops are needed.

A wheel ships the machine code that the same jobs produce. A loop is compiled once for each combination of argument
types, so the jobs vary everything that decides types and loops: estimator, size (see `svm/plan.py`), dtype, dense or
sparse, kernel, loss.
"""

from __future__ import annotations

import doctest
import io
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

import mercer
from mercer.exceptions import InvalidInputError

__all__ = ["Warmed", "jobs", "warm"]

KINDS: dict[str, Callable[[Any], Any]] = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "CSR": lambda X: sp.csr_array(np.where(X > 0.4, X, 0.0)),
    "CSR float32": lambda X: sp.csr_array(np.where(X > 0.4, X, 0.0).astype(np.float32)),
}
KERNELS = (
    "linear", "poly", "sigmoid", "laplacian()", "chi2()", "min()", "cosine()", "matern()", "rational_quadratic()",
    "periodic()", "gaussian() + 0.5 * linear()", "gaussian() * polynomial()", "additive_chi2()", "intersection()",
)  # fmt: skip

SHARED = "threads share loops"


@dataclass(frozen=True)
class Warmed:
    """The result of a job: its name, how many functions it has compiled, and the seconds of the whole job."""

    name: str
    compiled: int
    seconds: float


def warm(
    *names: str | type | list[str | type], progress: Callable[[int, int, str], None] | Literal[False] | None = None
) -> list[Warmed]:
    """Compile all loops now, or load them, so that no later fit on this machine waits for the compiler.

    Meant for images of containers where mercer is installed from its source. It takes some minutes. Loops that are
    already compiled are loaded. Several processes may run it at once.

    Parameters
    ----------
    *names : str, class or list of these
        Run only jobs whose names begin with one of these, such as ``"SVC"`` or ``mercer.SVC``, and the loops that
        threads of any fit share. Without names, run all jobs.
    progress : callable or False, default=None
        Called with (jobs done, number of jobs, current job and function) before each job and each compilation. By
        default a bar is drawn if standard error is a terminal; False shows nothing.

    Returns
    -------
    done : list of Warmed
        The jobs, the functions that each has compiled, and its seconds.

    Examples
    --------
    >>> import mercer
    >>> done = mercer.warm("Perceptron")
    >>> {job.name for job in done} >= {"Perceptron float64", "Perceptron float32"}
    True
    """
    from mercer._compiled.compile import draw, on_terminal

    if progress is None and on_terminal():
        try:
            return list(run_jobs(names, _draw_bar))
        finally:
            draw("")
    return list(run_jobs(names, progress or _quietly))


def run_jobs(names: Iterable[Any], progress: Callable[[int, int, str], None]) -> Iterator[Warmed]:
    """Run the jobs of `warm`, and yield each when it is done."""
    from mercer._compiled.compile import compilations_shown, functions_compiled

    chosen = _choose(names)
    for k, (name, run) in enumerate(chosen.items()):
        show = partial(progress, k, len(chosen))

        def compiling(function: str, name: str = name, show: Callable[[str], None] = show) -> None:
            show(f"{name}: {function}" if function else name)

        show(name)
        before, start = functions_compiled(), time.perf_counter()
        with _silence(), compilations_shown(compiling):
            run()
        yield Warmed(name, functions_compiled() - before, time.perf_counter() - start)


def _choose(names: Iterable[Any]) -> dict[str, Callable[[], object]]:
    """The jobs with these names; all jobs if there are no names."""
    every = jobs()
    flat: list[str] = []
    for one in names:
        for name in one if isinstance(one, (list, tuple, set)) else (one,):
            text = name.__name__ if isinstance(name, type) else name
            if not isinstance(text, str):
                raise InvalidInputError(f'warm got {name!r}: give names or classes of estimators, such as "SVC".')
            flat.append(text)
    for name in flat:
        if not any(job.startswith(name) for job in every):
            known = ", ".join(dict.fromkeys(job.split()[0] for job in every if _is_estimator(job.split()[0])))
            raise InvalidInputError(f"There is nothing to compile for {name}: choose some of {known}.")
    chosen = {job: run for job, run in every.items() if not flat or job.startswith(tuple(flat))}
    return chosen | {SHARED: every[SHARED]}  # any fit may share loops among threads


def _is_estimator(name: str) -> bool:
    return hasattr(getattr(mercer, name, None), "fit")


def _draw_bar(done: int, total: int, text: str) -> None:
    """Draw a progress bar on the terminal."""
    from mercer._compiled.compile import draw
    from mercer.selection.search.candidates import bar

    draw(f"[{bar(done / total)}] {done} of {total}  {text}")


def _quietly(done: int, total: int, text: str) -> None:
    """Show no progress."""


@contextmanager
def _silence() -> Iterator[None]:
    """No warnings about models that have not converged, and no output of examples."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


# ---- the jobs --------------------------------------------------------------------------------------------------------


def jobs() -> dict[str, Callable[[], object]]:
    """All jobs by name. A name begins with the estimator or function that the job runs."""
    found: dict[str, Callable[[], object]] = {}

    def add(name: str, model: str, X: Any, y: Any = None, n: int = 0, **parameters: Any) -> None:
        def run() -> None:
            fitted = getattr(mercer, model)(**parameters)
            if "random_state" in fitted.get_params():  # every run of a job compiles the same
                fitted.set_params(random_state=0)
            for _ in range(2 if fitted.get_params().get("warm_start") else 1):
                fitted.fit(X(n), None if y is None else y(n))
            for method in ("predict", "transform", "decision_function", "predict_proba"):
                if hasattr(fitted, method):
                    getattr(fitted, method)(X(max(n, 120)))

        found[f"{model} {name}".strip()] = run

    for kind, turned in KINDS.items():

        def X(n: int, turned: Callable[[Any], Any] = turned) -> Any:
            return turned(_samples(n))

        for n in (100, 900, 2500, 10_000):
            add(f"{kind} {n}", "SVC", X, _halves, n)
        add(f"{kind} C=1000", "SVC", X, _noisy, 1000, C=1000.0)
        add(f"{kind} classes", "SVC", X, _classes, 150)
        for n in (100, 900, 2500):
            add(f"{kind} {n}", "SVR", X, _curve, n)
            add(f"{kind} {n}", "OneClassSVM", X, None, n)
        for n in (100, 900):
            add(f"{kind} {n}", "NuSVC", X, _halves, n)
            add(f"{kind} {n}", "NuSVR", X, _curve, n)
        for n in (100, 1000, 8000):
            for loss in ("hinge", "squared_hinge"):
                add(f"{kind} {n} {loss}", "LinearSVC", X, _halves, n, loss=loss)
            for loss in ("epsilon_insensitive", "squared_epsilon_insensitive"):
                add(f"{kind} {n} {loss}", "LinearSVR", X, _curve, n, loss=loss)
        add(f"{kind} classes", "LinearSVC", X, _classes, 300)
        add(f"{kind} Crammer-Singer", "LinearSVC", X, _classes, 300, multi_class="crammer_singer")
        add(f"{kind} l1", "LinearSVC", X, _halves, 300, penalty="l1", dual=False)
        add(f"{kind} free", "LinearSVC", X, _halves, 300, penalize_intercept=False)
        for solver in ("interior", "coordinate", "newton"):
            for loss in ("hinge", "squared_hinge"):
                if (solver, loss) != ("newton", "hinge"):
                    add(f"{kind} {solver} {loss}", "LinearSVC", X, _halves, 300, solver=solver, loss=loss)
        for n in (100, 900):
            add(f"{kind} {n}", "KernelRidge", X, _curve, n, kernel="rbf")
        add(f"{kind} linear", "KernelRidge", X, _curve, 300)
        add(f"{kind}", "KernelRidgeCV", X, _curve, 100, kernel="rbf")
        for model in ("Perceptron", "PegasosClassifier"):
            add(f"{kind}", model, X, _halves, 200)
            add(f"{kind} classes", model, X, _classes, 200)
            add(f"{kind} kernel", model, X, _halves, 200, kernel="rbf")
        add(f"{kind}", "KernelLMS", X, _curve, 100)
        add(f"{kind}", "KernelCentroid", X, _halves, 100)
        add(f"{kind} classes", "KernelCentroid", X, _classes, 100)
        add(f"{kind}", "KernelLogisticRegression", X, _classes, 100)
        add(f"{kind}", "KernelERM", X, _halves, 100, loss="logistic")
        add(f"{kind}", "KernelLogisticRegressionCV", X, _halves, 100, cv=3)
        add(f"{kind}", "RampSVC", X, _noisy, 100)
        for model in ("LSSVC", "LaplacianSVC", "OutputCodeSVC"):
            add(f"{kind}", model, X, _classes, 100)
        add(f"{kind} 900", "OutputCodeSVC", X, _classes, 900)
        add(f"{kind}", "ExpectileSVR", X, _curve, 100)
        add(f"{kind}", "QuantileSVR", X, _curve, 100)
        add(f"{kind}", "Nystroem", X, None, 200)
        add(f"{kind}", "RandomFeatures", X, None, 200)
        for n in (100, 500):
            add(f"{kind} {n}", "KernelPCA", X, None, n, n_components=3, kernel="rbf")
            add(f"{kind} {n}", "KernelKMeans", X, None, n, n_clusters=3)
        add(f"{kind}", "KernelCCA", X, lambda n: _samples(n)[:, :3], 100)
        add(f"{kind}", "SpectralClustering", X, None, 100, n_clusters=3)
        add(f"{kind}", "SVDD", X, None, 100)
        add(f"{kind}", "OrdinalSVC", X, _classes, 100)
        add(f"{kind}", "RankSVC", X, _curve, 100)
        add(f"{kind}", "SurvivalSVM", X, lambda n: np.exp(_curve(n)), 100)
        add(f"{kind}", "RejectOption", X, _classes, 100, estimator=mercer.KernelLogisticRegression())
        add(f"{kind}", "MKLClassifier", X, _halves, 100)
        add(f"{kind}", "MKLRegressor", X, _curve, 100)
        for n in (100, 500):
            add(f"{kind} {n}", "SVCCV", X, _halves, n, cv=3)
            add(f"{kind} {n}", "SVRCV", X, _curve, n, cv=3, Cs=3, epsilons=2, gammas=2)
        add(f"{kind} classes", "SVCCV", X, _classes, 150, cv=3)
        # folds with a chain of solutions, and with exact values: they begin at sizes of their own
        add(f"{kind} 2000", "SVCCV", X, _halves, 2000, cv=3, Cs=[0.1, 1.0], gammas=[0.1, 1.0])
        add(f"{kind} classes 1000", "SVCCV", X, _classes, 1000, cv=3, Cs=[0.1, 1.0], gammas=[0.1, 1.0])
        add(f"{kind} many classes", "SVC", X, _many, 2600)
        add(f"{kind} many classes", "NuSVC", X, _many, 400, nu=0.1)
        add(f"{kind} 1500", "KernelRidgeCV", X, _curve, 1500, kernel="rbf")
        add(f"{kind}", "NuSVCCV", X, _halves, 100, cv=3, nus=[0.2, 0.4])
        add(f"{kind}", "OneClassSVMCV", X, None, 100, cv=3)
        add(f"{kind}", "LinearSVCCV", X, _halves, 300, cv=3)
        add(f"{kind}", "LinearSVRCV", X, _curve, 300, cv=3)
        if "CSR" not in kind:
            for n in (100, 300):
                add(f"{kind} {n}", "GaussianProcessRegressor", X, _curve, n, n_restarts_optimizer=1)
            add(f"{kind}", "SparseGaussianProcessRegressor", X, _curve, 300, n_inducing=20, optimizer=None)
        add(f"{kind}", "GaussianProcessClassifier", X, _halves, 100, kernel="gaussian()", optimizer=None)

    add("three large classes", "SVC", _samples, _classes, 3000)
    add("six classes", "SVC", lambda n: _samples(n, 16), _six, 6000)
    add("CSR six classes", "SVC", lambda n: KINDS["CSR"](_samples(n, 16)), _six, 6000)
    add("equal samples", "SVC", lambda n: np.repeat(_samples(n // 2), 2, axis=0), _halves, 5000)
    add("weights of classes", "SVC", _samples, _halves, 900, class_weight="balanced")
    for n in (100, 2500):
        add(f"squared_hinge {n}", "SVC", _samples, _halves, n, loss="squared_hinge")
    for loss in ("squared_epsilon_insensitive", "pinball"):
        for n in (100, 2500):
            add(f"{loss} {n}", "SVR", _samples, _curve, n, loss=loss)
        add(loss, "LinearSVR", _samples, _curve, 300, loss=loss)
    add("no intercept", "SVC", _samples, _halves, 900, fit_intercept=False)
    add("hard margin", "SVC", _samples, _halves, 100, C=np.inf)
    add("qp", "SVC", _samples, _halves, 100, solver="qp")
    add("step by step", "SVC", _samples, _halves, 100, trace=True)
    add("coordinate", "SVC", _samples, _halves, 100, solver="coordinate", fit_intercept=False)
    for precision in ("float32", "float64"):
        for n in (100, 2500):
            add(f"{precision} stored {n}", "SVC", _samples, _halves, n, precision=precision)
        add(f"{precision} stored", "KernelRidge", _samples, _curve, 900, kernel="rbf", precision=precision)
    add("conjugate gradients", "KernelRidge", _samples, _curve, 900, kernel="rbf", cache_size=1)
    for kernel in KERNELS:
        for n in (100, 2500):
            add(f"{kernel} {n}", "SVC", lambda n: np.abs(_samples(n)), _halves, n, kernel=kernel)
    for kernel in ("gaussian() + white()", "matern(nu=1.5) + white()", "rational_quadratic() + periodic()"):
        add(kernel, "GaussianProcessRegressor", _samples, _curve, 60, kernel=kernel)
    for kernel in ("spectrum(3)", "mismatch(3, 1)", "subsequence(3)", "weighted_degree(3)", "common_substrings()"):
        add(kernel, "SVC", _strings, _halves, 200, kernel=kernel)
    for kernel in ("window(3)", "mismatch(8, 3)"):
        add(kernel, "SVC", _strings, _halves, 100, kernel=kernel)
    add("jaccard()", "SVC", lambda n: [set(text) for text in _strings(n)], _halves, 100, kernel="jaccard()")
    add("global_alignment()", "SVC", lambda n: list(_samples(n)), _halves, 60, kernel="global_alignment(gamma=0.1)")
    for kernel in ("weisfeiler_lehman()", "shortest_path()", "random_walk()"):
        add(kernel, "SVC", _graphs, _halves, 60, kernel=kernel)
    for width in (1.0, 1e6):  # derivatives of narrow kernels have a loop of their own
        kernel = f"gaussian({(width,) * 10})"
        add(f"a width of {width:g} for each feature", "GaussianProcessRegressor", _samples, _curve, 60, kernel=kernel)
    for model, y in (("SVC", _halves), ("SVR", _curve), ("LinearSVC", _halves), ("LinearSVR", _curve)):
        add("started warm", model, _samples, y, 900, warm_start=True)
    for kind in ("float64", "float32", "CSR"):

        def read_only(n: int, kind: str = kind) -> Any:
            return _read_only(n, kind)

        for n in (100, 900, 2500):
            add(f"read-only {kind} {n}", "SVC", read_only, _halves, n)
            add(f"read-only {kind} {n}", "SVR", read_only, _curve, n)
        add(f"read-only {kind} classes", "SVC", read_only, _classes, 150)
        for n in (100, 1000):
            add(f"read-only {kind} {n}", "LinearSVC", read_only, _halves, n)
            add(f"read-only {kind} {n}", "LinearSVR", read_only, _curve, n)
        add(f"read-only {kind}", "OneClassSVM", read_only, None, 900)
        add(f"read-only {kind}", "KernelRidge", read_only, _curve, 100, kernel="rbf")
        add(f"read-only {kind}", "SVCCV", read_only, _halves, 100, cv=3)
    add("Crammer-Singer warm", "LinearSVC", _samples, _classes, 300, multi_class="crammer_singer", warm_start=True)
    for rule in ("greedy", "round-robin"):
        add(rule, "LinearSVC", _samples, _halves, 300, loss="hinge", solver="coordinate", rule=rule)
    add("generalised", "KernelRidgeCV", _samples, _curve, 300, kernel="rbf", cv="gcv")
    add("laplacian() CSR", "SVC", lambda n: KINDS["CSR"](_samples(n)), _halves, 300, kernel="laplacian()")

    found["SVC precomputed"] = _precomputed
    found["explain"] = _explained
    found["SVC updates"] = _updates
    found[SHARED] = _shared_loops
    for name in mercer.__all__:
        # examples of mercer.io write files, and examples of mercer.display need matplotlib
        home = getattr(getattr(mercer, name), "__module__", "")
        if name != "warm" and not home.startswith(("mercer.io", "mercer.display")) and _has_example(name):
            found[f"{name} example"] = partial(_run_example, name)
    return dict(sorted(found.items(), key=lambda job: job[0].split()[0].lower()))


def _samples(n: int, d: int = 10) -> Any:
    return np.random.default_rng(0).standard_normal((n, d))


def _read_only(n: int, kind: str = "float64") -> Any:
    """Samples that may not be written to, like those that joblib shares among processes."""
    X = KINDS[kind](_samples(n))
    for array in (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,):
        array.flags.writeable = False
    return X


def _halves(n: int) -> Any:
    """Two classes with a curved boundary."""
    X = _samples(n)
    return (X[:, 0] * X[:, 1] > 0).astype(int) if n > 1 else np.zeros(n)


def _noisy(n: int) -> Any:
    """Two classes; a tenth of the labels are wrong."""
    return np.where(np.arange(n) % 10 == 3, 1 - _halves(n), _halves(n))


def _classes(n: int) -> Any:
    """Three classes."""
    return np.digitize(_samples(n)[:, 0], [-0.5, 0.5])


def _many(n: int) -> Any:
    """10 or 26 overlapping classes."""
    return np.arange(n) % (10 if n < 1000 else 26)


def _six(n: int) -> Any:
    """Six classes of overlapping slices."""
    return np.digitize(_samples(n, 16)[:, 0], [-1.0, -0.5, 0.0, 0.5, 1.0])


def _curve(n: int) -> Any:
    return np.sin(_samples(n)[:, 0]) + 0.1 * _samples(n)[:, 1]


def _strings(n: int) -> list[str]:
    rng = np.random.default_rng(0)
    return ["".join(rng.choice(list("ACGT"), 60)) for _ in range(n)]


def _graphs(n: int) -> list[Any]:
    rng = np.random.default_rng(0)
    return [mercer.Graph([(int(a), int(b)) for a, b in rng.integers(0, 6, (7, 2)) if a != b]) for _ in range(n)]


def _precomputed() -> None:
    """Kernel matrices that the user gives."""
    for n in (100, 2000):
        for dtype in (np.float64, np.float32):
            X = _samples(n)
            K = (X @ X.T).astype(dtype)
            mercer.SVC(kernel="precomputed").fit(K, _halves(n)).predict(K)
            mercer.SVR(kernel="precomputed").fit(K, _curve(n)).predict(K)


def _explained() -> None:
    """Shapley values of a product and of a product with a polynomial."""
    for kernel in ("gaussian()", "gaussian() * polynomial()"):
        mercer.explain(mercer.SVR(kernel=kernel).fit(_samples(60), _curve(60)), _samples(3))


def _updates() -> None:
    """Add and remove samples. The matrix of the linear kernel is singular, so that SMO updates the machine."""
    X = _samples(300)
    models = (mercer.SVC(), _noisy(300)), (mercer.SVC(kernel="linear"), _noisy(300)), (mercer.SVR(), _curve(300))
    for model, y in models:
        model.set_params(updatable=True).fit(X[:290], y[:290]).add(X[290:], y[290:])
        model.remove(int(model.support_[0]))


def _shared_loops() -> None:
    """Loops that are called by address, since not every fit needs them."""
    from mercer._compiled import kernel_maps, shared_loops, tiles
    from mercer.svm._block_newton_loops import newton_address

    single, double = np.dtype(np.float32), np.dtype(np.float64)
    for dtype in (single, double):
        for code in kernel_maps.MAPS:
            kernel_maps.map_address(code, dtype)
        for gaussian in (False, True):
            tiles._block_address(dtype, gaussian)
        shared_loops._block_job_address(dtype)
        shared_loops._product_job_address(dtype)
        for other in (single, double):
            shared_loops._read_job_address(dtype, other)
            newton_address(dtype, other)


def _has_example(name: str) -> bool:
    return ">>>" in (getattr(mercer, name).__doc__ or "")


def _run_example(name: str) -> None:
    """Run the examples in a docstring."""
    runner = doctest.DocTestRunner(verbose=False)
    for test in doctest.DocTestFinder(recurse=False).find(getattr(mercer, name), name):
        runner.run(test, out=lambda text: None)
