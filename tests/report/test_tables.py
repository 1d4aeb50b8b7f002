"""A cell that stands out does so in every form of a table, and no other cell does."""

from __future__ import annotations

import re

from hilltop.report.page import environment
from hilltop.report.tables import Sheet

ROWS = (("BCE", "50.1", "40.2"), ("Hill", "", "41.3"))
IN_PAGE = '{% import "parts.html" as parts %}{{ parts.sheet(sheet) }}'
SHEET = Sheet("Ants", ("", "mAP", "OF1"), ROWS, strong={(0, 1), (1, 1), (1, 2)})


def sheet_in_page(sheet: Sheet) -> str:
    return environment().from_string(IN_PAGE).render(sheet=sheet)


def test_markdown_and_latex_mark_the_best_cells_and_leave_blanks_blank() -> None:
    assert re.findall(r"\*\*([\d.]*)\*\*", str(SHEET).partition("\n")[2]) == ["50.1", "41.3"]
    assert re.findall(r"\\textbf\{(.*?)\}", SHEET.latex("tab:ants")) == ["50.1", "41.3"]


def test_a_page_and_a_terminal_mark_the_same_cells() -> None:
    assert [cell for cell in re.findall(r"<b>(.*?)</b>", sheet_in_page(SHEET)) if cell] == [
        "50.1",
        "41.3",
    ]
    columns = [[str(cell.style) for cell in column.cells] for column in SHEET.rich().columns]
    assert columns == [["", ""], ["bold", "bold"], ["", "bold"]]


def test_a_page_escapes_a_table_and_leaves_out_notes_that_stand_elsewhere() -> None:
    sheet = Sheet("", ("", "50%"), (("<b>|_x", "1"),), ("Note < 5%.", "Common."))
    assert "&lt;b&gt;|_x" in sheet_in_page(sheet)
    assert "Note &lt; 5%." in sheet_in_page(sheet)
    without = IN_PAGE.replace("(sheet)", "(sheet, without=('Common.',))")
    assert "Common." not in environment().from_string(without).render(sheet=sheet)
