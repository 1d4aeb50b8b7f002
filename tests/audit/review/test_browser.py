"""The page in a real Chromium, driven by keys alone unless a test says otherwise."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilltop.audit.decisions.store import Answer
from hilltop.audit.find.estimate import Estimate, write_estimates
from hilltop.audit.folder import AuditFolder
from hilltop.cli.main import main
from hilltop.data import LabelTable, State, read_labels, write_labels
from hilltop.missing import Interval
from tests.audit.made_up import write_audit, write_candidates
from tests.audit.review.serving import free_port, serving, stored
from tests.audit.review.tab import CHROMIUM, Tab

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
TWO_FINGERS = """(() => {
  const frame = document.querySelector('#zoom .frame');
  const touch = (kind, pointerId, clientX) => frame.dispatchEvent(
    new PointerEvent(kind, { pointerId, clientX, clientY: 300, pointerType: 'touch' }));
  touch('pointerdown', 1, 500);
  touch('pointerdown', 2, 600);
  touch('pointermove', 2, 700);
})()"""


def test_thirty_pairs_by_keyboard_survive_undo_reload_kill_and_reach_the_file(
    audit: AuditFolder, browser: Any, tmp_path: Path
) -> None:
    port, token = free_port(), ("--token", "the-same-after-a-restart")
    words = {"y": "present", "n": "absent", "u": "unsure"}
    keys = list("yynyunyyynyyyuynyyynnyyuyyynyy")
    tab = Tab(browser)
    with serving(audit.path, *token, port=port) as server:
        tab.open(server.address)
        images = tab.names()[:30]
        name = tab.page.locator("#question b").text_content()
        tab.press(keys)
        assert tab.answers()[:31] == [*(words[key] for key in keys), ""]
        assert tab.focused() == 30
        tab.press(["z", "Control+z"])
        assert tab.focused() == 28
        tab.press(["n"])  # in place of the 29th yes; the 30th stays open
        tab.saved()
        tab.page.reload()
        tab.page.wait_for_selector(".tile:focus")
        expected = [*(words[key] for key in keys[:28]), "absent", ""]
        assert tab.answers()[:30] == expected
        assert tab.page.locator("#question b").text_content() == name
        server.kill()
        tab.press(["y", "z", "y"])  # while nobody listens
        tab.page.wait_for_selector("#notice:not([hidden])")
        notice = tab.page.locator("#notice").text_content()
        assert "3 answers wait in this browser and will be sent as soon as it is back" in notice
        assert tab.page.locator("#saved").text_content() == "3 unsent"
    with serving(audit.path, *token, port=port):
        tab.saved()
        assert tab.page.locator("#notice").is_hidden()
        tab.page.reload()
        tab.page.wait_for_selector(".tile:focus")
        expected[29] = "present"
        assert tab.answers()[:30] == expected
    tab.close()
    out = tmp_path / "corrected.csv"
    assert main(["apply", str(audit.path), "--out", str(out)]) == 0
    before, after = audit.table(), read_labels(out, options=audit.reading)
    column = before.classes.index(name)
    wanted = before.dense()
    states = {"present": State.PRESENT, "absent": State.ABSENT}
    for image, word in zip(images, expected, strict=True):
        if word in states:
            wanted[before.images.to_pylist().index(image), column] = states[word]
    assert (after.dense() == wanted).all()
    assert (after.images, after.classes) == (before.images, before.classes)
    with Path(f"{out}.provenance.csv").open(newline="") as file:
        rows = {row["image"]: row for row in csv.DictReader(file)}
    assert {image: rows[image]["answer"] for image in images} == dict(
        zip(images, expected, strict=True)
    )
    assert {row["reviewer"] for row in rows.values()} == {"Ann"}
    assert all(0 <= float(row["probability"]) <= 1 for row in rows.values())


@pytest.mark.slow
def test_undo_after_a_reload_takes_back_the_last_action(audit: AuditFolder, browser: Any) -> None:
    tab = Tab(browser)
    with serving(audit.path) as server:
        tab.open(server.address)
        tab.press(["y", "Shift+ArrowRight", "Shift+ArrowRight", "n"])
        tab.saved()
        tab.page.reload()
        tab.page.wait_for_selector(".tile:focus")
        assert tab.answers()[:5] == ["present", "absent", "absent", "absent", ""]
        tab.press(["z"])
        tab.until("document.querySelectorAll('[data-answer=absent].tile').length === 0")
        assert tab.answers()[:4] == ["present", "", "", ""]
        tab.saved()
        tab.close()
    assert [event.action for event in stored(audit)[1:4]] == [stored(audit)[4].action] * 3


@pytest.mark.slow
def test_arrows_follow_the_grid_and_pages_turn(audit: AuditFolder, browser: Any) -> None:
    tab = Tab(browser)
    with serving(audit.path) as server:
        tab.open(server.address)
        columns = len(
            tab.page.evaluate(
                "getComputedStyle(document.getElementById('grid')).gridTemplateColumns"
            ).split()
        )
        assert columns > 2
        places = []
        for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "End", "Home"):
            tab.press([key])
            places.append(tab.focused())
        assert places == [1, 1 + columns, columns, 0, 47, 0]
        first = tab.names()
        tab.press(["PageDown"])
        tab.until("document.querySelectorAll('.tile').length < 48")
        assert not set(first) & set(tab.names())
        tab.press(["PageUp"])
        tab.until("document.querySelectorAll('.tile').length === 48")
        assert tab.names() == first
        tab.press(["Control+a", "y"])  # the whole page, of which most was never on the screen
        assert set(tab.answers()) == {""}
        assert "not on the screen yet" in (tab.page.locator("#told").text_content() or "")
        tab.answer_selected("y")  # and on to the next
        tab.until("document.querySelectorAll('.tile').length < 48")
        tab.saved()
        tab.close()
    assert len(stored(audit)) == 48
    assert len({event.action for event in stored(audit)}) == 1


@pytest.mark.slow
def test_zoom_answers_and_goes_on(audit: AuditFolder, browser: Any) -> None:
    tab = Tab(browser)
    with serving(audit.path) as server:
        tab.open(server.address)
        names = tab.names()
        tab.press(["+"])
        assert tab.page.evaluate("document.getElementById('size').value") == "13"
        tab.press(["Space"])
        tab.page.wait_for_selector("#zoom[open]")
        tab.page.evaluate(TWO_FINGERS)
        tab.until("document.getElementById('large').style.transform.endsWith('scale(2)')")
        tab.press(["y", "n"])
        assert tab.page.locator("#zoom-name").text_content() == names[2]
        tab.press(["Space"])  # closes; it must not press the button that happens to have focus
        assert tab.page.locator("#zoom[open]").count() == 0
        assert tab.focused() == 2
        assert tab.answers()[:3] == ["present", "absent", ""]
        tab.press(["Enter", "Escape"])
        assert tab.page.locator("#zoom[open]").count() == 0
        tab.saved()
        tab.close()


@pytest.mark.slow
def test_two_reviewers_see_where_they_disagree(audit: AuditFolder, browser: Any) -> None:
    ann, ben = Tab(browser), Tab(browser)
    with serving(audit.path) as server:
        ann.open(server.address, "Ann")
        ann.press(["y", "y"])
        ann.saved()
        ben.open(server.address, "Ben")
        assert ben.page.locator(".tile .other").all_text_contents() == ["1 other answered"] * 2
        ben.press(["n"])
        ben.page.wait_for_selector(".conflict")
        assert ben.page.locator(".conflict").text_content() == "Ann: yes"
        ann.page.click("[data-view=disputed]")
        ann.page.wait_for_selector(".asks")
        assert ann.page.locator(".other").all_text_contents() == ["Ann: yes", "Ben: no"]
        ann.close()
        ben.close()


@pytest.mark.slow
def test_the_random_sample_gives_an_estimate_and_the_hint_its_number(
    audit: AuditFolder, browser: Any
) -> None:
    tab = Tab(browser)
    with serving(audit.path) as server:
        tab.open(server.address)
        tab.page.click("[data-view=random]")
        tab.until("!document.querySelector('.chance')")
        tab.press(list("ynnn"))
        tab.saved()
        figures = tab.page.locator("#figures").text_content()
        assert "25% 1 of 4" in figures
        tab.page.click("[data-view=ranked]")
        tab.page.wait_for_selector(".chance")
        assert tab.page.locator("#hint").is_hidden()
        tab.press(list("y" + "n" * 20))
        tab.saved()
        hint = tab.page.locator("#hint p").text_content()
        assert "of the last 20 answers found a missing label" in hint
        assert re.match(r"(None|1) .*\((0|5)%\)", hint)
        before = tab.page.locator("#question").text_content()
        tab.page.click("#next-class")
        tab.until(f"document.getElementById('question').textContent !== {before!r}")
        tab.close()
    modes = [event.mode for event in stored(audit) if isinstance(event, Answer)]
    assert modes[:4] == ["random"] * 4
    assert set(modes[4:]) == {"ranked"}


def test_all_but_these_a_search_without_matches_and_labels_that_are_wrong(
    audit: AuditFolder, browser: Any
) -> None:
    labels = audit.table()
    names = labels.images.to_pylist()
    pairs = [(names[row], name, 0.3) for row in range(60) for name in labels.labels_of(row)]
    write_candidates(audit.suspects, pairs)
    *others, last = labels.classes
    said = [Estimate(name, 9, Interval(0.0, 0.0, 4.2), "model", wrong=1.0) for name in others]
    said.append(Estimate(last, 9, Interval(0.0, 0.0, 4.2), "model", wrong=7.0))
    write_estimates(said, audit.path / "estimates.csv")
    tab = Tab(browser)
    with serving(audit.path) as server:
        tab.open(server.address)
        assert tab.page.locator("#totals").text_content().startswith("0 found, none expected")
        assert "none expected, at most 4" in tab.page.locator("#figures").text_content()
        tab.press(["n", "Shift+ArrowRight", "i"])  # all but the two with the focus
        tab.answer_selected("y")
        tab.saved()
        assert Counter(event.answer for event in stored(audit)) == {"absent": 1, "present": 45}
        assert tab.focused() == 1  # the page does not turn before the two are answered
        tab.press(["u", "u"])
        tab.until("document.querySelectorAll('.tile').length < 48")
        tab.page.fill("#filter", "no such class")
        assert tab.page.locator("#none-found").is_visible()
        tab.page.press("#filter", "Escape")
        assert tab.page.locator("#class-list li:visible").count() == len(labels.classes)
        tab.page.click("[data-view=wrong]")
        tab.until("document.getElementById('question').textContent.startsWith('Is the label')")
        tab.page.wait_for_selector(".tile:focus")
        assert tab.page.locator(".tile .chance").first.text_content() == "30% wrong"
        first = tab.page.locator("#class-list button").first
        assert first.get_attribute("aria-label").startswith(f"{last}: 0 struck of about 7 wrong")
        tab.press(["n"])
        tab.saved()
        assert tab.page.locator("#totals").text_content().startswith("1 label struck")
        other = Tab(browser)
        other.page.goto(server.address)
        other.page.fill("#name", "Ann")
        other.press(["Enter"])
        other.until("document.getElementById('name-fault').textContent.includes('Another browser')")
        other.page.fill("#name", "Ben")
        other.press(["Enter"])
        other.page.wait_for_selector(".tile:focus")
        other.close()
        tab.close()
    struck = stored(audit)[-1]
    assert struck.class_name in labels.labels_of(names.index(struck.image))


def test_near_duplicates_take_one_answer_unless_they_are_split(
    audit: AuditFolder, browser: Any
) -> None:
    labels = audit.table()
    name = labels.classes[0]
    images = [
        image
        for row, image in enumerate(labels.images.to_pylist())
        if name not in labels.labels_of(row)
    ]
    write_candidates(
        audit.candidates, [(image, name, 0.9 - 0.01 * at) for at, image in enumerate(images[:8])]
    )
    rows = labels.find(images[:8])
    values = np.eye(16, dtype=np.float16)[[0, 1, 0, 2, 1, 3, 4, 0]]
    np.savez(audit.directions, rows=rows, values=values)
    tab = Tab(browser)
    with serving(audit.path) as server:
        tab.open(server.address)
        assert tab.names() == [images[at] for at in (0, 2, 7, 1, 4, 3, 5, 6)]
        assert tab.page.locator(".alike").count() == 5
        assert tab.page.locator("#examples img").count() > 0
        tab.press(["y", "d", "n"])  # three at once, then one of two
        assert tab.answers() == ["present"] * 3 + ["absent"] + [""] * 4
        assert tab.focused() == 4
        tab.press(["z", "z"])
        assert tab.answers() == [""] * 8
        tab.saved()
        tab.close()


def test_a_long_list_of_classes_is_drawn_in_parts_and_searched_as_a_whole(
    tmp_path: Path, browser: Any
) -> None:
    names = [f"class {number:03}" for number in range(450)]
    table = LabelTable.from_coo(
        ["a.jpg", "b.jpg"], names, [0], [0], State.PRESENT, unlisted=State.UNKNOWN
    )
    write_labels(table, tmp_path / "labels.parquet", format="hilltop")
    pairs = [("b.jpg", name, 0.5) for name in names]
    folder = write_audit(
        tmp_path / "audit", tmp_path / "labels.parquet", format="hilltop", pairs=pairs
    )
    tab = Tab(browser)
    with serving(folder.path) as server:
        tab.open(server.address)

        def shown() -> list[str]:
            found: list[str] = tab.page.locator(".class-name").all_text_contents()
            return found

        def focused() -> str:
            return str(tab.page.evaluate("document.activeElement.textContent"))

        assert shown() == names[:200]
        assert tab.page.locator(".further").all_text_contents() == [
            "250 more: go on, or type to find them"
        ]
        tab.page.locator("#class-list button").nth(199).focus()
        tab.press(["ArrowDown", "Enter"])
        assert shown() == names[200:400]
        assert focused().startswith("class 200")
        tab.press(["ArrowUp", "Enter"])
        assert shown() == names[:200]
        assert focused().startswith("class 199")
        tab.page.fill("#filter", "CLASS 4")
        assert shown() == names[400:]
        tab.page.fill("#filter", "class 449")
        tab.press(["Enter"])
        tab.page.wait_for_selector(".tile:focus")
        tab.press(["y"])
        tab.saved()
        assert tab.page.locator(".class-name").all_text_contents() == ["class 449"]
        tab.page.press("#filter", "Escape")
        assert shown() == names[400:]
        current = tab.page.locator("#class-list [aria-current]")
        assert (current.get_attribute("aria-label") or "").startswith("class 449: 1 found")
        assert tab.page.locator("#class-list button[tabindex='0']").count() == 1
        tab.press(["["])
        tab.until("document.querySelector('[aria-current] .class-name').textContent.endsWith(448)")
        tab.close()
