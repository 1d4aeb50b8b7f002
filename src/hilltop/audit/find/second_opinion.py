"""Second opinions: scores of another model, joined to ours with a trust learned for each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor

from hilltop.checks import pluralize
from hilltop.data.array_files import read_npz
from hilltop.data.csv_rows import read_cells
from hilltop.data.data_errors import data_error
from hilltop.data.scores import ScoreTable

TRUST_SPREAD, OWN_TRUST_SPREAD = 1.0, 0.3
"""How far the trust in an opinion may lie from none, and those of classes from one another."""
DOUBT = 1.5
"""Standard errors by which a trust is lowered: chance alone is no reason to listen."""
_MOST_ENTRIES = 400_000
_CLOSEST = 1e-6


@dataclass(frozen=True)
class Joined:
    """Our scores with a second opinion in.

    Attributes:
        logits: Of both together ``(N, C)``.
        trust: How many logits one standard deviation of the opinion is worth, for each class; 0
            for a class that it says nothing of, or nothing of use.
    """

    logits: Tensor
    trust: npt.NDArray[np.float64]

    def sentence(self, classes: Sequence[str]) -> str:
        """Say how much it is trusted; ``classes`` are the names."""
        used = int((self.trust > 0.05).sum())
        if not used:
            return "the second opinion is of no use for any class"
        return (
            f"the second opinion counts for {pluralize(used, 'class', 'classes')},"
            f" most for {classes[int(self.trust.argmax())]!r}"
        )


def join_opinion(logits: Tensor, opinion: Tensor, targets: Tensor) -> Joined:
    r"""Add a second opinion to scores, as far as the labels speak for it.

    .. math:: x' = a x + b_j + t_j z, \qquad t_j \ge 0

    z is the opinion, each class with mean 0 and variance 1. The numbers are fitted to the labels by
    cross-entropy, with priors that draw the trusts together and towards 0: an opinion without use,
    such as a shuffled one, is not listened to.

    Args:
        logits: Our scores, which never saw these labels ``(N, C)``.
        opinion: Logits, or any numbers that grow with the probability; NaN for none.
        targets: 1 for labelled, 0 for not labelled, NaN for unknown.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> logits, opinion = torch.randn(2, 2000, 1, generator=generator)
        >>> prob = torch.sigmoid(logits + 2 * opinion)
        >>> labels = (torch.rand(2000, 1, generator=generator) < prob).float()
        >>> bool(1.8 < join_opinion(logits, opinion, labels).trust[0] < 2.2)
        True
        >>> shuffled = opinion[torch.randperm(2000, generator=generator)]
        >>> bool(join_opinion(logits, shuffled, labels).trust[0] < 0.1)
        True
    """
    scaled = _standardized(opinion.float())
    every = max(1, -(-logits.numel() // _MOST_ENTRIES))
    some = (logits[::every].float(), scaled[::every], targets[::every].float())
    numbers = _fit(*some)
    classes = logits.shape[1]
    slope, shift, trust = _parts(numbers, classes)
    trust = (trust - DOUBT * _errors(*some, numbers)).clamp(min=0)
    trust = trust * (~opinion.isnan()).any(dim=0)
    joined = logits.float() * slope + shift + scaled * trust
    return Joined(joined, trust.double().numpy())


def read_opinion(
    path: Path, images: pa.Array, classes: tuple[str, ...], *, names: Mapping[str, str]
) -> Tensor:
    """Read a second opinion for some images and classes; NaN where it has none.

    Args:
        path: ``.npz`` with ids, classes and scores, or scores as written by predict. Scores that
            all lie between 0 and 1 are probabilities, others logits.
        images: Image ids.
        classes: Class names.
        names: Our name for classes that are called something else there. Where several of theirs
            are one of ours, such as breeds of dogs, the highest score counts.

    Raises:
        DataError: The file cannot be read, or is about none of the images or classes.
    """
    table = _read_npz(path) if path.suffix == ".npz" else ScoreTable.load(path)
    rows = pc.index_in(images, value_set=table.images).fill_null(-1).to_numpy()
    theirs: dict[str, list[int]] = {}
    for place, name in enumerate(table.classes):
        theirs.setdefault(names.get(name, name), []).append(place)
    known = [column for column, name in enumerate(classes) if name in theirs]
    if (rows < 0).all() or not known:
        what = "images" if (rows < 0).all() else "classes; name them with --also-names"
        raise data_error(path, f"this second opinion is about none of the {what}.")
    there = table.values[rows[rows >= 0]]
    given = np.stack([there[:, theirs[classes[column]]].max(axis=1) for column in known], axis=1)
    given = given.astype(np.float32)
    if given.min() >= 0 and given.max() <= 1:
        clipped = np.clip(given, _CLOSEST, 1 - _CLOSEST)
        given = np.log(clipped) - np.log1p(-clipped)
    values = np.full((len(rows), len(classes)), np.nan, dtype=np.float32)
    values[np.ix_(rows >= 0, known)] = given
    return torch.from_numpy(values)


def read_names(path: Path | None) -> dict[str, str]:
    """Read a CSV file of two columns, a class of the second opinion and our name for it."""
    if path is None:
        return {}
    found = {}
    for line, cells in read_cells(path):
        if len(cells) != 2:
            raise data_error(path, f"expected their name and ours, but got {cells!r}.", line=line)
        found[cells[0]] = cells[1]
    return found


def _read_npz(path: Path) -> ScoreTable:
    ids, classes, values = read_npz(path, ("ids", "classes", "scores"))
    if values.dtype.kind not in "fiu" or ids.ndim != 1 or classes.ndim != 1:
        raise data_error(path, "expected lists of ids and classes, and a table of numbers, scores.")
    if values.shape != (len(ids), len(classes)) or not np.isfinite(values).all():
        raise data_error(
            path,
            f"scores must be finite, {len(ids)} ids by {len(classes)} classes, but have the shape"
            f" {values.shape}.",
        )
    return ScoreTable(pa.array(ids.astype(str)), tuple(map(str, classes)), values)


def _standardized(opinion: Tensor) -> Tensor:
    """Each class with mean 0 and variance 1; 0 where there is no opinion."""
    there = ~opinion.isnan()
    count = there.sum(dim=0).clamp(min=1)
    mean = opinion.nansum(dim=0) / count
    away = torch.where(there, opinion - mean, 0.0)
    std = (away.square().sum(dim=0) / count).sqrt()
    return away / torch.where(std > 0, std, 1.0)


def _parts(numbers: Tensor, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Slope, shifts and trusts; no trust is negative."""
    trust = (numbers[2] + numbers[3 + classes :]).clamp(min=0)
    return numbers[0].clamp(-3, 3).exp(), numbers[1] + numbers[3 : 3 + classes], trust


