"""Read values from the JSON and arrays that `encoder` writes. Every value is checked before it is used."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from mercer.exceptions import ModelFileError
from mercer.io.model_file.arrays import build_frame, build_sparse, can_store
from mercer.io.model_file.classes import find_class, object_from_state
from mercer.io.model_file.encoder import DEPTH, DIGITS, SCALARS, TYPES
from mercer.kernels.features import Vector


class Decoder:
    """Rebuilds values. ``array(i)`` reads the i-th array; ``check`` is called with each restored object."""

    def __init__(self, array: Callable[[int], Vector], check: Callable[[Any], None]) -> None:
        self._array = array
        self._check = check
        self._arrays: dict[int, Vector] = {}
        self._shared: list[Any] = []
        self.classes: set[str] = set()

    def decode_all(self, document: Any) -> Any:
        """Decode the shared values, each of which may refer to earlier ones, then the model."""
        if not isinstance(document, dict) or set(document) != {"model", "shared"}:
            raise ModelFileError("its model.json does not hold a model")
        if not isinstance(document["shared"], list):
            raise ModelFileError("its shared values are not a list")
        for values in document["shared"]:
            if not isinstance(values, list):
                raise ModelFileError("a shared value is not a list")
            self._shared.append([self.decode(v, 1) for v in values])
        return self.decode(document["model"])

    def decode(self, value: Any, depth: int = 0) -> Any:
        """Decode one JSON value."""
        if depth > DEPTH:
            raise ModelFileError(f"its values are nested more than {DEPTH} deep")
        if value is None or isinstance(value, bool | str | float):
            return value
        if isinstance(value, int):
            if abs(value) >= 10**DIGITS:
                raise ModelFileError(f"it has a number of more than {DIGITS} digits")
            return value
        if isinstance(value, list):
            return [self.decode(v, depth + 1) for v in value]
        if not isinstance(value, dict) or len(value) != 1:
            raise ModelFileError("it has a JSON object that does not have exactly one key")
        ((tag, content),) = value.items()
        read = _READERS.get(tag)
        if read is None:
            raise ModelFileError(f"it has a value of the unknown kind {tag!r:.40}")
        return read(self, content, depth + 1)

    def _items(self, content: Any, depth: int, length: int | None = None) -> list[Any]:
        if not isinstance(content, list) or (length is not None and len(content) != length):
            raise ModelFileError(f"it has a value that should be a list{f' of {length}' if length else ''}")
        return [self.decode(v, depth) for v in content]

    def _state(self, content: Any, depth: int) -> dict[str, Any]:
        if not isinstance(content, dict):
            raise ModelFileError("the state of an object is not a table of attributes")
        return {name: self.decode(part, depth) for name, part in content.items()}

    def _read_array(self, content: Any, depth: int) -> Vector:
        if type(content) is not int or content < 0:
            raise ModelFileError(f"it refers to an array by {content!r:.40}, which is not a non-negative integer")
        if content not in self._arrays:
            self._arrays[content] = self._array(content)
        return self._arrays[content]

    def _read_shared(self, content: Any, depth: int) -> Any:
        if type(content) is not int or not 0 <= content < len(self._shared):
            raise ModelFileError(f"it refers to the shared value {content!r:.40}, which does not come before it")
        return self._shared[content]

    def _objects(self, content: Any, depth: int) -> Vector:
        if not isinstance(content, dict) or set(content) != {"shape", "items"}:
            raise ModelFileError("an array of objects has no shape")
        items, shape = self._items(content["items"], depth), content["shape"]
        if not isinstance(shape, list) or not all(type(n) is int and 0 <= n <= len(items) for n in shape):
            raise ModelFileError(f"an array of objects has the shape {shape!r:.60}, which is not valid")
        if len(shape) > 8 or int(np.prod(shape, dtype=object)) != len(items):
            raise ModelFileError(f"an array has {len(items)} objects, but the shape {shape!r:.60}")
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            array[i] = item
        return array.reshape(shape)

    def _masked(self, content: Any, depth: int) -> Any:
        data, mask = self._items(content, depth, 2)
        arrays = isinstance(data, np.ndarray) and isinstance(mask, np.ndarray)
        if not arrays or mask.dtype != bool or mask.shape != data.shape:
            raise ModelFileError("the mask of an array is not a boolean array of the same shape")
        return np.ma.MaskedArray(data, mask)

    def _float(self, content: Any, depth: int) -> float:
        if content not in ("inf", "-inf", "nan"):
            raise ModelFileError(f"{content!r:.40} is not a number: expected 'inf', '-inf' or 'nan'")
        return float(content)

    def _scalar(self, content: Any, depth: int) -> Any:
        name, value = self._items(content, depth, 2)
        if name == "str" and isinstance(value, str):
            return np.str_(value)
        if not isinstance(name, str) or name not in SCALARS or not isinstance(value, bool | int | float):
            raise ModelFileError(f"it has a number of the unknown type {name!r:.40}")
        try:
            return SCALARS[name](value)
        except (OverflowError, ValueError, TypeError):
            raise ModelFileError(f"{value!r:.40} is not a number of type {name}") from None

    def _dict(self, content: Any, depth: int) -> dict[Any, Any]:
        if not isinstance(content, list):
            raise ModelFileError("a dictionary is not a list of pairs")
        pairs = [self._items(pair, depth, 2) for pair in content]
        return {self._hashable(key): value for key, value in pairs}

    def _hashable(self, value: Any) -> Any:
        plain = value.tolist() if isinstance(value, np.generic) else value
        if isinstance(value, tuple | frozenset):
            for part in value:
                self._hashable(part)
        elif not (plain is None or isinstance(plain, bool | int | float | str | bytes)):
            raise ModelFileError("a key of a dictionary is not a plain value")
        return value

    def _set(self, content: Any, depth: int) -> list[Any]:
        return [self._hashable(v) for v in self._items(content, depth)]

    def _bytes(self, content: Any, depth: int) -> bytes:
        try:
            return bytes.fromhex(content)
        except (TypeError, ValueError):
            raise ModelFileError("bytes are not written as hexadecimal digits") from None

    def _three(self, content: Any, depth: int) -> list[Any]:
        numbers = self._items(content, depth, 3)
        if not all(n is None or (type(n) is int and abs(n) < 2**63) for n in numbers):
            raise ModelFileError("a slice or range is not made of integers")
        return numbers

    def _range(self, content: Any, depth: int) -> range:
        start, stop, step = self._three(content, depth)
        if None in (start, stop, step) or step == 0:
            raise ModelFileError("a range is not valid")
        return range(start, stop, step)

    def _type(self, content: Any, depth: int) -> type:
        if not isinstance(content, str) or content not in TYPES:
            raise ModelFileError(f"it names the type {content!r:.40}, which a model file may not hold")
        return TYPES[content]

    def _dtype(self, content: Any, depth: int) -> np.dtype[Any]:
        try:
            dtype = np.dtype(content) if isinstance(content, str) and len(content) < 16 else np.dtype(object)
        except (TypeError, ValueError, SyntaxError):
            dtype = np.dtype(object)
        if not can_store(dtype):
            raise ModelFileError(f"it names the type {content!r:.40}, which a model file may not hold")
        return dtype

    def _sparse(self, content: Any, depth: int) -> Any:
        return build_sparse(self._state(content, depth), "a matrix in it")

    def _frame(self, content: Any, depth: int) -> Any:
        return build_frame(self._state(content, depth))

    def _enum(self, content: Any, depth: int) -> Any:
        name, member = self._items(content, depth, 2)
        cls = find_class(name)
        if not issubclass(cls, Enum) or not isinstance(member, str) or member not in cls.__members__:
            raise ModelFileError(f"{member!r:.40} is not a member of {name}")
        return cls[member]

    def _random(self, content: Any, depth: int) -> Any:
        return random_state(self.decode(content, depth))

    def _object(self, content: Any, depth: int) -> Any:
        if not isinstance(content, dict) or set(content) != {"class", "state"}:
            raise ModelFileError("an object has no class")
        cls = find_class(content["class"])
        self.classes.add(content["class"])
        value = object_from_state(cls, self._state(content["state"], depth))
        self._check(value)
        return value


_READERS: dict[str, Callable[[Decoder, Any, int], Any]] = {
    "$array": Decoder._read_array,
    "$shared": Decoder._read_shared,
    "$objects": Decoder._objects,
    "$masked": Decoder._masked,
    "$float": Decoder._float,
    "$scalar": Decoder._scalar,
    "$dict": Decoder._dict,
    "$tuple": lambda d, content, depth: tuple(d._items(content, depth)),
    "$set": lambda d, content, depth: set(d._set(content, depth)),
    "$frozenset": lambda d, content, depth: frozenset(d._set(content, depth)),
    "$bytes": Decoder._bytes,
    "$slice": lambda d, content, depth: slice(*d._three(content, depth)),
    "$range": Decoder._range,
    "$type": Decoder._type,
    "$dtype": Decoder._dtype,
    "$sparse": Decoder._sparse,
    "$frame": Decoder._frame,
    "$enum": Decoder._enum,
    "$random": Decoder._random,
    "$object": Decoder._object,
}


def random_state(state: Any) -> Any:
    """Return the random generator with this state. The numbers are checked here because NumPy does not check them."""
    kind = state.get("bit_generator") if isinstance(state, dict) else None
    inner = state.get("state") if kind in ("MT19937", "PCG64") else None
    if not isinstance(inner, dict):
        raise ModelFileError("a random state is not of a known kind")

    def whole(value: Any, limit: int) -> bool:
        return type(value) is int and 0 <= value < limit

    if kind == "MT19937":
        key, gauss = inner.get("key"), state.get("gauss")
        words = isinstance(key, list) and len(key) == 624 and all(whole(k, 2**32) for k in key)
        if not (words and whole(inner.get("pos"), 625) and whole(state.get("has_gauss"), 2) and type(gauss) is float):
            raise ModelFileError("the numbers of a random state are not valid")
        generator = np.random.RandomState()
        generator.set_state(("MT19937", np.array(key, np.uint32), inner["pos"], state["has_gauss"], gauss))
        return generator
    parts: tuple[Any, Any] = (inner.get("state"), inner.get("inc"))
    rest = whole(state.get("has_uint32"), 2) and whole(state.get("uinteger"), 2**32)
    if not (rest and all(whole(part, 2**128) for part in parts)):
        raise ModelFileError("the numbers of a random state are not valid")
    bits = np.random.PCG64()
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": parts[0], "inc": parts[1]},
        "has_uint32": state["has_uint32"],
        "uinteger": state["uinteger"],
    }
    return np.random.Generator(bits)
