"""Cross-validated heads of very many classes, a block of classes at a time.

Heads of cross-entropy of different classes are problems of their own. A block is fitted to all
images with a label of its classes, and to a sample of the others that is weighted to stand for all
of them. Only weights are kept; logits are computed when somebody asks for them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilltop.data import LabelTable, State
from hilltop.data.files import replacing
from hilltop.data.label_table import entries_of
from hilltop.models import FeatureHead, input_rows
from hilltop.progress import ProgressLog
from hilltop.training.folds import HeadShards, assign_folds
from hilltop.training.learner import step_threads
from hilltop.training.logistic import (
    Entries,
    LogisticSolver,
    ScaledRows,
    Spectrum,
    l2_penalty,
    label_log_odds,
)
from hilltop.training.recipe import HEADS, Recipe

Ints = npt.NDArray[np.int64]
DENSE_PAIRS = 1 << 26
"""Pairs of images and classes up to which targets and logits are held as matrices, which takes
about 60 bytes a pair: 4 GB."""
BACKGROUND = (1 << 13, 1 << 16)
"""Images without a label of the block that its heads learn from, at the least and at the most: as
many as make 2^27 pairs with the classes."""
LABELLED = 1 << 15
"""Images with a label of the block that its heads learn from, at the most."""
_BACKGROUND_PAIRS = 1 << 27
_BLOCK_ENTRIES = 1 << 24
_SAVED_BLOCKS = 8


@dataclass(frozen=True, eq=False)
class FoldHeads:
    """Heads of all classes, each trained on all folds but one.

    Attributes:
        features: One row an image ``(N, F)``.
        head: The scale of the features.
        weight: Weights ``(heads, C, F)``.
        bias: Biases ``(heads, C)``.
        fold_of: Fold of each image in each deal ``(N, repeats)``.
    """

    features: Tensor
    head: FeatureHead
    weight: Tensor
    bias: Tensor
    fold_of: Tensor

    @torch.no_grad()
    def logits(self, first: int, last: int) -> Tensor:
        """Return out-of-fold logits of the images from a first one to before a last one."""
        inputs = self.head.scaled(input_rows(self.features, torch.arange(first, last))).float()
        repeats = self.fold_of.shape[1]
        folds, found = len(self.weight) // repeats, inputs.new_zeros(len(inputs), len(self.bias[0]))
        for number, (weight, bias) in enumerate(zip(self.weight, self.bias, strict=True)):
            mine = self.fold_of[first:last, number // folds] == number % folds
            rows = torch.nonzero(mine).flatten()
            if len(rows):
                found.index_add_(0, rows, torch.addmm(bias, inputs[rows], weight.T))
        return found.div_(repeats)


def fit_fold_heads(
    features: Tensor,
    table: LabelTable,
    rows: Ints,
    *,
    folds: int,
    repeats: int,
    seed: int,
    say: Callable[[str], None],
    shards: HeadShards | None = None,
    recipe: Recipe = HEADS,
) -> FoldHeads:
    """Fit heads of cross-entropy on all folds but one, a block of classes at a time.

    Memory grows with the features and with the weights, ``folds * repeats * C * F`` numbers; not
    with images x classes. Folds are those of :func:`~hilltop.training.folds.cross_validate`.

    Args:
        features: One row for each of ``rows``.
        table: The labels.
        rows: Image numbers in the table.
        folds: Into how many parts the images are dealt.
        repeats: How often they are dealt anew.
        seed: The same seed gives the same heads.
        say: Takes a sentence for the user.
        shards: Several processes that share the blocks, and the folder where finished ones stay.
        recipe: How the heads are trained.
    """
    generator = torch.Generator().manual_seed(seed)
    deals = [assign_folds(len(rows), folds, generator) for _ in range(repeats)]
    fold_of, classes = torch.stack(deals, dim=1).to(torch.uint8), len(table.classes)
    head = FeatureHead(features.shape[1], 1, hidden=None)
    recipe = recipe.for_head(
        head, features, lambda some: (torch.from_numpy(table.batch(rows[some])[0]), None), seed=seed
    )
    learning = _Learning(features, table, rows, head, recipe, fold_of, folds, seed)
    blocks = list(learning.blocks())
    say(
        f"training {repeats * folds} heads of {classes:,} classes on {len(rows):,} images in"
        f" {len(blocks)} blocks of classes, none on its own fold"
    )
    weight = torch.empty(repeats * folds, classes, features.shape[1])
    bias = torch.empty(repeats * folds, classes)
    units = [blocks[at : at + _SAVED_BLOCKS] for at in range(0, len(blocks), _SAVED_BLOCKS)]
    files = None if shards is None else _unit_files(shards.parts, learning, len(units))
    mine = range(len(units)) if shards is None else shards.ranks.share(range(len(units)))
    with ProgressLog("cross-validation", len(mine), "blocks") as said:
        for done, number in enumerate(mine, start=1):
            columns = np.concatenate(units[number])
            if files is None:
                weight[:, columns], bias[:, columns] = learning.solve_all(units[number])
            elif not files[number].is_file():
                solved = learning.solve_all(units[number])
                with replacing(files[number]) as temporary:
                    np.savez(temporary, weight=solved[0].numpy(), bias=solved[1].numpy())
            said.update(done)
    if shards is not None and files is not None:
        shards.ranks.wait()
        for unit, file in zip(units, files, strict=True):
            columns = np.concatenate(unit)
            with np.load(file, allow_pickle=False) as content:
                weight[:, columns] = torch.from_numpy(content["weight"])
                bias[:, columns] = torch.from_numpy(content["bias"])
    return FoldHeads(features, head, weight, bias, fold_of)


class _Learning:
    """What the heads of all blocks learn from."""

    def __init__(
        self,
        features: Tensor,
        table: LabelTable,
        rows: Ints,
        head: FeatureHead,
        recipe: Recipe,
        fold_of: Tensor,
        folds: int,
        seed: int,
    ) -> None:
        self.features, self._head, self._table, self._rows = features, head, table, rows
        assert recipe.weight_decay is not None
        self.decay, self._fold_of, self._folds, self.seed = (
            recipe.weight_decay, fold_of, folds, seed,
        )  # fmt: skip
        listed, lengths = entries_of(table.indptr, rows)
        present = table.states[listed] == State.PRESENT
        columns = table.columns[listed][present]
        order = np.argsort(columns, kind="stable")
        self.images = np.repeat(np.arange(len(rows)), lengths)[present][order]
        self.counts = np.bincount(columns, minlength=len(table.classes))
        self._starts = np.concatenate([[0], np.cumsum(self.counts)])
        most = int(np.clip(_BACKGROUND_PAIRS // len(self.counts), *BACKGROUND))
        rng = np.random.default_rng([seed, 1])
        self._background = np.sort(rng.permutation(len(rows))[:most])
        self._spectrum = Spectrum(self._inputs(self._background))

    def blocks(self) -> Iterator[Ints]:
        """Yield classes that are fitted together, from rare ones to common ones."""
        heads = self._folds * self._fold_of.shape[1]
        block: list[int] = []
        labelled = 0
        for column in np.argsort(self.counts, kind="stable").tolist():
            more = labelled + int(self.counts[column])
            entries = (len(self._background) + min(more, LABELLED)) * (len(block) + 1) * heads
            if block and (more > LABELLED or entries > _BLOCK_ENTRIES):
                yield np.array(block)
                block, more = [], int(self.counts[column])
            block.append(column)
            labelled = more
        yield np.array(block)

    def solve_all(self, blocks: list[Ints]) -> tuple[Tensor, Tensor]:
        """Fit the heads of some blocks: weights ``(heads, classes, F)`` and biases."""
        weights, biases = zip(*(self._solve(block) for block in blocks), strict=True)
        return torch.cat(weights, dim=1), torch.cat(biases, dim=1)

    def _solve(self, columns: Ints) -> tuple[Tensor, Tensor]:
        chosen, row_weight = self._sample(columns)
        targets = torch.zeros(len(chosen), len(columns))
        for at, column in enumerate(columns.tolist()):
            found = np.isin(chosen, self._labelled(column), assume_unique=True)
            targets[torch.from_numpy(found), at] = 1.0
        known, scopes = torch.ones_like(targets), self._table.scopes
        if scopes is not None:
            looked = scopes.looked_for[scopes.of_image[self._rows[chosen]]][:, columns]
            known = torch.from_numpy(looked).float().maximum(targets)
        entries = Entries(targets, known, torch.from_numpy(row_weight).float())
        inputs = self._inputs(chosen)
        inputs.spectrum = self._spectrum
        folds = self._fold_of[torch.from_numpy(chosen)].long()
        scoring = torch.nn.functional.one_hot(folds, self._folds).flatten(1)
        heads, width = scoring.shape[1], inputs.shape[1]
        weight, bias = torch.zeros(heads * len(columns), width), torch.zeros(heads * len(columns))
        penalty = l2_penalty(self.decay, entries)
        solver = LogisticSolver(weight, bias, inputs, entries, penalty, learns=scoring == 0)
        with step_threads(len(chosen), width, len(weight)):
            solver.solve()
        # As in cross-validation of all classes together: scores of folds are comparable.
        whole = label_log_odds(entries.rows @ entries.positive, entries.rows @ entries.total)
        level = whole.repeat(heads) - solver.log_odds
        return weight.view(heads, len(columns), width), (bias + level).view(heads, len(columns))

    def _sample(self, columns: Ints) -> tuple[Ints, npt.NDArray[np.float64]]:
        """Images to learn from, in order, and how many images each stands for."""
        labelled = np.unique(np.concatenate([self._labelled(one) for one in columns.tolist()]))
        others = np.setdiff1d(self._background, labelled, assume_unique=True)
        outside = (len(self._rows) - len(labelled)) / max(1, len(others))
        inside = 1.0
        if len(labelled) > LABELLED:
            rng = np.random.default_rng([self.seed, 2, int(columns[0])])
            inside = len(labelled) / LABELLED
            labelled = rng.permutation(labelled)[:LABELLED]
        chosen = np.concatenate([labelled, others])
        weight = np.repeat([inside, outside], [len(labelled), len(others)])
        order = np.argsort(chosen)
        return chosen[order], weight[order]

    def _labelled(self, column: int) -> Ints:
        found: Ints = self.images[self._starts[column] : self._starts[column + 1]]
        return found

    def _inputs(self, rows: Ints) -> ScaledRows:
        some = input_rows(self.features, torch.from_numpy(rows))
        return ScaledRows(self._head.scaled(some).float(), None)


def _unit_files(parts: Path, learning: _Learning, number: int) -> list[Path]:
    """Where heads are kept: names follow from everything that they depend on, about."""
    parts.mkdir(parents=True, exist_ok=True)
    features = learning.features
    settings = f"{tuple(features.shape)} {learning.decay} {learning.seed} {number}"
    digest = hashlib.blake2b(settings.encode(), digest_size=8)
    some = features[:: max(1, len(features) // 4096)].contiguous()
    for array in (some.view(torch.uint8).numpy(), learning.images, learning.counts):
        digest.update(np.ascontiguousarray(array).data)
    name = digest.hexdigest()
    return [parts / f"heads-{name}-{at:04}.npz" for at in range(number)]
