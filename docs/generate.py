"""Write the pages of `PAGES` from the code: `python docs/generate.py [--check]`.

With --check nothing is written; the exit status is 1 if a page tells another story than the code.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import yaml

from tracekit.answers.findings import divergences
from tracekit.answers.findings.diagnosis import RULES
from tracekit.answers.model import Family
from tracekit.cli.main import VERBS, cli
from tracekit.model.simulate.workload import schema
from tracekit.record.operation.manifests import alert_groups
from tracekit.sql.catalog import View, examples, macros, views
from tracekit.sql.session import Session
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.importers.kinds import KINDS
from tracekit.trace.writing.writer import TraceWriter
from tracekit.versions.behavior_releases import SHIPPED
from tracekit.versions.behaviors import Behavior
from tracekit.versions.gates import GATES, Gate

DOCS = Path(__file__).resolve().parent
REPOSITORY = "https://github.com/kubernetes/kubernetes"

FINDINGS_HEAD = """\
# Findings

<!-- Made by docs/generate.py from tracekit/answers/findings: change it there. -->

`tracekit diagnose TRACE` says what went wrong, worst first: an id that stays, a severity, the
objects, one sentence, from what that is known, what to do, the upstream thread where there is one.

```
tracekit diagnose run                          # one screen; -v: evidence for every finding
tracekit diagnose run --since 2h -n shop       # the last two hours of one namespace
tracekit diagnose run -o markdown              # for an issue: with numbers of threads
tracekit diagnose run --fail-on warning -o junit > findings.xml
tracekit diagnose run --write-baseline known.json && tracekit diagnose run --baseline known.json
tracekit replay run --diff --baseline known.json -o sarif > tracekit.sarif
```

- Each is decided from the record and its replay; the text of an Event alone decides none.
- `error`: something that had to happen did not, or happened against the rules. `warning`: harm by
  controllers that kept to their rules, and Jobs that failed. `info`: good to know.
- Worst first: by severity, then by how many Jobs, runs and objects were hit (1 to 3, 4 to 9,
  10 to 31, …), then by kind. What follows from another finding stands beneath it, and a cause is as
  severe as the worst that follows from it. Below all of them each failed Job is put down to the
  kind of its cause, or to none that the record tells.
