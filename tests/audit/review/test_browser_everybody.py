"""The page for everybody, in a real Chromium: odd names, touch, screen readers, and no server."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hilltop.audit.find.estimate import Estimate, write_estimates
from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.static_page import write_static_review
from hilltop.cli.main import main
from hilltop.data import State, read_labels
from hilltop.missing import Interval
from tests.audit.conftest import HOSTILE
from tests.audit.review.serving import serving, stored
from tests.audit.review.tab import CHROMIUM, Tab

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
CUT_OFF = """[...document.querySelectorAll('.top button, .actions button, #find, .pager button')]
  .filter((one) => one.checkVisibility() && one.id !== 'reviewer'
    && (one.getBoundingClientRect().right > innerWidth || one.scrollWidth > one.clientWidth + 1))
  .map((one) => one.id || one.textContent)"""
END_OF_A_LONG_NAME = """(() => {
  const name = document.querySelector('.tile .name');
  name.firstChild.textContent = `${'folder/'.repeat(20)}42.jpg`;
  const end = document.createRange();
  end.setStart(name.firstChild.firstChild, 140);
  end.setEnd(name.firstChild.firstChild, 146);
  const [box, room] = [end.getBoundingClientRect(), name.getBoundingClientRect()];
  return box.width > 0 && box.left >= room.left && box.right <= room.right + 1;
})()"""


@pytest.mark.slow
def test_names_with_markup_are_shown_as_they_are(hostile: AuditFolder, browser: Any) -> None:
    tab = Tab(browser)
    refused: list[str] = []
    tab.page.on("console", lambda message: refused.append(message.text))
    with serving(hostile.path) as server:
        tab.open(server.address, "<img src=x onerror=alert(3)>")
        shown = tab.page.locator(".class-name").all_text_contents()
        assert sorted(shown) == sorted(name.replace("\n", "␣") for name in HOSTILE)
        tab.press(["y"])
        tab.saved()
        assert tab.page.locator("main img, main script, nav img, nav script").count() == 0
        assert refused == []
        tab.close()
    assert stored(hostile)[0].reviewer == "<img src=x onerror=alert(3)>"


@pytest.mark.slow
def test_the_page_works_on_a_narrow_window_with_touch(audit: AuditFolder, browser: Any) -> None:
    tab = Tab(browser, viewport={"width": 390, "height": 844}, has_touch=True)
    with serving(audit.path) as server:
        tab.open(server.address)
        assert tab.page.evaluate("document.documentElement.scrollWidth") == 390
        assert tab.page.evaluate(END_OF_A_LONG_NAME)
        tab.page.tap("#show-classes")
        tab.page.locator("#class-list button").nth(1).tap()
        tab.until("document.querySelector('#class-list li:nth-child(2) [aria-current]')")
        assert tab.page.locator("#class-list").is_hidden()
        tab.page.tap("#select")
        for place in (0, 1):
            tab.page.locator(".tile").nth(place).tap()
        assert tab.page.locator("#select").text_content() == "2 selected"
        tab.page.tap("main .yes")
        tab.saved()
        assert tab.answers()[:3] == ["present", "present", ""]
        tab.close()


def test_nothing_is_cut_off_at_any_width(audit: AuditFolder, browser: Any) -> None:
    tab = Tab(browser)
    with serving(audit.path) as server:
        tab.open(server.address, "Ann-Sophie")
        for width in (1400, 1200, 1130, 1024, 900, 800, 620, 577, 390, 320):
            tab.page.set_viewport_size({"width": width, "height": 800})
            assert tab.page.evaluate("document.documentElement.scrollWidth") == width
            assert tab.page.evaluate(CUT_OFF) == [], width
        tab.close()


@pytest.mark.slow
def test_a_screen_reader_hears_names_answers_and_roles(audit: AuditFolder, browser: Any) -> None:
    tab = Tab(browser)
    with serving(audit.path) as server:
        tab.open(server.address)
        listbox = tab.page.get_by_role("listbox", name=re.compile("Is .* in the picture"))
        assert listbox.get_by_role("option").count() == 48
        assert tab.page.locator(".tile[tabindex='0']").count() == 1
        assert tab.page.locator("#class-list button[tabindex='0']").count() == 1
        image = tab.names()[0]
        label = tab.page.locator(".tile").first.get_attribute("aria-label")
        assert label.startswith(f"{image}, probability ")
        assert label.endswith("not answered")
        tab.press(["y"])
        assert tab.page.locator("#live").text_content() == f"{image}: yes"
        tab.saved()
        assert "answered yes" in tab.page.locator(".tile").first.get_attribute("aria-label")
        unnamed = tab.page.evaluate(
            "[...document.querySelectorAll('button, input')].filter((one) => one.checkVisibility()"
            " && !(one.textContent.trim() || one.ariaLabel || one.labels?.length)).length"
        )
        assert unnamed == 0
        tab.close()


@pytest.mark.slow
def test_where_nothing_is_expected_a_page_without_a_server_begins_with_the_likeliest_class(
    audit: AuditFolder, browser: Any, tmp_path: Path
) -> None:
    names = audit.table().classes
    said = [Estimate(name, 10, Interval(0.0, 0.0, 4.2), "model") for name in names]
    write_estimates(said, audit.path / "estimates.csv")
    write_static_review(audit, tmp_path / "review.html", top=100)
    text = (tmp_path / "review.html").read_text(encoding="utf-8")
    start = text.index('id="review-data">') + len('id="review-data">')
    shown = json.loads(text[start : text.index("</script>", start)])["classes"]
    likeliest = max(shown, key=lambda one: sum(pair["probability"] for pair in one["pairs"]))
    tab = Tab(browser)
    tab.open((tmp_path / "review.html").as_uri(), "Cleo")
    assert tab.page.locator("#question b").text_content() == likeliest["name"]
    tab.close()


@pytest.mark.slow
def test_a_page_without_a_server_gives_its_answers_back_as_a_file(
    audit: AuditFolder, browser: Any, tmp_path: Path
) -> None:
    page = tmp_path / "review.html"
    assert write_static_review(audit, page, top=100) == 100
    tab = Tab(browser)
    tab.open(page.as_uri(), "Cleo")
    name, images = tab.page.locator("#question b").text_content(), tab.names()
    assert tab.page.locator(".tile img").count() == len(images)
    tab.until("document.querySelector('.tile img').naturalWidth === 64")
    tab.press(["y", "n", "u", "z"])
    tab.page.reload()
    tab.page.wait_for_selector(".tile:focus")
    assert tab.answers()[:3] == ["present", "absent", ""]
    with tab.page.expect_download() as download:
        tab.page.click("#download")
    saved = tmp_path / "answers.json"
    download.value.save_as(saved)
    tab.close()
    assert main(["review", str(audit.path), "--import", str(saved)]) == 0
    assert main(["review", str(audit.path), "--import", str(saved)]) == 0
    assert len(stored(audit)) == 4  # three answers and an undo, each once
    out = tmp_path / "corrected.csv"
    assert main(["apply", str(audit.path), "--out", str(out), "--answers", str(saved)]) == 0
    table = read_labels(out, options=audit.reading)
    row_of = {image: row for row, image in enumerate(table.images.to_pylist())}
    assert name in table.labels_of(row_of[images[0]])
    assert name in table.labels_of(row_of[images[1]], State.ABSENT)
    assert name not in table.labels_of(row_of[images[2]])
    assert json.loads(saved.read_text())["reviewer"] == "Cleo"
