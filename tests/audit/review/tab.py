"""One reviewer's page in a real Chromium."""

from __future__ import annotations

import shutil
import time
from typing import Any

from tests.processes import HANGING_S

CHROMIUM = shutil.which("chromium")
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking"
    " --disable-component-update --disable-sync --no-first-run"
)
HANGING_MS = 1000 * HANGING_S


class Tab:
    """One reviewer's page; errors and refused scripts in it fail the test."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 800}, **options}
        )
        self.context.set_default_timeout(HANGING_MS)
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: dialog.accept())

    def open(self, address: str, name: str = "Ann") -> None:
        self.page.goto(address)
        self.page.wait_for_selector("#who[open], .tile")
        if self.page.locator("#who[open]").count():
            self.page.fill("#name", name)
            self.page.keyboard.press("Enter")
        self.page.wait_for_selector(".tile:focus")

    def press(self, keys: list[str]) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def answer_selected(self, key: str) -> None:
        """Press a key until all that is selected was on the screen and is answered."""
        while self.page.locator(".tile[aria-selected=true]").count():
            self.press([key])
            self.page.wait_for_timeout(60)

    def saved(self) -> None:
        self.until("document.getElementById('saved').textContent === 'Saved'")

    def until(self, expression: str) -> None:
        """Wait for something in the page; its policy forbids Playwright's own way of polling."""
        given_up = time.monotonic() + HANGING_S
        while not self.page.evaluate(expression):
            assert time.monotonic() < given_up, f"it never came true: {expression}"
            self.page.wait_for_timeout(25)

    def answers(self) -> list[str]:
        found: list[str] = self.page.eval_on_selector_all(
            ".tile", "tiles => tiles.map((tile) => tile.dataset.answer)"
        )
        return found

    def names(self) -> list[str]:
        found: list[str] = self.page.locator(".tile .name").all_text_contents()
        return found

    def focused(self) -> int:
        found: int = self.page.evaluate(
            "[...document.querySelectorAll('.tile')].indexOf(document.activeElement)"
        )
        return found

    def close(self) -> None:
        self.context.close()
        assert self.errors == []
