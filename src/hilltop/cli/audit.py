"""``audit``, ``queue`` and ``estimate``: likely missing labels, what to ask, how many there are."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cyclopts import Parameter

from hilltop.checks import pluralize
from hilltop.cli.labels import ReadFormat
from hilltop.cli.outputs import check_written
from hilltop.cli.parser import Device, Force, Out, Reading
from hilltop.data import LabelTable, ReadOptions, ReviewRecord, before_review, read_provenance
from hilltop.data.files import check_folder, check_outputs
from hilltop.data.review_record import provenance_path, with_answers
from hilltop.data.scores import Places
from hilltop.data.summary import name_mistakes
from hilltop.errors import ArgumentError
from hilltop.progress import say, say_of_inputs

if TYPE_CHECKING:
    from hilltop.audit.find.ranking import Assumption
    from hilltop.audit.find.score_blocks import Scored
    from hilltop.audit.folder import AuditFolder
    from hilltop.audit.review.queues import Purpose
    from hilltop.inputs.ranks import Parts, Ranks

_PAGE_PAIRS = 200
_COMBINED_BYTES = 40
"""Memory that a pair takes where extra scores are combined with ours, which is done in matrices."""


@dataclass(frozen=True)
class Audit:
    """Rank unlabelled pairs by the probability that their label is missing, and say how many are.

    With features or images, linear heads are trained that never see the labels of the images they
    score; torchrun shares images, heads and ranking out over processes, and goes on where it was
    stopped. Scores of your own should be out-of-sample too: a model has learned that the pairs it
    was trained on are absent.

    Example: hilltop audit --labels labels.csv --unlisted unknown --features f.npz --out audit
    """

    labels: Path
    """The labels, in any format."""
    _: KW_ONLY
    out: Out
    """The folder to write."""
    features: Path | None = None
    """Features: .npz with ids and X, .npy with ids beside it, or Parquet."""
    images: Path | None = None
    """Folder with the images; without features or scores a backbone takes features from them."""
    scores: Path | None = None
    """Out-of-sample probabilities, as written by predict; or the folder of a run on features of
    the same images, whose cross-validated scores are used again."""
    extra_scores: Path | None = None
    """Scores of another model, such as another tagger's: .npz with ids, classes and scores."""
    extra_names: Path | None = None
    """With --extra-scores: CSV of two columns, its class names and yours, where they differ."""
    loss: str = "auto"
    """How labels were lost: auto, count_likelihood or scar_likelihood."""
    missing_ratio: float | None = None
    """With count_likelihood: the missing ratio, 0.8 without it."""
    keep: float | None = None
    """With scar_likelihood: the share of labels that was kept, 0.6 without it."""
    top: int | None = None
    """How many candidates to write; all without it, or of more than ten million the first million
    and the first of every class."""
    folds: int = 4
    """Parts that the images are dealt into."""
    seed: int = 0
    """The same seed gives the same audit."""
    backbone: str = "resnet50"
    """With images alone: timm name of the backbone."""
    weights: str = "none"
    """Its weights, which it needs: timm (asks the hub once), a file, or an installed package."""
    image_size: int = 224
    """Images are squashed to this many pixels a side for it."""
    workers: int = 2
    """Processes that decode images."""
    skip_broken: bool = False
    """Leave out images that cannot be read, and list them, instead of stopping."""
    allow_missing: bool = False
    """Go on without rows of the labels that have no image or features."""
    page: int = _PAGE_PAIRS
    """With images: pairs in review.html, for people without Python (30 kB each); 0 for none."""
    update: bool = False
    """Audit anew in a folder that holds answers already, and keep them."""
    shard: int | None = None
    """Images that are ranked between two saves; by default those of 270 million pairs."""
    dry_run: bool = False
    """Say how much time, memory and disk it will take, measured on a part; write nothing."""
    engine: Literal["torchrun", "ray"] = "torchrun"
    """What shares the work out: torchrun, or Ray (the cluster of RAY_ADDRESS, or this machine)."""
    device: Device = "auto"
    format: ReadFormat = None
    reading: Reading = field(default_factory=ReadOptions)
    needs: ClassVar = {"extra_scores": ("extra_names",)}

    def run(self) -> dict[str, Any]:
        """Score, rank, estimate, write, say what was found."""
        from hilltop.inputs.ranks import engine_ranks

        if self.dry_run:
            return self._dry_run()
        with engine_ranks(self.engine) as ranks:
            from hilltop.audit.folder import AuditFolder
            from hilltop.audit.run import check_out, lock_output

            self._check()
            check_out(self.out, update=self.update)
            written = AuditFolder(self.out, labels=self.labels, format="").files
            check_written(self, *written, force=True)
            with lock_output(self.out, ranks):
                return self._run(ranks)

    def _dry_run(self) -> dict[str, Any]:
        """Say what it will take."""
        from hilltop.audit.run import read_audited
        from hilltop.cli import dry_run
        from hilltop.data import write_labels
        from hilltop.training.class_blocks import WHOLE_PAIRS

        self._check()
        table, _ = read_audited(self.labels, format=self.format, options=self.reading)

        def make(part: LabelTable, folder: Path) -> Audit:
            labels = folder / "labels.parquet"
            write_labels(part, labels, format="hilltop")
            same = replace(self, dry_run=False, engine="torchrun", reading=ReadOptions())
            return replace(same, labels=labels, format="hilltop", out=folder / "out")

        many = self.scores is None and len(table) * len(table.classes) > WHOLE_PAIRS
        found = (
            dry_run.cost_of_blocks(make, table)
            if many
            else dry_run.cost_of_images(
                lambda images, folder: make(dry_run.some_of(table, images), folder), len(table)
            )
        )
        return dry_run.tell(found[0], self.out, total=len(table), measured=found[1])

    def _run(self, ranks: Ranks) -> dict[str, Any]:
        from hilltop.audit.run import PARTS, audit, read_audited, write_audit
        from hilltop.inputs.ranks import Parts

        given = self._given()
        table, layout = read_audited(self.labels, format=self.format, options=self.reading)
        for mistake in name_mistakes(table):
            say_of_inputs(f"{self.labels}: {mistake}")
        records = read_provenance(self.labels)
        before, known = self._before(table, records), with_answers(table, records)
        parts = Parts(self.out.resolve() / PARTS, ranks)
        extra = self._read_extra(table)
        scored = self._with_extra(known, self._scored(known, parts), extra)
        ranks.wait()
        options: dict[str, Any] = {"given": given, "top": self.top, "before": before}
        found = audit(known, scored, parts=parts, shard=self.shard, **options)
        if not ranks.first:  # all know what was found; one writes it
            return {"out": self.out}
        if found.model.kind == "none":
            print(
                "Probabilities of candidates are as if 10% of the labels were missing, to give an"
                " order."
            )
        folder = write_audit(
            found,
            table,
            self.out,
            labels=self.labels,
            format=layout.format,
            layout=layout,
            reading=self.reading,
            images=self.images,
            scored=scored,
        )
        shutil.rmtree(self.out / PARTS, ignore_errors=True)
        said = tell_estimates(folder)
        print(f"{folder.candidates}: {pluralize(len(found.candidates), 'candidate', 'candidates')}")
        print(f"{folder.suspects}: {found.wrong.sentence}")
        self._write_page(folder)
        print(f"next: hilltop review {self.out}")
        files = {"candidates": folder.candidates, "suspects": folder.suspects}
        return {"out": self.out, **said, **files}

    def _check(self) -> None:
        if self.features is not None and self.scores is not None:
            raise ArgumentError("Give one of --features and --scores, not both.")
        if self.features is None and self.scores is None and self.images is None:
            raise ArgumentError("Give --features, --images or --scores to rank by.")

    def _before(self, table: LabelTable, records: list[ReviewRecord]) -> LabelTable | None:
        """The labels before they were reviewed, if they were."""
        before = before_review(table, records)
        if before is not None:
            print(
                f"{provenance_path(self.labels)}: these labels were reviewed; how labels were lost"
                " is judged without those that were put back"
            )
        return before

    def _scored(self, table: LabelTable, parts: Parts) -> Scored:
        from hilltop.audit.find.score_blocks import Scored, score_blocks
        from hilltop.audit.run import fold_logits
        from hilltop.data.scores import ScoreTable
        from hilltop.inputs.features import FeatureInputs, read_features

        rows = np.arange(len(table))
        if self.scores is not None and self.scores.is_dir():
            from hilltop.training.predict import out_of_sample_scores

            print(f"{self.scores}: its cross-validated scores are used, no head is trained")
            return Scored(score_blocks(out_of_sample_scores(self.scores), table), rows)
        if self.scores is not None:
            print("scores must come from a model that did not learn from these labels")
            known, seen = ScoreTable.load(self.scores), self.scores.stat()
            version = f"{self.scores.resolve()} {seen.st_size} {seen.st_mtime_ns}"
            return Scored(score_blocks(known, table), rows, version=version)
        if self.features is not None:
            rows, found = self._matching(table, self.features), read_features(self.features)
            if isinstance(found.values, np.memmap):  # in the order of the file, they stay there
                order = found.rows_of(table.images.take(pa.array(rows)))
                rows = rows[np.argsort(order, kind="stable")]
            values = FeatureInputs(found, table.images.take(pa.array(rows))).values
        else:
            from hilltop.audit.find.features import cached_features
            from hilltop.inputs.backbone import Backbone, check_weights

            assert self.images is not None
            weights = check_weights(self.weights)
            backbone = Backbone(self.backbone, weights, self.image_size).with_digest()
            rows = self._matching(table, self.images)
            values, names = cached_features(
                self.images,
                table.images.take(pa.array(rows)),
                backbone,
                self.out,
                workers=self.workers,
                skip_broken=self.skip_broken,
                say=say,
                ranks=parts.ranks,
            )
            rows = table.find(names)
        logits = fold_logits(
            table,
            values,
            rows,
            folds=self.folds,
            seed=self.seed,
            say=say,
            parts=parts,
        )
        return Scored(logits, rows, values)

    def _read_extra(self, table: LabelTable) -> npt.NDArray[np.float32] | None:
        """Extra scores of all images, if there are any; faults are said before heads are fitted."""
        if self.extra_scores is None:
            return None
        from hilltop.data.array_files import check_memory
        from hilltop.inputs.extra_scores import read_extra_scores, read_names

        check_memory(self.extra_scores, _COMBINED_BYTES * len(table) * len(table.classes))
        known = read_names(self.extra_names)
        return read_extra_scores(self.extra_scores, table.images, table.classes, names=known)

    def _with_extra(
        self, table: LabelTable, scored: Scored, extra: npt.NDArray[np.float32] | None
    ) -> Scored:
        """Combine our scores with the extra ones, if there are any."""
        if extra is None:
            return scored
        import torch

        from hilltop.audit.find.score_blocks import blocks_of, label_block
        from hilltop.missing.extra_scores import combine_scores, describe_weights

        own = scored.logits(0, len(scored.rows)).numpy()
        targets = label_block(table, scored.rows)[0].numpy()
        combined, weights = combine_scores([own, extra[scored.rows]], targets, primary=True)
        print(f"{self.extra_scores}: {describe_weights(weights)}")
        return replace(scored, logits=blocks_of(torch.from_numpy(combined).float()))

    def _given(self) -> Assumption | None:
        """How labels were lost, where the user says so."""
        from hilltop.audit.find.ranking import Assumption
        from hilltop.checks import check_choice, check_number

        renamed = {"kept_by_count": "count_likelihood", "kept_independently": "scar_likelihood"}
        loss = renamed.get(self.loss, self.loss)
        if loss != self.loss:
            say(f"--loss {self.loss} is deprecated; use --loss {loss}")
        check_choice("--loss", loss, ("auto", "count_likelihood", "scar_likelihood"))
        if self.missing_ratio is not None and loss != "count_likelihood":
            raise ArgumentError("--missing-ratio belongs to --loss count_likelihood.")
        if self.keep is not None and loss != "scar_likelihood":
            raise ArgumentError("--keep belongs to --loss scar_likelihood.")
        if loss == "count_likelihood":
            ratio = 0.8 if self.missing_ratio is None else self.missing_ratio
            return Assumption(missing_ratio=check_number("--missing-ratio", ratio, low=0, high=1))
        if loss == "scar_likelihood":
            keep = 0.6 if self.keep is None else self.keep
            return Assumption(
                label_frequency=check_number("--keep", keep, low=0, high=1, low_open=True)
            )
        return None

    def _matching(self, table: LabelTable, source: Path) -> Places:
        from hilltop.inputs.matching import matching_rows

        allowed = self.allow_missing or (self.skip_broken and source == self.images)
        return matching_rows(table.images, source, allow_missing=allowed, say=say_of_inputs)

    def _write_page(self, folder: AuditFolder) -> None:
        if self.images is None or not self.page or importlib.util.find_spec("PIL") is None:
            return
        from hilltop.audit.review.static_page import write_static_review

        path = self.out / "review.html"
        pairs = write_static_review(folder, path, top=self.page)
        print(f"{path}: {pluralize(pairs, 'pair', 'pairs')}, a page for people without Python")


