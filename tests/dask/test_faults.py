"""A worker that is lost during a fit costs time, not the model."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from tests.dask.clusters import cluster, within

import mercer
from mercer.parts.layout import Held, LocalParts

da = pytest.importorskip("dask.array")
mercer_dask = pytest.importorskip("mercer.dask")
ClusterParts = pytest.importorskip("mercer.dask.cluster_parts").ClusterParts


def slow_rows(block, seconds):
    time.sleep(seconds)
    return block


def kill_later(client, seconds):
    """Kill the process of one worker after some seconds."""
    (process, *_) = client.run(os.getpid).values()

    def kill():
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


def count_up(part, step):
    """A pass that depends on all passes before."""
    part.state = (part.state or 0.0) * 2.0 + step
    return part.state, float(part.block().X.sum())


@pytest.mark.slow
def test_the_state_of_a_lost_worker_is_computed_again():
    """After a kill between two passes the next one gives what it gives without: all passes were repeated."""
    X = np.arange(40.0).reshape(20, 2)
    chunks = [Held(X[k : k + 5], np.ones(5)) for k in range(0, 20, 5)]
    expected = LocalParts(chunks)
    wanted = [expected.map(count_up, step) for step in (1.0, 2.0, 3.0)]
    with cluster(processes=True) as client:
        loaders = [client.submit(Held, chunk.X, chunk.y, pure=False) for chunk in chunks]
        parts = ClusterParts(client, loaders, [5] * 4)
        assert len(parts.groups) == 2
        assert [parts.map(count_up, step) for step in (1.0, 2.0)] == wanted[:2]
        kill_later(client, 0.0).join()
        assert within(90, lambda: parts.map(count_up, 3.0)) == wanted[2]
        assert parts.total(count_up, 0.0) == expected.total(count_up, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "after"), [("hinge", 1.5), ("squared_hinge", 0.05)])
def test_a_killed_worker_is_replaced(loss, after):
    """Its rows and passes are computed again, by a new worker or the other one; the model is the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))
    y = X[:, 0] + 0.5 * rng.normal(size=len(X)) > 0
    expected = mercer.LinearSVC(loss=loss, tol=1e-6).fit(X, y)
    with cluster(processes=True) as client:
        dX = da.from_array(X, chunks=(5000, 10)).map_blocks(slow_rows, seconds=0.05, dtype=X.dtype)
        model = mercer_dask.LinearSVC(loss=loss, tol=1e-6, client=client)
        killer = kill_later(client, after)
        within(90, lambda: model.fit(dX, da.from_array(y, chunks=5000)))
        killer.join()
        assert model.certificate_.relative_gap <= 1e-6
        assert np.abs(model.coef_ - expected.coef_).max() <= np.sqrt(8e-6 * expected.certificate_.primal)
