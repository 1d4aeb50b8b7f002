"""Cross-validated heads of an audit, a block of classes at a time.

Heads of cross-entropy of different classes are problems of their own. Of up to ``WHOLE_PAIRS``
pairs, a block is fitted to all images. Of more, it is fitted to the images with a label of its
classes, and to a sample of the others that is weighted to stand for all of them. The mean gradient
of many more images then takes the place of the sample's, and the block is fitted once more from
where it is: so the heads are close to those of all images. Only weights are kept; logits are
computed when somebody asks for them.

Reference:
    Jordan, Lee and Yang, "Communication-Efficient Distributed Statistical Inference", JASA 2019.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilltop.data import LabelTable, State
from hilltop.data.array_files import digest_of
from hilltop.data.label_table import entries_of
from hilltop.inputs.ranks import Arrays, Parts
from hilltop.models import FeatureHead, input_rows
from hilltop.training.folds import assign_folds
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
WHOLE_PAIRS = 1 << 26
"""Pairs of images and classes up to which heads learn from all images."""
BACKGROUND = 1 << 13
"""Images without a label of the block that its heads learn from, at the most."""
LABELLED = 1 << 15
"""Images with a label of the block that its heads learn from, at the most."""
CORRECTED_PAIRS = 1 << 31
"""Pairs of all classes and of the images whose gradients correct what the sample says."""
_CORRECTED_LABELLED = 1 << 19
_BLOCK_ENTRIES = 1 << 20
_WHOLE_BLOCK_ENTRIES = 1 << 22
_CHUNK_ENTRIES = 1 << 20
_INPUT_NUMBERS = 1 << 25
_MOST_PARTS = 256


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
        step = max(1, _INPUT_NUMBERS // self.features.shape[1])
        starts = range(first, last, step)
        parts = [self._logits(start, min(start + step, last)) for start in starts]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _logits(self, first: int, last: int) -> Tensor:
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
    parts: Parts = Parts(),  # noqa: B008 (it cannot be changed)
    recipe: Recipe = HEADS,
) -> FoldHeads:
    """Fit heads of cross-entropy on all folds but one, a block of classes at a time.

    Memory grows with the features and with the weights, ``folds * repeats * C * F`` numbers; not
    with images x classes. Folds are those of :func:`~hilltop.training.heads.cross_validate`.

    Args:
        features: One row for each of ``rows``.
        table: The labels.
        rows: Image numbers in the table.
        folds: Into how many parts the images are dealt.
        repeats: How often they are dealt anew.
        seed: The same seed gives the same heads.
        say: Takes a sentence for the user.
        parts: Several processes that share the blocks, and the folder where finished ones stay.
        recipe: How the heads are trained.
    """
    generator = torch.Generator().manual_seed(seed)
    deals = [assign_folds(len(rows), folds, generator) for _ in range(repeats)]
    fold_of, classes = torch.stack(deals, dim=1).to(torch.uint8), len(table.classes)
    # Numbers of 64 bits are only worth it where heads learn from all of them.
    whole = len(rows) * classes <= WHOLE_PAIRS
    double = whole and features.dtype == torch.float64
    head = FeatureHead(features.shape[1], 1, hidden=None).to(torch.float64 if double else None)
    recipe = recipe.for_head(
        head, features, lambda some: (torch.from_numpy(table.batch(rows[some])[0]), None), seed=seed
    )
    learning = _Learning(features, table, rows, head, recipe, fold_of, folds, seed, whole)
    blocks = list(learning.blocks())
    say(
        f"training {repeats * folds} heads of {classes:,} classes on {len(rows):,} images, none on"
        " its own fold"
    )
    weight = torch.empty(repeats * folds, classes, features.shape[1])
    bias = torch.empty(repeats * folds, classes)
    units = np.array_split(np.arange(len(blocks)), min(len(blocks), _MOST_PARTS))

    def solve(number: int) -> Arrays:
        return learning.solve_all([blocks[at] for at in units[number]])

    names = [f"heads-{learning.digest}-{number:04}.npz" for number in range(len(units))]
    for unit, solved in zip(units, parts.make(names, solve, "cross-validation"), strict=True):
        columns = np.concatenate([blocks[at] for at in unit])
        weight[:, columns], bias[:, columns] = map(torch.from_numpy, solved)
    return FoldHeads(features, head, weight, bias, fold_of)


class _Sample(NamedTuple):
    """Images to learn from, in order, and how many images each stands for."""

    images: Ints
    weight: npt.NDArray[np.float64]

    def parts(self, size: int) -> Iterator[_Sample]:
        """Yield so many images at a time."""
        for first in range(0, len(self.images), size):
            here = slice(first, first + size)
            yield _Sample(self.images[here], self.weight[here])


class _Listed:
    """Images that list a class in some states, by class."""

    def __init__(self, table: LabelTable, rows: Ints, *states: State) -> None:
        listed, lengths = entries_of(table.indptr, rows)
        chosen = np.isin(table.states[listed], states)
        columns = table.columns[listed][chosen]
        order = np.argsort(columns, kind="stable")
        self.images = np.repeat(np.arange(len(rows)), lengths)[chosen][order]
        self.counts = np.bincount(columns, minlength=len(table.classes))
        self._starts = np.concatenate([[0], np.cumsum(self.counts)])

    def of(self, column: int) -> Ints:
        """The images of a class, in order."""
        found: Ints = self.images[self._starts[column] : self._starts[column + 1]]
        return found

    def marks(self, columns: Ints, images: Ints) -> npt.NDArray[np.float32]:
        """1 where an image lists a class ``(images, columns)``."""
        marks = np.zeros((len(images), len(columns)), dtype=np.float32)
        for at, column in enumerate(columns.tolist()):
            mine = self.of(column)
            place = np.searchsorted(images, mine).clip(max=len(images) - 1)
            marks[place[images[place] == mine], at] = 1.0
        return marks


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
        whole: bool,
    ) -> None:
        assert recipe.weight_decay is not None
        self._features, self._head, self._whole = features, head, whole
        self._decay, self._slope, self._seed = recipe.weight_decay, recipe.slope, seed
        self._fold_of, self._folds = fold_of, folds
        self._present = _Listed(table, rows, State.PRESENT)
        self._scopes = None if table.scopes is None else table.scopes.select(rows)
        if self._scopes is not None:
            self._known = _Listed(table, rows, State.PRESENT, State.ABSENT)
        self._labelled, self._background = len(rows), np.arange(len(rows))
        self._corrected, self._block_entries = self._background, _WHOLE_BLOCK_ENTRIES
        if not whole:
            order = np.random.default_rng([seed, 1]).permutation(len(rows))
            most = max(BACKGROUND, CORRECTED_PAIRS // len(table.classes))
            self._background, self._corrected = np.sort(order[:BACKGROUND]), np.sort(order[:most])
            self._labelled, self._block_entries = LABELLED, _BLOCK_ENTRIES

    def blocks(self) -> Iterator[Ints]:
        """Yield classes that are fitted together, from rare ones to common ones."""
        heads = self._folds * self._fold_of.shape[1]
        block: list[int] = []
        labelled = 0
        for column in np.argsort(self._present.counts, kind="stable").tolist():
            more = labelled + int(self._present.counts[column])
            images = len(self._background) + min(more, self._labelled)
            full = min(images, len(self._fold_of)) * (len(block) + 1) * heads > self._block_entries
            if block and (full or (more > self._labelled and not self._whole)):
                yield np.array(block)
                block, more = [], int(self._present.counts[column])
            block.append(column)
            labelled = more
        yield np.array(block)

    def solve_all(self, blocks: list[Ints]) -> Arrays:
        """Return weights ``(heads, classes, F)`` and biases of the heads of some blocks."""
        solved = zip(*(self._solve(block) for block in blocks), strict=True)
        return tuple(torch.cat(parts, dim=1).float().numpy() for parts in solved)

    def _solve(self, columns: Ints) -> tuple[Tensor, Tensor]:
        sample = self._sample(columns, self._background, self._labelled)
        entries, scoring = self._entries(columns, sample), self._scoring(sample.images)
        inputs = self._everything
        if not self._whole:
            inputs = ScaledRows(self._scaled(sample.images), None)
            inputs.spectrum = self._spectrum
        heads, width = scoring.shape[1], inputs.shape[1]
        weight = self._head.mean.new_zeros(heads * len(columns), width)
        bias = weight.new_zeros(len(weight))
        penalty = l2_penalty(self._decay, entries)
        solver = LogisticSolver(
            weight, bias, inputs, entries, penalty, learns=scoring == 0, slope=self._slope
        )
        with step_threads(len(sample.images), width, len(weight)):
            solver.solve()
            more = self._sample(columns, self._corrected, _CORRECTED_LABELLED)
            if len(more.images) > len(sample.images):
                fit_bias = solver.fit_bias
                here, there = (
                    self._mean_gradient(columns, some, weight, fit_bias, bias)
                    for some in (sample, more)
                )
                solver.tilt(there[0] - here[0], there[1] - here[1])
                solver.solve()
        # A fold with more labels leaves fewer to learn from: at the log odds of these, its scores
        # would be lower for it, and scores of folds could not be compared.
        whole = label_log_odds(entries.rows @ entries.positive, entries.rows @ entries.total)
        level = whole.repeat(heads) - solver.log_odds
        return weight.view(heads, len(columns), width), (bias + level).view(heads, len(columns))

    def _mean_gradient(
        self, columns: Ints, sample: _Sample, weight: Tensor, fit_bias: Tensor, bias: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Gradient of the mean loss of each head by weights, and its mean error, over a sample."""
        gradient, surplus = torch.zeros_like(weight), torch.zeros_like(bias)
        rows: Tensor | float = 0.0
        for part in sample.parts(max(1, _CHUNK_ENTRIES // len(weight))):
            entries, inputs = self._entries(columns, part), self._scaled(part.images)
            learns = (self._scoring(part.images) == 0) * entries.rows.unsqueeze(1)
            scores = inputs @ weight.T
            by_weight = (
                _errors(scores / self._slope + fit_bias, entries)
                .mul_(learns.unsqueeze(2))
                .flatten(1)
            )
            gradient.addmm_(by_weight.T, inputs)
            shifted = _errors(scores.add_(bias), entries)
            surplus += torch.einsum("nhc,nh->hc", shifted, learns).flatten()
            rows = rows + learns.sum(dim=0)
        assert isinstance(rows, Tensor)
        rows = rows.repeat_interleave(len(columns))
        return gradient / rows.unsqueeze(1), surplus / rows

    def _entries(self, columns: Ints, sample: _Sample) -> Entries:
        """Labels of some classes in a sample, as weights."""
        positive = torch.from_numpy(self._present.marks(columns, sample.images))
        known = torch.ones_like(positive)
        if self._scopes is not None:
            looked = self._scopes.looked_for[self._scopes.of_image[sample.images]][:, columns]
            listed = torch.from_numpy(self._known.marks(columns, sample.images))
            known = torch.from_numpy(looked).float().maximum(listed)
        entries = Entries(positive, known, torch.from_numpy(sample.weight))
        return entries.to(self._head.mean)

    def _scoring(self, images: Ints) -> Tensor:
        """1 for the heads that are to score an image, which do not learn from it."""
        folds = self._fold_of[torch.from_numpy(images)].long()
        return torch.nn.functional.one_hot(folds, self._folds).flatten(1)

    def _sample(self, columns: Ints, background: Ints, most: int) -> _Sample:
        """Images with a label of these classes, at most so many, and those of the background."""
        if self._whole:
            return _Sample(background, np.ones(len(background)))
        labelled = np.unique(np.concatenate([self._present.of(one) for one in columns.tolist()]))
        others = np.setdiff1d(background, labelled, assume_unique=True)
        outside = (len(self._fold_of) - len(labelled)) / max(1, len(others))
        inside = max(1.0, len(labelled) / most)
        if len(labelled) > most:
            rng = np.random.default_rng([self._seed, 2, int(columns[0])])
            labelled = rng.permutation(labelled)[:most]
        chosen = np.concatenate([labelled, others])
        weight = np.repeat([inside, outside], [len(labelled), len(others)])
        order = np.argsort(chosen)
        return _Sample(chosen[order], weight[order])

    @functools.cached_property
    def _everything(self) -> ScaledRows:
        return ScaledRows(self._features, self._head)

    @functools.cached_property
    def _spectrum(self) -> Spectrum:
        return Spectrum(ScaledRows(self._scaled(self._background), None))

    def _scaled(self, images: Ints) -> Tensor:
        return self._head.scaled(input_rows(self._features, torch.from_numpy(images))).float()

    @property
    def digest(self) -> str:
        """A name that follows from everything that the heads depend on."""
        features, deals = self._features, self._fold_of.shape
        how = [self._decay, self._slope, self._seed, deals, self._folds, self._block_entries]
        arrays = [features.numpy(), self._present.images, self._present.counts]
        if self._scopes is not None:
            arrays += [self._scopes.looked_for, self._scopes.of_image]
        return digest_of([*how, features.shape], arrays)


def _errors(logits: Tensor, entries: Entries) -> Tensor:
    """Probabilities minus labels, times weights ``(rows, heads, classes)``; logits are used up."""
    probs = logits.sigmoid_().view(len(logits), -1, entries.total.shape[1])
    return probs.mul_(entries.total.unsqueeze(1)).sub_(entries.positive.unsqueeze(1))
