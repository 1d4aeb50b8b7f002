"""The page without a server in a browser: several tabs, several reviewers, and no answer lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.static_page import write_static_review
from tests.audit.review.tab import CHROMIUM, Tab

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")


def open_tab(first: Tab, address: str, name: str) -> Tab:
    """A further tab in the browser of another one, which share what the browser keeps."""
    tab = object.__new__(Tab)
    tab.context, tab.errors = first.context, []
    tab.page = first.context.new_page()
    tab.page.on("pageerror", lambda error: tab.errors.append(str(error)))
    tab.page.on("dialog", lambda dialog: dialog.accept())
    tab.open(address, name)
    return tab


def download(tab: Tab, path: Path) -> list[dict[str, Any]]:
    with tab.page.expect_download() as waiting:
        tab.page.click("#download")
    waiting.value.save_as(path)
    found: list[dict[str, Any]] = json.loads(path.read_text())["events"]
    return found


def status(tab: Tab) -> str:
    return str(tab.page.locator("#saved").text_content())


def test_two_tabs_do_not_write_over_each_other(
    audit: AuditFolder, browser: Any, tmp_path: Path
) -> None:
    page = tmp_path / "review.html"
    write_static_review(audit, page, top=100)
    one = Tab(browser)
    one.open(page.as_uri(), "Cleo")
    two = open_tab(one, page.as_uri(), "Cleo")
    images = one.names()
    one.press(["y"])
    two.press(["ArrowRight", "n"])
    one.press(["ArrowRight", "u"])
    two.page.reload()
    two.page.wait_for_selector(".tile:focus")
    events = download(two, tmp_path / "answers.json")
    said = {event["image"]: event["answer"] for event in events}
    assert len(events) == 3
    assert said == {images[0]: "present", images[1]: "absent", images[2]: "unsure"}
    assert two.answers()[:3] == ["present", "absent", "unsure"]
    two.page.close()
    one.close()


def test_what_one_reviewer_saves_does_not_mark_the_others_as_saved(
    audit: AuditFolder, browser: Any, tmp_path: Path
) -> None:
    page = tmp_path / "review.html"
    write_static_review(audit, page, top=100)
    tab = Tab(browser)
    tab.open(page.as_uri(), "Ann")
    tab.press(["y", "y"])
    tab.page.click("#reviewer")
    tab.page.fill("#name", "Ben")
    tab.page.keyboard.press("Enter")
    tab.until("document.getElementById('reviewer').textContent === 'Ben'")
    tab.page.wait_for_selector(".tile:focus")
    tab.press(["n"])
    assert len(download(tab, tmp_path / "ben.json")) == 1
    assert status(tab) == "Saved"
    tab.page.click("#reviewer")
    tab.page.fill("#name", "Ann")
    tab.page.keyboard.press("Enter")
    tab.until("document.getElementById('saved').textContent === 'Not in a file yet'")
    assert len(download(tab, tmp_path / "ann.json")) == 2
    assert status(tab) == "Saved"
    tab.close()
