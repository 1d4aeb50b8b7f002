"""What the reviewers' answers add up to: the present state of every pair, folded from the events.

The last answer of a reviewer to a pair holds, by the time at which it was given: a file that is
taken in later does not change what somebody has said since.

The rule that resolves several reviewers: an adjudicator's ruling decides. Without one "unsure"
abstains, the larger number of "present" or "absent" wins, and a tie is disputed: the label stays as
it was until someone changes their answer.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilltop.audit.decisions.store import Answer, Assign, Comment, DecisionStore, Event, Undo
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.pairs import AuditPairs
from hilltop.data.review_record import Mode, Outcome

Pair = tuple[str, str]
"""A class and an image."""
Votes = dict[str, Answer]
"""The answer of each reviewer to one pair."""


def resolve(votes: Iterable[Answer]) -> Outcome:
    """Return what the answers to one pair amount to.

    Example:
        >>> def said(reviewer, answer):
        ...     return Answer("", "", reviewer, "", "a.jpg", "dog", answer, "ranked", 0.5)
        >>> resolve([said("Ann", "present"), said("Ben", "unsure")])
        'present'
        >>> resolve([said("Ann", "present"), said("Ben", "absent")])
        'disputed'
    """
    votes = list(votes)
    rulings = [vote for vote in votes if vote.mode == "ruling"]
    words = [vote.answer for vote in ([max(rulings, key=_time)] if rulings else votes)]
    present, absent = words.count("present"), words.count("absent")
    if present == absent:
        return "disputed" if present else "unsure"
    return "present" if present > absent else "absent"


def differ(votes: Iterable[Answer]) -> bool:
    """Whether one reviewer says present and another one absent, and nobody has ruled on it."""
    votes = list(votes)
    words = {vote.answer for vote in votes}
    return {"present", "absent"} <= words and all(vote.mode != "ruling" for vote in votes)


def _time(event: Event) -> str:
    return event.time


def same_name(name: str, known: Iterable[str]) -> str:
    """Return the known name that is the same but for capitals; else the name itself.

    Example:
        >>> same_name("ann", ["Ann", "Ben"]), same_name("ann", ["Ann", "ann"])
        ('Ann', 'ann')
    """
    known = list(known)
    fitting = (one for one in known if one.casefold() == name.casefold())
    return name if name in known else next(fitting, name)


@dataclass(frozen=True)
class Sample:
    """The answered part of a class's random sample, each pair resolved over its reviewers.

    Attributes:
        present: Pairs whose label is missing.
        absent: Pairs without the class.
        open: Pairs that nobody could tell, or that reviewers disagree on.
    """

    present: int
    absent: int
    open: int


class Answers:
    """Folds events into the answers that hold now; undone ones are gone, earlier ones return."""

    def __init__(self) -> None:
        """Start without any answers."""
        self._pairs: dict[str, dict[str, dict[str, list[Answer]]]] = {}
        self._actions: dict[str, list[Answer]] = {}
        self._comments: dict[Pair, dict[str, Comment]] = {}
        self.assigned = ""
        """Who is asked about what, as JSON; empty before anybody said so."""
        self.names: dict[str, None] = {}
        """Everybody who answered."""
        self._seen = 0

    @classmethod
    def of(cls, store: DecisionStore) -> Answers:
        """Return all answers of a file."""
        answers = cls()
        answers.catch_up(store)
        return answers

    def catch_up(self, store: DecisionStore) -> set[Pair]:
        """Take in what is new in the file, and return the pairs it is about."""
        touched: set[Pair] = set()
        for number, event in store.read(after=self._seen):
            touched |= self.take(event)
            self._seen = number
        return touched

    def take(self, event: Event) -> set[Pair]:
        """Take in one event, and return the pairs it is about."""
        if isinstance(event, Undo):
            return self._undo(event)
        if isinstance(event, Assign):
            self.assigned = event.text
            return set()
        if isinstance(event, Comment):
            pair = (event.class_name, event.image)
            comments = self._comments.setdefault(pair, {})
            before = comments.get(event.reviewer)
            if before is None or before.time <= event.time:
                comments[event.reviewer] = event
            return {pair}
        assert isinstance(event, Answer)
        self.names[event.reviewer] = None
        images = self._pairs.setdefault(event.class_name, {})
        insort(images.setdefault(event.image, {}).setdefault(event.reviewer, []), event, key=_time)
        self._actions.setdefault(event.action, []).append(event)
        return {(event.class_name, event.image)}

    def _undo(self, event: Undo) -> set[Pair]:
        undone = self._actions.pop(event.action, [])
        for answer in undone:
            images = self._pairs[answer.class_name]
            by_reviewer = images[answer.image]
            by_reviewer[answer.reviewer].remove(answer)
            if not by_reviewer[answer.reviewer]:
                del by_reviewer[answer.reviewer]
            if not by_reviewer:
                del images[answer.image]
        return {(answer.class_name, answer.image) for answer in undone}

    def pairs(self, class_name: str, *, mode: Mode | None = None) -> Iterator[tuple[str, Votes]]:
        """Yield each answered image of a class with its votes; of one mode, or of both."""
        for image in self._pairs.get(class_name, {}):
            votes = self.votes(class_name, image, mode=mode)
            if votes:
                yield image, votes

    def votes(
        self, class_name: str, image: str, *, mode: Mode | None = None, rulings: bool = True
    ) -> Votes:
        """Return the last answer of each reviewer to one pair.

        Args:
            class_name: The class.
            image: The image.
            mode: Answers of this mode alone; of all modes without it.
            rulings: Whether rulings count; without them, who ruled keeps the answer of before.
        """
        given = self._pairs.get(class_name, {}).get(image, {})
        if mode is None and rulings:
            return {reviewer: answers[-1] for reviewer, answers in given.items()}
        votes: Votes = {}
        for reviewer, answers in given.items():
            for answer in answers:
                if answer.mode == mode or (mode is None and answer.mode != "ruling"):
                    votes[reviewer] = answer
        return votes

    def comments(self, class_name: str, image: str) -> dict[str, str]:
        """Return what each reviewer wrote about a pair."""
        written = self._comments.get((class_name, image), {}).values()
        return {one.reviewer: one.text for one in written if one.text}

    def holds(self, event: Event) -> bool:
        """Whether somebody's answer or comment is known already, by another id."""
        if isinstance(event, Comment):
            return self.comments(event.class_name, event.image).get(event.reviewer) == event.text
        assert isinstance(event, Answer)
        before = self._pairs.get(event.class_name, {}).get(event.image, {})
        same = (event.time, event.answer, event.mode)
        return same in ((one.time, one.answer, one.mode) for one in before.get(event.reviewer, ()))

    def commented(self) -> Iterator[Comment]:
        """Yield every comment that holds."""
        for comments in self._comments.values():
            yield from (one for one in comments.values() if one.text)

    def leave_out(self, pairs: Iterable[Pair]) -> None:
        """Forget what was said of some pairs."""
        for name, image in pairs:
            self._pairs.get(name, {}).pop(image, None)

    def classes(self) -> list[str]:
        """Names of the classes with answers."""
        return [name for name, images in self._pairs.items() if images]

    def all(self) -> Iterator[tuple[str, str, Votes]]:
        """Yield image, class and votes of every answered pair."""
        for class_name in self.classes():
            for image, votes in self.pairs(class_name):
                yield image, class_name, votes

    def unanswered(self, pairs: AuditPairs, index: CandidateIndex) -> npt.NDArray[np.bool_]:
        """Which pairs of an index nobody has answered."""
        still = np.ones(len(index), dtype=bool)
        pairs.rows_of(image for image, _, _ in self.all())  # all at once, which is faster
        for column, name in enumerate(pairs.labels.classes):
            answered = pairs.rows_of(image for image, _ in self.pairs(name))
            if answered:
                mine = slice(index.starts[column], index.starts[column + 1])
                still[mine] = ~np.isin(index.rows[mine], answered)
        return still

    def action(self, action: str) -> list[Answer]:
        """Return the answers of an action that was not undone."""
        return list(self._actions.get(action, ()))

    def last_actions(self, reviewer: str, most: int) -> list[list[Answer]]:
        """Return the last actions of a reviewer that can be undone, the latest one last."""
        found: list[list[Answer]] = []
        for answers in reversed(self._actions.values()):
            if answers[0].reviewer == reviewer:
                found.append(answers)
            if len(found) == most:
                break
        return found[::-1]

    def sample(self, class_name: str) -> Sample:
        """Count the answered part of a class's random sample: what the unbiased estimate needs.

        A pair counts if somebody answered it in the random mode; what it counts as takes all
        answers into account.
        """
        drawn = self.pairs(class_name, mode="random")
        counts = Counter(resolve(self.votes(class_name, image).values()) for image, _ in drawn)
        known = counts["present"] + counts["absent"]
        return Sample(counts["present"], counts["absent"], counts.total() - known)
