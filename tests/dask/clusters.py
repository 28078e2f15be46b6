"""Local clusters for tests, and a limit of time for each test: nothing may hang."""

import contextlib
import faulthandler
import threading
import warnings

import pytest

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


# workers in this process: its memory says nothing of theirs
NEVER = {f"distributed.worker.memory.{name}": False for name in ("target", "spill", "pause", "terminate")}


@contextlib.contextmanager
def cluster(**options):
    """A client of two workers with one thread each."""
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "processes": False} | options
    with (
        warnings.catch_warnings(),
        dask.config.set(NEVER if "memory_limit" in options else {}),
        distributed.LocalCluster(**settings, silence_logs=50) as local,
        distributed.Client(local) as client,
    ):
        # distributed's own warnings, of ports and of large graphs
        warnings.filterwarnings("ignore", module="distributed")
        yield client


@contextlib.contextmanager
def uneven_cluster(memory_limits):
    """A client of workers in this process, one for each limit of memory in bytes."""
    scheduler = {"cls": distributed.Scheduler, "options": {"protocol": "inproc://", "dashboard_address": ":0"}}
    workers = {
        k: {"cls": distributed.Worker, "options": {"nthreads": 1, "memory_limit": limit, "dashboard": False}}
        for k, limit in enumerate(memory_limits)
    }
    with (
        warnings.catch_warnings(),
        dask.config.set(NEVER),
        distributed.SpecCluster(workers=workers, scheduler=scheduler, silence_logs=50) as uneven,
        distributed.Client(uneven) as client,
    ):
        warnings.filterwarnings("ignore", module="distributed")
        yield client


def within(seconds, function):
    """Run in a thread and fail if it has not ended in time; returns its result or raises its error."""
    found = {}

    def run():
        try:
            found["result"] = function()
        except BaseException as error:
            found["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        faulthandler.dump_traceback()
        pytest.fail(f"has not ended after {seconds} seconds")
    if "error" in found:
        raise found["error"]
    return found["result"]
