"""What ``hilltop evaluate`` does where labels are incomplete: estimates, comparison, plan."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hilltop.checks import check_whole, pluralize
from hilltop.data import LabelTable, State
from hilltop.data.scores import ScoreTable, read_scores
from hilltop.data.small_files import format_rows
from hilltop.errors import ArgumentError
from hilltop.missing import (
    PLAN_COLUMNS,
    EstimatedReport,
    Evaluation,
    ModelComparison,
    SampledAnswers,
    planned_rows,
    read_sampled_answers,
    sampled_answers,
    write_planned_pairs,
)


@dataclass(frozen=True)
class IncompleteRequest:
    """What was asked of an incomplete test.

    Attributes:
        scores: Files with scores of one model or two.
        answers: Files with answers, one for each sample, or the folder of an audit that was given
            plans.
        threshold: Above it is a prediction; None for those that stand with the scores, or 0.5.
        harmonic: Whether CF1 is the harmonic mean of CP and CR.
    """

    scores: tuple[Path, ...]
    answers: tuple[Path, ...]
    threshold: float | None
    harmonic: bool

    def _joined(self, table: LabelTable) -> tuple[LabelTable, Evaluation]:
        """Join by name, leave out images without scores, and find out what is probably true."""
        if table.unlisted == State.ABSENT:
            raise ArgumentError(
                "With --incomplete, pairs that are not listed are not known to be absent."
                " Say --unlisted unknown."
            )
        loaded = [read_scores(path) for path in self.scores]
        probs = [scores.aligned(table.images, table.classes) for scores in loaded]
        readable = ~np.isnan(np.concatenate(probs, axis=1)).any(axis=1)
        if not readable.all():
            table, probs = table.select(np.flatnonzero(readable)), [one[readable] for one in probs]
            ends = "image has no scores and takes", "images have no scores and take"
            print(f"{pluralize(int((~readable).sum()), *ends)} no part.", file=sys.stderr)
        targets, observed = table.batch()
        test = Evaluation(
            probs,
            targets,
            verified=observed,
            answers=self._read_answers(table),
            thresholds=[self._threshold(scores, table) for scores in loaded],
            harmonic=self.harmonic,
        )
        return table, test

    def _threshold(self, scores: ScoreTable, table: LabelTable) -> Any:
        if self.threshold is not None or scores.thresholds is None:
            return 0.5 if self.threshold is None else self.threshold
        of_class = dict(zip(scores.classes, scores.thresholds, strict=True))
        return np.array([of_class[name] for name in table.classes], dtype=np.float64)

    def _read_answers(self, table: LabelTable) -> SampledAnswers:
        if not any(path.is_dir() for path in self.answers):
            return read_sampled_answers(self.answers, table)
        if len(self.answers) > 1:
            raise ArgumentError("--answers takes the folder of one audit, or files, not both.")
        from hilltop.audit.folder import AuditFolder
        from hilltop.audit.review.planned import answered_plans

        return sampled_answers(answered_plans(AuditFolder.read(self.answers[0])), table)

    def evaluate(self, table: LabelTable) -> dict[str, Any]:
        """Print estimates of all metrics, and how two models compare."""
        table, test = self._joined(table)
        reports = [test.report(number) for number in range(len(self.scores))]
        compared = test.compare() if len(self.scores) == 2 else None
        _print(test, self.scores, reports, compared)
        return _as_dict(test, reports, compared, table.classes)

    def plan(
        self, table: LabelTable, number: int, out: Path | None, *, seed: int
    ) -> dict[str, Any]:
        """Write the pairs to ask about next, or print them."""
        check_whole("--plan", number, low=1)
        table, test = self._joined(table)
        pairs = test.plan(number, seed=seed)
        if out is None:
            rows = planned_rows(pairs, table)
            print(format_rows(PLAN_COLUMNS, rows), end="")
            return {
                "pairs": [
                    {
                        "image": image,
                        "class": name,
                        "probability": float(prob),
                        "sampled_with": float(sampled),
                    }
                    for image, name, prob, sampled in rows
                ]
            }
        write_planned_pairs(pairs, table, out)
        written = pluralize(len(pairs.rows), "pair", "pairs")
        print(
            f"{out}: {written} to ask about. Write yes, no or unsure into a column 'answer', and"
            f" pass the file to --answers; or answer them in a page, with `hilltop review AUDIT"
            f" --queue {out}`, and pass the folder AUDIT."
        )
        return {"out": out, "pairs": len(pairs.rows)}


def _as_dict(
    test: Evaluation,
    reports: list[EstimatedReport],
    compared: ModelComparison | None,
    classes: tuple[str, ...],
) -> dict[str, Any]:
    models = [
        {name: found.as_dict() for name, found in report.metrics.items()}
        | {"classes": {name: one.as_dict() for name, one in _named(classes, report)}}
        for report in reports
    ]
    result: dict[str, Any] = {
        "answers": len(test.answers),
        "summary": test.describe(),
        "missing": test.missing.as_dict(),
    }
    if compared is None:
        return result | models[0]
    return result | {
        "models": models,
        "difference": {name: one.as_dict() for name, one in compared.differences.items()},
        "first_better": compared.first_better,
        "answers_needed": compared.answers_needed,
    }


def _named(classes: tuple[str, ...], report: EstimatedReport) -> Any:
    return zip(classes, report.average_precision, strict=True)


def _print(
    test: Evaluation,
    paths: tuple[Path, ...],
    reports: list[EstimatedReport],
    compared: ModelComparison | None,
) -> None:
    answers = pluralize(len(test.answers), "answer", "answers")
    print(test.describe())
    print(f"Estimates of the true values, with 90% intervals, from labels and {answers}:")
    if compared is None:
        for name, found in reports[0].metrics.items():
            print(f"{name:>5}  {found}")
        return
    columns = [path.name for path in paths]
    print(f"{'':5}  {columns[0]:<22}{columns[1]:<22}difference")
    for name, difference in compared.differences.items():
        one, other = (str(report.metrics[name]) for report in reports)
        print(f"{name:>5}  {one:<22}{other:<22}{difference}")
    print(_verdict(columns, compared))


def _verdict(names: list[str], compared: ModelComparison) -> str:
    """Say which of two models has the higher mAP, and how sure that is."""
    ahead = compared.first_better >= 0.5
    sure = compared.first_better if ahead else 1 - compared.first_better
    words = f"{sure:.0%}" if sure < 0.99 else "more than 99%"
    sentence = f"{names[0] if ahead else names[1]} has the higher mAP: {words} sure."
    if compared.answers_needed == 0:
        return sentence
    if compared.answers_needed is None:
        return f"{sentence} The models are too much alike to tell."
    more = pluralize(compared.answers_needed, "more answer", "more answers")
    return f"{sentence} About {more} would make it 95%; --plan chooses what to ask."
