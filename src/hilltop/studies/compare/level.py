"""How many labels are left: the paper's levels, any other ratio, or a reduced file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hilltop.checks import check_number, did_you_mean
from hilltop.errors import ArgumentError

NAMED = {
    "0.75": ("75% labels left", "0.5"),
    "0.4": ("40% labels left", "0.8"),
    "single": ("single label", "1"),
}
"""The paper's levels: what it calls them, and their r in ``floor(n (1 - r)) + 1``.

The names are the shares of labels that this leaves on COCO; on other data it is another share.
"""


@dataclass(frozen=True)
class Level:
    """Training labels of a comparison.

    Attributes:
        name: Its word on the command line and its folder.
        title: Its name in tables.
        r: Missing ratio of the paper's rule; None where nothing is dropped.
        labels: A file with reduced labels, instead of the rule.
    """

    name: str
    title: str
    r: str | None = None
    labels: Path | None = None


COMPLETE = Level("complete", "complete labels")
GIVEN = Level("given", "labels as they are")
"""Where no labels are complete: what there is, nothing dropped."""


def parse_level(word: str) -> Level:
    """Read ``0.75``, ``0.4``, ``single``, or ``r=0.6`` for any other missing ratio.

    Example:
        >>> parse_level("0.4")
        Level(name='0.4', title='40% labels left', r='0.8', labels=None)
        >>> parse_level("r=0.60").name
        'r=0.6'
    """
    if word in NAMED:
        return Level(word, *NAMED[word])
    name, equals, value = word.partition("=")
    if name == "r" and equals:
        try:
            number = float(value)
        except ValueError:
            raise ArgumentError(f"r must be a number between 0 and 1, but got {value!r}.") from None
        ratio = check_number("r", number, low=0, high=1)
        return Level(f"r={ratio:g}", f"r = {ratio:g}", f"{ratio:g}")
    raise ArgumentError(
        f"keep knows {', '.join(NAMED)} and r=<ratio>, but got {word!r}.{did_you_mean(word, NAMED)}"
    )


def parse_levels(
    keep: str | None, reduced: Sequence[str] = (), *, complete: bool = True
) -> tuple[Level, ...]:
    """Read levels with commas between them, and reduced files as NAME=FILE.

    A file that has the name of one of the paper's levels takes its place. Without either, the
    three levels of the paper are drawn; where labels are not complete, none.

    Example:
        >>> [level.name for level in parse_levels("0.4,single", ["first=first.txt"])]
        ['0.4', 'single', 'first']
        >>> parse_levels(None, complete=False)
        ()
    """
    if keep is None and not reduced and not complete:
        return ()
    if keep is None:
        words = [] if reduced else list(NAMED)
    else:
        words = [word.strip() for word in keep.split(",") if word.strip()]
    levels = {level.name: level for level in map(parse_level, words)}
    levels |= {level.name: level for level in map(given_level, reduced)}
    if not levels:
        raise ArgumentError(f"keep must name at least one level, but got {keep!r}.")
    return tuple(levels.values())


def given_level(word: str) -> Level:
    """Read NAME=FILE."""
    name, equals, path = word.partition("=")
    plain = name.replace("-", "").replace("_", "").replace(".", "").replace("%", "")
    if not (equals and path and plain.isalnum()) or name in (COMPLETE.name, GIVEN.name):
        raise ArgumentError(
            f"reduced takes a name of letters and digits and a file, as in 0.4=reduced.txt,"
            f" but got {word!r}."
        )
    title = NAMED[name][0] if name in NAMED else name
    return Level(name, title, labels=Path(path))
