"""The audit for who has arrays instead of files: in a notebook, or inside another program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor

from hilltop.audit.find.ranking import Assumption
from hilltop.audit.find.score_blocks import Scored, blocks_of, label_block, score_blocks
from hilltop.audit.run import Audited, audit, fold_logits
from hilltop.checks import check_same_shape, check_whole
from hilltop.data import LabelTable, State
from hilltop.data.scores import Places, ScoreTable
from hilltop.deprecation import renamed_arguments
from hilltop.errors import ArgumentError, DataError
from hilltop.losses import CountLikelihood, ScarLikelihood
from hilltop.losses.likelihood import Likelihood
from hilltop.missing.extra_scores import combine_scores
from hilltop.progress import say

Matrix = Any
"""A numpy array or a torch tensor."""


@renamed_arguments(observed="verified", also="extra_scores")
def find_missing_labels(
    labels: LabelTable | Matrix,
    *,
    features: Matrix | None = None,
    probabilities: Matrix | None = None,
    extra_scores: Matrix | None = None,
    verified: Matrix | None = None,
    class_names: Sequence[str] | None = None,
    likelihood: Likelihood | None = None,
    top: int | None = None,
    folds: int = 4,
    seed: int = 0,
) -> Audited:
    """Rank unlabelled pairs by the probability that their label is missing, and say how many are.

    Args:
        labels: A table, or a matrix ``(N, C)``: 1 for labelled, 0 where nobody wrote a label down.
            Sparse matrices of scipy will do.
        features: ``(N, F)``, from any network; heads are trained that never see the labels of the
            images they score.
        probabilities: ``(N, C)``, instead of features: from a model that did not learn from these
            labels, since one that did has learned that missing pairs are absent.
        extra_scores: ``(N, C)``, beside either: logits of another model, NaN where it has none;
            they count in each class as far as the labels speak for them.
        verified: ``(N, C)``, with a matrix of labels: True where a person verified since what it
            says. How labels were lost is judged without those that were put back.
        class_names: With a matrix of labels: names of its columns, for the estimates.
        likelihood: How labels were lost, ``count_likelihood(...)`` or ``scar_likelihood(...)``;
            the most probable one without it.
        top: How many candidates to keep; all without it, or of more than ten million the first
            million and the first of every class.
        folds: Parts that the images are dealt into.
        seed: The same seed gives the same audit.

    Raises:
        ArgumentError: Shapes or values do not fit together.
        DataError: There is no label, or no pair that could be one.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> true = rng.random((400, 3)) < 0.4
        >>> features = true @ rng.standard_normal((3, 8)) + 0.1 * rng.standard_normal((400, 8))
        >>> labels = true & (rng.random((400, 3)) < 0.5)  # half of them were forgotten
        >>> found = find_missing_labels(labels, features=features)
        >>> first = slice(50)
        >>> rows, columns = found.candidates.rows(first), found.candidates.columns(first)
        >>> bool((true & ~labels)[rows, columns].all())
        True
    """
    if (features is None) == (probabilities is None):
        raise ArgumentError("Give one of features and probabilities.")
    before = None
    if isinstance(labels, LabelTable):
        if verified is not None or class_names is not None:
            raise ArgumentError("A table has its own class_names and verified; leave them out.")
        table = labels
    else:
        table, before = _tables_of(labels, verified, class_names)
    if not table.count(State.PRESENT):
        raise DataError("There is no label at all; nothing can be learned from it.")
    rows, given = np.arange(len(table)), _assumption(likelihood)
    if probabilities is not None:
        values = _two_dimensional("probabilities", probabilities)
        logits = score_blocks(ScoreTable(table.images, table.classes, values), table)
    else:
        inputs = _features(features, len(table))
        check_whole("folds", folds, low=2)
        logits = fold_logits(table, inputs, rows, folds=folds, seed=seed, say=say)
    if extra_scores is not None:
        extra = _two_dimensional("extra_scores", extra_scores)
        check_same_shape("extra_scores", extra.shape, "labels", (len(table), len(table.classes)))
        targets, _, _ = label_block(table, rows)
        own = logits(0, len(rows)).numpy()
        combined, _ = combine_scores([own, extra], targets.numpy(), primary=True)
        logits = blocks_of(torch.from_numpy(combined).float())
    found = audit(table, Scored(logits, rows), given=given, top=top, before=before)
    return replace(found, index=getattr(labels, "index", None) if _is_frame(labels) else None)


def _is_frame(labels: Any) -> bool:
    """Whether labels have names of rows and columns, as a DataFrame has."""
    return hasattr(labels, "columns") and not isinstance(labels, LabelTable)


def _assumption(likelihood: Likelihood | None) -> Assumption | None:
    """What a likelihood says of how labels were lost."""
    if likelihood is None:
        return None
    if isinstance(likelihood, CountLikelihood):
        return Assumption(missing_ratio=float(likelihood.rule.missing_ratio))
    if isinstance(likelihood, ScarLikelihood):
        return Assumption(label_frequency=float(likelihood.frequency().mean()))
    name = type(likelihood).__name__
    raise ArgumentError(
        f"likelihood must be count_likelihood() or scar_likelihood(), but got {name}."
    )


def _tables_of(
    labels: Matrix, verified: Matrix | None, class_names: Sequence[str] | None
) -> tuple[LabelTable, LabelTable | None]:
    """The labels of a matrix now and, if some are confirmed, before; images are named by row."""
    rows, columns, shape = _ones("labels", labels)
    columns_of_frame = getattr(labels, "columns", range(shape[1]))
    names = [str(name) for name in columns_of_frame] if class_names is None else class_names
    check_same_shape("class_names", (len(names),), "a row of labels", shape[1:])
    images = pa.array([str(number) for number in range(shape[0])])

    def table_of(places: Places, states: npt.ArrayLike | State) -> LabelTable:
        at = places // shape[1], places % shape[1]
        return LabelTable.from_coo(images, list(names), *at, states, unlisted=State.UNKNOWN)

    labelled = rows * shape[1] + columns
    if verified is None:
        return table_of(labelled, State.PRESENT), None
    seen_rows, seen_columns, seen_shape = _ones("verified", verified)
    check_same_shape("verified", seen_shape, "labels", shape)
    seen = seen_rows * shape[1] + seen_columns
    absent = np.setdiff1d(seen, labelled)
    states = np.repeat([State.PRESENT, State.ABSENT], [len(labelled), len(absent)])
    now = table_of(np.concatenate([labelled, absent]), states)
    before = table_of(np.setdiff1d(labelled, seen), State.PRESENT)
    return now, before if before.count(State.PRESENT) else None  # nothing follows from no label


def _ones(name: str, matrix: Matrix) -> tuple[Places, Places, tuple[int, int]]:
    """Rows and columns of the ones of a matrix of 0 and 1, and its shape."""
    if hasattr(matrix, "tocoo"):
        sparse = matrix.tocoo()
        rows, columns, values = sparse.row, sparse.col, np.asarray(sparse.data)
        shape = sparse.shape
    else:
        dense = _two_dimensional(name, matrix)
        rows, columns = np.nonzero(dense)
        values, shape = dense[rows, columns], dense.shape
    wrong = (values != 0) & (values != 1)  # NaN too
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ArgumentError(
            f"{name} must hold 0 and 1, but entry {int(rows[at]), int(columns[at])} is"
            f" {values[at]}. A label that is unknown is 0 here."
        )
    ones = values == 1
    return rows[ones].astype(np.int64), columns[ones].astype(np.int64), shape


def _features(features: Matrix, images: int) -> Tensor:
    array = _two_dimensional("features", features)
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    inputs = torch.from_numpy(array if array.flags.writeable else array.copy())
    if len(inputs) != images:
        raise ArgumentError(
            f"features must have a row for each of {images} images, not {len(inputs)}."
        )
    finite = torch.isfinite(inputs).all(dim=1)
    if not finite.all():
        row = int(torch.nonzero(~finite)[0])
        raise ArgumentError(f"features must be finite, but those of row {row} are not.")
    return inputs


def _two_dimensional(name: str, matrix: Matrix) -> npt.NDArray[Any]:
    if isinstance(matrix, Tensor):
        matrix = matrix.detach().cpu()
        matrix = matrix.float() if matrix.dtype == torch.bfloat16 else matrix
    array = np.asarray(matrix)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ArgumentError(
            f"{name} must be a matrix of numbers with a row for each image,"
            f" but got {array.dtype} of shape {array.shape}."
        )
    return array
