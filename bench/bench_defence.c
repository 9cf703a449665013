/* Damage that hostile trainers do to a model; cost and gain of each defence: several trainers in
 * one process exchange updates as in bench_quality, some of them send false updates, and a rule
 * leaves updates out. Measures losses, not times.
 *
 * bench_defence [--short | --long] [--json] [--only WORD,WORD] [--jobs N] [--seeds N] [--steps N]
 *               [--text FILE] [--reference round|before|work] [--share X] [--acquit X] [--errors X]
 *               [--bits N] [--step X] [--budget PERCENT] --short   one seed, 24 rounds with 4
 *               workers and 10 with 16 (the default): 15 to 30 minutes of CPU --long    three
 *               seeds, four times the steps, and more kinds of data
 *   --only    the cases whose names contain one of the words. Names are survey/DATA/CODEC for the
 *             distributions of what voters measure, and CODEC-WORKERS/RULE/ATTACK, as in
 *             sparse-16/judge/drift, for runs
 *   the last row of options: the limits of the proposed rule (defence_plan.h)
 * The rules are those of defence_plan.h, the attacks too. In runs without attackers all workers are
 * honest; "oracle/alone" leaves out exactly the updates of the hostile ones. All runs of a group
 * begin with the model of one honest run of 1,200 steps, surveys with new weights. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/run/run_mode.h"
#include "bench/defence_report.h"
#include "bench/defence_run.h"
#include "bench/defence_survey.h"
#include "bench/quality_jobs.h"
#include "bench/quality_text.h"
#include "compute/codec/codec.h"
#include "gossip/ledger/weights.h"

enum {
    LONG_STEPS = 4,
    LONG_SEEDS = 3,
    SEEDS_MAX = 8,
    CASES_MAX = 1024,
    SURVEY_WORKERS = 8,
    SURVEY_TRAINS = 960, /* steps */
    START_STEPS = 1200,
    START_BYTES_MAX = 4 << 20
};

typedef struct settings {
    quality_scale scale;
    defence_limits limits;
    const char *text;
    const char *only;
    uint32_t seeds;
    uint32_t jobs;
    uint32_t steps; /* 0: each group has its own */
    uint32_t times;
    bool json;
} settings;

/* Runs that are compared with each other. */
typedef struct group {
    const char *name;
    const char *mode; /* of base/run/run_mode.h; NULL: the default */
    uint32_t workers;
    uint32_t hostile;
    uint32_t steps;
    size_t start; /* index of the group with the same initial model */
} group;

static const group groups[] = {
    {.name = "sparse-4", .workers = 4, .hostile = 1, .steps = 360},
    {.name = "int8-4", .mode = "diloco", .workers = 4, .hostile = 1, .steps = 360, .start = 1},
    {.name = "sparse-16", .workers = 16, .hostile = 4, .steps = 150},
};

typedef struct data {
    const char *name;
    quality_split split;
    bool unlike;
    bool slow_late;
    bool stale;
    bool more; /* surveys and sparse-16: only with --long or --only */
} data;

static const data datas[] = {
    {.name = "alike"},
    {.name = "parts", .split = QUALITY_PARTS},
    {.name = "tongues", .split = QUALITY_TONGUES, .more = true},
    {.name = "minority", .split = QUALITY_MINORITY},
    {.name = "speeds", .unlike = true, .more = true},
    {.name = "late", .unlike = true, .slow_late = true, .more = true},
    {.name = "stale", .unlike = true, .slow_late = true, .stale = true, .more = true},
};

enum { N_GROUPS = sizeof groups / sizeof groups[0], N_DATAS = sizeof datas / sizeof datas[0] };

typedef struct job {
    defence_row row;
    size_t start;
    uint64_t seed;
    uint32_t steps;
    bool survey;
} job;

/* The state that the runs of a group begin with. */
typedef struct start {
    size_t size;
    uint8_t bytes[START_BYTES_MAX];
} start;

typedef struct work {
    const settings *s;
    const quality_text *text;
    job jobs[CASES_MAX];
    size_t n;
    defence_result *results; /* of each job, shared */
    start *starts;           /* of each group, shared */
    size_t n_surveys;
} work;

