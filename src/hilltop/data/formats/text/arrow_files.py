"""Tables of Arrow written as Parquet or CSV, completely or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from hilltop.data.files import replacing

CSV_STYLE = pa_csv.WriteOptions(quoting_style="needed")
"""Quotes stand where they are needed alone."""


def write_parquet(content: pa.Table, path: Path, **options: Any) -> None:
    """Write a Parquet file; the options are those of pyarrow."""
    with replacing(path) as temporary:
        pq.write_table(content, temporary, **options)


def write_arrow(content: pa.Table, path: Path) -> None:
    """Write Parquet where the name ends so, and CSV otherwise."""
    if path.suffix.lower() == ".parquet":
        write_parquet(content, path)
        return
    with replacing(path) as temporary:
        pa_csv.write_csv(content, temporary, CSV_STYLE)
