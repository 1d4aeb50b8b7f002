"""What scores that never saw the labels say about labels that are missing, and how sure that is.

Counts of labels cannot tell "annotators stopped after one" from "there is only one"; scores often
can. "Nothing is missing" is among what is compared, and wins unless the labels speak against it.
Training, audit, advice and decisions all ask here, so that they say the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from hilltop.calibration.arrays import Floats
from hilltop.calibration.keep_posterior import Counts, KeepPosterior, MissingCounts
from hilltop.calibration.keep_rate import Fitted
from hilltop.calibration.observation import TINY_RESTORE_PROB, describe_model
from hilltop.calibration.posterior import present_probability
from hilltop.calibration.profile import LOG_KEEP, Profile, Shapes, profile
from hilltop.calibration.scaling import calibrate
from hilltop.calibration.truth_mean import mean_over_rates, mean_with_count_rule
from hilltop.losses import CountLikelihood
from hilltop.losses.likelihood import Likelihood, count_nll, scar_nll

Kind = Literal["nothing", "independent", "count"]

RATIOS = ("0.5", "0.8", "1")
"""Missing ratios of the paper's rule that are tried."""
HIGHEST_KEEP = 0.9
"""Candidates are ranked as if no more than this were kept: an order is wanted even if all were."""
OWN_KEEP, OWN_SHIFT = 0.3, 0.5
"""How far classes go their own ways in keep rate and calibration; in full, errors of single classes
put their pairs before all others."""
LEAST_GAIN = 0.1
"""Nats a row by which a count rule must beat a keep rate of its own for each class."""
ROUGH_STEPS = 12
"""Steps of the fit when count rules are compared with each other."""
MOST_EMPTY = 0.05
"""Share of rows without a label up to which a count rule, which leaves none empty, is believed."""
CONTRADICTED = 3.0
"""Nats: scores contradict a keep rate that is worse than 1 by more."""
SINGLE_SHARE = 0.95
"""Share of rows with exactly one label from which it is said that this looks like a rule."""
ASSUMED = "assumed: which labels were left out does not depend on how clear they are"
"""What scores cannot tell, and random samples of answers can."""


@dataclass(frozen=True)
class Belief:
    """How labels were lost, as far as scores tell.

    Attributes:
        kind: Whether nothing is missing, each label was kept by itself, or a number of them.
        model: The observation model, with the calibration of scores that belongs to it.
        posterior: Keep rates of classes, and how sure they are.
        missing: How many labels are missing, with intervals.
        agreeing: Models for training; a pair is distrusted as far as all of them agree. None of
            them for "nothing".
        find_truth: Finds ``truth``, which not everybody needs.
        sentence: What was found, in words.
        slopes: Slope of the calibration at each of ``LOG_KEEP``, as a share of that of the model;
            None where no curve over keep rates was made.
    """

    kind: Kind
    model: Fitted
    posterior: KeepPosterior
    missing: MissingCounts
    agreeing: tuple[Fitted, ...]
    find_truth: Callable[[], Fitted]
    sentence: str
    slopes: Floats | None = None

    @cached_property
    def truth(self) -> Fitted:
        """The mean over all keep rates that are possible, found when it is first asked for.

        Its calibration gives the probability that a label is true, for any row.
        """
        return self.find_truth()

    def __getstate__(self) -> dict[str, Any]:
        """What goes to other processes: the truth itself, since what finds it cannot go."""
        return {**vars(self), "truth": self.truth, "find_truth": partial(_itself, self.truth)}

    @property
    def of_candidates(self) -> str:
        """What was found, and how probabilities of candidates are meant where none is expected."""
        if self.kind != "nothing":
            return self.sentence
        return (
            f"{self.sentence}; probabilities of candidates are as if {1 - HIGHEST_KEEP:.0%} of the"
            " labels were missing, to give an order"
        )

    def present_probability(
        self, logits: Tensor, targets: Tensor, *, observed: Tensor | None = None
    ) -> Tensor:
        """Return how probable it is that each pair is really present, given the labels.

        Args:
            logits: Scores that never saw these labels ``(N, C)``.
            targets: 1 for labelled, 0 for not labelled, NaN where nobody looked.
            observed: True where a person confirmed the target.
        """
        moved = self.model.calibration(logits.float())
        return present_probability(self.model.loss, moved, targets.float(), observed=observed)

    def absent_probability(
        self, logits: Tensor, targets: Tensor, *, observed: Tensor | None = None
    ) -> Tensor:
        """Return how probable it is that each unlabelled pair is absent; 1 for all other pairs.

        Args:
            logits: Scores that never saw these labels ``(N, C)``.
            targets: 1 for labelled, 0 for not labelled, NaN for unknown.
            observed: True where a person confirmed the target.
        """
        weight = torch.ones_like(logits, dtype=torch.float32)
        if not self.agreeing:
            return weight
        labelled = targets.nan_to_num().float()
        present = [
            present_probability(model.loss, model.calibration(logits.float()), labelled)
            for model in self.agreeing
        ]
        open_pairs = targets == 0
        if observed is not None:
            open_pairs &= ~observed
        return torch.where(open_pairs, 1 - torch.stack(present).amin(dim=0), weight)


