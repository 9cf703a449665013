#include "bench/defence_judge.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"

enum { WINDOWS_MAX = DEFENCE_ALL_TOKENS / 2 / DEFENCE_WINDOW };

/* Weight of the newest median. */
#define REF_NEWEST 0.2

const float *defence_reference_of(const defence_worker *voter, defence_reference reference)
{
    switch (reference) {
    case DEFENCE_OF_ROUND:
        return voter->has_a ? voter->a : NULL;
    case DEFENCE_OF_BEFORE:
        return voter->has_before ? voter->before : NULL;
    case DEFENCE_OF_WORK:
        return voter->has_a ? voter->work : NULL;
    case DEFENCE_REFERENCES:
        break;
    }
    return NULL;
}

dp_status defence_judge_gains(defence_judge *j, const defence_round *round, uint32_t worker,
                              uint32_t voter, double steps, uint32_t n_windows, double *held,
                              double *claimed)
{
    const defence_worker *const w = &round->workers[worker];
    const defence_source own = {.data = j->claimed[worker],
                                .seed = j->claimed_seed[worker],
                                .first = w->own_first,
                                .count = w->own_end - w->own_first};
    dp_rng rng;
    dp_rng_init(&rng, dp_mix64(round->number) + 64 * (uint64_t)voter + worker);
    defence_eye_move(&j->eye, round->theta, w->d, steps * w->step);
    DP_TRY(defence_gains(&j->eye, &j->held, &rng, n_windows, held));
    return defence_gains(&j->eye, &own, &rng, n_windows, claimed);
}

static dp_status test(defence_judge *j, const defence_round *round, uint32_t voter, uint32_t worker,
                      uint32_t tokens, defence_seen *seen)
{
    double held[WINDOWS_MAX];
    double claimed[WINDOWS_MAX];
    const uint32_t n = tokens / 2 / DEFENCE_WINDOW;
    dp_assert(n <= WINDOWS_MAX);
    DP_TRY(defence_judge_gains(j, round, worker, voter, j->limits.step, n, held, claimed));
    seen->held = defence_gain_of(held, n);
    seen->claimed = defence_gain_of(claimed, n);
    seen->tested = true;
    return DP_OK;
}

static bool is_above(const defence_seen *seen, double errors)
{
    const double error = hypot(seen->held.error, seen->claimed.error);
    return seen->held.mean + seen->claimed.mean > errors * error;
}

static bool is_bad(const defence_judge *j, const defence_seen *seen)
{
    if (seen->suspect) {
        return j->rule == DEFENCE_ALIGN || !seen->tested || !is_above(seen, j->limits.acquit);
    }
    return seen->tested && !is_above(seen, -j->limits.errors);
}

/* Two forward passes per token of a test; a training token costs three. */
static uint32_t budget_of(const defence_judge *j)
{
    return (uint32_t)(j->limits.budget * j->training_tokens * 3 / 2);
}

/* Tokens of one test, in whole pairs of windows. */
static uint32_t tokens_of(const defence_judge *j, const defence_round *round,
                          const defence_seen *seen)
{
    uint32_t suspects = 0;
    for (uint32_t i = 0; i < round->n; i++) {
        suspects += seen[i].suspect;
    }
    if (j->rule == DEFENCE_LOSS_ALL) {
        return DEFENCE_ALL_TOKENS;
    }
    if (suspects == 0) {
        return DEFENCE_TEST_TOKENS;
    }
    const uint32_t each = budget_of(j) / suspects / (2 * DEFENCE_WINDOW) * (2 * DEFENCE_WINDOW);
    return each < DEFENCE_TEST_LEAST   ? DEFENCE_TEST_LEAST
           : each > DEFENCE_ALL_TOKENS ? DEFENCE_ALL_TOKENS
                                       : each;
}

static bool is_judged(const defence_round *round, uint32_t worker, uint32_t voter)
{
    return round->workers[worker].counted && worker != voter;
}

