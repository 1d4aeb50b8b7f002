"""Words of a command line turned into the dataclass of a command; its help and completion.

Cyclopts does all of it. Fields of a command are its options; what stands before ``KW_ONLY`` may be
given without a name. A command may have ``groups``, titles of its help with the fields under them,
and ``hidden``, fields that are understood only to say what to use instead.
"""

from __future__ import annotations

import dataclasses
import inspect
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from cyclopts import (
    App,
    CycloptsError,
    MissingArgumentError,
    Parameter,
    UnknownOptionError,
    UnusedCliTokensError,
)
from cyclopts.help import DefaultFormatter, InlineText
from rich.text import Text

from hilltop.checks import did_you_mean
from hilltop.data import ReadOptions
from hilltop.errors import ArgumentError

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

Reading = Annotated[ReadOptions, Parameter(name="*")]
"""How label files are read: options of most commands, which ``--help-labels`` shows."""
Out = Annotated[Path, Parameter(alias="--output")]
MaybeOut = Annotated[Path | None, Parameter(alias="--output")]
Force = Annotated[
    bool, Parameter(help="Replace a file of that name; what is read is never replaced.")
]
Device = Annotated[
    str, Parameter(help="auto (a GPU if there is one), cpu, cuda, or one GPU, such as cuda:1.")
]

_EVERY = "Every command has --json (prints the result alone, for scripts), --quiet and --debug."
_LABEL_FILES = ("format", *(one.name for one in dataclasses.fields(ReadOptions)))
_SHOWN = ("format", "unlisted")
"""Options of label files that the help always shows."""


def _default(value: Any) -> str | None:
    """A default as the help shows it; nothing where nothing was chosen."""
    return None if value is None or value is False or value in ((), Path()) else str(value)


_PARAMETER = Parameter(
    negative="", consume_multiple=True, allow_repeating=True, show_default=_default
)


def parse_words(command: type, words: Sequence[str], *, name: str, base: Any = None) -> Any:
    """Return an object of a command.

    Args:
        command: Its dataclass.
        words: What is typed behind its name.
        name: Its name, for errors.
        base: An object of the command with the values of everything that is not given. Without it
            the command's method ``base``, if it has one, gives it.
    """
    given: set[str] = set()

    def note_given(app: App, commands: tuple[str, ...], arguments: Any) -> None:
        given.update(one.field_info.name for one in arguments if one.tokens)
        for token in (token for one in arguments if _is_whole(one.hint) for token in one.tokens):
            if "." in token.value:  # cyclopts would round it
                raise ArgumentError(
                    f"{token.keyword} must be a whole number, but got {token.value!r}."
                )

    app = _app(command, name, config=note_given)
    try:
        parsed = app(
            list(_with_dashes(words)),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
    except CycloptsError as error:
        raise ArgumentError(f"{_told(error, name)} See hilltop {name} --help.") from None
    if base is None and hasattr(parsed, "base"):
        base = parsed.base()
    return parsed if base is None else _merged(base, parsed, given)


def _is_whole(hint: Any) -> bool:
    """Whether an option takes a whole number."""
    return hint is int or int in get_args(hint)


def _with_dashes(words: Sequence[str]) -> Iterator[str]:
    """The words; a single dash, which stands for standard input, is not taken for an option."""
    for before, word in zip(("", *words), words, strict=False):
        yield "./-" if word == "-" and not before.startswith("--") else word


def _told(error: CycloptsError, name: str) -> str:
    """What is wrong with the words, in a sentence."""
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        option = error.argument.name
        if error.keyword is not None:
            return f"{error.keyword} needs a value."
        word = option.removeprefix("--").upper()
        return f"{name} needs {word if error.argument.field_info.is_positional else option}."
    if isinstance(error, UnusedCliTokensError):
        return f"{name} has no place for {' '.join(error.unused_tokens or ())!r}."
    if isinstance(error, UnknownOptionError):
        option = error.token.keyword or error.token.value
        known = [name for one in error.argument_collection for name in one.names]
        return f"{name} has no option {option}.{did_you_mean(option, known)}"
    return str(error)


def _merged(base: Any, parsed: Any, given: Collection[str]) -> Any:
    """The object that has what was given from one, and everything else from the other."""
    changed = {}
    for field in dataclasses.fields(base):
        value = getattr(parsed, field.name)
        if dataclasses.is_dataclass(value):
            changed[field.name] = _merged(getattr(base, field.name), value, given)
        elif field.name in given:
            changed[field.name] = value
    return dataclasses.replace(base, **changed)


def render_help(command: type, name: str, *, labels: bool = False, width: int = 100) -> str:
    """Return the help of a command; with ``labels``, of options that say how labels are read."""
    from rich.console import Console

    written = io.StringIO()
    app = _app(command, name, help_formatter=_Pages(command, labels))
    app.help_print([], console=Console(file=written, width=width, highlight=False))
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines()) + "\n"


def completion_script(commands: Mapping[str, type], shell: Any) -> str:
    """Return the script that completes commands, options and their values in a shell."""
    whole = App(name="hilltop", help_flags=[], version_flags=[])
    for name, command in commands.items():
        whole.command(_app(command, name), name=name)
    return whole.generate_completion(shell=shell)


def _flowing(text: str) -> str:
    """Paragraphs without the line breaks of a docstring, which is of another width."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _app(command: type, name: str, **options: Any) -> App:
    app = App(
        name=f"hilltop {name}",
        help_flags=[],
        version_flags=[],
        help_epilogue=_EVERY,
        help_format="plaintext",
        default_parameter=_PARAMETER,
        usage=getattr(command, "usage", None),
        help=_flowing(inspect.getdoc(command) or ""),
        **options,
    )
    app.default(command)
    return app


class _Pages(DefaultFormatter):
    """Shows options in the groups of a command, and most of those of label files on request."""

    def __init__(self, command: Any, labels: bool) -> None:
        super().__init__()
        self._labels = labels
        self._groups: Mapping[str, Collection[str]] = getattr(command, "groups", {})
        self._hidden: Collection[str] = getattr(command, "hidden", ())
        reads = {"reading", "run_options"} & {one.name for one in dataclasses.fields(command)}
        self._of_labels = _LABEL_FILES if reads else ()

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        title = str(panel.title)
        of_title: dict[str, list[HelpEntry]] = {one: [] for one in (title, *self._groups)}
        titles = {field: title for title, fields in self._groups.items() for field in fields}
        of_labels = []
        for entry in panel.entries:
            field = entry.names[0].removeprefix("--").replace("-", "_")
            if field in self._of_labels:
                of_labels.append(_as_typed(entry))
            elif field not in self._hidden:
                of_title[titles.get(field, title)].append(_as_typed(entry))
        if self._labels:
            of_title = {"Label files": of_labels}
        elif of_labels:
            shown = [one for one in of_labels if one.names[0][2:] in _SHOWN]
            more = f"--help-labels shows {len(of_labels) - len(shown)} more options of label files."
            of_title[f"Label files ({more})"] = shown
        for heading, entries in of_title.items():
            super().__call__(console, options, panel.copy(title=heading, entries=entries))


def _as_typed(entry: HelpEntry) -> HelpEntry:
    """The entry in running text; what is done by default is shown as the option that stops it."""
    told = entry.description
    if isinstance(told, InlineText):
        flowing = InlineText(Text(_flowing(str(told.primary_renderable))))
        flowing.texts = told.texts
        entry = entry.copy(description=flowing)
    done = entry.negative_names and entry.default == "True"
    return entry.copy(positive_names=(), default=None) if done else entry