static quality_plan plan_of(const group *g, const data *d)
{
    dp_manifest m;
    size_t n;
    dp_manifest_default(&m);
    dp_run_mode_set(&m, g->mode != NULL ? dp_run_mode_find(g->mode) : &dp_run_modes(&n)[0]);
    const bool thins = dp_codec_row_of(m.codec)->thins;
    return (quality_plan){.name = g->name,
                          .workers = g->workers,
                          .codec = m.codec,
                          .keep = thins ? m.codec_keep : 0,
                          .beta_milli = m.feedback_beta_milli,
                          .alpha_milli = m.alpha_milli,
                          .mu_milli = m.outer_mu_milli,
                          .split = d->split,
                          .unlike = d->unlike,
                          .slow_late = d->slow_late,
                          .stale = d->stale};
}

static bool is_wanted(const settings *s, const char *name)
{
    char words[4096];
    char *rest = words;
    if (s->only == NULL) {
        return true;
    }
    snprintf(words, sizeof words, "%s", s->only);
    while (rest != NULL) {
        char *const word = rest;
        rest = strchr(rest, ',');
        if (rest != NULL) {
            *rest++ = '\0';
        }
        if (strstr(name, word) != NULL) {
            return true;
        }
    }
    return false;
}

static void plan_case(work *w, const group *g, const data *d, defence_rule rule,
                      defence_attack attack, uint32_t hostile)
{
    const settings *const s = w->s;
    job j = {.steps = (s->steps > 0 ? s->steps : g->steps) * s->times, .start = g->start};
    j.row.c = (defence_case){.plan = plan_of(g, d),
                             .hostile = hostile,
                             .attack = attack,
                             .rule = rule,
                             .limits = s->limits};
    snprintf(j.row.group, sizeof j.row.group, "%s", g->name);
    snprintf(j.row.kind, sizeof j.row.kind, "%s",
             rule == DEFENCE_ORACLE     ? "alone"
             : attack != DEFENCE_HONEST ? defence_attack_name(attack)
                                        : d->name);
    snprintf(j.row.name, sizeof j.row.name, "%s/%s/%s", g->name, defence_rule_name(rule),
             j.row.kind);
    for (uint32_t seed = 1; is_wanted(s, j.row.name) && seed <= s->seeds && w->n < CASES_MAX;
         seed++) {
        j.seed = seed;
        w->jobs[w->n++] = j;
    }
}

static bool is_short(const settings *s)
{
    return s->only == NULL && s->times == 1;
}

static void plan_surveys(work *w)
{
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < N_DATAS; k++) {
            group g = groups[i]; /* One of each codec. */
            g.workers = SURVEY_WORKERS;
            job j = {.survey = true, .seed = 1};
            j.steps = (w->s->steps > 0 ? w->s->steps : SURVEY_TRAINS) * w->s->times;
            j.row.c = (defence_case){.plan = plan_of(&g, &datas[k]),
                                     .hostile = 2,
                                     .rule = DEFENCE_ALIGN,
                                     .limits = w->s->limits};
            snprintf(j.row.name, sizeof j.row.name, "survey/%s/%s", datas[k].name,
                     i == 0 ? "sparse" : "int8");
            if (is_wanted(w->s, j.row.name) && !(datas[k].more && is_short(w->s))) {
                w->jobs[w->n++] = j;
            }
        }
    }
    w->n_surveys = w->n;
}

/* Sparse updates have no trimmed mean. Rules that are parts of other rules run only in cases where
 * their result is informative. */
static bool is_planned(const settings *s, const group *g, const data *d, defence_rule rule,
                       defence_attack attack)
{
    const bool dense = g->mode != NULL;
    const bool alike = d == &datas[0];
    if (d->more && is_short(s) && g->workers > 4) {
        return false;
    }
    switch (rule) {
    case DEFENCE_SHIPPED: /* In the product all members train on one text. */
        return d->split == datas[0].split;
    case DEFENCE_CLIP:
    case DEFENCE_COSINE:
    case DEFENCE_JUDGE:
        return alike || !dense;
    case DEFENCE_TRIM:
        return dense && alike;
    case DEFENCE_SIGNS:
        return alike;
    case DEFENCE_LOSS:
        return alike && !dense;
    case DEFENCE_LOSS_ALL:
        return !dense && g->workers == 4;
    case DEFENCE_ALIGN:
        return !dense && (attack == DEFENCE_DRIFT || attack == DEFENCE_HONEST);
    case DEFENCE_ORACLE:
        return alike && attack == DEFENCE_FLIP;
    case DEFENCE_RULES:
        break;
    }
    return false;
}

