#include "bench/defence_survey.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "bench/clock.h"

enum { WINDOWS = 64, TEST_EVERY = 2, HONEST_TESTS = 3, GATE_STEPS = 5 };

static const uint32_t sizes[SURVEY_SIZES] = {2, 4, 16, 64}; /* windows of each kind */
static const double steps[SURVEY_STEPS] = {1, 0.25};
static const double shares[SURVEY_SHARES] = {0, 0.125, 0.25, 0.375, 0.5, 0.75};

static void put(survey_samples *s, double value)
{
    if (s->n < SURVEY_SAMPLES_MAX) {
        s->values[s->n++] = value;
    }
}

static double lower_median(double *values, uint32_t n)
{
    qsort(values, n, sizeof *values, bench_order);
    return n > 0 ? values[(n - 1) / 2] : 0;
}

/* NAN: the voter has no such reference, or the update is its own. */
static double cosine_of(const defence_round *round, uint32_t worker, uint32_t voter,
                        defence_reference reference)
{
    const float *const a = defence_reference_of(&round->workers[voter], reference);
    if (a == NULL || worker == voter || !round->workers[worker].counted) {
        return NAN;
    }
    return defence_cosine(round->workers[worker].d, a, round->elements);
}

static void learn_medians(defence_survey *s, const defence_round *round)
{
    for (defence_reference r = 0; r < DEFENCE_REFERENCES; r++) {
        for (uint32_t v = 0; v < DEFENCE_VOTERS; v++) {
            double values[QUALITY_WORKERS];
            uint32_t n = 0;
            for (uint32_t i = 0; i < round->n; i++) {
                const double cosine = cosine_of(round, i, v, r);
                if (!isnan(cosine)) {
                    values[n++] = cosine;
                }
            }
            s->median[r][v] = lower_median(values, n);
        }
    }
}

static bool is_rejected(double cosine, double ref, double share)
{
    return cosine <= 0 || (ref > 0 && cosine < share * ref);
}

/* The cosines of one update by all voters and references, and the verdicts of the thresholds. */
static void look_at_cosines(defence_survey *s, const defence_round *round, defence_attack attack,
                            uint32_t phase, uint32_t worker)
{
    survey_counts *const counts = &s->counts[attack][phase];
    survey_samples *const samples = s->samples[attack][phase];
    counts->judged++;
    for (defence_reference r = 0; r < DEFENCE_REFERENCES; r++) {
        uint32_t against[SURVEY_SHARES] = {0};
        for (uint32_t v = 0; v < DEFENCE_VOTERS; v++) {
            const double cosine = cosine_of(round, worker, v, r);
            if (isnan(cosine)) {
                continue;
            }
            put(&samples[SURVEY_COSINE + r], cosine);
            if (s->median[r][v] > 0) {
                put(&samples[SURVEY_RATIO + r], cosine / s->median[r][v]);
            }
            for (uint32_t k = 0; k < SURVEY_SHARES; k++) {
                against[k] += is_rejected(cosine, s->ref[r][v], shares[k]);
            }
        }
        for (uint32_t k = 0; k < SURVEY_SHARES; k++) {
            counts->rejected[r][k] += 2 * against[k] > DEFENCE_VOTERS;
        }
    }
}

/* Of an honest update: the bits to all others; of a forged one: to those of the others that were
 * announced before it. */
static void look_at_likeness(defence_survey *s, const defence_judge *judge,
                             const defence_round *round, survey_samples *to, uint32_t worker)
{
    const defence_likeness own = defence_likeness_of(round->workers[worker].d, round->elements);
    uint32_t least = 8 * DP_LIKENESS_BYTES;
    for (uint32_t i = 0; i < round->n; i++) {
        const uint32_t now = defence_distance(&own, &s->likeness[i]);
        least = i != worker && now < least ? now : least;
        for (uint32_t k = 0; k < DEFENCE_HISTORY; k++) {
            const uint32_t then = defence_distance(&own, &judge->past[k][i]);
            least = judge->past_round[k] > 0 && then < least ? then : least;
        }
    }
    put(to, least);
}

