"""The counted likelihood (by_count.py) on a GPU: one block of threads for each image.

With odds o = p / (1 - p) of the candidates and the weights w(u) of u further labels,
    L = prod (1 - p) * sum_u w(u) e_u(o),   e: elementary symmetric sums.
Every class is a lane, and counts are gone through one after another. before[u](k) is the sum e_u of
the classes before k, after[u](k) what those after k bring if u labels came so far:
    before[u](k) = sum_{j < k} o_j before[u - 1](j),    before[0] = 1,
    after[u](k) = w(u) + sum_{j > k} o_j after[u + 1](j).
Class k is a lost label with probability o_k sum_u before[u](k) after[u + 1](k) / sum_u w(u) e_u.
Nothing cancels, and numbers have an exponent of their own (triton_scaled.py): no image is left to
torch. after[] runs from the highest count down; before[] is kept for four counts at a time and
found again from the start for the next four, so that no memory is needed.
"""

import triton
import triton.language as tl

from hilltop.losses.engine.triton_scaled import (
    NOTHING,
    log_of,
    normal,
    plus,
    power,
    scaled_exp,
    sum_of,
    sums_beside,
    times,
)
from hilltop.losses.engine.triton_terms import log_one_plus_unit

FIELDS = 5
"""Numbers that each image leaves: those of triton_kernel.py, and the highest soft target."""


