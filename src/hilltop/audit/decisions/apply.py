"""Writes the corrected labels in the format they came in, and who said so beside them.

The original file is changed only where answers change a label, and read back before it is written;
a file that cannot be changed so is refused. In another format the whole table is written.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.audit.decisions.answers import Answers, resolve
from hilltop.audit.decisions.gold import read_gold
from hilltop.audit.decisions.store import DecisionStore
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.folder import AuditFolder
from hilltop.audit.pairs import AuditPairs
from hilltop.checks import pluralize
from hilltop.data import FORMATS, LabelTable, State, Step, detect, read, write_labels
from hilltop.data.class_names import class_map
from hilltop.data.content import Source
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write, check_folder, check_outputs
from hilltop.data.folders import new_folder
from hilltop.data.format import Change, Format, Handoff, Patched, without_absents
from hilltop.data.formats import named_format, named_table, patch, write_files
from hilltop.data.layout import Ambiguous, Layout
from hilltop.data.review_record import (
    Outcome,
    ReviewRecord,
    provenance_path,
    read_provenance,
    write_provenance,
)
from hilltop.data.small_files import format_rows
from hilltop.errors import ArgumentError, DataError
from hilltop.inputs.image_files import find_images

_STATES: dict[Outcome, State] = {"present": State.PRESENT, "absent": State.ABSENT}


@dataclass(frozen=True)
class Verdicts:
    """What the answers say about a table.

    Attributes:
        changes: Pairs whose state is another one now, ordered by image and class.
        struck: Those of them that were labels and are wrong, by row and column.
        reviewers: Whose answers they follow.
        outcomes: Number of answered pairs with each outcome.
        foreign: Number of answered pairs that the table does not have.
    """

    changes: tuple[Change, ...]
    struck: frozenset[tuple[int, int]]
    reviewers: tuple[str, ...]
    outcomes: Counter[Outcome]
    foreign: int

    def count(self, state: State) -> int:
        """Number of pairs that are present or absent now, struck labels apart."""
        return sum(one.state == state for one in self.changes if not self.is_struck(one))

    def is_struck(self, change: Change) -> bool:
        """Whether a change takes a label away."""
        return (change.row, change.column) in self.struck


def verdicts(table: LabelTable, answers: Answers) -> Verdicts:
    """Resolve all answers and compare them with the table."""
    pairs = [(image, name, resolve(votes.values())) for image, name, votes in answers.all()]
    images = pa.array([image for image, _, _ in pairs], pa.string())
    rows = pc.index_in(images, value_set=table.images).fill_null(-1).to_pylist()
    column_of = {name: column for column, name in enumerate(table.classes)}
    outcomes: Counter[Outcome] = Counter()
    changes: list[Change] = []
    struck: set[tuple[int, int]] = set()
    reviewers: set[str] = set()
    foreign = 0
    for row, (image, name, outcome) in zip(rows, pairs, strict=True):
        if row < 0 or name not in column_of:
            foreign += 1
            continue
        outcomes[outcome] += 1
        state = _STATES.get(outcome)
        column = column_of[name]
        before = _state(table, row, column)
        if state is not None and before != state:
            if before == State.PRESENT:
                struck.add((row, column))
            changes.append(Change(row, column, image, name, state, before))
            reviewers |= set(answers.votes(name, image))
    changes.sort(key=lambda change: (change.row, change.column))
    by = tuple(sorted(reviewers))
    return Verdicts(tuple(changes), frozenset(struck), by, outcomes, foreign)


def apply_changes(
    table: LabelTable, changes: Sequence[Change], *, reviewers: Iterable[str] = ()
) -> LabelTable:
    """Return the table with the changes made.

    Example:
        >>> from hilltop.data import LabelTable
        >>> before = LabelTable.from_coo(["a"], ["cat", "dog"], [0], [0], State.PRESENT,
        ...                   unlisted=State.UNKNOWN)
        >>> change = Change(0, 1, "a", "dog", State.ABSENT)
        >>> after = apply_changes(before, [change], reviewers=["Ann"])
        >>> after.labels_of(0), after.labels_of(0, State.ABSENT), str(after.history[-1])
        (('cat',), ('dog',), 'review: changes=1, by=Ann')
    """
    return table.with_states(
        [change.row for change in changes],
        [change.column for change in changes],
        np.array([change.state for change in changes], dtype=np.int8),
        step=Step("review", {"changes": len(changes)}, by=", ".join(reviewers)),
    )


def review_records(answers: Answers) -> list[ReviewRecord]:
    """Every answer that holds, with what all answers to its pair amount to."""
    return [
        ReviewRecord(
            image=image,
            class_name=name,
            answer=vote.answer,
            reviewer=vote.reviewer,
            time=vote.time,
            probability=vote.probability,
            mode=vote.mode,
            outcome=resolve(votes.values()),
            comment=answers.comments(name, image).get(vote.reviewer, ""),
        )
        for image, name, votes in answers.all()
        for vote in votes.values()
    ]


def _state(table: LabelTable, row: int, column: int) -> State:
    entries = slice(table.indptr[row], table.indptr[row + 1])
    found = np.flatnonzero(table.columns[entries] == column)
    return State(int(table.states[entries][found[0]])) if len(found) else table.unlisted


LIKELY = 0.5
"""Open candidates at least as probable as this are handed to other tools."""


def likely_candidates(
    folder: AuditFolder, labels: LabelTable, answers: Answers
) -> dict[int, list[tuple[str, float]]]:
    """By row, the likely candidates that nobody has answered yet, with their probability."""
    index = CandidateIndex.read(folder, labels)
    still = answers.unanswered(AuditPairs(labels, index), index)
    places = np.flatnonzero(still & (index.probabilities >= LIKELY))
    found: dict[int, list[tuple[str, float]]] = {}
    cells = (index.rows, index.columns(), index.probabilities)
    for row, column, prob in zip(*(one[places].tolist() for one in cells), strict=True):
        found.setdefault(row, []).append((labels.classes[column], prob))
    return found


def image_files(folder: AuditFolder, labels: LabelTable) -> list[str]:
    """File names with endings where the folder of images is known, else the ids."""
    ids: list[str] = labels.images.to_pylist()
    if folder.images is None or not folder.images.is_dir():
        return ids
    found = find_images(folder.images, labels.images).to_pylist()
    return [file or image for file, image in zip(found, ids, strict=True)]


@dataclass(frozen=True)
class Applied:
    """What was written.

    Attributes:
        path: The new label file.
        provenance: Every answer that holds, with reviewer, time and probability; those of earlier
            reviews of the same labels too.
        added: Labels that were added.
        struck: Labels that were wrong and are gone.
        absent: Confirmed absents that were recorded.
        unsaid: Confirmed absents that the format cannot express.
        unsure: Pairs that nobody could tell.
        disputed: Pairs that reviewers disagree on; they stay as they were.
        patched: Whether the rest of the file was left as it was, instead of written anew.
        notes: What else the user should know.
    """

    path: Path
    provenance: Path
    added: int
    struck: int
    absent: int
    unsaid: int
    unsure: int
    disputed: int
    patched: bool
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Written:
    """What came of writing a file: where, whether absents could be said, and what to note."""

    path: Path
    absents: bool
    patched: bool = False
    notes: tuple[str, ...] = ()


def apply_decisions(
    folder: AuditFolder,
    out: Path,
    *,
    format: str | None = None,
    labels: Path | None = None,
    lossy: bool = False,
    candidates: bool = False,
    image_prefix: str | None = None,
) -> Applied:
    """Write the labels of an audit with the reviewers' answers applied.

    In another format than that of the labels, images are named by their files where the format
    asks for files and the audit knows the folder of images.

    Args:
        folder: The audit.
        out: The file to write.
        format: Its format; None for the one the labels came in.
        labels: Where the original label file is now, if not where it was.
        lossy: Leave out what another format cannot express.
        candidates: Write what is still open and likely missing too, for another tool; then the
            audit need not be reviewed yet.
        image_prefix: With candidates, what stands before the files of images for the other tool.

    Raises:
        ArgumentError: The format has no place for candidates.
        DataError: The original file is gone or changed, or the new one cannot be written.
    """
    check_folder(out)
    source = labels or folder.labels
    check_outputs([out, provenance_path(out)], [source, *folder.inputs], force=True)
    table, chosen = folder.table(), named_format(format or folder.format)
    reviewed = folder.decisions.is_file()
    if not (reviewed or candidates):
        raise data_error(
            folder.path, f"there are no answers yet. Review first: hilltop review {folder.path}"
        )
    answers = read_answers(folder)
    found = verdicts(table, answers)
    named = table
    if candidates:
        written = _hand_off(folder, chosen, table, out, found, answers, image_prefix)
    elif chosen.name == folder.format:
        written = _patch(folder, source, out, table, found)
    else:
        named = _named_by_files(folder, table) if chosen.file_names else table
        written = _rewrite(named, out, found, chosen, lossy)
    records = _renamed([*read_provenance(source), *review_records(answers)], table, named)
    provenance = provenance_path(out)
    if records or reviewed:
        atomic_write(provenance, write_provenance(records))
    return _result(written, provenance, found)


def read_answers(folder: AuditFolder) -> Answers:
    """Return the answers of an audit, those to gold questions left out; none before a review."""
    if not folder.decisions.is_file():
        return Answers()
    with closing(DecisionStore(folder.decisions)) as store:
        answers = Answers.of(store)
    answers.leave_out(read_gold(folder))
    return answers


def export_answers(answers: Answers) -> str:
    """Return every answer and comment that holds, as CSV that ``review --import`` takes back."""
    words = {"present": "yes", "absent": "no", "unsure": "unsure", "disputed": "disputed"}
    rows = []
    for one in review_records(answers):
        probability = "" if one.probability is None else f"{one.probability:.6g}"
        said = (one.image, one.class_name, words[one.answer], one.reviewer, one.time)
        rows.append([*said, one.mode, probability, words[one.outcome], one.comment])
    for note in answers.commented():
        if note.reviewer not in answers.votes(note.class_name, note.image):
            said = (note.image, note.class_name, "", note.reviewer, note.time)
            rows.append([*said, "", "", "", note.text])
    columns = ["image", "class", "answer", "reviewer", "time", "mode", "probability", "outcome"]
    return format_rows([*columns, "comment"], sorted(rows))


def corrected_archive(folder: AuditFolder) -> bytes:
    """Return the corrected labels, in the format they came in, and who said so, as a ZIP file."""
    written = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="hilltop-") as scratch:
        apply_decisions(folder, Path(scratch) / folder.labels.name)
        with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(Path(scratch).rglob("*")):
                if path.is_file():
                    archive.write(path, path.relative_to(scratch))
    return written.getvalue()


def _named_by_files(folder: AuditFolder, table: LabelTable) -> LabelTable:
    """The table with the files of its images for ids, where the audit knows them."""
    files = image_files(folder, table)
    if files == table.images.to_pylist():
        return table
    return table.with_images(files, step=Step("name_by_files", {"folder": str(folder.images)}))


def _renamed(
    records: list[ReviewRecord], table: LabelTable, named: LabelTable
) -> list[ReviewRecord]:
    """The records under the ids of the table that was written."""
    if named is table:
        return records
    name_of = dict(zip(table.images.to_pylist(), named.images.to_pylist(), strict=True))
    return [replace(one, image=name_of.get(one.image, one.image)) for one in records]


def _hand_off(
    folder: AuditFolder,
    chosen: Format,
    table: LabelTable,
    out: Path,
    found: Verdicts,
    answers: Answers,
    prefix: str | None,
) -> _Written:
    """Write labels and likely candidates for another tool."""
    if chosen.hand_off is None:
        able = ", ".join(name for name, one in FORMATS.items() if one.hand_off is not None)
        raise ArgumentError(
            f"The format {chosen.name!r} has no place for candidates; these have one: {able}."
            " Name one of them with --format, or leave --candidates out."
        )
    likely = likely_candidates(folder, table, answers)
    handoff = Handoff(image_files(folder, table), folder.images, likely, prefix)
    changed = apply_changes(table, found.changes, reviewers=found.reviewers)
    path, *beside = chosen.hand_off(changed, out, handoff)
    count = sum(map(len, likely.values()))
    notes = [f"{pluralize(count, 'open candidate', 'open candidates')} written as predictions."]
    notes += [f"{file}: written beside it." for file in beside]
    if chosen.instructions is not None:
        notes.append(chosen.instructions(handoff))
    return _Written(path, absents=False, notes=tuple(notes))


def _patch(
    folder: AuditFolder, path: Path, out: Path, table: LabelTable, found: Verdicts
) -> _Written:
    """Change the original file or folder."""
    if not path.exists():
        raise data_error(
            path, "the label file that was audited is not there. Say where with --labels."
        )
    if path.is_file() and out.suffix.lower() != path.suffix.lower():
        raise ArgumentError(
            f"{out}: the labels are changed in their own format, so the name must end with"
            f" {path.suffix or 'nothing'!r} as theirs does. Pass --format to write another format."
        )
    source = Source(path, encoding=folder.reading.encoding)
    layout = _layout(folder, source)
    raw = read(source, layout)
    if named_table(raw, path, folder.reading) != table:
        raise data_error(
            path,
            "its labels are not those that were audited. Pass --labels with the file as it was,"
            " or run `hilltop audit` again.",
        )
    renamed = class_map(raw, folder.reading)
    patched = patch(source, layout, raw, _in_file(raw, found.changes, renamed))
    _write_patched(out, patched)
    wanted = any(one.state == State.ABSENT and one.was != State.PRESENT for one in found.changes)
    absents = not wanted or any(
        one.state == State.ABSENT and one.was != State.PRESENT for one in patched.changes
    )
    return _Written(out, absents, patched=True, notes=tuple(patched.notes))


def _layout(folder: AuditFolder, source: Source) -> Layout:
    """How the labels are laid out: as the audit found, or by looking again for an older audit."""
    if folder.layout is not None:
        return folder.layout
    layout = detect(source, folder.reading, format=folder.format)
    if isinstance(layout, Ambiguous):
        raise layout.error()
    return layout


def _in_file(raw: LabelTable, changes: Sequence[Change], new: Mapping[str, str]) -> list[Change]:
    """The changes under the names that the file has for classes, which may have several."""
    counts = raw.counts_by_class(State.PRESENT).tolist()
    spelled: dict[str, list[int]] = {}
    for column, name in enumerate(raw.classes):
        spelled.setdefault(new.get(name, name), []).append(column)
    for columns in spelled.values():
        columns.sort(key=lambda column: -counts[column])
    found = []
    for change in changes:
        columns = spelled.get(change.class_name, [])
        states = {column: _state(raw, change.row, column) for column in columns}
        present = [column for column in columns if states[column] == State.PRESENT]
        for column in present if change.state != State.PRESENT and present else columns[:1]:
            name = raw.classes[column]
            found.append(replace(change, column=column, class_name=name, was=states[column]))
    return found


def _write_patched(out: Path, patched: Patched) -> None:
    """Write a file with those beside it, or a new folder."""
    if "" not in patched.files:
        with new_folder(out) as folder:
            write_files(folder, patched.files)
        return
    for added, content in patched.files.items():
        atomic_write(out.parent / f"{out.name}{added}", content)


def _rewrite(
    table: LabelTable, out: Path, found: Verdicts, chosen: Format, lossy: bool
) -> _Written:
    """Write the whole table; without absents, where they cannot be said."""

    def attempt(changes: Sequence[Change], *, lossy: bool = False) -> None:
        changed = apply_changes(table, changes, reviewers=found.reviewers)
        write_labels(changed, out, format=chosen.name, lossy=lossy)

    present = without_absents(found.changes, table.unlisted)
    try:
        attempt(found.changes)
        return _Written(out, absents=True)
    except DataError:
        if present != list(found.changes):
            try:
                attempt(present)
                return _Written(out, absents=False)
            except DataError:
                pass
        if not lossy:
            raise
    attempt(found.changes, lossy=True)
    return _Written(out, absents=False)


def _result(written: _Written, provenance: Path, found: Verdicts) -> Applied:
    absent = found.count(State.ABSENT)
    notes = list(written.notes)
    if absent and not written.absents:
        stand = pluralize(absent, "confirmed absent stands", "confirmed absents stand")
        notes.append(
            f"This format cannot say that a class is absent: {stand} in {provenance.name} only."
            " Pass --format hilltop to keep absents with the labels."
        )
    if found.foreign:
        are = pluralize(found.foreign, "answer is about a pair", "answers are about pairs")
        notes.append(f"{are} that this audit does not have.")
    return Applied(
        path=written.path,
        provenance=provenance,
        added=found.count(State.PRESENT),
        struck=len(found.struck),
        absent=absent if written.absents else 0,
        unsaid=0 if written.absents else absent,
        unsure=found.outcomes["unsure"],
        disputed=found.outcomes["disputed"],
        patched=written.patched,
        notes=tuple(notes),
    )