- *Harm* is counted once for each Job: failed Jobs and Jobs that have not ended (of the kinds that
  end or hold a Job), times of schedules that were not started or whose run was replaced, Jobs and
  runs that came or ended late, seconds on a node of pods that came to nothing, and other objects
  that are wrong, left behind or lost. It is in `-o json` (`harm`) and in the view
  [`causes`](sql.md#causes), with what follows from the cause added.
- The exit status is 0, or 1 with `--fail-on` when a finding is so bad or worse.
- Objects in the same trouble for the same cause are one finding: *37 Jobs of CronJob shop/import*.
- `-n`, `-l`, `--since`, `--from` and `--to` choose findings; all of the trace is looked at. What is
  about the whole (leaders, backlog, the record) is told for every namespace.
- `-o json` follows [diagnose.schema.json](diagnose.schema.json): within one `schema_version` keys
  are only added. A baseline follows [baseline.schema.json](baseline.schema.json): each entry names
  an `id` and may name `kind`, `namespace` and `name` as shell patterns, and a `reason`. What it
  accepts and does not occur is told on stderr.
- `replay --diff --baseline` leaves the divergences (TK1xx) out that the file accepts; `-o junit`
  makes one test case of each object, `-o sarif` one result of each divergence.

## TK1xx: divergences

"""
#: Title and start of the ids of the families below the divergences.
FAMILIES = (
    ("TK2xx: controllers that kept to their rules and did harm", Family.HARM_BY_THE_RULES),
    ("TK3xx: CronJobs", Family.CRONJOB),
    ("TK4xx: Jobs", Family.JOB),
    ("TK9xx: the record", Family.RECORD),
)

SQL_HEAD = """\
# SQL over traces

<!-- Made by docs/generate.py from tracekit/sql: change it there. -->

`tracekit sql TRACE… ["QUERY"]` runs DuckDB over one or several traces. TRACE is the directory of a
trace, its URL in [object storage](object-storage.md), or a pattern over either; with several, the
column `trace` tells them apart. Without a query a prompt opens (Tab completes, `.help` lists its
commands). `-o` chooses how rows are printed: table, csv, json, jsonl, parquet or markdown.

```
tracekit sql run.trace "SELECT job, reason FROM jobs WHERE outcome = 'Failed'"
tracekit sql 'night-*.trace' "SELECT trace, outcome, count(*) FROM jobs GROUP BY ALL"
tracekit sql run.trace "FROM timeline('shop/import')"
tracekit sql run.trace --example backoff-cost
tracekit sql 's3://bucket/night-*' "SELECT trace, count(*) FROM jobs GROUP BY ALL"
```

- One query at a time; at the prompt, any number of them, each with its `;`. What is piped in is
  read as at the prompt; the exit status is 2 if any of it failed.
- A query can read nothing but these traces and write nothing; `--write` lifts that.
- A file that is damaged is named on stderr and left out; the rest still answers. So is a trace
  among several whose `trace.json` is damaged. What has lost a part gets no verdicts.
- A trace that is being written can be asked: a query sees what was flushed when it began.
- Times are `TIMESTAMP` in UTC with microseconds; columns that end in `_s` are seconds, in `_ns`
  nanoseconds since 1970. What the API server wrote has whole seconds; what was received
  (`seen_at`, `from_at`, …) is exact, on the recorder's clock.
- Columns with a closed set of values (`outcome`, `phase`, `verdict`, `deleted_by`, …) compare
  without regard to case; a value that one never has is refused: `outcome = 'faild'` is a slip.
- `divergences`, `verdicts` and `cron_ticks` are computed when a query names them. Verdicts take a
  replay of the trace and are kept in your cache directory (`TRACEKIT_CACHE_DIR`, else
  `$XDG_CACHE_HOME/tracekit`, else `~/.cache/tracekit`), 500 of them, the ones used longest ago go
  first; never in the trace. Beside them lie wide copies of what `tracekit compact` made narrow,
  which DuckDB cannot read as it is: up to 4 GiB, by the same rule. All of it may be deleted.
- A query takes 500 MiB at most (`TRACEKIT_SQL_MEMORY=4GiB` gives it more), besides what it takes to
  know the trace; what does not fit lies under `TMPDIR` meanwhile. What a single function makes
  (`repeat`, `range`) and the answer itself are not counted in that: all together `tracekit sql`
  gives a query, on Linux, four times as much. One that needs more says so, and so does one that is
  ended after `--timeout` (1h).
- DuckDB's own words work as well: `SHOW TABLES`, `DESCRIBE jobs` (both say what things mean),
  `SUMMARIZE attempts`. The prompt leaves by `exit`; what is longer than the screen goes through
  your pager (`PAGER`, `.pager off`).
"""

CLI_HEAD = """\
# Command line

<!-- Made by docs/generate.py from the commands' own help: change it there. -->

Data goes to stdout, talk to stderr. Exit status: 0 fine, 1 divergences found (`replay --diff`), 2
could not run, with one sentence that says why. `NO_COLOR` is respected. The same commands are there
as `kubectl tracekit`. `tracekit completion bash|zsh|fish` prints the completion of a shell;
`kubectl tracekit` completes as kubectl does.

Defaults of your own lie in `~/.config/tracekit/config.toml` (below `XDG_CONFIG_HOME` where that is
set, or the file that `TRACEKIT_CONFIG` names); a table is for one verb, what stands before all
tables for every verb that has the option:

```toml
namespace = "shop"

[diagnose]
fail-on = "error"

[jobs]
sort-by = "-duration_s"
```

`TRACEKIT_DIAGNOSE_FAIL_ON=error` and `TRACEKIT_NAMESPACE=shop` say the same. The command line wins,
then a verb's own variable, the variable for all, the verb's table, the rest of the file.
"""


def sql_page() -> str:
    """docs/sql.md."""
    return "\n".join(_sql_lines()) + "\n"


def _sql_lines() -> Iterator[str]:
    yield SQL_HEAD
    yield "## Views\n"
    public = [view for view in views() if view.public]
    yield "Questions of a postmortem, each answered by one view:\n"
    yield "| question | query |\n|---|---|"
    yield from (
        f"| {_cell(v.question)} | [`FROM {v.name}`](#{v.name}) |" for v in public if v.question
    )
    yield "\nAll of them:\n"
    yield from (f"- [`{view.name}`](#{view.name}): {view.text}" for view in public)
    with TemporaryDirectory() as folder:
        TraceWriter(Path(folder) / "t", TraceHeader(kubernetes_version="v1.36.3")).close()
        session = Session([Path(folder) / "t"])
        for view in public:
            yield from _view_lines(view, session)
        session.close()
    yield "\n## Macros\n"
    yield "| macro | what it is |\n|---|---|"
    yield from (f"| `{macro.call}` | {_cell(macro.text)} |" for macro in macros())
    yield "\nUse them in FROM: `SELECT * FROM active_at('2026-11-21 05:43:00')`."
    yield "\n## Examples\n"
    yield "`tracekit sql --examples` prints all of them, `--example NAME` runs one.\n"
    for example in examples():
        yield f"### {example.name}\n\n{example.question}\n\n```sql\n{example.sql}\n```\n"


def _view_lines(view: View, session: Session) -> Iterator[str]:
    question = f"**{view.question}** " if view.question else ""
    yield f"\n### {view.name}\n\n{question}{view.text}\n"
    yield "| column | type | source | null |\n|---|---|---|---|"
    rows = session.rows(f"DESCRIBE {view.name}")
    types = {row["column_name"]: row["column_type"] for row in rows}
    for column in view.columns:
        yield _row(column.name, types[column.name], column.source, column.null)


def _row(name: str, kind: str, source: str, null: str) -> str:
    if kind.startswith("STRUCT"):
        kind = "list of structs" if kind.endswith("[]") else "struct"
    return f"| `{name}` | {_cell(kind)} | {_cell(source)} | {_cell(null)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def cli_page() -> str:
    """docs/cli.md."""
    return CLI_HEAD + "".join(_command_sections()) + "\n"


def _command_sections() -> Iterator[str]:
    root = click.Context(
        cli, info_name="tracekit", terminal_width=96, help_option_names=["-h", "--help"]
    )
    yield _section("tracekit", cli, root, 2)
    for verb in sorted(VERBS):
        command = cli.get_command(root, verb)
        assert command is not None, verb
        yield from _with_children(command, verb, root, 2)


def _with_children(
    command: click.Command, name: str, parent: click.Context, depth: int
) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    yield _section(context.command_path, command, context, depth)
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None, child
            yield from _with_children(found, child, context, depth + 1)


def _section(path: str, command: click.Command, context: click.Context, depth: int) -> str:
    return f"\n{'#' * depth} {path}\n\n```\n{command.get_help(context)}\n```\n"


def findings_page() -> str:
    """docs/findings.md."""
    return FINDINGS_HEAD + "\n".join(_finding_lines()) + "\n"


def _finding_lines() -> Iterator[str]:
    yield "| controller | action | different | missing | extra | early | late |"
    yield "|---|---|---|---|---|---|---|"
    for block, (controller, action) in enumerate(divergences.ACTIONS):
        ids = [rule.id for rule in divergences.RULES[block * 5 : block * 5 + 5]]
        yield f"| {controller} | {action} | {' | '.join(ids)} |"
    first = divergences.RULES[0]
    yield f"\nAlways `error`. {first.decided.replace('`different`', 'the one of its column')}"
    yield f"\nFalse alarms: {first.false_alarms}"
    yield from _shown_lines()
    for title, family in FAMILIES:
        yield f"\n## {title}\n"
        for rule in RULES:
            if rule.family is not family:
                continue
            link = f"{REPOSITORY}/issues/{rule.thread}"
            thread = f" · [#{rule.thread}]({link})" if rule.thread else ""
            yield f"### {rule.id}: {rule.title}\n"
            yield f"`{rule.severity.value}`{thread}\n\n{rule.decided}\n"
            yield f"- False alarms: {rule.false_alarms}\n- What to do: {rule.todo}\n"


def _shown_lines() -> Iterator[str]:
    """The table of findings and traces."""
    store = DOCS.parent / "tests" / "findings" / "matrix.json"
    matrix: dict[str, dict[str, int]] = json.loads(store.read_text(encoding="utf-8"))
    yield "\n## Which traces show which\n"
    yield (
        "Of every shipped trace (`traces/`), made by real control planes: the kinds that it shows, "
        "and of how many objects. None shows a TK1xx. `python -m tests.findings.matrix` makes it "
        "anew.\n"
    )
    yield "| trace | findings |\n|---|---|"
    for name, found in matrix.items():
        told = ", ".join(f"{i} x{n}" if n > 1 else i for i, n in found.items()) or "none"
        yield f"| {name} | {told} |"


VERSIONS_HEAD = """\
# The version table

<!-- Made by docs/generate.py from tracekit/versions and tests/mutation: change it there. -->

Every difference between releases that the ports know, one row each, as `tracekit versions` prints
them. *Witness*: a shipped trace (or a part of a real record in `tests/data`) and an object of it
that diverges when that row alone is turned over (`tests/mutation`); such a row is proved by a real
controller. *Certain* says whether its patch releases were compared in upstream's source.
"""

PATCHES_COMPARED = """\
## Patch releases that were compared

On 26 and 27 November 2026, pair by pair and without tests: `pkg/controller/job`, `cronjob` and
`ttlafterfinished`, `controller_utils.go`, `pkg/apis/batch/validation`, `pkg/registry/batch`, and of
client-go `util/workqueue` and `tools/record` (`python -m tests.e2e.upstream`). Where a pair spans
several patch releases, none between them differs for longer than between its ends. 1.31.10 and
1.31.11 cannot be had from the module proxy; each row above says whether its own patch numbers are
certain.

| from | to | what differs |
|---|---|---|
| 1.28.0 | 1.28.1 | no behaviour |
| 1.28.1 | 1.28.2 | `cleanup_precedes_scheduling` |
| 1.28.2 | 1.28.3 | the first attempt at `already_exists_recovers`; buckets of a metric |
| 1.28.3 | 1.28.4 | `missed_runs_requeue_from_now` |
| 1.28.4 | 1.28.5 | `active_pods_survive_terminating_ones` |
| 1.28.5 | 1.28.15 | no behaviour |
| 1.29.0 | 1.29.15 | no behaviour |
| 1.30.0 | 1.30.2 | no behaviour |
| 1.30.2 | 1.30.3 | a stored successPolicy is passed over while JobSuccessPolicy is off (below) |
| 1.30.3 | 1.30.4 | no behaviour |
| 1.30.5 | 1.30.14 | no behaviour |
| 1.31.0 | 1.31.9 | no behaviour |
| 1.31.9 | 1.31.12 | `deleted_job_forgets_backoff` |
| 1.31.12 | 1.31.14 | no behaviour |
| 1.32.0 | 1.32.6 | no behaviour |
| 1.32.6 | 1.32.7 | `deleted_job_forgets_backoff`, `suspended_empty_job_ends_without_start` |
| 1.32.7 | 1.32.9 | no behaviour |
| 1.32.9 | 1.32.10 | `resumed_start_time_accepted` |
| 1.32.10 | 1.32.13 | no behaviour |
| 1.33.0 | 1.33.2 | no behaviour |
| 1.33.2 | 1.33.3 | `deleted_job_forgets_backoff`, `suspended_empty_job_ends_without_start` |
| 1.33.3 | 1.33.5 | no behaviour |
| 1.33.5 | 1.33.6 | `resumed_start_time_accepted`; an index of pods that Jobs do not use |
| 1.33.6 | 1.33.12 | no behaviour |
| 1.34.0 | 1.34.9 | `resumed_start_time_accepted`; the key of an index of pods |
| 1.34.9 | 1.34.10 | `active_kept_during_creation_backoff` |
| 1.34.10 | 1.34.11 | no behaviour |
| 1.35.0 | 1.35.6 | no behaviour |
| 1.35.6 | 1.35.8 | `active_kept_during_creation_backoff` |
| 1.36.0 | 1.36.1 | no behaviour |
| 1.36.1 | 1.36.3 | `active_kept_during_creation_backoff`, and what the API server takes (below) |
| 1.36.3 | 1.36.4 | no behaviour |
| 1.36.4 | 1.36.5 | `orphan_finalizer_retried` |
| 1.37.0 | 1.37.1 | `orphan_finalizer_retried` |
| 1.37.1 | 1.37.2 | `deleted_job_forgets_expectations` |

Up to 1.30.2 a Job that has a successPolicy from a time when JobSuccessPolicy (alpha there, off) was
on is still ended by it after the gate was turned off; from 1.30.3 on it is not, which is what the
port does. The API server drops the field of new Jobs while the gate is off, so it is no row.

Up to 1.36.1, with `MutableSchedulingDirectivesForSuspendedJobs` (on in 1.36), the API server
refuses changes of a suspended Job's scheduling directives until its condition Suspended is set,
also where it never started ([#139281](https://github.com/kubernetes/kubernetes/issues/139281),
mended in 1.36.2). It hits whoever changes a Job right after its creation, such as Kueue. No rule of
the controllers reads it, so it is no row; where an audit log has the refusal, TK433 tells it.
"""

UNWITNESSED_HEAD = """\
## Rows without a witness

No shipped trace has a divergence when one of these is turned over: they follow from reading the
source alone. Some cannot be seen in a watch at all (a queue's back-off, refused calls); some need a
release or a moment that no shipped trace has. A recording that shows one is welcome: put it into
`traces/` and run `python -m tests.mutation.witness`.
"""


def versions_page() -> str:
    """docs/versions.md."""
    store = DOCS.parent / "tests" / "mutation" / "witnesses.json"
    witnesses: dict[str, dict[str, str] | None] = json.loads(store.read_text(encoding="utf-8"))
    proved = sum(witness is not None for witness in witnesses.values())
    return (
        "\n".join(
            [
                VERSIONS_HEAD,
                f"{proved} of {len(witnesses)} rows have a witness.\n",
                *_version_rows(witnesses),
                PATCHES_COMPARED,
                UNWITNESSED_HEAD,
                ", ".join(f"`{row}`" for row, witness in witnesses.items() if witness is None)
                + ".",
            ]
        )
        + "\n"
    )


def _version_rows(witnesses: dict[str, dict[str, str] | None]) -> Iterator[str]:
    yield "## Gates\n\n| gate | releases | switches | witness |\n|---|---|---|---|"
    for gate in Gate:
        history = GATES[gate]
        states = [
            f"{spec.version.branch} {spec.stage.value} {'on' if spec.default else 'off'}"
            for spec in history.specs
        ]
        states += [f"gone in {history.removed.branch}"] if history.removed else []
        where = _witness(witnesses.get(f"gate {gate.value}"))
        yield f"| `{gate.value}` | {', '.join(states)} | {_cell(history.about)} | {where} |"
    yield "\n## Behaviours without a gate\n"
    yield "| behaviour | releases | certain | what it is | upstream | witness |"
    yield "|---|---|---|---|---|---|"
    for behavior in Behavior:
        row, name = SHIPPED[behavior], behavior.name.lower()
        certain = "yes" if row.patch_is_certain else "no"
        where = _witness(witnesses.get(f"behavior {name}"))
        yield (
            f"| `{name}` | {row.boundary.describe()} | {certain} | {_cell(row.about)} | "
            f"`{row.upstream}` | {where} |"
        )
    yield "\n## Numbers and texts\n\n| row | witness |\n|---|---|"
    for row_name, witness in witnesses.items():
        if row_name.startswith(("constant ", "text ")):
            yield f"| `{row_name}` | {_witness(witness)} |"
    yield ""


def _witness(witness: dict[str, str] | None) -> str:
    return f"{witness['trace']}: {witness['object']}" if witness else "none"


def workload_schema() -> str:
    """docs/workload.schema.json: the form of workload files."""
    return json.dumps(schema(), indent=2) + "\n"


def alert_rules() -> str:
    """The alert rules that Prometheus loads and the chart installs."""
    head = (
        "# Made by docs/generate.py from tracekit/record/operation/manifests.py: change it there.\n"
    )
    return head + yaml.safe_dump(alert_groups(), sort_keys=False, width=100)


_KINDS_BEGIN = (
    "<!-- Made by docs/generate.py from tracekit/trace/importers/kinds.py: change it there. -->\n"
)
_KINDS_END = "<!-- Until here. -->\n"


def rescue_page() -> str:
    """docs/rescue.md with the table of kinds in its place; the rest of the page is as it was."""
    before, _, rest = (DOCS / "rescue.md").read_text(encoding="utf-8").partition(_KINDS_BEGIN)
    after = rest.partition(_KINDS_END)[2]
    rows = [
        f"| `{kind.name}` | {kind.about} | `tracekit {kind.example} -o TRACE` | {kind.kept} | "
        f"{kind.lacks} |\n"
        for kind in KINDS
    ]
    head = "| kind | what it is | for example | what is kept | what it cannot tell |\n"
    return "".join(
        (before, _KINDS_BEGIN, head, "|---|---|---|---|---|\n", *rows, _KINDS_END, after)
    )


PAGES: dict[str, Callable[[], str]] = {
    "rescue.md": rescue_page,
    "workload.schema.json": workload_schema,
    "sql.md": sql_page,
    "cli.md": cli_page,
    "findings.md": findings_page,
    "versions.md": versions_page,
    "../packaging/chart/files/rules.yaml": alert_rules,
}


def main() -> int:
    """Write the pages, or compare them."""
    check = "--check" in sys.argv[1:]
    stale = []
    for name, make in PAGES.items():
        path, text = DOCS / name, make()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"docs/{name} {'is not what the code says' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
