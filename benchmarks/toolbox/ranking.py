"""SVDD, OrdinalSVC, RankSVC and SurvivalSVM beside the best packages that exist, on real data.

    python benchmarks/toolbox/ranking.py [--data DIR] [--only survival,ordinal,ranking,ball] [--repeats 3]

CPU seconds of one process, the least of a few runs in turns. DIR holds abalone.npz, concrete.npz, spam.npz and
satimage.npz; survival data are those of scikit-survival, which must be installed for that part.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.metrics import mean_absolute_error, roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as LibsvmSVC
from sklearn.svm import LinearSVC as LiblinearSVC
from sklearn.svm import OneClassSVM as LibsvmOneClass

from mercer import SVDD, SVR, Gaussian, OrdinalSVC, RankSVC, SurvivalSVM, pairwise_score
from mercer.estimators.ranking.survival_svm import survival_loss, survival_times


def timed(repeats: int, **fits: Callable[[], Any]) -> dict[str, tuple[float, Any]]:
    """(least CPU seconds, last model) of each fit, run in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    models = {}
    for _ in range(repeats):
        for name, fit in fits.items():
            begun = process_time()
            models[name] = fit()
            seconds[name].append(process_time() - begun)
    return {name: (min(seconds[name]), models[name]) for name in fits}


def row(*cells: Any) -> None:
    """Print one line of a table."""
    print("| " + " | ".join(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells) + " |")


def header(title: str, *columns: str) -> None:
    """Print the head of a table."""
    print(f"\n{title}\n")
    row(*columns)
    row(*["---"] * len(columns))


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Standardised samples and targets of a set."""
    with np.load(folder / f"{name}.npz", allow_pickle=False) as found:
        return StandardScaler().fit_transform(found["X"].astype(float)), found["y"]


# ---- survival --------------------------------------------------------------------------------------------------------


def survival(repeats: int) -> None:
    """The same objective as scikit-survival's FastKernelSurvivalSVM: seconds, objective, concordance of test data."""
    try:
        from sksurv.datasets import load_flchain, load_gbsg2, load_whas500
        from sksurv.preprocessing import OneHotEncoder
        from sksurv.svm import FastKernelSurvivalSVM
    except ImportError:
        print("scikit-survival is not installed: survival is left out")
        return

    header(
        "Survival: Gaussian kernel, gamma = 1/d, alpha = 2**-4; excess = (objective - dual) / dual",
        "data", "n", "rank_ratio", "mercer s", "scikit-survival s", "mercer excess", "scikit-survival excess",
        "mercer c-index", "scikit-survival c-index", "largest difference",
    )  # fmt: skip
    for name, loader, size in (
        ("whas500", load_whas500, 500),
        ("gbsg2", load_gbsg2, 400),
        ("flchain", load_flchain, 400),
    ):
        frame, y = loader()
        rng = np.random.default_rng(0)
        rows = rng.permutation(len(y))[:size]
        numbers = OneHotEncoder().fit_transform(frame.iloc[rows].dropna(axis=1)).to_numpy(float)
        numbers = numbers[:, numbers.std(axis=0) > 0]
        event, time = (y[field][rows] for field in y.dtype.names)
        # without ties, which scikit-survival breaks at random
        time = time.astype(float) + 1.0 + 1e-3 * rng.random(size)
        outcome = np.array(list(zip(event, time, strict=True)), dtype=[("event", bool), ("time", float)])
        X = StandardScaler().fit_transform(numbers)
        X, X_test, outcome, y_test = train_test_split(X, outcome, test_size=0.3, random_state=0)
        gamma, alpha = 1.0 / X.shape[1], 2.0**-4
        for ratio in (1.0, 0.5):
            shared = {"alpha": alpha, "rank_ratio": ratio, "fit_intercept": ratio < 1}

            def ours(shared: Any = shared, X: Any = X, outcome: Any = outcome, gamma: float = gamma) -> Any:
                return SurvivalSVM(**shared, kernel="rbf", gamma=gamma, n_jobs=1).fit(X, outcome)

            def theirs(shared: Any = shared, X: Any = X, outcome: Any = outcome, gamma: float = gamma) -> Any:
                return FastKernelSurvivalSVM(**shared, kernel="rbf", gamma=gamma, max_iter=100).fit(X, outcome)

            found = timed(repeats, ours=ours, theirs=theirs)
            (ours_s, a), (theirs_s, b) = found["ours"], found["theirs"]
            K = matrix(X, gamma)
            dual = a.certificate_.dual
            smooth = survival_loss(a, survival_times(outcome), np.ones(len(X)), np.arange(len(X)))
            F = K @ b.coef_
            value = 0.5 * b.coef_ @ F + smooth.evaluate((F + getattr(b, "intercept_", 0.0))[:, None])[0]
            said, told = a.predict(X_test), b.predict(X_test)
            row(
                name, len(X), ratio, ours_s, theirs_s, a.certificate_.relative_gap, (value - dual) / dual,
                a.score(X_test, y_test), b.score(X_test, y_test), float(np.abs(said - told).max() / np.ptp(told)),
            )  # fmt: skip


