"""One DuckDB connection with the views over one or several traces.

The traces' Parquet files are read where they lie: the very files that were opened and verified when
the session began, by their descriptors, so nothing that happens to their names can be seen in an
answer, no name is a pattern or leads elsewhere, and nothing can be written to them. A file without
checksums may break in the middle all the same: it is left out and named, and the rest answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from tracekit.base.stopping import interrupted_at_once, interrupting
from tracekit.judge.verdict_table import CachedVerdicts, tables_of
from tracekit.sql import computed
from tracekit.sql.catalog import (
    COMPUTED,
    SHARED,
    asks_what_there_is,
    comments,
    definition,
    literal,
    macros,
    parts_for,
    views,
    with_meanings,
)
from tracekit.sql.computed_schemas import no_rows
from tracekit.sql.exact_types import carried_whole
from tracekit.sql.guard import check_read_only, reads, statements_of
from tracekit.sql.memory import bound_memory
from tracekit.sql.messages import QueryError, explain_error
from tracekit.sql.relation import reporting
from tracekit.sql.scope import EVERYTHING, Chosen, ChosenRows, chosen_rows, newest_ns
from tracekit.sql.sources import Source, find_sources
from tracekit.sql.unreadable import drop_unreadable
from tracekit.sql.values import check_values
from tracekit.sql.verified_files import Handles
from tracekit.sql.wide_copies import wide_copy
from tracekit.trace.format.schema import NAMES, SCHEMA
from tracekit.trace.format.seal import DamageError
from tracekit.trace.reading.files import SegmentFile
from tracekit.trace.reading.losses import lost_files
from tracekit.trace.reading.objects import Objects
from tracekit.versions.overrides import AskedRules

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

#: Gives the verdicts of some traces, of each a table.
JudgedBy = Callable[[Sequence[Source], AskedRules], list[pa.Table]]

_NAMED = re.compile(r"\w+")
_OF_A_NAME = (duckdb.BinderException, duckdb.CatalogException)
_PLACE = re.compile(r"^LINE (\d+):", re.MULTILINE)
_COMPUTED_NAMES = re.compile(r"\b(" + "|".join(COMPUTED) + r")\b", re.IGNORECASE)
#: Up to so many a shared view costs as much to compute as to bind twice or thrice.
_FEW_ROWS = 10_000
#: So many rows of an answer are brought into memory at a time.
_AT_A_TIME = 4096
_CONFIG = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}


class Session:
    """Views and macros over traces; `trace_problems` says what of them could not be read."""

    def __init__(
        self,
        traces: Sequence[str | Path],
        *,
        write: bool = False,
        rules: AskedRules | None = None,
        before_judging: Callable[[int], None] | None = None,
        held: Mapping[str, pa.Table] | None = None,
        chosen: Chosen = EVERYTHING,
        judged_by: JudgedBy | None = None,
        with_rows: bool = True,
    ) -> None:
        """`write` lifts the restriction to reading these traces' files.

        `rules` are for the computed views, where the traces do not say them. `before_judging` is
        called with the observations of a trace that has to be judged for a query. `held` are rows
        in memory, by the name of their trace, with all columns of one: a part of a trace answers
        what is asked about that part alone. `chosen`: the part that all answers are about.
        `judged_by` gives the verdicts of traces; None: this process judges. Without rows only
        verdicts can be asked for, and no trace is opened.
        """
        #: What the user said of the rules to judge by.
        self.rules = rules or AskedRules()
        self.sources = find_sources(traces, chosen, opened=with_rows, rules=self.rules)
        self._chosen = chosen
        self._judged_by = judged_by
        self._with_rows = with_rows
        self._write = write
        self._held = dict(held or {})
        self._before_judging = before_judging
        self._computed: set[str] = set()
        #: Verdicts that DuckDB reads as they were kept, by their traces.
        self._kept: dict[str, Dataset | pa.Table] = {}
        #: By trace: findings, causes, endings and waits, once they were asked for.
        self._answers: dict[str, dict[str, pa.Table]] = {}
        self._made: set[str] = set()
        self._commented: set[str] = set()
        #: Views that are made once, for all queries that follow.
        self._to_hold: frozenset[str] = frozenset()
        #: Keeps what each query of `table` takes within bounds, of a program's own choice.
        self.bounded: Callable[[], AbstractContextManager[None]] = nullcontext
        #: What of it lies in memory.
        self._tables: list[str] = []
        self.connection = duckdb.connect(config={} if write else dict(_CONFIG))
        if self._held or self._has_few_rows:
            self.connection.execute("SET threads = 1")  # for so few rows none need be begun
        self.connection.execute("SET TimeZone = 'UTC'")
        bound_memory(self.connection)
        # Segments never change once in place; their footers need no second reading.
        self.connection.execute("SET parquet_metadata_cache = true")
        #: The files that DuckDB reads in the place of narrow ones.
        self._wide: dict[SegmentFile, SegmentFile] = {}
        #: What it reads of each trace of which only a part is chosen.
        self._parts: dict[str, ChosenRows] = {}
        for source in self.sources:
            if chosen.is_part and source.snapshot is not None:
                self._parts[source.name] = chosen_rows(source.snapshot, chosen)
            else:
                self._widen(source)
        files = [] if chosen.is_part else [f for source in self.sources for f in source.files]
        self._handles = Handles(
            [*(self._wide.get(file, file) for file in files), *self._parts.values()]
        )
        self._handles.show(self.connection)
        if not write:
            self._restrict()
        with self._errors(""):
            self._make()
        if not write:
            self.connection.execute("SET lock_configuration = true")

    @property
    def problems(self) -> list[str]:
        """Sentences about what of the traces is left out of all answers."""
        return [problem for source in self.sources for problem in source.problems]

    @property
    def whole_trace(self) -> Source | None:
        """The one trace that this is about, where that is all of a trace that can be read."""
        one = self.sources[0] if len(self.sources) == 1 else None
        part = self._held or self._chosen.is_part
        return None if one is None or one.snapshot is None or part else one

    @property
    def left_out(self) -> int:
        """How many traces have nothing of what is chosen, as was seen without opening them."""
        return sum(source.left_out for source in self.sources)

    @property
    def warnings(self) -> list[str]:
        """Sentences about the rules that the traces were judged by, once they were."""
        return list(dict.fromkeys(text for source in self.sources for text in source.warnings))

    @property
    def is_damaged(self) -> bool:
        """Whether anything of the traces could not be believed or has lost its end."""
        return any(source.is_damaged for source in self.sources)

    @property
    def end_ns(self) -> int:
        """When the last row of the traces was received; 0 where there is none."""
        (row,) = self.rows("SELECT max(trace_end_ns) AS at_ns FROM internal._ends")
        return int(row["at_ns"] or 0)

    def close(self) -> None:
        """Give the memory free."""
        self.connection.close()
        self._handles.close()
        for part in self._parts.values():
            part.close()

    #### Queries ####

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """The result of a query as a DuckDB relation, computed when it is fetched.

        What goes wrong then is a `QueryError`, too.
        """
        with self._errors(query):
            relation = self.connection.sql(self._prepare(query))
        if relation is None:
            relation = self.connection.sql("SELECT 'done' AS result")
        return reporting(relation, lambda: self._errors(query))

    def table(self, query: str) -> pa.Table:
        """The result of a query, read around files that turn out to be damaged."""
        with self._errors(query):
            return self._fetch_around_damage(self._prepare(query))

    def own_table(self, query: str) -> pa.Table:
        """The same for a query of our own, which needs no check that it only reads."""
        with self._errors(query):
            self._make_parts(query)
            self._compute_for(query)
            return self._fetch_around_damage(query)

    def compute(self, view: str) -> None:
        """Have what a view is made of, for queries of our own, which compute nothing."""
        self.own_table(f"SELECT 1 FROM {view} LIMIT 0")  # noqa: S608 - a view's name, of our own

    def hold(self, *parts: str) -> None:
        """Make these of `SHARED` once, for several queries; such as were asked for stay views."""
        self._to_hold |= frozenset(parts)

    def rows(self, query: str, **values: Any) -> list[dict[str, Any]]:
        """The rows of one of our own queries, with its parameters bound."""
        return list(self.each_row(query, **values))

    def each_row(self, query: str, **values: Any) -> Iterator[dict[str, Any]]:
        """The same, some of them in memory at a time."""
        self._make_parts(query, is_own=True)
        self._register_kept(cursor := self.connection.cursor())
        self._around_damage(lambda: cursor.execute(query, values))
        names = [column[0] for column in cursor.description or ()]
        while found := cursor.fetchmany(_AT_A_TIME):
            for row in found:
                yield dict(zip(names, row, strict=True))

    def columns(self, query: str, **values: Any) -> pa.Table:
        """The rows of one of our own queries in columns, which nothing makes Python's."""
        self._make_parts(query, is_own=True)
        self._register_kept(cursor := self.connection.cursor())
        bound = values or None
        return self._around_damage(lambda: cursor.sql(query, params=bound).to_arrow_table())

    def tuples(self, query: str, **values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of one of our own queries, their values in its order: where rows are many.

        Columns become Python's, some rows at a time, in a tenth of the time that `rows` takes.
        For numbers, texts, and lists of these: what else there is comes as Arrow has it.
        """
        for part in self.columns(query, **values).to_batches(_AT_A_TIME):
            yield from zip(*(column.to_pylist() for column in part.columns), strict=True)

    def _fetch_around_damage(self, statement: str) -> pa.Table:
        with self.bounded():
            return self._around_damage(lambda: self._fetch(statement))

    def _around_damage(self, work: Callable[[], Any]) -> Any:
        for _ in range(3):
            try:
                return work()
            except duckdb.Error:  # also of what Arrow reads, and DuckDB does not
                if not self._repair():
                    raise
        return work()

    def _fetch(self, query: str, *, whole: bool = True) -> pa.Table:
        with self._only_reading():
            relation = self.connection.sql(query)
            if relation is None:
                return pa.table({"result": ["done"]})
            carried = carried_whole(relation) if whole else relation
            with suppress(*() if carried is relation else (duckdb.Error,)), interrupted_at_once():
                return carried.to_arrow_table()
        # Its error names places of the query as it was asked.
        return self._fetch(query, whole=False)

    @contextmanager
    def _only_reading(self) -> Iterator[None]:
        """No table of the session can be changed meanwhile, unless writing is allowed."""
        if self._write:
            yield
            return
        self.connection.execute("BEGIN TRANSACTION READ ONLY")
        try:
            yield
        finally:
            self.connection.rollback()

    def _prepare(self, query: str) -> str:
        """Compute what the query names; gives the one statement to run.

        Of several statements DuckDB would give the last one's rows only: nothing of an answer may
        go missing silently. Where writing is allowed, those before the last one prepare for it.
        """
        if any("\ud800" <= character <= "\udfff" for character in query):
            raise QueryError("the query is no text: it has half of a surrogate pair")
        statements = statements_of(self.connection, query)
        if not statements:
            raise QueryError("there is no query in it: write one, like SELECT * FROM jobs")
        if not self._write:
            check_read_only(self.connection, query)
            if len(statements) > 1:
                raise QueryError(
                    f"these are {len(statements)} queries: ask one at a time, or all of them at "
                    "the prompt"
                )
        self._make_parts(query)
        if asks_what_there_is(query):
            self._comment()
        if (answer := with_meanings(statements[-1])) != statements[-1] and len(statements) == 1:
            return answer
        check_values(self.connection, statements[-1], views())
        self._compute_for(query)
        for statement in statements[:-1]:
            self.connection.execute(statement)
        return statements[-1]

    def _compute_for(self, query: str) -> None:
        """Compute what a query names of the views that are computed."""
        wanted = {COMPUTED[name.lower()] for name in _COMPUTED_NAMES.findall(query)}
        for table in sorted(wanted - self._computed):
            self._fill(table)
            self._computed.add(table)

    def _comment(self) -> None:
        """Tell DuckDB what views and columns mean, for DESCRIBE and its catalog."""
        tables = frozenset(self._tables)
        for view in views():
            if view.public and view.name in self._made - self._commented:
                self._commented.add(view.name)
                kind = "TABLE" if view.name in tables else "VIEW"
                self.connection.execute(comments(view, kind))

    def _fill(self, table: str) -> None:
        self._make_parts(computed.READ[table])
        arriving = self._verdicts() if table == "_verdicts" else self._rows_of(table)
        # All or nothing: what cannot be computed is asked for again, and fails again.
        self.connection.begin()
        try:
            for rows in arriving:
                self.connection.register("_arriving", rows)
                self.connection.execute(f"INSERT INTO internal.{table} SELECT * FROM _arriving")  # noqa: S608
                self.connection.unregister("_arriving")
        except BaseException:
            self.connection.rollback()
            self._kept.clear()
            raise
        self.connection.commit()

    def _rows_of(self, table: str) -> Iterator[pa.Table]:
        compute = computed.cron_ticks if table == "_cron_ticks" else computed.schedule_notes
        for source in self.sources:
            if table in computed.ANSWERS:
                yield self._answer_of(source, table)
            elif table == "_coverage":
                yield computed.coverage(source)
            else:
                yield compute(self.connection, source, self.rules)

    def _answer_of(self, source: Source, table: str) -> pa.Table:
        """Findings, causes, endings or waits of one trace; some are made together."""
        known = self._answers.setdefault(source.name, {})
        if table not in known:
            from tracekit.sql.answer_tables import answers_of  # noqa: PLC0415 - most queries ask none

            alone = Session([source.path], rules=self.rules, chosen=self._chosen)
            with closing(alone):
                known |= answers_of(source, alone, table)
        return known[table]

    def _verdicts(self) -> Iterator[pa.Table]:
        """The verdicts to copy; of those that are kept a query reads what it needs."""
        if self._judged_by is not None:
            for rows in self._judged_by(self.sources, self.rules):
                yield self._chosen.of_verdicts(rows)
            return
        for source in self.sources:
            found = computed.verdicts(source, self.rules, self._before_judging)
            if found is None:
                continue
            whole = isinstance(found, CachedVerdicts) and not self._chosen.is_part
            if whole and (found.are_many or not self._has_few_rows):  # few are sooner copied
                self._kept[source.name] = found.kept()
                continue
            for rows in tables_of(found):
                yield self._chosen.of_verdicts(computed.named(rows, source.name))
        if self._kept:
            self._ask_where_kept()

    def _ask_where_kept(self) -> None:
        """Let verdicts be read as they were kept, beside those that were copied."""
        columns = ", ".join(f'"{name}"' for name in computed.SCHEMAS["_verdicts"].names[1:])
        parts = ["SELECT * FROM internal._verdicts_held"]
        for number, name in enumerate(self._kept):
            parts.append(f"SELECT {literal(name)} AS trace, {columns} FROM _kept_{number}")  # noqa: S608
        self._register_kept(self.connection)
        self.connection.execute(
            "CREATE TABLE internal._verdicts_held AS FROM internal._verdicts;"
            "DROP TABLE internal._verdicts;"
            f"CREATE VIEW internal._verdicts AS {' UNION ALL '.join(parts)}"
        )

    def _register_kept(self, connection: duckdb.DuckDBPyConnection) -> None:
        for number, verdicts in enumerate(self._kept.values()):
            connection.register(f"_kept_{number}", verdicts)

    def _repair(self) -> bool:
        """Leave out the files that turn out to be broken; whether there were any."""
        if not drop_unreadable(self.sources, self.connection, self._handles, self._wide):
            return False
        self._make_rows()
        tables, self._tables = self._tables, []
        for part in tables:
            self.connection.execute(f"DROP TABLE {'internal.' * part.startswith('_')}{part}")
            self._make_part(part)
        return True

    @contextmanager
    def _errors(self, query: str) -> Iterator[None]:
        try:
            with interrupted_at_once(), interrupting(self.connection.interrupt):
                yield
        except duckdb.Error as error:
            raise explain_error(self._with_place(error, query), self.names(query)) from error

    def _with_place(self, error: duckdb.Error, query: str) -> duckdb.Error:
        """The same error with its line and caret; of one reading statement: nothing is run."""
        is_one = isinstance(error, _OF_A_NAME) and len(statements_of(self.connection, query)) == 1
        if not is_one or not reads(self.connection, query):
            return error
        try:
            self.connection.cursor().execute(f"EXPLAIN\n{query}")
        except duckdb.Error as again:
            return type(again)(_PLACE.sub(lambda at: f"LINE {int(at[1]) - 1}:", str(again)))
        return error

    #### What there is ####

    def names(self, query: str = "") -> dict[str, list[str]]:
        """What a query may name: tables, functions and columns, of the views in it if any are."""
        words = frozenset(_NAMED.findall(query))
        asked = [view for view in views() if view.name in words]
        columns = {column.name: None for view in asked or views() for column in view.columns}
        if not asked:
            columns.update(dict.fromkeys(NAMES))
        return {
            "table": [view.name for view in views() if view.public],
            "function": [macro.name for macro in macros()],
            "column": list(columns),
        }

    @cached_property
    def objects(self) -> Objects:
        """The Jobs and CronJobs of the traces."""
        jobs = self.rows(
            "SELECT DISTINCT coalesce(namespace, '') AS space, job AS name FROM internal._rows "
            "WHERE job IS NOT NULL ORDER BY ALL"
        )
        cronjobs = self.rows(
            "SELECT DISTINCT coalesce(namespace, '') AS space, cronjob AS name "
            "FROM internal._rows WHERE cronjob IS NOT NULL ORDER BY ALL"
        )
        pods = self.rows(
            "SELECT DISTINCT coalesce(namespace, '') AS space, name, job FROM internal._rows "
            "WHERE stream = 'pods' AND job IS NOT NULL AND name IS NOT NULL ORDER BY ALL"
        )
        return Objects(
            tuple((row["space"], row["name"]) for row in jobs),
            tuple((row["space"], row["name"]) for row in cronjobs),
            tuple((row["space"], row["name"], row["job"]) for row in pods),
        )

    #### Making it ####

    def _widen(self, source: Source) -> None:
        for file in list(source.files):
            if file.is_narrow and source.snapshot is not None:
                try:
                    self._wide[file] = wide_copy(file)
                except DamageError as error:
                    source.snapshot.drop(file, error)

    def _make(self) -> None:
        self.connection.execute("CREATE SCHEMA internal")
        if self.sources or not self._held:
            self._make_table("_no_rows", SCHEMA)
        if self._with_rows:
            self._around_damage(self._make_rows)
            ends = self._ends()
        else:  # a query that takes rows finds none of this name, and fails
            ends = "SELECT ''::VARCHAR AS trace, 0::BIGINT AS trace_end_ns WHERE false"
        self.connection.execute(f"CREATE VIEW internal._ends AS {ends}")

    def _ends(self) -> str:
        """When the last row of each trace was received, whatever of it is chosen."""
        if self._chosen.namespace is None or self._chosen.rows:
            return "SELECT trace, max(recv_ns) AS trace_end_ns FROM internal._rows GROUP BY ALL"
        reported = [
            f"SELECT {literal(source.name)} AS trace, {newest_ns(source.files) or 0}::BIGINT "
            "AS trace_end_ns"
            for source in self.sources
        ]
        return " UNION ALL ".join(reported)

    def _make_parts(self, query: str, *, is_own: bool = False) -> None:
        """Make the views and macros that the query takes, if they are not there yet."""
        self._make_tables(query)
        for part in parts_for(query, is_own=is_own):
            if part not in self._made:
                self._make_tables(definition(part))
                self._make_part(part)

    def _make_tables(self, text: str) -> None:
        """Make the tables that the text names of those that are filled when they are asked."""
        for name in computed.SCHEMAS.keys() & set(_NAMED.findall(text.lower())) - self._made:
            self._made.add(name)
            self._make_table(name, computed.SCHEMAS[name])
            # Other views are made of it, and maybe at once. For a part it would take all of the
            # trace: there only who names the view asks for it.
            if name == "_coverage" and not self._chosen.is_part:
                self._fill(name)
                self._computed.add(name)

    def _make_table(self, name: str, schema: pa.Schema) -> None:
        self.connection.register("_arriving", no_rows(schema))
        self.connection.execute(
            f"CREATE TABLE internal.{name} AS SELECT * FROM _arriving"  # noqa: S608 - our own name
        )
        self.connection.unregister("_arriving")

    def _make_part(self, part: str) -> None:
        self._made.add(part)
        as_view = definition(part)
        # Of few rows each is made once, and not bound anew in every one above it.
        few = self._has_few_rows or part in self._to_hold
        if (self._held and not self.sources) or (part in SHARED and few):
            as_table = as_view.replace("CREATE VIEW", "CREATE TABLE", 1)
            with suppress(duckdb.Error), interrupted_at_once():  # who reads it is told of the rest
                self.connection.execute(as_table)
                self._tables.append(part)
                return
        self.connection.execute(as_view)

    @cached_property
    def _has_few_rows(self) -> bool:
        rows = sum(file.segment.rows for source in self.sources for file in source.files)
        return rows <= _FEW_ROWS and self._with_rows and not self._write

    def _make_rows(self) -> None:
        columns = ", ".join(f'"{name}"' for name in NAMES)
        parts: list[str] = []
        for source in self.sources:
            select = f"SELECT {literal(source.name)} AS trace, {columns} FROM"
            typed = []
            column_sets = set()
            part = self._parts.get(source.name)
            if part is not None:
                typed.append(literal(self._handles.name(part)))
            for file in source.files if part is None else ():
                if not file.is_plain:
                    wide = self._wide.get(file, file)
                    typed.append(literal(self._handles.name(wide)))
                    column_sets.add(wide.columns)
                    continue
                # What a recorder has stored and not typed yet (`tracekit.trace.format.plain`).
                rows = file.unsorted().cast(SCHEMA)
                parts.append(f"{select} internal.{self._stored(rows, len(parts))}")
            if source.snapshot is not None:
                for lost in lost_files(source.snapshot):
                    rows = self._chosen.of(lost.read(0, NAMES)).cast(SCHEMA)
                    parts.append(f"{select} internal.{self._stored(rows, len(parts))}")
            if typed:
                # Only where files differ need all be opened for each view that is bound.
                differ = str(len(column_sets) > 1).lower()
                rows = f"read_parquet([{', '.join(typed)}], union_by_name = {differ})"
                # A trace of an older tracekit lacks columns: they are there, and empty.
                if any(not names.issuperset(NAMES) for names in column_sets):
                    rows = f"(FROM internal._no_rows UNION ALL BY NAME FROM {rows})"
                parts.append(f"{select} {rows}")
        for name, table in self._held.items():
            stored = self._stored(table.cast(SCHEMA), len(parts))
            parts.append(f"SELECT {literal(name)} AS trace, {columns} FROM internal.{stored}")  # noqa: S608
        empty = "SELECT ''::VARCHAR AS trace, * FROM internal._no_rows"
        rows = " UNION ALL ".join(parts) if parts else empty
        self.connection.execute(f"CREATE OR REPLACE VIEW internal._rows AS {rows}")

    def _stored(self, rows: pa.Table, number: int) -> str:
        """Put rows into a table of their own; gives its name."""
        name = f"_stored_{number}"
        self.connection.register("_arriving", rows)
        self.connection.execute(
            f"CREATE OR REPLACE TABLE internal.{name} AS SELECT * FROM _arriving"  # noqa: S608
        )
        self.connection.unregister("_arriving")
        return name

    def _restrict(self) -> None:
        names = ", ".join(literal(name) for name in self._handles.allowed())
        self.connection.execute(f"SET allowed_paths = [{names}]; SET secret_directory = ''")
        self.connection.execute("SET enable_external_access = false")
