/* Value and gradient of the counted likelihood (by_count.py), eight images at a time.
 *
 * Of an image with t true labels the rule writes down n(t) = min(t, floor(t * keep) + 1), drawn
 * without replacement. With s labels written down, u more among the candidates (the unlabelled
 * pairs that nobody confirmed absent) have the weight w(u) = [n(s + u) = s] / C(s + u, s), and
 *     L = sum_u w(u) P(u),   P: the Poisson-binomial probabilities of the candidates.
 * If each lost label was put back with probability a = restore_prob since, fewer than s may have been
 * left:
 *     w(u) = [n <= s] C(s, n) / C(s + u, n) a^(s - n) (1 - a)^u,   n = n(s + u).
 * A state before[k](u) is the probability of u labels among the first k candidates, after(u) the
 * mean weight that the others will bring, given u so far. Both are sums of products of
 * probabilities: nothing cancels. With A and B the weight without and with label k,
 *     L = (1 - p) A + p B   and   d(-log L) / dx_k = p (1 - p) (A - B) / L.
 * Images whose L is too small for a double are left to torch, which works with logarithms.
 */
#include "kernel_math.h"
#include <math.h>

#define LANES 8 /* images side by side in one vector */
#define ALL 4096 /* vectors that stay in near memory: if they suffice, all states are kept */
#define SPAN 32  /* classes in a span, where they do not */

/* Loops over the lanes, not vector types: those would be lowered to the oldest CPU's. */
typedef struct {
    double at[LANES];
} lanes_t;
typedef struct {
    float at[LANES];
} narrow_t;
#define EACH for (int i = 0; i < LANES; i++)

typedef struct {
    int64_t keep_over, keep_under; /* the share kept, 1 - r, as an exact fraction */
    double share;                  /* of the likelihood in the loss; the rest is cross-entropy */
    int64_t room;                  /* vectors for the states: those of a span, and of all ends */
    double restore_prob;           /* that a lost label was put back */
} rule_t;

typedef struct {
    double own, cross_entropy; /* loss of labels and confirmed absents; of candidates, if absent */
    double expected, lowest;   /* labels among the candidates; -log w(low) */
    int64_t labels, candidates, low, high;
    int32_t clamped; /* whether sigmoid() stopped at e^-87 */
} image_t;

/* Memory for one group; the pairs that are no candidates have p = 0 and so change no count. */
typedef struct {
    narrow_t *p, *not_p;
    lanes_t *after, *states;
    float *pairs; /* what read_pairs() finds, and what a person has seen */
} group_t;

INLINE int64_t ceil_divide(int64_t over, int64_t under) { return (over + under - 1) / under; }

INLINE int64_t kept(const rule_t *rule, int64_t labels) {
    int64_t stay = labels * rule->keep_over / rule->keep_under + 1;
    return labels < stay ? labels : stay;
}

/* The numbers u of further labels that the rule allows, low to high. Where it allows none, the
 * image counts as complete: u = 0. */
INLINE void set_allowed(const rule_t *rule, image_t *image) {
    int64_t s = image->labels, first = s, last = s, most = s + image->candidates;
    int lossy = rule->keep_over < rule->keep_under; /* r = 0 keeps everything */
    if (s && lossy && rule->keep_over) {
        int64_t start = ceil_divide((s - 1) * rule->keep_under, rule->keep_over);
        first = start > s && rule->restore_prob == 0.0 ? start : s;
        last = ceil_divide(s * rule->keep_under, rule->keep_over) - 1;
    } else if (lossy && (s == 1 || (s && rule->restore_prob > 0.0))) {
        last = most;
    }
    last = last < most ? last : most;
    if (first > last) first = last = s;
    image->low = first - s;
    image->high = last - s;
}

/* Weights grow by at most e^rise from u = 0 on, so if u starts there, what lies beyond `high`
 * changes L by at most e^rise P(more than high) / P(at most high), which Chernoff's bound puts
 * below e^-25. */