@triton.jit
def staying(labels, form: tl.constexpr):
    """Return how many of so many labels stay."""
    return tl.minimum(labels, labels * form.keep_over // form.keep_under + 1)


@triton.jit
def allowed(labels, candidates, form: tl.constexpr):
    """Return the lowest and the highest number of further labels; both 0 for a complete image."""
    first, last, most = labels, labels, labels + candidates
    if form.keep_over < form.keep_under:
        if form.keep_over > 0:
            over, under = form.keep_over, form.keep_under
            last = tl.where(labels > 0, (labels * under + over - 1) // over - 1, 0)
            if form.restore_prob == 0.0:
                first = tl.maximum(labels, (tl.maximum(labels - 1, 0) * under + over - 1) // over)
        elif form.restore_prob > 0.0:
            last = tl.where(labels > 0, most, 0)
        else:
            last = tl.where(labels == 1, most, labels)
    last = tl.minimum(last, most)
    possible = first <= last
    return tl.where(possible, first - labels, 0), tl.where(possible, last - labels, 0)


@triton.jit
def without_tail(low, high, expected, rise, lane):
    """Return the highest number that matters, as count_kernel.c does."""
    ends = 8.0 + 4.0 * lane.to(tl.float64)
    ratio = ends / tl.where(expected > 1e-300, expected, 1e-300)
    far = (ends > expected) & (ends * (tl.log(ratio) - 1.0) + expected > 25.0 + rise) & (low == 0)
    end = tl.min(tl.where(far, ends - 1.0, float("inf")))
    return tl.minimum(end, high.to(tl.float64)).to(tl.int32)


@triton.jit
def log_lowest(labels, low, lane, form: tl.constexpr):
    """Return -log w(low)."""
    if form.restore_prob > 0.0:  # then low is 0
        lowest = (staying(labels, form) - labels).to(tl.float64) * form.log_restore
    else:
        number = (lane + 1).to(tl.float64)
        ratio = (number + low.to(tl.float64)) / number
        lowest = tl.sum(tl.where(lane < labels, tl.log(ratio), 0.0))
    return lowest


@triton.jit
def weight_at(count, weight, exponent, labels, low, high, form: tl.constexpr):
    """Return w(count) / w(high) from that of one more; beyond low and high it stays as it is."""
    total, kept_here = (labels + count + 1).to(tl.float64), labels
    over = total - labels.to(tl.float64)
    if form.restore_prob > 0.0:
        kept_here = tl.minimum(staying(labels + count, form), labels)
        same = (kept_here == labels) | (staying(labels + count + 1, form) == kept_here)
        restored = (labels - kept_here).to(tl.float64) / form.restore_prob
        over = tl.where(same, total - kept_here.to(tl.float64), restored) * form.lost_prob
    inside = (count >= low) & (count < high)
    m, e = normal(weight * total / tl.where(inside, over, 1.0), exponent)
    return tl.where(inside, m, weight), tl.where(inside, e, exponent)


@triton.jit
def step_on(o_m, o_e, p_m, p_e, lane):
    """Return before[u + 1] from before[u]."""
    m, e = times(o_m, o_e, p_m, p_e)
    return sums_beside(m, e, lane, 1)


@triton.jit
def step_back(count, o_m, o_e, g_m, g_e, w_m, w_e, labels, low, high, lane, form: tl.constexpr):
    """Return after[count] from after[count + 1], and the weight of that count."""
    w_m, w_e = weight_at(count, w_m, w_e, labels, low, high, form)
    here = (count >= low) & (count <= high)
    m, e = times(o_m, o_e, g_m, g_e)
    m, e = sums_beside(m, e, lane, -1)
    m, e = plus(m, e, tl.where(here, w_m, 0.0), tl.where(here, w_e, NOTHING))
    return m, e, w_m, w_e


@triton.jit
def add_product(a_m, a_e, p_m, p_e, g_m, g_e):
    """Return a + p * g."""
    m, e = times(p_m, p_e, g_m, g_e)
    return plus(a_m, a_e, m, e)


@triton.jit
def value_of(o_m, o_e, labels, low, high, lane, form: tl.constexpr):
    """Return after[1], and the weight of that count."""
    g_m, g_e = o_m * 0.0, lane * 0 + NOTHING
    w_m, w_e = (high * 0).to(tl.float64) + 1.0, high * 0
    for number in range(high):
        count = high - number
        g_m, g_e, w_m, w_e = step_back(
            count, o_m, o_e, g_m, g_e, w_m, w_e, labels, low, high, lane, form
        )
    return g_m, g_e, w_m, w_e


@triton.jit
def value_and_sums_of(o_m, o_e, labels, low, high, lane, form: tl.constexpr):
    """Return as :func:`value_of`, and sum_u before[u] after[u + 1] of every class."""
    g_m, g_e = o_m * 0.0, lane * 0 + NOTHING
    a_m, a_e = g_m, g_e
    w_m, w_e = (high * 0).to(tl.float64) + 1.0, high * 0
    fours = (high + 3) // 4
    for number in range(fours):
        first = (fours - 1 - number) * 4
        m0, e0 = o_m * 0.0 + 1.0, lane * 0
        for _ in range(first):
            m0, e0 = step_on(o_m, o_e, m0, e0, lane)
        m1, e1 = step_on(o_m, o_e, m0, e0, lane)
        m2, e2 = step_on(o_m, o_e, m1, e1, lane)
        m3, e3 = step_on(o_m, o_e, m2, e2, lane)
        for back in tl.static_range(4):
            g_m, g_e, w_m, w_e = step_back(
                first + 4 - back, o_m, o_e, g_m, g_e, w_m, w_e, labels, low, high, lane, form
            )
            p_m, p_e = m0, e0
            if back == 0:
                p_m, p_e = m3, e3
            elif back == 1:
                p_m, p_e = m2, e2
            elif back == 2:
                p_m, p_e = m1, e1
            a_m, a_e = add_product(a_m, a_e, p_m, p_e, g_m, g_e)
    return g_m, g_e, w_m, w_e, a_m, a_e


@triton.jit
def count_kernel(
    logits,
    targets,
    observed,
    epoch,
    grad,
    entries,
    partials,
    classes,
    rows,
    share,
    form: tl.constexpr,
    block: tl.constexpr,
):
    """Write the loss of one image, and its gradient and entries, each if there is room for it.

    ``share`` is how much of the loss is the likelihood; the rest is cross-entropy. With ``epoch``
    it is how much of the warm-up is done by then.
    """
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, block)
    inside = lane < classes
    at = row * classes + lane
    x = tl.load(logits + at, mask=inside, other=0.0).to(tl.float32)
    t = tl.load(targets + at, mask=inside, other=0).to(tl.float32)
    known, is_label, unlabelled = (t == t) & inside, (t == 1.0) & inside, (t == 0.0) & inside
    candidate = unlabelled
    if observed is not None:
        candidate = unlabelled & (tl.load(observed + at, mask=inside, other=0) == 0)
    x = tl.where(is_label | unlabelled, x, 0.0)

    log_term = log_one_plus_unit(tl.exp(-tl.abs(x)))
    absent_loss = tl.where(x > 0.0, x, 0.0).to(tl.float64) + log_term
    label_loss = tl.where(x < 0.0, -x, 0.0).to(tl.float64) + log_term
    confirmed = unlabelled & (candidate == 0)
    own = tl.where(is_label, label_loss, tl.where(confirmed, absent_loss, 0.0))
    # A target that cannot be: the loss shows it, and nothing is learned from that pair.
    own = tl.where(known & (is_label == 0) & (unlabelled == 0), float("nan"), own)
    cross_entropy = tl.sum(tl.where(candidate, absent_loss, 0.0))

    o_m, o_e = scaled_exp(x)
    odds = o_m * power(tl.minimum(tl.maximum(o_e, -1000), 1000))
    p, not_p = odds / (1.0 + odds), 1.0 / (1.0 + odds)
    o_m, o_e = tl.where(candidate, o_m, 0.0), tl.where(candidate, o_e, NOTHING)

    labels, candidates = tl.sum(is_label.to(tl.int64)), tl.sum(candidate.to(tl.int64))
    low, high = allowed(labels, candidates, form)
    lowest = log_lowest(labels, low, lane, form)
    high = without_tail(low, high, tl.sum(tl.where(candidate, p, 0.0)), lowest, lane)
    if epoch is not None:
        share = tl.minimum(tl.load(epoch).to(tl.float32) / form.warmup_epochs, 1.0)
    if grad is not None:
        g_m, g_e, w_m, w_e, a_m, a_e = value_and_sums_of(o_m, o_e, labels, low, high, lane, form)
    else:
        g_m, g_e, w_m, w_e = value_of(o_m, o_e, labels, low, high, lane, form)
    w_m, w_e = weight_at(0, w_m, w_e, labels, low, high, form)  # now that of low
    m, e = times(o_m, o_e, g_m, g_e)
    m, e = sum_of(m, e)
    m, e = plus(m, e, tl.where(low == 0, w_m, 0.0), tl.where(low == 0, w_e, NOTHING))

    log_sum = log_of(m, e) - log_of(w_m, w_e) - lowest
    shared = cross_entropy - share * tl.where(high > 0, log_sum, 0.0)
    # Two large numbers may differ by less than their rounding; a loss is not negative.
    shared = tl.where(shared < 0.0, 0.0, shared)
    if grad is not None:
        a_m, a_e = times(o_m, o_e, a_m, a_e)
        lost = a_m / m * power(a_e - e)
        lost = tl.where(shared == shared, lost, float("nan"))
        d = tl.where(candidate, p - share * lost, p)
        d = tl.where(is_label, -not_p, tl.where(unlabelled, d, 0.0))
        tl.store(grad + at, d.to(tl.float32).to(grad.dtype.element_ty), mask=inside)
    if entries is not None:
        entry = tl.where(candidate, shared / tl.maximum(candidates, 1).to(tl.float64), own)
        tl.store(entries + at, entry.to(tl.float32), mask=inside)
    place = partials + row
    tl.store(place, (tl.sum(own) + shared).to(tl.float32))
    tl.store(place + rows, tl.sum(known.to(tl.float32)))
    tl.store(place + 2 * rows, tl.max(tl.where(known, -t, 0.0)))
    tl.store(place + 3 * rows, tl.max(tl.where(known, t, 0.0)))
    tl.store(place + 4 * rows, tl.max(tl.where(known & (t > 0.0) & (t < 1.0), t, 0.0)))
