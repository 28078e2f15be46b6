"""Methods without labels: mercer against scikit-learn, and a plain NumPy kernel k-means.

    python benchmarks/toolbox/unsupervised.py [--n 5000] [--repeats 3] [--data DIR]

CPU seconds (all threads), the median of runs in turns, on generated samples of n rows; with --data on the first n rows
of letter, satimage and usps (NAME.npz in DIR), too. "agree" compares the results: for components the largest difference
of coordinates as a share of the largest one, for clusters the adjusted Rand index, for k-means the ratio of the
inertias, for CCA the largest difference of correlations. "classes" is the adjusted Rand index between the clusters and
the known classes, mercer's and the other's.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from sklearn import cluster, cross_decomposition, decomposition
from sklearn.datasets import make_blobs, make_moons, make_swiss_roll
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

import mercer


def numpy_kernel_kmeans(X: np.ndarray, k: int, gamma: float, n_init: int) -> float:
    """The best inertia of Lloyd's iteration on the stored kernel matrix, from seeds drawn uniformly."""
    K, rng, best = rbf_kernel(X, gamma=gamma), np.random.default_rng(0), np.inf
    for _ in range(n_init):
        seeds = rng.choice(len(X), k, replace=False)
        labels = np.argmax(K[:, seeds], axis=1)
        for _ in range(300):
            M = np.eye(k)[labels]
            M /= np.maximum(M.sum(axis=0), 1.0)
            A = K @ M
            squares = np.einsum("ij,ij->j", M, A)
            new = np.argmin(squares - 2.0 * A, axis=1)
            if (new == labels).all():
                break
            labels = new
        best = min(best, float(np.sum(1.0 + squares[labels] - 2.0 * A[np.arange(len(X)), labels])))
    return best


def in_turns(ours: Callable[[], Any], theirs: Callable[[], Any], repeats: int) -> tuple[float, float, Any, Any]:
    """Median CPU seconds of both, and their results."""
    seconds: tuple[list[float], list[float]] = ([], [])
    results: list[Any] = [ours(), None]  # compiles what is not compiled yet
    for _ in range(repeats):
        for number, call in enumerate((ours, theirs)):
            start = process_time()
            results[number] = call()
            seconds[number].append(process_time() - start)
    return median(seconds[0]), median(seconds[1]), results[0], results[1]


def coordinates(ours: Any, theirs: Any) -> str:
    a, b = (m.eigenvectors_ * np.sqrt(m.eigenvalues_) for m in (ours, theirs))
    return f"{np.abs(a - b).max() / np.abs(b).max():.0e}"


def rand_index(ours: Any, theirs: Any) -> str:
    return f"{adjusted_rand_score(ours.labels_, theirs.labels_):.3f}"


def cases(n: int) -> dict[str, tuple[Callable[[], Any], Callable[[], Any], Callable[[Any, Any], str]]]:
    """Name, mercer's run, the other run, and how results are compared."""
    rng = np.random.default_rng(0)
    swiss, _ = make_swiss_roll(n, random_state=0)
    blobs, _ = make_blobs(n, 10, centers=6, cluster_std=1.5, random_state=0)
    moons, _ = make_moons(n, noise=0.05, random_state=0)
    normal = rng.normal(size=(n, 20))
    found: dict[str, Any] = {}
    for name, X, gamma, count in (
        ("KernelPCA 5, swiss roll", swiss, 0.01, 5),
        ("KernelPCA 5, blobs", blobs, 0.01, 5),
        ("KernelPCA 5, normal 20-d", normal, 0.05, 5),
        ("KernelPCA 20, blobs", blobs, 0.01, 20),
    ):
        params = {"n_components": count, "kernel": "rbf", "gamma": gamma, "random_state": 0}
        found[name] = (
            lambda X=X, p=params: mercer.KernelPCA(**p).fit(X),
            lambda X=X, p=params: decomposition.KernelPCA(**p).fit(X),
            coordinates,
        )
    for name, X, params in (
        ("SpectralClustering, blobs", blobs, {"n_clusters": 6, "gamma": 0.02}),
        ("SpectralClustering, moons", moons, {"n_clusters": 2, "gamma": 50.0}),
        ("SpectralClustering, neighbours", moons, {"n_clusters": 2, "affinity": "nearest_neighbors"}),
    ):
        found[name] = (
            lambda X=X, p=params: mercer.SpectralClustering(random_state=0, **p).fit(X),
            lambda X=X, p=params: cluster.SpectralClustering(random_state=0, **p).fit(X),
            rand_index,
        )
    found["KernelKMeans 8, linear (KMeans)"] = (
        lambda: mercer.KernelKMeans(8, kernel="linear", random_state=0).fit(normal),
        lambda: cluster.KMeans(8, n_init=10, tol=0, random_state=0).fit(normal),
        lambda a, b: f"{a.inertia_ / b.inertia_:.4f}",
    )
    found["KernelKMeans 8, Gaussian (NumPy)"] = (
        lambda: mercer.KernelKMeans(8, kernel="rbf", gamma=0.05, random_state=0).fit(normal),
        lambda: numpy_kernel_kmeans(normal, 8, 0.05, 10),
        lambda a, b: f"{a.inertia_ / b:.4f}",
    )
    X, Y = normal[:, :8], normal[:, 4:14] @ rng.normal(size=(10, 10)) + rng.normal(size=(n, 10))
    found["KernelCCA 2, linear (CCA)"] = (
        lambda: mercer.KernelCCA(2, kernel_x="linear", kernel_y="linear", regularization=1e-10).fit(X, Y),
        lambda: cross_decomposition.CCA(2, max_iter=5000).fit(X, Y),
        lambda a, b: correlations(a, b, X, Y),
    )
    return found


