"""Kernels on strings and graphs: Gram matrices against plain Python, scikit-learn, GraKeL; 30,000 strings classified.

    python benchmarks/structured.py --data DIR [--parts loops,spectrum,classify,graphs] [--repeats 3]

CPU time of one thread, medians; both sides in one process. Without --data the strings are random DNA.
"""

from __future__ import annotations

import argparse
import lzma
from collections.abc import Callable
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
import structured_graphs
from measure import say
from sklearn.feature_extraction.text import CountVectorizer
from table import digits, table

from mercer import SVC, CommonSubstrings, Kernel, Mismatch, Spectrum, Subsequence, WeightedDegree, Window

# strings of a matrix that plain Python computes
FEW = 6
SOME = 100
MANY = 3000
OPTIONS = ("loops", "spectrum", "classify", "graphs")


def strings(name: str, folder: Path | None, n: int) -> list[str]:
    """The first strings of a set, or random DNA of the same length."""
    if folder is None:
        rng = np.random.default_rng(0)
        return ["".join(row) for row in rng.choice(list("ACGT"), size=(n, 141))]
    with lzma.open(folder / f"{name}.tsv.xz", "rt", encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t")[-1] for line in file][:n]


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """CPU time, the first run not counted."""
    call()
    times = []
    for _ in range(repeats):
        start = process_time()
        call()
        times.append(process_time() - start)
    return median(times)


# ---- as one would write them in Python: with dictionaries and sets, not with loops over places -----------------------


def spectrum(x: str, z: str, k: int) -> float:
    counts: dict[str, int] = {}
    for p in range(len(x) - k + 1):
        counts[x[p : p + k]] = counts.get(x[p : p + k], 0) + 1
    return sum(counts.get(z[p : p + k], 0) for p in range(len(z) - k + 1))


def mismatch(x: str, z: str, k: int) -> float:
    def neighbours(s: str) -> dict[str, int]:
        counts: dict[str, int] = {}
        for p in range(len(s) - k + 1):
            run = s[p : p + k]
            near = {run} | {run[:q] + c + run[q + 1 :] for q, c in product(range(k), "ACGT")}
            for u in near:
                counts[u] = counts.get(u, 0) + 1
        return counts

    mine, other = neighbours(x), neighbours(z)
    return sum(count * other.get(u, 0) for u, count in mine.items())


def common_substrings(x: str, z: str) -> float:
    mine, other = ({s[p:q] for p in range(len(s)) for q in range(p + 1, len(s) + 1)} for s in (x, z))
    return len(mine & other)


def subsequence(x: str, z: str, k: int, decay: float) -> float:
    prefix = [[1.0] * (len(z) + 1) for _ in range(len(x) + 1)]
    for _ in range(k - 1):
        nxt = [[0.0] * (len(z) + 1) for _ in range(len(x) + 1)]
        for p in range(len(x)):
            run = 0.0
            for q in range(len(z)):
                run = decay * run + (decay * decay * prefix[p][q] if x[p] == z[q] else 0.0)
                nxt[p + 1][q + 1] = decay * nxt[p][q + 1] + run
        prefix = nxt
    return sum(decay * decay * prefix[p][q] for p in range(len(x)) for q in range(len(z)) if x[p] == z[q])


def window(x: str, z: str, k: int, mismatch: float) -> float:
    total = 0.0
    for p in range(len(x) - k + 1):
        for q in range(len(z) - k + 1):
            total += mismatch ** sum(a != b for a, b in zip(x[p : p + k], z[q : q + k], strict=True))
    return total


def weighted_degree(x: str, z: str, d: int) -> float:
    total, run = 0.0, 0
    for a, b in zip(x, z, strict=True):
        run = run + 1 if a == b else 0
        total += sum(2 * (d - length + 1) / (d * (d + 1)) for length in range(1, min(run, d) + 1))
    return total


LOOPS: list[tuple[Kernel, Callable[[str, str], float]]] = [
    (Spectrum(5), lambda x, z: spectrum(x, z, 5)),
    (Mismatch(5, 1, "ACGT"), lambda x, z: mismatch(x, z, 5)),
    (CommonSubstrings(), common_substrings),
    (Subsequence(3, 0.5), lambda x, z: subsequence(x, z, 3, 0.5)),
    (Window(5, 0.2), lambda x, z: window(x, z, 5, 0.2)),
    (WeightedDegree(20), lambda x, z: weighted_degree(x, z, 20)),
]


def loops(folder: Path | None, repeats: int) -> str:
    """Gram matrices of strings of 141 characters against double loops in Python."""
    X, Z = strings("celegans_acceptor", folder, FEW), strings("celegans_acceptor", folder, SOME)
    rows = []
    for kernel, pair in LOOPS:
        start = process_time()
        K = np.array([[pair(x, z) for z in X] for x in X])
        plain = (process_time() - start) / FEW**2
        np.testing.assert_allclose(kernel(X), K, rtol=1e-9)
        ours = seconds(lambda kernel=kernel: kernel(Z), repeats) / SOME**2
        rows.append([repr(kernel), digits(1e6 * ours), digits(1e6 * plain), digits(plain / ours)])
        say(f"  {rows[-1]}")
    return table(["kernel", "mercer, µs a pair", "Python, µs a pair", "Python / mercer"], rows)


def counting(folder: Path | None, repeats: int) -> str:
    """Spectra against scikit-learn's CountVectorizer and a product of sparse matrices."""
    rows = []
    for name in ("celegans_acceptor", "sms_spam") if folder else ("random DNA",):
        X = strings(name, folder, MANY)
        for k in (3, 5, 8):
            kernel = Spectrum(k)

            def theirs(k: int = k, X: list[str] = X) -> Any:
                A = CountVectorizer(analyzer="char", ngram_range=(k, k), lowercase=False).fit_transform(X)
                A = A.astype(np.float64)
                return (A @ A.T).toarray()

            # CountVectorizer makes one blank of several, which is not what is compared here
            if name != "sms_spam":
                np.testing.assert_array_equal(kernel(X), theirs())
            times = [seconds(call, repeats) for call in (lambda kernel=kernel, X=X: kernel(X), theirs)]
            rows.append([name, f"{len(X):,}", str(k), *map(digits, times), digits(times[1] / times[0])])
            say(f"  {rows[-1]}")
    return table(["set", "n", "k", "mercer, s", "CountVectorizer, s", "CountVectorizer / mercer"], rows)


def classify(folder: Path | None) -> str:
    """Fit on half of 30,000 strings of DNA, predict the other half: seconds of wall-clock time on all cores."""
    if folder is None:
        return "classify: left out, --data is not given."
    with lzma.open(folder / "celegans_acceptor.tsv.xz", "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    parts = {part: [line for line in lines if line[0] == part] for part in ("train", "test")}
    (X, y), (Z, z) = (([line[2] for line in part], [line[1] for line in part]) for part in parts.values())
    SVC(kernel=WeightedDegree(20)).fit(X[:300], y[:300])  # compiles
    rows = []
    for kernel in (WeightedDegree(20, normalize=True), Spectrum(6, shortest=3, normalize=True)):
        start = perf_counter()
        machine = SVC(kernel=kernel, C=1.0).fit(X, y)
        fitted = perf_counter()
        score = machine.score(Z, z)
        rows.append([repr(kernel), f"{len(X):,} + {len(Z):,}", f"{len(machine.support_):,}"])
        rows[-1] += [digits(fitted - start), digits(perf_counter() - fitted), f"{100 * score:.2f} %"]
        rows[-1].append(f"{machine.certificate_.relative_gap:.1e}")
    return table(
        ["kernel", "train + test", "support vectors", "fit, s", "predict, s", "accuracy", "relative gap"], rows
    )


def main(arguments: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--parts", default=",".join(OPTIONS), help="which of them, separated by commas")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    parts = options.parts.split(",")
    if "loops" in parts:
        print(loops(options.data, options.repeats), end="\n\n", flush=True)
    if "spectrum" in parts:
        print(counting(options.data, options.repeats), end="\n\n", flush=True)
    if "classify" in parts:
        print(classify(options.data), end="\n\n", flush=True)
    if "graphs" in parts:
        print(structured_graphs.run(options.data, options.repeats), flush=True)


if __name__ == "__main__":
    main()
