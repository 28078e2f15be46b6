"""Large training sets: landmark machines beside the exact machine and the approximations of scikit-learn.

    python benchmarks/large.py [--data DIR] [--sets curved,skin,digits] [--n 1000000] [--repeats 1] [--no-exact]
    python benchmarks/large.py --growth 10000,100000,1000000 [--landmarks 200]
    python benchmarks/large.py --memory 10000000 [--landmarks 60]

The first prints seconds of the fit, test accuracy and the certified relative gap to the exact machine. Peers: Nyström's
features with a linear machine and random Fourier features with stochastic descent, each with as many features as the
landmark machine has, and with four times as many, unless these take more than 5 GB. The second shows that time is
linear in n at a fixed number of landmarks; the third fits n × 10 rows and prints the peak memory of the process.
Everything runs in one process; the first fit of each kind is on a part, so that no compilation is timed.
"""

from __future__ import annotations

import argparse
import resource
import warnings
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from mercer import SVC

TEST = 20_000
# scikit-learn's features are stored in float64: larger ones are left out
MOST_BYTES = 5_000_000_000


def curved(n: int, d: int = 20, seed: int = 0) -> tuple[Any, Any]:
    """Two classes with a curved border and noise, in float32."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d), dtype=np.float32)
    return X, X[:, 0] * X[:, 1] + X[:, 2] ** 2 - 1.0 + 0.5 * rng.standard_normal(n, dtype=np.float32) > 0


def load(name: str, n: int, folder: Path | None) -> tuple[Any, Any, Any, Any, dict[str, float]]:
    """Training and test samples, and the parameters of the kernel machine."""
    if name == "curved":
        X, y = curved(n + TEST)
        return X[:n], y[:n], X[n:], y[n:], {"C": 1.0, "gamma": 0.02}
    if folder is None:
        raise SystemExit(f"{name} needs --data")
    if name == "digits":
        with np.load(folder / "mnist.npz") as stored:
            X, y = stored["X"].astype(np.float32) / 255, stored["y"] >= 5
            return X, y, stored["X_test"].astype(np.float32) / 255, stored["y_test"] >= 5, {"C": 5.0, "gamma": 0.02}
    with np.load(folder / "skin_nonskin.npz") as stored:
        order = np.random.default_rng(0).permutation(len(stored["y"]))
        X, y = stored["X"][order].astype(np.float32) / 255, stored["y"][order] == 1
    return X[TEST:], y[TEST:], X[:TEST], y[:TEST], {"C": 10.0, "gamma": 10.0}


def timed(model: Any, X: Any, y: Any, repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        model.fit(X, y)
        seconds.append(perf_counter() - start)
    return median(seconds)


def peers(m: int, n: int, C: float, gamma: float) -> dict[str, Any]:
    found = {}
    for size in (m, 4 * m):
        if 8 * n * size > MOST_BYTES:
            continue
        found[f"Nystroem({size}) + LinearSVC"] = make_pipeline(
            Nystroem(gamma=gamma, n_components=size, random_state=0), LinearSVC(C=C, loss="hinge", random_state=0)
        )
        found[f"RBFSampler({size}) + SGDClassifier"] = make_pipeline(
            RBFSampler(gamma=gamma, n_components=size, random_state=0),
            SGDClassifier(alpha=1.0 / (C * n), random_state=0),
        )
    return found


def compare(names: list[str], n: int, folder: Path | None, repeats: int, exact: bool, most: int) -> None:
    print("| set | n × d | model | seconds | accuracy | certified gap |\n|---|---|---|---|---|---|")
    for name in names:
        X, y, X_test, y_test, kernel = load(name, n, folder)
        size = f"{len(X):,} × {X.shape[1]}"
        landmarks = SVC(landmarks="auto", max_landmarks=most, **kernel)
        models = {"mercer, landmarks": landmarks, **({"mercer, exact": SVC(**kernel)} if exact else {})}
        for model in models.values():
            model.fit(X[:3000], y[:3000])
        for label, model in models.items():
            seconds = timed(model, X, y, repeats)
            more = f" ({model.n_landmarks_})" if label.endswith("landmarks") else f" ({len(model.support_):,} vectors)"
            gap = f"{model.certificate_.relative_gap:.1e}"
            print(
                f"| {name} | {size} | {label}{more} | {seconds:.1f} | {model.score(X_test, y_test):.4f} | {gap} |",
                flush=True,
            )
        for label, model in peers(landmarks.n_landmarks_, len(X), **kernel).items():
            seconds = timed(model, X, y, repeats)
            print(f"| {name} | {size} | {label} | {seconds:.1f} | {model.score(X_test, y_test):.4f} | – |", flush=True)


def growth(sizes: list[int], m: int) -> None:
    print(f"| n, with {m} landmarks | seconds | microseconds a row |\n|---|---|---|")
    for n in sizes:
        X, y = curved(n, 10)
        model = SVC(landmarks=m, gamma=0.05)
        model.fit(X[:3000], y[:3000])
        seconds = timed(model, X, y, 1)
        print(f"| {n:,} | {seconds:.2f} | {1e6 * seconds / n:.1f} |", flush=True)


def memory(n: int, m: int) -> None:
    X, y = curved(n, 10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = timed(model := SVC(landmarks=m, gamma=0.05, cache_size=3000), X, y, 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{n:,} × 10 rows, {m} landmarks: {seconds:.0f} s, peak {1.024e-6 * peak:.2f} GB of which "
        f"{1.024e-6 * before:.2f} GB before the fit; certified gap {model.certificate_.relative_gap:.1e}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the data sets (NAME.npz)")
    parser.add_argument("--sets", default="curved")
    parser.add_argument("--n", type=int, default=1_000_000, help="rows of the generated set")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--most", type=int, default=2000, help="max_landmarks")
    parser.add_argument("--no-exact", action="store_true")
    parser.add_argument("--growth", default="")
    parser.add_argument("--memory", type=int, default=0)
    parser.add_argument("--landmarks", type=int, default=200)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.growth:
        growth([int(n) for n in given.growth.split(",")], given.landmarks)
    elif given.memory:
        memory(given.memory, given.landmarks)
    else:
        compare(given.sets.split(","), given.n, given.data, given.repeats, not given.no_exact, given.most)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
