"""The help of a command, read from its dataclass: options in groups, with their own words.

Parsing is tyro's. A command may say more about its options: ``groups``, titles with the names under
them; ``texts``, other words for some; ``needs``, those that must be given in spite of a default;
and ``hidden``, those that are understood only to say what to use instead.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import shutil
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import tyro

from hilltop.cli.common import COMMON

_WIDEST = 100
_NAMES: dict[Any, str] = {Path: "PATH", str: "TEXT", int: "N", float: "X"}
# Titles of options that live in a dataclass of their own, by the name of its field.
_NESTED = {"reading": "label file", "model": "model"}
_USUAL = "options"
_TITLES = {"format": "label file"}


@dataclasses.dataclass(frozen=True)
class Option:
    """One line of help: a field of a command, or of a dataclass within it."""

    field: str
    group: str
    name: str
    value: str
    text: str
    default: Any
    positional: bool

    @property
    def required(self) -> bool:
        """Whether the command does not run without it."""
        return self.default is dataclasses.MISSING

    @property
    def left(self) -> str:
        """What is typed."""
        return f"{self.name} {self.value}".strip()

    @property
    def right(self) -> str:
        """What it means, and what holds if it is not given."""
        if self.default is True:
            return f"{self.text} (done unless this is given)"
        if self.required:
            return self.text if self.positional else f"{self.text} (required)"
        usual = _spelled(self.default)
        return f"{self.text} (default: {usual})" if usual else self.text


def render_help(name: str, command: Any, default: Any = None, *, width: int | None = None) -> str:
    """Return the help of a command.

    Args:
        name: What the user types after ``hilltop``.
        command: Its dataclass.
        default: An object of it whose values are the defaults to show.
        width: Letters in a line; without it what fits the terminal.
    """
    width = width or min(_WIDEST, shutil.get_terminal_size((_WIDEST, 24)).columns)
    options = list(visible_options(command, default))
    parts = [f"usage: {_typed(name, options)}"]
    parts += _description(inspect.getdoc(command) or "", width)
    column = min(28, 4 + max(len(words) for words in (*COMMON, *(one.left for one in options))))
    for title, members in _grouped(options, getattr(command, "groups", {})):
        lines = [line for item in members for line in _lines(item, column, width)]
        parts.append("\n".join([title, *lines]))
    every = [Option("", "", left, "", text, None, False) for left, text in COMMON.items()]
    lines = [line for item in every for line in _lines(item, column, width)]
    parts.append("\n".join(["every command", *lines]))
    return "\n\n".join(parts) + "\n"


def visible_options(command: Any, default: Any = None) -> Iterator[Option]:
    """Options of a command as it words them, but those that are hidden."""
    hidden = getattr(command, "hidden", ())
    for item in _options(command, default):
        if item.field not in hidden:
            yield _said(item, command)


def usage_of(name: str, command: Any) -> tuple[str, list[str]]:
    """What is typed to call a command, and the names of all its options."""
    options = list(visible_options(command))
    return _typed(name, options), [item.name for item in options if not item.positional]


def _typed(name: str, options: list[Option]) -> str:
    needed = [item.left for item in options if item.required]
    perhaps = [f"[{item.left}]" for item in options if item.positional and not item.required]
    return " ".join(["hilltop", name, *needed, *perhaps, "[options]"])


def _said(item: Option, command: Any) -> Option:
    """The option as this command words it."""
    text = getattr(command, "texts", {}).get(item.field, item.text)
    needed = item.field in getattr(command, "needs", ())
    return dataclasses.replace(
        item, text=text, default=dataclasses.MISSING if needed else item.default
    )


def _options(command: Any, default: Any) -> Iterator[Option]:
    """Options of a dataclass, and of those within it."""
    texts, hints = _texts(command), typing.get_type_hints(command, include_extras=True)
    for item in dataclasses.fields(command):
        hint, extras = _unpack(hints[item.name])
        usual = _default(item) if default is None else getattr(default, item.name)
        if dataclasses.is_dataclass(hint):
            group = _NESTED.get(item.name, _USUAL)
            for inner in _options(hint, usual):
                yield dataclasses.replace(
                    inner, group=group if inner.group == _USUAL else inner.group
                )
        elif typing.get_origin(hint) is not dict:  # a dictionary can stand in a file only
            yield _option(item.name, hint, extras, texts.get(item.name, ""), usual)


def _option(field: str, hint: Any, extras: tuple[Any, ...], text: str, default: Any) -> Option:
    positional = tyro.conf.Positional in _markers(extras)
    given = next((extra for extra in extras if hasattr(extra, "help_behavior_hint")), None)
    name = getattr(given, "name", None) or field
    text = getattr(given, "help", None) or text
    typed = "--" + ("no_" if default is True else "") + name
    name = name.upper() if positional else typed.replace("_", "-")
    value = "" if positional or isinstance(default, bool) else _value(hint)
    if positional and typing.get_origin(hint) is tuple:
        name += " ..."
    return Option(field, _USUAL, name, value, text, default, positional)


def _unpack(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without its annotations, and they."""
    if typing.get_origin(hint) is typing.Annotated:
        inner, *extras = typing.get_args(hint)
        return inner, tuple(extras)
    return hint, ()


