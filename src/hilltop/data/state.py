"""State: what is known of an (image, class) pair."""

from __future__ import annotations

import enum

from hilltop.checks import did_you_mean
from hilltop.errors import ArgumentError


class State(enum.IntEnum):
    """What is known of a pair.

    For training, unknown is "assumed negative, may be corrected" and absent is "confirmed by a
    person, never corrected".
    """

    ABSENT = 0
    PRESENT = 1
    UNKNOWN = 2

    @classmethod
    def parse(cls, word: str) -> State:
        """Return the state that ``word`` names: ``present``, ``absent`` or ``unknown``."""
        try:
            return cls[word.upper()]
        except KeyError:
            names = [state.name.lower() for state in cls]
            raise ArgumentError(
                f"A state must be one of {', '.join(names)}, but got {word!r}."
                f"{did_you_mean(word, names)}"
            ) from None
