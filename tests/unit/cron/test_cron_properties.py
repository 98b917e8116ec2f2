"""No text hangs or crashes the parser, and ordinary schedules agree with croniter in UTC."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

from croniter import CroniterBadDateError, croniter
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tracekit.base.cron import CronSpecError, Generation, load_zone, next_activations_ns, parse
from tracekit.base.kube.timestamps import NS_PER_S

ZONES = (
    "UTC",
    "America/New_York",
    "America/Sao_Paulo",
    "Africa/Cairo",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Antarctica/Troll",
)
generations = st.sampled_from(list(Generation))
#: From the year 1 to past 9999: beyond what Python's datetime can hold.
instants_ns = st.integers(-70_000_000_000, 300_000_000_000).map(lambda s: s * NS_PER_S)


def one_field(low: int, high: int) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    span = st.tuples(value, value).map(sorted).filter(lambda ends: ends[0] < ends[1])
    item = st.one_of(
        value.map(str),
        span.map(lambda ends: f"{ends[0]}-{ends[1]}"),
        st.tuples(span, st.integers(1, 9)).map(lambda x: f"{x[0][0]}-{x[0][1]}/{x[1]}"),
    )
    return st.one_of(st.just("*"), st.lists(item, min_size=1, max_size=3).map(",".join))


ordinary = st.tuples(
    one_field(0, 59), one_field(0, 23), one_field(1, 31), one_field(1, 12), one_field(0, 6)
).map(" ".join)
odd_tokens = st.sampled_from(
    [
        "*",
        "?",
        ",",
        "-",
        "/",
        "0",
        "1",
        "7",
        "59",
        "60",
        "99999999999999999999",
        "mon",
        "JAN",
        "sun-sat",
        "*/2",
        "*/0",
        "+5",
        "-1",
        "@daily",
        "@every",
        "1h",
        "TZ=",
        "TZ=UTC",
        "CRON_TZ=Europe/Berlin",
        "TZ=Local",
        "L",
        "#",
        "\u3000",
        "\x1c",
        "\x85",
        "\x00",
    ]
)
nearly = st.lists(odd_tokens, max_size=9).flatmap(
    lambda tokens: st.sampled_from(["", " "]).map(lambda glue: glue.join(tokens))
)
specs = st.one_of(
    st.text(max_size=40),
    nearly,
    ordinary,
    st.just("@every ").flatmap(
        lambda head: st.text("0123456789.hmsnu\u00b5-+", max_size=12).map(lambda tail: head + tail)
    ),
)


@settings(max_examples=400)
@given(specs, generations, st.sampled_from(ZONES), instants_ns)
@example("0 0 5 * *", Generation.GEN3, "Pacific/Apia", 1_325_030_400 * NS_PER_S)
@example("@every 9223372036.854775807s", Generation.GEN1, "UTC", 0)
@example("TZ=0", Generation.GEN3, "UTC", 0)
def test_every_text_is_answered(spec: str, generation: Generation, zone: str, at_ns: int) -> None:
    try:
        found = next_activations_ns(
            spec, from_ns=at_ns, count=3, generation=generation, zone=load_zone(zone)
        )
    except CronSpecError:
        return
    assert found == sorted(set(found))
    assert all(next_ns > at_ns - NS_PER_S and next_ns % NS_PER_S == 0 for next_ns in found)


@settings(max_examples=200)
@given(ordinary, st.integers(0, 4_000_000_000))
def test_ordinary_schedules_agree_with_croniter(spec: str, start_s: int) -> None:
    ours = parse(spec).next_ns(start_s * NS_PER_S)
    theirs = croniter(spec, datetime.fromtimestamp(start_s, UTC), max_years_between_matches=9)
    if ours is None:
        # The Go library gives up in the sixth year; what croniter finds must lie beyond.
        limit = datetime.fromtimestamp(start_s + 1, UTC).year + 5
        with contextlib.suppress(CroniterBadDateError):
            assert theirs.get_next(datetime).year > limit
        return
    assert ours == int(theirs.get_next(float)) * NS_PER_S


@settings(max_examples=150)
@given(ordinary, st.integers(0, 4_000_000_000))
def test_the_generations_agree_in_utc_where_no_star_has_a_step(spec: str, start_s: int) -> None:
    at_ns = start_s * NS_PER_S
    assert parse(spec, Generation.GEN1).next_ns(at_ns) == parse(spec).next_ns(at_ns)