def _markers(extras: tuple[Any, ...]) -> set[Any]:
    marker = typing.get_args(tyro.conf.Positional[int])[1]
    return {tyro.conf.Positional for extra in extras if extra is marker}


def _value(hint: Any) -> str:
    """What stands for the value of an option: PATH, or the words to choose from."""
    choices = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        return "{" + ",".join(map(str, choices)) + "}"
    if typing.get_origin(hint) is tuple:
        return f"{_value(choices[0])} ..."
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return next(_value(choice) for choice in choices if choice is not type(None))
    return "{True,False}" if hint is bool else _NAMES[hint]


def _default(item: dataclasses.Field[Any]) -> Any:
    made = item.default_factory
    return item.default if made is dataclasses.MISSING else made()


def _spelled(default: Any) -> str:
    """A default as it would be typed; nothing for those that only say "not given"."""
    return "" if default in (None, False, (), Path()) else str(default)


def _texts(command: Any) -> dict[str, str]:
    """The sentence below each field of a class."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(command))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, after in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            words = isinstance(after, ast.Expr) and ast.literal_eval(after.value)
            if isinstance(words, str):
                found[field.target.id] = " ".join(words.split())
    return found


def _description(text: str, width: int) -> list[str]:
    """Paragraphs filled to the width; the example on lines of its own, ready to copy."""
    parts = []
    for paragraph in text.split("\n\n"):
        words = " ".join(paragraph.split())
        example = words.removeprefix("Example: ")
        if example == words:
            parts.append(textwrap.fill(words, width, break_on_hyphens=False))
        else:
            parts.append("Example:\n  " + " \\\n    ".join(_broken(example, width - 6)))
    return parts


def _broken(example: str, width: int) -> list[str]:
    """A command in lines that begin with an option, so that no value is parted from its name."""
    lines = [""]
    for piece in example.replace(" --", "\0--").split("\0"):
        if lines[-1] and len(lines[-1]) + 1 + len(piece) > width:
            lines.append(piece)
        else:
            lines[-1] = f"{lines[-1]} {piece}".strip()
    return lines


def _grouped(
    options: list[Option], groups: Mapping[str, tuple[str, ...]]
) -> list[tuple[str, list[Option]]]:
    """Titles with their options: what must be given, the command's own groups, the rest."""
    titles = {field: title for title, fields in groups.items() for field in fields}
    found: dict[str, list[Option]] = {title: [] for title in ("arguments", _USUAL, *groups)}
    for item in options:
        title = titles.get(item.field) or _TITLES.get(item.field, item.group)
        title = "arguments" if item.positional else title
        found.setdefault(title, []).append(item)
    return [(title, members) for title, members in found.items() if members]


def _lines(item: Option, column: int, width: int) -> list[str]:
    left = f"  {item.left}"
    right = textwrap.wrap(item.right, width - column, break_on_hyphens=False)
    if len(left) + 2 > column:
        return [left, *(" " * column + line for line in right)]
    return [left.ljust(column) + right[0], *(" " * column + line for line in right[1:])]