INLINE int64_t without_tail(int64_t high, double expected, double rise) {
    for (int64_t end = 8; end <= high; end += 4)
        if ((double)end > expected &&
            (double)end * (log((double)end / expected) - 1.0) + expected > 25.0 + rise)
            return end - 1;
    return high;
}

/* Sorts the pairs of one image. Every result is a row of `pairs`: p and 1 - p of candidates, loss
 * and grad of the others, loss of candidates if absent. ivdep: the rows do not overlap. */
INLINE void read_pairs(float *pairs, int64_t classes, const float *x, const float *t,
                       const float *seen) {
    float *p = pairs, *not_p = p + classes, *own = not_p + classes, *grad = own + classes;
    float *shared = grad + classes;
#pragma GCC ivdep
    for (int64_t k = 0; k < classes; k++) {
        float u, larger, log_term;
        p[k] = sigmoid(x[k], &not_p[k], &u, &larger);
        log_term = log_one_plus(u, larger);
        shared[k] = (x[k] > 0.0f ? x[k] : 0.0f) + log_term; /* -log(1 - p) */
        own[k] = (x[k] < 0.0f ? -x[k] : 0.0f) + log_term;   /* -log p */
    }
#pragma GCC ivdep
    for (int64_t k = 0; k < classes; k++) {
        float label = t[k] == 1.0f ? 1.0f : 0.0f, none = t[k] == 0.0f ? 1.0f : 0.0f;
        float absent = none * seen[k], candidate = none - absent;
        float prob = p[k], not_prob = not_p[k], loss = shared[k], label_loss = own[k];
        loss = none > 0.0f ? loss : 0.0f; /* a NaN of an unknown pair ends here */
        label_loss = label > 0.0f ? label_loss : 0.0f;
        prob = none > 0.0f ? prob : 0.0f;
        own[k] = label_loss + absent * loss;
        grad[k] = absent * prob - (label > 0.0f ? not_prob : 0.0f);
        shared[k] = candidate * loss;
        p[k] = candidate * prob;
        not_p[k] = candidate > 0.0f ? not_prob : 1.0f;
    }
}

INLINE double sum_of(const float *numbers, int64_t length) {
    lanes_t sums = {{0}};
    int64_t k = 0;
    for (; k + LANES <= length; k += LANES) EACH sums.at[i] += numbers[k + i];
    for (; k < length; k++) sums.at[0] += numbers[k];
    double sum = 0.0;
    EACH sum += sums.at[i];
    return sum;
}

INLINE void read_image(const rule_t *rule, const group_t *group, int lane, int64_t classes,
                       const float *x, const float *t, const uint8_t *observed, float *grad,
                       image_t *image, total_t *total) {
    float *p = group->pairs, *own = p + 2 * classes, *seen = p + 5 * classes;
    for (int64_t k = 0; k < classes; k++) seen[k] = observed ? observed[k] != 0 : 0.0f;
    read_pairs(p, classes, x, t, seen);
    if (grad) memcpy(grad, own + classes, classes * sizeof *grad);
    for (int64_t k = 0; k < classes; k++) {
        group->p[k].at[lane] = p[k];
        group->not_p[k].at[lane] = p[classes + k];
    }
    int32_t labels = 0, candidates = 0, known = 0, valid = 0, clamped = 0;
    for (int64_t k = 0; k < classes; k++) {
        int32_t label = t[k] == 1.0f, none = t[k] == 0.0f, unknown = t[k] != t[k];
        int32_t candidate = none & (seen[k] == 0.0f);
        labels += label;
        candidates += candidate;
        known += 1 - unknown;
        valid += label | none | unknown;
        clamped |= candidate & ((x[k] > 86.0f) | (x[k] < -86.0f));
    }
    total->known += known;
    total->invalid += classes - valid;
    image->labels = labels, image->candidates = candidates, image->clamped = clamped;
    image->own = sum_of(own, classes);
    image->cross_entropy = sum_of(own + 2 * classes, classes);
    image->expected = sum_of(p, classes);
    set_allowed(rule, image);
    image->lowest = 0.0;
    if (rule->restore_prob > 0.0) image->lowest = (double)(kept(rule, labels) - labels) * log(rule->restore_prob);
    if (!image->low) image->high = without_tail(image->high, image->expected, image->lowest);
    for (int64_t i = 1; image->low && i <= labels; i++)
        image->lowest += log((double)(image->low + i) / (double)i);
}