def believe(
    logits: Tensor,
    targets: Tensor,
    *,
    observed: Tensor | None = None,
    given: Likelihood | None = None,
    shapes: Shapes | None = None,
) -> Belief:
    """Find out how labels were lost.

    Args:
        logits: Scores that never saw these labels, best of cross-entropy ``(N, C)``.
        targets: 1 for labelled, 0 for not labelled, NaN for unknown.
        observed: True where a person confirmed that a pair is absent.
        given: How labels were lost, if that is known.
        shapes: How far the curves of classes may differ from a common one; by nothing without it.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> logits = 6 * torch.randn(2000, 3, generator=generator)
        >>> true = torch.rand(2000, 3, generator=generator) < torch.sigmoid(logits)
        >>> kept = true & (torch.rand(2000, 3, generator=generator) < 0.5)
        >>> believe(logits, true.float()).kind, believe(logits, kept.float()).kind
        ('nothing', 'independent')
    """
    logits, targets = logits.float(), targets.float()
    if given is not None:
        model = Fitted(given, calibrate(given, logits, targets, observed=observed))
        return _modelled(
            model, logits, targets, observed, f"ranked by {describe_model(given)}, as asked"
        )
    found = profile(logits, targets, observed=observed, shapes=shapes)
    independent = _independent(logits, targets, found, shapes)
    counted = _counted(logits, targets, observed, found)
    if counted is None:
        return independent
    agreed = (*counted.agreeing, *independent.agreeing) if independent.agreeing else ()

    def find_truth() -> Fitted:
        return mean_with_count_rule(logits, targets, counted.truth, independent.truth)

    # Keep rates alone see too few missing labels where features are weak, a count rule too many.
    posterior = replace(counted.posterior, beside=independent.posterior)
    missing = posterior.missing(_labelled(targets))
    sentence = f"{_written_down(targets, missing)}, {counted.sentence}; {ASSUMED}"
    sentence += _if_single(targets)
    return replace(
        counted,
        posterior=posterior,
        missing=missing,
        agreeing=agreed,
        find_truth=find_truth,
        sentence=sentence,
    )


def _itself(truth: Fitted) -> Fitted:
    return truth


def _independent(logits: Tensor, targets: Tensor, found: Profile, shapes: Shapes | None) -> Belief:
    """A keep rate for each class, or nothing missing."""
    labelled = _labelled(targets)
    evidence = 1.0 if shapes is None else shapes.evidence(float(labelled.sum()))
    posterior = KeepPosterior.of(evidence * found.costs)
    rates, missing = posterior.mean(), posterior.missing(labelled)
    model = _fitted(found, rates, labelled, least=-np.log(HIGHEST_KEEP))
    slopes = found.slopes / float(model.calibration.slope)

    def find_truth() -> Fitted:
        return mean_over_rates(logits, targets, found, posterior)

    if not missing.any_missing:
        sentence = (
            "the labels show no sign that any is missing, though"
            f" {missing.total[2]:,.0f} could be unnoticed{_if_single(targets)}"
        )
        return Belief("nothing", model, posterior, missing, (), find_truth, sentence, slopes)
    sentence = f"{_written_down(targets, missing)}, each by itself; {ASSUMED}"
    return Belief("independent", model, posterior, missing, (model,), find_truth, sentence, slopes)


