"""YAML that stands for JSON's values and no others: what kubectl and a cluster write and take.

PyYAML's own loader makes sets, bytes and times of tags that no object of an API has, and raises
whatever `int` or `float` raise at a scalar that is not what its tag says. Here a scalar is a text,
a number that JSON has, true, false or null; a time stays the text that it is in the API; all else
is a `yaml.YAMLError` that names the line.

An alias stands for what its anchor holds, so few bytes can name more values than memory holds: what
all aliases and merges (`<<`) stand for is counted.

Upstream: sigs.k8s.io/yaml, yaml.go (a number beyond 64 bits becomes a float there, too)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import yaml
from yaml.constructor import ConstructorError

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_INT_MIN: Final = -(1 << 63)
_INT_MAX: Final = (1 << 64) - 1
#: Lines and items of a text: `kubectl` needs thirty bytes for each and a bomb two, of which the
#: parser makes several hundred.
ITEMS_MAX: Final = 3_000_000
#: Values that aliases and merges stand for.
VALUES_MAX: Final = 20_000_000
_NESTING_MAX: Final = 200
_BEFORE_AN_ITEM: Final = (b"\n", b",", b"[", b"{")


class TooManyValuesError(yaml.YAMLError):  # type: ignore[misc] # an untyped base
    """A text that stands for more values than memory should hold; the message says of what."""

    def __init__(self, most: int, *, by_aliases: bool) -> None:
        whose = "YAML aliases that stand for" if by_aliases else "a YAML document of"
        super().__init__(f"{whose} more than {most:,} values")


class PlainLoader(_BASE):  # type: ignore[misc] # one of two classes
    """Makes values of a text; `load` and `load_all` are how it is used."""

    def __init__(self, text: Any, values_max: int = VALUES_MAX) -> None:
        super().__init__(text)
        self._values_max = values_max
        self._merged = 0

    yaml_implicit_resolvers = {  # noqa: RUF012 - as in the class that it is of
        first: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
        for first, found in _BASE.yaml_implicit_resolvers.items()
    }
    yaml_constructors = {  # noqa: RUF012 - as above
        tag: made
        for tag, made in _BASE.yaml_constructors.items()
        if tag is None or tag.removeprefix(_TAG) in ("null", "str", "seq", "map")
    }

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Write out what a mapping merges, once it is known to be no more than memory holds."""
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                self._count_merged(value.value if value.id == "sequence" else [value])
        super().flatten_mapping(node)

    def _count_merged(self, merged: list[yaml.Node]) -> None:
        for part in merged:
            if part.id == "mapping":
                self.flatten_mapping(part)
                self._merged += 1 + len(part.value)
            if self._merged > self._values_max:
                raise TooManyValuesError(self._values_max, by_aliases=True)


def load(text: bytes, *, items_max: int = ITEMS_MAX, values_max: int = VALUES_MAX) -> Any:
    """The one document of a text, as JSON's values; None if there is none.

    Raises:
        yaml.YAMLError: it is no YAML.
        TooManyValuesError: it holds more values than memory should.
    """
    found = list(load_all(text, items_max=items_max, values_max=values_max))
    if len(found) > 1:
        raise yaml.YAMLError("several documents where one belongs")
    return found[0] if found else None


def load_all(
    text: bytes, *, items_max: int = ITEMS_MAX, values_max: int = VALUES_MAX
) -> Iterator[Any]:
    """The documents of a text, as JSON's values.

    Raises:
        yaml.YAMLError: it is no YAML.
        TooManyValuesError: one holds more values than memory should.
    """
    if len(text) > items_max and sum(map(text.count, _BEFORE_AN_ITEM)) > items_max:
        raise TooManyValuesError(items_max, by_aliases=False)
    try:
        loader: Any = PlainLoader(text, values_max)
        try:
            while loader.check_data():
                found = loader.get_data()
                if b"*" in text and _size(found, {}, 0, values_max) > values_max:
                    raise TooManyValuesError(values_max, by_aliases=True)
                yield found
        finally:
            loader.dispose()
    except (RecursionError, ValueError) as error:
        raise yaml.YAMLError(f"nested too deep, or no text ({type(error).__name__})") from error


def _size(value: Any, known: dict[int, int], depth: int, most: int) -> int:
    """How many values a document has once every alias is written out."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) in known:
        return known[id(value)]
    if depth > _NESTING_MAX:
        return most + 1
    known[id(value)] = most + 1  # what holds itself has no end
    inner = value.values() if isinstance(value, dict) else value
    known[id(value)] = 1 + sum(_size(item, known, depth + 1, most) for item in inner)
    return known[id(value)]


def _bool(loader: Any, node: yaml.ScalarNode) -> Any:
    try:
        return loader.construct_yaml_bool(node)
    except KeyError as error:
        raise _no_value(node) from error


def _number(loader: Any, node: yaml.ScalarNode) -> int | float:
    is_float = node.tag == f"{_TAG}float"
    construct = loader.construct_yaml_float if is_float else loader.construct_yaml_int
    try:
        number: int | float = construct(node)
        if not _INT_MIN <= number <= _INT_MAX:
            number = float(number)
    except (ValueError, OverflowError, IndexError) as error:
        raise _no_value(node) from error
    if isinstance(number, float) and not math.isfinite(number):
        raise _no_value(node)
    return number


def _no_value(node: yaml.ScalarNode) -> ConstructorError:
    what = node.tag.removeprefix(_TAG)
    return ConstructorError(None, None, f"a value that JSON has not ({what})", node.start_mark)


PlainLoader.add_constructor(f"{_TAG}bool", _bool)
PlainLoader.add_constructor(f"{_TAG}int", _number)
PlainLoader.add_constructor(f"{_TAG}float", _number)
PlainLoader.add_constructor(f"{_TAG}timestamp", _BASE.yaml_constructors[f"{_TAG}str"])
