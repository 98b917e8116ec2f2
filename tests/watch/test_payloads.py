"""Findings reach Slack, Teams, PagerDuty and Alertmanager: stand-ins take what these document."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tracekit.base.errors import UsageError
from tracekit.watch.news import News
from tracekit.watch.payloads import FORMATS, ROUTING_KEY, payload_of
from tracekit.watch.webhook import Webhook

EVIL = "<!channel> [a](http://evil) **b** & \x1b[2J" + "x" * 5_000
NEWS = News("TK126", "error", "Job", "shop", "import", "a status", "why", 10**9, 46 * 10**9, "u-1")
HOSTILE = News("TK401", "warning", "Job", "shop", f"n{EVIL}", EVIL, EVIL, 10**9, 46 * 10**9, "u-2")
OF_THE_WHOLE = News("TK208", "warning", "Lease", "", "kcm", "nobody led", "42 s", 10**9, 46 * 10**9)
KEY = "0123456789abcdef0123456789abcdef"


def slack(body: Any) -> bool:
    """What api.slack.com says of incoming webhooks and section blocks."""
    return (
        0 < len(body["text"]) <= 40_000
        and not re.search(r"[<>]|&(?!amp;|lt;|gt;)", body["text"])
        and 0 < len(body["blocks"]) <= 50
        and all(block["type"] == "section" for block in body["blocks"])
        and all(block["text"]["type"] == "plain_text" for block in body["blocks"])
        and all(1 <= len(block["text"]["text"]) <= 3_000 for block in body["blocks"])
    )


def teams(body: Any) -> bool:
    """What Microsoft says of cards by webhook: 28 kB, one card, text runs for plain text."""
    (attachment,) = body["attachments"]
    card = attachment["content"]
    return (
        body["type"] == "message"
        and attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
        and (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
        and all(block["type"] == "RichTextBlock" for block in card["body"])
        and all(
            run["type"] == "TextRun" and run["text"] for b in card["body"] for run in b["inlines"]
        )
        and len(json.dumps(body)) < 28_000
    )


def pagerduty(body: Any) -> bool:
    """What PagerDuty says of the Events API v2."""
    payload = body["payload"]
    return (
        len(body["routing_key"]) == 32
        and body["event_action"] in ("trigger", "acknowledge", "resolve")
        and 0 < len(body["dedup_key"]) <= 255
        and 0 < len(payload["summary"]) <= 1_024
        and bool(payload["source"])
        and payload["severity"] in ("critical", "error", "warning", "info")
        and datetime.fromisoformat(payload["timestamp"]).tzinfo is not None
    )


def alertmanager(body: Any) -> bool:
    """What Alertmanager's openapi.yaml and its own validation say of postableAlerts."""
    return all(
        alert["labels"]["alertname"]
        and all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) for name in alert["labels"])
        and all(isinstance(text, str) and text for text in alert["labels"].values())
        and all(isinstance(text, str) for text in alert["annotations"].values())
        and datetime.fromisoformat(alert["startsAt"]).tzinfo is not None
        for alert in body
    )


#: Whether a service takes a body, and what it answers then.
SERVICES: dict[str, tuple[Callable[[Any], bool], int]] = {
    "slack": (slack, 200),
    "teams": (teams, 202),
    "pagerduty": (pagerduty, 202),
    "alertmanager": (alertmanager, 200),
}


class StandIn(ThreadingHTTPServer):
    """One of the services, on loopback: refuses what it does not document."""

    def __init__(self, name: str) -> None:
        self.takes, self.status = SERVICES[name]
        self.got: list[Any] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            taken = self.server.takes(body) and self.headers["Content-Type"] == "application/json"
        except (KeyError, TypeError, ValueError):
            taken = False
        self.server.got.append(body)
        self.send_response(self.server.status if taken else 400)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(params=[name for name in FORMATS if name != "json"])
def service(request) -> Iterator[tuple[str, StandIn]]:
    with StandIn(request.param) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield request.param, made
        made.shutdown()


@pytest.mark.parametrize("news", [NEWS, HOSTILE, OF_THE_WHOLE], ids=["plain", "hostile", "whole"])
def test_a_service_takes_what_it_documents(service: tuple[str, StandIn], news: News) -> None:
    name, server = service
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    webhook = Webhook(url, payload_of(name, {ROUTING_KEY: KEY}), pause_s=0.0)
    webhook.start()
    webhook.post(news)
    webhook.close()
    assert (webhook.sent, webhook.failed) == (1, 0), server.got
    text = json.dumps(server.got[0])
    assert news.id in text
    if name != "pagerduty":  # whose details are JSON, which nobody renders
        assert "\\u001b" not in text


def test_the_same_finding_is_the_same_incident() -> None:
    make = payload_of("pagerduty", {ROUTING_KEY: KEY})
    assert make(NEWS)["dedup_key"] == make(NEWS)["dedup_key"]
    assert make(NEWS)["dedup_key"] != make(HOSTILE)["dedup_key"]


@pytest.mark.parametrize("key", ["", "short"])
def test_pagerduty_wants_its_key_and_does_not_repeat_it(key: str) -> None:
    with pytest.raises(UsageError, match=ROUTING_KEY) as caught:
        payload_of("pagerduty", {ROUTING_KEY: key})
    assert not key or key not in str(caught.value)
