"""Write values as JSON and arrays; `decoder` reads them.

Numbers, strings, booleans, None and lists are written as they are. Any other value is a JSON object with one key that
gives its type: {"$array": 3} is arrays/3.npy, {"$object": {"class": …, "state": …}} an object of a class in `classes`.
A value that several attributes share is written once and is shared again after reading.
"""

from __future__ import annotations

from collections import UserList
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.exceptions import InvalidInputError
from mercer.io.model_file.arrays import can_store, frame_parts, is_frame, sparse_parts
from mercer.io.model_file.classes import name_of, state_of
from mercer.kernels import Kernel
from mercer.kernels.features import Vector

# how deep values may be nested
DEPTH = 60
# lists of at least this length are shared
LONG = 16
# integers may have at most this many digits
DIGITS = 1000
SCALARS = {np.dtype(name).name: np.dtype(name).type for name in (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
)}  # fmt: skip
# types that occur as values, such as the parameter dtype of OneHotEncoder
TYPES: dict[str, type] = {**SCALARS, "python int": int, "python float": float, "python bool": bool, "python str": str}
BY_TYPE = {kind: name for name, kind in TYPES.items()}


@dataclass
class Encoder:
    """Collects the arrays and the shared values of one model."""

    arrays: list[Vector] = field(default_factory=list)
    shared: list[Any] = field(default_factory=list)
    classes: set[str] = field(default_factory=set)
    _known: dict[int, Any] = field(default_factory=dict)
    _alive: list[Any] = field(default_factory=list)  # keeps values alive, so that their ids stay unique

    def encode(self, value: Any, where: str, depth: int = 0) -> Any:
        """Return the JSON of a value. ``where`` is its position in the model, for error messages."""
        if depth > DEPTH:
            raise InvalidInputError(
                f"{where} is nested more than {DEPTH} deep, or contains itself: it cannot be saved."
            )
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is int:
            return value if abs(value) < 10**DIGITS else self._refuse(value, where)
        if type(value) is float:
            return value if np.isfinite(value) else {"$float": repr(value)}
        if id(value) in self._known:
            return self._known[id(value)]
        for matches, write in _WRITERS:
            if matches(value):
                return write(self, value, where, depth + 1)
        return self._object(value, where, depth + 1)

    def _remember(self, value: Any, reference: Any) -> Any:
        self._known[id(value)] = reference
        self._alive.append(value)
        return reference

    def _items(self, values: Any, where: str, depth: int) -> list[Any]:
        return [self.encode(v, f"{where}[{i}]", depth) for i, v in enumerate(values)]

    def _list(self, value: Any, where: str, depth: int) -> Any:
        items = self._items(value, where, depth)
        if len(items) < LONG:
            return items
        self.shared.append(items)
        return self._remember(value, {"$shared": len(self.shared) - 1})

    def _array(self, value: Any, where: str, depth: int) -> Any:
        array = np.asarray(value)
        if array.dtype == object:
            items = self._items(array.ravel().tolist(), where, depth)
            return {"$objects": {"shape": list(array.shape), "items": items}}
        if not can_store(array.dtype):
            raise InvalidInputError(
                f"{where} is an array of type {array.dtype}, which cannot be stored in a model file: convert it to "
                "numbers or strings."
            )
        self.arrays.append(array)
        return self._remember(value, {"$array": len(self.arrays) - 1})

    def _sparse(self, value: Any, where: str, depth: int) -> Any:
        matrix = value if value.format in ("csr", "csc") else value.tocsr()
        parts = {name: self.encode(part, where, depth) for name, part in sparse_parts(matrix).items()}
        self._alive.append(matrix)
        return self._remember(value, {"$sparse": parts})

    def _frame(self, value: Any, where: str, depth: int) -> Any:
        parts = frame_parts(value)
        self._alive.append(parts)
        return self._remember(value, {"$frame": self._state(parts, where, depth)})

    def _state(self, state: dict[str, Any], where: str, depth: int) -> dict[str, Any]:
        return {name: self.encode(part, f"{where}.{name}", depth) for name, part in state.items()}

    def _dict(self, value: Any, where: str, depth: int) -> Any:
        return {"$dict": [self._items(pair, f"{where}[{pair[0]!r:.40}]", depth) for pair in value.items()]}

    def _set(self, value: Any, where: str, depth: int) -> Any:
        # sorted, so that equal sets give equal files
        return {f"${type(value).__name__}": self._items(sorted(value, key=repr), where, depth)}

    def _enum(self, value: Any, where: str, depth: int) -> Any:
        return {"$enum": [self._class(value, where), value.name]}

    def _random(self, value: Any, where: str, depth: int) -> Any:
        legacy = isinstance(value, np.random.RandomState)
        state = value.get_state(legacy=False) if legacy else value.bit_generator.state
        if state["bit_generator"] != ("MT19937" if legacy else "PCG64"):
            return self._refuse(value, where)
        if legacy:
            # the 624 words as plain integers
            state = {**state, "state": {**state["state"], "key": state["state"]["key"].tolist()}}
        return {"$random": self.encode(state, where, depth)}

    def _object(self, value: Any, where: str, depth: int) -> Any:
        name = self._class(value, where)
        return {"$object": {"class": name, "state": self._state(state_of(value), name, depth)}}

    def _class(self, value: Any, where: str) -> str:
        name = name_of(type(value))
        if name is None:
            self._refuse(value, where)
        self.classes.add(str(name))
        return str(name)

    def _refuse(self, value: Any, where: str) -> Any:
        if callable(value) and not isinstance(value, type | Kernel):
            raise InvalidInputError(
                f"{where} is the function {getattr(value, '__qualname__', repr(value))}: a model file holds no code. "
                "Use a kernel object or another parameter in its place, or write the model with pickle or joblib."
            )
        if hasattr(value, "best_estimator_"):
            raise InvalidInputError(f"{where} is a {type(value).__name__}: save its best_estimator_ instead.")
        raise InvalidInputError(
            f"{where} is {value!r:.80} of type {type(value).__module__}.{type(value).__qualname__}, which cannot be "
            "stored in a model file. Allow a class of your own with mercer.io.register(cls)."
        )


