"""Every recorded answer of the Go libraries beside croniter's: each disagreement has a class."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.go_answers import rows
from tests.tidy.source import REPOSITORY
from tracekit.answers.cronlint.classes import CLASSES, readings_of
from tracekit.answers.cronlint.comparison import compare
from tracekit.base.cron import Generation, load_zone
from tracekit.base.kube.timestamps import NS_PER_S, parse_rfc3339

AT = "2025-01-01T00:00:00Z"


def _compared(spec: str, generation: Generation, zone: str = "UTC", at: str = AT, count: int = 8):
    at_ns = parse_rfc3339(at)
    assert at_ns is not None
    return compare(
        spec, spec=spec, generation=generation, zone=load_zone(zone), at_ns=at_ns, count=count
    )


def test_each_disagreement_on_a_recorded_answer_has_a_class() -> None:
    """The first generation's rows are those of v1.1.0, the library that Kubernetes was built with."""
    generations = {generation.value: generation for generation in Generation}
    found: Counter[str] = Counter()
    compared = 0
    shared = [row for row in rows("robfig.jsonl.zst") if row["lib"] in generations]
    own = [row for row in rows("robfig-own.jsonl.zst") if row["lib"] == Generation.GEN1.value]
    for row in [*shared[::3], *(r for r in shared if "error" in r), *own[::2]]:
        at = row.get("from", AT)
        at_ns = row["from_ns"] if "from_ns" in row else parse_rfc3339(at)
        result = compare(
            row["spec"],
            spec=row["spec"],
            generation=generations[row["lib"]],
            zone=load_zone(row.get("zone", "UTC")),
            at_ns=at_ns,
            count=6,
        )
        compared += 1
        refused = "error" in row or "panic" in row
        assert (result.kubernetes.refused is not None) == refused, row
        assert result.agree == (
            result.kubernetes == result.croniter
            or (refused and result.croniter.refused is not None)
        )
        assert "unexplained" not in result.classes, row
        found.update(result.classes or ("agree",))
    assert compared > 1_000
    assert found["agree"] > compared * 0.7
    assert found["one-value-range"] > 30
    assert found["day-rule"] > 10
    assert set(found) <= {*CLASSES, "agree"}


@pytest.mark.parametrize(
    ("spec", "generation", "classes"),
    [
        ("5-5 * * * *", 3, ["one-value-range"]),
        ("0 0 1 dec-12 *", 3, ["one-value-range"]),
        ("0 0 1 jun-5 *", 3, ["wrapped-range"]),
        ("0 0 */2 * 1", 1, ["day-rule"]),
        ("0 0 */2 * 1", 3, []),
        ("0 0 1-31 * 1", 3, []),
        ("0 0 */1 * 1", 3, ["day-rule"]),
        ("0 0 *,15 * 1", 3, []),
        ("* * */8 * 2-2", 1, ["one-value-range", "day-rule"]),
        ("@every 45s", 3, ["every"]),
        ("TZ=Asia/Tokyo 0 9 * * *", 3, ["zone-prefix"]),
        ("TZ=Asia/Tokyo 5-5 9 * * *", 3, ["zone-prefix", "one-value-range"]),
        ("TZ=Asia/Tokyo 0 9 * * *", 1, []),
        ("?/5 * * * *", 3, ["question-mark"]),
        ("1,,3 * * * *", 3, ["empty-item"]),
        ("*-5 * * * *", 3, ["star-range"]),
        ("+5 * * * *", 3, ["plus-sign"]),
        ("0\u2003* * * *\u2003", 3, ["odd-blanks"]),
        ("*/5 * * * * *", 3, ["seconds"]),
        ("0 0 L * *", 3, ["last-day"]),
        ("0 0 * * L5", 3, ["last-day"]),
        ("0 0 15W * *", 3, ["nearest-weekday"]),
        ("0 0 * * 5#2", 3, ["nth-weekday"]),
        ("R * * * *", 3, ["random"]),
        ("0 0 * * 7", 3, ["weekday-7"]),
        ("0 22-2 * * *", 3, ["wrapped-range"]),
        ("*/99999 * * * *", 3, ["big-number"]),
        (", * * * *", 3, ["empty-item"]),
        ("0 0 */2 * 0-6", 3, ["day-rule"]),
        ("@Daily", 3, ["descriptor-case"]),
        ("0 0 29 2 *", 3, []),
        ("0 0 31 2 *", 3, []),
        ("@reboot", 3, []),
        ("99999-999999999999 * * * *", 3, []),
    ],
)
def test_the_class_of_a_schedule(spec: str, generation: int, classes: list[str]) -> None:
    which = Generation.GEN1 if generation == 1 else Generation.GEN3
    assert list(_compared(spec, which).classes) == classes


def test_a_skipped_hour_is_a_clock_change() -> None:
    at = "2025-03-29T12:00:00Z"
    result = _compared("30 2 * * *", Generation.GEN3, "Europe/Berlin", at, 2)
    assert result.classes == ("clock-change",)
    assert result.kubernetes.next_ns[0] // NS_PER_S == 1743381000  # 31 March, 02:30
    assert result.croniter.next_ns[0] // NS_PER_S == 1743296400  # 30 March, 03:00


def test_the_fifth_year_is_the_last_that_kubernetes_looks_at() -> None:
    result = _compared("0 0 29 2 *", Generation.GEN3, at="2096-03-01T00:00:00Z", count=1)
    assert result.classes == ("five-years",)
    assert result.kubernetes.next_ns == ()


def test_the_page_has_the_table_of_classes() -> None:
    page = (Path(REPOSITORY) / "docs/cron.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| `([\w-]+)` \| (.+) \| (.+) \| \d+ \|$", page, re.MULTILINE)
    assert {name: (ours, theirs) for name, ours, theirs in table} == CLASSES


@pytest.mark.parametrize(
    ("name", "schedule", "kubernetes"),
    [
        ("every", "@every 10s", "`@every 10s` is an interval"),
        ("every", "TZ=UTC @every 1h30m", "`@every 1h30m` is an interval"),
        ("plus-sign", "+07 * * * *", "reads `+07` as 7"),
        ("wrapped-range", "0-5 23-04 * * *", "refuses `23-04`"),
        ("wrapped-range", "0 0 * * FRI-MON", "refuses `FRI-MON`"),
        ("nth-weekday", "0 0 * * FRI#3", "refuses `FRI#3`"),
        ("empty-item", "1, * * * *", "skips what is missing in `1,`; `,` never fires"),
        ("weekday-7", "0 0 * * 7", "refuses 7 as a day of week: Sunday is 0"),
    ],
)
def test_a_class_is_told_by_the_schedule_at_hand(name: str, schedule: str, kubernetes: str) -> None:
    assert readings_of(name, schedule)[0] == kubernetes
