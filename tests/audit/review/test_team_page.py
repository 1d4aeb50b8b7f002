"""A team on the page in a real Chromium: shared work, names, disagreements, comments, files."""

from __future__ import annotations

import csv
import json
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilltop.audit.decisions.store import Answer, Assign, Comment
from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.static_page import write_static_review
from tests.audit.review.serving import Server, serving, stored
from tests.audit.review.tab import CHROMIUM, Tab

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
HOSTILE = "<img src=x onerror=document.body.remove()>"
PHONE = {"viewport": {"width": 390, "height": 844}}
DROP = """([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, { type: "application/json" }));
  for (const kind of ["dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true }));
  }
}"""


@pytest.fixture
def tabs(browser: Any) -> Iterator[Any]:
    """Open pages that are closed, and looked through for errors, at the end."""
    found: list[Tab] = []

    def open_tab(
        server: Server | None,
        name: str,
        *,
        address: str = "",
        taken_from: Tab | None = None,
        **options: Any,
    ) -> Tab:
        found.append(Tab(browser, **options))
        address = address or (server.address if server else "")
        if taken_from is None:
            found[-1].open(address, name)
        else:
            take_over(found[-1], address, name, taken_from)
        return found[-1]

    yield open_tab
    for tab in found:
        tab.close()


def take_over(tab: Tab, address: str, name: str, first: Tab) -> None:
    """Go on under a name that another device has, which agrees."""
    tab.page.goto(address)
    tab.page.wait_for_selector("#who[open]")
    tab.page.fill("#name", name)
    tab.press(["Enter"])
    tab.page.click("#take-over")
    first.page.wait_for_selector("#asked[open]")
    first.page.click("#hand-over")
    tab.page.wait_for_selector(".tile:focus")
    first.page.wait_for_selector("#who[open]")


def cells(tab: Tab, table: str) -> dict[str, list[str]]:
    """The rows of a table of the team by their first cell."""
    rows = tab.page.eval_on_selector_all(
        f"#{table} tr", "rows => rows.map((row) => [...row.children].map((one) => one.textContent))"
    )
    return {first: rest for first, *rest in rows}


def open_team(tab: Tab) -> None:
    tab.press(["t"])
    tab.page.wait_for_selector("#team[open]")


