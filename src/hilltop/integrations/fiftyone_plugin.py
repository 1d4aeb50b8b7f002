"""FiftyOne plugin: missing labels of a ``Classifications`` field, found and counted in the App.

``python -m hilltop.integrations.fiftyone_plugin`` writes the folder that FiftyOne loads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import fiftyone as fo
import fiftyone.operators as foo
import numpy as np
import numpy.typing as npt
from fiftyone.operators import types

from hilltop import __version__
from hilltop.audit import find_missing_labels
from hilltop.audit.run import Audited
from hilltop.data import LabelTable, State
from hilltop.errors import ArgumentError
from hilltop.missing import Evaluation

PLUGIN_NAME = "@hilltop/missing-labels"
OURS = "Found by Hilltop."
"""How descriptions of fields and views begin that a further search may replace."""
TOP = 1000
"""Number of candidates that are kept unless another is asked for."""

Scores = npt.NDArray[np.float64]


def read_field(view: Any, field: str) -> LabelTable:
    """Labels of a ``Classifications`` field; what a sample does not list is unknown.

    Classes are those that the dataset declares for the field, and all that occur in it.
    """
    named = _named(view, field, "label")
    declared = view._dataset.classes.get(field) or view._dataset.default_classes or []
    classes = sorted({*declared, *(name for names in named for name in names)})
    column = {name: at for at, name in enumerate(classes)}
    pairs = sorted({(row, column[name]) for row, names in enumerate(named) for name in names})
    if not pairs:
        raise ArgumentError(f"No sample has a label in the field {field!r}.")
    rows, columns = np.array(pairs).T
    ids = view.values("id")
    return LabelTable.from_coo(ids, classes, rows, columns, State.PRESENT, unlisted=State.UNKNOWN)


def read_predictions(view: Any, field: str, classes: Sequence[str]) -> Scores:
    """Probabilities ``(N, C)`` of a ``Classifications`` field; 0 for a class it does not list."""
    column = {name: at for at, name in enumerate(classes)}
    probs = np.zeros((len(view), len(classes)))
    confidences = _named(view, field, "confidence")
    for row, (names, values) in enumerate(
        zip(_named(view, field, "label"), confidences, strict=True)
    ):
        for name, value in zip(names, values, strict=True):
            if value is None:
                raise ArgumentError(
                    f"A prediction {name!r} in the field {field!r} has no confidence."
                )
            if name in column:  # listed twice, it is as probable as the surer one says
                probs[row, column[name]] = max(value, probs[row, column[name]])
    return probs


def read_scores(view: Any, field: str, classes: Sequence[str]) -> dict[str, Any]:
    """Arguments of :func:`find_missing_labels` from a field of predictions or of embeddings."""
    kind = view.get_field(field)
    if getattr(kind, "document_type", None) is fo.Classifications:
        return {"probabilities": read_predictions(view, field, classes)}
    vectors = view.values(field)
    without = sum(vector is None for vector in vectors)
    if without:
        raise ArgumentError(
            f"{without} of {len(vectors)} samples have nothing in the field {field!r}."
        )
    return {"features": np.stack([np.asarray(vector, dtype=np.float32) for vector in vectors])}


def write_candidates(view: Any, found: Audited, field: str, name: str) -> Any:
    """Write candidates as a ``Classifications`` field, and save a view of them.

    Args:
        view: The samples that were audited.
        found: What the audit found in them.
        field: Field to write, with the probability of each candidate as its confidence;
            ``FIELD_probability`` is the highest of a sample.
        name: Name of the saved view, the most probable sample first.
    """
    candidates, classes, ids = found.candidates, found.labels.classes, view.values("id")
    of_sample: dict[str, list[Any]] = {}
    places = zip(
        candidates.rows(), candidates.columns(), candidates.probabilities().tolist(), strict=True
    )
    for row, column, prob in places:
        one = fo.Classification(label=classes[column], confidence=prob)
        of_sample.setdefault(ids[row], []).append(one)
    labels = {id_: fo.Classifications(classifications=ones) for id_, ones in of_sample.items()}
    highest = {id_: max(one.confidence for one in ones) for id_, ones in of_sample.items()}
    dataset = view._dataset
    _check_ours(dataset, (field, f"{field}_probability"), name)
    for written in (field, f"{field}_probability"):
        if dataset.has_sample_field(written):
            dataset.delete_sample_field(written)
    kind = {"embedded_doc_type": fo.Classifications, "description": OURS}
    dataset.add_sample_field(field, fo.EmbeddedDocumentField, **kind)
    dataset.add_sample_field(f"{field}_probability", fo.FloatField, description=OURS)
    dataset.set_values(field, labels, key_field="id")
    dataset.set_values(f"{field}_probability", highest, key_field="id")
    queue = dataset.exists(f"{field}_probability").sort_by(f"{field}_probability", reverse=True)
    dataset.save_view(name, queue, description=f"{OURS} {found.describe()}", overwrite=True)
    return queue


def _check_ours(dataset: Any, fields: Sequence[str], view: str) -> None:
    """Raise if a field or a saved view of this name is somebody else's."""
    described = {
        f"a field {name!r}": dataset.get_field(name).description
        for name in fields
        if dataset.has_sample_field(name)
    }
    if dataset.has_saved_view(view):
        described[f"a saved view {view!r}"] = dataset.get_saved_view_info(view)["description"]
    for what, description in described.items():
        if not (description or "").startswith(OURS):
            raise ArgumentError(f"The dataset has {what} that Hilltop did not write. Rename it.")


