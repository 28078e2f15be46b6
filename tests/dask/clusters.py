"""Local clusters for tests, and a limit of time for each test: nothing may hang."""

import contextlib
import faulthandler
import threading
import warnings

import pytest

distributed = pytest.importorskip("distributed")


@contextlib.contextmanager
def cluster(**options):
    """A client of two workers with one thread each."""
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "processes": False} | options
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(**settings, silence_logs=50) as local,
        distributed.Client(local) as client,
    ):
        # distributed's own warnings, of ports and of large graphs
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
