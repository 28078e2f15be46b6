"""Machines on the same quadratic programs beside their alternatives, on real data: CPU seconds and held-out scores.

    python benchmarks/toolbox/losses.py --data DIR [--samples 2000]

DIR has satimage.npz, letter.npz and abalone.npz (X, y, and X_test, y_test for the first two). Machines with several
classes run on one thread, since waiting threads count as CPU time.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import clarabel
import numpy as np
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge as SklearnRidge
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import label_binarize
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC as SklearnSVC

import mercer
from mercer.erm.convex_losses import Expectile


def measured(call, repeats=2):
    """The least CPU seconds of a few calls, and the result of the last. One call alone would count what it compiles."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        result = call()
        best = min(best, time.process_time() - start)
    return best, result


def row(section, name, seconds, score):
    """Print a line of the table."""
    print(f"| {section} | {name} | {seconds:.2f} | {score} |", flush=True)


def split(path, most):
    """Standardised samples of a file, at most ``most`` to train; the last fifth to test if there is no test set."""
    stored = np.load(path)
    X, y = np.asarray(stored["X"], dtype=np.float64), stored["y"]
    order = np.random.default_rng(0).permutation(len(y))
    if "X_test" in stored.files:
        X_test, y_test = np.asarray(stored["X_test"], dtype=np.float64)[:2000], stored["y_test"][:2000]
        X, y = X[order[:most]], y[order[:most]]
    else:
        test, train = order[: len(y) // 5], order[len(y) // 5 :][:most]
        X, y, X_test, y_test = X[train], y[train], X[test], y[test]
    mean, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale == 0] = 1.0
    return (X - mean) / scale, y, (X_test - mean) / scale, y_test


def codes(name, X, y, X_test, y_test):
    """One against the rest, random codes and least squares beside scikit-learn's wrappers of the same SVC."""
    gamma = 1.0 / X.shape[1]
    dense = mercer.OutputCodeSVC("dense", C=10.0, gamma=gamma, random_state=0, n_jobs=1)
    alone = SVCOfWords(dense)
    models = {
        "OneVsRestClassifier(mercer.SVC())": OneVsRestClassifier(mercer.SVC(C=10.0, gamma=gamma, n_jobs=1)),
        "OutputCodeSVC('ovr')": mercer.OutputCodeSVC(C=10.0, gamma=gamma, n_jobs=1),
        "OutputCodeClassifier(mercer.SVC(), 2)": OutputCodeClassifier(
            mercer.SVC(C=10.0, gamma=gamma, n_jobs=1), code_size=2, random_state=0
        ),
        "OutputCodeSVC('dense')": dense,
        "the same words, each by mercer.SVC": alone,
        "mercer.SVC, pairs": mercer.SVC(C=10.0, gamma=gamma, n_jobs=1),
        "LSSVC": mercer.LSSVC(10.0, gamma=gamma, n_jobs=1),
        "KernelRidge on ±1": RidgeOfLabels(0.1, gamma),
    }
    for label, model in models.items():
        seconds, fitted = measured(lambda model=model: model.fit(X, y))
        row(f"{name} {len(y):,}", label, seconds, f"{fitted.score(X_test, y_test):.4f}")


