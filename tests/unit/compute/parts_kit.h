/* A round of parts among trainers in one process, for tests: the parts of authors, the sums of
 * owners, and the record. */
#ifndef DP_TESTS_UNIT_COMPUTE_PARTS_KIT_H
#define DP_TESTS_UNIT_COMPUTE_PARTS_KIT_H

#include "compute/outer/part.h"
#include "tests/unit/compute/tiny_node.h"

enum { KIT_ONE = 65536, KIT_NODES_MAX = 4, KIT_PARTS = 4 };

/* One of them is empty, as in a model of few runs. */
static const dp_part_cuts kit_cuts = {.n = KIT_PARTS, .first = {0, 20000, 45000, 45001}};

typedef struct kit_round {
    uint64_t number;
    uint32_t alpha;            /* Q16 */
    uint32_t n;                /* publications */
    uint32_t q[KIT_NODES_MAX]; /* Q31: their shares of the sums */
    uint32_t has;              /* bit p: part p has a result */
    uint32_t q_part;           /* Q31: of each result */
    unsigned __int128 energy[KIT_NODES_MAX];
    dp_buf whole[KIT_NODES_MAX];
    dp_buf parts[KIT_NODES_MAX][KIT_PARTS];
    dp_buf results[KIT_PARTS];
    dp_part_sum sums[KIT_PARTS];
    dp_part_range ranges[KIT_PARTS]; /* of those that are in the record */
    dp_view views[KIT_PARTS];
    uint32_t q_parts[KIT_PARTS];
    uint32_t n_results;
} kit_round;

static inline void kit_keep(dp_buf *buf, dp_view header, dp_view runs)
{
    dp_buf_init(buf, header.size + runs.size);
    CHECK_OK(dp_buf_append(buf, header));
    CHECK_OK(dp_buf_append(buf, runs));
}

/* Node i of the round has published. */
static inline void kit_cut(kit_round *r, const node *x, uint32_t i, dp_view blob)
{
    dp_part_blob parts[DP_PARTS_MAX];
    CHECK_OK(dp_part_cut(blob, x->n, &kit_cuts, parts, &r->energy[i]));
    kit_keep(&r->whole[i], blob, (dp_view){0});
    for (uint32_t p = 0; p < KIT_PARTS; p++) {
        kit_keep(&r->parts[i][p], dp_view_of(parts[p].header, sizeof parts[p].header),
                 parts[p].runs);
    }
}

static inline dp_part_place kit_place(const node *x, uint32_t p)
{
    dp_part_place place;
    CHECK_OK(dp_part_place_of(dp_part_range_of(&kit_cuts, p), x->n, &place));
    return place;
}

/* Owners add up. codec NULL: that of the run. */
static inline void kit_reduce(kit_round *r, const node *x, const dp_codec *codec)
{
    const dp_codec of_run = dp_codec_dense_of_run(&x->manifest);
    for (uint32_t p = 0; p < KIT_PARTS; p++) {
        dp_view views[KIT_NODES_MAX];
        for (uint32_t i = 0; i < r->n; i++) {
            views[i] = dp_buf_view(&r->parts[i][p]);
        }
        dp_buf_init(&r->results[p], dp_codec_bytes_max_any(x->n));
        const dp_part_items items = {.blobs = views, .q = r->q, .n = r->n};
        CHECK_OK(dp_part_reduce(codec != NULL ? codec : &of_run, kit_place(x, p), &items,
                                &r->results[p], &r->sums[p]));
        if ((r->has >> p & 1U) != 0) {
            r->ranges[r->n_results] = dp_part_range_of(&kit_cuts, p);
            r->views[r->n_results] = dp_buf_view(&r->results[p]);
            r->q_parts[r->n_results] = r->q_part;
            r->n_results++;
        }
    }
}

static inline dp_trainer_record kit_record(const kit_round *r, dp_settle settle)
{
    return (dp_trainer_record){.round = r->number,
                               .tokens = 1000 * r->number,
                               .alpha = r->alpha,
                               .clip = KIT_ONE,
                               .lambda = KIT_ONE,
                               .settle = settle,
                               .cuts = kit_cuts,
                               .taken = r->has,
                               .contributors = r->n,
                               .q = r->q_parts,
                               .blobs = r->views,
                               .ranges = r->ranges,
                               .n_items = r->n_results};
}

/* The same update, told as whole blobs. */
static inline void kit_apply_whole(const kit_round *r, const node *x)
{
    dp_view views[KIT_NODES_MAX];
    dp_trainer_record record = kit_record(r, DP_SETTLE_NONE);
    for (uint32_t i = 0; i < r->n; i++) {
        views[i] = dp_buf_view(&r->whole[i]);
    }
    record.q = r->q;
    record.blobs = views;
    record.ranges = NULL;
    record.n_items = r->n;
    CHECK_OK(dp_trainer_apply(x->trainer, &record));
}

static inline void kit_apply(const kit_round *r, const node *x, dp_settle settle)
{
    const dp_trainer_record record = kit_record(r, settle);
    CHECK_OK(dp_trainer_apply(x->trainer, &record));
}

/* n publications of equal shares, all results there, each with a share of 1. */
static inline kit_round kit_round_of(uint64_t number, uint32_t n)
{
    kit_round r = {.number = number,
                   .alpha = KIT_ONE,
                   .n = n,
                   .has = (1U << KIT_PARTS) - 1,
                   .q_part = UINT32_C(1) << 31};
    for (uint32_t i = 0; i < n; i++) {
        r.q[i] = (UINT32_C(1) << 31) / n;
    }
    return r;
}

static inline void kit_close(kit_round *r)
{
    for (uint32_t i = 0; i < KIT_NODES_MAX; i++) {
        dp_buf_close(&r->whole[i]);
        for (uint32_t p = 0; p < KIT_PARTS; p++) {
            dp_buf_close(&r->parts[i][p]);
        }
    }
    for (uint32_t p = 0; p < KIT_PARTS; p++) {
        dp_buf_close(&r->results[p]);
    }
}

#endif
