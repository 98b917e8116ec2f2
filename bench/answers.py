"""Whether two commits answer alike, byte for byte, what is asked of a trace by those who read it.

    python -m bench.answers --against COMMIT [--keep DIR] [TRACE…]

For each trace: `diagnose`, as text in full and as JSON; `jobs`; `explain` of some Jobs and
CronJobs; `report` of all, and of one namespace; and every view of `sql`. Prints one digest for
each; with `--keep` the outputs lie in a folder, for `diff -r`. Without names the shipped traces are
imported.
With `--against` the same is done by the code of another commit, in a worktree of its own, and what
differs is told, exit status 1.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.traces import TRACES, import_log
from tracekit.cli.main import main as command
from tracekit.sql.catalog import views
from tracekit.sql.session import Session

ROOT = Path(__file__).resolve().parents[1]
#: Objects of a trace that are explained, of each kind: the first ones, and the last.
_EXPLAINED = 3


def _said(arguments: list[str]) -> str:
    """What a command prints, on both streams, and its status."""
    out, err = io.StringIO(), io.StringIO()
    status: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            command(arguments)
        except SystemExit as ended:
            status = ended.code
    return f"{out.getvalue()}\n{err.getvalue()}\n{status}\n"


def _answers(trace: str) -> Iterator[tuple[str, str]]:
    """What is said, by a name that can be one of a file."""
    session = Session([trace])
    asked: list[tuple[str, str]] = []
    for kind in ("job", "cronjob"):
        query = f"SELECT DISTINCT namespace, {kind} AS name FROM {kind}s ORDER BY ALL"
        rows = session.rows(query)
        some = (*rows[:_EXPLAINED], *rows[_EXPLAINED:][-1:])
        asked += [(row["namespace"], row["name"]) for row in some]
    for view in views():
        if view.public:
            table = session.table(f"SELECT * FROM {view.name} ORDER BY ALL")
            yield f"sql-{view.name}", "\n".join(map(repr, table.to_pylist()))
    session.close()
    yield "diagnose", _said(["diagnose", "-v", trace])
    yield "diagnose-json", _said(["diagnose", "-o", "json", trace])
    yield "jobs", _said(["jobs", trace])
    for namespace, name in asked:
        yield f"explain-{namespace}-{name}", _said(["explain", "-v", trace, f"{namespace}/{name}"])
    yield "report", _said(["report", trace, "-o", "-"])
    if asked:
        yield "report-namespace", _said(["report", trace, "-n", asked[0][0], "-o", "-"])


def digests(trace: Path, keep: Path | None) -> Iterator[tuple[str, str]]:
    """The digest of each answer about a trace."""
    for name, answer in _answers(str(trace)):
        said = answer.replace(str(trace), trace.name)
        if keep is not None:
            place = keep / trace.name / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(said, encoding="utf-8")
        yield f"{trace.name} {name}", hashlib.sha256(said.encode()).hexdigest()[:24]


def _imported(work: Path) -> Iterator[Path]:
    """The shipped traces, imported as tests do."""
    for folder in sorted(TRACES.iterdir()):
        log = folder / "watch.jsonl.zst"
        if log.exists():
            import_log(log, work / folder.name, folder.name)
            yield work / folder.name


def _of_other(commit: str, arguments: list[str]) -> dict[str, str]:
    """What the code of a commit prints, by trace and answer."""
    with tempfile.TemporaryDirectory() as temporary:
        other = Path(temporary) / "other"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", other, commit], check=True)
        try:
            done = subprocess.run(
                [sys.executable, str(Path(__file__).resolve()), *arguments],
                env={**os.environ, "PYTHONPATH": str(other)},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        finally:
            subprocess.run([*git, "remove", "--force", other], check=True)
    return dict(line.split("\t") for line in done.stdout.splitlines())


def main() -> int:
    """Print the digests, or compare them with another commit's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="*", help="trace directories; default: the shipped ones")
    parser.add_argument("--against", metavar="COMMIT")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        traces = [Path(name) for name in options.traces] or list(_imported(Path(temporary)))
        found: dict[str, str] = {}
        for trace in traces:
            for name, digest in digests(trace, options.keep):
                found[name] = digest
                if options.against is None:
                    print(f"{name}\t{digest}", flush=True)
        if options.against is None:
            return 0
        before = _of_other(options.against, [str(trace) for trace in traces])
    differ = [name for name in before | found if before.get(name) != found.get(name)]
    for name in differ:
        print(f"differs: {name}")
    print(f"{len(before)} compared with {options.against}, {len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
