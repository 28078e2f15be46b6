"""Linear machines on a local cluster of two processes against the fit of the same rows in one process.

    PYTHONPATH=src python benchmarks/dask_cluster.py 1000000 --columns 20 --repeats 5
    PYTHONPATH=src python benchmarks/dask_cluster.py 10000000 --columns 50 --lazy --memory 1.5GB

The first command prints for each loss the seconds of both, their ratio, the passes over the parts, and the bytes that a
pass exchanges. Fits alternate and the fastest of each kind counts, since others may use the machine; the first fit of
each kind is not counted: it compiles loops or loads compiled ones. The rows are generated on the workers; bringing them
together for the local fit is not counted either.

``--lazy`` neither persists the rows nor fits them in one process. With workers whose ``--memory`` is too small for the
rows, these are generated again in each pass. It prints the seconds and the peak memory of each worker beside the bytes
of its rows.

The name is not dask.py: a script's folder comes first where Python looks for modules, so this would hide dask itself.
"""

from __future__ import annotations

import argparse
import resource
import time

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import mercer
import mercer.dask

LOSSES = ("squared_hinge", "hinge")
# passes that bring samples or distances of rows to the client, once or twice per fit
ONCE = ("sample_rows", "classify", "free_samples", "end_path_with")


def rows(n, d, n_parts, seed=0):
    """Two classes with an overlap, generated part by part."""
    random = da.random.default_rng(seed)
    X = random.normal(size=(n, d), chunks=(-(-n // n_parts), d))
    noise = random.normal(size=n, chunks=X.chunks[0])
    w = np.random.default_rng(seed).normal(size=d) / np.sqrt(d)
    return X, (X @ w + 0.3 * noise > 0).astype(int)


def seconds(*functions, repeats):
    """The least seconds of each function and their last results. They alternate, and the first run does not count."""
    found = np.empty((repeats + 1, len(functions)))
    results = [None] * len(functions)
    for repeat in range(repeats + 1):
        for k, function in enumerate(functions):
            begin = time.perf_counter()
            results[k] = function()
            found[repeat, k] = time.perf_counter() - begin
    return found[1:].min(axis=0), results


def peak_megabytes():
    """The largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def exchanged(model):
    """(passes, bytes of the largest step of each group, bytes that came once)."""
    steps = [traffic for name, traffic in model._traffic.items() if name not in ONCE]
    once = sum(traffic.bytes for name, traffic in model._traffic.items() if name in ONCE)
    return model._passes, max(traffic.bytes / traffic.passes for traffic in steps), once


def against_local(client, options):
    """Print both times."""
    X, y = client.persist(rows(options.n, options.columns, options.parts))
    wait([X, y])
    X_local, y_local = X.compute(), y.compute()
    print(
        "loss            local s   dask s   ratio   passes   bytes of a step   sample, distances   primal / local - 1"
    )
    for loss in options.losses:
        (local, remote), (expected, model) = seconds(
            lambda loss=loss: mercer.LinearSVC(loss=loss, n_jobs=options.workers).fit(X_local, y_local),
            lambda loss=loss: mercer.dask.LinearSVC(loss=loss).fit(X, y),
            repeats=options.repeats,
        )
        excess = model.certificate_.primal / expected.certificate_.primal - 1
        passes, step, once = exchanged(model)
        print(
            f"{loss:<15} {local:7.2f} {remote:8.2f} {remote / local:7.2f} {passes:8d} {step:17.0f} {once:19d} "
            f"{excess:16.1e}"
        )
    print("peak MB of the workers:", *(f"{peak:.0f}" for peak in client.run(peak_megabytes).values()))


def lazily(client, options):
    """Print the time and the memory of fits whose rows are generated in each pass."""
    X, y = rows(options.n, options.columns, options.parts)
    small = rows(20_000, options.columns, options.parts)
    print(f"rows: {X.nbytes / 2**20:.0f} MB, a part {X.nbytes / 2**20 / options.parts:.0f} MB")
    print("loss             dask s   passes   bytes of a step   relative gap   peak MB of the workers (before)")
    for loss in options.losses:
        mercer.dask.LinearSVC(loss=loss).fit(*small)
        before = list(client.run(peak_megabytes).values())
        begin = time.perf_counter()
        model = mercer.dask.LinearSVC(loss=loss).fit(X, y)
        taken = time.perf_counter() - begin
        passes, step, _ = exchanged(model)
        peaks = zip(client.run(peak_megabytes).values(), before, strict=True)
        print(
            f"{loss:<15} {taken:7.1f} {passes:8d} {step:17.0f} {model.certificate_.relative_gap:14.1e}  ",
            *(f"{peak:.0f} ({earlier:.0f})" for peak, earlier in peaks),
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", type=int, help="rows")
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--parts", type=int, default=0, help="2 for each worker by default, 20 with --lazy")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory", default="auto", help="of a worker, such as 1.5GB")
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=LOSSES)
    parser.add_argument("--lazy", action="store_true", help="generate the rows in each pass")
    options = parser.parse_args()
    options.parts = options.parts or options.workers * (20 if options.lazy else 2)
    with (
        LocalCluster(
            n_workers=options.workers, threads_per_worker=1, memory_limit=options.memory, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        print(f"{options.n} × {options.columns}, {options.parts} parts, {options.workers} workers of one thread")
        (lazily if options.lazy else against_local)(client, options)


if __name__ == "__main__":
    main()
