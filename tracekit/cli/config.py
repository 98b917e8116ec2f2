"""Defaults of a user: a file in TOML, and variables of the environment.

`TRACEKIT_DIAGNOSE_FAIL_ON=error` stands for `--fail-on error` of `diagnose`,
`TRACEKIT_NAMESPACE=shop` for `-n shop` of every verb that has it; in the file a table has the name
of a verb, and what stands before all tables is for every verb. What is written on the command line
wins, then a verb's own variable, the variable for all, the verb's table, the rest of the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import click

from tracekit.base.errors import UsageError
from tracekit.base.home import own_folder
from tracekit.base.suggest import hint
from tracekit.cli.units import Here

_FILE: Final = "TRACEKIT_CONFIG"
_PREFIX: Final = "TRACEKIT"
#: As much as nobody writes by hand.
_MOST_BYTES: Final = 1 << 20


def config_file() -> Path | None:
    """Where the file lies: TRACEKIT_CONFIG, else below XDG_CONFIG_HOME, else below ~/.config.

    None for a user without a home directory who names neither.
    """
    named = os.environ.get(_FILE)
    if named is not None:
        return Path(named)
    folder = own_folder("XDG_CONFIG_HOME", ".config")
    return folder / "config.toml" if folder else None


def defaults_of(
    command: click.Command, verb: str, verbs: Mapping[str, Callable[[], click.Command | None]]
) -> dict[str, Any]:
    """What stands for the options of a verb that the command line leaves out, by parameter.

    Args:
        command: The verb.
        verb: Its name.
        verbs: What imports each verb, by name. Others are imported only where the file has a
            default for all that this one has no option for.

    Raises:
        UsageError: The file cannot be read, is no TOML, or names a verb or an option that is none.
    """
    file = config_file()
    tables = _tables(str(file)) if file else {}
    options = _options(command)
    own = tables.get(verb, {})
    _check(tables, own, verb, verbs, options)
    found: dict[str, Any] = {}
    for name, option in options.items():
        variable = name.replace("-", "_").upper()
        value = os.environ.get(f"{_PREFIX}_{verb.upper()}_{variable}")
        if value is None and _fits(option, os.environ.get(f"{_PREFIX}_{variable}")):
            value = os.environ[f"{_PREFIX}_{variable}"]
        if value is None:
            value = own.get(name)
        if value is None and _fits(option, tables.get(name)):
            value = tables[name]
        if value is not None and option.name is not None:
            # What may be given several times is a list, of one where it is one word.
            alone = option.multiple and not isinstance(value, list)
            found[option.name] = [value] if alone else value
    return found


def _options(command: click.Command | None) -> dict[str, click.Option]:
    """The options of a verb, and of the verbs below it, by their long names."""
    found: dict[str, click.Option] = {}
    if isinstance(command, click.Group):
        for below in command.commands.values():
            found |= _options(below)
    own = command.params if command else ()
    return found | {_name(p): p for p in own if isinstance(p, click.Option) and p.name}


def _name(option: click.Option) -> str:
    return max(option.opts, key=len).lstrip("-")


def _fits(option: click.Option, value: Any) -> bool:
    """Whether a default for all verbs is one for this option: `output` may be a place, too."""
    if value is None or isinstance(value, dict) or isinstance(option.type, Here):
        return False
    return not isinstance(option.type, click.Choice) or value in option.type.choices


def _check(
    tables: Mapping[str, Any],
    own: Any,
    verb: str,
    verbs: Mapping[str, Callable[[], click.Command | None]],
    options: Collection[str],
) -> None:
    file = config_file()
    for_all = [name for name, value in tables.items() if not isinstance(value, dict)]
    if others := [name for name in for_all if name not in options and name not in verbs]:
        known = {name for found in verbs.values() for name in _options(found())}
        for name in others:
            if name not in known:
                meant = hint(name, known, "name one as it is written on the command line")
                raise UsageError(f"{file}: no verb has an option {name!r}{meant}")
    for name, value in tables.items():
        if isinstance(value, dict) and name not in verbs:
            meant = hint(name, verbs, "`tracekit --help` lists them")
            raise UsageError(f"{file} has a table [{name}], and no verb is called so{meant}")
    if not isinstance(own, dict):
        raise UsageError(f"{file}: {verb} is a verb: write its options below [{verb}]")
    for name in own:
        if name not in options:
            meant = hint(name, options, f"`tracekit {verb} --help` lists them")
            raise UsageError(f"{file}: [{verb}] has no option {name!r}{meant}")


@lru_cache(maxsize=4)
def _tables(place: str) -> Mapping[str, Any]:
    file = Path(place)
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        if _FILE in os.environ:
            raise UsageError(
                f"{place} does not exist: set {_FILE} to another file, or unset it"
            ) from error
        return {}
    except OSError as error:
        raise UsageError(
            f"{place} cannot be read ({error.strerror}): mend it, or set {_FILE}"
        ) from error
    if len(content) > _MOST_BYTES:
        raise UsageError(f"{place} is larger than 1 MiB: it is no file of defaults; set {_FILE}")
    import tomllib  # noqa: PLC0415 - few have a file

    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{place} is no TOML ({error}): mend it, or set {_FILE} to another"
        ) from error
