"""The folder that a run leaves behind: its files, their names, and how they are written."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write


class RunFolder:
    """Names and writes the files of a run."""

    def __init__(self, path: Path) -> None:
        """Point at a folder, which need not exist yet."""
        self.path = path
        self.config = path / "config.yaml"
        self.metrics = path / "metrics.csv"
        self.events = path / "events.jsonl"
        self.best = path / "best.safetensors"
        self.last = path / "last.safetensors"
        self.state = path / "resume.safetensors"
        self.train_labels = path / "train_labels.parquet"
        self.val_labels = path / "val_labels.parquet"
        self.val_scores = path / "val_scores.npy"
        self.histograms = path / "histograms.npz"

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
        self.path.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True)
        atomic_write(self.config, text)

    def record(self, rows: list[dict[str, Any]]) -> None:
        """Write all rows of metrics, one an epoch; numbers keep every digit."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]) if rows else ["epoch"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        atomic_write(self.metrics, text.getvalue())

    def recorded(self) -> list[dict[str, Any]]:
        """Read the rows of metrics."""
        if not self.metrics.exists():
            return []
        with self.metrics.open(newline="") as file:
            return [
                {key: int(value) if key == "epoch" else float(value) for key, value in row.items()}
                for row in csv.DictReader(file)
            ]

    def event(self, kind: str, **details: Any) -> None:
        """Append one line to the events; times and rates are here, not in the metrics."""
        line = json.dumps({"time": round(time.time(), 3), "event": kind, **details})
        with self.events.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def default_folder(name: str) -> Path:
    """Return ``runs/<date>-<name>``, with a number behind it if that is taken."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    first = Path("runs") / f"{time.strftime('%Y-%m-%d')}-{stem}"
    path, number = first, 1
    while path.exists():
        number += 1
        path = first.with_name(f"{first.name}-{number}")
    return path
