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
from tracekit.base.plain_yaml import TooManyValuesError, load, load_all


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
    assert load(f"a: {text}".encode()) == {"a": value}


NONE = (
    "!!binary aGk=", "!!set {b}", "!!omap [b: 1]", "!!int abc", "!!int ''", "!!float x",
    "!!bool maybe", ".nan", ".inf", "9" * 5000, "!!python/object:os.system x", "!x y",
)  # fmt: skip


@pytest.mark.parametrize("text", NONE)
def test_what_json_has_not(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        load(f"a: {text}".encode())


MERGES = b"a: &a\n" + b"".join(b"  k%d: v\n" % n for n in range(99)) + b"b:\n" + b"- <<: *a\n" * 99


@pytest.mark.parametrize("text", [MERGES, MERGES.replace(b"*a", b"[*a, *a]"), MERGES + b"<<: *a\n"])
def test_what_merges_stand_for_is_counted(text: bytes) -> None:
    """1.5 MB of these are 10,000,000,000 pairs, each in a dictionary of its own."""
    assert load(text)
    with pytest.raises(TooManyValuesError, match="aliases that stand for more than 9,000 values"):
        load(text, values_max=9000)


def test_documents_are_those_of_the_text() -> None:
    assert list(load_all(b"a: 1\n---\n---\n- b\n")) == [{"a": 1}, None, ["b"]]
    assert (load(b""), load(b"# nothing\n")) == (None, None)
    with pytest.raises(yaml.YAMLError):
        load(b"a: 1\n---\nb: 2\n")


_TAGS = ("int", "float", "bool", "null", "str", "timestamp", "binary", "set", "map", "seq", "merge")


@given(st.sampled_from(_TAGS), st.text(max_size=12) | st.from_regex(r"[-+:_.0-9xob]{1,9}"))
@example("int", "0x")
@example("float", ":")
def test_a_tag_on_anything(tag: str, text: str) -> None:
    document = f"a: !!{tag} {orjson.dumps(text, option=orjson.OPT_APPEND_NEWLINE).decode()}"
    try:
        found = load(document.encode())
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
