"""What may not be used where: the core depends on what it is given and on nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch

import pytest

from tests.tidy.source import Module, modules

#: Modules that bring the outside in, with what to use in their place.
BANNED_IMPORTS = {
    "os": "leave files and the environment to cli, record, trace or sql",
    "pathlib": "leave files to cli, record, trace or sql",
    "shutil": "leave files to cli, record, trace or sql",
    "tempfile": "leave files to cli, record, trace or sql",
    "sys": "return a value or raise",
    "time": "take the time as an int of nanoseconds, from tracekit.base.sim.clock or an argument",
    "random": "make the choice an argument (tracekit.ports.job.context.Choices)",
    "secrets": "make the choice an argument",
    "uuid": "uids and names are inputs",
    "threading": "the core is single-threaded",
    "asyncio": "the core is single-threaded",
    "multiprocessing": "the core is single-threaded",
    "concurrent": "the core is single-threaded",
    "subprocess": "the core runs no programs",
    "socket": "the network is record's",
    "urllib3": "the network is record's",
    "kubernetes": "the network is record's",
    "logging": "raise, or put it into the result",
    "pyarrow": "Parquet is trace's; the core takes tables through protocols",
    "duckdb": "SQL is sql's",
    "click": "options are cli's",
    "rich": "output is report's and cli's",
}
BANNED_CALLS = {
    "open": "leave files to cli, record, trace or sql",
    "print": "return a value; report and cli show it",
    "input": "take an argument",
    "hash": "it differs from run to run for strings",
}
_WALL_CLOCK = {"now", "utcnow", "today"}
#: Only these compare versions or parse them; others ask an era or its rules.
VERSION_LAYERS = {"versions", "judge", "cli"}
VERSION_EXEMPT = {
    "tracekit.sql.ticks": "a view has the version of a trace as text and resolves it to an era",
    "tracekit.answers.cronlint.linted": "a schedule is linted for a version, and the eras say what it means",
    "tracekit.sql.schedule_notes": "a view has the version of a trace as text, as those of the ticks",
}
PURE = [module for module in modules() if module.is_pure]
ALL = list(modules())


def test_a_pure_room_brings_nothing_in_from_outside() -> None:
    wrong = [
        f"{module}:{line}: {name} is banned here: {BANNED_IMPORTS[name.split('.')[0]]}"
        for module in PURE
        for name, line in module.imports()
        if name.split(".")[0] in BANNED_IMPORTS
    ]
    wrong += [
        f"{module}:{line}: {what}" for module in PURE for line, what in _banned_calls(module.tree)
    ]
    assert not wrong, "\n".join(wrong)


def _banned_calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in BANNED_CALLS:
            yield node.lineno, f"{called.id}() is banned here: {BANNED_CALLS[called.id]}"
        if (
            isinstance(called, ast.Attribute)
            and called.attr in _WALL_CLOCK
            and isinstance(called.value, ast.Name)
            and called.value.id in {"datetime", "date"}
        ):
            yield node.lineno, f"the wall clock ({called.attr}) is banned here: take the time"


def test_a_pure_room_iterates_over_no_set() -> None:
    """The order of a set of strings differs from run to run; sort it, or use a dict."""
    wrong = [
        f"{module}:{line}: iterates over a set" for module in PURE for line in _over_sets(module)
    ]
    assert not wrong, "\n".join(wrong)


def _over_sets(module: Module) -> Iterator[int]:
    # In what is made a set again, or only counted or asked, no order is left to see.
    harmless = {
        inner.iter.lineno
        for node in ast.walk(module.tree)
        if isinstance(node, ast.SetComp)
        for inner in node.generators
    }
    for node in ast.walk(module.tree):
        loops = isinstance(node, (ast.For, ast.comprehension)) and _is_set(node.iter)
        if loops and node.iter.lineno not in harmless:
            yield node.iter.lineno


def _is_set(node: ast.expr) -> bool:
    if isinstance(node, (ast.Set, ast.SetComp)):
        return True
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"set", "frozenset"}
    )


def test_only_the_version_table_knows_versions() -> None:
    wrong = [
        f"{module}, lines {used}: ask tracekit.versions for a rule, or drop the exemption"
        for module in ALL
        if module.layer not in VERSION_LAYERS
        and bool(used := list(_versions(module))) != (module.name in VERSION_EXEMPT)
    ]
    assert not wrong, "\n".join(wrong)


def _versions(module: Module) -> Iterator[int]:
    for node in ast.walk(module.tree):
        if (isinstance(node, ast.Name) and node.id == "KubeVersion") or (
            isinstance(node, ast.Attribute) and node.attr == "minor"
        ):
            yield node.lineno


def test_a_module_says_what_it_is_and_leaves_nothing_for_later() -> None:
    wrong = []
    for module in ALL:
        said = ast.get_docstring(module.tree)
        if not said:
            wrong.append(f"{module} has no docstring")
        elif not said.split("\n")[0].endswith((".", "?")):
            wrong.append(f"{module}: its first line is no sentence")
        left = re.search(r"\b(TODO|FIXME|XXX|HACK)\b", module.text)
        if left is not None:
            wrong.append(f"{module}: {left}")
    assert not wrong, "\n".join(wrong)


def test_no_module_is_dead() -> None:
    """Every module is imported by another one, or is a command or an entry point."""
    used = {imported for module in ALL for imported, _ in module.imports()}
    used |= {imported.rpartition(".")[0] for imported in used}
    commands = "".join(m.text for m in ALL if m.name in {"tracekit.cli.main", "tracekit.cli.cron"})
    dead = [
        module.name
        for module in ALL
        if module.path.name != "__init__.py"
        and module.name not in used
        and f'"{module.name}:' not in commands
        and module.name not in NOT_DEAD
    ]
    assert not dead


#: Modules that nothing in the package imports: why they are there.
NOT_DEAD = {
    "tracekit.__main__": "an entry point",
    "tracekit.cli.main": "the entry point",
    "tracekit.pytest_plugin": "an entry point",
    "tracekit.trace.format.document": "writes the columns of docs/trace-format.md; a test compares them",
}


#: What begins a process, by the module that it is of; a name may end in a star.
BEGINNERS = {
    "subprocess": {
        "Popen",
        "run",
        "call",
        "check_call",
        "check_output",
        "getoutput",
        "getstatusoutput",
    },
    "os": {
        "system",
        "popen",
        "fork",
        "forkpty",
        "posix_spawn",
        "posix_spawnp",
        "startfile",
        "exec*",
        "spawn*",
    },
    "multiprocessing": {"Process", "Pool", "Manager", "get_context", "set_start_method"},
    "multiprocessing.context": {"*"},
    "multiprocessing.process": {"*"},
    "multiprocessing.pool": {"*"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
    "pty": {"fork", "spawn"},
}


def _begins(node: ast.AST, names: dict[str, str]) -> str | None:
    """What begins a process here; `names` are the modules that the file knows under a name."""
    found: list[tuple[str, str]] = []
    if isinstance(node, ast.Attribute):
        written = ast.unparse(node.value)
        found = [(names.get(written, written), node.attr)]
    elif isinstance(node, ast.ImportFrom):
        found = [(node.module or "", alias.name) for alias in node.names]
    for room, name in found:
        if any(fnmatch(name, pattern) for pattern in BEGINNERS.get(room, ())):
            return f"{room}.{name}"
    return None


def _names_of_modules(tree: ast.Module) -> dict[str, str]:
    """The full name of each module by what it is called in a file."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            found |= {
                alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names
            }
    return found


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess\nsubprocess.run([])",
        "import subprocess as sp\nsp.Popen([])",
        "from subprocess import Popen as begin",
        "from os import execvp",
        "import os as machine\nmachine.spawnl()",
        "import multiprocessing as mp\nmp.Pool()",
        "from multiprocessing import context\ncontext.SpawnContext()",
        "from multiprocessing.pool import Pool",
        "import multiprocessing.context\nmultiprocessing.context.SpawnProcess()",
    ],
)
def test_no_other_name_hides_what_begins_a_process(text: str) -> None:
    tree = ast.parse(text)
    names = _names_of_modules(tree)
    assert any(_begins(node, names) for node in ast.walk(tree))


