/* Value and gradient of a multi-label loss in one pass over memory.
 *
 * Plain C without Python or torch headers: it is compiled when the package is installed and called
 * through ctypes by kernel.py. The equations are those of functional.py, which remains the
 * reference; tests compare the two. Every term is a function of z = sign * logit + offset and
 * s = sigmoid(z):
 *     FOCAL: scale * q^gamma * -log(1 - q) + constant,   q = max(s - shift, 0)
 *     CUBIC: scale * (quadratic * s^2 + cubic * s^3)
 *     SCAR:  -log(1 - keep * s),   keep = 1 - lost, of the logit itself
 */
#include "kernel_math.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "gather() reads eight flags as one little-endian word"
#endif
#define BLOCK 256
#define LANES 16
#define NEVER __builtin_inff() /* no logit is above it */

enum { FOCAL = 0, CUBIC = 1, SCAR = 2 };

typedef struct {
    int32_t kind, gamma, detach_weight;
    int32_t by_class; /* keep, lost or constant is an array with a number for each class */
    float sign, offset, shift, quadratic, cubic, scale, keep, lost, constant;
} term_t;

typedef struct {
    term_t positive, negative, pseudo, verified;
    const float *constants;     /* of the positive term, where it is by class */
    const float *keeps, *losts; /* of the negative term, where it is by class */
    int32_t has_verified; /* negatives that a person verified get a term of their own */
    float pseudo_above; /* logits above it count as missing labels; +inf: none do */
    float smoothing;
    int32_t adds_pseudo_labels; /* selected pairs count as missing labels; otherwise not at all */
    float grad_scale; /* what the gradient is multiplied by while it is at hand */
} loss_t;

/* What is said of each pair, at the first of a block; NULL stands for: nothing of any. */
typedef struct {
    const uint8_t *verified, *selected;
} marks_t;

int32_t hilltop_kernel_abi(void) { return 5; }

INLINE void cubic(const term_t *h, const float *z, const float *u, int n, float *loss,
                  float *grad) {
    for (int i = 0; i < n; i++) {
        float not_s, larger, s = sigmoid_of(z[i], u[i], &not_s, &larger);
        loss[i] = h->scale * s * s * (h->quadratic + h->cubic * s);
        /* 2a + 3b s, written so that it does not cancel where s is near 1. */
        float bend = (2.0f * h->quadratic + 3.0f * h->cubic) - 3.0f * h->cubic * not_s;
        grad[i] = h->sign * h->scale * s * s * not_s * bend;
    }
}

/* loss = weight * surprise and its gradient, with weight = q^gamma. Where gamma is known to the
 * compiler, loops that call this have no branches. */
INLINE void weigh(const term_t *h, int gamma, float q, float dq, float surprise, float dsurprise,
                  float *loss, float *grad) {
    float weight = 1.0f, dweight = 0.0f;
    for (int k = 0; k < gamma; k++) {
        dweight = (float)gamma * weight * dq;
        weight *= q;
    }
    dweight = h->detach_weight ? 0.0f : dweight;
    *loss = h->scale * weight * surprise + h->constant;
    *grad = h->sign * h->scale * (weight * dsurprise + dweight * surprise);
}

INLINE void focal(const term_t *h, const float *z, const float *u, int n, float *loss, float *grad,
                  int gamma) {
    for (int i = 0; i < n; i++) {
        float not_s, larger, s = sigmoid_of(z[i], u[i], &not_s, &larger);
        float surprise = (z[i] > 0.0f ? z[i] : 0.0f) + log_one_plus(u[i], larger);
        weigh(h, gamma, s, s * not_s, surprise, s, loss + i, grad + i);
    }
}

/* In two loops: in one, the compiler would turn the cut-off into a branch. */
INLINE void shifted_focal(const term_t *h, const float *z, const float *u, int n, float *loss,
                          float *grad, int gamma) {
    float q[BLOCK], dq[BLOCK];
    for (int i = 0; i < n; i++) {
        float not_s, larger, s = sigmoid_of(z[i], u[i], &not_s, &larger);
        q[i] = s < h->shift ? 0.0f : s - h->shift; /* NaN stays NaN */
        dq[i] = s < h->shift ? 0.0f : s * not_s;
    }
    for (int i = 0; i < n; i++) {
        float inverse = 1.0f / (1.0f - q[i]);
        float surprise = -log_one_plus(-q[i], inverse);
        weigh(h, gamma, q[i], dq[i], surprise, dq[i] * inverse, loss + i, grad + i);
    }
}

INLINE void scar_entry(float z, float u, float keep, float lost, float *loss, float *grad) {
    float not_s, larger, s = sigmoid_of(z, u, &not_s, &larger);
    /* 1 - keep * s as a sum of positive terms: the difference cancels where both are near 1. */
    float y = not_s + lost * s, inverse = 1.0f / y;
    float rest = s < 0.5f ? -keep * s - (y - 1.0f) : 0.0f;
    float surprise = -log_of(y, rest, inverse);
    /* If nothing is lost the loss is that of BCE, and y ends at e^-87. */
    *loss = lost == 0.0f ? (z > 80.0f ? z : surprise) : surprise;
    *grad = keep * s * not_s * inverse;
}