/* The next worker to test: the untested one with the least alignment, or a random one. n: there is
 * none. */
static uint32_t next_to_test(const defence_judge *j, const defence_round *round, uint32_t voter,
                             const defence_seen *seen, dp_rng *shared)
{
    uint32_t next = round->n;
    const uint32_t start = (uint32_t)dp_rng_below(shared, round->n);
    for (uint32_t k = 0; k < round->n; k++) {
        const uint32_t i = (start + k) % round->n;
        if (!is_judged(round, i, voter) || seen[i].tested) {
            continue;
        }
        if (next == round->n || (j->rule == DEFENCE_JUDGE && seen[i].align < seen[next].align)) {
            next = i;
        }
    }
    return next;
}

static dp_status test_some(defence_judge *j, const defence_round *round, uint32_t voter,
                           defence_seen *seen)
{
    /* The voters draw the same numbers; otherwise no majority would test the same update. */
    dp_rng shared;
    dp_rng_init(&shared, dp_mix64(round->number));
    const bool all = j->rule == DEFENCE_LOSS_ALL;
    const uint32_t tokens = tokens_of(j, round, seen);
    const uint32_t most = all ? round->n : budget_of(j) / tokens;
    for (uint32_t k = 0; k < most; k++) {
        const uint32_t i = next_to_test(j, round, voter, seen, &shared);
        if (i == round->n) {
            break;
        }
        DP_TRY(test(j, round, voter, i, tokens, &seen[i]));
        j->tests++;
    }
    return DP_OK;
}

static double lower_median(double *values, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const double value = values[i];
        uint32_t at = i;
        for (; at > 0 && values[at - 1] > value; at--) {
            values[at] = values[at - 1];
        }
        values[at] = value;
    }
    return n > 0 ? values[(n - 1) / 2] : 0;
}

static bool is_like_another(const defence_judge *j, const defence_round *round,
                            const defence_verdicts *v, uint32_t worker)
{
    for (uint32_t i = 0; i < worker; i++) {
        if (round->workers[i].counted &&
            defence_distance(&v->likeness[i], &v->likeness[worker]) < j->limits.likeness) {
            return true;
        }
    }
    for (uint32_t k = 0; k < DEFENCE_HISTORY; k++) {
        for (uint32_t i = 0; j->past_round[k] > 0 && i < round->n; i++) {
            if (defence_distance(&j->past[k][i], &v->likeness[worker]) < j->limits.likeness) {
                return true;
            }
        }
    }
    return false;
}

static bool is_misaligned(const defence_judge *j, uint32_t voter, double align)
{
    const double ref = j->voters[voter].ref;
    return ref > 0 ? align < j->limits.align_share * ref : align <= 0;
}

/* Votes of one voter against updates, added up. */
static dp_status vote(defence_judge *j, const defence_round *round, uint32_t voter,
                      defence_verdicts *out, uint32_t *against)
{
    defence_seen seen[QUALITY_WORKERS] = {{0}};
    double aligns[QUALITY_WORKERS];
    uint32_t n = 0;
    const bool aligned = j->rule == DEFENCE_JUDGE || j->rule == DEFENCE_ALIGN;
    const float *const a =
        aligned ? defence_reference_of(&round->workers[voter], j->limits.reference) : NULL;
    for (uint32_t i = 0; i < round->n; i++) {
        if (a != NULL && is_judged(round, i, voter)) {
            seen[i].align = defence_cosine(round->workers[i].d, a, round->elements);
            seen[i].suspect = is_misaligned(j, voter, seen[i].align);
            aligns[n++] = seen[i].align;
        }
    }
    out->median[voter] = lower_median(aligns, n);
    if (j->rule != DEFENCE_ALIGN) {
        DP_TRY(test_some(j, round, voter, seen));
    }
    for (uint32_t i = 0; i < round->n; i++) {
        if (is_judged(round, i, voter)) {
            against[i] += is_bad(j, &seen[i]) ||
                          (aligned && defence_norm(round->workers[i].d, round->elements) == 0);
        }
    }
    return DP_OK;
}

