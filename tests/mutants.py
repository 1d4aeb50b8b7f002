"""Faults put in on purpose, each with the tests that must notice it.

``make mutants`` copies the tree, puts in one fault at a time, and runs the named tests, which have
to fail. A fault whose place is no longer in the code is an error: give it a new one.

Run it with: python -m tests.mutants [--only WORD]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.attack.mends import MENDS

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Mutant:
    """A fault: in a file, some text that becomes another, and the tests that must fail."""

    file: str
    old: str
    new: str
    tests: str


MODEL = "tests/missing/test_model.py"
MUTANTS = (
    Mutant("missing/model.py", "(0.05, 0.5, 0.95)", "(0.4, 0.5, 0.6)", MODEL),
    Mutant("missing/model.py", "expit(-in_common) * (", "(", MODEL),
    Mutant("missing/frequency.py", "fit.integrated_loss - lost", "fit.integrated_loss", MODEL),
    Mutant("missing/frequency.py", "labels_of_image > 0", "labels_of_image >= 0", MODEL),
    Mutant("missing/frequency.py", "worse >= priors.MAX_CONTRADICTION", "False", MODEL),
    Mutant("missing/priors.py", "MIN_LOGLIK_GAIN = 2.0", "MIN_LOGLIK_GAIN = -1.0", MODEL),
    Mutant(
        "missing/logistic.py", "loss + determinant / 2", "loss", "tests/missing/test_logistic.py"
    ),
    Mutant(
        "missing/decision.py",
        "counts.present.max(axis=0)",
        "1e9 * counts.present.max(axis=0)",
        "tests/missing/test_decision.py",
    ),
    Mutant(
        "missing/interval.py",
        "total + largest, variance + largest**2",
        "total, variance",
        "tests/missing/test_interval.py",
    ),
    Mutant(
        "missing/answers.py",
        "share / self.sampled_with[mine]",
        "share",
        "tests/missing/test_evaluation.py",
    ),
    Mutant(
        "training/learner.py",
        "use_warmup=ramp",
        "use_warmup=not ramp",
        "tests/training/test_moving_average.py",
    ),
    Mutant("training/recipe.py", "HEAD_RATE = 3e-4", "HEAD_RATE = 1e-3", "tests/test_defaults.py"),
    Mutant(
        "training/recipe.py",
        "USUAL_PENALTY = 10.0",
        "USUAL_PENALTY = 1.0",
        "tests/test_defaults.py",
    ),
    Mutant(
        "training/heads.py",
        "1 - present < least_absent",
        "1 - present < 2 * least_absent",
        "tests/training/test_evidence.py",
    ),
    Mutant(
        "training/heads.py",
        ">= self.stopping.patience",
        "> self.stopping.patience",
        "tests/training/test_in_memory.py",
    ),
    Mutant(
        "training/checkpoint.py",
        'set_rng_state(_under(tensors, "random."), rank)',
        "pass",
        "tests/training/test_checkpoint.py",
    ),
    Mutant(
        "losses/safe_start.py",
        "sure > 0.05 + 3 * rate",
        "sure > 0.5 + 3 * rate",
        "tests/losses/test_watch.py",
    ),
    Mutant(
        "losses/methods/splc.py",
        "batch.logits > _logit(self.tau)",
        "batch.logits >= _logit(self.tau)",
        "tests/losses/terms/test_boundaries.py tests/losses/methods",
    ),
    Mutant(
        "integrations/hf.py", "state.epoch + 1e-6", "state.epoch", "tests/integrations/test_hf.py"
    ),
    Mutant(
        "integrations/hf.py",
        "targets == _UNKNOWN, torch.nan",
        "targets == _UNKNOWN, 0.0",
        "tests/integrations/test_hf.py",
    ),
    Mutant(
        "studies/reproduce/tables.py",
        "gap = 1.0 if measured.runs",
        "gap = 0.99 if measured.runs",
        "tests/studies/reproduce/test_reproduce.py",
    ),
    Mutant(
        "studies/reproduce/tables.py",
        "for row in recipe.rows if not row.complete]",
        "for row in recipe.rows]",
        "tests/studies/reproduce/test_reproduce.py",
    ),
    Mutant(
        "studies/compare/table.py",
        "top.mean <= bottom.mean",
        "top.mean < bottom.mean",
        "tests/studies/compare/test_table.py",
    ),
    Mutant(
        "data/simulation.py",
        "int(n * (1 - ratio)) + 1",
        "int(float(n) * (1 - float(ratio))) + 1",
        "tests/data/test_missing.py",
    ),
    Mutant(
        "metrics/thresholds.py",
        "scores[1:] < scores[:-1]",
        "scores[1:] <= scores[:-1]",
        "tests/metrics/test_metrics.py",
    ),
    Mutant(
        "audit/find/estimate.py",
        "sample.present + sample.open, total",
        "sample.present, total",
        "tests/audit/find/test_estimate.py",
    ),
    *(Mutant(*mend) for mend in MENDS),
)


def noticed(mutant: Mutant, tree: Path) -> str:
    """The first test that fails with the fault in; empty if none does."""
    path = tree / "src/hilltop" / mutant.file
    text = path.read_text(encoding="utf-8")
    if mutant.old not in text:
        raise SystemExit(f"{mutant.file} no longer holds {mutant.old!r}: give this fault a place.")
    path.write_text(text.replace(mutant.old, mutant.new, 1), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-m",
        "not slow",
        "-p",
        "no:cacheprovider",
    ]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["HILLTOP_TEST_HANGING_S"] = "120"  # a fault may have a test wait in vain
    ran = subprocess.run(
        [*command, *mutant.tests.split()],
        cwd=tree, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    path.write_text(text, encoding="utf-8")
    failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0] if failed else ""


def main() -> None:
    """Print a row for each fault; exit with 1 if one goes unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    chosen = [mutant for mutant in MUTANTS if only in mutant.file]
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        skip = shutil.ignore_patterns(".git", ".venv", "build", "runs", "demo", "__pycache__")
        shutil.copytree(ROOT, tree, ignore=skip)
        for mutant in chosen:
            by = noticed(mutant, tree)
            survived += not by
            print(
                f"| {mutant.file} | `{mutant.old}` -> `{mutant.new}` | {by or 'SURVIVED'} |",
                flush=True,
            )
    print(f"{len(chosen) - survived} of {len(chosen)} noticed")
    sys.exit(bool(survived))


if __name__ == "__main__":
    main()