INLINE void scar(const term_t *h, const float *z, const float *u, int n, float *loss,
                 float *grad) {
    for (int i = 0; i < n; i++) scar_entry(z[i], u[i], h->keep, h->lost, loss + i, grad + i);
}

/* In a loop of its own: with all that follows in one chain, the processor would wait for it. */
INLINE void exponentials(const term_t *h, const float *x, int n, float *z, float *u) {
    for (int i = 0; i < n; i++) {
        z[i] = h->sign * x[i] + h->offset;
        u[i] = exp_nonpositive(-__builtin_fabsf(z[i]));
    }
}

EVERY_CPU static void scar_by_class(const term_t *h, const float *keep, const float *lost,
                                    const float *x, int n, float *loss, float *grad) {
    float z[BLOCK], u[BLOCK];
    exponentials(h, x, n, z, u);
    for (int i = 0; i < n; i++) scar_entry(z[i], u[i], keep[i], lost[i], loss + i, grad + i);
}

INLINE void finish(const term_t *h, const float *z, const float *u, int n, float *loss,
                   float *grad) {
    if (h->kind == CUBIC)
        cubic(h, z, u, n, loss, grad);
    else if (h->kind == SCAR)
        scar(h, z, u, n, loss, grad);
    else if (h->shift > 0.0f && h->gamma == 4)
        shifted_focal(h, z, u, n, loss, grad, 4);
    else if (h->shift > 0.0f)
        shifted_focal(h, z, u, n, loss, grad, h->gamma);
    else if (h->gamma == 0)
        focal(h, z, u, n, loss, grad, 0);
    else if (h->gamma == 2)
        focal(h, z, u, n, loss, grad, 2);
    else
        focal(h, z, u, n, loss, grad, h->gamma);
}

EVERY_CPU static void evaluate(const term_t *h, const float *x, int n, float *loss, float *grad) {
    float z[BLOCK], u[BLOCK];
    exponentials(h, x, n, z, u);
    finish(h, z, u, n, loss, grad);
}

/* Whether two terms are one function of opposite logits, as Focal with and without a label is. */
INLINE int mirrored(const term_t *a, const term_t *b) {
    term_t like = *b;
    like.sign = -b->sign, like.offset = a->offset;
    return a->kind != SCAR && !a->by_class && memcmp(a, &like, sizeof like) == 0;
}

/* Mirrored terms in one go: negatives and, above a logit, pseudo labels. These are not rare, and
 * to gather them, evaluate a second term and put it back takes a third longer. */
EVERY_CPU static void evaluate_both(const loss_t *h, float above, const uint8_t *verified,
                                    const float *x, int n, float *loss, float *grad) {
    /* In variables: a choice between places in memory would become a branch. */
    float sign = h->negative.sign, offset = h->negative.offset, other = h->pseudo.offset;
    float z[BLOCK], u[BLOCK], turn[BLOCK];
    for (int i = 0; i < n; i++) turn[i] = x[i] > above ? -1.0f : 1.0f;
    if (verified)
        for (int i = 0; i < n; i++) turn[i] = verified[i] ? 1.0f : turn[i];
    for (int i = 0; i < n; i++) {
        z[i] = sign * turn[i] * x[i] + (turn[i] < 0.0f ? other : offset);
        u[i] = exp_nonpositive(-__builtin_fabsf(z[i]));
    }
    finish(&h->negative, z, u, n, loss, grad);
    for (int i = 0; i < n; i++) grad[i] *= turn[i];
}

/* Indices of the pairs that are more than a plain negative: few, so they are done apart. */
INLINE int gather(const loss_t *h, int n, const float *x, const float *t, marks_t marks,
                  int *where) {
    uint8_t always = h->smoothing > 0.0f;
    int32_t any = always || (h->has_verified && marks.verified) || marks.selected;
    for (int i = 0; i < n; i++) any |= (t[i] != 0.0f) | (x[i] > h->pseudo_above);
    if (!any) return 0; /* as in most blocks of very many classes; flags of bytes cost more */
    uint8_t special[BLOCK] = {0};
    for (int i = 0; i < n; i++)
        special[i] = (t[i] != 0.0f) | (x[i] > h->pseudo_above) | always;
    if (h->has_verified && marks.verified)
        for (int i = 0; i < n; i++) special[i] |= marks.verified[i] != 0;
    if (marks.selected)
        for (int i = 0; i < n; i++) special[i] |= marks.selected[i] != 0;
    int found = 0;
    for (int start = 0; start < n; start += 64) {
        uint64_t many = 0; /* a bit a pair: a loop over each eight would end by surprise */
        for (int k = 0; k < 64; k += 8) {
            uint64_t eight;
            memcpy(&eight, special + start + k, sizeof eight);
            many |= (eight * UINT64_C(0x0102040810204080) >> 56) << k; /* flag i to bit i */
        }
        for (; many; many &= many - 1) where[found++] = start + __builtin_ctzll(many);
    }
    return found;
}

