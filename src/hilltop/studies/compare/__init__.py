"""Methods side by side: every method on every level of missing labels, over seeds."""

from hilltop.studies.compare.level import COMPLETE, NAMED, Level, parse_level, parse_levels
from hilltop.studies.compare.method import Method, parse_methods
from hilltop.studies.compare.runs import Result, read_result, run_study
from hilltop.studies.compare.study import BASELINE, Cell, Study, plan_cells
from hilltop.studies.compare.table import Results, Spread, level_sheet, write_tables

__all__ = [
    "BASELINE",
    "COMPLETE",
    "NAMED",
    "Cell",
    "Level",
    "Method",
    "Result",
    "Results",
    "Spread",
    "Study",
    "level_sheet",
    "parse_level",
    "parse_levels",
    "parse_methods",
    "plan_cells",
    "read_result",
    "run_study",
    "write_tables",
]
