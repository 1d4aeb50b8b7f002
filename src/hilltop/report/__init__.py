"""Reports that a person reads: one HTML page that needs nothing but itself, and figures."""

from hilltop.report.demo_report import DemoMethod, DemoPairs, write_demo_report
from hilltop.report.run_report import RunMeaning, write_run_report

__all__ = ["DemoMethod", "DemoPairs", "RunMeaning", "write_demo_report", "write_run_report"]
