"""The shipped views, macros and examples: one .sql file each, with its documentation inside.

A view's file begins with `---` lines (what the view is), a `--?` line where it answers a question
of a postmortem, one `--@ column | source | null` line per column, and a `--= column | A, B` line
where a column has a closed set of values; a macro's file documents each of its public macros as
`--- signature: what it is`. What follows from the declared fields of a Job's status is put in
(`status_columns`). The docs and the completion are made from these, so that they cannot
tell another story than the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files

from msgspec import Struct

from tracekit.base.kube.actors import DISRUPTERS
from tracekit.sql.status_columns import with_status_columns
from tracekit.trace.format.schema import COLUMNS

#: Views in an order in which each one only needs those before it.
VIEWS = (
    "_states", "observations", "objects", "_pods", "_deletions", "attempts", "jobs", "_cron_runs",
    "_cronjobs", "cronjobs", "job_history", "pod_phases", "conditions", "k8s_events", "actions",
    "finalizers", "leaders", "gaps", "coverage", "logs", "cron_ticks", "divergences", "verdicts",
    # Each the answer to one question of a postmortem.
    "failures", "latency", "latency_shares", "start_latency", "missed_runs", "backoffs", "retries",
    "accounting", "controller_lag", "deletions", "node_pods", "count_jumps", "job_concurrency",
    "wasted_pods", "lost_work", "backlog", "costs", "outliving_pods", "last_success", "findings",
    "causes", "endings", "waits",
)  # fmt: skip

#: Views that others are made of, some of them several times over.
SHARED = frozenset({"_states", "_pods", "_deletions", "attempts", "jobs"})

#: Views whose rows are computed by tracekit when a query asks for them, or that read such a view.
COMPUTED = {
    "cronjobs": "_schedule_notes",
    "coverage": "_coverage",
    "cron_ticks": "_cron_ticks",
    "missed_runs": "_cron_ticks",
    "latency": "_cron_ticks",
    "latency_shares": "_cron_ticks",
    "divergences": "_verdicts",
    "verdicts": "_verdicts",
    "controller_lag": "_verdicts",
    "findings": "_findings",
    "endings": "_endings",
    "waits": "_waits",
    "causes": "_causes",
}

_MACRO_DOC = re.compile(r"^--- (?P<call>(?P<name>\w+)\([^)]*\)): (?P<text>.*)$", re.MULTILINE)


_MACRO = re.compile(r"^CREATE MACRO (?P<name>\w+)\(", re.MULTILINE)
_NAMED = re.compile(r"\w+")
#: What a query or view of ours takes, or calls; others write as they like.
_TAKEN = re.compile(r"\b(?:(?:FROM|JOIN)\s+(?:internal\.)?(?P<taken>\w+)|(?P<called>\w+)\()")
#: A query with one of these may ask for what there is; DESC does only where a query can begin.
_CATALOG_WORDS = re.compile(
    r"\b(show|describe|summarize|pragma\w*|information_schema|duckdb_\w+|sqlite_master)\b"
    r"|(^|[(;])\s*desc\b",
    re.IGNORECASE | re.MULTILINE,
)


#: `DESCRIBE view` and `SHOW TABLES` alone: they are answered with what things mean.
_DESCRIBE = re.compile(r'\s*desc(?:ribe)?\s+(?:main\.)?"?(\w+)"?\s*;?\s*', re.IGNORECASE)
_SHOW_TABLES = re.compile(r"\s*show\s+tables\s*;?\s*", re.IGNORECASE)
_COLUMNS = """
SELECT column_name, data_type AS column_type, comment FROM duckdb_columns()
WHERE schema_name = 'main' AND table_name = '{name}' ORDER BY column_index
"""
_TABLES = """
SELECT name, comment FROM (
  SELECT view_name AS name, comment FROM duckdb_views() WHERE schema_name = 'main' AND NOT internal
  UNION ALL SELECT table_name, comment FROM duckdb_tables() WHERE schema_name = 'main'
) WHERE NOT starts_with(name, '_') ORDER BY name
"""


class ColumnDoc(Struct, frozen=True):
    """What a column means."""

    name: str
    source: str
    null: str

    @property
    def meaning(self) -> str:
        """Both in one line."""
        return f"{self.source} (null: {self.null})"


class View(Struct, frozen=True):
    """One view."""

    name: str
    text: str
    columns: tuple[ColumnDoc, ...]
    sql: str
    #: Of columns with a closed set of values: which these are.
    values: Mapping[str, tuple[str, ...]]
    #: The question of a postmortem that it answers by itself; empty for the others.
    question: str = ""

    @property
    def public(self) -> bool:
        """Whether it is for users; the others are what these are made of."""
        return not self.name.startswith("_")


class Macro(Struct, frozen=True):
    """One public macro."""

    name: str
    call: str
    text: str


class Example(Struct, frozen=True):
    """A question of the morning after, and the query that answers it."""

    name: str
    question: str
    sql: str


@lru_cache(maxsize=1)
def views() -> tuple[View, ...]:
    """Every view, in the order in which they are made."""
    return tuple(_view(name, with_status_columns(_read("views", name))) for name in VIEWS)


def job_columns() -> tuple[str, ...]:
    """The columns of the view `jobs`."""
    (jobs,) = (view for view in views() if view.name == "jobs")
    return tuple(column.name for column in jobs.columns)


def _macro_scripts() -> tuple[str, str]:
    """The macros that the views need, and those that need the views."""
    return f"{_read('macros', 'base')}\n{_disrupter()}", _read("macros", "questions")


def _disrupter() -> str:
    """The macro that says who ended a pod, by the reason of its disruption."""
    cases = " ".join(f"WHEN '{reason}' THEN '{who}'" for reason, who in DISRUPTERS.items())
    return f"CREATE MACRO disrupter(reason) AS (CASE reason {cases} END);"


def parts_for(query: str, *, is_own: bool = False) -> tuple[str, ...]:
    """The views and macros that a query takes, those below them first.

    All of them where it may ask what there is. Making them binds each view anew in every one
    above it, and most queries name one or two. Of what a user writes any word may be one; our own
    queries have columns and streams that are called like views, and take what stands behind FROM.
    """
    if _CATALOG_WORDS.search(query):
        return tuple(_definitions())
    wanted: set[str] = set()
    ahead = [*_taken(query)] if is_own else _NAMED.findall(query)
    while ahead:
        name = ahead.pop().lower()
        if name in _definitions() and name not in wanted:
            wanted.add(name)
            ahead.extend(_taken(_definitions()[name]))
    return tuple(name for name in _definitions() if name in wanted)


def _taken(text: str) -> Iterator[str]:
    for match in _TAKEN.finditer(text):
        yield match["taken"] or match["called"]


def with_meanings(query: str) -> str:
    """What is asked in place of `DESCRIBE view` and `SHOW TABLES`; other queries as they are."""
    if _SHOW_TABLES.fullmatch(query):
        return _TABLES
    asked = _DESCRIBE.fullmatch(query)
    name = asked[1].lower() if asked else ""
    if any(view.name == name and view.public for view in views()):
        return _COLUMNS.replace("{name}", name)
    return query


def asks_what_there_is(query: str) -> bool:
    """Whether a query may read the catalog of DuckDB."""
    return _CATALOG_WORDS.search(query) is not None


def comments(view: View, kind: str) -> str:
    """The statements that tell DuckDB what a view and its columns mean; `kind`: VIEW or TABLE."""
    reported = [f"COMMENT ON {kind} {view.name} IS {literal(view.text)}"]
    reported += [
        f'COMMENT ON COLUMN {view.name}."{column.name}" IS {literal(column.meaning)}'
        for column in view.columns
    ]
    return "; ".join(reported)


def literal(text: str) -> str:
    """The text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def definition(part: str) -> str:
    """The statement that makes a view or a macro of `parts_for`."""
    return _definitions()[part]


