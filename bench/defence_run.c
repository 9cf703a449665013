#include "bench/defence_run.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "bench/clock.h"
#include "bench/defence_survey.h"
#include "compute/trainer/trainer_inside.h"

/* Number of halvings of the interval that contains the largest size that passes. */
enum { BISECTIONS = 5 };

typedef struct defence {
    const defence_case *c;
    const quality_scale *scale;
    defence_result *result;
    defence_survey *survey;
    uint64_t seed;
    bool is_open;
    defence_round round;
    defence_judge judge;
    quality_shards shards; /* those of the run: for the windows of the loss test */
    dp_data read[QUALITY_WORKERS];
} defence;

/* Opens the round; the trainers of the seats give the number of elements of all vectors. */
static dp_status open_at(defence *d, const quality_seat *seats)
{
    const quality_plan *const plan = &d->c->plan;
    d->is_open = true;
    DP_TRY(defence_round_open(&d->round, plan, d->c->hostile, dp_trainer_elements(seats[0].trainer),
                              d->seed));
    d->judge = (defence_judge){.rule = d->c->rule,
                               .limits = d->c->limits,
                               .training_tokens =
                                   (double)d->scale->inner * d->scale->rows * d->scale->context,
                               .held = {.data = &d->shards.held[0]}};
    d->judge.shipped.training_tokens = (uint64_t)d->judge.training_tokens;
    defence_shipped_open(&d->judge.shipped);
    for (uint32_t i = 0; i < plan->workers; i++) {
        d->judge.shipped.trainers[i] = seats[i].trainer;
        d->judge.shipped.blobs[i] = seats[i].blob;
        d->judge.claimed[i] = &d->read[i];
        d->judge.claimed_seed[i] = dp_trainer_line_seed(seats[i].trainer, seats[i].trainer->member);
    }
    return defence_eye_open(&d->judge.eye, dp_trainer_manifest(seats[0].trainer), NULL);
}

static bool has_size(defence_attack attack)
{
    return attack == DEFENCE_DRIFT || attack == DEFENCE_NUDGE;
}

static bool decides_by_update(defence_rule rule)
{
    return rule != DEFENCE_CLIP && rule != DEFENCE_TRIM && rule != DEFENCE_SIGNS &&
           rule != DEFENCE_ORACLE;
}

static dp_status forge_all(defence *d, const quality_seat *seats, double size)
{
    for (uint32_t i = d->round.n - d->round.hostile; i < d->round.n; i++) {
        DP_TRY(defence_forge(&d->round, d->c->attack, i, size, seats[i].blob));
    }
    defence_round_measure(&d->round);
    return DP_OK;
}

static dp_status pass(defence *d, bool *all)
{
    defence_verdicts verdicts;
    *all = true;
    DP_TRY(defence_judge_ask(&d->judge, &d->round, &verdicts));
    for (uint32_t i = d->round.n - d->round.hostile; i < d->round.n; i++) {
        *all = *all && !verdicts.rejected[i];
    }
    return DP_OK;
}

/* The attackers know the rule, all updates and even the windows that will be drawn. All of them use
 * the same size. */
static dp_status attack(defence *d, const quality_seat *seats)
{
    /* No rule tests single updates: the attack is as long as the vector to which it is added, so
     * that the sum cancels. */
    double size = 1;
    if (has_size(d->c->attack) && decides_by_update(d->c->rule)) {
        double most = DEFENCE_DRIFT_MAX;
        size = 0;
        for (int i = 0; i < BISECTIONS; i++) {
            const double middle = (size + most) / 2;
            bool passes;
            DP_TRY(forge_all(d, seats, middle));
            DP_TRY(pass(d, &passes));
            *(passes ? &size : &most) = middle;
        }
    }
    d->result->size += size;
    return forge_all(d, seats, size);
}

