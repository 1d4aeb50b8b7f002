"""The table of losses in the README, written from what each loss says of itself.

python docs/hooks/readme_table.py            write it, as `make format` does
python docs/hooks/readme_table.py --check    fail if it is not up to date, as `make lint` does
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from hilltop.losses import LOSSES

README = Path(__file__).parents[2] / "README.md"
HEAD = "| name | unlabelled entries are | |\n|---|---|---|\n"
TABLE = re.compile(re.escape(HEAD) + r"(?:\|.*\n)*")


def row(name: str) -> str:
    """The line of one loss."""
    card = LOSSES.cards[name]
    return f"| `{name}` | {card.unlabelled} | {card.remark} |\n"


def filled(text: str) -> str:
    """The README with the table as it should be."""
    table = HEAD + "".join(row(name) for name in LOSSES)
    text, found = TABLE.subn(lambda _: table, text)
    if found != 1:
        raise SystemExit(f"README.md must have one table of losses, but has {found}.")
    return text


def main() -> None:
    """Write the table, or say that it is old."""
    text = README.read_text(encoding="utf-8")
    if "--check" in sys.argv[1:]:
        if filled(text) != text:
            raise SystemExit("The table of losses in README.md is not up to date: make format.")
        return
    README.write_text(filled(text), encoding="utf-8")


if __name__ == "__main__":
    main()
