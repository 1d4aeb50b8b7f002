"""A cell that stands out does so in every form of a table, and no other cell does."""

from __future__ import annotations

import re

from hilltop.report.tables import Sheet

ROWS = (("BCE", "50.1", "40.2"), ("Hill", "", "41.3"))
SHEET = Sheet("Ants", ("", "mAP", "OF1"), ROWS, strong={(0, 1), (1, 1), (1, 2)})


def test_markdown_and_latex_mark_the_best_cells_and_leave_blanks_blank() -> None:
    assert re.findall(r"\*\*([\d.]*)\*\*", str(SHEET).partition("\n")[2]) == ["50.1", "41.3"]
    assert re.findall(r"\\textbf\{(.*?)\}", SHEET.latex("tab:ants")) == ["50.1", "41.3"]


def test_a_page_and_a_terminal_mark_the_same_cells() -> None:
    assert [cell for cell in re.findall(r"<b>(.*?)</b>", str(SHEET.html())) if cell] == [
        "50.1",
        "41.3",
    ]
    columns = [[str(cell.style) for cell in column.cells] for column in SHEET.rich().columns]
    assert columns == [["", ""], ["bold", "bold"], ["", "bold"]]