static dp_status look_at_gain(defence_survey *s, defence_judge *judge, const defence_round *round,
                              defence_attack attack, uint32_t phase, uint32_t worker)
{
    double held[WINDOWS];
    double claimed[WINDOWS];
    survey_counts *const counts = &s->counts[attack][phase];
    survey_samples *const samples = s->samples[attack][phase];
    counts->tested++;
    for (uint32_t t = 0; t < SURVEY_STEPS; t++) {
        DP_TRY(defence_judge_gains(judge, round, worker, 0, steps[t], WINDOWS, held, claimed));
        for (uint32_t k = 0; k < SURVEY_SIZES; k++) {
            const defence_gain h = defence_gain_of(held, sizes[k]);
            const defence_gain c = defence_gain_of(claimed, sizes[k]);
            const double error = hypot(h.error, c.error);
            counts->negative[t][k] += h.mean + c.mean < -judge->limits.errors * error;
            if (k + 1 == SURVEY_SIZES) {
                put(&samples[SURVEY_HELD + t], h.mean);
                put(&samples[SURVEY_CLAIMED + t], c.mean);
                put(&samples[SURVEY_DEVIATION + t],
                    error / 2 * sqrt((double)sizes[k] * DEFENCE_WINDOW));
            }
        }
    }
    return DP_OK;
}

static bool gate_passes(const defence_survey *s, const defence_judge *judge,
                        const defence_round *round, uint32_t worker)
{
    uint32_t against = 0;
    const defence_reference r = judge->limits.reference;
    for (uint32_t v = 0; v < DEFENCE_VOTERS; v++) {
        against +=
            is_rejected(cosine_of(round, worker, v, r), s->ref[r][v], judge->limits.align_share);
    }
    return 2 * against <= DEFENCE_VOTERS;
}

/* Forges the update of an attack. An attack with a size gets the largest size that the alignment
 * passes. */
static dp_status forge(defence_survey *s, const defence_judge *judge, defence_round *round,
                       defence_attack attack, uint32_t worker)
{
    dp_buf blob;
    dp_buf_init(&blob, dp_codec_bytes_max_any(round->elements));
    double size = 0;
    double most = DEFENCE_DRIFT_MAX;
    dp_status status = DP_OK;
    const bool sized = attack == DEFENCE_DRIFT || attack == DEFENCE_NUDGE;
    for (int i = 0; sized && i < GATE_STEPS && status == DP_OK; i++) {
        const double middle = (size + most) / 2;
        status = defence_forge(round, attack, worker, middle, &blob);
        *(gate_passes(s, judge, round, worker) ? &size : &most) = middle;
    }
    if (status == DP_OK) {
        status = defence_forge(round, attack, worker, size, &blob);
    }
    dp_buf_close(&blob);
    return status;
}

static dp_status look_at_attacks(defence_survey *s, defence_judge *judge, defence_round *round,
                                 uint32_t phase)
{
    const uint32_t worker = round->n - 1;
    defence_worker *const w = &round->workers[worker];
    for (defence_attack attack = DEFENCE_FLIP; attack < DEFENCE_ATTACKS; attack++) {
        DP_TRY(forge(s, judge, round, attack, worker));
        defence_round_measure(round);
        look_at_cosines(s, round, attack, phase, worker);
        look_at_likeness(s, judge, round, &s->samples[attack][phase][SURVEY_NEAR], worker);
        if (round->number % TEST_EVERY == 0) {
            DP_TRY(look_at_gain(s, judge, round, attack, phase, worker));
        }
        memcpy(w->d, w->honest, round->elements * sizeof *w->d);
    }
    defence_round_measure(round);
    return DP_OK;
}

static dp_status look(defence_survey *s, defence_judge *judge, defence_round *round, uint32_t phase)
{
    defence_eye_theta(&judge->eye, round->theta);
    for (uint32_t i = 0; i < round->n; i++) {
        if (!round->workers[i].counted) {
            continue;
        }
        look_at_cosines(s, round, DEFENCE_HONEST, phase, i);
        look_at_likeness(s, judge, round, &s->samples[DEFENCE_HONEST][phase][SURVEY_NEAR], i);
        if (round->number % TEST_EVERY == 0 && (i + round->number) % round->n < HONEST_TESTS) {
            DP_TRY(look_at_gain(s, judge, round, DEFENCE_HONEST, phase, i));
        }
    }
    return look_at_attacks(s, judge, round, phase);
}

dp_status defence_survey_round(defence_survey *s, defence_judge *judge, defence_round *round)
{
    defence_verdicts none = {.rejected = {false}};
    learn_medians(s, round);
    for (uint32_t i = 0; i < round->n; i++) {
        s->likeness[i] = defence_likeness_of(round->workers[i].d, round->elements);
        none.likeness[i] = s->likeness[i];
    }
    /* The first rounds have no reference of the round before, and no update to replay. */
    if (round->number > DEFENCE_HISTORY && round->number <= s->rounds / 3 + DEFENCE_HISTORY) {
        DP_TRY(look(s, judge, round, 0));
    } else if (round->number > s->rounds - s->rounds / 3) {
        DP_TRY(look(s, judge, round, 1));
    }
    for (defence_reference r = 0; r < DEFENCE_REFERENCES; r++) {
        for (uint32_t v = 0; v < DEFENCE_VOTERS; v++) {
            double *const ref = &s->ref[r][v];
            const double median = s->median[r][v];
            *ref = *ref > 0 ? 0.8 * *ref + 0.2 * median : median;
        }
    }
    return defence_judge_settle(judge, round, &none);
}

