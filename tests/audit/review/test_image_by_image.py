"""Image by image: labels to keep or strike, what is lacking, and any class by name."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.queues import build_queue
from hilltop.audit.review.session import Review
from hilltop.cli.main import main
from hilltop.data import read_labels
from hilltop.errors import ArgumentError
from tests.audit.made_up import write_candidates
from tests.audit.review.serving import serving, stored
from tests.audit.review.tab import CHROMIUM, Tab


@pytest.fixture
def three(audit: AuditFolder) -> AuditFolder:
    """An audit that knows of three images what they may lack, and doubts one label."""
    labels = audit.table()
    names = labels.images.to_pylist()
    others = [one for one in labels.classes if one not in labels.labels_of(0)]
    pairs = [(names[0], others[0], 0.9), (names[0], others[1], 0.4), (names[0], others[2], 0.001)]
    free = [one for one in labels.classes if one not in labels.labels_of(1)]
    write_candidates(audit.candidates, [*pairs, (names[1], free[0], 0.95)])
    write_candidates(audit.suspects, [(names[0], labels.labels_of(0)[0], 0.7)])
    return audit


def test_the_image_that_lacks_most_comes_first_with_its_labels(three: AuditFolder) -> None:
    review = Review(three)
    page = review.image(place=None, reviewer="Ann")
    labels = review.labels
    review.close()
    assert (page["place"], page["total"], page["row"]) == (0, 2, 0)
    items = page["items"]
    assert [one["class"] for one in items if one["label"]] == list(labels.labels_of(0))
    assert items[0]["probability"] == pytest.approx(0.7)
    assert [one["probability"] for one in items if not one["label"]] == [0.9, 0.4, 0.001]


def test_a_class_that_is_no_candidate_needs_to_be_named_on_purpose(three: AuditFolder) -> None:
    review = Review(three)
    labels = review.labels
    free = [one for one in labels.classes if one not in labels.labels_of(0)][5]
    event: dict[str, Any] = {"id": "a", "action": "a", "image": labels.images[0].as_py()}
    event |= {"row": 0, "class": free, "answer": "present", "mode": "ranked"}
    with pytest.raises(ArgumentError, match="is not a candidate"):
        review.record("Ann", [event])
    review.record("Ann", [{**event, "by_name": True}])
    added = [one for one in review.image(place=0, reviewer="Ann")["items"] if one["class"] == free]
    review.close()
    assert [(one["answer"], one["label"]) for one in added] == [("present", False)]


def test_the_queue_by_image_keeps_images_together_and_comes_back(
    three: AuditFolder, tmp_path: Path
) -> None:
    queue = build_queue(three, "images", 2)
    assert set(queue.rows.tolist()) == {0}
    assert queue.labelled is not None
    assert queue.labelled.sum() == len(three.table().labels_of(0))
    out = tmp_path / "queue.csv"
    arguments = ["queue", str(three.path), "--for", "images", "--number", "99", "--out", str(out)]
    assert main(arguments) == 0
    with out.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["labelled"] for line in lines[:4]] == ["no", "no", "no", "yes"]
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*lines[0], "answer"])
        writer.writeheader()
        writer.writerow({**lines[0], "answer": "yes"})
        writer.writerow({**lines[3], "answer": "no"})
    assert main(["review", str(three.path), "--import", str(out)]) == 0
    corrected = tmp_path / "corrected.csv"
    assert main(["apply", str(three.path), "--out", str(corrected)]) == 0
    after = read_labels(corrected, options=three.reading).labels_of(0)
    assert lines[0]["class"] in after
    assert lines[3]["class"] not in after
    left = build_queue(three, "images", 99)
    assert len(left) == len(lines) - 2


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
def test_a_picture_is_done_by_keys_alone(three: AuditFolder, browser: Any) -> None:
    labels = three.table()
    free = [one for one in labels.classes if one not in labels.labels_of(0)]
    tab = Tab(browser)
    with serving(three.path) as server:
        tab.open(server.address)
        tab.page.click("[data-view=image]")
        tab.page.wait_for_selector(".item:focus")
        tab.press(["y", "a"])
        tab.page.keyboard.type("no such class")
        tab.press(["Enter"])
        assert "no such class" in tab.page.locator("#add-fault").text_content()
        tab.page.fill("#add-class", free[5])
        tab.press(["Enter", "Escape", "Home", "n"])  # a class by name, and a label that is wrong
        tab.page.fill("#add-class", "half a wo")
        tab.press(["Escape", "Enter"])  # no others
        tab.until("document.querySelector('#figures dd').textContent.startsWith('2 ')")
        tab.saved()
        assert tab.page.input_value("#add-class") == ""
        tab.press(["z"])
        tab.until("document.querySelector('#figures dd').textContent.startsWith('1 ')")
        tab.saved()
        tab.press(["Enter"])
        tab.saved()
        tab.close()
    said = [(one.class_name, one.answer) for one in stored(three) if hasattr(one, "answer")]
    assert said[:3] == [
        (free[0], "present"),
        (free[5], "present"),
        (labels.labels_of(0)[0], "absent"),
    ]
    assert said[3:5] == said[5:7] == [(free[1], "absent"), (free[2], "absent")]
