"""LabelTable: image ids, class names and, sparsely, what is known of each (image, class) pair.

Beside it stand what it is made of: the three states of a pair, the steps that made the table, which
classes were looked for in which images, and how entries in any order become one table.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.checks import did_you_mean, pluralize
from hilltop.errors import ArgumentError, ArgumentTypeError, DataError

if TYPE_CHECKING:
    from hilltop.data.layout import ReadOptions
from collections.abc import Callable
from pathlib import Path

from hilltop.data.data_errors import ErrorCollector, unknown_class


class State(enum.IntEnum):
    """What is known of a pair.

    For training, unknown is "assumed negative, may be corrected" and absent is "confirmed by a
    person, never corrected".
    """

    ABSENT = 0
    PRESENT = 1
    UNKNOWN = 2

    @classmethod
    def parse(cls, word: str) -> State:
        """Return the state that ``word`` names: ``present``, ``absent`` or ``unknown``."""
        try:
            return cls[word.upper()]
        except (KeyError, AttributeError):
            names = [state.name.lower() for state in cls]
            raise ArgumentError(
                f"A state must be one of {', '.join(names)}, but got {word!r}."
                f"{did_you_mean(str(word), names)}"
            ) from None


@dataclass(frozen=True)
class Step:
    """One thing that was done to make a table.

    Attributes:
        name: What was done.
        details: With what.
        by: Who or what decided it: reviewers, or a model; empty for the user of the function.
        seed: What it was drawn from, if it was drawn.

    Example:
        >>> print(Step("review", {"changes": 3}, by="Ann, Ben"))
        review: changes=3, by=Ann, Ben
    """

    name: str
    details: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""
    seed: int | Sequence[int] | None = None

    def __str__(self) -> str:
        """Return one line."""
        said = dict(self.details)
        if self.by:
            said["by"] = self.by
        if self.seed is not None:
            said["seed"] = self.seed
        return f"{self.name}: " + ", ".join(f"{key}={value}" for key, value in said.items())


Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Scopes:
    """What was looked for in each image, immutable.

    Images with the same sources share a scope, so memory grows with images plus scopes x classes.

    Attributes:
        names: Name of each scope: its sources.
        of_image: Scope of each image.
        looked_for: Whether a scope holds a class ``(scopes, classes)``.
    """

    names: tuple[str, ...]
    of_image: npt.NDArray[np.int32]
    looked_for: Mask

    def __post_init__(self) -> None:
        """Protect the arrays from being written to."""
        for array in (self.of_image, self.looked_for):
            array.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        """Whether both say that the same was looked for."""
        if not isinstance(other, Scopes):
            return NotImplemented
        return (
            self.names == other.names
            and np.array_equal(self.of_image, other.of_image)
            and np.array_equal(self.looked_for, other.looked_for)
        )

    __hash__ = None  # type: ignore[assignment]

    def images_by_class(self) -> Ints:
        """Number of images in which each class was looked for."""
        images = np.bincount(self.of_image, minlength=len(self.names))
        return np.asarray(images @ self.looked_for, dtype=np.int64)

    def select(self, rows: Ints) -> Scopes:
        """Return the scopes of some images."""
        return Scopes(self.names, self.of_image[rows], self.looked_for)

    def with_columns(self, columns: Ints, classes: int) -> Scopes:
        """Return the scopes under another list of classes; those that are new were not looked for.

        Args:
            columns: New number of each class.
            classes: How many there are now.
        """
        looked_for = np.zeros((len(self.names), classes), dtype=bool)
        looked_for[:, columns] = self.looked_for
        return Scopes(self.names, self.of_image, looked_for)

    def only_columns(self, chosen: Mask) -> Scopes:
        """Return the scopes of some classes."""
        return Scopes(self.names, self.of_image, self.looked_for[:, chosen])


def merge_scopes(names: Sequence[str], members: Mask, looked_for: Mask) -> Scopes:
    """Return the scopes of images that several sources hold: what any of them looked for.

    Args:
        names: Name of each source.
        members: Whether an image is in a source ``(images, sources)``.
        looked_for: Whether a source looked for a class ``(sources, classes)``.

    Example:
        >>> merged = merge_scopes(["a", "b"], np.array([[True, False], [True, True]]),
        ...                       np.array([[True, False], [False, True]]))
        >>> merged.names, merged.images_by_class()
        (('a', 'a + b'), array([2, 1]))
    """
    # Turned round, single sources come first, in their order.
    kinds, of_image = np.unique(members[:, ::-1], axis=0, return_inverse=True)
    together = kinds[:, ::-1]
    return Scopes(
        names=tuple(" + ".join(np.array(names)[kind]) for kind in together),
        of_image=of_image.reshape(-1).astype(np.int32),
        looked_for=together @ looked_for,
    )


States = npt.NDArray[np.int8]


def put_entries(keys: Ints, states: States, named: Ints, new: States) -> tuple[Ints, States]:
    """Return the entries with some changed or added; of a key named twice, the last holds.

    Args:
        keys: Keys of the entries, ascending.
        states: Their states.
        named: Keys to change or add, in any order.
        new: Their states.
    """
    # Turned round, so that the first of equal pairs is the one that was named last.
    edited, last = np.unique(named[::-1], return_index=True)
    new = new[::-1][last]
    at = np.searchsorted(keys, edited)
    here = np.append(keys, -1)[at] == edited
    entries = states.copy()
    entries[at[here]] = new[here]
    keys = np.insert(keys, at[~here], edited[~here])
    return keys, np.insert(entries, at[~here], new[~here])


def running_count(chosen: npt.NDArray[np.bool_]) -> Ints:
    """How many are chosen before each place, and behind the last one."""
    counts = np.zeros(len(chosen) + 1, dtype=np.int64)
    np.cumsum(chosen, out=counts[1:])
    return counts


def entries_of(indptr: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Places of the entries of some rows, row after row, and how many each row has.

    Takes time by these rows alone: blocks of a large table would otherwise cost their square.

    Args:
        indptr: Row ``i`` has the entries ``indptr[i]:indptr[i + 1]``.
        rows: The rows.

    Example:
        >>> entries_of(np.array([0, 2, 2, 5]), np.array([2, 0]))
        (array([2, 3, 4, 0, 1]), array([3, 2]))
    """
    starts = indptr[rows]
    lengths = indptr[rows + 1] - starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum()), lengths


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Labels of many images, immutable.

    Only pairs whose state differs from ``unlisted`` are stored, so memory grows with the number of
    labels. Within a row, entries are ordered by class. Use :meth:`from_coo` to build one
    from unordered entries.

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
    def from_coo(
        images: Sequence[str] | pa.Array,
        classes: Sequence[str],
        rows: npt.ArrayLike,
        columns: npt.ArrayLike,
        states: npt.ArrayLike | State,
        *,
        unlisted: State,
        source: Path | None = None,
        line_of: Callable[[int], int] | None = None,
        step: Step | None = None,
        notes: Sequence[str] = (),
        remedy: str = "",
    ) -> LabelTable:
        """Build a table from entries in any order, as those of a sparse matrix in COO format.

        The same entry twice is kept once. Two different states for one pair are an error, except
        that "unknown" gives way to what is known.

        Args:
            images: Image ids, all different, in the order of the table.
            classes: Class names, all different.
            rows: Image number of each entry.
            columns: Class number of each entry.
            states: State of each entry, or one for all.
            unlisted: State of the pairs without an entry.
            source: The file, for messages.
            line_of: Line number of an entry, for messages.
            step: What was done, for the history.
            notes: What was noticed, for :attr:`LabelTable.notes`.
            remedy: What else than correcting the file helps against contradictions, as a sentence.

        Raises:
            DataError: A pair is both present and absent, or names are not all different.
        """
        errors = ErrorCollector(source or Path("labels"))
        ids = images if isinstance(images, pa.Array) else pa.array(images, pa.string())
        _check_distinct(errors, "image", ids)
        _check_distinct(errors, "class", pa.array(classes, pa.string()))
        errors.check()
        row, column = _numbers("row", rows, len(ids)), _numbers("class", columns, len(classes))
        state = np.broadcast_to(_checked_states(states), row.shape)
        key = row * len(classes) + column
        if len(key) > 1 and not (key[1:] > key[:-1]).all():
            # Sorted by pair and then by state, so that what is known comes before UNKNOWN.
            order = np.argsort(key * 4 + state, kind="stable")
            key, row, state = key[order], row[order], state[order]
            again = key[1:] == key[:-1]
            clash = again & (state[1:] != state[:-1]) & (state[1:] != State.UNKNOWN)
            also = f" {remedy}" if remedy else ""
            for at in np.flatnonzero(clash):
                image, name = divmod(int(key[at]), len(classes))
                errors.add(
                    f"image {ids[image].as_py()!r} has class {classes[name]!r} both absent and"
                    f" present. Keep one of the two.{also}",
                    line=line_of(int(max(order[at], order[at + 1]))) if line_of else None,
                )
            errors.check()
            first = np.concatenate([[True], ~again])
            key, row, state = key[first], row[first], state[first]
        listed = state != unlisted
        if not listed.all():
            key, row, state = key[listed], row[listed], state[listed]
        per_row = np.bincount(row, minlength=len(ids))
        return LabelTable(
            images=ids,
            classes=tuple(classes),
            indptr=np.concatenate([[0], np.cumsum(per_row)]).astype(np.int64),
            columns=(key - row * len(classes)).astype(np.int32),
            states=np.ascontiguousarray(state, dtype=np.int8),
            unlisted=unlisted,
            history=() if step is None else (step,),
            notes=tuple(notes),
        )

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
        ids, rest = _ids(images), _rest("unlisted", unlisted)
        classes = None if classes is None else checked_classes(classes)
        if isinstance(labels, np.ndarray) and labels.ndim == 2:
            raise ArgumentTypeError(
                f"labels must hold a list for each image, but are a matrix {labels.shape}. Use"
                " LabelTable.from_matrix for 0 and 1."
            )
        lists = list(labels)
        if len(ids) != len(lists):
            raise ArgumentError(
                f"labels must have a list for each of {len(ids)} images, not {len(lists)}."
            )
        if classes is not None and _looks_multi_hot(lists, len(classes)):
            raise ArgumentError(
                f"labels may hold a 0 or 1 for each of {len(classes)} classes, or class numbers."
                " Use LabelTable.from_matrix for the former, and names for the latter."
            )
        collector = Collector(Path("labels"), classes)
        for image, names in zip(ids, lists, strict=True):
            if isinstance(names, str) or not isinstance(names, Iterable):
                raise ArgumentTypeError(
                    f"labels of image {image!r} must be a list, but are {names!r}. Write"
                    f" {[] if names is None else [names]!r}."
                )
            row = collector.image(image)
            for name in names:
                collector.label(row, _name(name, classes), State.PRESENT)
        from hilltop.data.class_names import look_alikes

        table = collector.table(unlisted=rest, sort_classes=True)
        told = look_alikes("class", pa.array(table.classes, pa.string()))
        if told and classes is None:
            raise ArgumentError(f"labels: {told} Write them in one way.")
        return replace(table, history=(Step("from_lists", {"images": len(ids)}),))

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
        rest = _rest("zero", zero)
        ids = _ids(images)
        classes = checked_classes(classes)
        if hasattr(matrix, "columns"):
            _check_order("columns", matrix.columns, classes)
            _check_order("index", getattr(matrix, "index", None), ids)
        try:
            values = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)
        except ValueError:
            raise ArgumentError("matrix must have rows of one length.") from None
        if values.shape != (len(ids), len(classes)):
            raise ArgumentError(
                f"matrix must have the shape ({len(ids)}, {len(classes)}) of images and classes,"
                f" but has {values.shape}."
            )
        if values.dtype.kind not in "biuf":
            raise ArgumentTypeError(f"matrix must hold numbers, but holds {values.dtype}.")
        numbers = values.astype(np.float64)
        known = np.isnan(numbers) | (numbers == 0) | (numbers == 1)
        if not known.all():
            raise ArgumentError(
                "matrix must hold 1 (present), 0 and NaN (unknown), but got"
                f" {numbers[~known][0]!r}. If -1 means absent, write 0 and pass zero='absent';"
                " if unknown, write NaN."
            )
        states = np.where(numbers == 1, State.PRESENT, rest).astype(np.int8)
        states[np.isnan(numbers)] = State.UNKNOWN
        rows, columns = np.nonzero(states != rest)
        step = Step("from_matrix", {"images": len(ids)})
        return LabelTable.from_coo(
            pa.array(ids, pa.string()),
            classes,
            rows,
            columns,
            states[rows, columns],
            unlisted=rest,
            step=step,
        )

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
        from hilltop.data.formats import table_from_dataframe

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

    def lists(self, state: State, *, coded: bool = False) -> pa.ListArray:
        """The classes of every image that are listed in a state, as names or dictionary codes."""
        chosen = self.states == state
        offsets = pa.array(running_count(chosen)[self.indptr], pa.int32())
        codes = pa.array(self.columns[chosen], pa.int32())
        names = pa.DictionaryArray.from_arrays(codes, pa.array(self.classes, pa.string()))
        return pa.ListArray.from_arrays(offsets, names if coded else names.dictionary_decode())

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
        return _numbers("row", given, len(self))

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
            >>> before = LabelTable.from_lists(["a", "b"], [[], []], ["cat", "dog"])
            >>> after = before.with_states([1], [0], State.PRESENT, step=Step("look", by="Ann"))
            >>> after.labels_of(1), str(after.history[-1])
            (('cat',), 'look: by=Ann')
        """
        width = max(1, len(self.classes))
        named = _numbers("row", rows, len(self)) * width
        named = named + _numbers("class", columns, len(self.classes))
        new = np.broadcast_to(_checked_states(states), named.shape)
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
        classes = checked_classes(classes)
        number = {name: at for at, name in enumerate(classes)}
        missing = [name for name in self.classes if name not in number]
        if missing:
            total = pluralize(len(self.classes), "class", "classes")
            raise DataError(
                f"{pluralize(len(missing), f'of {total} is', f'of {total} are')} not among the"
                f" {len(classes)} expected ones, such as {missing[0]!r}."
                f"{did_you_mean(missing[0], classes)}"
            )
        if classes == self.classes:
            return self
        new = np.array([number[name] for name in self.classes], dtype=np.int64)
        columns = new[self.columns] if len(self.columns) else self.columns.astype(np.int64)
        order = np.argsort(self.rows * max(1, len(classes)) + columns, kind="stable")
        return self._edited(
            Step("with_classes", {"classes": len(classes), "before": len(self.classes)}),
            classes=classes,
            scopes=None if self.scopes is None else self.scopes.with_columns(new, len(classes)),
            columns=columns[order].astype(np.int32),
            states=self.states[order],
        )

    def only_classes(self, chosen: Mask) -> LabelTable:
        """Return the table of some classes, by a boolean mask."""
        number = np.cumsum(chosen) - 1
        here = chosen[self.columns]
        counts = np.bincount(self.rows[here], minlength=len(self))
        return self._edited(
            Step("only_classes", {"classes": int(chosen.sum()), "before": len(self.classes)}),
            classes=tuple(np.array(self.classes, dtype=object)[chosen]),
            scopes=None if self.scopes is None else self.scopes.only_columns(chosen),
            indptr=np.concatenate([[0], np.cumsum(counts)]),
            columns=number[self.columns[here]].astype(np.int32),
            states=self.states[here],
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


def _numbers(kind: str, given: npt.ArrayLike, count: int) -> Ints:
    """Numbers of rows or classes, all of which must be those of one."""
    numbers = np.asarray(given)
    if numbers.size and numbers.dtype.kind not in "iu":
        raise ArgumentTypeError(f"{kind} numbers must be whole, but are {numbers.dtype}.")
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < count:
        wrong = numbers[(numbers < 0) | (numbers >= count)]
        raise ArgumentError(
            f"There is no {kind} {int(wrong.flat[0])}: they are counted from 0, and there are"
            f" {count}."
        )
    return numbers.astype(np.int64, copy=False)


def _checked_states(given: npt.ArrayLike) -> States:
    states = np.asarray(given)
    if states.size and not np.isin([states.min(), states.max()], [*State]).all():
        raise ArgumentError("States must be those of hilltop.data.State: 0, 1 and 2.")
    return states.astype(np.int8, copy=False)


def _rest(name: str, word: str) -> State:
    """What the pairs are that are not listed: absent or unknown."""
    state = State.parse(word)
    if state == State.PRESENT:
        raise ArgumentError(f"{name} must be 'unknown' or 'absent', but is 'present'.")
    return state


class Collector:
    """Collects labels image by image, for readers that parse one record after another."""

    def __init__(self, path: Path, classes: Sequence[str] | None = None) -> None:
        """Start with a closed list of classes, or with None: classes are taken as they come."""
        self.errors = ErrorCollector(path)
        self._closed = classes is not None
        self._classes = {name: number for number, name in enumerate(classes or ())}
        numbered = not any(name.isdigit() for name in self._classes)
        self._by_number = {str(at): name for at, name in enumerate(classes or ()) if numbered}
        self._images: dict[str, int] = {}
        self._entries: list[tuple[int, int, int, int]] = []
        self._records: list[tuple[int, int]] = []  # row, and number of its first entry

    def image(self, name: str, *, line: int | None = None, once: bool = False) -> int:
        """Return the row of an image, new or not.

        With ``once`` a new record of the image begins; more than one for an image is noted.
        """
        if not name:
            self.errors.add("the image id is empty. Give every image a name.", line=line)
        row = self._images.setdefault(name, len(self._images))
        if once:
            self._records.append((row, len(self._entries)))
        return row

    def label(
        self,
        row: int,
        name: str,
        state: State,
        *,
        line: int | None = None,
        file: Path | None = None,
    ) -> None:
        """Add what is said of one class, by its name or its number in the closed list."""
        name = self._by_number.get(name, name)
        if name not in self._classes:
            if self._closed:
                errors = ErrorCollector(file or self.errors.path, self.errors.found)
                errors.add(unknown_class(name, self._classes), line=line)
                return
            if not name:
                self.errors.add("a class name is empty. Remove it or name it.", line=line)
                return
            self._classes[name] = len(self._classes)
        self._entries.append((row, self._classes[name], int(state), line or 0))

    def table(
        self, *, unlisted: State, sort_classes: bool = False, notes: Sequence[str] = (), **step: Any
    ) -> LabelTable:
        """Return the table, or raise with all errors."""
        self.errors.check()
        entries = np.array(self._entries, dtype=np.int64).reshape(-1, 4).T
        rows, columns, states, lines = entries
        classes = list(self._classes)
        if sort_classes and not self._closed:
            classes.sort()
            columns = np.array([classes.index(name) for name in self._classes], dtype=np.int64)[
                columns
            ]
        return LabelTable.from_coo(
            list(self._images),
            classes,
            rows,
            columns,
            states,
            unlisted=unlisted,
            source=self.errors.path,
            line_of=(lambda entry: int(lines[entry])) if lines.any() else None,
            step=Step("read", {"file": str(self.errors.path), **step}),
            notes=[*notes, *self._repetitions(columns, states)],
        )

    def _repetitions(self, columns: Ints, states: Ints) -> list[str]:
        """What to note of images that have more than one record."""
        rows = np.array([row for row, _ in self._records], dtype=np.int64)
        starts = [start for _, start in self._records]
        records = np.searchsorted(starts, np.arange(len(columns)), side="right") - 1
        return duplicate_ids(pa.array(self._images, pa.string()), rows, records, columns, states)


def duplicate_ids(
    images: pa.Array, row_ids: Ints, rows: Ints, columns: Ints, states: Any
) -> list[str]:
    """What to note of images that are in several rows of a file, whose labels are merged.

    Args:
        images: All images.
        row_ids: The image of each row.
        rows: The row of each entry.
        columns: Its class.
        states: Its state, or one for all.
    """
    counts = np.bincount(row_ids, minlength=len(images))
    twice = np.flatnonzero(counts > 1)
    if not len(twice):
        return []
    state = np.broadcast_to(np.asarray(states), np.shape(rows))
    order = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[order], np.arange(len(row_ids) + 1))
    said: dict[int, set[frozenset[tuple[int, int]]]] = {}
    for row in np.flatnonzero(counts[row_ids] > 1)[:_COMPARED].tolist():
        at = order[starts[row] : starts[row + 1]]
        pairs = frozenset(zip(columns[at].tolist(), state[at].tolist(), strict=True))
        said.setdefault(int(row_ids[row]), set()).add(pairs)
    differ = [image for image, sets in said.items() if len(sets) > 1]
    stand = pluralize(len(twice), "image name is", "image names are")
    text = f"{stand} in several rows; the labels are merged."
    if differ:
        have = pluralize(len(differ), "of them has", "of them have")
        text += f" {have} different labels there; the first is {images[differ[0]].as_py()!r}."
    return [text]


_COMPARED = 20_000


def ascending(names: pa.Array) -> bool:
    """Whether each name is greater than the one before, so that no two are the same."""
    return pc.all(pc.greater(names[1:], names[:-1]), min_count=0).as_py() is True


def _check_distinct(errors: ErrorCollector, kind: str, names: pa.Array) -> None:
    if ascending(names) or len(names) == len(names.unique()):
        return
    counted = pc.value_counts(names)
    twice = counted.field("values").filter(pc.greater(counted.field("counts"), 1))
    errors.add(
        f"{pluralize(len(twice), f'{kind} name stands', f'{kind} names stand')} more than once,"
        f" such as {twice[0].as_py()!r}. Names must differ."
    )


def _ids(images: Iterable[str]) -> list[str]:
    if isinstance(images, str):
        raise ArgumentTypeError(f"images must be a list of ids, but are the text {images!r}.")
    ids = list(images)
    wrong = next((one for one in ids if one is None or (isinstance(one, float) and one != one)), "")
    if wrong != "":
        raise ArgumentError(f"images must all have a name, but got {wrong!r}.")
    names = [str(one) for one in ids]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ArgumentError(f"images must all differ, but {twice!r} is there more than once.")
    return names


def _check_order(part: str, labels: Any, names: Sequence[str]) -> None:
    """Raise if a DataFrame names its columns or rows, but not as the matrix is said to be."""
    if labels is None or type(labels).__name__ == "RangeIndex":
        return
    wrong = [(str(one), name) for one, name in zip(labels, names, strict=False) if str(one) != name]
    if wrong:
        raise ArgumentError(
            f"The {part} of matrix and the names that go with them must have one order, but there"
            f" is {wrong[0][0]!r} in place of {wrong[0][1]!r}. LabelTable.from_dataframe goes by"
            " names."
        )


def checked_classes(classes: Iterable[str]) -> tuple[str, ...]:
    """Return a list of classes, which must be names that differ."""
    if isinstance(classes, str):
        raise ArgumentTypeError(f"classes must be a list of names, but are the text {classes!r}.")
    names = list(classes)
    if not all(isinstance(name, str) and name for name in names):
        wrong = next(name for name in names if not isinstance(name, str) or not name)
        raise ArgumentTypeError(f"classes must be names, but got {wrong!r}.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ArgumentError(f"classes must all differ, but {twice!r} is there more than once.")
    return tuple(map(str, names))


def _looks_multi_hot(lists: Sequence[Any], classes: int) -> bool:
    """Whether every list is as long as there are classes, several, and holds 0 and 1 alone."""
    rows = [list(one) for one in lists if isinstance(one, Iterable) and not isinstance(one, str)]
    if len(rows) < len(lists) or not rows or classes < 2 or {*map(len, rows)} != {classes}:
        return False
    return all(
        isinstance(one, int | float | np.generic) and one in (0, 1) for row in rows for one in row
    )


def _name(label: Any, classes: Sequence[str] | None) -> str:
    if isinstance(label, str):
        if classes is not None and label not in classes:
            raise DataError(f"labels: {unknown_class(label, classes)}")
        return str(label)
    if isinstance(label, bool) or not isinstance(label, int | np.integer):
        raise ArgumentTypeError(f"labels must be names or class numbers, but hold {label!r}.")
    if classes is None:
        raise ArgumentError(f"labels hold the number {label!r}; pass classes to name the numbers.")
    if not 0 <= int(label) < len(classes):
        known = pluralize(len(classes), "class", "classes")
        raise ArgumentError(f"labels hold {label!r}, which is no number of {known}.")
    return classes[int(label)]
