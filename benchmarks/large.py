"""Large training sets: landmark machines beside the exact machine and the approximations of scikit-learn.

    python benchmarks/large.py [--data DIR] [--sets curved,skin,digits] [--n 200000] [--repeats 1] [--no-exact]
    python benchmarks/large.py --growth 10000,100000,1000000 [--landmarks 200]
    python benchmarks/large.py --memory 10000000 [--landmarks 60]

The first command prints processor and wall seconds of the fit, test accuracy and the certified relative gap to the
exact machine for several numbers of landmarks. Peers: Nyström's features with a linear machine and random Fourier
features with stochastic descent, for several numbers of features, unless these take more than 5 GB, and the exact
machine. A second table compares at equal accuracy: each peer that no other peer beats in both accuracy and seconds,
beside the fastest landmark machine that is at least as accurate. The second command shows that time is linear in n at a
fixed number of landmarks; the third fits n × 10 rows and prints the peak memory of the process. Everything runs in one
process; the first fit of each kind is on a part, so that no compilation is timed.
"""

from __future__ import annotations

import argparse
import resource
import warnings
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from mercer import SVC

TEST = 20_000
TEST_CURVED = 100_000
# numbers of landmarks, and of the features of the peers
COUNTS = {"curved": (150, 250, 350, 500, 700), "skin": (50, 100), "digits": (250, 500, 1000, 2000)}
FEATURES = {"curved": (250, 500, 1000), "skin": (100, 200, 400), "digits": (500, 1000, 2000)}
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
        X, y = curved(n + TEST_CURVED)
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


class Seconds(NamedTuple):
    processor: float
    wall: float


class Point(NamedTuple):
    """One fitted machine."""

    label: str
    seconds: Seconds
    accuracy: float
    gap: str = "–"


def timed(model: Any, X: Any, y: Any, repeats: int) -> Seconds:
    """The smallest seconds of several fits."""
    found = []
    for _ in range(repeats):
        begun, start = process_time(), perf_counter()
        model.fit(X, y)
        found.append(Seconds(process_time() - begun, perf_counter() - start))
    return Seconds(*(min(column) for column in zip(*found, strict=True)))


def peers(sizes: tuple[int, ...], n: int, C: float, gamma: float) -> dict[str, Any]:
    found = {}
    for size in sizes:
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


def machines(name: str, n: int, kernel: dict[str, float], exact: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """(Landmark machines, peers), by their labels."""
    own = {f"mercer, {m} landmarks": SVC(landmarks=m, **kernel) for m in COUNTS[name]}
    others = {"mercer, exact": SVC(**kernel)} if exact else {}
    return own, others | peers(FEATURES[name], n, **kernel)


def measured(models: dict[str, Any], size: str, samples: tuple[Any, ...], repeats: int) -> list[Point]:
    X, y, X_test, y_test = samples
    found = []
    for label, model in models.items():
        seconds = timed(model, X, y, repeats)
        gap = f"{model.certificate_.relative_gap:.1e}" if isinstance(model, SVC) else "–"
        point = Point(label, seconds, model.score(X_test, y_test), gap)
        print(
            f"| {size} | {label} | {seconds.processor:.2f} | {seconds.wall:.2f} | {point.accuracy:.4f} | {gap} |",
            flush=True,
        )
        found.append(point)
    return found


def compare(names: list[str], n: int, folder: Path | None, repeats: int, exact: bool) -> None:
    head = "| set | model | processor s | wall s | accuracy | certified gap |\n|---|---|---|---|---|---|"
    results: dict[str, tuple[list[Point], list[Point]]] = {}
    print(head)
    for name in names:
        *samples, kernel = load(name, n, folder)
        X, y = samples[:2]
        own, others = machines(name, len(X), kernel, exact)
        for model in (SVC(landmarks=20, **kernel), SVC(**kernel)):
            model.fit(X[:3000], y[:3000])
        SVC(landmarks=20, **kernel).fit(X[:30_000], y[:30_000])
        size = f"{name}, {len(X):,} × {X.shape[1]}"
        results[size] = tuple(measured(models, size, tuple(samples), repeats) for models in (own, others))
    print(
        "\n| set | peer | accuracy | landmarks | accuracy | processor s, peer and landmarks | ratio | ratio of wall s |"
        "\n|---|---|---|---|---|---|---|---|"
    )
    for size, (own_points, other_points) in results.items():
        at_equal_accuracy(size, own_points, other_points)


def at_equal_accuracy(size: str, own: list[Point], others: list[Point]) -> None:
    """Print the ratios of seconds at the accuracy of each peer that no other one beats in both."""
    for peer in sorted(others, key=lambda point: point.accuracy):
        if any(o.accuracy >= peer.accuracy and o.seconds.processor < peer.seconds.processor for o in others):
            continue
        reached = [point for point in own if point.accuracy >= peer.accuracy]
        row = f"| {size} | {peer.label} | {peer.accuracy:.4f} |"
        if not reached:
            print(f"{row} not reached | {max(point.accuracy for point in own):.4f} | – | – | – |")
            continue
        best = min(reached, key=lambda point: point.seconds.processor)
        a, b = peer.seconds, best.seconds
        print(
            f"{row} {best.label.split()[1]} | {best.accuracy:.4f} | {a.processor:.2f}, {b.processor:.2f} | "
            f"{a.processor / b.processor:.1f} | {a.wall / b.wall:.1f} |"
        )


def growth(sizes: list[int], m: int) -> None:
    print(f"| n, with {m} landmarks | seconds | microseconds a row |\n|---|---|---|")
    for n in sizes:
        X, y = curved(n, 10)
        model = SVC(landmarks=m, gamma=0.05)
        model.fit(X[:3000], y[:3000])
        seconds = timed(model, X, y, 1).wall
        print(f"| {n:,} | {seconds:.2f} | {1e6 * seconds / n:.1f} |", flush=True)


def memory(n: int, m: int) -> None:
    X, y = curved(n, 10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = timed(model := SVC(landmarks=m, gamma=0.05, cache_size=3000), X, y, 1).wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{n:,} × 10 rows, {m} landmarks: {seconds:.0f} s, peak {1.024e-6 * peak:.2f} GB of which "
        f"{1.024e-6 * before:.2f} GB before the fit; certified gap {model.certificate_.relative_gap:.1e}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the data sets (NAME.npz)")
    parser.add_argument("--sets", default="curved")
    parser.add_argument("--n", type=int, default=200_000, help="rows of the generated set")
    parser.add_argument("--repeats", type=int, default=1)
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
        compare(given.sets.split(","), given.n, given.data, given.repeats, not given.no_exact)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