def _errors(logits: Tensor, opinion: Tensor, targets: Tensor, numbers: Tensor) -> Tensor:
    """Standard error of the trust of each class, by the Fisher information."""
    slope, shift, trust = _parts(numbers, logits.shape[1])
    probs = torch.sigmoid(logits * slope + shift + opinion * trust)
    information = (probs * (1 - probs) * opinion.square() * ~targets.isnan()).sum(dim=0)
    return (information + OWN_TRUST_SPREAD**-2).rsqrt()


def _fit(logits: Tensor, opinion: Tensor, targets: Tensor) -> Tensor:
    classes = logits.shape[1]
    known, labels = (~targets.isnan()).float(), targets.nan_to_num()
    numbers = torch.zeros(3 + 2 * classes)
    numbers[2] = 0.1  # at 0 there would be no gradient
    numbers.requires_grad_()
    search = torch.optim.LBFGS([numbers], max_iter=60, line_search_fn="strong_wolfe")

    def value() -> Tensor:
        search.zero_grad()
        slope, shift, trust = _parts(numbers, classes)
        moved = logits * slope + shift + opinion * trust
        cost = F.binary_cross_entropy_with_logits(moved, labels, weight=known, reduction="sum")
        prior = numbers[0].square() + (numbers[2] / TRUST_SPREAD).square()
        prior = prior + (numbers[3 : 3 + classes] / 0.5).square().sum()
        prior = prior + (numbers[3 + classes :] / OWN_TRUST_SPREAD).square().sum()
        total = cost + prior / 2
        total.backward()  # type: ignore[no-untyped-call]
        return total

    with torch.enable_grad():
        search.step(value)  # type: ignore[no-untyped-call]
    return numbers.detach()
