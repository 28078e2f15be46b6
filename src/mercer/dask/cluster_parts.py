"""Rows in parts on the workers of a cluster.

The parts of a worker are one `LocalParts`, the *group*: a dask actor, which keeps the vectors of its rows from pass to
pass. A pass is one message to each group and one reply instead of a chain of tasks: a tenth of the time on a small
cluster.

Dask does not compute an actor again when its worker dies. The client keeps the calls that lead to the present state,
from the last call that begins a problem: functions by name, models, numbers, and the samples that were sent to the
groups. If a group is lost, dask computes its rows again on another worker. There the group is made anew and repeats
these calls in their order.
"""

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Future, KilledWorker, get_worker, wait
from distributed.client import CancelledError

from mercer._compiled.blas import one_blas_thread
from mercer.exceptions import ClusterError
from mercer.gram.memory import available_bytes
from mercer.parts.layout import NO_LIMIT, Held, Layout, Loader, LocalParts, Parts, Reads, added

# seconds between two checks of the cluster, and between two checks of the groups, while results are awaited
LOOK, GLANCE = 2.0, 0.2
# seconds without any worker after which a fit ends
WITHOUT_WORKERS = 60.0
# where rows are computed in each pass, functions keep some of them: up to this share of the worker's memory, less this
# many numbers per row
BUDGET, VECTORS = 0.4, 20
# a group that is lost more often during one pass is given up
LOSSES = 3


class Call(NamedTuple):
    """One pass: ``how`` is map or total."""

    how: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    reads: Reads

    def on(self, parts: LocalParts) -> Any:
        """The result for these parts."""
        return getattr(parts, self.how)(self.function, *self.args, reads=self.reads)

    def has(self, mark: str) -> bool:
        """Whether the function was marked by `keeps_state` or `sets_state`."""
        if mark == "keeps_state" and getattr(self.function, "runs_another", False):
            return bool(getattr(self.args[0], mark, False))
        return bool(getattr(self.function, mark, False))


# makes the loader of a part from its index, its source and the number of its rows
Make = Callable[[int, Any, int], Loader]


class Traffic(NamedTuple):
    """The number of some passes, and the bytes that they exchanged."""

    passes: int
    bytes: int


class Failure(NamedTuple):
    """An error that a pass has raised on a worker; errors of the connection are raised by dask."""

    error: Exception


def itself(index: int, source: Any, n: int) -> Loader:
    """Return the source, which is a loader itself."""
    loader: Loader = source
    return loader


class Group:
    """The parts of one worker, an actor. It counts its passes, so that none is run twice or left out."""

    def __init__(self, sources: list[Any], indices: list[int], sizes: list[int], make: Make, passes: int) -> None:
        worker = get_worker()
        own = sum(sizes)
        loaders = [make(*source) for source in zip(indices, sources, sizes, strict=True)]
        # rows in memory belong to dask's collections; others exceed it, and the samples of a central path go first
        limit = worker.memory_manager.memory_limit
        held = limit is None or all(isinstance(loader, Held) for loader in loaders)
        budget = NO_LIMIT if held else max(0, int(BUDGET * limit) - VECTORS * 8 * own)
        self.parts = LocalParts(loaders, worker.state.nthreads, budget, indices, keep_parts=held)
        self.passes = passes
        self.last: Any = None

    def run(self, first: int, calls: list[Call], question: Call | None) -> Any:
        """Run the calls, numbered from ``first`` on, except those that are done; return the result of the last one.

        A question is answered afterwards. It does not change the state and is not counted.
        """
        try:
            if first > self.passes:
                raise ClusterError(f"A worker was asked for pass {first} of a fit after {self.passes}. Fit again.")
            with one_blas_thread(), np.errstate(all="ignore"):
                for call in calls[self.passes - first :]:
                    self.last = call.on(self.parts)
                    self.passes += 1
                if question is not None:
                    return question.on(self.parts)
        except Exception as error:
            return Failure(_picklable(error))
        return self.last


