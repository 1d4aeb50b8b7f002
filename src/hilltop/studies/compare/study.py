"""A comparison: which runs it is made of, where they lie, and what each of them is trained on."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hilltop.data import LabelTable, drop_positives, read_labels, write_labels
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write
from hilltop.data.small_files import read_json
from hilltop.errors import ConfigError
from hilltop.studies.compare.level import COMPLETE, GIVEN, Level
from hilltop.studies.compare.method import Method
from hilltop.training.config import TrainConfig
from hilltop.training.run_folder import RunFolder

BASELINE = Method("bce")
# What may differ between calls: where files lie is told by their content, the rest changes nothing.
_FREE = (
    "labels", "val_labels", "true_labels", "images", "features", "format", "reading", "workers",
    "report", "logger",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One run: a method on the labels of a level, from a seed."""

    level: Level
    method: Method
    seed: int

    @property
    def first_stage(self) -> Cell:
        """The run that is the first of the two stages of pseudo labels."""
        return dataclasses.replace(self, method=dataclasses.replace(self.method, pseudo_label=None))

    def __str__(self) -> str:
        """Return what a person calls it."""
        return f"{self.level.name} {self.method} seed {self.seed}"


def plan_cells(
    levels: Sequence[Level],
    methods: Sequence[Method],
    seeds: Sequence[int],
    *,
    complete: bool = True,
) -> tuple[Cell, ...]:
    """All runs, seed by seed; BCE on complete and on reduced labels is always among them.

    Where labels are not complete, all methods learn from them as they are, and from levels.

    Example:
        >>> from hilltop.studies.compare import parse_level
        >>> [str(cell) for cell in plan_cells([parse_level("0.4")], [Method("hill")], [0])]
        ['complete bce seed 0', '0.4 bce seed 0', '0.4 hill seed 0']
    """
    cells = [
        Cell(level, method, seed)
        for seed in seeds
        for level in (COMPLETE if complete else GIVEN, *levels)
        for method in (BASELINE, *(() if level == COMPLETE else methods))
    ]
    return tuple(dict.fromkeys(cells))


class Study:
    """The folder of a comparison: labels of every level, and a run folder for every cell.

    Args:
        folder: Where everything lies.
        base: How every run is trained; its labels are the complete ones, unless it says that what
            is not listed is unknown. The seed decides which labels are dropped and how training
            goes.
    """

    def __init__(self, folder: Path, base: TrainConfig) -> None:
        """Keep folder and settings; nothing is read or written yet."""
        self.folder, self.base = folder, base.resolved()

    @property
    def complete(self) -> bool:
        """Whether the user's labels are complete; otherwise methods are judged by estimates."""
        return labels_are_complete(self.base)

    @property
    def _source(self) -> Level:
        return COMPLETE if self.complete else GIVEN

    def run_folder(self, cell: Cell) -> Path:
        """Where the run of a cell lies."""
        return self.folder / "runs" / cell.level.name / cell.method.folder / str(cell.seed)

    def labels(self, level: Level, seed: int) -> Path:
        """Where the training labels of a level lie; given and complete ones are for all seeds."""
        stem = level.name if level.r is None else f"{level.name}-seed{seed}"
        return self.folder / "labels" / f"{stem}.parquet"

    def config(self, cell: Cell) -> TrainConfig:
        """Settings of one run. Where the truth is known, what is turned over is recorded."""
        return dataclasses.replace(
            self.base,
            images=_absolute(self.base.images),
            features=_absolute(self.base.features),
            extra_scores=_absolute(self.base.extra_scores),
            extra_names=_absolute(self.base.extra_names),
            labels=self.labels(cell.level, cell.seed).resolve(),
            val_labels=self.labels(_VAL, cell.seed).resolve(),
            true_labels=self.labels(COMPLETE, 0).resolve() if self.complete else None,
            format=None,
            loss=cell.method.loss,
            loss_options={**self.base.loss_options, **dict(cell.method.options)},
            pseudo_label=cell.method.pseudo_label,
            seed=cell.seed,
            report=False,
        )

    def prepare(self, cells: Sequence[Cell]) -> None:
        """Write the labels that the cells need, and check that nothing has changed since."""
        self.base.check()
        read = read_complete if self.complete else read_reduced
        complete = read(self.base.labels, self.base)
        assert self.base.val_labels is not None
        val = read(self.base.val_labels, self.base).with_classes(complete.classes)
        known = {"labels": _digest(complete), "val_labels": _digest(val)}
        if self.base.features is not None:
            known["features"] = _file_digest(self.base.features)
        tables = {self.labels(self._source, 0): complete, self.labels(_VAL, 0): val}
        for level in dict.fromkeys(cell.level for cell in cells):
            known[f"level {level.name}"] = f"r={level.r}"
            if level.labels is not None:
                table = read_reduced(level.labels, self.base).with_classes(complete.classes)
                tables[self.labels(level, 0)] = table
                known[f"level {level.name}"] = _digest(table)
        self._remember(known)
        for path, table in tables.items():
            _write_once(table, path)
        for level, seed in dict.fromkeys((cell.level, cell.seed) for cell in cells):
            path = self.labels(level, seed)
            if level.r is not None and not path.exists():
                _write_once(drop_positives(complete, level.r, seed=seed).table, path)
        self.check(cells)

    def check(self, cells: Sequence[Cell]) -> None:
        """Raise if one of the cells was trained with other settings."""
        for cell in cells:
            check_settings(self.run_folder(cell), self.config(cell))

    @property
    def begun(self) -> bool:
        """Whether earlier calls have left something in the folder."""
        return (self.folder / _NOTES).is_file()

    def _remember(self, known: dict[str, str]) -> None:
        """Compare with what earlier calls noted, and note what is new."""
        path = self.folder / _NOTES
        before: dict[str, str] = {}
        if path.is_file():
            before = read_json(path, "Restore it, or choose another --out.")
            if not isinstance(before, dict):
                raise data_error(
                    path, "expected a JSON object. Restore it, or choose another --out."
                )
        for name in sorted(set(before) & set(known)):
            told = name.replace("_", " ").replace("level ", "labels of level ")
            if before[name] != known[name]:
                raise data_error(
                    self.folder,
                    f"its runs were made with other {told} than those given now;"
                    " choose another --out, or give the same again.",
                )
        self.folder.mkdir(parents=True, exist_ok=True)
        atomic_write(path, json.dumps({**before, **known}, indent=2, sort_keys=True) + "\n")