@lru_cache(maxsize=1)
def _definitions() -> Mapping[str, str]:
    """By name, in an order in which each one only needs those before it."""
    below, above = map(_macros_in, _macro_scripts())
    return below | {view.name: view.sql for view in views()} | above


def _macros_in(script: str) -> dict[str, str]:
    """The statements that make the macros of a script, by their names, without a word about them.

    What a comment names is not taken.
    """
    lines = (line for line in script.splitlines() if not line.lstrip().startswith("--"))
    script = "\n".join(lines)
    starts = [match.start() for match in _MACRO.finditer(script)]
    ends = [*starts[1:], len(script)]
    texts = [script[start:end] for start, end in zip(starts, ends, strict=True)]
    return {_MACRO.match(text)["name"]: text for text in texts}  # type: ignore[index]


@lru_cache(maxsize=1)
def macros() -> tuple[Macro, ...]:
    """The macros that are for users."""
    return tuple(
        Macro(match["name"], match["call"], match["text"])
        for script in _macro_scripts()
        for match in _MACRO_DOC.finditer(script)
    )


@lru_cache(maxsize=1)
def examples() -> tuple[Example, ...]:
    """The shipped queries, by name."""
    folder = files("tracekit.sql") / "examples"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(_example(name.removesuffix(".sql")) for name in names)


def _example(file: str) -> Example:
    first, _, sql = _read("examples", file).partition("\n")
    return Example(file.partition("_")[2].replace("_", "-"), first.removeprefix("-- "), sql.strip())


def _read(folder: str, name: str) -> str:
    return (files("tracekit.sql") / folder / f"{name}.sql").read_text(encoding="utf-8")


def _view(name: str, script: str) -> View:
    question = " ".join(_marked(script, "--? "))
    columns = tuple(_columns(script))
    if name == "observations":
        columns += tuple(ColumnDoc(column.name, column.source, column.null) for column in COLUMNS)
    return View(
        name,
        " ".join(_marked(script, "--- ")),
        columns,
        _sql(script),
        dict(_values(script)),
        question,
    )


def _marked(script: str, mark: str) -> Iterator[str]:
    for line in script.splitlines():
        if line.startswith(mark):
            yield line.removeprefix(mark)


def _values(script: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for line in _marked(script, "--= "):
        name, _, values = line.partition(" | ")
        yield name, tuple(values.split(", "))


def _columns(script: str) -> Iterator[ColumnDoc]:
    for line in script.splitlines():
        if line.startswith("--@ "):
            name, source, null = (part.strip() for part in line[4:].split(" | "))
            yield ColumnDoc(name, source, null)


def _sql(script: str) -> str:
    return "\n".join(line for line in script.splitlines() if not line.startswith("--"))
