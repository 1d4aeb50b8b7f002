"""``review`` and ``apply``: candidates in, a reviewer's answers out, corrected labels written."""

from __future__ import annotations

import atexit
import html
import importlib.util
import os
import tempfile
import webbrowser
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from cyclopts import Parameter

from hilltop.audit.folder import AuditFolder
from hilltop.checks import pluralize
from hilltop.cli.labels import WRITTEN
from hilltop.cli.outputs import check_written
from hilltop.cli.parser import Force, Out
from hilltop.data.data_errors import data_error
from hilltop.errors import AmbiguousInputError, install_command

if TYPE_CHECKING:
    from hilltop.audit.review.session import Review as RunningReview

_FORMAT = f"Format to write; without it the one of the labels. {WRITTEN}"
AppliedFormat = Annotated[str | None, Parameter(help=_FORMAT)]
PageFor = Annotated[Literal["labels", "model"], Parameter(name="--for")]
Import = Annotated[Path | None, Parameter(name="--import")]


@dataclass(frozen=True)
class Review:
    """Open a page in the browser where people confirm or reject likely missing labels.

    Every answer is on disk before it is acknowledged. Several people may review at once. Whoever
    has the printed address, with the token in it, may answer. The page is served to this machine
    alone unless --host says otherwise.

    Example: hilltop review audit --open
    """

    folder: Path
    """The folder that `hilltop audit` wrote."""
    _: KW_ONLY
    images: Path | None = None
    """Folder with the images, if not where the audit found them."""
    host: str = "127.0.0.1"
    """Name or address to listen on; 0.0.0.0 for all of this machine."""
    port: int = 8000
    """Port to listen on; 0 takes a free one."""
    token: str | None = None
    """Secret of 16 letters or more that a browser must bring; made up without it."""
    open: bool = False
    """Open the page in a browser."""
    gold: int | None = None
    """Mix in so many gold questions, pairs whose answer is known, and say how often each reviewer
    agrees with them; answers to them change no label. Earlier gold questions stay."""
    assign: tuple[str, ...] = ()
    """Who is asked about what: NAME=CLASS, NAME=30%, or NAME for an equal share of the rest. It can
    be changed in the page, and stays until it is."""
    overlap: float = 0.1
    """With --assign: share of the images that everybody is asked about, to measure agreement."""
    adjudicator: tuple[str, ...] = ()
    """Who alone may assign work and decide where answers differ; without it everybody may."""
    metadata: Path | None = None
    """CSV file with a column image; the page searches its other columns, too."""
    static: Path | None = None
    """Write a page that needs no server to this file instead; its answers come back by --import."""
    top: int = 200
    """With --static: how many pairs."""
    for_: PageFor = "labels"
    """With --static: what the answers are for, labels (the most probable first) or model."""
    classes: tuple[str, ...] = ()
    """With --static: ask about these classes alone."""
    queue: Path | None = None
    """Ask about these pairs too, in a view of their own: a plan that `hilltop evaluate` wrote. It
    takes this folder as answers."""
    import_: Import = None
    """Take in answers instead of serving: a file that such a page saved, or a CSV table with the
    columns image, class and answer (yes, no or unsure), as `hilltop queue` writes them."""
    force: bool = False
    """With --static, replace a file of that name; with --import, take answers of another audit."""
    needs: ClassVar = {"static": ("top", "for_", "classes"), "assign": ("overlap",)}
    prints_answer: ClassVar = True

    def run(self) -> dict[str, Any]:
        """Serve, or write, or take in."""
        folder = AuditFolder.read(self.folder)
        if self.queue is not None:
            from hilltop.audit.review.queues import keep_plan

            pairs = pluralize(keep_plan(folder, self.queue), "pair")
            print(f"{self.queue}: {pairs} in the view `Planned sample`", flush=True)
        if self.import_ is not None:
            count = _import(folder, self.import_, force=self.force)
            return {"decisions": folder.decisions, "imported": count}
        if self.static is not None:
            need_review_extra("PIL")
            check_written(self, self.static, inputs=folder.inputs)
            from hilltop.audit.review.static_page import write_static_review

            count = write_static_review(
                folder,
                self.static,
                top=self.top,
                images=self.images,
                purpose=self.for_,
                classes=self.classes,
            )
            pairs = pluralize(count, "pair")
            print(f"{self.static}: {pairs}; take its answers in with --import")
            return {"page": self.static, "pairs": count}
        return {"decisions": folder.decisions, "events": self._serve(folder)}

    def _serve(self, folder: AuditFolder) -> int:
        need_review_extra("PIL", "starlette", "uvicorn")
        from hilltop.audit.review.server import serve

        if self.assign:
            self._assign(folder)
        if self.gold is not None:
            from hilltop.audit.decisions.gold import add_gold_questions

            add_gold_questions(folder, self.gold)
        events = serve(
            folder,
            images=self.images,
            host=self.host,
            port=self.port,
            token=self.token,
            ready=self._ready,
            metadata=self.metadata,
            adjudicators=self.adjudicator,
        )
        print(f"\n{folder.decisions}: {pluralize(events, 'answer or undo', 'answers and undos')}")
        _tell_people(folder)
        print(f"next: hilltop apply {folder.path} --out FILE")
        return events

    def _assign(self, folder: AuditFolder) -> None:
        from hilltop.audit.decisions.store import DecisionStore
        from hilltop.audit.review.people import Assignment

        classes = folder.table().classes
        plan = Assignment.from_words(self.assign, classes, overlap=self.overlap)
        with closing(DecisionStore(folder.decisions)) as store:
            plan.keep(store, "command line")
        if plan.remark:
            print(f"--assign: {plan.remark}")

    def _ready(self, address: str, review: RunningReview) -> None:
        from hilltop.audit.review.security import is_loopback

        images = pluralize(len(review.index.images()), "image")
        print(f"{pluralize(len(review.index), 'candidate', 'candidates')} in {images}")
        if review.pictures is None:
            print("no folder of images is known: the page shows names only; pass --images")
        elif review.pictures.missing:
            have = pluralize(review.pictures.missing, f"of {images} has", f"of {images} have")
            print(f"{have} no file: the page shows names instead")
        if not is_loopback(self.host):
            print(
                "this is plain HTTP: whoever can listen on the network can read the token; use an"
                " SSH tunnel where that matters"
            )
        print(f"Review at {address}  (Ctrl-C to stop)", flush=True)
        if self.open:
            open_unseen(address)


