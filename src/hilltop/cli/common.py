"""Options that every command has, and how wrong words on its command line are told."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hilltop.checks import did_you_mean
from hilltop.errors import ArgumentError

COMMON = {
    "--json": "Print what was found as JSON on standard output; all else goes to standard error.",
    "--quiet": "No progress, and nothing said along the way.",
    "--debug": "Show where an error comes from.",
    "--help": "Show this.",
}
"""Options of every command, with what they do."""
_BOX = re.compile("[\u2500-\u257f]")
_RULE = re.compile("[\u2500-]{8,}")

_WORDS = {
    "invalid literal for int() with base 10:": "not a whole number:",
    "could not convert string to float:": "not a number:",
    "Error parsing ": "",
    "for argument ": "for ",
    " Expected 1 values.": "",
}


@dataclass(frozen=True)
class CommonOptions:
    """What was said of these options, and the other words."""

    words: tuple[str, ...]
    json: bool
    quiet: bool
    debug: bool

    @classmethod
    def split(cls, given: Sequence[str]) -> CommonOptions:
        """Take the options of every command out of a command line; ``--`` ends them."""
        at = list(given).index("--") if "--" in given else len(given)
        here = {"--json", "--quiet", "--debug"}
        rest = [word for word in given[:at] if word not in here] + list(given[at:])
        said = set(given[:at])
        return cls(tuple(rest), "--json" in said, "--quiet" in said, "--debug" in said)


@contextlib.contextmanager
def one_style(name: str, usage: Callable[[], tuple[str, Sequence[str]]]) -> Iterator[None]:
    """Turn what the parser says of wrong words into one sentence, like every other error.

    Args:
        name: The command.
        usage: Gives what is typed to call it, and all its options.
    """
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            yield
    except SystemExit as end:
        if end.code in (0, None):
            raise
        told = _sentence(name, said.getvalue(), *usage())
        raise ArgumentError(f"{told} See hilltop {name} --help.") from None
    sys.stderr.write(said.getvalue())


def _sentence(name: str, said: str, usage: str, options: Sequence[str]) -> str:
    """The first part of the parser's box, which says what is wrong, in a sentence."""
    parts = [""]
    for line in said.splitlines()[1:]:  # the first is a title
        if _RULE.search(line):
            parts.append("")
        else:
            parts[-1] += " " + " ".join(_BOX.sub(" ", line).strip(" |").split())
    text = next((part.strip() for part in parts if part.strip()), "")
    words = re.match(r"Unrecognized options: ([^\s,]+)", text)
    if words and words[1].startswith("-"):
        return f"{name} has no option {words[1]}.{did_you_mean(words[1], options)}"
    if words:
        return f"{name} has no place for {words[1]!r}: {usage}."
    if text.startswith("Missing from"):
        return f"{name} needs more: {usage}."
    return f"{_plainly(text)}."


def _plainly(text: str) -> str:
    """What the parser says of a value, without words of its types."""
    union = re.match(r"Error parsing (\S+): no type matching \S+ could .*? from \[(.*?)\]", text)
    if union:
        number = next((one for one in ("int", "float") if f"'{one}'" in text), None)
        wanted = {"int": "not a whole number", "float": "not a number"}.get(number or "", "unknown")
        return f"{union[1]}: {wanted}: {union[2]}"
    for theirs, ours in _WORDS.items():
        text = text.replace(theirs, ours)
    return text[:1].upper() + text[1:].rstrip(".")