/* Replaces what stands in l and d, the negative term, for the gathered pairs. */
INLINE void mix(const loss_t *h, int64_t class, int found, const int *where, const float *x,
                const float *t, marks_t marks, const float *pos_weight, float *l, float *d,
                total_t *total) {
    float z[BLOCK], positive[BLOCK], dpositive[BLOCK], pseudo[BLOCK], dpseudo[BLOCK];
    float verified[BLOCK], dverified[BLOCK];
    int pseudos = marks.selected && h->adds_pseudo_labels, labels = h->smoothing > 0.0f;
    int verifies = h->has_verified && marks.verified;
    for (int k = 0; k < found; k++) {
        z[k] = x[where[k]];
        pseudos |= z[k] > h->pseudo_above;
        labels |= t[where[k]] != 0.0f;
    }
    int padded = (found + 7) & ~7; /* whole vectors are faster than single leftovers */
    for (int k = found; k < padded; k++) z[k] = 0.0f;
    if (labels) evaluate(&h->positive, z, padded, positive, dpositive);
    if (pseudos) evaluate(&h->pseudo, z, padded, pseudo, dpseudo);
    if (verifies) evaluate(&h->verified, z, padded, verified, dverified);
    for (int k = 0; h->positive.by_class && k < found; k++) {
        positive[k] += h->constants[class + where[k]];
        if (pseudos && h->pseudo.by_class) pseudo[k] += h->constants[class + where[k]];
    }
    for (int k = 0; k < found; k++) {
        int i = where[k];
        if (t[i] != t[i]) { /* NaN: this pair is left out */
            l[i] = d[i] = 0.0f;
            total->known--;
            continue;
        }
        total->invalid += (t[i] < 0.0f) | (t[i] > 1.0f);
        int selected = marks.selected && marks.selected[i];
        int above = z[k] > h->pseudo_above && !(marks.verified && marks.verified[i]);
        if (above || (selected && h->adds_pseudo_labels)) {
            l[i] = pseudo[k];
            d[i] = dpseudo[k];
        } else if (selected) {
            l[i] = d[i] = 0.0f;
        }
        if (verifies && marks.verified[i]) {
            l[i] = verified[k];
            d[i] = dverified[k];
        }
        if (!labels) continue; /* a pseudo label or a verified negative and nothing else */
        float y = t[i] * (1.0f - 2.0f * h->smoothing) + h->smoothing;
        float weighted = y * (pos_weight ? pos_weight[i] : 1.0f);
        l[i] = weighted * positive[k] + (1.0f - y) * l[i];
        d[i] = weighted * dpositive[k] + (1.0f - y) * d[i];
    }
}

/* At most BLOCK pairs, whose losses are added to lanes. NULL stands for: all weights 1, not wanted.
 * Above at_once, pseudo labels are not gathered. */
INLINE void run(const loss_t *h, float at_once, int64_t class, int n, const float *x,
                const float *t, marks_t marks, const float *class_weight, const float *pos_weight,
                float *loss, float *grad, double *lanes, total_t *total) {
    float own_l[BLOCK], own_d[BLOCK], *l = loss ? loss : own_l, *d = grad ? grad : own_d;
    int where[BLOCK];
    if (h->negative.by_class)
        scar_by_class(&h->negative, h->keeps + class, h->losts + class, x, n, l, d);
    else if (at_once < NEVER)
        evaluate_both(h, at_once, marks.verified, x, n, l, d);
    else
        evaluate(&h->negative, x, n, l, d);
    total->known += n;
    int found = gather(h, n, x, t, marks, where);
    if (found) mix(h, class, found, where, x, t, marks, pos_weight, l, d, total);
    if (class_weight)
        for (int i = 0; i < n; i++) l[i] *= class_weight[i], d[i] *= class_weight[i];
    if (grad && h->grad_scale != 1.0f)
        for (int i = 0; i < n; i++) d[i] *= h->grad_scale;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) lanes[k] += l[i + k];
    for (; i < n; i++) lanes[0] += l[i];
}

EVERY_CPU
void hilltop_loss_and_grad(const loss_t *asked, int64_t rows, int64_t classes, const float *logits,
                            const float *targets, const uint8_t *verified,
                            const uint8_t *selected, const float *class_weight,
                            const float *pos_weight, float *loss, float *grad, total_t *total) {
    double lanes[LANES] = {0}; /* put together at the end: in every block it would take a tenth */
    loss_t h = *asked;
    float at_once = mirrored(&h.negative, &h.pseudo) ? h.pseudo_above : NEVER;
    if (at_once < NEVER) h.pseudo_above = NEVER;
    memset(total, 0, sizeof *total);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t c = 0; c < classes; c += BLOCK) {
            int64_t at = row * classes + c;
            int n = classes - c < BLOCK ? (int)(classes - c) : BLOCK;
            marks_t marks = {verified ? verified + at : 0, selected ? selected + at : 0};
            run(&h, at_once, c, n, logits + at, targets + at, marks,
                class_weight ? class_weight + c : 0, pos_weight ? pos_weight + c : 0,
                loss ? loss + at : 0, grad ? grad + at : 0, lanes, total);
        }
    for (int k = 0; k < LANES; k++) total->sum += lanes[k];
}
