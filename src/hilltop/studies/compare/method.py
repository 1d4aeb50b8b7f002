"""A method by name: a loss with options, optionally as the two stages of pseudo labels.

The notation reads like the paper's tables and needs no quotes in a shell::

    hill                          a registered loss
    splc:tau=0.65:base=asl        a loss with options
    bce+pseudo_label              train, label what is above 0.5, train again
    hill:margin=0.5+pseudo_label:0.6
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from hilltop.errors import ArgumentError
from hilltop.losses import LOSSES, build

PSEUDO_LABEL = "pseudo_label"
USUAL_THRESHOLD = 0.5
"""Pairs above it become labels unless the method says otherwise; the paper looks at 0.4 to 0.6."""


@dataclass(frozen=True)
class Method:
    """A loss with its options, and the threshold of a pseudo-label stage if there is one.

    Two ways of writing the same method are equal.

    Example:
        >>> Method.parse("splc:tau=0.650:base=asl")
        Method(loss='splc', options=(('base', 'asl'), ('tau', 0.65)), pseudo_label=None)
        >>> str(Method.parse("bce+pseudo_label:0.50"))
        'bce+pseudo_label'
    """

    loss: str
    options: tuple[tuple[str, Any], ...] = ()
    pseudo_label: float | None = None

    @classmethod
    def parse(cls, text: str) -> Method:
        """Read the notation.

        Raises:
            ArgumentError: The notation, the loss or a value is wrong.
            ArgumentTypeError: The loss has no such option.
        """
        head, plus, stage = text.strip().partition("+")
        loss, *parts = head.split(":")
        options = dict(_option(text, part) for part in parts)
        method = cls(loss, tuple(sorted(options.items())), _stage(text, stage) if plus else None)
        build(loss, **options)  # a wrong name or value is found now, not after hours of training
        return method

    @property
    def folder(self) -> str:
        """The method as the name of a folder, on every system."""
        return str(self).replace(":", ",")

    def __str__(self) -> str:
        """Return the shortest notation; options are in alphabetical order."""
        words = [self.loss, *(f"{name}={_written(value)}" for name, value in self.options)]
        if self.pseudo_label is None:
            return ":".join(words)
        usual = self.pseudo_label == USUAL_THRESHOLD
        stage = PSEUDO_LABEL if usual else f"{PSEUDO_LABEL}:{self.pseudo_label:g}"
        return f"{':'.join(words)}+{stage}"


def parse_methods(text: str) -> tuple[Method, ...]:
    """Read methods with commas between them; ``all`` stands for every one that is registered.

    Example:
        >>> [str(method) for method in parse_methods("bce,hill,bce")]
        ['bce', 'hill']
    """
    words: Sequence[str] = [word for word in text.split(",") if word.strip()]
    if text.strip() == "all":
        words = [*LOSSES, f"bce+{PSEUDO_LABEL}"]
    if not words:
        raise ArgumentError(f"methods must name at least one method, but got {text!r}.")
    return tuple(dict.fromkeys(Method.parse(word) for word in words))


def _option(text: str, part: str) -> tuple[str, Any]:
    name, equals, value = part.partition("=")
    if not (name and equals and value):
        raise ArgumentError(
            f"{text!r} is not a method: {part!r} should be an option with a value,"
            " as in splc:tau=0.65."
        )
    try:
        read = yaml.safe_load(value)
    except yaml.YAMLError:
        read = None
    if not isinstance(read, int | float | str):
        raise ArgumentError(f"{text!r}: the value of {name} must be a number or a word.")
    # YAML reads 1e-3 as text; as a loss option it can only be a number.
    return name, _number(read) if isinstance(read, str) else read


def _number(word: str) -> float | str:
    try:
        return float(word)
    except ValueError:
        return word


def _stage(text: str, stage: str) -> float:
    name, colon, value = stage.partition(":")
    if name != PSEUDO_LABEL:
        raise ArgumentError(
            f"{text!r} is not a method: after + comes {PSEUDO_LABEL}, as in bce+{PSEUDO_LABEL}:0.6."
        )
    if not colon:
        return USUAL_THRESHOLD
    threshold = _number(value)
    if isinstance(threshold, str):
        raise ArgumentError(f"{text!r}: the threshold must be a number, but got {value!r}.")
    if not 0 < threshold < 1:
        raise ArgumentError(f"{text!r}: the threshold must be between 0 and 1, but is {value}.")
    return threshold


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
