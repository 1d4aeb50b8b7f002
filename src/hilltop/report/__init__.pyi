from hilltop.report.demo_report import DemoMethod as DemoMethod
from hilltop.report.demo_report import DemoPairs as DemoPairs
from hilltop.report.demo_report import write_demo_report as write_demo_report
from hilltop.report.run_report import RunMeaning as RunMeaning
from hilltop.report.run_report import write_run_report as write_run_report