def test_three_people_share_disagree_and_are_decided_on(
    audit: AuditFolder, tabs: Any, tmp_path: Path
) -> None:
    with serving(audit.path, "--adjudicator", "Cleo") as server:
        ann, ben = tabs(server, "Ann"), tabs(server, "Ben", **PHONE)
        ann.press(list("yyyn"))
        ann.saved()
        images, name = ann.names()[:4], ann.page.locator("#question b").text_content()
        ben.press(list("ynyy"))
        ben.saved()
        cleo = tabs(server, "Cleo")
        assert cleo.page.locator("#disputed-count").text_content() == "2"
        cleo.page.click("[data-view=disputed]")
        cleo.page.wait_for_selector(".asks")
        assert set(cleo.names()) == {images[1], images[3]}
        assert cleo.page.locator(".tile").first.locator(".other").count() == 2
        cleo.press(["y"])
        cleo.saved()
        cleo.until("document.getElementById('disputed-count').textContent === '1'")
        cleo.press(["z"])
        cleo.until("document.getElementById('disputed-count').textContent === '2'")
        cleo.press(["y"])
        cleo.saved()
        decided = cleo.names()[0]
        # Ben may not decide: his answer there is his own.
        ben.page.click("[data-view=disputed]")
        ben.page.wait_for_selector(".asks")
        assert "Cleo decides" in (ben.page.locator("#figures").text_content() or "")
        open_team(ben)
        assert ben.page.locator("#share").is_hidden()
        ben.press(["Escape"])
        open_team(cleo)
        assert cells(cleo, "people-table")["Ann"][:2] == ["4", "3 / 1 / 0"]
        assert cells(cleo, "agreement-table")["Ann and Ben"][:3] == ["4", "50%", "-0.33"]
        cleo.page.click("#share-evenly")
        cleo.page.locator("[data-name=Ben] [type=number]").fill("0")
        cleo.page.locator("[data-name=Ben] .add").fill(name)
        cleo.page.click("#share-form [type=submit]")
        cleo.until("document.getElementById('people-table').textContent.includes('Asked about')")
        assert cells(cleo, "people-table")["Ben"][-1] == name
        with cleo.page.expect_download() as saved:
            cleo.page.click("[data-export=answers]")
        saved.value.save_as(tmp_path / "answers.csv")
        with cleo.page.expect_download() as saved:
            cleo.page.click("[data-export=labels]")
        saved.value.save_as(tmp_path / "corrected.zip")
        cleo.press(["Escape"])
        # Ben goes on with another device, which the first one agrees to; a name is no password,
        # and who types it in small letters is no other person.
        ben.press(["Escape"])
        other = tabs(server, "ben", taken_from=ben)
        other.page.click("[data-view=ranked]")
        other.until("document.querySelector('.tile').dataset.answer === 'present'")
        assert other.page.locator("#reviewer").text_content() == "Ben"
        # Dan has no Python: his page is a file, and what it saves is dropped onto Ann's page.
        write_static_review(audit, tmp_path / "page.html", top=30)
        dan = tabs(None, "Dan", address=(tmp_path / "page.html").as_uri())
        dan.press(["y"])
        with dan.page.expect_download() as saved:
            dan.page.click("#download")
        ann.page.evaluate(DROP, ["answers-Dan.json", Path(saved.value.path()).read_text()])
        ann.until("document.getElementById('told').textContent.includes('1 new answer')")
        open_team(ann)
        assert set(cells(ann, "people-table")) == {"Name", "Ann", "Ben", "Cleo", "Dan"}
        server.process.send_signal(signal.SIGINT)
        assert server.process.stdout is not None
        told = server.process.stdout.read()
    assert "Ann and Ben: same answer to 2 of 4 shared pairs, Cohen's kappa -0.33" in told
    assert "Krippendorff's alpha" in told
    with (tmp_path / "answers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["reviewer"], row["mode"]) for row in rows} == {
        ("Ann", "ranked"),
        ("Ben", "ranked"),
        ("Cleo", "ruling"),
    }
    assert {row["outcome"] for row in rows if row["image"] == decided} == {"yes"}
    with zipfile.ZipFile(tmp_path / "corrected.zip") as archive:
        assert any(name.endswith("provenance.csv") for name in archive.namelist())
    (plan,) = [event for event in stored(audit) if isinstance(event, Assign)]
    assert json.loads(plan.text)["people"]["Ben"] == {"classes": [name], "share": 0}


def test_a_person_sees_the_own_part_or_everything(audit: AuditFolder, tabs: Any) -> None:
    name = audit.table().classes[-1]
    words = ("--assign", f"Ann={name}", "--assign", "Ben", "--overlap", "0")
    with serving(audit.path, *words) as server:
        ann = tabs(server, "Ann")
        shown = "#class-list li:not([hidden]) .class-name"
        assert ann.page.locator(shown).all_text_contents() == [name]
        ann.page.click("[data-mine=false]")
        ann.until(f"document.querySelectorAll('{shown}').length > 1")


def test_a_name_goes_to_another_device_after_the_first_one_agrees(
    audit: AuditFolder, tabs: Any, browser: Any
) -> None:
    with serving(audit.path) as server:
        first = tabs(server, "Ann")
        first.press(["y"])
        first.saved()
        second = Tab(browser, **PHONE)
        second.page.goto(server.address)
        second.page.wait_for_selector("#who[open]")
        second.page.fill("#name", "Ann")
        second.press(["Enter"])
        second.page.click("#take-over")
        first.page.wait_for_selector("#asked[open]")
        first.page.click("#keep-name")
        second.until("document.getElementById('name-fault').textContent.includes('keeps the name')")
        second.page.click("#who [type=submit]")
        second.page.click("#take-over")
        first.page.wait_for_selector("#asked[open]")
        first.page.click("#hand-over")
        second.page.wait_for_selector(".tile:focus")
        assert second.answers()[0] == "present"
        first.page.wait_for_selector("#who[open]")
        assert "another device" in (first.page.locator("#name-fault").text_content() or "")
        second.press(["n"])
        second.saved()
        second.close()
    assert [event.reviewer for event in stored(audit)] == ["Ann", "Ann"]


