"""LabelTable: image ids, class names and, sparsely, what is known of each (image, class) pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.checks import did_you_mean, pluralize
from hilltop.data.entries import entries_of, put_entries, running_count
from hilltop.data.history import Step
from hilltop.data.scopes import Scopes
from hilltop.data.state import State
from hilltop.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from hilltop.data.layout import ReadOptions

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Labels of many images, immutable.

    Only pairs whose state differs from ``unlisted`` are stored, so memory grows with the number of
    labels. Within a row, entries are ordered by class. Use :func:`hilltop.data.assemble` to build
    one from unordered entries.

    Attributes:
        images: Image ids, all different.
        classes: Class names, all different.
        indptr: Row ``i`` has the entries ``indptr[i]:indptr[i + 1]``.
        columns: Class number of each entry.
        states: State of each entry.
        unlisted: State of every pair that has no entry.
        history: What was done to make this table.
        notes: What a reader noticed that a person may want to know.
        scopes: Of a joined table, which classes were looked for in which images. A pair without an
            entry that nobody looked for takes no part: it is neither unknown nor absent.
    """

    images: pa.StringArray
    classes: tuple[str, ...]
    indptr: Ints
    columns: npt.NDArray[np.int32]
    states: npt.NDArray[np.int8]
    unlisted: State
    history: tuple[Step, ...] = ()
    notes: tuple[str, ...] = field(default=())
    scopes: Scopes | None = None

    @staticmethod
    def from_lists(
        images: Iterable[str],
        labels: Iterable[Iterable[str | int]],
        classes: Sequence[str] | None = None,
        *,
        unlisted: Literal["unknown", "absent"] = "unknown",
    ) -> LabelTable:
        """Build a table from ids and a list of labels for each: names, or numbers of classes.

        Example:
            >>> LabelTable.from_lists(["a.jpg", "b.jpg"], [["cat"], []], ["cat", "dog"])
            LabelTable(2 images, 2 classes, 1 present, 0 absent, 3 unknown)
        """
        from hilltop.data.from_python import table_from_lists

        return table_from_lists(images, labels, classes, unlisted=State.parse(unlisted))

    @staticmethod
    def from_matrix(
        images: Iterable[str],
        matrix: npt.ArrayLike,
        classes: Sequence[str],
        *,
        zero: Literal["unknown", "absent"],
    ) -> LabelTable:
        """Build a table from a matrix ``(images, classes)``: 1 is present, NaN is unknown.

        Args:
            images: Image ids.
            matrix: The values.
            classes: The class of each column.
            zero: What 0 means: absent (a person looked) or unknown (nobody did).

        Example:
            >>> LabelTable.from_matrix(["a", "b"], [[1, 0], [0, 1]], ["cat", "dog"], zero="absent")
            LabelTable(2 images, 2 classes, 2 present, 2 absent, 0 unknown)
        """
        from hilltop.data.from_python import table_from_matrix

        return table_from_matrix(images, matrix, classes, zero=State.parse(zero))

    @staticmethod
    def from_dataframe(
        frame: Any,
        *,
        image: str | None = None,
        label: str | Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        delimiter: str | None = None,
        format: str | None = None,
        options: ReadOptions | None = None,
        **keywords: Any,
    ) -> LabelTable:
        """Read a DataFrame of pandas or polars.

        Args:
            frame: The DataFrame. An index of pandas other than row numbers is a column.
            image: The column with the image ids.
            label: The column, or columns, with labels.
            classes: The columns that are classes; with ``label``, the closed list of classes.
            delimiter: What separates labels in a cell; ``"none"`` for one label per cell.
            format: ``wide``, ``list_column`` or ``long``.
            options: What else the columns leave open, as an object.
            keywords: The same as keywords, such as ``unlisted="unknown"``; see
                :func:`hilltop.data.read_labels`.

        Raises:
            AmbiguousInputError: The columns leave something open that a keyword has to settle.
        """
        from hilltop.data.from_python import table_from_dataframe

        return table_from_dataframe(
            frame,
            image=image,
            label=label,
            classes=classes,
            delimiter=delimiter,
            format=format,
            options=options,
            **keywords,
        )

    def __post_init__(self) -> None:
        """Protect the arrays from being written to."""
        for array in (self.indptr, self.columns, self.states):
            array.setflags(write=False)
        if self.scopes is not None and self.unlisted != State.UNKNOWN:
            raise ArgumentError("Unlisted pairs of a joined table are unknown; list the absents.")

    def __len__(self) -> int:
        """Number of images."""
        return len(self.images)

    def __eq__(self, other: object) -> bool:
        """Whether both tables say the same of the same images and classes, in the same order."""
        if not isinstance(other, LabelTable):
            return NotImplemented
        return (
            self.classes == other.classes
            and self.unlisted == other.unlisted
            and self.scopes == other.scopes
            and self.images.equals(other.images)
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.columns, other.columns)
            and np.array_equal(self.states, other.states)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return counts, not contents."""
        return (
            f"LabelTable({len(self)} images, {len(self.classes)} classes,"
            f" {self.count(State.PRESENT)} present, {self.count(State.ABSENT)} absent,"
            f" {self.count(State.UNKNOWN)} unknown"
            f"{'' if self.scopes is None else f', {self.not_looked_for().sum()} not looked for'})"
        )

    @property
    def rows(self) -> Ints:
        """Image number of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    def count(self, state: State) -> int:
        """Number of pairs in ``state``, listed or not."""
        return int(self.counts_by_class(state).sum())

    def counts_by_class(self, state: State) -> Ints:
        """Number of images in ``state`` for each class."""
        classes = len(self.classes)
        chosen = self.columns[self.states == state]
        listed = np.bincount(chosen, minlength=classes).astype(np.int64)
        if state != self.unlisted:
            return listed
        unlisted = len(self) - np.bincount(self.columns, minlength=classes)
        return listed + unlisted - self.not_looked_for()

    def not_looked_for(self) -> Ints:
        """Number of images for each class of which nobody said anything, nor looked for it."""
        if self.scopes is None:
            return np.zeros(len(self.classes), dtype=np.int64)
        inside = self.scopes.looked_for[self.scopes.of_image[self.rows], self.columns]
        beyond = np.bincount(self.columns[~inside], minlength=len(self.classes))
        return len(self) - self.scopes.images_by_class() - beyond

    def label_shares(self) -> npt.NDArray[np.float64]:
        """Share of images labelled with each class, of those in which it was looked for."""
        return self.counts_by_class(State.PRESENT) / np.maximum(
            1, len(self) - self.not_looked_for()
        )

    def labels_per_image(self) -> Ints:
        """Number of present classes of each image."""
        running = running_count(self.states == State.PRESENT)
        return np.asarray(running[self.indptr[1:]] - running[self.indptr[:-1]], dtype=np.int64)

    def labels_of(self, row: int, state: State = State.PRESENT) -> tuple[str, ...]:
        """Names of the classes listed in ``state`` for one image."""
        entries = slice(self.indptr[row], self.indptr[row + 1])
        chosen = self.columns[entries][self.states[entries] == state]
        return tuple(self.classes[column] for column in chosen)

    def dense(self, rows: Sequence[int] | Ints | None = None) -> npt.NDArray[np.int8]:
        """States as a matrix ``(len(rows), classes)``; all rows without ``rows``."""
        chosen = np.arange(len(self)) if rows is None else np.asarray(rows, dtype=np.int64)
        matrix = np.full((len(chosen), len(self.classes)), self.unlisted, dtype=np.int8)
        at, lengths = entries_of(self.indptr, chosen)
        matrix[np.repeat(np.arange(len(chosen)), lengths), self.columns[at]] = self.states[at]
        return matrix

    def looked_for(self, rows: Sequence[int] | Ints | None = None) -> npt.NDArray[np.bool_]:
        """Whether a pair takes part, for some rows or all: all do, unless the table is joined."""
        states = self.dense(rows)
        if self.scopes is None:
            return np.ones(states.shape, dtype=bool)
        chosen = self.scopes if rows is None else self.scopes.select(np.asarray(rows))
        return np.asarray(chosen.looked_for[chosen.of_image] | (states != State.UNKNOWN))

    def batch(
        self, rows: Sequence[int] | Ints | None = None
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Targets and which of them are verified, for some rows or all: what a loss learns from.

        A target is 1 where the label is present, else 0; NaN, which no loss counts, where nobody
        looked for it. It is verified unless the pair is unknown.
        """
        states = self.dense(rows)
        targets = (states == State.PRESENT).astype(np.float32)
        if self.scopes is not None:
            targets[~self.looked_for(rows)] = np.nan
        return targets, states != State.UNKNOWN

    def eval_targets(self) -> npt.NDArray[np.float32]:
        """What scores are judged by: 1, 0, or NaN for pairs that are left out.

        Where absents are listed, or everything unlisted is absent, unknown pairs are left out. A
        table that lists positives alone has nothing else to compare with: its unknown pairs count
        as absent. A pair that nobody looked for is always left out.
        """
        targets, verified = self.batch()
        if self.unlisted != State.UNKNOWN or (self.states == State.ABSENT).any():
            targets[~verified] = np.nan
        return targets

    def find(self, images: Sequence[str] | pa.Array) -> Ints:
        """Row of each image id, joined by name.

        Raises:
            DataError: An id is not in the table.
        """
        wanted = pa.array(images, pa.string())
        rows = pc.index_in(wanted, value_set=self.images)
        if rows.null_count:
            missing = wanted.filter(rows.is_null())
            total = pluralize(len(wanted), "image", "images")
            raise DataError(
                f"{pluralize(len(missing), f'of {total} is', f'of {total} are')} not in the table"
                f" of {len(self)}, the first one is {missing[0].as_py()!r}."
            )
        return np.asarray(rows.to_numpy(), dtype=np.int64)

    def select(self, rows: Sequence[int] | Ints) -> LabelTable:
        """Return the table of some images: by number, in that order, or by a boolean mask.

        Raises:
            ArgumentError: A row does not exist, or a mask has another length.
        """
        chosen = self._row_numbers(rows)
        at, lengths = entries_of(self.indptr, chosen)
        return self._edited(
            Step("select", {"images": len(chosen)}),
            images=self.images.take(pa.array(chosen)),
            scopes=None if self.scopes is None else self.scopes.select(chosen),
            indptr=np.concatenate([[0], np.cumsum(lengths)]),
            columns=self.columns[at],
            states=self.states[at],
        )

    def _row_numbers(self, rows: npt.ArrayLike) -> Ints:
        given = np.asarray(rows)
        if given.dtype == bool:
            if given.shape != (len(self),):
                raise ArgumentError(
                    f"A mask of rows must have {len(self)} values, but has the shape {given.shape}."
                )
            return np.flatnonzero(given)
        chosen = np.asarray(given, dtype=np.int64)
        _check_range("row", chosen, len(self))
        return chosen

    def with_states(
        self,
        rows: npt.ArrayLike,
        columns: npt.ArrayLike,
        states: npt.ArrayLike | State,
        *,
        step: Step,
        unlisted: State | None = None,
    ) -> LabelTable:
        """Return the table with some pairs in other states: the one way to edit labels.

        Time and memory grow with the number of labels and of edits, not with images x classes.

        Args:
            rows: Image number of each pair.
            columns: Class number of each pair.
            states: The new state of each pair, or one for all; of a pair named twice, the last.
            step: What was done, by whom and from which seed, for the history.
            unlisted: The new state of all pairs that have no entry and are not named here.

        Example:
            >>> from hilltop.data import assemble
            >>> before = assemble(["a", "b"], ["cat", "dog"], [], [], [], unlisted=State.UNKNOWN)
            >>> after = before.with_states([1], [0], State.PRESENT, step=Step("look", by="Ann"))
            >>> after.labels_of(1), str(after.history[-1])
            (('cat',), 'look: by=Ann')
        """
        _check_range("row", np.asarray(rows, dtype=np.int64), len(self))
        _check_range("class", np.asarray(columns, dtype=np.int64), len(self.classes))
        width = max(1, len(self.classes))
        named = np.asarray(rows, dtype=np.int64) * width + np.asarray(columns, dtype=np.int64)
        new = np.broadcast_to(np.asarray(states, dtype=np.int8), named.shape)
        keys, entries = put_entries(self.rows * width + self.columns, self.states, named, new)
        bounds = np.searchsorted(keys, np.arange(len(self) + 1) * width)
        wider = replace(self, indptr=bounds, columns=(keys % width).astype(np.int32))
        return wider.with_entry_states(entries, step=step, unlisted=unlisted)

    def with_entry_states(
        self, states: npt.NDArray[np.int8], *, step: Step, unlisted: State | None = None
    ) -> LabelTable:
        """Return the table with new states of its entries, in their order.

        As :meth:`with_states` for those who go through all entries anyway, which is faster.
        """
        rest = self.unlisted if unlisted is None else unlisted
        listed = states != rest
        return self._edited(
            step,
            indptr=running_count(listed)[self.indptr],
            columns=self.columns[listed],
            states=states[listed],
            unlisted=rest,
        )

    def with_classes(self, classes: Sequence[str]) -> LabelTable:
        """Return the same labels under another list of classes, which must have all of these."""
        number = {name: at for at, name in enumerate(classes)}
        missing = [name for name in self.classes if name not in number]
        if missing:
            total = pluralize(len(self.classes), "class", "classes")
            raise DataError(
                f"{pluralize(len(missing), f'of {total} is', f'of {total} are')} not among the"
                f" {len(classes)} expected ones, such as {missing[0]!r}."
                f"{did_you_mean(missing[0], classes)}"
            )
        if tuple(classes) == self.classes:
            return self
        new = np.array([number[name] for name in self.classes], dtype=np.int64)
        columns = new[self.columns] if len(self.columns) else self.columns.astype(np.int64)
        order = np.argsort(self.rows * max(1, len(classes)) + columns, kind="stable")
        return self._edited(
            Step("with_classes", {"classes": len(classes), "before": len(self.classes)}),
            classes=tuple(classes),
            scopes=None if self.scopes is None else self.scopes.with_columns(new, len(classes)),
            columns=columns[order].astype(np.int32),
            states=self.states[order],
        )

    def with_images(self, images: Sequence[str] | pa.Array, *, step: Step) -> LabelTable:
        """Return the same labels under other image ids, all different, in the order of these."""
        ids = pa.array(images, pa.string())
        if len(ids) != len(self) or len(ids.unique()) != len(ids):
            raise DataError(
                f"Expected {len(self)} different image ids, but got {len(ids.unique())} different"
                f" ones among {len(ids)}."
            )
        return self._edited(step, images=ids)

    def _edited(self, step: Step, **parts: Any) -> LabelTable:
        """Return the table with some parts replaced, and the step recorded."""
        return replace(self, history=(*self.history, step), **parts)


def _check_range(kind: str, numbers: Ints, count: int) -> None:
    """Raise unless all numbers of rows or classes are those of one."""
    wrong = numbers[(numbers < 0) | (numbers >= count)]
    if wrong.size:
        raise ArgumentError(
            f"There is no {kind} {int(wrong.flat[0])}: they are counted from 0, and there are"
            f" {count}."
        )