def matrix(X: np.ndarray, gamma: float) -> np.ndarray:
    """The Gaussian kernel matrix."""
    kernel = Gaussian(gamma).bind(X)
    features = kernel.prepare(X, np.float64)
    return kernel.block(features, features)


# ---- ordered classes -------------------------------------------------------------------------------------------------


class RoundedSVR(SVR):
    """Regression of the class number, rounded to a class."""

    def predict(self, X: Any) -> Any:
        """The nearest class."""
        return np.clip(np.rint(super().predict(X)), 0, self.highest)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit, and remember the highest class."""
        self.highest = int(np.max(y))
        return super().fit(X, y, sample_weight)


def ordinal(folder: Path, repeats: int) -> None:
    """Mean absolute error in classes of searched machines, and seconds of the chosen ones."""
    if find_spec("mord") is None:
        print("\nmord is not installed: left out")
    header(
        "Ordered classes: Gaussian kernel, C and gamma by 3-fold cross-validation of the mean absolute error",
        "data", "n", "classes", "machine", "MAE", "accuracy", "fit s", "relative gap",
    )  # fmt: skip
    grid = {"C": [1.0, 10.0, 100.0], "gamma": [0.03, 0.1, 0.3]}
    for name, classes in (("concrete", 6), ("abalone", 8)):
        X, target = load(folder, name)
        # repeated quantiles leave classes empty: number those that are left
        y = np.digitize(target, np.quantile(target, np.arange(1, classes) / classes))
        classes, y = len(np.unique(y)), np.unique(y, return_inverse=True)[1]
        X, X_test, y, y_test = train_test_split(X, y, train_size=700, test_size=300, random_state=0)
        machines = {
            "OrdinalSVC implicit": OrdinalSVC(n_jobs=1),
            "OrdinalSVC explicit": OrdinalSVC(constraints="explicit", n_jobs=1),
            "scikit-learn SVC (one-vs-one)": LibsvmSVC(),
            "mercer SVR, rounded": RoundedSVR(n_jobs=1),
        }
        for kind, machine in machines.items():
            search = GridSearchCV(machine, grid, scoring="neg_mean_absolute_error", cv=3).fit(X, y)
            seconds, model = timed(repeats, fit=partial(search.best_estimator_.fit, X, y))["fit"]
            said = model.predict(X_test)
            gap = getattr(model, "certificate_", None)
            row(
                name, len(X), classes, kind, mean_absolute_error(y_test, said), float(np.mean(said == y_test)), seconds,
                "-" if gap is None else gap.relative_gap,
            )  # fmt: skip
        linear_ordinal(name, classes, X, y, X_test, y_test, repeats)


def linear_ordinal(name: str, classes: int, X: Any, y: Any, X_test: Any, y_test: Any, repeats: int) -> None:
    """mord's linear models, if that package is installed."""
    if find_spec("mord") is None:
        return
    import mord

    grid = {"alpha": [0.01, 0.1, 1.0, 10.0]}
    search = GridSearchCV(mord.LogisticAT(), grid, scoring="neg_mean_absolute_error", cv=3).fit(X, y)
    seconds, model = timed(repeats, fit=partial(search.best_estimator_.fit, X, y))["fit"]
    said = model.predict(X_test)
    row(
        name, len(X), classes, "mord LogisticAT (linear)", mean_absolute_error(y_test, said),
        float(np.mean(said == y_test)), seconds, "-",
    )  # fmt: skip


# ---- ranking ---------------------------------------------------------------------------------------------------------