class SVCOfWords:
    """The words of an OutputCodeSVC, each fitted by an SVC of its own."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        code = self.model.code_[np.searchsorted(self.model.classes_, y)]
        for labels in code.T:
            mercer.SVC(C=self.model.C, gamma=self.model.gamma, n_jobs=1).fit(X[labels != 0], labels[labels != 0])
        return self.model

    def score(self, X, y):
        return self.model.score(X, y)


class RidgeOfLabels:
    """KernelRidge with an intercept on ±1 labels of all classes."""

    def __init__(self, alpha, gamma):
        self.ridge = mercer.KernelRidge(alpha, kernel="rbf", gamma=gamma, fit_intercept=True, n_jobs=1)

    def fit(self, X, y):
        self.classes = np.unique(y)
        self.ridge.fit(X, np.where(y[:, None] == self.classes, 1.0, -1.0))
        return self

    def score(self, X, y):
        return float(np.mean(self.classes[self.ridge.predict(X).argmax(axis=1)] == y))


def quantiles(X, y, X_test, y_test):
    """Quantiles together and one by one; expectiles beside reweighted ridge regressions of scikit-learn."""
    taus, gamma, size = [0.1, 0.5, 0.9], 1.0 / X.shape[1], f"abalone {len(y):,}"
    seconds, alone = measured(
        lambda: [mercer.SVR(loss="pinball", quantile=t, C=10.0, gamma=gamma).fit(X, y) for t in taus]
    )
    apart = lambda A: np.column_stack([model.predict(A) for model in alone])  # noqa: E731
    seconds_2, together = measured(lambda: mercer.QuantileSVR(taus, C=10.0, gamma=gamma).fit(X, y), 1)
    for label, spent, predict in (("SVR, pinball", seconds, apart), ("QuantileSVR", seconds_2, together.predict)):
        lost = np.mean([mean_pinball_loss(y_test, c, alpha=t) for c, t in zip(predict(X_test).T, taus, strict=True)])
        crossed = [(np.diff(predict(A), axis=1) < -1e-9).any(axis=1).mean() for A in (X, X_test)]
        row(size, f"{label}, 3 quantiles", spent, f"pinball {lost:.4f}, crossed {crossed[0]:.1%} / {crossed[1]:.1%}")
    seconds, model = measured(lambda: mercer.ExpectileSVR(0.9, C=10.0, gamma=gamma).fit(X, y))
    row(size, "ExpectileSVR(0.9)", seconds, f"gap {model.certificate_.relative_gap:.0e}")
    seconds, _ = measured(lambda: reweighted(X, y, 0.9, 10.0, gamma), 1)
    row(size, "scikit-learn's KernelRidge, reweighted", seconds, "no intercept, no certificate")


def crossing(X, y, gamma):
    """Five quantiles that cross, beside a general solver of the same quadratic program; expectiles for several C."""
    taus, size = [0.1, 0.3, 0.5, 0.7, 0.9], f"abalone {len(y):,}"
    for C in (10.0, 100.0):
        spent, model = measured(lambda C=C: mercer.QuantileSVR(taus, C=C, gamma=gamma, n_jobs=1).fit(X, y))
        proof = model.certificate_
        row(size, f"QuantileSVR, 5 quantiles, C={C:g}", spent, f"{proof.primal:.7g}, gap {proof.relative_gap:.0e}")
        if len(y) <= 300:
            spent, value = measured(lambda C=C: clarabel_quantiles(mercer.Gaussian(gamma)(X), y, C, taus), 1)
            row(size, f"clarabel, 5 quantiles, C={C:g}", spent, f"{value:.7g}")
    for C in (1.0, 100.0, 10000.0):
        spent, model = measured(lambda C=C: mercer.ExpectileSVR(0.9, C=C, gamma=gamma, n_jobs=1).fit(X, y))
        row(size, f"ExpectileSVR(0.9), C={C:g}", spent, f"gap {model.certificate_.relative_gap:.0e}")
        loss = Expectile(0.9)
        spent, model = measured(lambda C=C, loss=loss: mercer.KernelERM(loss, C=C, gamma=gamma, n_jobs=1).fit(X, y), 1)
        row(size, f"KernelERM, the same loss, C={C:g}", spent, f"gap {model.certificate_.relative_gap:.0e}")


def clarabel_quantiles(K, y, C, taus):
    """The joint problem over the coordinates of a root of K: v, b, and both parts of the residuals of each quantile."""
    n, many = len(y), len(taus)
    eigenvalues, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    values = sp.hstack([root, np.ones((n, 1)), sp.csc_matrix((n, 2 * n))])
    parts = sp.hstack([sp.csc_matrix((n, n + 1)), sp.eye(n), -sp.eye(n)])
    P = sp.block_diag([sp.diags(np.append(np.ones(n), np.zeros(2 * n + 1)))] * many).tocsc()
    positive = sp.block_diag([sp.hstack([sp.csc_matrix((2 * n, n + 1)), -sp.eye(2 * n)])] * many)
    difference = sp.diags([np.ones(many - 1), -np.ones(many - 1)], [0, 1], shape=(many - 1, many))
    A = sp.vstack([sp.block_diag([values + parts] * many), positive, sp.kron(difference, values)]).tocsc()
    linear = np.concatenate([np.concatenate([np.zeros(n + 1), np.repeat([C * t, C * (1 - t)], n)]) for t in taus])
    cones = [clarabel.ZeroConeT(many * n), clarabel.NonnegativeConeT(A.shape[0] - many * n)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    right = np.concatenate([np.tile(y, many), np.zeros(A.shape[0] - many * n)])
    return clarabel.DefaultSolver(P, linear, A, right, cones, settings).solve().obj_val


def reweighted(X, y, tau, C, gamma):
    """Asymmetric least squares: ridge regressions until the signs of the residuals stay."""
    weight = np.ones(len(y))
    for _ in range(50):
        model = SklearnRidge(alpha=1.0 / C, kernel="rbf", gamma=gamma).fit(X, y, sample_weight=weight)
        following = 2.0 * np.where(y > model.predict(X), tau, 1.0 - tau)
        if (following == weight).all():
            break
        weight = following
    return model


def several_outputs(X, y):
    """Five outputs by scikit-learn's wrapper: what a shared matrix could save."""
    rng, gamma = np.random.default_rng(0), 1.0 / X.shape[1]
    Y = np.column_stack([y / y.std() + 0.3 * rng.normal(size=len(y)) for _ in range(5)])
    seconds, _ = measured(lambda: MultiOutputRegressor(mercer.SVR(gamma=gamma)).fit(X, Y))
    shared, _ = measured(lambda: shared_outputs(X, Y, gamma))
    row(f"abalone {len(y):,}", "MultiOutputRegressor(mercer.SVR()), 5 outputs", seconds, "")
    row(f"abalone {len(y):,}", "the same on one shared matrix", shared, f"{seconds / shared:.1f}× faster")