/* The sum of the others has the weights of the record: here all weights are equal, but not the
 * clips. */
static void gate(const defence_round *round, defence_verdicts *out)
{
    double products[QUALITY_WORKERS][QUALITY_WORKERS];
    for (uint32_t i = 0; i < round->n; i++) {
        for (uint32_t k = 0; k <= i; k++) {
            products[i][k] =
                defence_dot(round->workers[i].d, round->workers[k].d, round->elements) *
                round->workers[i].step * round->workers[k].step;
            products[k][i] = products[i][k];
        }
    }
    for (uint32_t i = 0; i < round->n; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < round->n; k++) {
            sum += k != i && round->workers[k].counted ? products[i][k] : 0;
        }
        out->rejected[i] = round->workers[i].counted && sum <= 0;
    }
}

dp_status defence_judge_ask(defence_judge *j, const defence_round *round, defence_verdicts *out)
{
    uint32_t against[QUALITY_WORKERS] = {0};
    *out = (defence_verdicts){.rejected = {false}};
    switch (j->rule) {
    case DEFENCE_CLIP:
    case DEFENCE_TRIM:
    case DEFENCE_SIGNS:
    case DEFENCE_RULES:
        return DP_OK;
    case DEFENCE_COSINE:
        gate(round, out);
        return DP_OK;
    case DEFENCE_ORACLE:
        for (uint32_t i = 0; i < round->n; i++) {
            out->rejected[i] = defence_is_hostile(round, i);
        }
        return DP_OK;
    case DEFENCE_SHIPPED:
        return defence_shipped_ask(&j->shipped, round, false, out->rejected, &j->tests);
    case DEFENCE_LOSS:
    case DEFENCE_LOSS_ALL:
    case DEFENCE_JUDGE:
    case DEFENCE_ALIGN:
        break;
    }
    defence_eye_theta(&j->eye, round->theta);
    for (uint32_t voter = 0; voter < DEFENCE_VOTERS; voter++) {
        DP_TRY(vote(j, round, voter, out, against));
    }
    for (uint32_t i = 0; i < round->n; i++) {
        /* A voter does not judge its own update, so both others must reject it. */
        out->rejected[i] = against[i] * 2 > DEFENCE_VOTERS;
        if (j->rule == DEFENCE_JUDGE && round->workers[i].counted) {
            out->likeness[i] = defence_likeness_of(round->workers[i].d, round->elements);
            out->rejected[i] = out->rejected[i] || is_like_another(j, round, out, i);
        }
    }
    return DP_OK;
}

dp_status defence_judge_settle(defence_judge *j, const defence_round *round,
                               const defence_verdicts *verdicts)
{
    if (j->rule == DEFENCE_SHIPPED) {
        bool rejected[QUALITY_WORKERS];
        uint64_t tests = 0;
        return defence_shipped_ask(&j->shipped, round, true, rejected, &tests);
    }
    const uint32_t slot = (uint32_t)(round->number % DEFENCE_HISTORY);
    j->past_round[slot] = round->number;
    for (uint32_t i = 0; i < round->n; i++) {
        /* Work that was left out is part of the next publication, which is similar to this one. */
        j->past[slot][i] = verdicts->rejected[i] ? (defence_likeness){{0}} : verdicts->likeness[i];
    }
    for (uint32_t i = 0; i < DEFENCE_VOTERS; i++) {
        double *const ref = &j->voters[i].ref;
        const double median = verdicts->median[i];
        if (median > 0) {
            *ref = *ref > 0 ? (1 - REF_NEWEST) * *ref + REF_NEWEST * median : median;
        }
    }
    return DP_OK;
}
