"""Attributes that are made when somebody asks for them, and then stay. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Self, TypeVar, overload

Owner = TypeVar("Owner")
Value = TypeVar("Value")


class once(Generic[Owner, Value]):  # noqa: N801 - a decorator
    """As functools.cached_property, which up to Python 3.11 takes a lock each time it makes one.

    A trace has a hundred thousand of these; no two threads ask for the same.
    """

    def __init__(self, make: Callable[[Owner], Value]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, owner: None, kind: type[Owner]) -> Self: ...

    @overload
    def __get__(self, owner: Owner, kind: type[Owner]) -> Value: ...

    def __get__(self, owner: Owner | None, kind: type[Owner]) -> Self | Value:
        """The value, kept in the place of this."""
        if owner is None:
            return self
        value = owner.__dict__[self._name] = self._make(owner)
        return value
