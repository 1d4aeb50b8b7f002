"""The terms of kernel.c for a GPU: value and gradient from the same declared forms.

Every term is a function of z = sign * logit + offset and s = sigmoid(z), see :class:`FusedTerm`;
its constants are known to the compiler, so that nothing which a loss does not use is left in its
code. Only triton_kernel.py imports this, and only where there is Triton.
"""

import triton
import triton.language as tl


@triton.jit
def log_one_plus(v):
    """Return log(1 + v) for v > -1, accurate near 0 as well."""
    y = 1.0 + v
    return tl.log(y) + (v - (y - 1.0)) / y


@triton.jit
def log_one_plus_unit(u):
    """Return log(1 + u) for 0 <= u <= 1 with half the instructions: 2 artanh(u / (2 + u))."""
    w = u / (2.0 + u)
    w2 = w * w
    series = 0.0769230769 + w2 * 0.0666666667
    series = 0.111111111 + w2 * (0.0909090909 + w2 * series)
    series = 0.333333333 + w2 * (0.2 + w2 * (0.142857143 + w2 * series))
    return 2.0 * w * (1.0 + w2 * series)


@triton.jit
def sigmoid(z):
    """Return s, 1 - s without cancellation, and u = e^-|z|, which is at least e^-87."""
    a = -tl.abs(z)
    u = tl.exp(tl.where(a < -87.0, -87.0, a))  # not maximum, which would hide a NaN
    larger = 1.0 / (1.0 + u)
    smaller = u * larger
    return tl.where(z < 0.0, smaller, larger), tl.where(z < 0.0, larger, smaller), u


@triton.jit
def weigh(q, dq, surprise, dsurprise, term: tl.constexpr):
    """Return q^gamma * surprise and its gradient by z."""
    loss, grad = surprise, dsurprise
    if term.gamma > 0:
        lower = q
        for _ in tl.static_range(term.gamma - 2):
            lower *= q
        dweight = dq if term.gamma == 1 else term.gamma * lower * dq
        weight = q if term.gamma == 1 else lower * q
        loss, grad = weight * surprise, weight * dsurprise
        if not term.detach_weight:
            grad += dweight * surprise
    return loss, grad


@triton.jit
def focal(z, term: tl.constexpr):
    """Return q^gamma * -log(1 - q) with q = max(s - shift, 0), and its gradient by z."""
    s, not_s, u = sigmoid(z)
    if term.shift > 0.0:
        below = s < term.shift
        q = tl.where(below, 0.0, s - term.shift)
        dq = tl.where(below, 0.0, s * not_s)
        surprise, dsurprise = -log_one_plus(-q), dq / (1.0 - q)
    else:
        q, dq = s, s * not_s
        surprise, dsurprise = tl.where(z > 0.0, z, 0.0) + log_one_plus_unit(u), s
    return weigh(q, dq, surprise, dsurprise, term)


@triton.jit
def cubic(z, term: tl.constexpr):
    """Return quadratic * s^2 + cubic * s^3 and its gradient by z."""
    s, not_s, _ = sigmoid(z)
    # 2a + 3b s, written so that it does not cancel where s is near 1.
    bend = (2.0 * term.quadratic + 3.0 * term.cubic) - 3.0 * term.cubic * not_s
    return s * s * (term.quadratic + term.cubic * s), s * s * not_s * bend


@triton.jit
def kept(z, keep, lost):
    """Return -log(1 - keep * s), keep = 1 - lost, and its gradient by z."""
    s, not_s, _ = sigmoid(z)
    # 1 - keep * s as a sum of positive terms: the difference cancels where both are near 1.
    y = not_s + lost * s
    rest = tl.where(s < 0.5, -keep * s - (y - 1.0), 0.0)
    surprise = -(tl.log(y) + rest / y)
    # If nothing is lost the loss is that of BCE, and y ends at e^-87.
    surprise = tl.where((lost == 0.0) & (z > 80.0), z, surprise)
    return surprise, keep * s * not_s / y


@triton.jit
def evaluate(x, columns, term: tl.constexpr, constants, rates, classes):
    """Return a term and its gradient by the logit; ``columns`` are the classes of the pairs.

    ``constants`` and ``rates`` (keep, then lost) have a number for each class, for terms that are
    by class.
    """
    # Not sign * x + offset: the compiler must see where two terms need the same exponential.
    z = -x if term.sign < 0.0 else x
    if term.offset != 0.0:
        z += term.offset
    if term.kind == "cubic":
        loss, grad = cubic(z, term)
    elif term.kind == "focal":
        loss, grad = focal(z, term)
    elif term.by_class:
        keep = tl.load(rates + columns)
        loss, grad = kept(z, keep, tl.load(rates + classes + columns))
    else:
        loss, grad = kept(z, z * 0.0 + term.keep, z * 0.0 + term.lost)
    if term.scale != 1.0:
        loss, grad = term.scale * loss, term.scale * grad
    if term.constant != 0.0:
        loss += term.constant
    if term.by_class and term.kind == "focal":
        loss += tl.load(constants + columns)
    return loss, -grad if term.sign < 0.0 else grad
