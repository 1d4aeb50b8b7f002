"""Reports that a person reads: one HTML page that needs nothing but itself, and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilltop.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from hilltop.report.demo_report import DemoMethod, DemoPairs, write_demo_report
    from hilltop.report.run_report import RunMeaning, write_run_report

__all__ = ["DemoMethod", "DemoPairs", "RunMeaning", "write_demo_report", "write_run_report"]

_MODULES = {
    "DemoMethod": "demo_report",
    "DemoPairs": "demo_report",
    "RunMeaning": "run_report",
    "write_demo_report": "demo_report",
    "write_run_report": "run_report",
}
__getattr__, __dir__ = lazy_imports(__name__, _MODULES)