def shared_outputs(X, Y, gamma):
    """ε-SVR for each column over one stored matrix."""
    from mercer.erm.shared_matrix import SharedMatrix
    from mercer.gram.operator import Data
    from mercer.losses import EpsilonInsensitive
    from mercer.problems.clock import Clock
    from mercer.problems.solution import Options
    from mercer.svm.solve import solve_problem
    from mercer.validation import thread_count

    n, loss, weight = len(X), EpsilonInsensitive(0.1), np.ones(len(X))
    options = Options(n_threads=thread_count(None))
    with Clock(None) as clock:
        data = Data(mercer.Gaussian(gamma), X, n)
        shared = SharedMatrix(data, loss.box_qp(Y[:, 0], weight, True), options, clock)
        rows = np.arange(n)
        return [solve_problem(shared.take(rows), loss, y, weight, True, options, clock, None) for y in Y.T]


def partly_labelled():
    """Digits with three labels for each class."""
    X, y = load_digits(return_X_y=True)
    X, found = X / 16.0, {}
    for seed in range(3):
        rng, given = np.random.default_rng(seed), np.full(len(y), -1)
        for c in range(10):
            given[rng.choice(np.flatnonzero(y == c), 3, replace=False)] = c
        rest = given < 0
        models = {
            "LaplacianSVC": mercer.LaplacianSVC(10.0, gamma=0.05),
            "LabelSpreading, knn": LabelSpreading(kernel="knn", n_neighbors=7),
            "SelfTrainingClassifier(SVC)": SelfTrainingClassifier(SklearnSVC(C=10.0, gamma=0.05, probability=True)),
        }
        for label, model in models.items():
            seconds, fitted = measured(lambda model=model, given=given: model.fit(X, given), 1)
            found.setdefault(label, []).append((seconds, np.mean(fitted.predict(X)[rest] == y[rest])))
    for label, runs in found.items():
        seconds, right = np.mean(runs, axis=0)
        row("digits, 30 labels", label, seconds, f"{right:.4f}")


def shipped(load):
    """Standardised samples of one of scikit-learn's data sets, half of them to train."""
    X, y = load(return_X_y=True)
    scale = X.std(axis=0)
    scale[scale == 0] = 1.0
    parts = train_test_split((X - X.mean(axis=0)) / scale, y, test_size=0.5, random_state=0, stratify=y)
    return [parts[0], parts[2], parts[1], parts[3]]


