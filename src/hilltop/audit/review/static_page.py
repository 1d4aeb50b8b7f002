"""A review page in one file, for annotators without Python: pictures inside, answers saved to a file.

The file comes back with ``hilltop apply DIR --answers FILE`` or ``hilltop review DIR --import FILE``.
"""  # noqa: E501 (the command is one line)

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hilltop.audit.find.candidate_index import CandidateIndex, Ints
from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.queues import Purpose, Queue, build_queue
from hilltop.audit.review.summaries import Expectations
from hilltop.audit.review.thumbnails import ImageStore
from hilltop.checks import check_whole
from hilltop.data import LabelTable
from hilltop.data.files import atomic_write, check_folder
from hilltop.errors import DataError

PAGE = Path(__file__).with_name("page")
SCRIPTS = (
    "words",
    "queue",
    "grid",
    "classes",
    "panels",
    "zoom",
    "whole",
    "keys",
    "answers",
    "people",
    "search",
    "team",
    "page",
)
"""What runs behind the client, which talks to a server or to the page's own file."""


def write_static_review(
    folder: AuditFolder,
    out: Path,
    *,
    top: int = 200,
    images: Path | None = None,
    purpose: Purpose = "labels",
    classes: Sequence[str] = (),
) -> int:
    """Write a page with pairs that nobody has answered yet.

    Args:
        folder: The audit.
        out: The HTML file to write.
        top: How many pairs; a picture takes about 30 kB.
        images: Where the images are now, if not where the audit found them.
        purpose: What the answers are for, see :func:`build_queue`.
        classes: Ask about these alone; about all without any.

    Returns:
        The number of pairs in the page.
    """
    check_whole("top", top, low=1)
    check_folder(out)
    labels = folder.table()
    queue = build_queue(folder, purpose, top, classes=classes)
    path = folder.suspects if purpose == "wrong" else folder.candidates
    said = Expectations.read(folder, labels, CandidateIndex.read_file(path, labels))
    shown = _classes(labels, queue, said, wrong=purpose == "wrong")
    pictures = _pictures(folder, labels, images, shown)
    content = {
        "audit": folder.created,
        "labels": folder.labels.name,
        "summary": folder.summary,
        "classes": shown,
        "pictures": pictures,
    }
    # Two pages of one audit with different pairs must not share what the browser keeps.
    digest = hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()
    atomic_write(out, _html({**content, "id": digest[:16]}))
    return len(queue)


def _classes(
    labels: LabelTable, queue: Queue, said: Expectations, *, wrong: bool
) -> list[dict[str, Any]]:
    """The pairs of a queue, each class with its own, and what the audit expects among them."""
    told = said.wrong if wrong else said.missing
    factors = told / np.maximum(said.listed, 1e-9)
    return [
        {
            "number": int(column),
            "name": labels.classes[column],
            "expected": round(
                min(
                    len(mine),
                    factors[column] * queue.probabilities[mine].sum(dtype=np.float64),
                ),
                1,
            ),
            "most": None if told[column] or wrong else round(float(said.most[column]), 1),
            "pairs": [_pair(labels, queue, int(at)) for at in mine],
        }
        for column in np.unique(queue.columns)
        for mine in [np.flatnonzero(queue.columns == column)]
    ]


def _pair(labels: LabelTable, queue: Queue, at: int) -> dict[str, Any]:
    row = int(queue.rows[at])
    return {
        "row": row,
        "image": labels.images[row].as_py(),
        "probability": round(float(queue.probabilities[at]), 4),
        "labels": labels.labels_of(row),
    }


def _pictures(
    folder: AuditFolder, labels: LabelTable, images: Path | None, classes: list[dict[str, Any]]
) -> dict[int, str]:
    where = images or folder.images
    if where is None:
        return {}
    rows: Ints = np.unique([pair["row"] for one in classes for pair in one["pairs"]])
    store = ImageStore(where, labels, rows.astype(np.int64))
    found = {}
    for row in rows.tolist():
        if row in store:
            try:
                encoded = base64.b64encode(store.jpeg(row, "small")).decode()
            except DataError:
                continue  # the page shows the name and says that there is no picture
            found[row] = f"data:image/jpeg;base64,{encoded}"
    return found


def _html(content: dict[str, Any]) -> str:
    """Put style, data and scripts into the page; only these scripts may run in it."""
    page = (PAGE / "page.html").read_text(encoding="utf-8")
    style = (PAGE / "page.css").read_text(encoding="utf-8")
    scripts = [
        (PAGE / f"{name}.js").read_text(encoding="utf-8") for name in ("file_client", *SCRIPTS)
    ]
    # No "<" in the data, so that no name in it can end the script that holds it.
    data = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none';"
        f" style-src {_hash(style)}; script-src {' '.join(map(_hash, scripts))}"
    )
    page = re.sub(r"<(?:script|link) [^\n]*\n", "", page)
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
    )
    tail = f'<script type="application/json" id="review-data">{data}</script>\n'
    tail += "".join(f"<script>{script}</script>\n" for script in scripts)
    before, closing, after = page.partition("</head>")
    body, end, rest = after.partition("</body>")
    return f"{before}{head}{closing}{body}{tail}{end}{rest}"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
