"""The table of all outputs: each goes through the escaping that fits what reads it.

docs/trust.md: "Nothing that comes from a trace, a server or a query is printed raw". One trace, in
which every text is hostile, goes to each; an output that this table lacks is a failure.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stdout, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock
from xml.etree import ElementTree as ET

import orjson
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from tests.attack.test_hostile_texts import EVIL, FORMULA, JOB, QUERY, assert_plain, hostile
from tests.support.command_tree import options
from tracekit.cli.main import main
from tracekit.cli.sql_prompt import Prompt
from tracekit.report.html import page as html_page
from tracekit.sql.session import Session
from tracekit.watch.live import Counts
from tracekit.watch.metrics import WatchCollector
from tracekit.watch.news import News
from tracekit.watch.outbox import NotSent
from tracekit.watch.payloads import ROUTING_KEY, payload_of
from tracekit.watch.webhook import Webhook

__all__ = ["hostile"]  # the fixture

#### What reads it, and what it must not obey ####


def terminal(data: bytes) -> None:
    assert_plain(data.decode())


def document(data: bytes) -> None:
    assert_plain(data.decode())
    json.loads(data)


def documents(data: bytes) -> None:
    assert_plain(data.decode())
    for line in data.splitlines():
        json.loads(line)


def xml(data: bytes) -> None:
    assert_plain(data.decode())
    assert {node.tag for node in ET.fromstring(data).iter()} <= {  # noqa: S314 - ours
        "testsuites", "testsuite", "testcase", "failure", "error", "skipped", "system-out",
        "properties", "property",
    }  # fmt: skip


def sheet(data: bytes) -> None:
    assert {c for c in data.decode() if not c.isprintable()} <= {"\n"}
    cells = [cell for row in csv.reader(io.StringIO(data.decode())) for cell in row]
    assert not [cell for cell in cells if re.match(r"[=+@]|-\D", cell)]


def markdown(data: bytes) -> None:
    assert_plain(data.decode())
    assert not re.search(r"(?<!\\)!?\[[^\]]*(?<!\\)\]\(", data.decode())  # no link, no picture
    assert not re.search(r"<(?!br>|/?details|/?summary)", data.decode())


def page(data: bytes) -> None:
    text = data.decode()
    assert {c for c in text if not c.isprintable()} <= {"\n"}
    assert "<img" not in text
    assert text.count("</script>") == 2
    assert not re.search(r"@[A-Z]+@", text.split('type="application/json">')[0])


def columns(data: bytes) -> None:
    """Parquet is data: the texts are in it as they are."""
    values = pq.read_table(io.BytesIO(data)).to_pylist()
    texts = [value for row in values for value in row.values() if isinstance(value, str)]
    assert any(EVIL in text for text in texts)


def packets(data: bytes) -> None:
    """Protocol buffers are data, too: all of it parses, and names stay one name each."""
    assert len(Trace.FromString(data).packet) > 10


def body(data: bytes) -> None:
    """What is posted to a program: JSON, with the texts as they are."""
    texts = list(_texts(json.loads(data)))
    assert any("owned" in text for text in texts)


def chat(data: bytes) -> None:
    """What people see: nothing in it hides, reorders or draws."""
    body(data)
    for text in _texts(json.loads(data)):
        assert {c for c in text if not c.isprintable()} <= {"\n"}


def exposition(data: bytes) -> None:
    """Each line is a comment or a sample; no label has more than one line."""
    assert_plain(data.decode())
    for line in data.decode().splitlines():
        assert re.match(r"# (HELP|TYPE) tracekit_|tracekit_\w+(\{.*\})? [\d.e+-]+$", line), line


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


Check = Callable[[bytes], None]
KINDS: dict[str, Check] = {
    "table": terminal, "wide": terminal, "line": terminal, "lines": terminal, "text": terminal,
    "json": document, "jsonl": documents, "csv": sheet, "markdown": markdown, "junit": xml,
    "sarif": document, "parquet": columns, "chrome": document, "otlp": documents,
    "perfetto": packets,
}  # fmt: skip
#: Of each verb that prints, the words that ask it of the hostile trace.
ASKED: dict[str, tuple[str, ...]] = {
    "info": (), "diagnose": (), "jobs": (), "explain": (JOB,), "timeline": (), "who": (),
    "compare": (JOB, JOB), "sql": (QUERY,), "watch": ("--once",), "replay": ("--diff",),
    "whatif": ("--set", "spec.backoffLimit=0"), "upgrade": ("--to", "v1.37.1"),
    "cron lint": (), "export": (),
}  # fmt: skip
#: They print what tracekit is, of no trace.
OF_NO_TRACE = {"versions", "cron next"}
#: They write a trace, which is data, or a page (below).
FILES = {
    "demo", "record", "merge", "report", "simulate", "minimise", "redact", "compact",
    *(f"import {kind}" for kind in (
        "any", "audit", "etcd", "etcd-delta", "kcm-log", "kine", "kshrk", "kubectl", "kubectl-text",
        "sched-recorder", "watch",
    )),
}  # fmt: skip


#: Each verb with an option that says how it prints, and each of its choices; "" is a file.
CHOICES = [
    (words, option.opts[-1], choice)
    for words, option in options()
    if {"--output", "--format", "--webhook-format"} & set(option.opts)
    for choice in getattr(option.type, "choices", ("",))
]
POSTED: dict[str, Check] = {
    "json": body, "slack": chat, "teams": chat, "pagerduty": body, "alertmanager": body,
}  # fmt: skip


def test_no_output_is_left_out() -> None:
    for verb, option, choice in CHOICES:
        if option == "--webhook-format":
            assert choice in POSTED
        elif choice:
            assert choice in KINDS, (verb, choice)
            assert verb in ASKED or verb in OF_NO_TRACE, verb
        else:
            assert verb in FILES or verb in ASKED, verb


def printed(*words: str) -> bytes:
    """What the command line prints, and that it says nothing on stderr that is obeyed."""
    runner = CliRunner()
    with runner.isolation() as (out, err, _):
        with pytest.raises(SystemExit) as left, mock.patch.object(sys, "argv", ["tracekit"]):
            main(list(words))
        sys.stdout.flush()
        data, said = out.getvalue(), err.getvalue().decode()
    assert left.value.code in (None, 0, 1), said
    assert_plain(said)
    return data


@pytest.mark.parametrize(
    ("verb", "option", "choice"),
    [(v, o, c) for v, o, c in CHOICES if v in ASKED and c and o != "--webhook-format"],
)
def test_each_escapes(hostile: Path, tmp_path: Path, verb: str, option: str, choice: str) -> None:
    words = [*verb.split(), str(hostile), *ASKED[verb], option, choice]
    if choice == "perfetto":
        printed(*words, "-o", str(tmp_path / "out"))
        data = (tmp_path / "out").read_bytes()
    else:
        data = printed(*words)
    KINDS[choice](data)


@pytest.mark.parametrize(
    "words",
    [("report", "-o"), ("whatif", "--set", "spec.backoffLimit=0", "--report")],
    ids=["report", "whatif"],
)
def test_each_page_escapes(
    hostile: Path, tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_page, "_PLAIN_CHARS_MAX", 1 << 30)  # packed it would hold no markup
    target = tmp_path / "page.html"
    printed(words[0], str(hostile), *words[1:], str(target))
    assert "onerror" in target.read_text()
    page(target.read_bytes())


def test_the_prompt_escapes(hostile: Path) -> None:
    out = io.StringIO()
    with closing(Session([hostile])) as session, redirect_stdout(out):
        Prompt(session, "table").answer(QUERY)
    assert "owned" in out.getvalue()
    terminal(out.getvalue().encode())


@pytest.mark.parametrize("format_", POSTED)
def test_each_post_escapes(format_: str) -> None:
    news = News(
        "TK126", "error", "Job", f"ns{EVIL}", f"n{EVIL}", FORMULA + EVIL, EVIL, 10**9, 10**10
    )
    payload = payload_of(format_, {ROUTING_KEY: "k" * 32})
    POSTED[format_](orjson.dumps(payload(news)))


def test_metrics_escape() -> None:
    """Their labels are of closed sets; if a text of a trace came into one, it would end no line."""
    counts = Counts(findings=Counter({f"TK126\nx{FORMULA}": 1}))
    waiting = SimpleNamespace(count=0, longest_ns=lambda _: 0)
    live: Any = SimpleNamespace(counts=counts, waiting=waiting, now_ns=10**9)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(WatchCollector(live))
    exposition(generate_latest(registry))


def test_no_address_of_a_webhook_is_in_the_metrics() -> None:
    """Its path is what keeps others from posting there."""
    waiting = SimpleNamespace(count=0, longest_ns=lambda _: 0)
    live: Any = SimpleNamespace(counts=Counts(), waiting=waiting, now_ns=10**9)
    hook = Webhook("http://127.0.0.1:9/hooks/canary0123456789")
    with suppress(NotSent):
        hook.send(News("TK126", "error", "Job", "a", "b", "c", "d", 10**9, 10**10))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(WatchCollector(live, hook))
    text = generate_latest(registry)
    assert b"tracekit_webhook_total" in text
    assert b"canary" not in text
    assert b"127.0.0.1" not in text
