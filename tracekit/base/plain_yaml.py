"""YAML that stands for JSON's values and no others: what kubectl and a cluster write and take.

PyYAML's own loader makes sets, bytes and times of tags that no object of an API has, and raises
whatever `int` or `float` raise at a scalar that is not what its tag says. Here a scalar is a text,
a number that JSON has, true, false or null; a time stays the text that it is in the API; all else
is a `yaml.YAMLError` that names the line.

Upstream: sigs.k8s.io/yaml, yaml.go (a number beyond 64 bits becomes a float there, too)
"""

from __future__ import annotations

import math
from typing import Any, Final

import yaml
from yaml.constructor import ConstructorError

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_INT_MIN: Final = -(1 << 63)
_INT_MAX: Final = (1 << 64) - 1


class PlainLoader(_BASE):  # type: ignore[misc] # one of two classes
    """A loader for `yaml.load` and `yaml.load_all`."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as in the class that it is of
        first: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
        for first, found in _BASE.yaml_implicit_resolvers.items()
    }
    yaml_constructors = {  # noqa: RUF012 - as above
        tag: made
        for tag, made in _BASE.yaml_constructors.items()
        if tag is None or tag.removeprefix(_TAG) in ("null", "str", "seq", "map")
    }


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
