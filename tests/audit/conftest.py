"""One small audit with drawn images, and one with names that try to be more than names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hilltop.audit.folder import AuditFolder
from hilltop.data import drop_positives, write_labels
from hilltop.inputs.synthetic import write_dataset
from tests.audit.made_up import Pair, write_audit
from tests.audit.review.tab import CHROMIUM, QUIET

HOSTILE = (
    "<script>alert(1)</script>",
    "\"quoted\" 'twice' & <b>bold</b>",
    "</script><img src=x onerror=alert(2)>",
    "naïve ☂ עברית 猫",
    "two\nlines",
)


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 60 drawn images, their labels thinned, and every unknown pair a candidate."""
    root = tmp_path_factory.mktemp("drawn")
    full = write_dataset(root, images=60, size=64, seed=5)
    thinned = drop_positives(full, "0.8", seed=0).table
    write_labels(thinned, root / "thinned.csv", format="list_column", lossy=True)
    return root


@pytest.fixture
def audit(drawn: Path, tmp_path: Path) -> AuditFolder:
    """A fresh audit of the drawn images; its labels are a CSV of lists."""
    labels = tmp_path / "labels.csv"
    shutil.copy(drawn / "thinned.csv", labels)
    return write_audit(tmp_path / "audit", labels, format="list_column", images=drawn / "images")


@pytest.fixture
def hostile(tmp_path: Path) -> AuditFolder:
    """An audit whose image and class names hold markup, quotes, line ends and other scripts."""
    from hilltop.data import LabelTable, State

    names = [f"{name} {number}" for number, name in enumerate(HOSTILE)]
    table = LabelTable.from_coo(
        names, HOSTILE, [0, 1], [1, 0], State.PRESENT, unlisted=State.UNKNOWN
    )
    labels = tmp_path / "labels.parquet"
    write_labels(table, labels, format="hilltop")
    pairs: list[Pair] = [(image, name, 0.5) for image in names for name in HOSTILE]
    return write_audit(tmp_path / "audit", labels, format="hilltop", pairs=pairs)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET.split())
        yield started
        started.close()