def _named(view: Any, field: str, of: str) -> list[list[Any]]:
    """One attribute of all classifications of each sample."""
    kind = getattr(view.get_field(field), "document_type", None)
    if kind is not fo.Classifications:
        raise ArgumentError(f"The field {field!r} must hold Classifications, but holds {kind}.")
    found = [values or [] for values in view.values(f"{field}.classifications.{of}")]
    if of == "label" and any(name is None for names in found for name in names):
        raise ArgumentError(f"A classification in the field {field!r} has no label.")
    return found


def _choose(inputs: Any, name: str, fields: Sequence[str], label: str, description: str) -> None:
    choices = types.AutocompleteView(space=6)
    for field in fields:
        choices.add_choice(field, label=field)
    inputs.enum(
        name, choices.values(), view=choices, required=True, label=label, description=description
    )


def _fields(ctx: Any, *kinds: Any) -> list[str]:
    schema = ctx.dataset.get_field_schema()
    return [
        name
        for name, field in schema.items()
        if isinstance(field, kinds) or getattr(field, "document_type", None) in kinds
    ]


class _HilltopOperator(foo.Operator):  # type: ignore[misc]  # untyped
    """Asks for a field of labels and a field of scores, and shows a sentence and a table."""

    label: str
    description: str
    columns: tuple[str, ...]
    scores_label = "Embeddings or predictions"
    scores_description = (
        "A vector field (out-of-fold heads are trained on it), or Classifications with confidences"
        " from a model that was not trained on these labels."
    )
    vectors = True

    @property
    def config(self) -> Any:
        """Name and description in the App."""
        return foo.OperatorConfig(
            name=self.method, label=self.label, description=self.description, dynamic=True
        )

    def resolve_input(self, ctx: Any) -> Any:
        """The form that the App shows."""
        inputs = types.Object()
        labels = _fields(ctx, fo.Classifications)
        scores = [*_fields(ctx, fo.VectorField, fo.ArrayField), *labels] if self.vectors else labels
        _choose(inputs, "labels", labels, "Labels", "The field whose labels are incomplete.")
        _choose(inputs, "scores", scores, self.scores_label, self.scores_description)
        self.more_inputs(inputs)
        ctx.target_view()
        return types.Property(inputs, view=types.View(label=self.label))

    def more_inputs(self, inputs: Any) -> None:
        """Add what only this operator asks for."""

    def resolve_output(self, ctx: Any) -> Any:
        """How the App shows the result."""
        outputs = types.Object()
        outputs.str("summary", label="Summary", view=types.MarkdownView())
        table = types.TableView()
        for name in self.columns:
            table.add_column(name, label=name)
        outputs.list("table", types.Object(), view=table)
        return types.Property(outputs, view=types.View(label=self.label))

    def result(self, ctx: Any, summary: str, rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
        """What the App shows; the dataset keeps it in ``info["hilltop"]``."""
        table = [dict(zip(self.columns, row, strict=True)) for row in rows]
        shown = {"summary": summary, "table": table}
        kept = {**ctx.dataset.info.get("hilltop", {}), self.method: shown}
        ctx.dataset.info["hilltop"] = kept
        ctx.dataset.save()
        return shown


class EstimateMissingLabels(_HilltopOperator):
    """How many labels are missing, in total and by class."""

    method = "estimate_missing_labels"
    label = "Hilltop: estimate how many labels are missing"
    description = "Estimates the number of missing labels by class, with 90% intervals."
    columns = ("class", "labels", "missing", "low", "high")

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Run on the samples that were chosen in the App."""
        return self.audit(ctx, ctx.target_view(), top=1)[1]

    def audit(self, ctx: Any, view: Any, top: int) -> tuple[Audited, dict[str, Any]]:
        """Find candidates, and the table of estimates."""
        labels = read_field(view, ctx.params["labels"])
        scores = read_scores(view, ctx.params["scores"], labels.classes)
        found = find_missing_labels(labels, top=top, **scores)
        rows = [
            (one.class_name, one.labelled, *map(round, _ends(one.missing)))
            for one in sorted(found.estimates, key=lambda one: -one.missing.value)
        ]
        return found, self.result(ctx, found.describe(), rows)


class FindMissingLabels(EstimateMissingLabels):
    """Candidates as a field and a saved view."""

    method = "find_missing_labels"
    label = "Hilltop: find missing labels"
    description = "Ranks labels that are probably missing, and saves a view of their samples."

    def more_inputs(self, inputs: Any) -> None:
        """Add what only this operator asks for."""
        inputs.int("top", default=TOP, min=1, label="Number of candidates")
        inputs.str("name", default="missing labels", label="Name of the saved view")

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Run on the samples that were chosen in the App."""
        view = ctx.target_view()
        found, shown = self.audit(ctx, view, top=ctx.params.get("top") or TOP)
        name = ctx.params.get("name") or "missing labels"
        queue = write_candidates(view, found, f"{ctx.params['labels']}_missing", name)
        ctx.ops.reload_dataset()
        ctx.ops.set_view(view=queue)
        return shown


class EvaluateIncomplete(_HilltopOperator):
    """Metrics of predictions against labels of which some are missing."""

    method = "evaluate_incomplete"
    label = "Hilltop: evaluate with incomplete labels"
    description = "Estimates the metrics that complete labels would give, with 90% intervals."
    columns = ("metric", "value", "low", "high")
    scores_label = "Predictions"
    scores_description = "Classifications with confidences; a class that is not listed counts as 0."
    vectors = False

    def more_inputs(self, inputs: Any) -> None:
        """Add what only this operator asks for."""
        inputs.float("threshold", default=0.5, min=0, max=1, label="Threshold on the confidence")

    def execute(self, ctx: Any) -> dict[str, Any]:
        """Run on the samples that were chosen in the App."""
        view, threshold = ctx.target_view(), ctx.params.get("threshold")
        labels = read_field(view, ctx.params["labels"])
        probs = read_predictions(view, ctx.params["scores"], labels.classes)
        threshold = 0.5 if threshold is None else threshold
        test = Evaluation([probs], labels.batch()[0], threshold=threshold)
        rows = [
            (name, *(round(100 * end, 1) for end in _ends(one)))
            for name, one in test.report().metrics.items()
        ]
        return self.result(ctx, test.describe(), rows)


def _ends(one: Any) -> tuple[float, float, float]:
    return one.value, one.low, one.high


OPERATORS = (FindMissingLabels, EstimateMissingLabels, EvaluateIncomplete)


def register(plugin: Any) -> None:
    """Register the operators; FiftyOne calls this when it loads the plugin."""
    for operator in OPERATORS:
        plugin.register(operator)


def install(plugins: Path) -> Path:
    """Write the plugin's folder into a folder of plugins, and return it.

    It holds a description and one import, so that it stays valid when Hilltop is upgraded.
    """
    folder = plugins / "hilltop"
    folder.mkdir(parents=True, exist_ok=True)
    names = "".join(f"  - {operator.method}\n" for operator in OPERATORS)
    about = f"name: '{PLUGIN_NAME}'\nversion: {__version__}\noperators:\n{names}"
    (folder / "fiftyone.yml").write_text(about, encoding="utf-8")
    line = "from hilltop.integrations.fiftyone_plugin import register  # noqa: F401\n"
    (folder / "__init__.py").write_text(line, encoding="utf-8")
    return folder


if __name__ == "__main__":
    print(install(Path(fo.config.plugins_dir)))