def ranking(folder: Path, repeats: int) -> None:
    """RankSVC beside LIBLINEAR on all differences (linear kernel), and beside regression by held-out pairs."""
    header(
        "Ranking, linear kernel: the same objective over all pairs of one group",
        "data", "n", "pairs", "RankSVC s", "LIBLINEAR on differences s", "RankSVC excess", "LIBLINEAR excess",
    )  # fmt: skip
    for name in ("abalone", "concrete"):
        X_all, y_all = load(folder, name)
        for n in (200, 800):
            X, y = X_all[:n], y_all[:n].astype(float)
            i, j = np.nonzero(y[:, None] > y)
            sign = np.where(np.arange(len(i)) % 2 == 0, 1.0, -1.0)
            C = 1.0 / len(i)

            def ours(X: Any = X, y: Any = y, C: float = C) -> Any:
                return RankSVC(kernel="linear", C=C, n_jobs=1).fit(X, y)

            def theirs(X: Any = X, i: Any = i, j: Any = j, sign: Any = sign, C: float = C) -> Any:
                model = LiblinearSVC(C=C, fit_intercept=False, dual=False, tol=1e-6)
                return model.fit(sign[:, None] * (X[i] - X[j]), sign)

            found = timed(repeats, ours=ours, theirs=theirs)
            (ours_s, a), (theirs_s, b) = found["ours"], found["theirs"]
            w = b.coef_[0]
            value = 0.5 * w @ w + C * (np.maximum(0.0, 1.0 - (X[i] - X[j]) @ w) ** 2).sum()
            dual = a.certificate_.dual
            row(name, n, len(i), ours_s, theirs_s, a.certificate_.relative_gap, float((value - dual) / dual))
    header(
        "Ranking, Gaussian kernel: share of held-out pairs in order; C by 3-fold cross-validation",
        "data", "n", "machine", "pairwise score", "fit s",
    )  # fmt: skip
    for name in ("abalone", "concrete"):
        X, y = load(folder, name)
        X, X_test, y, y_test = train_test_split(X, y.astype(float), train_size=700, test_size=300, random_state=0)
        machines = {
            "RankSVC": (RankSVC(n_jobs=1, gamma=0.1), {"C": [1e-5, 1e-4, 1e-3, 1e-2]}),
            "mercer SVR": (SVR(n_jobs=1, gamma=0.1), {"C": [1.0, 10.0, 100.0, 1000.0]}),
        }
        for kind, (machine, grid) in machines.items():
            search = GridSearchCV(machine, grid, cv=3).fit(X, y)
            seconds, model = timed(repeats, fit=partial(search.best_estimator_.fit, X, y))["fit"]
            row(name, len(X), kind, pairwise_score(y_test, model.predict(X_test)), seconds)


# ---- the smallest ball -----------------------------------------------------------------------------------------------


def ball(folder: Path, repeats: int) -> None:
    """SVDD beside LIBSVM's one-class machine: the area under the ROC curve of new samples, and seconds."""
    header(
        "Smallest ball: nu = 0.1; one class is normal, the others are not; AUC of new samples",
        "data", "n", "kernel", "SVDD", "SVDD with 20 negative examples", "LIBSVM OneClassSVM", "SVDD s", "LIBSVM s",
    )  # fmt: skip
    for name in ("spam", "satimage"):
        X, y = load(folder, name)
        normal = y == np.unique(y)[0]
        train, test = train_test_split(np.arange(len(y)), test_size=0.5, random_state=0)
        inside, outside = train[normal[train]], train[~normal[train]][:20]
        Z = X[inside]
        both, labels = np.vstack([Z, X[outside]]), np.repeat([1, -1], [len(inside), 20])
        for kernel in ("rbf", "poly", "linear"):
            shared = {"kernel": kernel, "nu": 0.1, "gamma": "scale", "degree": 2, "coef0": 1.0}
            found = timed(
                repeats,
                ball=lambda Z=Z, shared=shared: SVDD(**shared, n_jobs=1).fit(Z),
                libsvm=lambda Z=Z, shared=shared: LibsvmOneClass(**shared).fit(Z),
            )
            taught = SVDD(**shared, n_jobs=1).fit(both, labels)
            scores = [m.decision_function(X[test]) for m in (found["ball"][1], taught, found["libsvm"][1])]
            areas = [float(roc_auc_score(normal[test], score)) for score in scores]
            row(name, len(Z), kernel, *areas, found["ball"][0], found["libsvm"][0])


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the data sets; without it only survival")
    parser.add_argument("--only", default="survival,ordinal,ranking,ball")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    parts = asked.only.split(",")
    if "survival" in parts:
        survival(asked.repeats)
    if asked.data is None:
        print("\nordinal, ranking and ball are left out: they need --data")
        return
    for name, part in (("ordinal", ordinal), ("ranking", ranking), ("ball", ball)):
        if name in parts:
            part(asked.data, asked.repeats)


if __name__ == "__main__":
    main()
