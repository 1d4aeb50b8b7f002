"""Attacks by files: damaged labels, features and scores."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hilltop.data import (
    FORMATS,
    LabelTable,
    ReadOptions,
    State,
    read_labels,
    write_labels,
)
from hilltop.errors import HilltopError
from tests.attack.outcome import Outcome
from tests.data.fuzz import mutations

NAMES = {"huggingface": "metadata.csv", "huggingface_dataset": "labels.parquet"}
READING = ReadOptions(unlisted="unknown", minus_one="absent", zero="unknown", empty="unknown")


def small_table(images: int = 12) -> LabelTable:
    rows = [row for row in range(images) for _ in range(1 + row % 3)]
    columns = [column for row in range(images) for column in range(1 + row % 3)]
    return LabelTable.from_coo(
        [f"{row}.jpg" for row in range(images)], ["cat", "dog", "eel", "fox"], rows, columns,
        State.PRESENT, unlisted=State.ABSENT,
    )  # fmt: skip


def damaged_labels(folder: Path, tries: int) -> Outcome:
    """Read mutated label files of every format that is one file."""
    found = Outcome("mutated label files end in a table or a sentence")
    written = list(_label_files(folder))
    for name, path in written:
        whole = path.read_bytes()
        for content in mutations(whole, tries // len(written), seed=len(name)):
            path.write_bytes(content)
            try:
                read_labels(path, format=name, options=READING)
                found.tries += 1
            except HilltopError:
                found.tries += 1
            except Exception as error:
                found.expect(False, f"{name}: {error!r}")
    return found


def _label_files(folder: Path) -> Iterator[tuple[str, Path]]:
    for name in FORMATS:
        path = folder / f"labels-{name}" / NAMES.get(name, "labels.csv")
        path.parent.mkdir()
        with contextlib.suppress(HilltopError):
            write_labels(small_table(), path, format=name, lossy=True)
        if path.is_file():
            yield name, path


def damaged_arrays(folder: Path, tries: int) -> Outcome:
    """Evaluate and train on damaged features and scores; a traceback is a fault."""
    from hilltop.data.scores import ScoreTable
    from hilltop.inputs.features import read_features

    found = Outcome("damaged features and scores end in numbers or a sentence")
    table = small_table(60)
    values = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    files = {name: folder / f"features{name}" for name in (".npz", ".npy", ".parquet")}
    np.savez_compressed(files[".npz"], ids=np.array(table.images.to_pylist()), X=values)
    np.save(files[".npy"], values)
    (folder / "features.ids.txt").write_text(
        "".join(f"{one}\n" for one in table.images.to_pylist())
    )
    _write_parquet(files[".parquet"], table, values)
    scores = folder / "scores.npy"
    ScoreTable(table.images, table.classes, values).save(scores)
    places = [*files.values(), scores, Path(f"{scores}.names.parquet")]
    for path in places:
        whole = path.read_bytes()
        for content in mutations(whole, tries // len(places), seed=7):
            path.write_bytes(content)
            try:
                ScoreTable.load(scores) if "scores" in path.name else read_features(path)
                found.tries += 1
            except HilltopError:
                found.tries += 1
            except Exception as error:
                found.expect(False, f"{path.name}: {error!r}")
        path.write_bytes(whole)
    return found


def _write_parquet(path: Path, table: LabelTable, values: np.ndarray) -> None:  # type: ignore[type-arg]
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"image": table.images, "features": values.tolist()}), path)
