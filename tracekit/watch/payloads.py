"""News as chats and pagers take them: the documented body of each; they obey none of its text.

| format | what it is posted to |
|---|---|
| `json` | anything of yours: the document of docs/watch.md |
| `slack` | an incoming webhook |
| `teams` | a workflow of Teams that posts a card when a webhook request is received |
| `pagerduty` | the Events API v2, https://events.pagerduty.com/v2/enqueue |
| `alertmanager` | Alertmanager's API v2, http://HOST:9093/api/v2/alerts |
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from tracekit.base.errors import UsageError
from tracekit.base.escaping import for_terminal
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.watch.news import News

Payload = Callable[[News], Any]

#: Where PagerDuty's key is read from: a command line is seen by every user of a machine.
ROUTING_KEY: Final = "TRACEKIT_PAGERDUTY_ROUTING_KEY"
FORMATS: Final = ("json", "slack", "teams", "pagerduty", "alertmanager")
_ROUTING_KEY_CHARS = 32
#: Slack's limit of a section's text, and PagerDuty's of a summary.
_SLACK_CHARS_MAX = 3_000
_SUMMARY_CHARS_MAX = 1_024
#: A card of Teams has 28 kB; a label or annotation should be read by people.
_TEXT_CHARS_MAX = 4_000


def payload_of(name: str, environment: Mapping[str, str]) -> Payload:
    """What makes the body of a post in this format.

    Raises:
        UsageError: PagerDuty's key is not in the environment.
    """
    plain = {
        "json": News.document, "slack": slack, "teams": teams, "alertmanager": alertmanager,
    }  # fmt: skip
    if name in plain:
        return plain[name]
    key = environment.get(ROUTING_KEY, "")
    if len(key) != _ROUTING_KEY_CHARS:
        raise UsageError(
            f"{ROUTING_KEY} must hold the integration key of the service, "
            f"{_ROUTING_KEY_CHARS} characters: set it in the environment"
        )
    return partial(pagerduty, routing_key=key)


def slack(news: News) -> dict[str, Any]:
    """A message of an incoming webhook; mentions and links are made of `<`, `>` and `&` alone."""
    head = f"{news.severity.upper()} {news.id} {_plain(news.subject)}"
    body = f"{_plain(news.text)}\n{_plain(news.why)}\n{format_rfc3339(news.at_ns)}"
    return {
        "text": _for_slack(f"{head}: {_plain(news.text)}"),
        "blocks": [
            {
                "type": "section",
                "text": {"type": "plain_text", "text": _cut(text, _SLACK_CHARS_MAX)},
            }
            for text in (head, body)
        ],
    }


def _for_slack(text: str) -> str:
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, entity)
    return _cut(text, _SLACK_CHARS_MAX)


def teams(news: News) -> dict[str, Any]:
    """A message with an Adaptive Card, of text runs: they are no Markdown."""
    colour = {"error": "attention", "warning": "warning"}.get(news.severity, "default")
    head = {
        "type": "TextRun", "text": f"{news.severity.upper()} {news.id} {_plain(news.subject)}",
        "weight": "bolder", "color": colour,
    }  # fmt: skip
    lines = (_plain(news.text), _plain(news.why), str(format_rfc3339(news.at_ns)))
    runs = [[head], *([{"type": "TextRun", "text": _cut(line)}] for line in lines)]
    return {
        "type": "message",
        "attachments": [
            {
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": None,
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "body": [{"type": "RichTextBlock", "inlines": run} for run in runs],
                },
            }
        ],
    }


def pagerduty(news: News, *, routing_key: str) -> dict[str, Any]:
    """An event that triggers; the same finding of the same object is the same incident."""
    return {
        "routing_key": routing_key,
        "event_action": "trigger",
        "dedup_key": _key(news),
        "client": "tracekit",
        "payload": {
            "summary": _cut(
                f"{news.id} {_plain(news.subject)}: {_plain(news.text)}", _SUMMARY_CHARS_MAX
            ),
            "source": _plain(news.subject),
            "severity": news.severity,
            "timestamp": format_rfc3339(news.at_ns),
            "group": _plain(news.namespace),
            "class": news.id,
            "custom_details": news.document(),
        },
    }


def alertmanager(news: News) -> list[dict[str, Any]]:
    """An alert; it ends by Alertmanager's resolve_timeout, for a finding has no end of its own."""
    labels = {
        "alertname": news.id, "severity": news.severity, "kind": news.kind,
        "namespace": news.namespace, "name": news.name, "source": "tracekit",
    }  # fmt: skip
    return [
        {
            # A label without a value is no label.
            "labels": {name: _cut(_plain(value)) for name, value in labels.items() if value},
            "annotations": {
                "summary": _cut(_plain(news.text)),
                "description": _cut(_plain(news.why)),
            },
            "startsAt": format_rfc3339(news.at_ns),
        }
    ]


def _key(news: News) -> str:
    """The same for the same finding of the same object; PagerDuty takes up to 255 characters."""
    parts = (news.id, news.kind, news.namespace, news.name, news.uid)
    return f"tracekit-{hashlib.sha256(repr(parts).encode()).hexdigest()[:40]}"


def _plain(text: str) -> str:
    return for_terminal(text)


def _cut(text: str, most: int = _TEXT_CHARS_MAX) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