def test_every_process_is_begun_in_one_room() -> None:
    wrong = [
        f"{module}:{node.lineno}: {what}: begin it with tracekit.base.children"
        for module in ALL
        if module.name != "tracekit.base.children"
        for names in [_names_of_modules(module.tree)]
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute | ast.ImportFrom)
        and (what := _begins(node, names)) is not None
        and not _is_annotation(module.tree, node)
    ]
    assert not wrong, "\n".join(wrong)


def _is_annotation(tree: ast.Module, wanted: ast.AST) -> bool:
    """Whether a name stands where only a type is meant."""
    for node in ast.walk(tree):
        annotations = (getattr(node, "annotation", None), getattr(node, "returns", None))
        if any(part is wanted for a in annotations if a is not None for part in ast.walk(a)):
            return True
    return False


def test_a_pool_of_processes_gets_its_context_from_that_room() -> None:
    calls = [
        (module, node)
        for module in ALL
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("ProcessPoolExecutor")
    ]
    assert calls
    assert not [f"{module}:{node.lineno}" for module, node in calls if len(node.args) < 2]


#: Who reads Parquet with `pq`, and from where: files of Python's only through `parquet_file`.
_READS_PARQUET = re.compile(
    r"\bpq\.(?:ParquetFile\(|read_table\(|ParquetDataset\()(?!pa\.BufferReader)"
)
_READS_ROWS = re.compile(r"\.read_row_groups?\((?:[^()]|\([^()]*\))*\)")


def test_no_thread_of_arrows_reads_a_file() -> None:
    """A thread that lets go of a file at the interpreter's end aborts the process."""
    wrong = [
        f"{module}: {found[0]}: use tracekit.trace.format.parquet.parquet_file"
        for module in ALL
        if module.name != "tracekit.trace.format.parquet"
        for found in _READS_PARQUET.finditer(module.text)
    ]
    wrong += [
        f"{module}: {found[0]}: use_threads=False is missing"
        for module in ALL
        for found in _READS_ROWS.finditer(module.text)
        if "use_threads=False" not in found[0]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_compressor_is_shared() -> None:
    """One thread at a time may use one: the streams of a recorder shared one, and it crashed."""
    wrong = [
        f"{module}:{node.lineno}: use zstandard.compress and decompress, or make it where it is used"
        for module in ALL
        for node in _run_at_import(module.tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in {"ZstdCompressor", "ZstdDecompressor"}
    ]
    assert not wrong, "\n".join(wrong)


def _run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from _run_at_import(child)
