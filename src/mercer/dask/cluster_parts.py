"""Rows in parts on the workers of a cluster.

The parts of a worker are one `LocalParts`, the *group*, and a pass is one task for each group: a function of the last
state of the group, which returns the next state and a result. A state is a future; only results come to the client.
If a worker is lost, dask computes the group again from its rows on another worker, by the same tasks in the same order.

A task edits the vectors of its group in place, since a group has one next state only. The count of passes tells if that
ever fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Future, KilledWorker, get_worker, wait
from distributed.client import FutureCancelledError

from mercer._compiled.blas import one_blas_thread
from mercer.exceptions import ClusterError
from mercer.gram.memory import available_bytes
from mercer.parts.layout import Loader, LocalParts, Parts, added

# seconds between two looks at the cluster while results are awaited
LOOK = 2.0
# seconds without any worker after which a fit ends
WITHOUT_WORKERS = 60.0


class Group(NamedTuple):
    """The state of a worker's parts after some passes, and the result of the last one."""

    parts: LocalParts
    passes: int
    result: Any


class ClusterParts(Parts):
    """Parts on the workers of a cluster.

    Parameters
    ----------
    client : the client of the cluster.
    loaders : futures of loaders; their workers are where the parts stay.
    sizes : the number of rows of each.
    without_workers : seconds to wait for a worker if there is none.
    """

    def __init__(
        self,
        client: Client,
        loaders: Sequence[Future],
        sizes: Sequence[int],
        without_workers: float = WITHOUT_WORKERS,
    ) -> None:
        self.client, self.without_workers = client, without_workers
        self.n = int(sum(sizes))
        self.budget = available_bytes() // 2
        # what has come back to the client, in bytes, and the number of passes
        self.received = self.passes = 0
        wait_for(client, loaders, without_workers)
        where = client.who_has(loaders)
        groups: dict[str, list[int]] = {}
        for index, loader in enumerate(loaders):
            if sizes[index]:
                workers = sorted(where.get(loader.key) or ("",))
                groups.setdefault(workers[0], []).append(index)
        self.workers = [[address] if address else None for address in groups]
        self.members = list(groups.values())
        self.states = [
            client.submit(_begin, [loaders[index] for index in members], members, pure=False, **_at(address))
            for address, members in zip(self.workers, self.members, strict=True)
        ]

    def map(self, function: Callable[..., Any], *args: Any, reads: bool = True) -> list[Any]:
        """function(part, *args) of each part, on its worker."""
        found: dict[int, Any] = {}
        for members, results in zip(self.members, self._advance("map", function, args, reads), strict=True):
            found.update(zip(members, results, strict=True))
        return [found[index] for index in sorted(found)]

    def total(self, function: Callable[..., Any], *args: Any, reads: bool = True) -> tuple[Any, ...]:
        """The sums; each worker adds those of its own parts."""
        return added(self._advance("total", function, args, reads))

    def _advance(self, how: str, function: Callable[..., Any], args: tuple[Any, ...], reads: bool) -> list[Any]:
        """One pass: replace all states by the next ones, and return the result of each group."""
        pairs = list(zip(self.states, self.workers, strict=True))
        submit = self.client.submit
        states = [
            submit(_next, state, self.passes, how, function, args, reads, pure=False, **_at(address))
            for state, address in pairs
        ]
        results = [
            submit(_result, state, pure=False, **_at(address))
            for state, address in zip(states, self.workers, strict=True)
        ]
        # the last states are released: dask keeps how they were computed as long as later ones need it
        self.states = states
        self.passes += 1
        found = gather(self.client, results, self.without_workers)
        self.received += sum(_size(result) for result in found)
        return found


def gather(client: Client, futures: Sequence[Future], without_workers: float = WITHOUT_WORKERS) -> list[Any]:
    """The results. Raises `ClusterError` if workers were lost for good, instead of waiting for ever."""
    wait_for(client, futures, without_workers)
    try:
        return list(client.gather(list(futures)))
    except KilledWorker as error:
        raise ClusterError(
            f"A part of the fit was given up because {error.allowed_failures + 1} workers died while they computed it: "
            "the memory of a worker may be too small for its rows. Use more workers, or more memory for each."
        ) from error
    except (FutureCancelledError, TimeoutError) as error:
        raise ClusterError(
            f"The rows of the fit were lost with their worker and cannot be computed again ({error}). Give collections "
            "that dask can compute again (from files, say) instead of scattered data, or fit again."
        ) from error


def wait_for(client: Client, futures: Sequence[Future], without_workers: float = WITHOUT_WORKERS) -> None:
    """Wait until all have ended; look at the cluster from time to time."""
    if client.asynchronous:
        raise ClusterError("The client is asynchronous: give fit a client made with asynchronous=False.")
    last_seen = time.monotonic()
    while True:
        try:
            wait(list(futures), timeout=min(LOOK, max(0.1, without_workers)))
            return
        except TimeoutError:
            pass
        except FutureCancelledError:
            return  # gather says why
        if client.status not in ("running", "connecting"):
            raise ClusterError(f"The client is {client.status}: the fit has lost its scheduler. Connect and fit again.")
        now = time.monotonic()
        if client.nthreads():
            last_seen = now
        elif now - last_seen >= without_workers:
            raise ClusterError(
                f"The cluster has had no worker for {without_workers:g} seconds: the fit ends. Start workers, and fit "
                "again."
            )


def _at(workers: list[str] | None) -> dict[str, Any]:
    """The arguments of submit that keep a task with its rows while their worker lives."""
    return {} if workers is None else {"workers": workers, "allow_other_workers": True}


def _begin(loaders: list[Loader], indices: list[int]) -> Group:
    """The first state of a group. Runs on a worker, with its number of threads."""
    return Group(LocalParts(loaders, n_threads=get_worker().state.nthreads, indices=indices), 0, None)


def _next(
    group: Group, passes: int, how: str, function: Callable[..., Any], args: tuple[Any, ...], reads: bool
) -> Group:
    """The next state of a group. Runs on a worker; edits the vectors of the parts."""
    parts = group.parts
    # counted in the parts themselves, which all states of a group share
    done = getattr(parts, "passes", 0)
    if done != passes:
        raise ClusterError(
            f"A worker was asked for pass {passes} of a fit after {done} passes: the cluster has run a task twice. "
            "Fit again."
        )
    parts.passes = passes + 1  # type: ignore[attr-defined]
    with one_blas_thread(), np.errstate(all="ignore"):
        result = getattr(parts, how)(function, *args, reads=reads)
    return Group(parts, passes + 1, result)


def _result(group: Group) -> Any:
    """The result of a pass."""
    return group.result


def _size(result: Any) -> int:
    """The bytes of the arrays in a result; 8 for any number."""
    if isinstance(result, np.ndarray):
        return int(result.nbytes)
    if isinstance(result, list | tuple):
        return sum(map(_size, result))
    return 8
