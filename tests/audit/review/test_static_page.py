"""The page without a server, as a file; a browser drives it in test_browser.py."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hilltop.audit.decisions.incoming import import_file
from hilltop.audit.decisions.store import Answer, DecisionStore
from hilltop.audit.folder import AuditFolder
from hilltop.audit.pairs import AuditPairs
from hilltop.audit.review.queues import build_queue
from hilltop.audit.review.static_page import write_static_review
from hilltop.cli.main import main
from hilltop.errors import ArgumentError, DataError
from tests.audit.made_up import unknown_pairs


class Scripts(HTMLParser):
    """Collects scripts and everything that would be loaded from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.loaded: list[str] = []
        self.policy = ""
        self._within: dict[str, str | None] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._within = given if tag == "script" else None
        self.loaded += [given[key] or "" for key in ("src", "href") if given.get(key)]
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""

    def handle_data(self, data: str) -> None:
        if self._within is not None:
            self.scripts.append((self._within, data))
            self._within = None


def data_of(page: Path) -> Any:
    found = Scripts(page.read_text(encoding="utf-8"))
    [text] = [text for given, text in found.scripts if given.get("id") == "review-data"]
    return json.loads(text)


def test_it_holds_the_most_probable_pairs_and_needs_nothing_else(
    audit: AuditFolder, tmp_path: Path
) -> None:
    page = tmp_path / "review.html"
    assert write_static_review(audit, page, top=25) == 25
    data = data_of(page)
    shown = {(pair["image"], one["name"]) for one in data["classes"] for pair in one["pairs"]}
    ranked = sorted(unknown_pairs(audit.table()), key=lambda pair: -pair[2])
    assert shown == {(image, name) for image, name, _ in ranked[:25]}
    assert all(uri.startswith("data:image/jpeg;base64,") for uri in data["pictures"].values())
    assert {int(row) for row in data["pictures"]} == {
        pair["row"] for one in data["classes"] for pair in one["pairs"]
    }
    assert Scripts(page.read_text()).loaded == ["#grid"]


def test_only_its_own_scripts_may_run(audit: AuditFolder, tmp_path: Path) -> None:
    page = tmp_path / "review.html"
    write_static_review(audit, page, top=5)
    found = Scripts(page.read_text(encoding="utf-8"))
    run = [text for given, text in found.scripts if "type" not in given]
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in run
    ]
    allowed = re.search(r"script-src ([^;]*)", found.policy)
    assert allowed is not None
    assert allowed[1].split() == hashes
    assert "default-src 'none'" in found.policy


def test_names_stay_names(hostile: AuditFolder, tmp_path: Path) -> None:
    page = tmp_path / "review.html"
    write_static_review(hostile, page, top=100)
    assert {one["name"] for one in data_of(page)["classes"]} == set(hostile.table().classes)
    assert "alert(" not in re.sub(
        r'<script type="application/json".*?</script>', "", page.read_text(), flags=re.DOTALL
    )


def test_wrong_wishes_are_refused_in_words(audit: AuditFolder, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="top must be at least 1, but got 0"):
        write_static_review(audit, tmp_path / "a.html", top=0)
    with pytest.raises(DataError, match="its folder does not exist"):
        write_static_review(audit, tmp_path / "no" / "a.html")


def test_the_command_writes_it(audit: AuditFolder, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    assert main(["review", str(audit.path), "--static", str(out), "--top", "7"]) == 0
    assert sum(len(one["pairs"]) for one in data_of(out)["classes"]) == 7


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "this is not a JSON file of answers"),
        ("[]", "not a file of answers saved by the review page"),
        ('{"kind": "hilltop answers"}', "A reviewer needs a name"),
        ('{"kind": "hilltop answers", "reviewer": "A"}', "Expected a list of events"),
        ('{"kind": "hilltop answers", "reviewer": "A", "events": [3]}', "must be an object"),
        (
            '{"kind": "hilltop answers", "reviewer": "A", "events": [{"id": "1", "action": "1",'
            ' "time": "noon", "image": "000001.jpg"}]}',
            "needs a 'time' in ISO format, but got 'noon'",
        ),
        (
            '{"kind": "hilltop answers", "reviewer": "A", "events": [{"id": "1", "action": "1",'
            ' "time": "2026-01-31T12:00:00Z", "image": "elsewhere.jpg"}]}',
            "is not a candidate of this audit",
        ),
    ],
)
def test_files_that_are_no_answers_are_refused_whole(
    audit: AuditFolder, tmp_path: Path, content: str, said: str
) -> None:
    path = tmp_path / "answers.json"
    path.write_text(content)
    store = DecisionStore(audit.decisions)
    with pytest.raises(DataError, match=said) as caught:
        import_file(audit, str(path), content, store, pairs=AuditPairs.read(audit), force=True)
    assert str(path) in str(caught.value)
    assert store.read() == []
    store.close()


def test_answered_pairs_and_other_classes_stay_out_of_the_page(
    audit: AuditFolder, tmp_path: Path
) -> None:
    name = audit.table().classes[0]
    first = build_queue(audit, "labels", 1, classes=[name])
    image = audit.table().images[int(first.rows[0])].as_py()
    store = DecisionStore(audit.decisions)
    store.add([Answer("1", "1", "Ann", "2026-01-31", image, name, "present", "ranked", 0.5)])
    store.close()
    page = tmp_path / "review.html"
    words = ["review", str(audit.path), "--static", str(page), "--top", "9", "--for", "model"]
    assert main([*words, "--classes", name]) == 0
    (only,) = data_of(page)["classes"]
    assert only["name"] == name
    assert len(only["pairs"]) == 9
    assert image not in {pair["image"] for pair in only["pairs"]}
