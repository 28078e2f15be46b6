"""Attributes that are computed once, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class cached_property(Generic[Value]):
    """An attribute that is computed when it is first read.

    ``functools.cached_property`` of Python 3.11 has one lock for all objects of a class. Threads would wait for each
    other, and a process that is forked while a thread computes the attribute would wait forever. Here two threads may
    compute it at once; both get the value of the first.
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self._function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> cached_property[Value]: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> cached_property[Value] | Value:
        if instance is None:
            return self
        value: Value = instance.__dict__.setdefault(self._name, self._function(instance))
        return value