class ClusterParts(Parts):
    """Parts on the workers of a cluster.

    Parameters
    ----------
    client : the client of the cluster.
    sources : a future for each part.
    sizes : the number of rows of each part.
    where : the worker that holds each part and keeps it; "" if it is not known.
    make : makes the loader of a part from its index, its source and the number of its rows; the sources themselves are
        loaders by default.
    without_workers : seconds to wait for a worker if there is none.

    Attributes
    ----------
    passes : the number of passes.
    traffic : for each function the number of its passes, and the bytes of their arguments and results.
    """

    # 8 MB: to send more takes longer than the pass that a better start saves
    sample_numbers = 1 << 20
    # 16 MB: to send them takes as long as twelve passes
    path_numbers = 1 << 21
    # whether the rows exceed the memory of the workers
    computed_again = False

    def __init__(
        self,
        client: Client,
        sources: Sequence[Future],
        sizes: Sequence[int],
        where: Sequence[str],
        make: Make = itself,
        without_workers: float = WITHOUT_WORKERS,
    ) -> None:
        self.client, self.without_workers = client, without_workers
        self.n = int(sum(sizes))
        self.budget = available_bytes() // 2
        self.passes = 0
        self.traffic: dict[str, Traffic] = {}
        # the calls that a new group repeats, and the number of the first call
        self.calls: list[Call] = []
        self.first = 0
        groups: dict[str, list[int]] = {}
        for index, address in enumerate(where):
            if sizes[index]:
                groups.setdefault(address, []).append(index)
        self.sources, self.sizes, self.make = list(sources), list(sizes), make
        self.members = list(groups.values())
        self.groups = [self._submit(members, address) for address, members in groups.items()]
        self.actors = self._all_actors()

    def map(self, function: Callable[..., Any], *args: Any, reads: Reads = True) -> list[Any]:
        """function(part, *args) of each part, on its worker."""
        found: dict[int, Any] = {}
        for members, results in zip(self.members, self._advance(Call("map", function, args, reads)), strict=True):
            found.update(zip(members, results, strict=True))
        return [found[index] for index in sorted(found)]

    def total(self, function: Callable[..., Any], *args: Any, reads: Reads = True) -> tuple[Any, ...]:
        """The sums; each worker adds those of its own parts."""
        return added(self._advance(Call("total", function, args, reads)))

    def layout(self) -> Layout:
        """The parts of all workers."""
        n_parts = sum(len(members) for members in self.members)
        return Layout(n_parts, 0 if self.computed_again else n_parts, len(self.members), 0, 1)

    def _submit(self, members: list[int], address: str) -> Future:
        """Make the group of these parts, on this worker if it is alive."""
        at = {"workers": [address], "allow_other_workers": True} if address else {}
        own, sizes = [self.sources[index] for index in members], [self.sizes[index] for index in members]
        return self.client.submit(Group, own, members, sizes, self.make, self.first, actor=True, pure=False, **at)

    def _all_actors(self) -> list[Any]:
        """The actors of all groups, from one question to the scheduler."""
        try:
            return gather(self.client, self.groups, self.without_workers)
        except RuntimeError as error:
            if not _is_lost(error):
                raise
        return [self._actor(k) for k in range(len(self.groups))]

    def _actor(self, k: int) -> Any:
        """The actor of a group; if it is lost at once, another one."""
        for _ in range(LOSSES + 1):
            try:
                return gather(self.client, [self.groups[k]], self.without_workers)[0]
            except RuntimeError as error:
                if not _is_lost(error):
                    raise
                self.groups[k] = self._submit(self.members[k], "")
        raise _given_up(LOSSES + 1)

    def _advance(self, call: Call) -> list[Any]:
        """One pass: the result of each group."""
        question = call if call.has("keeps_state") else None
        done = self.first + len(self.calls)
        if question is None:
            # a solver may change its vectors in place, but a repeated call needs the original vectors
            call = call._replace(args=copy.deepcopy(call.args))
            if call.has("sets_state"):
                self.first, self.calls = done, []
            self.calls.append(call)
        replies = [self._ask(k, done, [] if question else [call], question) for k in range(len(self.groups))]
        found = [self._result(k, reply, question) for k, reply in enumerate(replies)]
        self.passes += 1
        name = getattr(call.function, "__name__", "other")
        before = self.traffic.get(name, Traffic(0, 0))
        self.traffic[name] = Traffic(before.passes + 1, before.bytes + _size(found) + len(found) * _size(call.args))
        return found

    def _ask(self, k: int, first: int, calls: list[Call], question: Call | None) -> Any:
        """Send calls to a group; None if it is lost."""
        try:
            return self.actors[k].run(first, calls, question)
        except RuntimeError:
            return None

    def _result(self, k: int, reply: Any, question: Call | None) -> Any:
        """The result of a group; if it is lost, that of the group that replaces it."""
        for _ in range(LOSSES + 1):
            try:
                if reply is not None:
                    result = self._awaited(k, reply)
                    if isinstance(result, Failure):
                        raise result.error
                    return result
            except _LostError:
                pass
            self.groups[k] = self._submit(self.members[k], "")
            self.actors[k] = self._actor(k)
            reply = self._ask(k, self.first, self.calls, question)
        raise _given_up(LOSSES + 1)

    def _awaited(self, k: int, reply: Any) -> Any:
        """Wait for a reply; raises `_LostError` if the group is lost."""
        watch = Watch(self.client, self.without_workers)
        while True:
            try:
                return reply.result(timeout=GLANCE)
            except TimeoutError:
                # a connection that was refused is tried for 30 seconds: dask knows earlier that the worker is lost
                if self.groups[k].status != "finished":
                    raise _LostError from None
                watch.look()
            except OSError:
                raise _LostError from None


