"""The people of a review: who is asked about what, who did what, and how far they agree."""

from __future__ import annotations

import importlib.util
import json
import secrets
import unicodedata
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.audit.decisions.answers import Answers, same_name
from hilltop.audit.decisions.gold import Gold, agreements
from hilltop.audit.decisions.incoming import check_reviewer
from hilltop.audit.decisions.store import Assign, DecisionStore, now
from hilltop.audit.find.candidate_index import CandidateIndex, Ints
from hilltop.audit.pairs import AuditPairs
from hilltop.checks import check_choice, check_number
from hilltop.data.data_errors import data_error
from hilltop.data.small_files import csv_text, parse_rows
from hilltop.errors import ArgumentError, DataError

PAUSE_S = 120.0
"""A longer time between two answers of a person is a pause, not work."""
ROUNDED = 0.005
"""Shares that miss 100% by less are meant to add up to it: three times 33.3% leave no image out."""
_MOST_PEOPLE = 200
_WORDS = ("present", "absent")


@dataclass(frozen=True)
class Part:
    """What one person is asked about.

    Attributes:
        classes: Whole classes.
        share: Part of the images in all classes that nobody has by name, from 0 to 1.
    """

    classes: tuple[str, ...] = ()
    share: float = 0.0


@dataclass(frozen=True)
class Assignment:
    """Who is asked about what; without any part everybody is asked about everything.

    Attributes:
        parts: The part of each person.
        overlap: Share of the images that everybody is asked about, so that agreement is known.
    """

    parts: Mapping[str, Part] = field(default_factory=dict)
    overlap: float = 0.0

    @classmethod
    def parse(cls, content: Any, classes: Sequence[str]) -> Assignment:
        """Check what a page or a file says.

        Raises:
            ArgumentError: A name, a class or a share cannot be one.
        """
        people = content.get("people") if isinstance(content, dict) else None
        if not isinstance(people, dict) or len(people) > _MOST_PEOPLE:
            raise ArgumentError(f"Expected 'people', an object of at most {_MOST_PEOPLE} names.")
        parts: dict[str, Part] = {}
        for name, one in people.items():
            chosen = one.get("classes", []) if isinstance(one, dict) else None
            if not isinstance(chosen, list) or not all(isinstance(word, str) for word in chosen):
                raise ArgumentError(f"The part of {name!r} needs 'classes', a list of names.")
            for word in chosen:
                check_choice("class", word, classes)
            share = check_number("share", one.get("share", 0), low=0, high=1)
            if not (chosen or share):
                continue
            who = check_reviewer(name)
            if same_name(who, parts) in parts:
                raise ArgumentError(f"{who!r} is named twice. Give each person one part.")
            parts[who] = Part(tuple(dict.fromkeys(chosen)), share)
        total = sum(one.share for one in parts.values())
        if abs(total - 1) < ROUNDED:
            parts = {name: replace(one, share=one.share / total) for name, one in parts.items()}
        return cls(parts, check_number("overlap", content.get("overlap", 0), low=0, high=1))

    @property
    def remark(self) -> str:
        """What is odd about the shares, as a sentence; empty if nothing is."""
        total = sum(part.share for part in self.parts.values())
        if not total or abs(total - 1) < ROUNDED:
            return ""
        means = "nobody of them is asked about the rest" if total < 1 else "some images are shared"
        return f"The shares add up to {total:.0%}: {means}."

    @classmethod
    def from_words(
        cls, words: Sequence[str], classes: Sequence[str], *, overlap: float = 0.0
    ) -> Assignment:
        """Read what ``--assign`` says: ``Ann=dog``, ``Ann=30%``, or ``Ann Ben`` for equal shares.

        Example:
            >>> Assignment.from_words(["Ann=dog", "Ben", "Cleo"], ["cat", "dog"]).parts["Ben"]
            Part(classes=(), share=0.5)
        """
        people: dict[str, dict[str, Any]] = {}
        equal = []
        for word in words:
            name, given, what = word.partition("=")
            name = same_name(check_reviewer(name), people)
            one = people.setdefault(name, {"classes": [], "share": 0})
            if not given:
                equal.append(name)
            elif what.endswith("%") and what not in classes:
                try:
                    one["share"] = float(what[:-1]) / 100
                except ValueError:
                    raise ArgumentError(f"--assign: {what!r} is no percentage.") from None
            else:
                one["classes"].append(what)
        rest = max(0.0, 1 - sum(one["share"] for one in people.values()))
        for name in equal:
            people[name]["share"] = rest / len(equal)
        return cls.parse({"people": people, "overlap": overlap}, classes)

    @classmethod
    def load(cls, text: str, classes: Sequence[str], *, names: Sequence[str] = ()) -> Assignment:
        """Read what the answers hold; classes that a later audit does not have are left out.

        Args:
            text: What :meth:`keep` stored.
            classes: Those of the audit.
            names: How people spell their names.
        """
        if not text:
            return cls()
        try:
            content = json.loads(text)
            people = content["people"]
            for one in people.values():
                one["classes"] = [name for name in one["classes"] if name in set(classes)]
            spelled = {same_name(name, names): one for name, one in people.items()}
            return cls.parse({**content, "people": spelled}, classes)
        except (ArgumentError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(
                "The answers hold an assignment that hilltop did not write. Assign the work again"
                f" with --assign. ({error})"
            ) from None

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, which :meth:`parse` takes."""
        people = {
            name: {"classes": list(part.classes), "share": round(part.share, 6)}
            for name, part in self.parts.items()
        }
        return {"people": people, "overlap": self.overlap, "remark": self.remark}

    def keep(self, store: DecisionStore, reviewer: str) -> None:
        """Store it behind the answers; on disk when this returns."""
        own = secrets.token_hex(16)
        text = json.dumps(self.as_dict(), ensure_ascii=False)
        store.add([Assign(own, own, reviewer, now(), text)])

    @cached_property
    def _by_name(self) -> frozenset[str]:
        return frozenset(name for part in self.parts.values() for name in part.classes)

    def has_class(self, reviewer: str, class_name: str) -> bool:
        """Whether a person is asked about any image of a class."""
        part = self.parts.get(reviewer)
        if part is None or class_name in part.classes or self.overlap:
            return True
        return bool(part.share) and class_name not in self._by_name

    def mine(
        self, reviewer: str, class_name: str | None, dealt: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.bool_]:
        """Which images of a class a person is asked about.

        Args:
            reviewer: Who.
            class_name: The class; None for images in which they are asked about any class.
            dealt: A number from 0 to 1 for each image, see :func:`deal`.
        """
        part = self.parts.get(reviewer)
        if part is None or class_name in part.classes or (class_name is None and part.classes):
            return np.ones(len(dealt), dtype=bool)
        # The same digits further behind: independent of whose share an image is in.
        chosen: npt.NDArray[np.bool_] = (dealt * 65536) % 1 < self.overlap
        if class_name not in self._by_name:
            low = 0.0
            for name, one in self.parts.items():
                if name == reviewer:
                    break
                low += one.share
            chosen |= (dealt - low) % 1 < part.share
        return chosen


def deal(images: Sequence[str]) -> npt.NDArray[np.float64]:
    """A number from 0 to 1 for each image that depends on its name alone."""
    return np.array([zlib.crc32(name.encode()) for name in images]) / 2**32


@dataclass(frozen=True)
class Agreed:
    """How far people agree on the pairs that several of them answered.

    Attributes:
        people: Two names, or none for all together.
        pairs: Number of pairs.
        same: Pairs to which all gave one answer.
        kappa: Cohen's kappa of two people, Fleiss' of all together.
        alpha: Krippendorff's alpha for nominal data. Kappa and alpha are None where all answers
            are the same word.
    """

    people: tuple[str, ...]
    pairs: int
    same: int
    kappa: float | None
    alpha: float | None


def cohen_kappa(said: Sequence[Sequence[str]]) -> float | None:
    """Cohen's kappa of two people from what both said to each pair; None if undefined.

    Example:
        >>> cohen_kappa([("present", "present"), ("present", "absent"), ("absent", "absent")])
        0.4
    """
    yes = np.array([[word == "present" for word in one] for one in said])
    first, second = yes.mean(axis=0)
    chance = first * second + (1 - first) * (1 - second)
    return None if chance == 1 else _beyond((yes[:, 0] == yes[:, 1]).mean(), chance)


def fleiss_kappa(counts: npt.ArrayLike) -> float | None:
    """Fleiss' kappa from how many people said each word of each pair; None if undefined.

    Pairs may have been answered by different numbers of people, at least two; they count equally.
    """
    found = np.asarray(counts, dtype=np.float64)
    people = found.sum(axis=1)
    same = ((found**2).sum(axis=1) - people) / (people * (people - 1))
    chance = float(((found.sum(axis=0) / people.sum()) ** 2).sum())
    return None if chance == 1 else _beyond(same.mean(), chance)


def _beyond(same: float, chance: float) -> float:
    return round(float((same - chance) / (1 - chance)), 12)


def alpha_of(counts: Sequence[tuple[int, int]]) -> float | None:
    """Krippendorff's alpha from the number of yes and of no to each pair; None if undefined.

    Example:
        >>> alpha_of([(2, 0), (1, 1), (0, 2)])  # 1 - observed 1/3 over expected 3/5
        0.4444444444444444
    """
    import krippendorff

    used = np.array([one for one in counts if sum(one) > 1])
    if not len(used) or not used.sum(axis=0).all():
        return None
    return float(krippendorff.alpha(value_counts=used, level_of_measurement="nominal"))


def agreement(answers: Answers, gold: Gold) -> list[Agreed]:
    """Agreement of all people together, and of each two of them that share a pair.

    Rulings do not count, because adjudicators see what others said; nor do gold questions. "Unsure"
    is a missing answer.
    """
    shared: list[dict[str, str]] = []
    for image, name, _ in answers.all():
        words: dict[str, str] = {
            who: vote.answer
            for who, vote in answers.votes(name, image, rulings=False).items()
            if vote.answer in _WORDS
        }
        if len(words) > 1 and (name, image) not in gold:
            shared.append(words)
    between: dict[tuple[str, ...], list[list[str]]] = defaultdict(list)
    for words in shared:
        for two in ((), *combinations(sorted(words), 2)):
            between[two].append([words[name] for name in two or words])
    found = []
    for two, said in sorted(between.items()):
        counts = [(one.count("present"), one.count("absent")) for one in said]
        kappa = cohen_kappa(said) if two else fleiss_kappa(counts)
        same = sum(0 in one for one in counts)
        found.append(Agreed(two, len(said), same, kappa, alpha_of(counts)))
    return found


def work(answers: Answers, gold: Gold, names: Iterable[str] = ()) -> list[dict[str, Any]]:
    """What each person did and how fast, and how often gold questions were answered right.

    Args:
        answers: All answers.
        gold: The gold questions among them.
        names: People who are listed even if they answered nothing; behind all others.
    """
    times: dict[str, list[str]] = defaultdict(list)
    words: dict[str, Counter[str]] = defaultdict(Counter)
    classes: dict[str, set[str]] = defaultdict(set)
    for _, name, votes in answers.all():
        for who, vote in votes.items():
            times[who].append(vote.time)
            words[who][vote.answer] += 1
            classes[who].add(name)
    known = agreements(answers, gold)
    found = []
    for who in [*sorted(times), *sorted({*names} - times.keys())]:
        when = sorted(datetime.fromisoformat(time) for time in times[who])
        gaps = [(b - a).total_seconds() for a, b in pairwise(when)]
        worked = [gap for gap in gaps if gap <= PAUSE_S]
        seconds = sum(worked)
        found.append(
            {
                "name": who,
                "answers": len(when),
                "words": dict(words[who]),
                "classes": len(classes[who]),
                "minutes": round(seconds / 60, 1),
                "per_minute": round(60 * len(worked) / seconds, 1) if seconds else None,
                "gold": known.get(who),
            }
        )
    return found


def tell_people(answers: Answers, gold: Gold) -> None:
    """Print the table of people and how far they agree, if anybody answered."""
    from hilltop.report.tables import Sheet

    people = work(answers, gold)
    if not people:
        return
    rows = []
    for one in people:
        said = " / ".join(f"{one['words'].get(word, 0):,}" for word in (*_WORDS, "unsure"))
        right = ""
        if one["gold"] is not None:
            right = "{} of {} right ({:.0%} to {:.0%})".format(*one["gold"])
        speed = "" if one["per_minute"] is None else str(one["per_minute"])
        cells = (f"{one['answers']:,}", said, str(one["minutes"]), speed, right)
        rows.append((one["name"], *cells))
    head = ("who", "answers", "yes / no / unsure", "minutes", "per minute", "gold questions")
    Sheet("", head, tuple(rows)).print()
    if importlib.util.find_spec("krippendorff") is None:  # answers can be taken in without it
        return
    for agreed in agreement(answers, gold):
        kappa, alpha = (
            "undefined" if one is None else f"{one:.2f}" for one in (agreed.kappa, agreed.alpha)
        )
        who, whose = (
            (" and ".join(agreed.people), "Cohen") if agreed.people else ("all together", "Fleiss")
        )
        print(
            f"{who}: same answer to {agreed.same:,} of {agreed.pairs:,} shared pairs,"
            f" {whose}'{'s' * (whose == 'Cohen')} kappa {kappa}, Krippendorff's alpha {alpha}"
        )


class Metadata:
    """Further columns about images, to search by."""

    def __init__(self, images: pa.Array, columns: Mapping[str, Sequence[str]]) -> None:
        """Hold one value for each image; the file name is the column ``image``."""
        self.names = list(columns)
        self._images, self._columns = images, columns

    def of(self, row: int) -> dict[str, str]:
        """What is known about one image."""
        return {name: cells[row] for name, cells in self._columns.items() if cells[row]}

    def rows(self, text: str, column: str) -> Ints:
        """Numbers of the images whose file name, or another column, contains a text."""
        check_choice("column", column, ["image", *self.names])
        cells = self._images if column == "image" else pa.array(self._columns[column])
        # A letter with an accent may be one sign or two, in file names of macOS for example.
        wanted = unicodedata.normalize("NFC", text)
        found = pc.match_substring(pc.utf8_normalize(cells, "NFC"), wanted, ignore_case=True)
        return np.flatnonzero(found.to_numpy(zero_copy_only=False))


def read_metadata(path: Path | None, pairs: AuditPairs) -> Metadata:
    """Read a CSV file with a column ``image``; images that it does not name have empty cells."""
    images = pairs.labels.images
    if path is None:
        return Metadata(images, {})
    lines = parse_rows(path, csv_text(path), ("image",))
    rows = pairs.rows_of(cells["image"] for _, cells in lines)
    said: dict[int, dict[str, str]] = {}
    for (line, cells), row in zip(lines, rows, strict=True):
        if row >= 0 and said.setdefault(row, cells) != cells:
            problem = f"image {cells['image']!r} has other cells in an earlier line."
            raise data_error(path, problem, line=line)
    if not said:
        raise data_error(path, "no row names an image of this audit in its column 'image'.")
    names = [name for name in lines[0][1] if name != "image"]
    every = [said.get(row, {}) for row in range(len(images))]
    return Metadata(images, {name: [one.get(name, "") for one in every] for name in names})


def neighbours(
    directions: npt.NDArray[np.float32] | None, index: CandidateIndex, column: int, row: int
) -> Ints:
    """Places of the candidates of a class, those that look most like one image first.

    Raises:
        ArgumentError: The audit has no features to compare by.
    """
    if directions is None:
        raise ArgumentError("This audit has no features, so pictures cannot be compared.")
    some = directions[index.class_rows(column)].astype(np.float32)
    length = np.linalg.norm(some, axis=1)
    cosine = some @ directions[row].astype(np.float32) / np.where(length > 0, length, 1)
    return np.argsort(-cosine, kind="stable")
