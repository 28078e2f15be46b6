"""Dask arrays, dask frames and lists of delayed parts as loaders on the workers, and predictions of the same parts."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from dask.local import get_sync
from dask.optimization import cull
from dask.utils import ensure_dict
from distributed import Client, Future, futures_of, get_worker

import dask
from mercer.dask.cluster_parts import ClusterParts, gather
from mercer.exceptions import InvalidInputError
from mercer.losses.base import Vector
from mercer.parts.layout import Budget, Held, Loader, Part
from mercer.validation import two_integer_classes

# rows that exceed this share of the workers' memory are computed in each pass instead of kept
SHARE_OF_MEMORY = 0.4

ALLOWED = (
    "a dask array of rows, a dask frame, or a list of delayed parts. For data in memory use the class of the same name "
    "in mercer."
)


class Chunk(NamedTuple):
    """X of one part as numbers, y as it was given, weights, and the names of the columns, if they have names."""

    X: Any
    y: Any
    weight: Vector
    names: list[str] | None

    def load(self) -> Chunk:
        """Itself."""
        return self


class Recipe(NamedTuple):
    """A part that is computed anew for each request, in the requesting thread: for rows that exceed the memory."""

    graph: dict[Any, Any]
    key: Any

    def load(self) -> Chunk:
        """The part."""
        found: Chunk = get_sync(self.graph, self.key)
        return found


class Recomputed:
    """A loader of rows that do not stay in memory. ``prepare`` makes a loader of a chunk in memory."""

    def __init__(self, index: int, recipe: Recipe, n: int, prepare: Callable[[int, Chunk], Loader]) -> None:
        self.index, self.recipe, self.n, self.prepare = index, recipe, n, prepare

    def __call__(self) -> tuple[Any, Vector, Vector]:
        """(X, y, weight)."""
        return self.prepare(self.index, self.recipe.load())()


class Labels(NamedTuple):
    """The classes of a part, their total weights and their numbers of samples."""

    classes: Any
    weights: Any
    counts: Any


class Facts(NamedTuple):
    """The client's description of a part: size, names of the columns, classes, and the worker that holds it."""

    n: int
    d: int
    names: list[str] | None
    labels: Labels | None
    address: str


class Chunks(NamedTuple):
    """The parts on the workers: futures of `Chunk`, or of `Recipe` if the rows exceed the memory."""

    client: Client
    futures: list[Future]
    facts: list[Facts]
    are_recipes: bool

    @property
    def sizes(self) -> list[int]:
        """The number of rows of each part."""
        return [fact.n for fact in self.facts]

    def parts(self, prepare: Callable[[int, Chunk], Loader]) -> ClusterParts:
        """The rows of the loaders that ``prepare`` makes."""
        where = [fact.address for fact in self.facts]
        parts = ClusterParts(self.client, self.futures, self.sizes, where, partial(_loader, prepare=prepare))
        parts.computed_again = self.are_recipes
        return parts