_Writer = Callable[[Encoder, Any, str, int], Any]
_WRITERS: tuple[tuple[Callable[[Any], bool], _Writer], ...] = (
    (lambda v: type(v) in (np.ndarray, np.memmap), Encoder._array),
    (lambda v: isinstance(v, np.generic) and type(v) in BY_TYPE,
     lambda e, v, w, d: {"$scalar": [BY_TYPE[type(v)], e.encode(v.item(), w, d)]}),
    (lambda v: type(v) is np.str_, lambda e, v, w, d: {"$scalar": ["str", str(v)]}),
    (lambda v: type(v) is np.ma.MaskedArray,
     lambda e, v, w, d: {"$masked": [e.encode(part, w, d) for part in (v.data, np.ma.getmaskarray(v))]}),
    (lambda v: type(v) is list, Encoder._list),
    # before scikit-learn 1.7 a ColumnTransformer keeps its remaining columns in a list that warns when it is read
    (lambda v: isinstance(v, UserList) and type(v).__module__.startswith("sklearn."),
     lambda e, v, w, d: e._list(v.data, w, d)),
    (lambda v: type(v) is tuple, lambda e, v, w, d: {"$tuple": e._items(v, w, d)}),
    (lambda v: type(v) in (set, frozenset), Encoder._set),
    (lambda v: type(v) is dict, Encoder._dict),
    (lambda v: type(v) is bytes, lambda e, v, w, d: {"$bytes": v.hex()}),
    (lambda v: type(v) is slice, lambda e, v, w, d: {"$slice": e._items((v.start, v.stop, v.step), w, d)}),
    (lambda v: type(v) is range, lambda e, v, w, d: {"$range": e._items((v.start, v.stop, v.step), w, d)}),
    (lambda v: isinstance(v, type) and v in BY_TYPE, lambda e, v, w, d: {"$type": BY_TYPE[v]}),
    (lambda v: isinstance(v, np.dtype) and can_store(v), lambda e, v, w, d: {"$dtype": v.str}),
    (sp.issparse, Encoder._sparse),
    (is_frame, Encoder._frame),
    (lambda v: isinstance(v, Enum), Encoder._enum),
    (lambda v: type(v) in (np.random.RandomState, np.random.Generator), Encoder._random),
)  # fmt: skip
