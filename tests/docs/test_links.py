"""Links between files of the repository, and to sections of them, lead somewhere."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from markdown.extensions.toc import slugify

from tests.docs.pages import ROOT, name

TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob(".github/**/*.md")]) + sorted(
    path
    for folder in ("benchmarks", "docs", "reproduction", "recipes")
    for path in (ROOT / folder).rglob("*.md")
)
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
# Pages that are written while the site is built.
_MADE = re.compile(r"docs/(methods/\w+|reference/commands|journey)\.md")


def links(path: Path) -> list[str]:
    """Where the links of a file lead, without those in code and out of the repository."""
    found = _LINK.findall(_CODE.sub("", path.read_text(encoding="utf-8")))
    return [link for link in found if not re.match(r"\w+:", link)]


@cache
def anchors(path: Path) -> set[str]:
    """The sections of a file, as its links name them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = [heading.replace("`", "") for heading in _HEADING.findall(text)]
    return {slugify(heading, "-") for heading in headings}


@pytest.mark.parametrize("path", TEXTS, ids=name)
def test_links_lead_to_files_and_sections_that_exist(path: Path) -> None:
    lost = []
    for link in links(path):
        file, _, section = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        if _MADE.fullmatch(name(target) if target.is_relative_to(ROOT) else ""):
            continue
        there = target.exists() and (not section or section in anchors(target))
        lost += [] if there else [link]
    assert lost == []


def test_links_are_found() -> None:
    assert sum(len(links(path)) for path in TEXTS) > 60
    assert "four-commands" not in anchors(ROOT / "README.md")
    assert "who-it-is-not-for" in anchors(ROOT / "README.md")
