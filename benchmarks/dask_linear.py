"""Linear machines on a local cluster of two processes against the fit of the same rows in one process.

    PYTHONPATH=src python benchmarks/dask_linear.py 200000 --columns 20 --repeats 3

prints for each loss the seconds of both, their ratio, the passes over the parts, and the bytes that each pass has
brought to the client. The first fit of each kind is not counted: it compiles, or loads what was compiled. The rows are
generated on the workers; bringing them together for the local fit is not counted either.
"""

from __future__ import annotations

import argparse
import time

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import mercer
import mercer.dask


def rows(n, d, n_parts, seed=0):
    """Two classes with an overlap, generated part by part."""
    random = da.random.default_rng(seed)
    X = random.normal(size=(n, d), chunks=(-(-n // n_parts), d))
    noise = random.normal(size=n, chunks=X.chunks[0])
    w = np.random.default_rng(seed).normal(size=d) / np.sqrt(d)
    return X, (X @ w + 0.3 * noise > 0).astype(int)


def seconds(function, repeats):
    """The median over repeats, after one run that is not counted."""
    found = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        result = function()
        found.append(time.perf_counter() - begin)
    return float(np.median(found[1:])), result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", type=int, help="rows")
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with (
        LocalCluster(n_workers=options.workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        X, y = client.persist(rows(options.n, options.columns, options.parts))
        wait([X, y])
        X_local, y_local = X.compute(), y.compute()
        print(f"{options.n} × {options.columns}, {options.parts} parts, {options.workers} workers of one thread")
        print("loss            local s   dask s   ratio   passes   bytes per pass   primal, dask / local − 1")
        for loss in ("squared_hinge", "hinge"):
            local, expected = seconds(
                lambda loss=loss: mercer.LinearSVC(loss=loss, n_jobs=options.workers).fit(X_local, y_local),
                options.repeats,
            )
            remote, model = seconds(lambda loss=loss: mercer.dask.LinearSVC(loss=loss).fit(X, y), options.repeats)
            excess = model.certificate_.primal / expected.certificate_.primal - 1
            passes, received = model._passes, model._bytes_received
            print(
                f"{loss:<15} {local:7.2f} {remote:8.2f} {remote / local:7.2f} {passes:8d} "
                f"{received / passes:16.0f} {excess:12.1e}"
            )


if __name__ == "__main__":
    main()
