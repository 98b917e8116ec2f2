"""Command lines with one value, good or odd, for each of two options: of every verb, every pair."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, product

import click

from tests.support.command_tree import commands

JOB, CRONJOB = "t-crons/k036-29922591", "t-crons/k036"
_LONG = "x" * 10_000
_TIMES = (
    "2026-11-22T13:52:30Z", "-3m", "13:52", "", "nan", "0001-01-01T00:00:00Z", "\x1b[2J", _LONG,
    "9999-12-31T23:59:59Z", "2262-04-12T00:00:00Z", "-99999999999h", "2024-02-30", "1e400",
)  # fmt: skip
_VERSIONS = (
    "v1.36.3",
    "v1.21",
    "v9.99",
    "v1.0",
    "latest",
    "",
    "v1.99999999999999999999",
    "\x1b[2J",
)
_GATES = (
    "JobPodReplacementPolicy=false",
    "AllAlpha=true",
    "X=true",
    "=",
    "A",
    ",",
    "",
    "\x1b[2J=1",
)
_OUTPUTS = (
    "out",
    "out/",
    "a-folder",
    "a-file",
    "no/such/out",
    "",
    "n" * 300,
    ".",
    "json",
    "s3://b/x",
)
_FILES = ("a-file", "a-folder", "none", "", "n" * 300)
_KEYS = (JOB, CRONJOB, "job/x", "x", "/", "a/b/c", "", "\x1b[2J", _LONG)
_SETS = (
    "spec.backoffLimit=0", "spec.backoffLimit=null", "spec.x=1", "spec.backoffLimit=1e999",
    "spec.template={}", "spec.suspend=true", "=", "spec", "spec.completions=" + "[" * 999, "",
    "spec.schedule=x", "spec.jobTemplate=null", "spec.concurrencyPolicy=Forbid",
)  # fmt: skip
_ZONES = ("Europe/Berlin", "Local", "UTC", "", "../../etc/passwd", "Etc/GMT+14", "\x1b[2J", _LONG)
_FLAGS = ("--kube-api-qps=1", "--kube-api-qps=nan", '"', "--kube-api-burst=-1", "x", "", "\x1b[2J")
_NUMBERS = ("1", "2", "0", "-1", "1.5", "nan", "", str(2**31), str(2**63), str(10**30), "1e308")
_LENGTHS = ("2m", "1h", "0", "-1", "nan", "inf", "99999999999d", "0.001s", "", "x")
_TEXTS = ("x", "", " ", "\x1b[2J", "\u202ex", "a\nb", "%s", _LONG)
#: By the option, where its type says too little.
_VALUES = {
    **dict.fromkeys(("--from", "--to", "--at"), _TIMES),
    **dict.fromkeys(("--kubernetes-version", "--from-version"), _VERSIONS),
    **dict.fromkeys(("--feature-gates", "--from-feature-gates"), _GATES),
    **dict.fromkeys(("--job", "--why", "--object", "--cronjob"), _KEYS),
    **dict.fromkeys(("--process-zone", "--time-zone"), _ZONES),
    **dict.fromkeys(("--set", "--set-cron"), _SETS),
    **dict.fromkeys(("--baseline", "--key-file", "--file", "--with", "--parts"), _FILES),
    **dict.fromkeys(("--report", "--write-baseline"), _OUTPUTS),
    "--controller-flags": _FLAGS, "--workload": ("a-workload", *_FILES),
    "--selector": ("app=x", "!x", "a in (b,c)", "==", "a in (", "", "\x1b[2J"),
}  # fmt: skip
#: They serve, wait for others, or reach for a network.
_LEFT_OUT = {
    "--serve", "--port", "--metrics-port", "--metrics-address", "--scheduler", "--webhook", "--event",
    "--beside", "--poll", "--duration", "--kubeconfig", "--processes",
}  # fmt: skip
#: What each verb is asked about, with the options that it needs.
ASKED: dict[str, tuple[tuple[str, ...], dict[str, str | None]]] = {
    "import watch": (("LOG",), {"--output": "imported"}), "manifests": (("-A",), {}),
    "info": (("TRACE",), {}), "diagnose": (("TRACE",), {}), "jobs": (("TRACE",), {}),
    "explain": (("TRACE", JOB), {}), "timeline": (("TRACE",), {}), "who": (("TRACE",), {}),
    "compare": (("TRACE", JOB, "t-crons/k036-29922592"), {}),
    "report": (("TRACE",), {"--output": "page"}), "sql": (("TRACE", "FROM jobs"), {}),
    "watch": (("TRACE",), {"--once": None}), "replay": (("TRACE",), {"--diff": None}),
    "whatif": (("TRACE",), {"--kubernetes-version": "v1.37.1"}),
    "upgrade": (("TRACE",), {"--to": "v1.37.1"}), "versions": (("v1.21", "v1.36"), {}),
    "simulate": ((), {"--output": "simulated", "--workload": "a-workload"}),
    "cron lint": (("30 2 * * *",), {}), "cron next": (("30 2 * * *",), {}),
    "minimise": (("TRACE",), {"--output": "small", "--attempts": "2"}),
    "redact": (("TRACE",), {"--output": "hashed"}), "compact": (("TRACE",), {"--output": "packed"}),
    "export": (("TRACE",), {"--format": "jsonl"}),
}  # fmt: skip


def values(option: click.Option) -> tuple[str | None, ...]:
    """What an option is given; None: it takes no value."""
    name, kind = max(option.opts, key=len), option.type
    if option.is_flag:
        return (None,)
    if name in _VALUES:
        return _VALUES[name]
    if isinstance(kind, click.Choice):
        return (*kind.choices, "", "x", "\x1b[2J")
    if isinstance(kind, click.Path):
        return _OUTPUTS
    by_type = {
        "duration": _LENGTHS,
        "integer": _NUMBERS,
        "integer range": _NUMBERS,
        "float": _NUMBERS,
    }
    return by_type.get(kind.name, _TEXTS)


def lines(verb: str, draw: random.Random) -> Iterator[list[str]]:
    """Each pair of a verb's options once, with values that are drawn."""
    command = dict(commands())[verb]
    mine = {max(p.opts, key=len): p for p in command.params if isinstance(p, click.Option)}
    pairs = combinations(sorted(mine.keys() - _LEFT_OUT), 2)
    for pair in pairs:
        yield line(verb, {name: draw.choice(values(mine[name])) for name in pair})


def singles(verb: str) -> Iterator[list[str]]:
    """Each value of each of a verb's options alone."""
    for option in dict(commands())[verb].params:
        name = max(option.opts, key=len)
        if isinstance(option, click.Option) and name not in _LEFT_OUT:
            for chosen, value in product([name], values(option)):
                yield line(verb, {chosen: value})


def line(verb: str, given: dict[str, str | None]) -> list[str]:
    """The words of a command line."""
    words, needed = ASKED[verb]
    said = [f"{name}={v}" if v is not None else name for name, v in {**needed, **given}.items()]
    return [*verb.split(), *words, *said]