/* An image from which nothing is missing needs no count: its candidates are absent. */
INLINE void settle(const group_t *group, int lane, int64_t classes, float *grad) {
    float *p = (float *)group->p + lane, *not_p = (float *)group->not_p + lane;
    for (int64_t k = 0; k < classes; k++) {
        if (grad) grad[k] += p[k * LANES];
        p[k * LANES] = 0.0f;
        not_p[k * LANES] = 1.0f;
    }
}

/* w(u) / w(low) of every image, for u up to `width`. */
INLINE void fill_weights(const rule_t *rule, const group_t *group, const image_t *images, int count,
                         int64_t width) {
    memset(group->after, 0, (width + 1) * sizeof *group->after);
    for (int lane = 0; lane < count; lane++) {
        int64_t s = images[lane].labels, t = s + images[lane].low, n = kept(rule, t);
        double weight = 1.0;
        if (n > s || rule->restore_prob == 0.0) n = s; /* also where the rule allows nothing */
        for (int64_t u = images[lane].low; u <= images[lane].high; u++) {
            group->after[u].at[lane] = weight;
            int same = n == s || kept(rule, ++t) == n;
            double over = same ? (double)(s + u + 1 - n) : (double)(s - n) / rule->restore_prob;
            weight *= (1.0 - rule->restore_prob) * over / (double)(s + u + 1);
            n += !same;
        }
    }
}

/* From the state before class `start`, the first, to those after each class up to `stop`. */
INLINE void fill_span(const group_t *group, int64_t start, int64_t stop, int64_t width) {
    lanes_t *from = group->states;
    for (int64_t k = start; k < stop; k++, from += width) {
        lanes_t p, not_p, *to = from + width;
        EACH p.at[i] = group->p[k].at[i], not_p.at[i] = group->not_p[k].at[i];
        EACH to[0].at[i] = not_p.at[i] * from[0].at[i];
        for (int64_t u = 1; u < width; u++)
            EACH to[u].at[i] = not_p.at[i] * from[u].at[i] + p.at[i] * from[u - 1].at[i];
    }
}

/* (A - B) / L for one class; `after` then includes it. */
INLINE void step_back(const lanes_t *before, lanes_t *after, const lanes_t *p, const lanes_t *not_p,
                      int64_t width, lanes_t *apart) {
    lanes_t sum = {{0}};
    for (int64_t u = 0; u < width; u++)
        EACH {
            double now = after[u].at[i], next = after[u + 1].at[i];
            sum.at[i] += before[u].at[i] * (now - next);
            after[u].at[i] = not_p->at[i] * now + p->at[i] * next;
        }
    *apart = sum;
}

/* Returns L / w(low). With `gradients`, the gradients of the candidates take the place of group->p. Where
 * not all states are kept, those at the ends of spans are, and the others are found again. */
INLINE lanes_t likelihood(const rule_t *rule, const group_t *group, int64_t classes, int64_t width,
                          int gradients) {
    int64_t length = (classes + 1) * width <= ALL ? classes : SPAN;
    int64_t spans = ceil_divide(classes, length);
    lanes_t *states = group->states, *ends = states + (length + 1) * width, found = {{0}};
    memset(states, 0, width * sizeof *states);
    EACH states[0].at[i] = 1.0;
    for (int64_t number = 0; number < spans; number++) {
        int64_t start = number * length, stop = start + length < classes ? start + length : classes;
        if (spans > 1) memcpy(ends + number * width, states, width * sizeof *states);
        fill_span(group, start, stop, width);
        lanes_t *last = states + (stop - start) * width;
        for (int64_t u = 0; stop == classes && u < width; u++)
            EACH found.at[i] += last[u].at[i] * group->after[u].at[i];
        if (stop < classes) memcpy(states, last, width * sizeof *states);
    }
    for (int64_t number = spans - 1; gradients && number >= 0; number--) {
        int64_t start = number * length, stop = start + length < classes ? start + length : classes;
        if (stop < classes) {
            memcpy(states, ends + number * width, width * sizeof *states);
            fill_span(group, start, stop, width);
        }
        for (int64_t k = stop - 1; k >= start; k--) {
            lanes_t p, not_p, apart;
            EACH p.at[i] = group->p[k].at[i], not_p.at[i] = group->not_p[k].at[i];
            step_back(states + (k - start) * width, group->after, &p, &not_p, width, &apart);
            EACH {
                double counted = rule->share * not_p.at[i] * (apart.at[i] / found.at[i]);
                group->p[k].at[i] = (float)(p.at[i] * (counted + 1.0 - rule->share));
            }
        }
    }
    return found;
}