def _fitted(found: Profile, log_keep: Floats, labelled: Counts, *, least: float) -> Fitted:
    """The model at keep rates that are drawn together, with the calibration at their mean."""
    common = float(np.average(log_keep, weights=np.maximum(labelled, 1e-9)))
    own = np.minimum(-0.02, min(common, -least) + OWN_KEEP * (log_keep - common))
    at = int(np.abs(LOG_KEEP - min(common, -least)).argmin())
    full = found.calibration(at)
    middle = full.shift.median()
    calibration = replace(full, shift=middle + OWN_SHIFT * (full.shift - middle))
    return Fitted(scar_nll(torch.from_numpy(np.exp(own)).float()), calibration)


def _counted(
    logits: Tensor, targets: Tensor, observed: Tensor | None, found: Profile
) -> Belief | None:
    """A count rule, where scores support it much better than keep rates, and nothing forbids it."""
    if float((targets.nansum(dim=1) == 0).float().mean()) > MOST_EMPTY:
        return None
    start = found.calibration(0)
    rivals = float(found.costs.min(axis=0).sum())
    rules = {ratio: count_nll(ratio, restore_prob=TINY_RESTORE_PROB) for ratio in RATIOS}
    about = {
        ratio: calibrate(loss, logits, targets, observed=observed, start=start, steps=ROUGH_STEPS)
        for ratio, loss in rules.items()
    }
    ratio = min(RATIOS, key=lambda one: about[one].loss)
    if (rivals - about[ratio].loss) / len(targets) <= LEAST_GAIN / 2:
        return None  # far from it: not worth the last few nats
    made = calibrate(rules[ratio], logits, targets, observed=observed, start=about[ratio])
    model, gain = Fitted(rules[ratio], made), (rivals - made.loss) / len(targets)
    if gain <= LEAST_GAIN:
        return None
    sentence = (
        f"of t labels of an image floor(t (1 - r)) + 1, r = {ratio}; scores prefer this to each by"
        f" itself by {gain:.2f} nats an image"
    )
    belief = _modelled(model, logits, targets, observed, sentence)
    keep = _labelled(targets).sum() / (_labelled(targets).sum() + belief.missing.total[1])
    pooled = found.costs.sum(axis=1)
    at_keep = np.interp(-np.log(max(0.7, keep)), -LOG_KEEP, pooled)
    return None if at_keep >= pooled[0] + CONTRADICTED else belief


def _modelled(
    model: Fitted, logits: Tensor, targets: Tensor, observed: Tensor | None, sentence: str
) -> Belief:
    """What a model implies that no curve over keep rates belongs to."""
    moved = model.calibration(logits)
    present = present_probability(model.loss, moved, targets, observed=observed)
    missing = (present * (targets == 0)).sum(dim=0).double().numpy()
    labelled = _labelled(targets)
    log_keep = np.log(np.maximum(labelled, 0.5) / np.maximum(labelled + missing, 0.5))
    posterior = KeepPosterior.around(log_keep)
    counts = posterior.missing(labelled)
    kind: Kind = "count" if isinstance(model.loss, CountLikelihood) else "independent"
    return Belief(kind, model, posterior, counts, (model,), lambda: model, sentence)


def _if_single(targets: Tensor) -> str:
    """A word where nearly every row has exactly one label: scores may not tell why."""
    single = float((targets.nansum(dim=1) == 1).float().mean())
    if single < SINGLE_SHARE or targets.shape[1] < 3:
        return ""
    return (
        f"; {single:.0%} of the images have exactly one label: whether people stopped after one or"
        " there is only one, answers to a random sample tell"
    )


def _written_down(targets: Tensor, missing: MissingCounts) -> str:
    labelled = _labelled(targets).sum()
    share = labelled / (labelled + missing.total[1])
    return f"about {share:.0%} of the true labels were written down"


def _labelled(targets: Tensor) -> Counts:
    labelled: Counts = (targets == 1).sum(dim=0).numpy()
    return labelled
