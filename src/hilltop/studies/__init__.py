"""Studies made of many runs: advice, comparison, the tables of the paper, and the demo."""

from hilltop.doors import open_doors

__getattr__, __dir__ = open_doors(
    __name__, {name: name for name in ("advise", "compare", "demo", "reproduce")}
)