def _tell_people(folder: AuditFolder) -> None:
    """Say who answered how much and how fast, and how far people agree."""
    from hilltop.audit.decisions.apply import read_answers
    from hilltop.audit.decisions.gold import read_gold
    from hilltop.audit.review.people import tell_people

    tell_people(read_answers(folder), read_gold(folder))


def open_unseen(address: str) -> None:
    """Open an address in a browser without its token being in the list of processes.

    The browser is given a file that only this user may read, and that leads on to the address.
    """
    handle, name = tempfile.mkstemp(suffix=".html", prefix="hilltop-review-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        target = html.escape(address, quote=True)
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={target}">')
    atexit.register(Path(name).unlink, missing_ok=True)
    webbrowser.open(Path(name).as_uri())


def need_review_extra(*modules: str) -> None:
    """Raise unless the packages that the page needs are installed."""
    if any(importlib.util.find_spec(name) is None for name in modules):
        raise AmbiguousInputError(
            "The review page needs extra packages. Install them with: " + install_command("review")
        )


def _import(folder: AuditFolder, path: Path, *, force: bool) -> int:
    from hilltop.audit.decisions.incoming import import_file
    from hilltop.audit.decisions.store import DecisionStore
    from hilltop.audit.pairs import AuditPairs
    from hilltop.data.small_files import csv_text

    if not path.is_file():
        raise data_error(path, "there is no such file.")
    pairs, text = AuditPairs.read(folder), csv_text(path)
    with closing(DecisionStore(folder.decisions)) as store:
        # Whoever runs the command decides who is an adjudicator.
        done = import_file(folder, str(path), text, store, pairs=pairs, force=force, may_rule=True)
    new = pluralize(done.new, "new answer or undo", "new answers and undos")
    print(f"{folder.decisions}: {new} from {path}")
    if done.foreign:
        gone = pluralize(done.foreign, "answer")
        print(f"{gone} left out: about pairs that the audit of today does not list")
    _tell_people(folder)
    return done.new


@dataclass(frozen=True)
class Apply:
    """Write the labels with the reviewers' answers in, in the format they came in.

    Confirmed labels are added, wrong ones struck, rejected ones recorded as confirmed absents where
    the format can say so; all else stays as it was. Beside OUT, OUT.provenance.csv says who
    answered what, when. Several reviewers: "unsure" abstains, the majority decides, and a tie
    changes nothing.

    Example: hilltop apply audit --out corrected.csv
    """

    folder: Path
    """The folder that `hilltop audit` wrote."""
    _: KW_ONLY
    out: Out
    """The file to write."""
    format: AppliedFormat = None
    candidates: bool = False
    """Write likely missing labels too, as predictions: for --format label_studio or fiftyone."""
    image_prefix: str | None = None
    """With --candidates: what stands before the files of images there, such as https://host/dir/."""
    answers: Path | None = None
    """Take in a file of answers from a page without a server first."""
    labels: Path | None = None
    """Where the original label file is now, if not where it was."""
    lossy: bool = False
    """Leave out what another format cannot express, instead of stopping."""
    force: Force = False
    needs: ClassVar = {"candidates": ("image_prefix",)}

    def run(self) -> dict[str, Any]:
        """Take in, write, say what was done."""
        folder = AuditFolder.read(self.folder)
        beside = [self.out.parent / f"{self.out.stem}.xml"] if self.candidates else []
        check_written(self, self.out, *beside, inputs=folder.inputs)
        if self.answers is not None:
            _import(folder, self.answers, force=self.force)
        from hilltop.audit.decisions.apply import apply_decisions

        done = apply_decisions(
            folder,
            self.out,
            format=self.format,
            labels=self.labels,
            lossy=self.lossy,
            candidates=self.candidates,
            image_prefix=self.image_prefix,
        )
        absents = pluralize(done.absent, "confirmed absent")
        struck = f", {pluralize(done.struck, 'wrong one', 'wrong ones')} struck"
        recorded = (struck if done.struck else "") + (f", {absents}" if done.absent else "")
        print(f"{done.path}: {pluralize(done.added, 'label', 'labels')} added{recorded}")
        if done.unsure or done.disputed:
            print(f"left as they were: {done.unsure:,} unsure, {done.disputed:,} disputed")
        if done.provenance.is_file():
            print(f"{done.provenance}: who answered what")
        for note in done.notes:
            print(note)
        return {
            "out": done.path,
            "added": done.added,
            "struck": done.struck,
            "confirmed_absents": done.absent,
            "unsure": done.unsure,
            "disputed": done.disputed,
        }
