"""Draw 500 pictures and a spreadsheet with 40% of their tags, to follow the documentation with.

Run it with: python examples/draw_photographs.py
It writes the folder ``photos`` and the file ``tags.xlsx`` into the current folder, and the complete
tags, which nobody has in practice, to ``complete.csv``.
"""

import shutil
from pathlib import Path

from hilltop.data import drop_positives, write_labels
from hilltop.inputs.synthetic import write_dataset


def main() -> None:
    """Draw the pictures, and keep some of their labels."""
    complete = write_dataset(Path("drawn"), images=500, size=160, seed=0)
    Path("drawn/images").rename("photos")
    shutil.rmtree("drawn")
    write_labels(complete, "complete.csv", format="long", lossy=True)
    kept = drop_positives(complete, "0.8", seed=0).table
    write_labels(kept, "tags.xlsx", format="list_column", lossy=True)


if __name__ == "__main__":
    main()