def least_squares():
    """LSSVC beside scikit-learn's ridge regressions of the labels: with a kernel, and on Nyström features."""
    for load in (load_breast_cancer, load_digits):
        X, y, X_test, y_test = shipped(load)
        name, gamma = f"{load.__name__.removeprefix('load_')} {len(y):,}", 0.2 / X.shape[1]
        targets, classes = label_binarize(y, classes=np.unique(y), neg_label=-1), np.unique(y)
        features = Nystroem(gamma=gamma, n_components=len(y), random_state=0)
        spent, ours = measured(lambda X=X, y=y, gamma=gamma: mercer.LSSVC(10.0, gamma=gamma, n_jobs=1).fit(X, y))
        row(name, "LSSVC", spent, f"{ours.score(X_test, y_test):.4f}")
        ridge = SklearnRidge(alpha=0.1, kernel="rbf", gamma=gamma)
        spent, theirs = measured(lambda X=X, ridge=ridge, targets=targets: ridge.fit(X, targets))
        values = theirs.predict(X_test)
        codes = (values[:, 0] > 0).astype(int) if values.shape[1] == 1 else values.argmax(axis=1)
        row(name, "scikit-learn's KernelRidge on ±1, no intercept", spent, f"{np.mean(classes[codes] == y_test):.4f}")
        model = make_pipeline(features, RidgeClassifier(alpha=0.1))
        spent, theirs = measured(lambda X=X, y=y, model=model: model.fit(X, y))
        row(name, "RidgeClassifier on Nyström features, all rows", spent, f"{theirs.score(X_test, y_test):.4f}")


def rejection(cost=0.1):
    """The mean cost of decisions if no answer costs 0.1, beside a threshold on calibrated probabilities."""
    for load in (load_breast_cancer, load_digits):
        X, y, X_test, y_test = shipped(load)
        name, gamma = f"{load.__name__.removeprefix('load_')} {len(y):,}", 0.2 / X.shape[1]
        calibrated = CalibratedClassifierCV(SklearnSVC(C=1.0, gamma=gamma), ensemble=False)
        for label, inner in (
            ("SVCCV", mercer.SVCCV(Cs=[1.0], gammas=[gamma], n_jobs=1)),
            ("KernelLogisticRegression", mercer.KernelLogisticRegression(C=10.0, gamma=gamma, n_jobs=1)),
        ):
            model = mercer.RejectOption(inner, reject_cost=cost)
            spent, model = measured(lambda X=X, y=y, model=model: model.fit(X, y))
            answered = 1.0 - model.rejects(X_test).mean()
            paid = model.mean_cost(X_test, y_test)
            row(name, f"RejectOption({label})", spent, f"cost {paid:.4f}, answered {answered:.1%}")
        spent, model = measured(lambda X=X, y=y, model=calibrated: model.fit(X, y))
        T = model.predict_proba(X_test)
        rejected = T.max(axis=1) < 1.0 - cost
        for label, left in (("a threshold by hand", rejected), ("never rejects", np.zeros(len(T), bool))):
            paid = np.where(left, cost, model.classes_[T.argmax(axis=1)] != y_test).mean()
            remark = f"cost {paid:.4f}, answered {1.0 - left.mean():.1%}"
            row(name, f"CalibratedClassifierCV(SVC), {label}", spent, remark)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=2000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data | machine | CPU s | score |\n|---|---|---|---|")
    for name in ("satimage", "letter"):
        codes(name, *split(given.data / f"{name}.npz", given.samples))
    X, y, X_test, y_test = split(given.data / "abalone.npz", given.samples)
    several_outputs(X, y.astype(np.float64))
    quantiles(X[:1000], y[:1000].astype(np.float64), X_test, y_test.astype(np.float64))
    for most in (300, 1000, 2000):
        crossing(X[:most], y[:most].astype(np.float64), 1.0)
    least_squares()
    rejection()
    partly_labelled()


if __name__ == "__main__":
    main()
