"""Rows in parts that stay where they are.

A **loader** is a picklable callable with the number of its rows, ``n``. Each call returns ``(X, y, weight)``: X a float
array, a `Csr` or a scipy CSR matrix, y and weight float64. A `Part` is the rows of a loader with vectors that belong to
them. `Parts.map` runs a function where each part is: only the arguments and the results travel.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from mercer._compiled.thread_pool import run_tasks
from mercer.exceptions import InvalidInputError
from mercer.kernels.features import Csr
from mercer.linear.linear_problem import Rows
from mercer.losses.base import Vector

NO_LIMIT = 1 << 62
Function = TypeVar("Function", bound=Callable[..., Any])
Reads = bool | Literal["some"]


class Loader(Protocol):
    """Returns the samples of a part each time it is called."""

    n: int

    def __call__(self) -> tuple[Any, Vector, Vector]:
        """(X, y, weight)."""


class Held:
    """A loader of samples in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.parts.layout import Held, LocalParts
    >>> X, y = np.arange(12.0).reshape(6, 2), np.ones(6)
    >>> parts = LocalParts([Held(X[:4], y[:4]), Held(X[4:], y[4:])])
    >>> parts.map(lambda part: part.block().X.sum(axis=0).tolist())
    [[12.0, 16.0], [18.0, 20.0]]
    """

    def __init__(self, X: Any, y: Vector, weight: Vector | None = None) -> None:
        self.X, self.y, self.n = X, y, int(X.shape[0])
        self.weight = np.ones(self.n) if weight is None else weight

    def __call__(self) -> tuple[Any, Vector, Vector]:
        """(X, y, weight)."""
        return self.X, self.y, self.weight


class Block(NamedTuple):
    """Loaded samples: X as a C-ordered array or a `Csr`, float32 or float64."""

    X: Any
    y: Vector
    weight: Vector


class Budget:
    """Bytes that parts of one process may keep in memory."""

    def __init__(self, limit: int) -> None:
        self.left = int(limit)
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Reserve ``size`` bytes; False if fewer are left."""
        with self._lock:
            fits = size <= self.left
            self.left -= size if fits else 0
            return fits

    def give_back(self, size: int) -> None:
        """End a reservation."""
        with self._lock:
            self.left += size

    def __reduce__(self) -> Any:
        return Budget, (self.left,)


