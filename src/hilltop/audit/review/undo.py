"""Answers as the page shows them: those of other reviewers, and actions that can be undone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hilltop.audit.decisions.answers import Votes
from hilltop.audit.decisions.store import Answer

_PAUSE = timedelta(minutes=30)
"""After a longer pause a reviewer does not remember what an undo would take back."""


def others(votes: Votes, reviewer: str) -> list[dict[str, str]]:
    """The answers of other reviewers to a pair."""
    return [
        {"reviewer": name, "answer": vote.answer}
        for name, vote in sorted(votes.items())
        if name != reviewer
    ]


def this_session(actions: list[list[Answer]]) -> list[list[Answer]]:
    """The last actions without a long pause between them, or since."""
    after = datetime.now(UTC)
    for place in range(len(actions) - 1, -1, -1):
        time = datetime.fromisoformat(actions[place][0].time)
        if after - time > _PAUSE:
            return actions[place + 1 :]
        after = time
    return actions


def undoable(answers: list[Answer]) -> dict[str, Any]:
    """An action as the page keeps it, to undo it by."""
    return {
        "action": answers[0].action,
        "class": answers[0].class_name,
        "images": [answer.image for answer in answers],
    }
