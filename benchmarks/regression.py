"""Regression: mercer against scikit-learn, each section a family of estimators.

    python benchmarks/regression.py [--data DIR] [--only ridge] [--threads 1] [--cpu] [--quick] [--write FILE]

Without --data it runs on generated sets. Progress goes to stderr, tables to stdout. A section is a function of the
settings that returns Markdown, entered in SECTIONS with its title.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from kernel_svm import Report
from measure import Timing, in_turns, say
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from table import digits, machine, small, table
from threadpoolctl import threadpool_limits

import mercer

ALPHAS = np.logspace(-4, 2, 20)
FOLDS = 5
SIZES = (1000, 2500, 5000)
SELECTION_SIZES = (500, 1000, 2000)
# the sets in --data that have real targets
STORED = ("concrete", "abalone")


@dataclass(frozen=True)
class Settings:
    """The options of the command line."""

    folder: Path | None
    repeats: int
    threads: int
    cpu: bool
    quick: bool

    def time(self, calls: dict[str, Callable[[], Any]], repeats: int | None = None) -> dict[str, Timing]:
        """Each call in turns, in wall-clock seconds or in seconds of the processor."""
        with threadpool_limits(self.threads):
            clock = process_time if self.cpu else perf_counter
            return in_turns(calls, self.repeats if repeats is None else repeats, clock)

    def size(self, n: int) -> int:
        return n // 10 if self.quick else n


@dataclass(frozen=True)
class Regression:
    """Standardised features and targets of a regression."""

    name: str
    X: np.ndarray
    y: np.ndarray


def generated(n: int, d: int, seed: int = 0) -> Regression:
    """Normal features, a smooth function of two of them, noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return Regression(f"generated {n:,} × {d}", X, np.sin(X[:, 0]) + X[:, 1 % d] ** 2 + 0.1 * rng.normal(size=n))


def stored(settings: Settings) -> list[Regression]:
    """The sets that exist in --data."""
    found = []
    for name in STORED if settings.folder is not None else ():
        path = settings.folder / f"{name}.npz"
        if not path.exists():
            say(f"{name} left out: {path} is missing")
            continue
        with np.load(path, allow_pickle=True) as file:
            X, y = file["X"].astype(float)[: settings.size(10_000)], file["y"].astype(float)[: settings.size(10_000)]
        deviation = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        found.append(Regression(f"{name} {len(y):,} × {X.shape[1]}", X, y - y.mean()))
    return found


# ---- sections --------------------------------------------------------------------------------------------------------


def ridge(settings: Settings) -> str:
    """One fit of kernel ridge regression with a Gaussian kernel, gamma = 1 / d."""
    rows, ours = [], {"kernel": "rbf", "n_jobs": settings.threads}
    for p in [*(generated(settings.size(n), 20) for n in SIZES), *stored(settings)]:
        for alpha in (1e-3, 0.1):
            say(f"ridge: {p.name}, alpha={alpha:g}")
            calls = {
                "mercer": lambda p=p, a=alpha: mercer.KernelRidge(a, kernel="rbf", n_jobs=settings.threads).fit(
                    p.X, p.y
                ),
                "scikit-learn": lambda p=p, a=alpha: KernelRidge(alpha=a, kernel="rbf").fit(p.X, p.y),
            }
            times = settings.time(calls)
            ours, theirs = times["mercer"], times["scikit-learn"]
            difference = np.abs(ours.result.dual_coef_ - theirs.result.dual_coef_).max()
            difference /= np.abs(theirs.result.dual_coef_).max()
            row = [
                p.name,
                f"{alpha:g}",
                digits(ours.median),
                digits(theirs.median),
                digits(theirs.median / ours.median),
            ]
            rows.append([*row, small(ours.result.certificate_.relative_gap), small(float(difference))])
    header = ["set", "alpha", "mercer", "scikit-learn", "scikit-learn / mercer", "gap, mercer", "difference of β"]
    return table(header, rows)


def selection(settings: Settings) -> str:
    """The choice among 20 values of alpha: leave-one-out and GCV in closed form against five folds by GridSearchCV."""
    ours = {"kernel": "rbf", "fit_intercept": False, "n_jobs": settings.threads}
    search = GridSearchCV(KernelRidge(kernel="rbf"), {"alpha": ALPHAS}, cv=FOLDS)
    problems = [generated(settings.size(n), d) for n in SELECTION_SIZES for d in (2, 20)]
    rows = []
    for p in [*problems, *(q for q in stored(settings) if len(q.y) <= SELECTION_SIZES[-1])]:
        say(f"selection: {p.name}")
        calls = {
            "leave-one-out": lambda p=p: mercer.KernelRidgeCV(ALPHAS, **ours).fit(p.X, p.y),
            "gcv": lambda p=p: mercer.KernelRidgeCV(ALPHAS, cv="gcv", **ours).fit(p.X, p.y),
            "folds": lambda p=p: mercer.KernelRidgeCV(ALPHAS, cv=FOLDS, **ours).fit(p.X, p.y),
            "scikit-learn": lambda p=p: search.fit(p.X, p.y),
        }
        times = settings.time(calls, repeats=1)
        seconds = {name: timing.median for name, timing in times.items()}
        own = [name for name in calls if name != "scikit-learn"]
        chosen = [*(times[name].result.alpha_ for name in own), times["scikit-learn"].result.best_params_["alpha"]]
        ratios = [digits(seconds["scikit-learn"] / seconds[name]) for name in own]
        rows.append([p.name, *map(digits, seconds.values()), *ratios, *(f"{alpha:.2g}" for alpha in chosen)])
    names = ["leave-one-out", "gcv", "folds", "GridSearchCV"]
    header = ["set", *names, *(f"GridSearchCV / {k}" for k in names[:-1]), *(f"alpha, {k}" for k in names)]
    return table(header, rows)


SECTIONS: dict[str, tuple[str, Callable[[Settings], str]]] = {
    "ridge": ("Kernel ridge regression", ridge),
    "selection": (f"Kernel ridge regression, choice among {len(ALPHAS)} alphas", selection),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the data sets (NAME.npz)")
    parser.add_argument("--only", choices=SECTIONS, help="one section instead of all")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each peer, of which the median counts")
    parser.add_argument("--threads", type=int, default=1, help="threads of both sides, those of BLAS included")
    parser.add_argument("--cpu", action="store_true", help="seconds of the processor, for a machine that is busy")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows: a test of this program")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the report as Markdown")
    given = parser.parse_args(arguments)
    if given.repeats < 1 or given.threads < 1:
        parser.error("--repeats and --threads must be at least 1.")
    settings = Settings(given.data, given.repeats, given.threads, given.cpu, given.quick)
    kind = "seconds of the processor" if given.cpu else "seconds"
    preamble = f"""# Benchmarks of regression

Written by `{shlex.join(["python", *sys.argv])}` on {date.today().isoformat()}.

{machine()}

Medians of {given.repeats} in {kind}, {given.threads} thread(s) on both sides. Ratios above 1: mercer is faster. The
first run of each is not counted."""
    report = Report(given.write, preamble)
    for name in (given.only,) if given.only else SECTIONS:
        title, section = SECTIONS[name]
        report.put(title, f"{section.__doc__}\n\n{section(settings)}")
    print(report)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