def is_collection(X: Any) -> bool:
    """Whether X is a dask array or frame, or a list of delayed parts."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(isinstance(part, Delayed | Future) for part in X)
    return isinstance(X, da.Array) or is_frame(X)


def is_frame(X: Any) -> bool:
    """Whether X is a dask frame or series."""
    return dask.is_dask_collection(X) and hasattr(X, "map_partitions") and hasattr(X, "npartitions")


def aligned_parts(X: Any, y: Any, sample_weight: Any) -> list[list[Any]]:
    """The delayed parts of X, of y and, unless it is None, of sample_weight: the same number of each."""
    if not is_collection(X):
        raise InvalidInputError(f"X is of the type {type(X).__name__}: give {ALLOWED}")
    rows = X.chunks[0] if isinstance(X, da.Array) else None
    pieces = [delayed_parts("X", X), delayed_parts("y", y, rows)]
    if sample_weight is not None:
        pieces.append(delayed_parts("sample_weight", sample_weight, rows))
    for name, piece in zip(("y", "sample_weight"), pieces[1:], strict=False):
        if len(piece) != len(pieces[0]):
            raise InvalidInputError(
                f"X has {len(pieces[0])} parts, but {name} has {len(piece)}. Give both the same parts, for example "
                "with rechunk or repartition."
            )
    return pieces


def chunks_of(client: Client, X: Any, y: Any, sample_weight: Any, has_classes: bool = False) -> Chunks:
    """Bring X, y and weights of each part to one worker, and wait. With ``has_classes``, find the classes of y."""
    pieces = aligned_parts(X, y, sample_weight)
    make = dask.delayed(_chunk, pure=False)
    delayed = [make(index, *parts) for index, parts in enumerate(zip(*pieces, strict=True))]
    limits = _workers_if_exceeded(client, X, y, sample_weight)
    if limits:
        futures = _recipes(client, delayed, limits)
        facts = client.map(_facts, list(range(len(futures))), futures, has_classes=has_classes, pure=False)
    else:
        find = dask.delayed(_facts, pure=False)
        found = [find(index, chunk, has_classes) for index, chunk in enumerate(delayed)]
        both = client.compute([*delayed, *found])
        futures, facts = both[: len(delayed)], both[len(delayed) :]
    return Chunks(client, list(futures), _checked(gather(client, facts)), bool(limits))


def _workers_if_exceeded(client: Client, *collections: Any) -> dict[str, int]:
    """The memory of each worker, if the rows would take too much of it and can be computed again; else empty."""
    X = collections[0]
    if not isinstance(X, da.Array) or np.isnan(X.nbytes) or any(futures_of(c) for c in collections if c is not None):
        return {}
    limits: dict[str, int] = client.run(_memory_limit, on_error="ignore")
    unlimited = not all(limits.values())
    return {} if unlimited or X.nbytes <= SHARE_OF_MEMORY * sum(limits.values()) else limits


def _memory_limit(dask_worker: Any) -> int:
    """The memory of a worker, in bytes; 0 for no limit."""
    return int(dask_worker.memory_manager.memory_limit or 0)


def _recipes(client: Client, delayed: list[Any], limits: dict[str, int]) -> list[Future]:
    """A recipe of each part; the number of parts of a worker is in proportion to its memory."""
    graph = ensure_dict(HighLevelGraph.merge(*(part.__dask_graph__() for part in delayed)))
    addresses, edges = list(limits), np.cumsum(list(limits.values()), dtype=np.float64)
    futures = []
    for k, part in enumerate(delayed):
        own, _ = cull(graph, [part.key])
        address = addresses[int(np.searchsorted(edges, (k + 0.5) / len(delayed) * edges[-1]))]
        # a graph must not be an argument by itself: dask would look for tasks in it
        recipe = dask.delayed(_recipe, pure=False)(pickle.dumps(own), part.key)
        futures.append(client.compute(recipe, workers=[address], allow_other_workers=True))
    return futures


def _recipe(graph: bytes, key: Any) -> Recipe:
    return Recipe(pickle.loads(graph), key)


def delayed_parts(name: str, collection: Any, rows: tuple[float, ...] | None = None) -> list[Any]:
    """The delayed parts of a collection; an array is divided into chunks of these numbers of rows."""
    if isinstance(collection, list | tuple):
        if is_collection(collection):
            return list(collection)
    elif isinstance(collection, da.Array):
        if collection.ndim not in (1, 2) or (name == "X" and collection.ndim == 1):
            raise InvalidInputError(f"{name} has {collection.ndim} dimensions: X must have 2, y and weights 1.")
        known = rows is not None and not np.isnan(sum(rows))
        if collection.ndim == 2:
            collection = collection.rechunk({1: -1}) if collection.numblocks[1] > 1 else collection
        if known and not np.isnan(sum(collection.chunks[0])) and collection.chunks[0] != rows:
            if sum(collection.chunks[0]) != sum(rows or ()):
                raise InvalidInputError(
                    f"X has {sum(rows or ())} rows, but {name} has {sum(collection.chunks[0])}: give equal numbers."
                )
            collection = collection.rechunk({0: rows})
        return list(collection.to_delayed().ravel())
    elif is_frame(collection):
        return list(collection.to_delayed())
    raise InvalidInputError(f"{name} is of the type {type(collection).__name__}: give {ALLOWED}")


def _chunk(index: int, X: Any, y: Any, weight: Any = None) -> Chunk:
    """One part, on its worker: rows as an array or CSR, labels or numbers, and weights."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    targets = np.asarray(y)
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = targets[:, 0]
    weights = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64).reshape(-1)
    if targets.ndim != 1 or not n == len(targets) == len(weights):
        raise InvalidInputError(
            f"Part {index} has {n} rows of X, targets of the shape {targets.shape} and {len(weights)} weights: give "
            "one target and one weight for each row."
        )
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise InvalidInputError(
            f"sample_weight is {weights[wrong[0]]:g} in part {index}, row {wrong[0]}: weights must be finite and at "
            "least 0."
        )
    return Chunk(numeric(index, X), targets, weights, _columns_of(X))


def check_part(index: int, X: Any, y: Any, weight: Any = None) -> int:
    """The number of rows of a part. Raises for wrong lengths, NaN and infinite numbers, named by part and row."""
    chunk = _chunk(index, X, y, weight)
    n = int(chunk.X.shape[0])
    if n:
        targets = chunk.y if chunk.y.dtype.kind == "f" else np.zeros(n)
        Part(index, Held(chunk.X, targets, chunk.weight), Budget(0)).block()
    return n


def _columns_of(X: Any) -> list[str] | None:
    """The names of the columns, if all are strings."""
    names = getattr(X, "columns", None)
    names = None if names is None else list(names)
    return names if names and all(isinstance(name, str) for name in names) else None


def _facts(index: int, source: Chunk | Recipe, has_classes: bool) -> Facts:
    chunk = source.load()
    d = int(chunk.X.shape[1]) if len(chunk.X.shape) > 1 else 0
    labels = labels_of(index, chunk) if has_classes else None
    return Facts(int(chunk.X.shape[0]), d, chunk.names, labels, get_worker().address)


