"""The commonest mistakes on the command line, and the page that says what is printed for each.

`python -m tests.docs.mistakes` writes docs/mistakes.md anew.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.traces import ROOT
from tracekit.cli.main import main

PAGE = ROOT / "docs" / "mistakes.md"
HEAD = """\
# Mistakes

<!-- Made by tests/docs/mistakes.py, which runs each command: write it anew with
     `python -m tests.docs.mistakes`. -->

What is said for the commonest mistakes: one sentence on stderr that says what to do, nothing on
stdout, exit status 2. `run` is the trace of `tracekit demo`; `logs` is a folder with the
`watch.jsonl.zst` of a recorder, `notes.txt` some text, `broken` a trace whose `trace.json` is cut off.
"""
#: Headings, and the commands below them.
MISTAKES: Mapping[str, tuple[str, ...]] = {
    "The verb": (
        "tracekit reply run",
        "tracekit diagnos run",
        "tracekit explian run three",
        "tracekit cron nxt '@daily'",
        "tracekit import wach logs/watch.jsonl.zst -o out",
        "tracekit completion tcsh",
        "tracekit --verson",
    ),
    "The trace": (
        "tracekit replay",
        "tracekit replay nothing --diff",
        "tracekit info notes.txt",
        "tracekit info empty",
        "tracekit replay logs --diff",
        "tracekit diagnose logs",
        "tracekit sql logs 'FROM jobs'",
        "tracekit replay logs/watch.jsonl.zst --diff",
        "tracekit replay run/trace.json --diff",
        "tracekit info broken",
        "tracekit diagnose run run",
        "tracekit sql 'night-*' 'FROM jobs'",
        "tracekit diagnose s3:/bucket/run",
        "tracekit replay ftp://host/run --diff",
        "tracekit info ''",
    ),
    "The object": (
        "tracekit explain run",
        "tracekit explain run thre",
        "tracekit explain run t-fixed-completions/thre",
        "tracekit explain run t-fixed-completion/three",
        "tracekit explain run default/three",
        "tracekit explain run job/thre -n t-fixed-completions",
        "tracekit explain run job/three -n t-indexed",
        "tracekit explain run deployment/three",
        "tracekit explain run /",
        "tracekit explain run three-q4z9c",
        "tracekit explain run exits",
        "tracekit report run t-fixed-completions/thre -o -",
        "tracekit replay run --diff --job thre",
        "tracekit replay run --diff -n t-fixed-completion",
        "tracekit diagnose run -n t-fixed-completion",
        "tracekit jobs run -n defualt",
        "tracekit jobs run --cronjob forbit",
        "tracekit jobs run --outcome Faild",
        "tracekit export run --format csv -n t-zeros",
    ),
    "Times": (
        "tracekit diagnose run --since yesterday",
        "tracekit diagnose run --since 2x",
        "tracekit diagnose run --from 25:42",
        "tracekit diagnose run --from 2026-11-31",
        "tracekit diagnose run --since 1h --from -10m",
        "tracekit replay run --diff --from -1m --to -2m",
        "tracekit replay run --diff --from 2030-01-01",
        "tracekit jobs run --to 21.11.2026",
        "tracekit explain run three --at noon",
        "tracekit explain run three --at -1m --to -2m",
        "tracekit export run --format csv --from 10m",
        "tracekit report run -o - --since -",
        "tracekit cron next @daily --from tomorrow",
        "tracekit record -o new --duration forever",
    ),
    "Versions, gates, controllers": (
        "tracekit replay run --diff --kubernetes-version 1.36.x",
        "tracekit replay run --diff --kubernetes-version v1.5.0",
        "tracekit replay run --diff --kubernetes-version latest",
        "tracekit replay run --diff --feature-gates JobSucessPolicy=true",
        "tracekit replay run --diff --feature-gates JobSuccessPolicy",
        "tracekit replay run --diff --feature-gates JobSuccessPolicy=maybe",
        "tracekit versions v1.20.0 --feature-gates JobSuccessPolicy=true",
        "tracekit replay run --diff --controller jobs",
        "tracekit replay run --diff --controller ''",
        "tracekit replay run --diff --min-actions 99999",
        "tracekit versions 1.2",
        "tracekit versions v1.23.17 v1.24.17 v1.25.0",
    ),
    "Queries": (
        "tracekit sql",
        "tracekit sql 'SELECT 1'",
        "tracekit sql run 'SELEC job FROM jobs'",
        "tracekit sql run 'SELECT jbo FROM jobs'",
        "tracekit sql run 'SELECT * FROM job'",
        "tracekit sql run 'SELECT timelin(1)'",
        "tracekit sql run \"SELECT * FROM jobs WHERE outcome = 'Faild'\"",
        "tracekit sql run 'SELECT 1; SELECT 2'",
        "tracekit sql run 'DROP VIEW jobs'",
        "tracekit sql run \"SELECT * FROM read_csv('notes.txt')\"",
        "tracekit sql run --example back-off-cost",
        "tracekit sql run -f missing.sql",
        "tracekit sql run 'FROM jobs' --example backoff-cost",
        "tracekit sql run 'FROM jobs' -o yaml",
        "tracekit sql run ''",
    ),
    "Options and files": (
        "tracekit replay run --dif",
        "tracekit replay run -o yaml",
        "tracekit replay run -o sarif",
        "tracekit replay run --diff --baseline missing.json",
        "tracekit diagnose run --baseline notes.txt",
        "tracekit diagnose run --fail-on eror",
        "tracekit diagnose run -l 'app in shop'",
        "tracekit diagnose run --write-baseline no/such/folder/known.json",
        "tracekit export run",
        "tracekit export run --format perfeto -o out.bin",
        "tracekit export run --format csv -o notes.txt",
        "tracekit import watch logs/watch.jsonl.zst -o s3://fleet/run",
        "tracekit report run -o s3://fleet/page.html",
        "tracekit report run -o notes.txt",
        "tracekit report run -o no/such/folder/page.html",
        "tracekit redact run",
        "tracekit redact run -o run",
        "tracekit demo -o notes.txt",
        "tracekit import watch missing.jsonl -o out",
        "tracekit import watch notes.txt -o out",
        "tracekit import watch logs/watch.jsonl.zst -o run",
        "tracekit import watch logs/watch.jsonl.zst",
        "tracekit record -o new --context stagin",
        "tracekit record -o new --kubeconfig missing",
        "tracekit record",
    ),
    "Schedules": (
        "tracekit cron next '* * *'",
        "tracekit cron next '61 * * * *'",
        "tracekit cron next '@dayly'",
        "tracekit cron next @daily --time-zone Europe/Berlim",
        "tracekit cron next @daily --process-zone Berlin",
        "tracekit cron next @daily --count 0",
        "tracekit cron lint missing.yaml",
        "tracekit cron lint run --time-zone UTC",
    ),
}


@contextlib.contextmanager
def desk() -> Iterator[Path]:
    """A folder with what the commands name, as the current one."""
    config = (
        "apiVersion: v1\nkind: Config\ncurrent-context: prod\nclusters: [{name: c, cluster: "
        "{server: 'http://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n"
        "contexts: [{name: prod, context: {cluster: c, user: u}}, "
        "{name: staging, context: {cluster: c, user: u}}]\n"
    )
    before = {name: os.environ.get(name) for name in ("KUBECONFIG", "COLUMNS", "NO_COLOR")}
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ.update({"KUBECONFIG": "config", "COLUMNS": "80", "NO_COLOR": "1"})
        Path("config").write_text(config)
        Path("notes.txt").write_text("buy milk\n")
        Path("empty").mkdir()
        Path("logs").mkdir()
        Path("broken").mkdir()
        Path("broken/trace.json").write_text('{"format_version": 1, "kubern')
        log = ROOT / "tracekit/cli/demo_trace/watch.jsonl.zst"
        Path("logs/watch.jsonl.zst").write_bytes(log.read_bytes())
        status, _, err = said(
            "tracekit import watch logs/watch.jsonl.zst -o run --kubernetes-version v1.36.3"
        )
        assert status == 0, err
        try:
            yield Path(folder)
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                os.environ.update({} if value is None else {name: value})


def said(command: str) -> tuple[int, str, str]:
    """The exit status of a command, and what it says on stdout and stderr."""
    program, *words = shlex.split(command)
    assert program == "tracekit", command
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    status = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(words)
        except SystemExit as left:
            status = int(left.code or 0)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    return status, texts[0], texts[1]


def answers() -> dict[str, tuple[int, str, str]]:
    """What is said of each mistake."""
    with desk():
        return {command: said(command) for group in MISTAKES.values() for command in group}


def page(told: Mapping[str, tuple[int, str, str]]) -> str:
    """docs/mistakes.md."""
    parts = [HEAD]
    for heading, group in MISTAKES.items():
        parts.append(f"\n## {heading}\n\n```console\n")
        for number, command in enumerate(group):
            parts.append("\n" * (number > 0) + f"$ {command}\n{told[command][2]}")
        parts.append("```\n")
    return "".join(parts)


if __name__ == "__main__":
    text = page(answers())
    PAGE.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{PAGE} written\n")
