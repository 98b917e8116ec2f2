"""The prompt of `tracekit sql`: history, completion of views and columns, several lines."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from io import StringIO
from signal import SIGINT
from typing import TextIO

import click
import duckdb
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import Output
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

from tracekit.base.errors import TracekitError, UsageError
from tracekit.base.home import own_folder
from tracekit.base.stopping import interrupt, on_signals
from tracekit.base.suggest import closest, hint
from tracekit.cli.messages import say, tell_all, tell_error
from tracekit.report.rows import FORMATS, write_rows
from tracekit.report.table import write_table
from tracekit.sql.catalog import examples, macros, views
from tracekit.sql.guard import statements_of
from tracekit.sql.session import Session

_KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP", "BY", "ORDER", "LIMIT", "JOIN", "LEFT", "USING", "ON",
    "AS", "AND", "OR", "NOT", "NULL", "IS", "IN", "BETWEEN", "LIKE", "ILIKE", "HAVING",
    "QUALIFY", "OVER", "PARTITION", "WITH", "CASE", "WHEN", "THEN", "ELSE", "END", "COUNT",
    "SUM", "MIN", "MAX", "AVG", "DISTINCT", "FILTER", "UNION", "ALL", "DESCRIBE", "SUMMARIZE",
    "SHOW", "TABLES", "ASC", "DESC", "INTERVAL",
)  # fmt: skip

HELP = """\
A query ends with ; and Enter. Tab completes views, columns and keywords.
  .views [NAME]     the views, or the columns of one
  .macros           the macros
  .examples         names of the shipped queries
  .example NAME     run one of them
  .output [FORMAT]  how rows are printed: table, line, csv, json, jsonl or markdown
  .pager on|off     whether what is longer than the screen goes through your pager
  .help  exit       this text; leave (so do quit and Ctrl-D)"""


class SqlCompleter(Completer):
    """Completes the word before the cursor; after `view.` only that view's columns."""

    def __init__(self) -> None:
        self.columns = {
            view.name: [column.name for column in view.columns] for view in views() if view.public
        }
        self.macros = {macro.name: macro.call for macro in macros()}
        self.everywhere = sorted({name for names in self.columns.values() for name in names})

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Candidates for the word before the cursor."""
        del complete_event
        text = document.text_before_cursor
        if text.startswith("."):
            yield from self._of_commands(text)
            return
        word = document.get_word_before_cursor(pattern=None)
        path = document.get_word_before_cursor(WORD=True).replace("(", " ").replace(",", " ")
        owner, dot, part = path.split(" ")[-1].rpartition(".")
        if dot:
            for column in self.columns.get(owner, []):
                if column.startswith(part.lower()):
                    yield Completion(column, -len(part), display_meta=owner)
            return
        yield from self._of_words(word, text)

    def _of_words(self, word: str, text: str) -> Iterable[Completion]:
        if not word.strip():
            return
        low = word.lower()
        named = [view for view in self.columns if view in text]
        for view in self.columns:
            if view.startswith(low):
                yield Completion(view, -len(word), display_meta="view")
        for name, call in self.macros.items():
            if name.startswith(low):
                yield Completion(f"{name}(", -len(word), display=call, display_meta="macro")
        near = [c for view in named for c in self.columns[view]] or self.everywhere
        for column in dict.fromkeys(near):
            if column.startswith(low):
                yield Completion(column, -len(word), display_meta="column")
        for keyword in _KEYWORDS:
            if keyword.lower().startswith(low):
                yield Completion(keyword, -len(word))

    def _of_commands(self, text: str) -> Iterable[Completion]:
        command, space, argument = text.partition(" ")
        if not space:
            for name in _COMMANDS:
                if name.startswith(command):
                    yield Completion(name, -len(command))
            return
        choices = {
            ".views": list(self.columns),
            ".example": [example.name for example in examples()],
            ".output": list(FORMATS),
        }
        for choice in choices.get(command, []):
            if choice.startswith(argument):
                yield Completion(choice, -len(argument))


def prompt(
    session: Session,
    output: str,
    *,
    terminal_input: Input | None = None,
    terminal_output: Output | None = None,
) -> None:
    """Read and answer queries until the end of input."""
    if terminal_input is None and not sys.stdin.isatty():
        _answer_all(Prompt(session, output))
        return
    reader: PromptSession[str] = PromptSession(
        history=_history(),
        completer=SqlCompleter(),
        complete_while_typing=False,
        lexer=PygmentsLexer(SqlLexer),
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation="   ...> ",
        editing_mode=EditingMode.EMACS,
        input=terminal_input,
        output=terminal_output,
    )
    names = ", ".join(source.name for source in session.sources)
    say(f"{names}: type a query, or .help")
    answering = Prompt(session, output)
    with on_signals(interrupt, SIGINT):  # of a query: what comes after it is asked anew
        while not answering.left:
            try:
                text = reader.prompt("tracekit> ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            answering.answer(text)


def _answer_all(answering: Prompt) -> None:
    """Answer what is piped in, commands on lines of their own; exit status 2 if any failed."""
    try:
        text = sys.stdin.read()
        text.encode()
    except UnicodeError as error:
        raise UsageError("what is piped in is no text: write queries in UTF-8") from error
    gathered = ""
    for line in StringIO(text):
        word = line.strip()
        is_command = word.startswith(".") or word.rstrip("; ").lower() in _LEAVING
        if not is_command or (gathered.strip() and not gathered.rstrip().endswith(";")):
            gathered += line
            continue
        for asked in (gathered, line):
            _answer(answering, asked)
        gathered = ""
        if answering.left:
            break
    _answer(answering, gathered)
    if answering.failed:
        raise click.exceptions.Exit(2)


def _answer(answering: Prompt, text: str) -> None:
    """Answer one part of what is piped in; Ctrl-C ends all of it."""
    answering.answer(text)
    if answering.interrupted:
        raise KeyboardInterrupt


class Prompt:
    """What one line (or several, up to `;`) of input does."""

    def __init__(self, session: Session, output: str) -> None:
        self.session = session
        self.output = output
        self.left = False
        #: Whether anything could not be answered.
        self.failed = False
        self.interrupted = False
        self.paging = sys.stdin.isatty() and sys.stdout.isatty()
        self._printed: set[str] = set(session.problems)

    def answer(self, text: str) -> None:
        """Run a command or the queries in the text; errors are told and forgotten."""
        text = text.strip()
        if not text:
            return
        try:
            if text.rstrip("; ").lower() in _LEAVING:
                self.left = True
                return
            if text.startswith("."):
                self._command(*text.split(None, 1))
                return
            for statement in self._statements(text):
                self._query(statement)
        except TracekitError as error:
            self.failed = True
            tell_error(error)
        except KeyboardInterrupt:
            self.interrupted = True
            click.echo("interrupted", err=True)

    def _statements(self, text: str) -> list[str]:
        try:
            return statements_of(self.session.connection, text)
        except (duckdb.Error, TypeError):  # TypeError: a terminal's bytes that are no UTF-8
            return [text]  # running it tells what is wrong, with the line

    def _query(self, query: str) -> None:
        start = time.perf_counter()
        rows = self.session.table(query)
        self._printed = tell_all([*self.session.problems, *self.session.warnings], self._printed)
        self._print(lambda out: write_rows(rows, self.output, out))
        click.echo(f"{time.perf_counter() - start:.3f} s", err=True)

    def _print(self, write: Callable[[TextIO], None]) -> None:
        """Write, through the pager what is longer than the screen of a terminal."""
        if not self.paging:
            write(sys.stdout)
            return
        text = _Shown()
        write(text)
        shown = text.getvalue()
        if shown.count("\n") < shutil.get_terminal_size().lines:
            click.echo(shown, nl=False)
        else:
            click.echo_via_pager(shown)

    def _refuse(self, why: str) -> None:
        self.failed = True
        say(why)

    def _command(self, name: str, argument: str = "") -> None:
        command = _COMMANDS.get(name)
        if command is None:
            close = closest(name, _COMMANDS)
            hint = f"did you mean {close}?" if close else ".help lists the commands"
            self._refuse(f"there is no command {name}; {hint}")
            return
        command(self, argument.strip())

    def help(self, _: str) -> None:
        """Print what can be done."""
        click.echo(HELP)

    def quit(self, _: str) -> None:
        """Leave."""
        self.left = True

    def views(self, name: str) -> None:
        """List the views, or the columns of one."""
        known = {view.name: view for view in views() if view.public}
        if not name:
            rows = [(view.name, _first_sentence(view.text)) for view in known.values()]
            self._print(lambda out: write_table(["VIEW", "ONE ROW PER"], rows, out, fold={1}))
        elif name in known:
            columns = [(column.name, column.meaning) for column in known[name].columns]
            self._print(lambda out: write_table(["COLUMN", "MEANING"], columns, out, fold={1}))
        else:
            close = closest(name, known)
            self._refuse(f"there is no view {name}" + (f"; did you mean {close}?" if close else ""))

    def macros(self, _: str) -> None:
        """List the macros."""
        rows = [(macro.call, macro.text) for macro in macros()]
        self._print(lambda out: write_table(["MACRO", "MEANING"], rows, out, fold={1}))

    def examples(self, _: str) -> None:
        """List the shipped queries."""
        rows = [(example.name, example.question) for example in examples()]
        self._print(lambda out: write_table(["EXAMPLE", "QUESTION"], rows, out, fold={1}))

    def example(self, name: str) -> None:
        """Run one of the shipped queries."""
        known = {example.name: example.sql for example in examples()}
        if name not in known:
            close = closest(name, known)
            self._refuse(
                f"there is no example {name}" + (f"; did you mean {close}?" if close else "")
            )
            return
        click.echo(known[name] + "\n")
        self._query(known[name])

    def set_output(self, name: str) -> None:
        """Choose how rows are printed from now on; without a format say how they are."""
        kinds = [kind for kind in FORMATS if kind != "parquet"]
        if name in kinds:
            self.output = name
        elif name:
            self._refuse(
                f"there is no format {name}{hint(name, kinds, f'it is one of {_listed(kinds)}')}"
            )
        else:
            click.echo(f"{self.output}; .output FORMAT takes {_listed(kinds)}")

    def set_pager(self, name: str) -> None:
        """Choose whether what is longer than the screen goes through the pager."""
        if name in ("on", "off"):
            self.paging = name == "on"
        elif name:
            self._refuse(".pager takes on or off")
        else:
            click.echo("on" if self.paging else "off")


class _Shown(StringIO):
    """What a terminal would be shown."""

    def isatty(self) -> bool:
        """It is for one."""
        return True


def _first_sentence(text: str) -> str:
    return text.split(". ", maxsplit=1)[0].rstrip(".").removeprefix("One row per ")


def _listed(kinds: Sequence[str]) -> str:
    return f"{', '.join(kinds[:-1])} or {kinds[-1]}"


#: What leaves the prompts of other databases.
_LEAVING = frozenset({"exit", "quit", "\\q"})
_COMMANDS = {
    ".help": Prompt.help,
    ".quit": Prompt.quit,
    ".exit": Prompt.quit,
    ".views": Prompt.views,
    ".macros": Prompt.macros,
    ".examples": Prompt.examples,
    ".example": Prompt.example,
    ".output": Prompt.set_output,
    ".pager": Prompt.set_pager,
}


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        """Enter ends a query after `;` and a command at once; else it begins a new line."""
        buffer = event.current_buffer
        text = buffer.document.text.strip()
        if not text or text.endswith(";") or text.startswith(".") or text.lower() in _LEAVING:
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


def _history() -> History:
    state = own_folder("XDG_STATE_HOME", ".local", "state")
    if state is None:
        return InMemoryHistory()
    try:
        state.mkdir(parents=True, exist_ok=True)
        return FileHistory(str(state / "sql_history"))
    except OSError:
        return InMemoryHistory()
