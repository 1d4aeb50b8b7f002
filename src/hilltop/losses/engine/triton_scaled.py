"""Numbers m * 2^e of any size on a GPU: a float64 that is not negative, and an int32.

Products of a thousand odds leave the range of float64. Here they cost a few instructions on whole
numbers more than plain ones, where logarithms would cost an exponential for every addition.
"""

import triton
import triton.language as tl

NOTHING = tl.constexpr(-700_000_000)
"""The exponent of 0: below that of all products of odds, and twice it is still an int32."""

_LARGEST_LOGIT = tl.constexpr(100_000.0)
_LOG2_E = tl.constexpr(1.4426950408889634)
_LN2 = tl.constexpr(0.6931471805599453)
_FRACTION = tl.constexpr((1 << 52) - 1)
_ONE = tl.constexpr(1023 << 52)


@triton.jit
def power(e):
    """Return 2^e as a float64, 0 for what is too small."""
    return ((tl.maximum(e, -1023) + 1023).to(tl.int64) << 52).to(tl.float64, bitcast=True)


@triton.jit
def normal(m, e):
    """Return the same number with m in [1, 2), or 0."""
    bits = m.to(tl.int64, bitcast=True)
    fraction = ((bits & _FRACTION) | _ONE).to(tl.float64, bitcast=True)
    e += (bits >> 52).to(tl.int32) - 1023
    return tl.where(m == 0.0, 0.0, fraction), tl.where(m == 0.0, NOTHING, e)


@triton.jit
def plus(m, e, other_m, other_e):
    """Return the sum of two numbers; m grows, until a product makes it normal again."""
    highest = tl.maximum(e, other_e)
    return m * power(e - highest) + other_m * power(other_e - highest), highest


@triton.jit
def times(m, e, other_m, other_e):
    """Return the product of two numbers."""
    return normal(m * other_m, e + other_e)


@triton.jit
def scaled_exp(x):
    """Return e^x; logits beyond 100,000 count as that."""
    limited = tl.minimum(tl.maximum(x, -_LARGEST_LOGIT), _LARGEST_LOGIT)
    binary = limited.to(tl.float64) * _LOG2_E
    whole = tl.floor(binary)
    return tl.exp2(binary - whole), whole.to(tl.int32)


@triton.jit
def log_of(m, e):
    """Return the logarithm of a number that is not 0."""
    return tl.log(m) + e.to(tl.float64) * _LN2


@triton.jit
def sum_of(m, e):
    """Return the sum over all lanes."""
    highest = tl.max(e)
    return tl.sum(m * power(e - highest)), highest


@triton.jit
def sums_beside(m, e, lane, direction: tl.constexpr):
    """Return for each lane the sum over all lower ones, or with direction -1 all higher ones."""
    lanes: tl.constexpr = lane.shape[0]
    m, e = neighbour(m, e, lane, 1, direction)
    away = 1
    while away < lanes:
        other_m, other_e = neighbour(m, e, lane, away, direction)
        m, e = plus(m, e, other_m, other_e)
        away *= 2
    return m, e


@triton.jit
def neighbour(m, e, lane, away, direction: tl.constexpr):
    """Return the numbers of the lanes so far away; beyond the last one they are 0."""
    place = lane - away * direction
    there = (place >= 0) & (place < lane.shape[0])
    place = tl.where(there, place, 0)
    m, e = tl.gather(m, place, 0), tl.gather(e, place, 0)
    return tl.where(there, m, 0.0), tl.where(there, e, NOTHING)
