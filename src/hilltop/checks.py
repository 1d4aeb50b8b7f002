"""Argument and tensor checks: the one place that words errors about values and shapes."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable, Sequence
from fractions import Fraction

from hilltop.errors import ArgumentError, ArgumentTypeError

_MOST_CHOICES = 30
"""As many are listed in an error; a data set may have thousands of classes."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean 'hill'?"`` for the nearest known word, or an empty string."""
    # Dashes make all options look alike.
    plain = {one.lstrip("-").lower(): one for one in known}
    near = difflib.get_close_matches(word.lstrip("-").lower(), list(plain), n=1, cutoff=0.6)
    return f" Did you mean {plain[near[0]]!r}?" if near else ""


def check_choice(name: str, value: str, choices: Sequence[str]) -> str:
    """Return ``value`` if it is one of ``choices``."""
    if value not in choices:
        hint = did_you_mean(str(value), choices)
        known = ", ".join(repr(choice) for choice in choices[:_MOST_CHOICES])
        if len(choices) > _MOST_CHOICES:
            known += f" and {len(choices) - _MOST_CHOICES:,} more"
        raise ArgumentError(f"{name} must be one of {known}, but got {value!r}.{hint}")
    return value


def check_number(
    name: str,
    value: float,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    low_open: bool = False,
) -> float:
    """Return ``value`` as a float if it lies between ``low`` and ``high``, both included.

    With ``low_open`` the lower bound itself is excluded. NaN never passes.
    """
    if not isinstance(value, numbers.Real):
        raise ArgumentTypeError(f"{name} must be a number, but got {value!r}.")
    try:
        number = float(value)
    except OverflowError:  # a whole number with hundreds of digits
        number = math.inf if value > 0 else -math.inf
    above = number > low if low_open else number >= low
    if not (above and number <= high and math.isfinite(number)):
        bounds = []
        if low > -math.inf:
            bounds.append(f"greater than {low:g}" if low_open else f"at least {low:g}")
        if high < math.inf:
            bounds.append(f"at most {high:g}")
        wanted = " and ".join(bounds) or "a finite number"
        raise ArgumentError(f"{name} must be {wanted}, but got {value!r}.")
    return number


def check_whole(name: str, value: int, *, low: float = -math.inf) -> int:
    """Return ``value`` as an int if it is a whole number of at least ``low``."""
    number = check_number(name, value, low=low)
    if number != int(number):
        raise ArgumentError(f"{name} must be a whole number, but got {value!r}.")
    return int(value)


def check_exact(
    name: str, value: float | str | Fraction, *, low: float = -math.inf, high: float = math.inf
) -> Fraction:
    """Return the number as it is written in decimals: 0.8 is 4/5, not its binary neighbour."""
    try:
        exact = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise ArgumentError(
            f"{name} must be a number between {low:g} and {high:g}, but got {value!r}."
        ) from None
    check_number(name, float(exact), low=low, high=high)
    return exact


def check_kind(name: str, part: object, kind: type, *, none: bool = False) -> None:
    """Raise unless ``part`` is of the class ``kind``, or None where that is allowed."""
    if not isinstance(part, kind) and not (none and part is None):
        raise ArgumentTypeError(f"{name} must be a {kind.__name__}, but got {type(part).__name__}.")


def check_same_shape(name: str, shape: Sequence[int], like: str, like_shape: Sequence[int]) -> None:
    """Raise unless ``shape`` equals ``like_shape``."""
    if tuple(shape) != tuple(like_shape):
        raise ArgumentError(
            f"{name} must have the shape of {like} {tuple(like_shape)}, but got {tuple(shape)}."
        )


def invalid_targets_message(example: float, *, soft: bool = True) -> str:
    """Say what targets may be, for a value that they may not have, or not if labels are counted."""
    if not soft and 0 < example < 1:
        return (
            "targets must be 0, 1 or NaN for a loss that counts the labels of an image, but got"
            f" {example!r}. Use another loss, such as scar_likelihood, for soft targets."
        )
    message = f"targets must lie between 0 and 1, or be NaN for unknown, but got {example!r}."
    if example == -1:
        message += (
            " If -1 means 'a person said it is absent', use 0 and pass verified=;"
            " if it means 'unknown', use NaN to leave the pair out"
            " or 0 to assume it absent."
        )
    return message


def listed(names: Iterable[str]) -> str:
    """Write names as a sentence does.

    Example:
        >>> listed(["VOC", "COCO", "NUS-WIDE"])
        'VOC, COCO and NUS-WIDE'
    """
    *most, last = [*names] or [""]
    return f"{', '.join(most)} and {last}" if most else last


def pluralize(count: int, one: str, many: str | None = None) -> str:
    """Return a count with the words that go with it; without ``many`` an s is put behind ``one``.

    Example:
        >>> pluralize(1, "answer is", "answers are"), pluralize(1200, "answer")
        ('1 answer is', '1,200 answers')
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
