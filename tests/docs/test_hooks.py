"""What the site writes by itself: formulas, pages of methods, the command line."""

from __future__ import annotations

import re
from typing import get_type_hints

import pytest
from markdown import Markdown

from hilltop.cli.main import COMMANDS
from hilltop.losses import LOSSES
from hilltop.losses.catalogue import Common
from tests.docs.hooks import load_hook
from tests.docs.pages import PAGES, ROOT

formulas, methods = map(load_hook, ("formulas", "method_pages"))
SOURCES = [*(ROOT / "src").rglob("*.py"), *PAGES]


def html(text: str) -> str:
    markdown = Markdown(extensions=[formulas.FormulasExtension(), "fenced_code"])
    return markdown.convert(text)


def written_formulas() -> list[str]:
    found = []
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        found += [f"{match['first']} {match['rest']}" for match in formulas.BLOCK.finditer(text)]
        found += [match["tex"] for match in formulas.FENCE.finditer(text)]
        found += [one or other for one, other in formulas.INLINE.findall(text)]
    return found


def test_every_formula_of_the_source_can_be_drawn() -> None:
    drawn = [formulas.to_svg(tex, block=True) for tex in written_formulas()]
    assert len(drawn) > 50
    assert all('fill="currentColor" d="M' in svg for svg in drawn)


def test_a_formula_keeps_its_source_as_text_for_those_who_do_not_see_it() -> None:
    assert 'aria-label="p &lt; q"' in formulas.to_svg("p < q", block=False)


def test_inline_formulas_stand_in_the_line_and_blocks_by_themselves() -> None:
    page = html("where :math:`p = 1` holds\n\n.. math:: a\n    = b\n\nend")
    assert re.search(r"<p>where <svg.*</svg> holds</p>", page)
    assert re.search(r'<div class="formula"><svg[^>]*aria-label="a = b"', page)


def test_examples_of_docstrings_become_code() -> None:
    page = html(">>> hill()\nHill['a']['b']\n\ntext")
    assert "blockquote" not in page
    assert "Hill['a']" in re.sub(r"<[^>]+>", "", page)


def test_a_name_links_to_the_page_of_its_loss() -> None:
    assert 'identifier="method-hill"' in html("see :func:`hill`")
    assert 'identifier="hilltop.losses.HillNegative"' in html("see :class:`HillNegative`")


@pytest.mark.parametrize("name", list(LOSSES))
def test_the_page_of_a_loss_has_an_equation_and_explains_every_option(name: str) -> None:
    page = methods.page(name, picture=False)
    # A loss that stands for others has no formula of its own.
    assert (methods.MATH in page) != (name == "auto")
    assert re.search(r"^## When to use it\n\n\w", page, re.MULTILINE)
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \| (.*) \|$", page, re.MULTILINE)
    assert all(meaning for _, _, meaning in rows), rows
    assert set(LOSSES.options(name)) - {row[0] for row in rows} <= set(get_type_hints(Common))


def test_only_losses_in_which_pairs_stand_for_themselves_have_a_gradient_picture() -> None:
    for name in ("hill", "splc"):
        assert methods.gradient_picture(name).startswith(b"<?xml")
    for name in ("count_likelihood", "splc_bounded"):
        assert methods.gradient_picture(name) is None


def test_the_table_of_losses_has_a_row_for_each_with_its_equation_and_paper() -> None:
    rows = re.findall(r"^\| \[`(\w+)`\]\((\w+)\.md\) \| (.+?) \| (.+) \| (.*) \|$",
                      methods.overview(list(LOSSES)), re.MULTILINE)  # fmt: skip
    assert [row[0] for row in rows] == [row[1] for row in rows] == list(LOSSES)
    table = {row[0]: row for row in rows}
    assert r"$`\ell^- = (\lambda - p)\,p^2`$" in table["hill"][3]
    assert "ICCV 2021" in table["asl"][4]
    assert all(row[2] and row[3] for row in rows)


def test_the_page_on_the_command_line_has_every_command_in_lines_that_fit() -> None:
    page = load_hook("command_page").page()
    assert re.findall(r"^## hilltop (\w+)$", page, re.MULTILINE) == list(COMMANDS)
    shown = page.partition("## ")[2]
    assert max(map(len, shown.splitlines())) <= 100


def test_the_reference_names_the_members_of_every_package_and_leaves_other_pages_alone() -> None:
    page = methods.with_members("::: hilltop.losses\n\n::: hilltop.studies.advise\n    options:\n"
                                "      heading_level: 3\n")  # fmt: skip
    assert "::: hilltop.losses\n    options:\n      members:\n" in page
    assert "        - hill\n" in page
    assert re.search(
        r"advise\n    options:\n      members:\n(        - \w+\n)+ {6}heading_level", page
    )
    for own in ("::: hilltop.errors\n", "::: hilltop.audit.run.Audited\n    options:\n"):
        assert methods.with_members(own) == own
