"""The loss and its gradient in one pass over memory on a GPU, as kernel.c does it on a CPU.

Launched by device.py. A first kernel reads logits, targets and masks once and writes the gradient
once, with a few numbers for each block; a second one adds those up, always in the same order.
"""

import triton
import triton.language as tl

from hilltop.losses.engine.triton_terms import evaluate

BLOCK = 1024
FIELDS = 4
"""Numbers that each block leaves: the sum, the known targets, the highest of minus targets and of
targets."""


@triton.jit
def pair(
    x, t, seen, chosen, above, columns, pos_weight, constants, rates, classes, form: tl.constexpr
):
    """Return the loss of pairs and its gradient, before any class weight.

    ``seen`` are pairs that a person confirmed, ``chosen`` those that a correction selected; None
    stands for none. Logits over ``above`` are pseudo labels.
    """
    loss, grad = evaluate(x, columns, form.negative, constants, rates, classes)
    if form.pseudo_above < float("inf"):
        is_pseudo = x > above
        if seen is not None:
            is_pseudo = is_pseudo & (seen == 0)
        pseudo, dpseudo = evaluate(x, columns, form.pseudo, constants, rates, classes)
        loss, grad = tl.where(is_pseudo, pseudo, loss), tl.where(is_pseudo, dpseudo, grad)
    if chosen is not None:
        if form.adds_pseudo_labels:
            pseudo, dpseudo = evaluate(x, columns, form.pseudo, constants, rates, classes)
            loss, grad = tl.where(chosen, pseudo, loss), tl.where(chosen, dpseudo, grad)
        else:
            loss, grad = tl.where(chosen, 0.0, loss), tl.where(chosen, 0.0, grad)
    if form.confirmed is not None and seen is not None:
        confirmed, dconfirmed = evaluate(x, columns, form.confirmed, constants, rates, classes)
        loss, grad = tl.where(seen, confirmed, loss), tl.where(seen, dconfirmed, grad)
    positive, dpositive = evaluate(x, columns, form.positive, constants, rates, classes)
    y = t
    if form.smoothing > 0.0:
        y = t * (1.0 - 2.0 * form.smoothing) + form.smoothing
    weighted = y
    if pos_weight is not None:
        weighted = y * tl.load(pos_weight + columns)
    return weighted * positive + (1.0 - y) * loss, weighted * dpositive + (1.0 - y) * grad


@triton.jit
def loss_kernel(
    logits,
    targets,
    observed,
    selected,
    class_weight,
    pos_weight,
    constants,
    rates,
    epoch,
    grad,
    entries,
    partials,
    size,
    classes,
    blocks,
    form: tl.constexpr,
    block: tl.constexpr,
):
    """Write the gradient and the loss of one block of pairs, each if there is room for it."""
    number = tl.program_id(0).to(tl.int64)
    at = number * block + tl.arange(0, block)
    inside = at < size
    # The long division is done once a block, for its first pair.
    columns = ((number * block % classes).to(tl.int32) + tl.arange(0, block)) % classes
    x = tl.load(logits + at, mask=inside, other=0.0).to(tl.float32)
    t = tl.load(targets + at, mask=inside, other=0).to(tl.float32)
    known = (t == t) & inside
    valid = (t >= 0.0) & (t <= 1.0)
    x = tl.where(t == t, x, 0.0)
    seen = None
    if observed is not None:
        seen = tl.load(observed + at, mask=inside, other=0) != 0
    chosen = None
    if selected is not None:
        chosen = tl.load(selected + at, mask=inside, other=0) != 0
    above = form.pseudo_above
    if epoch is not None:
        above = tl.where(tl.load(epoch) >= form.start_epoch, above, float("inf"))
    y = tl.where(valid, t, 0.0)
    loss, d = pair(x, y, seen, chosen, above, columns, pos_weight, constants, rates, classes, form)
    if class_weight is not None:
        weight = tl.load(class_weight + columns)
        loss, d = weight * loss, weight * d
    # A target that cannot be: the loss shows it, and nothing is learned from that pair.
    loss = tl.where(valid, loss, tl.where(known, float("nan"), 0.0))
    d = tl.where(valid, d, 0.0)
    if grad is not None:
        tl.store(grad + at, d.to(grad.dtype.element_ty), mask=inside)
    if entries is not None:
        tl.store(entries + at, loss, mask=inside)
    place = partials + number
    tl.store(place, tl.sum(tl.where(inside, loss, 0.0)))
    if targets.dtype.element_ty == tl.int1:  # none is unknown, and none can be wrong
        tl.store(place + blocks, tl.minimum(size - number * block, block).to(tl.float32))
        tl.store(place + 2 * blocks, 0.0)
        tl.store(place + 3 * blocks, 0.0)
    else:
        tl.store(place + blocks, tl.sum(known.to(tl.float32)))
        tl.store(place + 2 * blocks, tl.max(tl.where(known, -t, 0.0)))
        tl.store(place + 3 * blocks, tl.max(tl.where(known, t, 0.0)))


@triton.jit
def finish_kernel(
    partials,
    blocks,
    parts,
    loss,
    scale,
    extremes,
    hard: tl.constexpr,
    block: tl.constexpr,
):
    """Add up what the blocks left, and widen the range of targets seen so far.

    ``parts`` is what the sum is divided by; 0 stands for the number of known targets. With ``hard``
    the blocks left the highest soft target, too.
    """
    total = tl.zeros([block], tl.float64)
    known = tl.zeros([block], tl.float64)
    below = tl.zeros([block], tl.float32)
    highest = tl.zeros([block], tl.float32)
    soft = tl.zeros([block], tl.float32)
    for start in range(0, blocks, block):
        at = start + tl.arange(0, block)
        inside = at < blocks
        total += tl.load(partials + at, mask=inside, other=0.0).to(tl.float64)
        known += tl.load(partials + blocks + at, mask=inside, other=0.0).to(tl.float64)
        below = tl.maximum(below, tl.load(partials + 2 * blocks + at, mask=inside, other=0.0))
        highest = tl.maximum(highest, tl.load(partials + 3 * blocks + at, mask=inside, other=0.0))
        if hard:
            soft = tl.maximum(soft, tl.load(partials + 4 * blocks + at, mask=inside, other=0.0))
    divisor = tl.sum(known)
    if parts > 0:
        divisor = divisor * 0.0 + parts
    divisor = tl.where(divisor < 1.0, 1.0, divisor)
    tl.store(loss, (tl.sum(total) / divisor).to(tl.float32))
    tl.store(scale, (1.0 / divisor).to(tl.float32))
    tl.store(extremes, tl.maximum(tl.load(extremes), tl.max(below)))
    tl.store(extremes + 1, tl.maximum(tl.load(extremes + 1), tl.max(highest)))
    if hard:
        tl.store(extremes + 2, tl.maximum(tl.load(extremes + 2), tl.max(soft)))


@triton.jit
def scale_kernel(grad, factor, scale, out, size, block: tl.constexpr):
    """Write ``grad * factor * scale``, both single numbers; out may be grad itself."""
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = at < size
    by = tl.load(factor).to(tl.float32) * tl.load(scale)
    value = tl.load(grad + at, mask=inside, other=0.0).to(tl.float32) * by
    tl.store(out + at, value.to(out.dtype.element_ty), mask=inside)