_NOTES = "study.json"
_VAL = Level("val", "validation labels")


def labels_are_complete(config: TrainConfig) -> bool:
    """Whether the user has not said that pairs that are not listed are unknown."""
    return config.reading.unlisted != "unknown"


def read_complete(path: Path, config: TrainConfig) -> LabelTable:
    """Read labels that the user says are complete: what is not listed is absent."""
    options = dataclasses.replace(config.reading, unlisted=config.reading.unlisted or "absent")
    return read_labels(path, format=config.format, options=options)


def read_reduced(path: Path, config: TrainConfig) -> LabelTable:
    """Read labels of which some were left out: what is not listed is unknown."""
    options = dataclasses.replace(config.reading, unlisted="unknown")
    table = read_labels(path, format=config.format, options=options)
    # A format of our own may say "absent" all the same. Taken at its word, every pair would be
    # confirmed, and no method would correct a single one.
    return drop_positives(table, 0, seed=0).table


def check_settings(folder: Path, config: TrainConfig) -> None:
    """Raise if a run in this folder was trained with other settings than these."""
    stored = RunFolder(folder).config
    if not stored.is_file():
        return
    before, now = TrainConfig.from_file(stored).as_dict(), config.resolved().as_dict()
    changes = [
        f"{name} was {old!r} and is now {new!r}"
        for name, old, new in _differences(before, now)
        if name.partition(".")[0] not in _FREE
    ]
    if changes:
        raise ConfigError(
            f"{folder}: this run was made with other settings: {'; '.join(changes)}."
            " Choose another --out, or delete this folder to train it again."
        )


def _differences(
    one: dict[str, Any], other: dict[str, Any], prefix: str = ""
) -> list[tuple[str, Any, Any]]:
    found = []
    for key in one:
        if isinstance(one[key], dict) and isinstance(other[key], dict) and key != "loss_options":
            found += _differences(one[key], other[key], f"{prefix}{key}.")
        elif one[key] != other[key]:
            found.append((f"{prefix}{key}", one[key], other[key]))
    return found


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else path.resolve()


def _write_once(table: LabelTable, path: Path) -> None:
    """Write labels completely or not at all, unless they are there."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_labels(table, path, format="hilltop")


def _digest(table: LabelTable) -> str:
    """A number for what the labels say, whatever format they came in."""
    total = hashlib.sha256(json.dumps([table.images.to_pylist(), table.classes]).encode())
    for array in (table.indptr, table.columns, table.states):
        total.update(array.tobytes())
    return total.hexdigest()[:16]


def _file_digest(path: Path) -> str:
    """A number for a file of features: its size, beginning and end; all of it would take long."""
    size, part = path.stat().st_size, 1 << 20
    with path.open("rb") as file:
        total = hashlib.sha256(file.read(part))
        file.seek(max(0, size - part))
        total.update(file.read(part))
    return f"{size}-{total.hexdigest()[:16]}"