For = Annotated[
    Literal["model", "labels", "wrong", "measure", "images", "promise"], Parameter(name="--for")
]


@dataclass(frozen=True)
class Queue:
    """Write the pairs that people should be asked about, in the order in which to ask.

    model: answers that help training most. labels: the most probable missing labels. wrong: labels
    that are most probably wrong. images: image by image, what it may lack and its labels. measure:
    a random sample, with the probability with which each pair was drawn. promise: what `hilltop
    predict --promise` needs to know of the same images. Add a column `answer` (yes, no or unsure)
    and take it in with review --import, or for a promise with predict --answers.

    Example: hilltop queue audit --for model --number 1000 --out queue.csv

    Example: hilltop queue run --for promise --images photos --number 300 --out ask.csv
    """

    folder: Path
    """The folder that `hilltop audit` wrote. With --for promise also what predict is given: a run
    folder, or a file with probabilities."""
    _: KW_ONLY
    out: Out
    """The CSV file to write, with the columns image, class and probability."""
    for_: For = "model"
    """What the answers are for: model, labels, wrong, measure, images or promise."""
    number: int = 1000
    """How many pairs."""
    classes: tuple[str, ...] = ()
    """Ask about these classes alone."""
    seed: int = 0
    """The same seed draws the same random sample."""
    promise: str = "recall=0.9"
    """With --for promise: what is to be promised."""
    over: Literal["new", "these"] | None = None
    """With --for promise: as for predict."""
    per: Literal["pair", "image"] = "pair"
    """With --for promise: as for predict; image asks about whole images."""
    answers: tuple[Path, ...] = ()
    """With --for promise: answers so far; what comes after them is asked."""
    images: Path | None = None
    """With --for promise and a run: folder with the images."""
    features: Path | None = None
    """With --for promise and a run: features file of the images."""
    labels: Path | None = None
    """With --for promise: labels that are known, of the images to ask about."""
    allow_missing: bool = False
    """With --labels: go on without rows that have no image or features."""
    which: Literal["best", "last"] | None = None
    """With --for promise and a run: its weights, as for predict."""
    force: Force = False
    needs: ClassVar = {
        "for_=promise": (
            "promise", "over", "per", "answers", "images", "features", "labels", "which",
        ),
        "labels": ("allow_missing",),
    }  # fmt: skip

    @property
    def run_folder(self) -> Path:
        """What predict calls the folder."""
        return self.folder

    def _plan_promise(self) -> dict[str, Any]:
        from hilltop.cli.predict import score
        from hilltop.cli.promises import Asked, is_audit

        if self.classes:
            raise ArgumentError("--for promise asks about all classes; leave --classes out.")
        asked = Asked.parse(
            self.promise, confidence=0.9, over=self.over, per=self.per, seed=self.seed,
            audit=is_audit(self.folder),
        )  # fmt: skip
        check_folder(self.out)
        check_written(self, self.out)
        scored, _ = score(self)
        return asked.plan(scored, self.number, self.answers, self.out, self.folder)

    def run(self) -> dict[str, Any]:
        """Choose and write."""
        if self.for_ == "promise":
            return self._plan_promise()
        from hilltop.audit.decisions.store import now
        from hilltop.audit.folder import AuditFolder
        from hilltop.audit.review.queues import build_queue, write_queue

        check_folder(self.out)
        folder = AuditFolder.read(self.folder)
        check_written(self, self.out, inputs=folder.inputs)
        if self.for_ == "measure":  # the audit keeps a copy
            check_outputs([folder.sample], (), force=True)
        purpose: Purpose = self.for_
        queue = build_queue(folder, purpose, self.number, classes=self.classes, seed=self.seed)
        write_queue(queue, folder.table(), self.out)
        if queue.sampled_with is not None:  # `hilltop estimate` needs to know how it was drawn
            write_queue(queue, folder.table(), folder.sample, drawn=now())
        print(f"{self.out}: {pluralize(len(queue), 'pair', 'pairs')} to ask about")
        print(f"next: hilltop review {self.folder} --import {self.out}, with a column `answer`")
        return {"out": self.out, "pairs": len(queue)}


