"""``compare``: methods side by side on labels whose truth is complete."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hilltop.cli.outputs import check_written
from hilltop.cli.parser import Device, Out
from hilltop.cli.train import GROUPS, RunOptions
from hilltop.errors import ArgumentError, HilltopError
from hilltop.progress import say
from hilltop.training.config import TrainConfig

if TYPE_CHECKING:
    from hilltop.studies.compare.runs import Result

# Options of a single run that the comparison sets for each of its runs.
SET_HERE = {
    "loss": "name methods instead",
    "loss_options": "write them behind the method, as in splc:tau=0.65",
    "pseudo_label": "write it behind the method, as in bce+pseudo_label:0.6",
    "seed": "use --seeds",
    "true_labels": "the complete labels are --labels",
    "report": "drop it",
    "val_share": "the labels to judge by are --val-labels",
}


@dataclass(frozen=True)
class Compare:
    """Train methods on labels that were thinned on purpose, and judge them by complete ones.

    Without complete labels say --unlisted unknown: methods learn from the labels as they are, and
    are judged by estimates of the true metrics, each with its interval.

    Every run is kept in OUT and made once: call it again to go on after an interruption, or with
    more methods, levels or seeds. BCE on complete labels (100%) and on reduced ones (0%) are
    always among the methods. The seed decides which labels are dropped, and how training goes.

    A method is a loss, with options after colons, and as pseudo labels after a plus: hill,
    splc:tau=0.65, bce+pseudo_label, focal_margin+pseudo_label:0.6.

    Example: hilltop compare --labels full.txt --val-labels val.txt --features features.npz
    --methods hill,splc:tau=0.65,bce+pseudo_label --keep 0.4,single --out comparison
    """

    _: KW_ONLY
    methods: str = "all"
    """Methods with commas between them; all: every loss there is, and pseudo labels."""
    keep: str | None = None
    """Levels by the paper's rule: 0.75 (r = 0.5), 0.4 (r = 0.8), single (r = 1), or r=0.6."""
    reduced: tuple[str, ...] = ()
    """Reduced label files as NAME=FILE; 0.4=FILE takes the place of the rule."""
    seeds: str = "0,1,2"
    """Seeds with commas between them."""
    out: Out = Path("comparison")
    """Folder of the comparison."""
    jobs: int = 1
    """How many runs at the same time."""
    config: Path | None = None
    """YAML file with any of these options; what stands on the command line wins."""
    run_options: RunOptions = field(default_factory=TrainConfig)
    device: Device = "auto"
    groups: ClassVar = {"Comparison": ("methods", "keep", "reduced", "seeds", "jobs"), **GROUPS}
    hidden: ClassVar = SET_HERE
    prints_answer: ClassVar = True

    def base(self) -> Compare | None:
        """Options from the file named by ``--config``, for the command line to change."""
        if self.config is None:
            return None
        return Compare(run_options=settings_of_runs(self.config))

    def run(self) -> dict[str, Any]:
        """Train what is missing, print and write the tables."""
        from hilltop.studies.compare.level import parse_levels
        from hilltop.studies.compare.method import parse_methods
        from hilltop.studies.compare.runs import failed_runs, run_study
        from hilltop.studies.compare.study import Study, labels_are_complete, plan_cells
        from hilltop.studies.compare.table import TABLES, Results, write_tables

        check_common("compare", self.run_options)
        complete = labels_are_complete(self.run_options)
        levels = parse_levels(self.keep, self.reduced, complete=complete)
        methods, seeds = parse_methods(self.methods), parse_seeds(self.seeds)
        cells = plan_cells(levels, methods, seeds, complete=complete)
        if not complete:
            say(
                "labels are not complete: methods are judged by estimates of what complete"
                " validation labels would say, with 90% intervals"
            )
        study = Study(self.out, self.run_options)
        check_written(self, *(self.out / name for name in TABLES), force=study.begun)
        results = Results(run_study(study, cells, jobs=self.jobs, say=say))
        for sheet in write_tables(results, self.out):
            sheet.print()
        say(f"tables: {self.out / 'table.md'}, table.tex, summary.csv, results.csv")
        failed = failed_runs(results.all)
        if failed:
            raise HilltopError(failed)
        return {"out": self.out, "runs": [run_row(result) for result in results.all]}


def run_row(result: Result) -> dict[str, Any]:
    """A run as JSON has it."""
    cell = result.cell
    return {
        "method": str(cell.method),
        "level": cell.level.name,
        "seed": cell.seed,
        "folder": result.folder,
        "last": result.last,
        "best": result.best,
    }


def settings_of_runs(path: Path) -> TrainConfig:
    """The settings in a file; methods take the place of the loss that it names for a single run."""
    return replace(TrainConfig.from_file(path), loss=TrainConfig.loss)


def check_common(command: str, options: TrainConfig) -> None:
    """Raise if an option is given that the command sets for each run by itself."""
    usual = TrainConfig()
    for name, instead in SET_HERE.items():
        if name == "loss_options" and options.loss_options.keys() <= {"safe_start"}:
            continue  # every method takes it, and recipes/paper.yaml sets it
        if getattr(options, name) != getattr(usual, name):
            option = name.replace("_", "-")
            raise ArgumentError(f"{command} sets --{option} for each run by itself; {instead}.")
    if options.val_labels is None:
        raise ArgumentError(f"{command} needs --val-labels: labels to judge by.")


def parse_seeds(text: str) -> tuple[int, ...]:
    """Read whole numbers with commas between them.

    Example:
        >>> parse_seeds("0,1,1")
        (0, 1)
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(word.isdecimal() for word in words):
        raise ArgumentError(f"seeds must be whole numbers such as 0,1,2, but got {text!r}.")
    if any(len(word) > 18 for word in words):
        raise ArgumentError(f"seeds must have at most 18 digits, but got {text!r}.")
    return tuple(dict.fromkeys(int(word) for word in words))