def _loader(index: int, source: Chunk | Recipe, n: int, prepare: Callable[[int, Chunk], Loader]) -> Loader:
    return prepare(index, source) if isinstance(source, Chunk) else Recomputed(index, source, n, prepare)


def _checked(facts: list[Facts]) -> list[Facts]:
    """Raise unless there are rows and all parts with rows have the same columns."""
    filled = [(index, fact) for index, fact in enumerate(facts) if fact.n]
    if not filled:
        raise InvalidInputError("Found array with 0 sample(s): all parts of X are empty. Give at least one row.")
    first = filled[0][1]
    for index, fact in filled:
        if fact.d != first.d or fact.names != first.names:
            raise InvalidInputError(
                f"Part {filled[0][0]} has {first.d} columns, part {index} has {fact.d} or other names: give all parts "
                "the same columns."
            )
    return facts


def numeric(index: int, X: Any) -> Any:
    """Rows as an array or CSR of floats."""
    if sp.issparse(X):
        return X
    try:
        array = np.asarray(X)
        return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"Part {index} of X cannot be converted to numbers: {error}. Encode categories and strings first."
        ) from None


# ---- targets -----------------------------------------------------------------------------------------------------


def labels_of(index: int, chunk: Chunk) -> Labels:
    """The classes of a part."""
    y = chunk.y
    if y.dtype.kind in "fc" and not np.isfinite(y).all():
        raise InvalidInputError(
            f"y contains {y[~np.isfinite(y)][0]} in part {index}: labels must be finite. Remove these rows or fill in "
            "their labels."
        )
    if y.dtype == object:
        missing = np.flatnonzero([value is None or value != value for value in y])
        if len(missing):
            raise InvalidInputError(
                f"y is missing in part {index}, row {missing[0]}: remove such rows or fill in their labels."
            )
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        raise InvalidInputError(
            f"Unknown label type: continuous. y has the value {y[y != np.floor(y)][0]:g} in part {index}: use a "
            "regressor, or give classes."
        )
    classes, codes = two_integer_classes(y) or np.unique(y, return_inverse=True)
    return Labels(classes, np.bincount(codes, chunk.weight, len(classes)), np.bincount(codes, minlength=len(classes)))


def coded(index: int, chunk: Chunk, classes: Vector) -> Held:
    """A loader whose targets are positions in ``classes``."""
    codes = chunk.y == classes[1] if len(classes) == 2 else np.searchsorted(classes, chunk.y)
    return Held(chunk.X, codes.astype(np.float64), chunk.weight)


def numbered(index: int, chunk: Chunk) -> Held:
    """A loader whose targets are numbers."""
    try:
        y = chunk.y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"y cannot be converted to numbers in part {index}: {error}.") from None
    return Held(chunk.X, y, chunk.weight)


# ---- predictions -------------------------------------------------------------------------------------------------


def predicted(X: Any, function: Callable[..., Any], model: Any, dtype: Any, n_columns: int) -> Any:
    """function(model, part) for each part of X, as a lazy collection of the same kind; 0 columns for a vector.

    Data in memory are predicted at once.
    """
    if not is_collection(X):
        return function(model, X)
    if isinstance(X, list | tuple):
        return [dask.delayed(_on_part)(part, function, model) for part in X]
    if isinstance(X, da.Array):
        X = X.rechunk({1: -1}) if X.ndim == 2 and X.numblocks[1] > 1 else X
        axes: dict[str, Any] = {"drop_axis": 1} if n_columns == 0 else {"chunks": (X.chunks[0], (n_columns,))}
        return da.map_blocks(_on_block, X, function=function, model=model, dtype=dtype, meta=np.empty(0, dtype), **axes)
    import pandas as pd

    meta: Any = (
        pd.Series(dtype=dtype) if n_columns == 0 else pd.DataFrame({k: [] for k in range(n_columns)}, dtype=dtype)
    )
    return X.map_partitions(_on_frame, function=function, model=model, n_columns=n_columns, meta=meta)


def _on_part(X: Any, function: Callable[..., Any], model: Any) -> Any:
    if hasattr(X, "iloc"):
        return _values_of_frame(X, function, model)
    return _on_block(X, function, model)


def _on_block(X: Any, function: Callable[..., Any], model: Any) -> Any:
    # scikit-learn refuses to predict no rows
    return function(model, X) if X.shape[0] else function(model, np.zeros((1, X.shape[1])))[:0]


def _values_of_frame(X: Any, function: Callable[..., Any], model: Any) -> Any:
    import pandas as pd

    rows = X if len(X) else pd.DataFrame(np.zeros((1, X.shape[1])), columns=X.columns)
    return function(model, rows)[: len(X)]


def _on_frame(X: Any, function: Callable[..., Any], model: Any, n_columns: int) -> Any:
    import pandas as pd

    values = _values_of_frame(X, function, model)
    return pd.Series(values, index=X.index) if n_columns == 0 else pd.DataFrame(values, index=X.index)