/* The rows in the order of their number of labels, so that eight in a row count up to the same. */
INLINE void sort_rows(int64_t rows, int64_t classes, const float *targets, int64_t *order,
                      int64_t *start, int32_t *labels) {
    memset(start, 0, (classes + 2) * sizeof *start);
    for (int64_t row = 0; row < rows; row++) {
        int32_t found = 0;
        for (int64_t k = 0; k < classes; k++) found += targets[row * classes + k] == 1.0f;
        labels[row] = found;
        start[found + 1]++;
    }
    for (int64_t s = 0; s < classes; s++) start[s + 1] += start[s];
    for (int64_t row = 0; row < rows; row++) order[start[labels[row]]++] = row;
}

/* hard[row] is set, and the row left undone, where L is no double. scratch is aligned for vectors
 * and has room for rule->room + 4 * classes + 16 vectors and 2 * rows + classes + 2 numbers. */
EVERY_CPU
void hilltop_count_loss(const rule_t *rule, int64_t rows, int64_t classes, const float *logits,
                        const float *targets, const uint8_t *observed, float *grad, uint8_t *hard,
                        double *scratch, total_t *total) {
    memset(total, 0, sizeof *total);
    lanes_t *vectors = (lanes_t *)scratch;
    group_t group = {.states = vectors, .after = vectors + rule->room,
                     .p = (narrow_t *)(vectors + rule->room + classes + 16)};
    group.not_p = group.p + classes;
    group.pairs = (float *)(group.not_p + classes);
    int64_t *order = (int64_t *)(vectors + rule->room + 4 * classes + 16), *start = order + rows;
    sort_rows(rows, classes, targets, order, start, (int32_t *)(start + classes + 2));
    for (int64_t first = 0; first < rows; first += LANES) {
        int count = rows - first < LANES ? (int)(rows - first) : LANES;
        image_t images[LANES];
        int64_t high = 0;
        memset(group.p, 0, classes * sizeof *group.p); /* for lanes without an image */
        for (int lane = 0; lane < count; lane++) {
            int64_t at = order[first + lane] * classes;
            read_image(rule, &group, lane, classes, logits + at, targets + at,
                       observed ? observed + at : 0, grad ? grad + at : 0, images + lane, total);
            if (!images[lane].high) settle(&group, lane, classes, grad ? grad + at : 0);
            high = images[lane].high > high ? images[lane].high : high;
        }
        lanes_t found = {{0}};
        if (high) {
            fill_weights(rule, &group, images, count, high + 1);
            found = likelihood(rule, &group, classes, high + 1, grad != 0);
        }
        for (int lane = 0; lane < count; lane++) {
            int64_t row = order[first + lane];
            double smallest = images[lane].clamped ? 1e-24 : 1e-250;
            int safe = found.at[lane] > smallest && found.at[lane] < 1e250;
            hard[row] = images[lane].high && !safe;
            total->hard += hard[row];
            if (hard[row]) continue;
            double counted = images[lane].high ? images[lane].lowest - log(found.at[lane])
                                               : images[lane].cross_entropy;
            total->sum += images[lane].own + rule->share * counted +
                          (1.0 - rule->share) * images[lane].cross_entropy;
            const float *shared = (float *)group.p + lane;
            for (int64_t k = 0; grad && high && k < classes; k++)
                grad[row * classes + k] += shared[k * LANES];
        }
    }
}