@dataclass(frozen=True)
class Estimate:
    """Say how many labels are missing, now that a random sample was reviewed.

    The review page has a mode that shows a random sample; from its answers the number of missing
    labels follows without any assumption about how they were lost. Nothing is trained again.

    Example: hilltop estimate audit
    """

    folder: Path
    """The folder that `hilltop audit` wrote."""
    prints_answer: ClassVar = True

    def run(self) -> dict[str, Any]:
        """Read, write, print."""
        from hilltop.audit.folder import AuditFolder

        folder = AuditFolder.read(self.folder)
        found = tell_estimates(folder)
        if not found["sampled"] and found["weighted"] is None:
            print(
                f"no random sample was reviewed yet; it is a mode of hilltop review {self.folder}"
            )
        print(f"{self.folder / 'estimates.csv'}: all classes")
        return found


def tell_estimates(folder: AuditFolder) -> dict[str, Any]:
    """Add reviewed samples to the estimates, print all and return them.

    The total is that of a random sample of all classes, where one was answered: answers override
    what scores suggest. It is the model's otherwise.
    """
    from hilltop.audit.decisions.apply import read_answers
    from hilltop.audit.find.sampled import add_samples, measured
    from hilltop.audit.summary import print_summary
    from hilltop.missing.model import describe_total
    from hilltop.training.calibration import load_model

    estimates, sampled = add_samples(folder)
    weighted = None
    if folder.decisions.is_file():
        weighted = measured(folder, folder.table(), read_answers(folder))
    model = load_model(folder.model)
    missing, summary = folder.missing, folder.summary
    if model is not None:
        missing, summary = model.missing.total.as_dict(), model.describe()
    by_answers = None
    if weighted is not None:
        by_answers = weighted.missing, weighted.answers
    elif sampled is not None and len(sampled.estimates) == len(estimates):
        by_answers = sampled.total, sampled.answered
    if by_answers is not None:
        labelled = sum(one.labelled for one in estimates)
        missing, summary = by_answers[0].as_dict(), describe_total(labelled, *by_answers)
    replace(folder, missing=missing, summary=summary).write()  # the review page says the same
    print_summary(estimates, sampled, summary)
    if weighted is not None:
        print(weighted.sentence)
    by_sample = {one.class_name: one for one in sampled.estimates} if sampled else {}
    chosen = [by_sample.get(one.class_name, one) for one in estimates]
    return {
        "missing": missing,
        "summary": summary,
        "sampled": None if sampled is None else sampled.sentence,
        "weighted": None if weighted is None else weighted.sentence,
        "classes": {one.class_name: one.as_dict() for one in chosen},
    }
