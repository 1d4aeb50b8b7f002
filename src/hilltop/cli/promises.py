"""Promises of ``predict --promise`` and the questions of ``queue --for promise``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from hilltop import missing
from hilltop.checks import check_number, pluralize
from hilltop.cli.evaluate import read_answers, write_plan
from hilltop.data import LabelTable, State, read_labels
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.data.scores import ScoreTable, read_scores
from hilltop.data.small_files import read_json
from hilltop.errors import ArgumentError, HilltopError

if TYPE_CHECKING:
    from hilltop.missing import Promise, PromiseTest, SampledAnswers
    from hilltop.missing.promise import Metric, Over, Per

Flags = npt.NDArray[np.bool_]
_ENOUGH_TAGS = 1.5


@dataclass(frozen=True, eq=False)
class Scored:
    """Images that a promise is about.

    Attributes:
        scores: Tags are scores above a threshold.
        labelled: Entries that are labelled.
        absent: Entries that are verified to be absent.
        probs: Probability that each open entry is present; None where scores and labels tell.
        learned: Images that the scores' model learned from, so that it says nothing of others.
        broken: Images that could not be read.
    """

    scores: ScoreTable
    labelled: Flags
    absent: Flags
    probs: npt.NDArray[Any] | None = None
    learned: int = 0
    broken: tuple[str, ...] = ()

    @classmethod
    def of_file(cls, path: Path, labels: Path | None) -> Scored:
        """Scores of any model, and labels, if there are any; of images that have both."""
        scores = read_scores(path)
        nothing = np.zeros(scores.values.shape, dtype=bool)
        if labels is None:
            return cls(scores, nothing, nothing)
        table = _read(labels)
        rows, columns = scores.positions(table.images, table.classes)
        found = ScoreTable(table.images, table.classes, scores.values[rows][:, columns])
        states = table.dense()
        return cls(found, states == State.PRESENT, states == State.ABSENT)

    @classmethod
    def of_audit(cls, path: Path) -> Scored:
        """The images of an audit, by its probabilities; labels stand above them."""
        from hilltop.audit.find.candidate_index import CandidateIndex
        from hilltop.audit.folder import AuditFolder

        folder = AuditFolder.read(path)
        table = folder.table()
        states = table.dense()
        labelled, absent = states == State.PRESENT, states == State.ABSENT
        index = CandidateIndex.read(folder, table)
        values = np.where(labelled, 1.0, -1.0)
        values[index.rows, np.repeat(np.arange(len(table.classes)), np.diff(index.starts))] = (
            index.probabilities
        )
        if ((values < 0) & ~absent).any():
            raise ArgumentError(
                f"{path}: this audit does not list all pairs that could lack a label. Run `hilltop"
                " audit` without --top."
            )
        values = np.where(absent, 0.0, values).astype(np.float32)
        probs = missing.shrunk(values.astype(np.float64), float(labelled.mean()))
        scores = ScoreTable(table.images, table.classes, values)
        return cls(scores, labelled, absent, probs, learned=len(table))

    def with_labels(self, path: Path, names: Any) -> Scored:
        """The same with what a label file says of images whose names here are given."""
        table = _read(path)
        images = names if names is not None and len(names) == len(table) else table.images
        rows = pc.index_in(self.scores.images, value_set=images).fill_null(-1).to_numpy()
        there = np.flatnonzero(rows >= 0)
        classes = self.scores.classes
        shared = [name for name in table.classes if name in classes]
        here = np.array([classes.index(name) for name in shared], dtype=np.int64)
        states = table.select(rows[there]).dense()[:, [table.classes.index(one) for one in shared]]
        labelled, absent = self.labelled.copy(), self.absent.copy()
        labelled[there[:, None], here] |= states == State.PRESENT
        absent[there[:, None], here] |= states == State.ABSENT
        return Scored(
            self.scores, labelled, absent & ~labelled, self.probs, self.learned, self.broken
        )

    def table(self) -> LabelTable:
        """Names of images and classes, as answers are read by."""
        empty: list[list[str]] = [[] for _ in range(len(self.scores.images))]
        return LabelTable.from_lists(
            self.scores.images.to_pylist(), empty, self.scores.classes, unlisted="unknown"
        )


def _read(path: Path) -> LabelTable:
    return read_labels(path, unlisted="unknown", minus_one="unknown")


def is_audit(path: Path) -> bool:
    """Whether a folder is that of an audit."""
    return (path / "audit.json").is_file()


@dataclass(frozen=True)
class Asked:
    """A promise as the command line asks for it."""

    metric: Metric
    wanted: float
    confidence: float
    over: Over
    per: Per
    seed: int

    @classmethod
    def parse(
        cls, text: str, *, confidence: float, over: Over | None, per: Per, seed: int, audit: bool
    ) -> Asked:
        """Read ``recall=0.9``, ``precision=0.7`` or ``false-discovery=0.3``."""
        name, _, number = text.partition("=")
        name = name.strip().lower().replace("_", "-")
        try:
            wanted = float(number)
        except ValueError:
            wanted = -1.0
        if name not in ("recall", "precision", "false-discovery") or not 0 < wanted < 1:
            raise ArgumentError(
                "--promise must be recall=R, precision=P or false-discovery=F with a number between"
                f" 0 and 1, such as recall=0.9, but got {text!r}."
            )
        check_number("--confidence", confidence, low=0.5, high=0.9999)
        if audit and over == "new":
            raise ArgumentError(
                "The scores of an audit are those of heads that were made for its images: they"
                " promise nothing of other images. Leave out --over new."
            )
        where: Over = over or ("these" if audit else "new")
        if name == "recall":
            return cls("recall", wanted, confidence, where, per, seed)
        least = wanted if name == "precision" else round(1 - wanted, 12)
        return cls("precision", least, confidence, where, per, seed)

    def test(self, scored: Scored) -> PromiseTest:
        """Return the images in the order in which to ask about them."""
        if self.over == "new" and scored.learned:
            raise ArgumentError(
                f"The run learned from {scored.learned:,} of these {len(scored.scores.images):,}"
                " images, and its scores of them say nothing of new images. Leave them out, or"
                " promise it of these images alone, with --over these."
            )
        return missing.PromiseTest(
            scored.scores.values,
            scored.labelled.astype(np.float32),
            verified=scored.absent,
            probs=scored.probs,
            plan_for=(self.metric, self.wanted),
            over=self.over,
            seed=self.seed,
        )

    @property
    def words(self) -> str:
        """The option that asks for it."""
        return f"--promise {self.metric}={self.wanted:g}"

    def keep(self, scored: Scored, answers: tuple[Path, ...], source: Path) -> Kept:
        """Make the promise, and say what it rests on and what more answers would bring.

        Raises:
            HilltopError: Nothing can be promised.
        """
        test = self.test(scored)
        table = scored.table()
        given = read_answers(answers, table)
        case = test.case(self.metric, self.wanted, given, self.confidence, per=self.per)
        (found,) = missing.conclude([case])
        print(found.describe())
        for note in found.notes:
            print(note)
        expected, now = test.at_present(case)
        tags = int((scored.scores.values > expected).sum())
        outlook = test.outlook(case) if self.per == "pair" else {}
        said = pluralize(tags, "tag")
        if not found.answers:
            print(
                f"The model expects a {self.metric} of {self.wanted:g} from scores above"
                f" {expected:.4g}, which make {said}; whether that is true, only answers tell."
            )
        elif found.threshold is None or expected > found.threshold:
            print(
                f"At {expected:.4g}, where the model expects a {self.metric} of {self.wanted:g}"
                f" ({said}), the answers allow to promise {now:.3g} now."
            )
        print(*self._describe_outlook(outlook, tags, found), sep="\n")
        ask = f"hilltop queue {source} --for promise {self.words} --number 500 --out ask.csv" + (
            f" --answers {' '.join(map(str, answers))}" if found.answers else ""
        )
        if found.threshold is None:
            why = "" if found.answers else " without answers"
            raise HilltopError(
                f"No promise is possible{why}, and no tags were written. Ask a person: `{ask}`,"
                " with the options that tell which images, writes what to ask."
            )
        if found.threshold <= missing.EVERYTHING:
            print(f"To ask more: {ask}")
        return Kept(found, self._by_class(test, table, given), outlook)

    def _describe_outlook(
        self, outlook: dict[int, float | None], tags: int, found: Promise
    ) -> list[str]:
        """How many more answers it takes, if the model is right."""
        said = [
            f"{number:,} answers: {'no promise' if count is None else f'{count:,.0f} tags'}"
            for number, count in outlook.items()
        ]
        if not said:
            return []
        good = [
            number
            for number, count in outlook.items()
            if count and (self.metric == "precision" or count <= _ENOUGH_TAGS * max(tags, 1))
        ]
        what = "this promise" if self.metric == "precision" else "it with few tags"
        if found.threshold is not None and found.tags <= _ENOUGH_TAGS * max(tags, 1):
            need = "No more answers are needed; more of them save tags"
        elif good:
            need = f"About {good[0] - found.answers:,} more answers would allow {what}"
        else:
            need = f"More than {max(outlook):,} answers would be needed for {what}"
        return [f"{need}, if the model is right: {'; '.join(said)}."]

    def _by_class(
        self, test: PromiseTest, table: LabelTable, answers: SampledAnswers
    ) -> dict[str, float | None]:
        """Thresholds of classes with enough answers, each with that confidence by itself."""
        if self.per == "image":
            return {}
        kept = test.by_class(self.metric, self.wanted, answers, confidence=self.confidence)
        found = {table.classes[column]: one.threshold for column, one in kept.items()}
        if found:
            print("The same for single classes, each with that confidence by itself:")
        for name, threshold in found.items():
            said = "nothing can be promised" if threshold is None else f"> {threshold:.4g}"
            print(f"  {name}  {said}")
        return found

    def plan(
        self, scored: Scored, number: int, answers: tuple[Path, ...], out: Path, source: Path
    ) -> dict[str, Any]:
        """Write what to ask next."""
        test, table = self.test(scored), scored.table()
        pairs = test.plan(number, answers=read_answers(answers, table), per=self.per)
        found = write_plan(pairs, table, out)
        given = " ".join(map(str, (*answers, out)))
        print(f"next: hilltop predict {source} {self.words} --answers {given} --out tags.csv")
        return found


@dataclass(frozen=True)
class Kept:
    """A promise with the thresholds of classes, and what more answers would bring."""

    promise: Promise
    by_class: dict[str, float | None]
    outlook: dict[int, float | None]

    def as_dict(self, classes: tuple[str, ...]) -> dict[str, Any]:
        """Everything by name."""
        more = {"class_names": classes, "by_class": self.by_class, "outlook": self.outlook}
        return self.promise.as_dict() | more

    def write(self, path: Path, classes: tuple[str, ...]) -> None:
        """Keep the promise for other images."""
        atomic_write(path, json.dumps(self.as_dict(classes), indent=1) + "\n")


def promise_file(out: Path) -> Path:
    """Where the promise of written tags is kept."""
    return out.with_name(f"{out.name}.promise.json")


def read_promise(path: Path, scores: ScoreTable) -> Promise:
    """Read a promise that was made of other images, for scores of the same model."""
    if not path.is_file():
        raise data_error(path, "there is no such file; --promise is recall=0.9, or such a file.")
    content = read_json(path, "Make it again with `hilltop predict --promise recall=0.9`.")
    try:
        classes = tuple(content.pop("class_names"))
        for further in ("by_class", "outlook"):
            content.pop(further)
        promise = missing.Promise.from_dict(content)
    except (AttributeError, KeyError, TypeError):
        raise data_error(
            path, "this is not a promise, such as predict --promise recall=0.9 keeps with its tags."
        ) from None
    if promise.threshold is None:
        raise ArgumentError(f"{path}: nothing could be promised. {promise.describe()}")
    if promise.over == "these":
        raise ArgumentError(
            f"{path}: this promise is about the images that were asked about alone. Make one with"
            " --over new."
        )
    if classes != scores.classes:
        raise ArgumentError(f"{path}: this promise is about other classes than these scores.")
    return promise
