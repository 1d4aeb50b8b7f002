"""What does an answer on the review page cost, and what does learning from answers?

An audit of one class is answered until 0, 2,000 and 30,000 answers are stored; then the next are
timed, from the request to the answer on disk, and a whole ranking anew. The time of an answer must
not grow with those before it. The last line is a ranking anew of 12,000 images for all 80 classes.

Then real servers, with a million candidates of 80 and of 20,000 classes: seconds until a browser
has the first pictures, milliseconds of an answer of 50 people who answer at once without a pause,
from the request to the answer on disk, the server's own milliseconds of the processor for it, which
other work on the machine does not change, and the most memory that the server held.

Run it with: python benchmarks/answering.py [--quick]
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hilltop.audit.decisions.store import Answer, now
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.ranking import LiveRanking
from hilltop.audit.review.session import Review
from hilltop.data import LabelTable, ReadOptions, State, write_labels
from results import parser

NAME, WIDTH, TIMED = "dog", 128, 61
PEOPLE, ANSWERS = 50, 20


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
    ranking = LiveRanking(index, directions, lambda _: known)
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


def write_candidates(path: Path, images: int, classes: int, each: int) -> AuditFolder:
    """An audit with as many candidates of each class, without features."""
    folder = write_audit(path, images)
    names = [f"class {number:05}" for number in range(classes)]
    ids = [f"{number:06}.jpg" for number in range(images)]
    table = LabelTable.from_coo(ids, names, [0], [0], State.PRESENT, unlisted=State.UNKNOWN)
    write_labels(table, folder.labels, format="hilltop")
    rng = np.random.default_rng(0)
    rows = np.stack([1 + rng.choice(images - 1, each, replace=False) for _ in range(classes)])
    pairs = {
        "image": pa.array(ids).take(pa.array(rows.ravel())),
        "class": pa.array(names).take(pa.array(np.repeat(np.arange(classes), each))),
        "probability": pa.array(np.sort(rng.random(rows.size).astype(np.float32))[::-1]),
        "rank": np.arange(1, rows.size + 1),
    }
    pq.write_table(pa.table(pairs), folder.candidates)
    folder.directions.unlink()
    return folder


class Client:
    """One person at the page, over one connection that stays open."""

    def __init__(self, address: str, name: str) -> None:
        """Open the page."""
        parts = urlsplit(address)
        self.name, self.host = name, parts.netloc
        self.connection = http.client.HTTPConnection(parts.netloc, timeout=300)
        self.cookie = ""
        self.cookie = self.ask(f"/?{parts.query}")[0]["set-cookie"].partition(";")[0]

    def ask(self, path: str, content: object = None) -> tuple[dict[str, str], bytes]:
        """Ask, and return headers and content of the reply."""
        body = None if content is None else json.dumps(content)
        headers = {"Cookie": self.cookie, "Content-Type": "application/json"}
        headers |= {} if body is None else {"Origin": f"http://{self.host}"}
        try:
            self.connection.request("GET" if body is None else "POST", path, body, headers)
            reply = self.connection.getresponse()
        except ConnectionError:  # closed after seconds of silence; the next request opens it again
            self.connection.close()
            self.connection.request("GET" if body is None else "POST", path, body, headers)
            reply = self.connection.getresponse()
        given = reply.read()
        assert reply.status == 200, given
        return {name.lower(): value for name, value in reply.getheaders()}, given

    def answer(self, number: int, times: list[float]) -> None:
        """Answer the first pairs of a class, one request each."""
        asked = f"/api/pairs?class={number}&count=48&reviewer={self.name}"
        page = json.loads(self.ask(asked)[1])
        for pair in page["pairs"][:ANSWERS]:
            own = f"{self.name}-{number}-{pair['row']}"
            event = {"id": own, "action": own, "class": page["class"]["name"], "mode": "ranked"}
            event |= {"answer": "present", "row": pair["row"], "image": pair["image"]}
            began = time.perf_counter()
            self.ask("/api/events", {"reviewer": self.name, "events": [event]})
            times.append(1000 * (time.perf_counter() - began))


def first_picture(address: str) -> float:
    """Seconds from opening the page to its first pictures; nan without a browser."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return float("nan")
    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page()
        page.add_init_script("localStorage.setItem('hilltop-reviewer', 'First')")
        began = time.perf_counter()
        page.goto(address)
        page.wait_for_selector(".tile", timeout=300_000)
        seconds = time.perf_counter() - began
        browser.close()
    return seconds


def processor_seconds(pid: int) -> float:
    """What a process has worked so far."""
    cells = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(cells[11]) + int(cells[12])) / os.sysconf("SC_CLK_TCK")


def served(path: Path, images: int, classes: int, each: int) -> None:
    """Start a server, let a browser and then 50 people in, and print what they saw."""
    folder = write_candidates(path, images, classes, each)
    command = [sys.executable, "-m", "hilltop", "review", str(folder.path), "--port", "0"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = next(line for line in process.stdout if "Review at" in line)
        started = time.perf_counter() - began
        address = said.split("Review at ")[1].split()[0]
        paint = first_picture(address)
        people = [Client(address, f"P{number}") for number in range(PEOPLE)]
        worked = processor_seconds(process.pid)
        times: list[float] = []
        threads = [
            threading.Thread(target=one.answer, args=(at % classes, times))
            for at, one in enumerate(people)
        ]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rate = len(times) / (time.perf_counter() - began)
        worked = processor_seconds(process.pid) - worked
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    finally:
        process.terminate()
        process.wait()
    assert len(times) == PEOPLE * ANSWERS
    middle, worst = np.percentile(times, [50, 99])
    each_ms = 1000 * worked / len(times)
    print(
        f"{classes * each:,} candidates of {classes:,} classes: server after {started:.1f} s, first"
        f" pictures {paint:.1f} s, {PEOPLE} people at once: p50 {middle:.0f} ms, p99 {worst:.0f} ms"
        f" ({rate:.0f} answers a second, {each_ms:.1f} ms of the processor each), {peak:,.0f} MiB",
        flush=True,
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
        for images, classes, each in ((12_501, 80, 12_500), (50_001, 20_000, 50)):
            images, each = (images // 10, each // 10) if quick else (images, each)
            served(Path(scratch) / f"{classes}", images, classes, each)
    all_classes(1000 if quick else 12_000, 8 if quick else 80, 100)


if __name__ == "__main__":
    main()
