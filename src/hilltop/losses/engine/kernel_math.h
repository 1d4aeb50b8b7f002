/* What the kernels share: vector forms of exp, log and sigmoid, and what a call reports. */
#ifndef HILLTOP_KERNEL_MATH_H
#define HILLTOP_KERNEL_MATH_H
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__linux__) && !defined(HILLTOP_ONE_TARGET)
#define EVERY_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define EVERY_CPU
#endif

typedef struct {
    double sum;
    int64_t known;   /* pairs whose target is not NaN */
    int64_t invalid; /* targets that the loss does not take */
    int64_t hard;    /* rows left undone */
} total_t;

/* e^a for a <= 0, relative error below 2e-7; NaN stays NaN. Below -87 the result stays at e^-87. */
INLINE float exp_nonpositive(float a) {
    a = a < -87.0f ? -87.0f : a;
    /* Adding 1.5 * 2^23 rounds to the nearest whole number and leaves it in the low bits. */
    float magic = a * 1.44269504f + 12582912.0f, n = magic - 12582912.0f;
    float r = a - n * 0.693145752f; /* ln 2 in two parts keeps r exact */
    r = r - n * 1.42860677e-6f;
    float y = 1.0f + r * (1.0f + r * (0.5f + r * (1.66666667e-1f + r * (4.16666667e-2f +
              r * (8.33333333e-3f + r * 1.38888889e-3f)))));
    uint32_t bits;
    memcpy(&bits, &magic, sizeof bits);
    bits = (bits + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return y * power;
}

/* log(y) for y > 0. rest is what rounding y lost, which counts where y is near 1; inverse is 1 / y,
 * which callers have. */
INLINE float log_of(float y, float rest, float inverse) {
    int32_t bits;
    memcpy(&bits, &y, sizeof bits);
    int32_t exponent = (bits - 0x3f3504f3) >> 23; /* mantissa into [sqrt(1/2), sqrt(2)) */
    bits -= exponent << 23;
    float m;
    memcpy(&m, &bits, sizeof m);
    float w = (m - 1.0f) / (m + 1.0f), w2 = w * w; /* log m = 2 artanh w, |w| < 0.172 */
    float series = 2.0f * w * (1.0f + w2 * (3.33333333e-1f + w2 * (2e-1f + w2 * (1.42857143e-1f +
                   w2 * 1.11111111e-1f))));
    return (float)exponent * 0.693147181f + series + rest * inverse;
}

/* log(1 + v) for v > -1, accurate near 0 as well; inverse is 1 / (1 + v). */
INLINE float log_one_plus(float v, float inverse) {
    float y = 1.0f + v;
    return log_of(y, v - (y - 1.0f), inverse);
}

/* s = sigmoid(z) from u = e^-|z|, 1 - s without cancellation, and the larger of the two. */
INLINE float sigmoid_of(float z, float u, float *not_s, float *larger) {
    *larger = 1.0f / (1.0f + u);
    float smaller = u * *larger;
    *not_s = z < 0.0f ? *larger : smaller;
    return z < 0.0f ? smaller : *larger;
}

/* The same from z alone, with u. */
INLINE float sigmoid(float z, float *not_s, float *u, float *larger) {
    *u = exp_nonpositive(-__builtin_fabsf(z));
    return sigmoid_of(z, *u, not_s, larger);
}

#endif