class _LostError(Exception):
    """A group was lost with its worker."""


class Watch:
    """Checks a cluster from time to time; raises if it has lost its scheduler or, for some time, all workers."""

    def __init__(self, client: Client, without_workers: float) -> None:
        self.client, self.without_workers = client, without_workers
        self.last_look = self.last_seen = time.monotonic()

    def look(self) -> None:
        """Check the cluster, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self.last_look < min(LOOK, self.without_workers):
            return
        self.last_look = now
        if self.client.status not in ("running", "connecting"):
            raise ClusterError(
                f"The client is {self.client.status}: the fit has lost its scheduler. Connect and fit again."
            )
        if self.client.nthreads():
            self.last_seen = now
        elif now - self.last_seen >= self.without_workers:
            raise ClusterError(
                f"The cluster has had no worker for {self.without_workers:g} seconds: the fit ends. Start workers, and "
                "fit again."
            )


def gather(client: Client, futures: Sequence[Future], without_workers: float = WITHOUT_WORKERS) -> list[Any]:
    """The results. Raises `ClusterError` if workers were lost for good, instead of waiting for ever."""
    wait_for(client, futures, without_workers)
    try:
        return list(client.gather(list(futures)))
    except KilledWorker as error:
        raise _given_up(error.allowed_failures + 1) from error
    except (CancelledError, TimeoutError) as error:
        raise ClusterError(
            f"The rows of the fit were lost with their worker and cannot be computed again ({error}). Give collections "
            "that dask can compute again (from files, say) instead of scattered data, or fit again."
        ) from error


def wait_for(client: Client, futures: Sequence[Future], without_workers: float = WITHOUT_WORKERS) -> None:
    """Wait until all futures have ended; check the cluster from time to time."""
    if client.asynchronous:
        raise ClusterError("The client is asynchronous: give fit a client made with asynchronous=False.")
    watch = Watch(client, without_workers)
    while True:
        try:
            wait(list(futures), timeout=min(LOOK, max(0.1, without_workers)))
            return
        except TimeoutError:
            watch.look()
        except CancelledError:
            return  # `gather` raises the error that says why


def _is_lost(error: RuntimeError) -> bool:
    """Whether dask says that an actor was lost."""
    return "Actor" in str(error) and not isinstance(error, ClusterError)


def _given_up(n_workers: int) -> ClusterError:
    return ClusterError(
        f"A part of the fit was given up because {n_workers} workers died while they computed it: "
        "the memory of a worker may be too small for its rows. Use more workers, or more memory for each."
    )


def _picklable(error: Exception) -> Exception:
    """The error, or its text if it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _size(result: Any) -> int:
    """The bytes of the arrays in a result; 8 for any number."""
    if isinstance(result, np.ndarray):
        return int(result.nbytes)
    if isinstance(result, list | tuple):
        return sum(map(_size, result))
    return 8