class Part:
    """The rows of a loader, and vectors that stay with them.

    Attributes
    ----------
    index : the position of the loader, for messages and seeds.
    n : the number of rows.
    n_threads : threads that a function may use.
    budget : the bytes that the process may keep in memory.
    work : the bytes for rows that functions compute, such as those of a landmark machine.
    state : whatever functions keep here between calls of `Parts.map`.
    squares : Σ x² of the stored numbers once they were loaded; 0 for float32, whose squares always have a finite sum.
    """

    def __init__(
        self, index: int, loader: Loader, budget: Budget, may_keep: bool = True, work: Budget | None = None
    ) -> None:
        self.index, self.loader, self.budget, self.may_keep = index, loader, budget, may_keep
        self.work = budget if work is None else work
        self.n = int(loader.n)
        self.n_threads = 1
        self.state: Any = None
        self.squares = 0.0
        self._block: Block | None = None
        self._pending: Future[Block] | None = None
        self._keeps = self._checked = False

    def block(self) -> Block:
        """The samples: from memory if they were kept or read ahead, else from the loader."""
        if self._block is None:
            pending, self._pending = self._pending, None
            self._block = self._load() if pending is None else pending.result()
            self._keeps = self._keeps or (self.may_keep and self.budget.take(nbytes(self._block.X)))
        return self._block

    def read_ahead(self, reader: ThreadPoolExecutor) -> None:
        """Begin to load in another thread, unless the samples are there."""
        if self._block is None and self._pending is None:
            self._pending = reader.submit(self._load)

    def release(self) -> None:
        """Forget the samples, unless they fit into the budget."""
        if not self._keeps:
            self._block = None

    @property
    def in_memory(self) -> bool:
        """Whether the samples are kept."""
        return self._keeps and self._block is not None

    def _load(self) -> Block:
        X, y, weight = self.loader()
        block = Block(Rows.of(X).X, np.asarray(y, dtype=np.float64), np.asarray(weight, dtype=np.float64))
        if not self._checked:
            self._check(block)
            self._checked = True
        return block

    def _check(self, block: Block) -> None:
        """Raise for wrong lengths, NaN and infinite numbers, named by part and row."""
        lengths = block.X.shape[0], len(block.y), len(block.weight)
        if set(lengths) != {self.n}:
            raise InvalidInputError(
                f"Part {self.index} has {lengths[0]} rows of X, {lengths[1]} targets and {lengths[2]} weights, but "
                f"{self.n} rows were announced. Give X, y and sample_weight in parts of the same rows."
            )
        stored = block.X.data if isinstance(block.X, Csr) else block.X
        for name, values in (("X", stored), ("y", block.y), ("sample_weight", block.weight)):
            total = float(np.sum(values, dtype=np.float64)) if values.dtype != np.float64 else _squared(values)
            if name == "X":
                self.squares = total if values.dtype == np.float64 else 0.0
            if np.isfinite(total):
                continue
            wrong = np.argwhere(~np.isfinite(values))
            if not len(wrong):
                continue  # the sum has overflowed
            value, row = values[tuple(wrong[0])], int(wrong[0, 0])
            if name == "X" and isinstance(block.X, Csr):
                row = int(np.searchsorted(block.X.indptr, row, side="right")) - 1
            column = f", column {wrong[0, 1]}" if wrong.shape[1] > 1 else ""
            raise InvalidInputError(
                f"{name} contains {value} in part {self.index}, row {row}{column} (both counted from 0). "
                "Impute or remove such rows."
            )
        if len(block.weight) and float(block.weight.min()) < 0:
            row = int(np.argmin(block.weight))
            raise InvalidInputError(
                f"sample_weight is {block.weight[row]:g} in part {self.index}, row {row}: weights must be at least 0."
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pending": None}


def _squared(values: Any) -> float:
    """Σ x²: finite numbers have a finite sum of squares, unless that overflows."""
    flat = values.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        return float(flat @ flat)


def nbytes(X: Any) -> int:
    """Bytes of an array or a `Csr`; 0 for a memory map, whose pages the system reads and drops."""
    if isinstance(X, Csr):
        return int(X.indptr.nbytes + X.indices.nbytes + X.data.nbytes)
    return 0 if isinstance(X, np.memmap) else int(X.nbytes)


def keeps_state(function: Function) -> Function:
    """Mark a function that does not change ``part.state``: it is not repeated when a lost part is made again."""
    function.keeps_state = True  # type: ignore[attr-defined]
    return function


def sets_state(function: Function) -> Function:
    """Mark a function whose ``part.state`` follows from its arguments: earlier functions need not be repeated."""
    function.sets_state = True  # type: ignore[attr-defined]
    return function


def runs_another(function: Function) -> Function:
    """Mark a function that runs its first argument: this argument decides whether ``part.state`` is kept."""
    function.runs_another = True  # type: ignore[attr-defined]
    return function


class Layout(NamedTuple):
    """Where the parts are. The fields are those of `PartsPlan` with the same names."""

    n_parts: int
    n_kept: int
    n_workers: int
    memory: int
    n_threads: int


class Parts(ABC):
    """Rows in parts. Empty parts are left out.

    Attributes
    ----------
    n : the number of rows of all parts.
    budget : bytes that the process of the caller may use for copies.
    work : bytes for rows that functions compute, of all parts; None: each process has its own.
    sample_numbers : the most numbers in the random sample of rows that comes to the caller: 32 MB.
    path_numbers : the most numbers of rows that come to the caller to save some dozen passes over them.
    """

    n: int
    budget: int
    work: int | None = None
    sample_numbers: int = 1 << 22
    path_numbers: int = 0

    @abstractmethod
    def map(self, function: Callable[..., Any], *args: Any, reads: Reads = True) -> list[Any]:
        """function(part, *args) of each part, run where the part is; the results are in the order of the parts.

        ``reads`` says whether the function asks for the part's samples; "some" if only some parts do, which are then
        not read ahead. The function may replace ``part.state``.
        """

    @abstractmethod
    def layout(self) -> Layout:
        """Where the parts are, after the first pass."""

    def total(self, function: Callable[..., Any], *args: Any, reads: Reads = True) -> tuple[Any, ...]:
        """The sums of the tuples of numbers and arrays that `map` returns, in the order of the parts."""
        return added(self.map(function, *args, reads=reads))


def added(results: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The sum of tuples, entry by entry; empty ones add nothing."""
    sums: list[Any] | None = None
    for result in results:
        if not result:
            continue
        sums = list(result) if sums is None else [a + b for a, b in zip(sums, result, strict=True)]
    return tuple(sums or ())


class LocalParts(Parts):
    """Parts of this process.

    Parts are kept in memory as long as they fit into ``budget`` bytes; the others are loaded for each `map`, one ahead
    in a thread of its own. The memory in use is at most the budget, two such parts and what functions keep.

    Parameters
    ----------
    loaders : the loaders of the parts.
    n_threads : threads at most: over parts if all are in memory and there are enough of them, else within each part.
    budget : bytes.
    indices : the positions of the loaders among those of all processes; 0, 1, … by default.
    keep_parts : whether the budget may be used for parts, or only for what functions keep.
    work : bytes for rows that functions compute; None: they share the budget of the samples.
    """

    def __init__(
        self,
        loaders: Sequence[Loader],
        n_threads: int = 1,
        budget: int = NO_LIMIT,
        indices: Sequence[int] | None = None,
        keep_parts: bool = True,
        work: int | None = None,
    ) -> None:
        self._budget = Budget(budget)
        self.budget, self.work = int(budget), work
        own = None if work is None else Budget(work)
        numbered = zip(range(len(loaders)) if indices is None else indices, loaders, strict=True)
        self.parts = [Part(index, loader, self._budget, keep_parts, own) for index, loader in numbered if loader.n > 0]
        self.n = sum(part.n for part in self.parts)
        self.n_threads = n_threads

    def map(self, function: Callable[..., Any], *args: Any, reads: Reads = True) -> list[Any]:
        """function(part, *args) of each part."""
        at_once = self._at_once(reads)
        results: list[Any] = [None] * len(self.parts)
        for part in self.parts:
            part.n_threads = 1 if at_once else self.n_threads
        if at_once:

            def one(k: int) -> None:
                results[k] = function(self.parts[k], *args)

            run_tasks(one, len(self.parts), self.n_threads)
            return results
        return list(self._one_by_one(function, args, reads is True))

    def total(self, function: Callable[..., Any], *args: Any, reads: Reads = True) -> tuple[Any, ...]:
        """The sums over parts; part by part only one result is in memory."""
        if self._at_once(reads):
            return added(self.map(function, *args, reads=reads))
        for part in self.parts:
            part.n_threads = self.n_threads
        return added(self._one_by_one(function, args, reads is True))

    def layout(self) -> Layout:
        """The parts of this process."""
        kept = sum(part.in_memory for part in self.parts)
        return Layout(len(self.parts), kept, 0, 0 if self.budget == NO_LIMIT else self.budget, self.n_threads)

    def _at_once(self, reads: Reads) -> bool:
        """Whether threads take whole parts."""
        if self.n_threads <= 1 or len(self.parts) < self.n_threads:
            return False
        return not reads or all(part.in_memory for part in self.parts)

    def _one_by_one(self, function: Callable[..., Any], args: tuple[Any, ...], reads: bool) -> Iterable[Any]:
        """The results in order; the next part is read while this one is computed."""
        ahead = reads and len(self.parts) > 1 and not all(part.in_memory for part in self.parts)
        reader = ThreadPoolExecutor(1, thread_name_prefix="mercer-reader") if ahead else None
        try:
            for k, part in enumerate(self.parts):
                if reads:
                    part.block()
                    if reader is not None and k + 1 < len(self.parts):
                        self.parts[k + 1].read_ahead(reader)
                yield function(part, *args)
                part.release()
        finally:
            if reader is not None:
                reader.shutdown(wait=True)
            for part in self.parts:
                part.release()
                part._pending = None