def real_cases(
    folder: Path, n: int
) -> dict[str, tuple[Callable[[], Any], Callable[[], Any], Callable[[Any, Any], str]]]:
    """As `cases`, on samples that were measured: letters, satellite images and handwritten digits."""
    found: dict[str, Any] = {}
    for name in ("letter", "satimage", "usps"):
        with np.load(folder / f"{name}.npz", allow_pickle=False) as stored:
            X, y = StandardScaler().fit_transform(stored["X"][:n].astype(np.float64)), stored["y"][:n]
        size, k, gamma = f"{name}, {len(X):,} × {X.shape[1]}", len(np.unique(y)), 1.0 / X.shape[1]
        params = {"n_components": 10, "kernel": "rbf", "gamma": gamma, "random_state": 0}
        found[f"KernelPCA 10, {size}"] = (
            lambda X=X, p=params: mercer.KernelPCA(**p).fit(X),
            lambda X=X, p=params: decomposition.KernelPCA(**p).fit(X),
            coordinates,
        )
        for affinity in ("rbf", "nearest_neighbors"):
            graph = {"n_clusters": k, "affinity": affinity, "gamma": gamma, "random_state": 0}
            found[f"SpectralClustering {k}, {affinity}, {size}"] = (
                lambda X=X, p=graph: mercer.SpectralClustering(**p).fit(X),
                lambda X=X, p=graph: cluster.SpectralClustering(**p).fit(X),
                lambda a, b, y=y: f"{rand_index(a, b)}, {classes_of(a, y)} and {classes_of(b, y)}",
            )
        found[f"KernelKMeans {k}, linear (KMeans), {size}"] = (
            lambda X=X, k=k: mercer.KernelKMeans(k, kernel="linear", random_state=0).fit(X),
            lambda X=X, k=k: cluster.KMeans(k, n_init=10, tol=0, random_state=0).fit(X),
            lambda a, b, y=y: f"{a.inertia_ / b.inertia_:.4f}, {classes_of(a, y)} and {classes_of(b, y)}",
        )
        left, right = np.array_split(X, 2, axis=1)
        found[f"KernelCCA 2, linear (CCA), halves of {size}"] = (
            lambda A=left, B=right: mercer.KernelCCA(2, kernel_x="linear", kernel_y="linear", regularization=1e-10).fit(
                A, B
            ),
            lambda A=left, B=right: cross_decomposition.CCA(2, max_iter=5000).fit(A, B),
            lambda a, b, A=left, B=right: correlations(a, b, A, B),
        )
    return found


def classes_of(model: Any, y: np.ndarray) -> str:
    """The adjusted Rand index between the clusters and the known classes."""
    return f"classes {adjusted_rand_score(y, model.labels_):.3f}"


def correlations(ours: Any, theirs: Any, X: np.ndarray, Y: np.ndarray) -> str:
    """The largest difference of the first two correlations."""
    return f"{max(abs(ours.correlations_[j] - correlation(theirs, X, Y, j)) for j in range(2)):.0e}"


def correlation(model: Any, X: np.ndarray, Y: np.ndarray, j: int) -> float:
    a, b = model.transform(X, Y)
    return float(np.corrcoef(a[:, j], b[:, j])[0, 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=5000, help="number of samples")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path, help="folder of the data sets; without it generated samples only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"n = {options.n:,}\n\n| method | mercer, s | other, s | ratio | agree |\n|---|---|---|---|---|", flush=True)
    jobs = cases(options.n) | (real_cases(options.data, options.n) if options.data else {})
    for name, (ours, theirs, compare) in jobs.items():
        a, b, found, other = in_turns(ours, theirs, options.repeats)
        print(f"| {name} | {a:.2f} | {b:.2f} | {b / a:.1f} | {compare(found, other)} |", flush=True)


if __name__ == "__main__":
    main()
