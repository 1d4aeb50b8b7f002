"""The folder that a run leaves behind: its files, their names, and how they are written."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write, holding_alone
from hilltop.data.review_record import provenance_path

_RUNS = Path("runs")
"""Where runs are that nobody has given a folder."""


class RunFolder:
    """Names and writes the files of a run."""

    def __init__(self, path: Path) -> None:
        """Point at a folder, which need not exist yet."""
        self.path = path
        self.config = path / "config.yaml"
        self.metrics = path / "metrics.csv"
        self.events = path / "events.jsonl"
        self.steps = path / "steps.json"
        self.out_of_fold = (
            path / "out_of_fold.npy"
        )  # of training images, by heads that never saw them
        self.best = path / "best.safetensors"
        self.last = path / "last.safetensors"
        self.state = path / "resume.safetensors"
        self.train_labels = path / "train_labels.parquet"
        self.val_labels = path / "val_labels.parquet"
        self.val_scores = path / "val_scores.npy"  # of the best epoch
        self.last_scores = path / "last_val_scores.npy"
        self.histograms = path / "histograms.npz"
        inside = (path.parent / self.config.name).is_file()  # the first of two stages
        whole = path.parent if inside else path
        # Outputs of frozen blocks are shared in a folder of runs; any other is the user's own.
        runs = (folder for folder in list(whole.parents)[:3] if folder.name == "runs")
        self.outputs = next(runs, whole) / "outputs"

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that a run writes."""
        return (
            self.config,
            self.metrics,
            self.events,
            self.steps,
            self.out_of_fold,
            self.best,
            self.last,
            self.state,
            self.train_labels,
            self.val_labels,
            self.val_scores,
            self.last_scores,
            self.histograms,
            self.truth("best"),
            self.truth("last"),
            self.path / "report.html",
            self.path / "curves.png",
            self.path / "broken.txt",
        )

    def truth(self, which: str) -> Path:
        """What the scores of the last or best weights mean."""
        return self.path / f"{which}.truth.safetensors"

    def check(self) -> None:
        """Raise if no run was ever started here."""
        if not self.config.is_file():
            raise data_error(
                self.path, "there is no run here: config.yaml is missing. Name the folder of a run."
            )

    def create(self, config: Mapping[str, Any]) -> None:
        """Make the folder and write the configuration; a folder in use is left alone."""
        if self.config.exists():
            raise data_error(
                self.path, "there is a run here already. Choose another --out, or resume it."
            )
        taken = [path.name for path in self.files if path.exists()]
        if taken:
            raise data_error(
                self.path,
                f"this folder holds {taken[0]}, which a run would replace. Choose another --out.",
            )
        self.path.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True)
        atomic_write(self.config, text)

    def record(self, rows: list[dict[str, Any]]) -> None:
        """Write all rows of metrics, one an epoch; numbers keep every digit."""
        text = io.StringIO()
        # A run that an earlier version began has fewer columns in its first rows.
        names = list(dict.fromkeys(name for row in rows for name in row)) or ["epoch"]
        writer = csv.DictWriter(text, names, restval="nan", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        atomic_write(self.metrics, text.getvalue())

    def recorded(self) -> list[dict[str, Any]]:
        """Read the rows of metrics."""
        if not self.metrics.exists():
            return []
        try:
            with self.metrics.open(newline="", encoding="utf-8") as file:
                return [
                    {
                        key: int(value) if key == "epoch" else float(value)
                        for key, value in row.items()
                    }
                    for row in csv.DictReader(file)
                ]
        except (TypeError, ValueError, csv.Error):
            raise data_error(
                self.metrics,
                "this is not a table of numbers. Restore it, or remove it to go on without the"
                " metrics of earlier epochs.",
            ) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep the folder for this process, as long as it lives.

        Raises:
            DataError: Another process trains in it.
        """
        busy = "another process trains in this folder. Wait for it, or stop it."
        with holding_alone(self.path, busy):
            yield

    def discard(self) -> None:
        """Remove the files of a run that never made a step, and the folder if nothing is left."""
        for path in self.files:
            path.unlink(missing_ok=True)
        provenance_path(self.train_labels).unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()
            if self.path.parent == _RUNS:
                _RUNS.rmdir()

    def event(self, kind: str, **details: Any) -> None:
        """Append one line to the events; times and rates are here, not in the metrics."""
        line = json.dumps({"time": round(time.time(), 3), "event": kind, **details})
        with self.events.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def default_folder(name: str) -> Path:
    """Return ``runs/<date>-<name>``, with a number behind it if that is taken."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    first = _RUNS / f"{time.strftime('%Y-%m-%d')}-{stem}"
    path, number = first, 1
    while path.exists():
        number += 1
        path = first.with_name(f"{first.name}-{number}")
    return path