static void plan_group(work *w, const group *g)
{
    for (defence_rule rule = 0; rule < DEFENCE_RULES; rule++) {
        for (size_t k = 0; k < N_DATAS; k++) {
            if (is_planned(w->s, g, &datas[k], rule, DEFENCE_HONEST)) {
                plan_case(w, g, &datas[k], rule, DEFENCE_HONEST, 0);
            }
        }
        for (defence_attack attack = DEFENCE_FLIP; attack < DEFENCE_ATTACKS; attack++) {
            if (is_planned(w->s, g, &datas[0], rule, attack)) {
                plan_case(w, g, &datas[0], rule, attack, g->hostile);
            }
        }
    }
}

/* Four honest workers train from new weights: attacks on an untrained model say little. */
static void make_start(void *context, size_t i)
{
    work *const w = context;
    start *const out = &w->starts[i];
    bool any = false;
    for (size_t k = 0; k < w->n; k++) {
        any = any || (!w->jobs[k].survey && w->jobs[k].start == i);
    }
    if (!any) {
        return;
    }
    quality_result result;
    quality_plan plan = plan_of(&groups[i], &datas[0]);
    quality_scale scale = w->s->scale;
    dp_buf end;
    dp_buf_init(&end, sizeof out->bytes);
    scale.steps = START_STEPS;
    plan.workers = 4;
    plan.end = &end;
    quality_run(&scale, &plan, w->text, 77, &result);
    if (result.status == DP_OK) {
        memcpy(out->bytes, end.data, end.size);
        memset(out->bytes + 16, 0,
               8); /* The round (compute/model/state.h): the coming runs begin with round 0. */
        out->size = end.size;
    }
    dp_buf_close(&end);
    fprintf(stderr, "start of %s: loss %.4f, %.0f s\n", groups[i].name, result.loss, result.cpu_s);
}

static void do_job(void *context, size_t i)
{
    work *const w = context;
    const job *const j = &w->jobs[i];
    quality_scale scale = w->s->scale;
    scale.steps = j->steps;
    defence_survey *const survey = j->survey ? dp_alloc(1, sizeof *survey) : NULL;
    if (survey != NULL) {
        survey->rounds = scale.steps / scale.inner;
    }
    defence_result *const out = &w->results[i];
    defence_case c = j->row.c;
    if (!j->survey) {
        c.plan.start = dp_view_of(w->starts[j->start].bytes, w->starts[j->start].size);
    }
    defence_run(&scale, &c, w->text, j->seed, survey, out);
    if (survey != NULL && out->quality.status == DP_OK) {
        defence_survey_print(survey, j->row.name, w->s->json);
        fflush(stdout);
        dp_free(survey);
    }
    fprintf(stderr,
            "%s, seed %llu: loss %.4f, updates left out: honest %.0f of %.0f, hostile %.0f of "
            "%.0f; put out: %.0f honest, %.0f hostile, the last in round %.0f; %.0f s\n",
            j->row.name, (unsigned long long)j->seed, out->quality.loss, out->honest_rejected,
            out->honest_seen, out->hostile_rejected, out->hostile_seen, out->honest_out,
            out->hostile_out, out->last_out, out->quality.cpu_s);
}

static bool all_done(const work *w)
{
    bool good = w->n > 0;
    for (size_t i = 0; i < w->n; i++) {
        const quality_result *const q = &w->results[i].quality;
        if (q->status != DP_OK || q->n_points == 0) {
            fprintf(stderr, "bench_defence: %s: %s\n", w->jobs[i].row.name, q->problem);
            good = false;
        }
    }
    return good;
}

