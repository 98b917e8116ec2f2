"""A relation of DuckDB whose errors are this project's, also when it is fetched."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, cast

import duckdb

#: What turns DuckDB's errors within it into others.
Errors = Callable[[], AbstractContextManager[None]]


def reporting(relation: duckdb.DuckDBPyRelation, errors: Errors) -> duckdb.DuckDBPyRelation:
    """The relation, with all that is asked of it, and of those made of it, within `errors`."""
    return cast("duckdb.DuckDBPyRelation", _Reporting(relation, errors))


class _Reporting:
    """Passes everything on; what is a relation again is passed on likewise."""

    def __init__(self, relation: duckdb.DuckDBPyRelation, errors: Errors) -> None:
        self.relation = relation
        self._errors = errors

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        """A relation, to whoever asks `isinstance`."""
        return duckdb.DuckDBPyRelation

    def _given(self, value: Any) -> Any:
        if isinstance(value, duckdb.DuckDBPyRelation):
            return _Reporting(value, self._errors)
        if not callable(value):
            return value

        @wraps(value)
        def asked(*args: Any, **options: Any) -> Any:
            plain = [arg.relation if isinstance(arg, _Reporting) else arg for arg in args]
            with self._errors():
                return self._given(value(*plain, **options))

        return asked

    def __getattr__(self, name: str) -> Any:
        with self._errors():
            return self._given(getattr(self.relation, name))

    def __getitem__(self, name: str) -> Any:
        with self._errors():
            return self._given(self.relation[name])

    def __len__(self) -> int:
        with self._errors():
            return len(self.relation)

    def __contains__(self, name: str) -> bool:
        return name in self.relation

    def __repr__(self) -> str:
        with self._errors():
            return repr(self.relation)

    def __str__(self) -> str:
        with self._errors():
            return str(self.relation)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        with self._errors():
            return self.relation.__arrow_c_stream__(requested_schema)