def test_pictures_are_found_by_name_by_metadata_and_by_looks(
    audit: AuditFolder, tabs: Any, tmp_path: Path
) -> None:
    names = audit.table().images.to_pylist()
    with (tmp_path / "about.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [["image", "place"], *([name, f"<b>{at % 7}"] for at, name in enumerate(names))]
        )
    values = np.random.default_rng(0).standard_normal((len(names), 8)).astype(np.float16)
    np.savez(audit.directions, rows=np.arange(len(names)), values=values)
    with serving(audit.path, "--metadata", str(tmp_path / "about.csv")) as server:
        tab = tabs(server, "Ann")
        wanted = tab.names()[2]
        tab.press(["f"])
        tab.page.fill("#search-text", wanted)
        tab.press(["Enter"])
        tab.until("document.querySelectorAll('.tile').length === 1")
        assert tab.names() == [wanted]
        tab.page.select_option("#search-column", "place")
        tab.page.fill("#search-text", "<b>3")
        tab.until("document.querySelectorAll('.tile').length > 1")
        assert {names.index(name) % 7 for name in tab.names()} == {3}
        tab.page.fill("#search-text", "nowhere")
        tab.page.wait_for_selector("#empty:not([hidden])")
        tab.press(["Escape"])
        tab.page.wait_for_selector(".tile:focus")
        assert wanted in tab.names()
        tab.page.locator(".tile").nth(2).click()
        tab.press(["Space"])
        about = tab.page.locator("#zoom-about").text_content()
        assert about == f"place <b>{names.index(wanted) % 7}"
        tab.press(["l"])
        tab.page.wait_for_selector("#like:not([hidden])")
        tab.until("document.querySelector('.tile:focus')")
        assert tab.names()[0] == wanted


def test_a_comment_is_text_and_waits_for_the_own_answer(audit: AuditFolder, tabs: Any) -> None:
    with serving(audit.path) as server:
        ann, ben = tabs(server, "Ann"), tabs(server, HOSTILE)
        ann.press(["c"])
        ann.page.wait_for_selector("#comment[open]")
        ann.page.fill("#comment-text", "x" * 10_000)
        ann.press(["Enter"])
        assert "10,000" in (ann.page.locator("#comment-fault").text_content() or "")
        assert len(ann.page.input_value("#comment-text")) == 10_000, "nothing is cut off"
        ann.page.fill("#comment-text", HOSTILE)
        ann.press(["Enter"])
        ann.saved()
        assert ann.page.locator(".comment").text_content() == f"Ann: {HOSTILE}"
        ann.press(["c"])
        assert ann.page.input_value("#comment-text") == HOSTILE
        ann.press(["Escape", "y"])
        ann.saved()
        assert ben.page.locator(".comment").count() == 0
        ben.press(["n"])
        ben.page.wait_for_selector(".comment")
        assert ben.page.locator(".comment").text_content() == f"Ann: {HOSTILE}"
        open_team(ann)
        assert HOSTILE in cells(ann, "people-table")
    kinds = [type(event) for event in stored(audit)]
    assert (kinds.count(Comment), kinds.count(Answer)) == (1, 2)


def test_a_colleagues_file_is_taken_in_where_it_is_dropped(audit: AuditFolder, tabs: Any) -> None:
    with serving(audit.path) as server:
        tab = tabs(server, "Ann")
        name = tab.page.locator("#question b").text_content()
        event = {
            "id": "1",
            "action": "1",
            "image": tab.names()[0],
            "class": name,
            "answer": "absent",
            "mode": "ranked",
            "time": "2026-01-31T10:00:00Z",
        }
        content = {
            "kind": "hilltop answers",
            "audit": "another",
            "reviewer": "Dan",
            "events": [event],
        }
        tab.page.evaluate(DROP, ["answers-Dan.json", json.dumps(content)])
        tab.page.wait_for_selector("#other-audit[open]")
        tab.page.click("#leave-file")
        tab.page.evaluate(DROP, ["answers-Dan.json", "no answers"])
        tab.until("document.getElementById('told').textContent.includes('not a JSON file')")
        tab.page.evaluate(
            DROP.replace("for (", "data.items.add(data.files[0]); for (", 1), ["a", "b"]
        )
        tab.until("document.getElementById('told').textContent.includes('one file at a time')")
        assert stored(audit) == []
        content["audit"] = audit.created
        tab.page.evaluate(DROP, ["answers-Dan.json", json.dumps(content)])
        tab.until("document.getElementById('told').textContent.includes('1 new answer')")
        tab.page.evaluate(DROP, ["answers-Dan.json", json.dumps(content)])
        tab.until("document.getElementById('told').textContent.includes('nothing new')")
        tab.page.wait_for_selector(".other")
        assert tab.page.locator(".other").text_content() == "1 other answered"
    assert [event.reviewer for event in stored(audit)] == ["Dan"]