static void report(work *w)
{
    static defence_row rows[CASES_MAX];
    size_t n = 0;
    for (size_t i = w->n_surveys; i < w->n; i += w->s->seeds) {
        rows[n] = w->jobs[i].row;
        rows[n].results = &w->results[i];
        rows[n++].n = w->s->seeds;
    }
    for (size_t i = 0; i < N_GROUPS; i++) {
        defence_report(rows, n, groups[i].name, w->s->json);
    }
}

static int run_all(const settings *s, const quality_text *text)
{
    static work w;
    w.s = s;
    w.text = text;
    plan_surveys(&w);
    for (size_t i = 0; i < N_GROUPS; i++) {
        plan_group(&w, &groups[i]);
    }
    w.results = quality_jobs_memory(CASES_MAX * sizeof *w.results);
    w.starts = quality_jobs_memory(N_GROUPS * sizeof *w.starts);
    if (w.results == NULL || w.starts == NULL) {
        fputs("bench_defence: there is no memory\n", stderr);
        return 1;
    }
    const bool good = quality_jobs(N_GROUPS, s->jobs, make_start, &w) &&
                      quality_jobs(w.n, s->jobs, do_job, &w) && all_done(&w);
    if (good) {
        report(&w);
    }
    return good ? 0 : 1;
}

static bool parse_value(settings *s, const char *name, const char *value)
{
    const struct {
        const char *name;
        uint32_t *to;
        uint32_t most;
    } numbers[] = {{"--seeds", &s->seeds, SEEDS_MAX},
                   {"--jobs", &s->jobs, 256},
                   {"--steps", &s->steps, 100000}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            *numbers[i].to = (uint32_t)strtoul(value, NULL, 10);
            return *numbers[i].to >= 1 && *numbers[i].to <= numbers[i].most;
        }
    }
    const struct {
        const char *name;
        double *to;
    } limits[] = {{"--share", &s->limits.align_share}, {"--errors", &s->limits.errors},
                  {"--acquit", &s->limits.acquit},     {"--bits", &s->limits.likeness},
                  {"--step", &s->limits.step},         {"--budget", &s->limits.budget}};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (strcmp(name, limits[i].name) == 0) {
            *limits[i].to = strtod(value, NULL) / (strcmp(name, "--budget") == 0 ? 100 : 1);
            return *limits[i].to >= 0;
        }
    }
    static const char *const references[DEFENCE_REFERENCES] = {"round", "before", "work"};
    for (uint32_t i = 0; strcmp(name, "--reference") == 0 && i < DEFENCE_REFERENCES; i++) {
        if (strcmp(value, references[i]) == 0) {
            s->limits.reference = (defence_reference)i;
            return true;
        }
    }
    const bool only = strcmp(name, "--only") == 0;
    *(only ? &s->only : &s->text) = value;
    return only || strcmp(name, "--text") == 0;
}

static bool parse(int argc, char **argv, settings *s)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            s->json = true;
        } else if (strcmp(argv[i], "--long") == 0) {
            s->seeds = LONG_SEEDS;
            s->times = LONG_STEPS;
        } else if (strcmp(argv[i], "--short") != 0) {
            if (i + 1 >= argc || !parse_value(s, argv[i], argv[i + 1])) {
                return false;
            }
            i++;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    settings s = {.scale = {.layers = 2,
                            .width = 64,
                            .heads = 2,
                            .context = 64,
                            .rows = 4,
                            .inner = 15,
                            .lr_nano = 4000000,
                            .eval_tokens = 32768,
                            .points = 2},
                  .limits = defence_limits_standard(),
                  .seeds = 1,
                  .times = 1,
                  .jobs = 2};
    if (!parse(argc, argv, &s)) {
        puts("usage: bench_defence [--short | --long] [--json] [--only WORD,WORD] [--jobs N] "
             "[--seeds N]\n"
             "                     [--steps N] [--text FILE] [--reference round|before|work] "
             "[--share X]\n"
             "                     [--acquit X] [--errors X] [--bits N] [--step X] [--budget "
             "PERCENT]");
        return 64;
    }
    quality_text text = {.tokens = 0};
    dp_why why = {{0}};
    if (quality_text_open(&text, s.text, &why) != DP_OK) {
        fprintf(stderr, "bench_defence: %s\n", why.text);
        return 1;
    }
    const int status = run_all(&s, &text);
    quality_text_close(&text);
    return status;
}