static void count(defence *d, const defence_verdicts *v)
{
    defence_result *const out = d->result;
    for (uint32_t i = 0; i < d->round.n; i++) {
        if (d->round.workers[i].counted) {
            const bool hostile = defence_is_hostile(&d->round, i);
            *(hostile ? &out->hostile_seen : &out->honest_seen) += 1;
            *(hostile ? &out->hostile_rejected : &out->honest_rejected) += v->rejected[i];
        }
    }
}

/* Counts the workers that the rule has removed in the rounds so far: they do not return. */
static void count_out(const defence *d)
{
    defence_result *const out = d->result;
    out->hostile_out = 0;
    out->honest_out = 0;
    for (uint32_t i = 0; i < d->round.n; i++) {
        const uint64_t at = d->judge.shipped.out[i];
        const bool hostile = defence_is_hostile(&d->round, i);
        *(hostile ? &out->hostile_out : &out->honest_out) += at > 0 ? 1 : 0;
        out->last_out = at > out->last_out ? (double)at : out->last_out;
    }
}

static dp_status publications(void *context, uint64_t number, quality_seat *seats, uint32_t n)
{
    defence *const d = context;
    if (!d->is_open) {
        DP_TRY(open_at(d, seats));
    }
    DP_TRY(defence_round_take(&d->round, number, seats));
    if (d->survey != NULL) {
        return defence_survey_round(d->survey, &d->judge, &d->round);
    }
    if (d->c->attack != DEFENCE_HONEST) {
        DP_TRY(attack(d, seats));
    }
    defence_verdicts verdicts;
    const uint64_t tests = d->judge.tests;
    const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    DP_TRY(defence_judge_ask(&d->judge, &d->round, &verdicts));
    d->result->rule_s += bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    d->result->tests += (double)(d->judge.tests - tests);
    DP_TRY(defence_judge_settle(&d->judge, &d->round, &verdicts));
    count(d, &verdicts);
    count_out(d);
    for (uint32_t i = 0; i < n; i++) {
        seats[i].rejected = verdicts.rejected[i];
    }
    return DP_OK;
}

static dp_status combine(void *context, const dp_view *blobs, const uint32_t *q, uint32_t n_blobs,
                         float *g)
{
    defence *const d = context;
    const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    const dp_status status = defence_combine(d->c->rule, d->round.elements, blobs, q, n_blobs, g);
    d->result->rule_s += bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    return status;
}

static dp_status open_texts(defence *d, const quality_text *text, dp_why *why)
{
    const quality_plan *const plan = &d->c->plan;
    DP_TRY(quality_shards_open(&d->shards, text, plan->split, plan->workers, why));
    for (uint32_t i = 0; i < plan->workers; i++) {
        uint64_t tokens;
        DP_TRY(dp_data_open(&d->read[i], quality_shard_of(&d->shards, text, i, &tokens),
                            QUALITY_VOCAB, QUALITY_HELD_PER_MILLE, why));
    }
    return DP_OK;
}

void defence_run(const quality_scale *scale, const defence_case *c, const quality_text *text,
                 uint64_t seed, defence_survey *survey, defence_result *result)
{
    *result = (defence_result){.size = 0};
    defence *const d = dp_alloc(1, sizeof *d);
    dp_assert(d != NULL);
    d->c = c;
    d->scale = scale;
    d->result = result;
    d->survey = survey;
    d->seed = seed;
    quality_plan plan = c->plan;
    const bool combines = c->rule == DEFENCE_TRIM || c->rule == DEFENCE_SIGNS;
    const quality_hooks hooks = {
        .context = d, .publications = publications, .combine = combines ? combine : NULL};
    plan.hooks = &hooks;
    dp_why why = {{0}};
    const dp_status status = open_texts(d, text, &why);
    if (status == DP_OK) {
        quality_run(scale, &plan, text, seed, &result->quality);
    } else {
        result->quality.status = status;
        snprintf(result->quality.problem, sizeof result->quality.problem, "%.120s", why.text);
    }
    const double rounds = result->quality.rounds;
    result->size = rounds > 0 ? result->size / rounds : 0;
    quality_shards_close(&d->shards);
    defence_eye_close(&d->judge.eye);
    defence_round_close(&d->round);
    dp_free(d);
}
