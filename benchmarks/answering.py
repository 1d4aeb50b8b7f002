"""What does an answer on the review page cost, and what does learning from answers?

An audit of one class is answered until 0, 2,000 and 30,000 answers are stored; then the next are
timed, from the request to the answer on disk, and a whole ranking anew. The time of an answer must
not grow with those before it. The last line is a ranking anew of 12,000 images for all 80 classes.

Run it with: python benchmarks/answering.py [--quick]
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hilltop.audit.decisions.store import Answer, now
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.ranking import Ranking
from hilltop.audit.review.session import Review
from hilltop.data import LabelTable, ReadOptions, State, write_labels
from results import parser

NAME, WIDTH, TIMED = "dog", 128, 61


def write_audit(path: Path, images: int) -> AuditFolder:
    """An audit of one class, with the directions by which the page learns."""
    path.mkdir()
    ids = [f"{number:06}.jpg" for number in range(images)]
    table = LabelTable.from_coo(ids, [NAME], [0], [0], State.PRESENT, unlisted=State.UNKNOWN)
    write_labels(table, path / "labels.parquet", format="hilltop")
    rng = np.random.default_rng(0)
    probs = np.sort(rng.random(images - 1).astype(np.float32))[::-1]
    pairs = {"image": ids[1:], "class": [NAME] * (images - 1), "probability": pa.array(probs)}
    pq.write_table(pa.table({**pairs, "rank": np.arange(1, images)}), path / "candidates.parquet")
    folder = AuditFolder(
        path=path,
        labels=path / "labels.parquet",
        format="hilltop",
        reading=ReadOptions(),
        images=None,
        images_total=images,
        keep_rate=0.4,
        created=now(),
    )
    folder.write()
    values = rng.standard_normal((images, WIDTH)).astype(np.float16)
    np.savez(folder.directions, rows=np.arange(images), values=values)
    return folder


def answer(review: Review, row: int) -> tuple[float, float]:
    """Record one answer; seconds that pass, and seconds of the processor in this thread."""
    event = {"id": f"e{row}", "action": f"e{row}", "class": NAME, "answer": "present"}
    asked = {**event, "mode": "ranked", "row": row, "image": review.labels.images[row].as_py()}
    began, worked = time.perf_counter(), time.thread_time()
    review.record("Ann", [asked])
    return time.perf_counter() - began, time.thread_time() - worked


def measure(folder: AuditFolder, before: int, after: int) -> None:
    """Store answers up to a number, then time the next ones and a ranking anew."""
    review = Review(folder)
    image = review.labels.images
    review.store.add(
        [
            Answer(
                f"b{row}",
                f"b{row}",
                "Ann",
                now(),
                image[row].as_py(),
                NAME,
                "absent",
                "ranked",
                0.5,
            )
            for row in range(before, after + 1)
        ]
    )
    answer(review, after + 1)  # takes in what was stored
    times = [answer(review, after + 2 + at) for at in range(TIMED)]
    review.ranking.close()
    began = time.process_time()
    review.ranking.learn(0)
    learned = time.process_time() - began
    passed, worked = (1000 * median(column) for column in zip(*times, strict=True))
    print(
        f"{after:6} answers: {passed:6.2f} ms an answer ({worked:5.2f} ms of the processor),"
        f" {1000 * learned:6.0f} ms a ranking anew",
        flush=True,
    )
    review.close()


def all_classes(images: int, classes: int, answers: int) -> None:
    """Rank all classes anew after some answers to each."""
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((images, WIDTH)).astype(np.float32)
    rows = np.tile(np.arange(images, dtype=np.int32), classes)
    probs = rng.random(images * classes).astype(np.float32)
    index = CandidateIndex(rows, probs, np.arange(classes + 1) * images)
    known = np.arange(answers), rng.random(answers) < 0.5
    ranking = Ranking(index, directions, lambda _: known)
    for column in range(classes):
        ranking.order(column)  # near-duplicates are found once, when a class is opened
    began = time.process_time()
    for column in range(classes):
        ranking.learn(column)
    seconds = time.process_time() - began
    ranking.close()
    print(
        f"{images} images x {classes} classes, {answers} answers each: {seconds:.2f} s for all,"
        f" {1000 * seconds / classes:.0f} ms a class"
    )


def main() -> None:
    """Print a line for each number of answers."""
    quick = parser(__doc__).parse_args().quick
    numbers = (0, 200, 1000) if quick else (0, 2_000, 30_000)
    with tempfile.TemporaryDirectory() as scratch:
        folder = write_audit(Path(scratch) / "audit", numbers[-1] + 1000)
        before = 1
        for number in numbers:
            measure(folder, before, number)
            before = number + TIMED + 10
    all_classes(1000 if quick else 12_000, 8 if quick else 80, 100)


if __name__ == "__main__":
    main()