/* ---- Tables. */

static double quantile(survey_samples *s, double share)
{
    if (s->n == 0) {
        return NAN;
    }
    qsort(s->values, s->n, sizeof *s->values, bench_order);
    return s->values[(uint32_t)(share * (s->n - 1) + 0.5)];
}

static double mean(const survey_samples *s)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        sum += s->values[i];
    }
    return s->n > 0 ? sum / s->n : NAN;
}

static void print_quantiles(survey_samples *s)
{
    printf(" %.3f %.3f %.3f |", quantile(s, 0.01), quantile(s, 0.5), quantile(s, 0.99));
}

static double percent(double part, double all)
{
    return all > 0 ? 100 * part / all : NAN;
}

static void print_row(defence_survey *s, defence_attack attack, uint32_t phase)
{
    survey_samples *const samples = s->samples[attack][phase];
    const survey_counts *const counts = &s->counts[attack][phase];
    printf("| %s | %s |", defence_attack_name(attack), phase == 0 ? "early" : "late");
    print_quantiles(&samples[SURVEY_COSINE]);
    for (uint32_t r = 0; r < DEFENCE_REFERENCES; r++) {
        print_quantiles(&samples[SURVEY_RATIO + r]);
    }
    printf(" %.0f %.0f |", quantile(&samples[SURVEY_NEAR], 0.01),
           quantile(&samples[SURVEY_NEAR], 0.5));
    for (uint32_t t = 0; t < SURVEY_STEPS; t++) {
        printf(" %+.4f %+.4f %.3f:", mean(&samples[SURVEY_HELD + t]),
               mean(&samples[SURVEY_CLAIMED + t]), mean(&samples[SURVEY_DEVIATION + t]));
        for (uint32_t k = 0; k < SURVEY_SIZES; k++) {
            printf(" %.0f", percent(counts->negative[t][k], counts->tested));
        }
        printf(t + 1 < SURVEY_STEPS ? " |" : "");
    }
    for (uint32_t r = 0; r < DEFENCE_REFERENCES; r++) {
        printf(" |");
        for (uint32_t k = 0; k < SURVEY_SHARES; k++) {
            printf(" %.1f", percent(counts->rejected[r][k], counts->judged));
        }
    }
    printf(" |\n");
}

static void print_json(defence_survey *s, const char *name, defence_attack attack, uint32_t phase)
{
    static const char *const keys[SURVEY_VALUES] = {"cosine_round",
                                                    "cosine_before",
                                                    "cosine_work",
                                                    "ratio_round",
                                                    "ratio_before",
                                                    "ratio_work",
                                                    "near",
                                                    "held_whole",
                                                    "held_quarter",
                                                    "claimed_whole",
                                                    "claimed_quarter",
                                                    "deviation_whole",
                                                    "deviation_quarter"};
    printf("{\"survey\":\"%s\",\"update\":\"%s\",\"phase\":%u", name, defence_attack_name(attack),
           phase);
    for (uint32_t k = 0; k < SURVEY_VALUES; k++) {
        survey_samples *const samples = &s->samples[attack][phase][k];
        if (samples->n > 0) {
            printf(",\"%s\":[%.5f,%.5f,%.5f]", keys[k], quantile(samples, 0.01),
                   quantile(samples, 0.5), quantile(samples, 0.99));
        }
    }
    printf("}\n");
}

void defence_survey_print(defence_survey *s, const char *name, bool json)
{
    if (!json) {
        printf(
            "\n%s\n\n"
            "| update | phase | cosine, round: 1 %%, median, 99 %% | ratio, round | ratio, before "
            "| ratio, work | bits to the nearest: 1 %%, median | whole step: held gain, claimed "
            "gain, deviation per token: tests below 0, %%, of 64, 128, 512, 2048 tokens | the "
            "same, a quarter of it "
            "| rejected, %%, round: below 0, 1/8, 1/4, 3/8, 1/2, 3/4 of ref | the same, before | "
            "the same, work |\n"
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- "
            "|\n",
            name);
    }
    for (defence_attack attack = DEFENCE_HONEST; attack < DEFENCE_ATTACKS; attack++) {
        for (uint32_t phase = 0; phase < SURVEY_PHASES; phase++) {
            if (json) {
                print_json(s, name, attack, phase);
            } else {
                print_row(s, attack, phase);
            }
        }
    }
}
