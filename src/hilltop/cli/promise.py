"""``promise``: thresholds with a guaranteed recall or precision, from incomplete labels."""

from __future__ import annotations

import json
import sys
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from hilltop import missing
from hilltop.checks import pluralize
from hilltop.cli.evaluate import read_answers
from hilltop.cli.labels import ReadFormat
from hilltop.cli.outputs import check_written
from hilltop.cli.parser import Force, MaybeOut, Reading
from hilltop.data import LabelTable, ReadOptions, State, read_labels
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.data.scores import read_scores
from hilltop.data.small_files import format_rows, read_json
from hilltop.errors import ArgumentError

if TYPE_CHECKING:
    from hilltop.missing import Promise, PromiseTest, SampledAnswers


@dataclass(frozen=True)
class PromiseCommand:
    """Find the threshold whose recall or precision is guaranteed, although labels are missing.

    First --plan writes pairs to ask a person about, in a random order. With their answers the
    promise holds at the stated confidence, however wrong scores and model are.

    Example: hilltop promise scores.npy labels.csv --recall 0.9 --answers answers.csv
    """

    scores: Path
    """Probabilities by a model that did not learn from these images, as for evaluate."""
    labels: Path
    """Their labels, which may be incomplete."""
    _: KW_ONLY
    recall: float | None = None
    """Share of the true labels that are to become tags, at least."""
    precision: float | None = None
    """Share of the tags that are to be true, at least."""
    false_discovery: float | None = None
    """Share of the tags that may be false, at most: 1 less the precision."""
    confidence: float = 0.9
    """Probability that the promise holds."""
    over: Literal["new", "these"] = "new"
    """Promise it of new images like these (adds a margin for the choice of images), or of these
    images alone (exact)."""
    answers: tuple[Path, ...] = ()
    """Plans with a column answer (yes, no, unsure), in the order in which they were written; or
    the folder of an audit whose review was given them."""
    plan: int | None = None
    """Write so many pairs to ask about next to --out; with --answers, those after them."""
    out: MaybeOut = None
    """The CSV file for --plan; otherwise a JSON file with the promise, for predict --promise."""
    seed: int = 0
    """Of the random order; the same for the plan and for its answers."""
    force: Force = False
    format: ReadFormat = None
    reading: Reading = field(default_factory=ReadOptions)
    prints_answer: ClassVar = True

    def run(self) -> dict[str, Any]:
        """Plan, or promise."""
        metric, wanted = self._wanted()
        if self.out is not None:
            check_written(self, self.out)
        table, test = self._read()
        answers = read_answers(self.answers, table)
        if self.plan is not None:
            return self._plan(table, test, answers)
        outlook = test.outlook(
            metric, wanted, answers=answers, confidence=self.confidence, over=self.over
        )
        if not test.used(answers):
            return self._without_answers(test, metric, wanted, outlook)
        found = test.promise(metric, wanted, answers, confidence=self.confidence, over=self.over)
        print(found.describe())
        result = found.as_dict() | {"class_names": table.classes}
        unused = len(answers) - found.answers
        if unused:
            print(
                f"{pluralize(unused, 'answer is', 'answers are')} not of this plan, and not used."
            )
        result["by_class"] = self._by_class(table, test, answers, metric, wanted)
        result["outlook"] = outlook
        print(_describe_outlook(outlook, found.answers))
        if self.out is not None:
            atomic_write(self.out, json.dumps(result, indent=1) + "\n")
            print(f"{self.out}: for `hilltop predict RUN --promise {self.out}`")
        return result

    def _wanted(self) -> tuple[Literal["recall", "precision"], float]:
        given = [
            one for one in (self.recall, self.precision, self.false_discovery) if one is not None
        ]
        if len(given) != 1:
            raise ArgumentError("Give one of --recall, --precision and --false-discovery.")
        if self.recall is not None:
            return "recall", self.recall
        return "precision", given[0] if self.precision is not None else 1 - given[0]

    def _read(self) -> tuple[LabelTable, PromiseTest]:
        """Join by name, and leave out images without scores."""
        reading = self.reading
        if reading.unlisted is None:
            reading = replace(reading, unlisted="unknown")
        table = read_labels(self.labels, format=self.format, options=reading)
        if table.unlisted == State.ABSENT:
            raise ArgumentError(
                "Pairs that are not listed are not known to be absent. Say --unlisted unknown."
            )
        probs = read_scores(self.scores).aligned(table.images, table.classes)
        readable = ~np.isnan(probs).any(axis=1)
        if not readable.all():
            table, probs = table.select(np.flatnonzero(readable)), probs[readable]
            ends = "image has no scores and takes", "images have no scores and take"
            print(f"{pluralize(int((~readable).sum()), *ends)} no part.", file=sys.stderr)
        targets, verified = table.batch()
        return table, missing.PromiseTest(probs, targets, verified=verified, seed=self.seed)

    def _plan(
        self, table: LabelTable, test: PromiseTest, answers: SampledAnswers
    ) -> dict[str, Any]:
        assert self.plan is not None
        pairs = test.plan(self.plan, answers=answers)
        if self.out is None:
            print(format_rows(missing.PLAN_COLUMNS, missing.planned_rows(pairs, table)), end="")
            return {"pairs": len(pairs.rows)}
        missing.write_planned_pairs(pairs, table, self.out)
        print(
            f"{self.out}: {pluralize(len(pairs.rows), 'pair', 'pairs')} to ask about. Write yes, no"
            " or unsure into a column 'answer' of every line, and pass the file to --answers; or"
            f" answer them in a page, with `hilltop review AUDIT --queue {self.out}`, and pass the"
            " folder AUDIT."
        )
        return {"out": self.out, "pairs": len(pairs.rows)}

    def _without_answers(
        self, test: PromiseTest, metric: str, wanted: float, outlook: dict[int, float | None]
    ) -> dict[str, Any]:
        print(
            "No promise is possible without answers: labels that nobody recorded cannot be told"
            " from classes that are absent, so scores and labels alone prove nothing."
            f" --plan 300 --out ask.csv writes what to ask for a {metric} of {wanted:.0%}."
        )
        print(_describe_outlook(outlook, 0))
        return {"threshold": None, "answers": 0, "outlook": outlook}

    def _by_class(
        self,
        table: LabelTable,
        test: PromiseTest,
        answers: SampledAnswers,
        metric: Literal["recall", "precision"],
        wanted: float,
    ) -> dict[str, float | None]:
        """Thresholds of classes with enough answers, each with the confidence of its own."""
        found: dict[str, float | None] = {}
        told = test.class_answers(answers)
        for column in np.flatnonzero(told >= missing.MIN_CLASS_ANSWERS).tolist():
            one = test.promise(
                metric, wanted, answers, confidence=self.confidence, over=self.over, column=column
            )
            found[table.classes[column]] = one.threshold
        if found:
            print("The same for single classes, each with that confidence by itself:")
        for name, threshold in found.items():
            said = "nothing can be promised" if threshold is None else f"> {threshold:.4g}"
            print(f"  {name}  {said}")
        return found


def read_promise(path: Path) -> tuple[Promise, tuple[str, ...]]:
    """Read what ``hilltop promise --out`` wrote: the promise, and its classes."""
    if not path.is_file():
        raise data_error(path, "there is no such file.")
    content = read_json(path, "Make it again with `hilltop promise --out`.")
    try:
        names = tuple(content.pop("class_names"))
        for further in ("by_class", "outlook"):
            content.pop(further)
        return missing.Promise.from_dict(content), names
    except (AttributeError, KeyError, TypeError):
        raise data_error(
            path, "this is not a promise. Make it with `hilltop promise --out`."
        ) from None


def _describe_outlook(outlook: dict[int, float | None], answers: int) -> str:
    """What more answers would bring, if the model is right."""
    said = [
        f"{number:,} answers: {'no promise' if tags is None else f'{tags:,.0f} tags'}"
        for number, tags in outlook.items()
        if number > answers
    ]
    if not said:
        return "All pairs that could be asked about are answered, or nearly all."
    return "If the model is right, more answers would allow this promise with " + "; ".join(said)
