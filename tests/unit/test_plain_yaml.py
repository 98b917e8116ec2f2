"""YAML as JSON's values: what has no place in an API's object is an error of YAML, whatever it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from tests.attack.answers import run
from tracekit.base.plain_yaml import PlainLoader


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-02-30", "2024-02-30"),
        ("!!timestamp soon", "soon"),
        ("1", 1),
        ("18446744073709551615", 18446744073709551615),
        ("9" * 30, 1e30),
        ("-1.5e+3", -1500.0),
        ("yes", True),
        ("!!str 1", "1"),
        ("~", None),
    ],
)
def test_what_json_has(text: str, value: Any) -> None:
    assert yaml.load(f"a: {text}", Loader=PlainLoader) == {"a": value}  # noqa: S506 - safe


NONE = (
    "!!binary aGk=", "!!set {b}", "!!omap [b: 1]", "!!int abc", "!!int ''", "!!float x",
    "!!bool maybe", ".nan", ".inf", "9" * 5000, "!!python/object:os.system x", "!x y",
)  # fmt: skip


@pytest.mark.parametrize("text", NONE)
def test_what_json_has_not(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        yaml.load(f"a: {text}", Loader=PlainLoader)  # noqa: S506 - safe


_TAGS = ("int", "float", "bool", "null", "str", "timestamp", "binary", "set", "map", "seq", "merge")


@given(st.sampled_from(_TAGS), st.text(max_size=12) | st.from_regex(r"[-+:_.0-9xob]{1,9}"))
@example("int", "0x")
@example("float", ":")
def test_a_tag_on_anything(tag: str, text: str) -> None:
    document = f"a: !!{tag} {orjson.dumps(text, option=orjson.OPT_APPEND_NEWLINE).decode()}"
    try:
        found = yaml.load(document, Loader=PlainLoader)  # noqa: S506 - safe
    except yaml.YAMLError:
        return
    orjson.dumps(found)


@pytest.mark.parametrize("text", NONE)
@pytest.mark.parametrize("verb", ["import", "import kubectl", "cron lint", "simulate"])
def test_a_file_with_it_is_one_sentence(tmp_path: Path, text: str, verb: str) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a, namespace: b}\nspec:\n"
        f"  schedule: '* * * * *'\n  a: {text}\n"
    )
    words = [] if verb == "cron lint" else ["-o", str(tmp_path / "trace")]
    code, _, said = run(*verb.split(), str(path), *words)
    assert (code, said.count("\n")) == (2, 1), said
    assert "fault of tracekit" not in said
