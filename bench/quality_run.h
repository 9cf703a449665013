/* One experiment of bench_quality and bench_defence: several trainers in one process that exchange
 * updates as the nodes of a run do, with the trainer, the codecs, the weights and the clips of the
 * product. There is no network and no vote: a random choice decides which workers are counted. */
#ifndef DP_BENCH_QUALITY_RUN_H
#define DP_BENCH_QUALITY_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/run/manifest.h"
#include "bench/quality_text.h"
#include "compute/trainer/trainer.h"
#include "gossip/ledger/weights.h"

enum {
    QUALITY_BATCHES = 4, /* of one worker, in the single batch of QUALITY_AS_ONE by default */
    QUALITY_POINTS_MAX = 64,
    QUALITY_AWAY = 20,
    QUALITY_AFTER = 4 /* rounds in which a model that a return has damaged would still be worse */
};

/* The settings that all configurations share. */
typedef struct quality_scale {
    uint32_t layers;
    uint32_t width;
    uint32_t heads;
    uint32_t context;
    uint32_t rows;   /* sequences per step and worker */
    uint32_t steps;  /* of a worker at full speed */
    uint32_t inner;  /* of them in a round */
    uint32_t warmup; /* of them with a learning rate that rises; 0: as a run without that key */
    uint32_t lr_nano;
    dp_optim_kind optimizer; /* 0: AdamW */
    uint32_t eval_tokens;    /* held-out text behind each point of a curve */
    uint32_t points;         /* of a curve, at most QUALITY_POINTS_MAX */
} quality_scale;

typedef enum quality_kind {
    QUALITY_ROUNDS, /* local steps, then a round that counts publications */
    /* one node with the batch of all: a round for every step (H = 1), except for rounding */
    QUALITY_AS_ONE,
    /* pairs exchange frozen work; one round at the end, or rounds in between, bring it back */
    QUALITY_GOSSIP
} quality_kind;

/* A worker between its publication and the record. The pointers are valid only during the call of
 * the hook. */
typedef struct quality_seat {
    dp_trainer *trainer;
    const float *a; /* the newest update before compression; NULL: none in this round */
    dp_buf *blob;
    dp_weight_in *claim; /* its energy is computed from the blob after the hook */
    bool counted;        /* in time */
    bool rejected;       /* set by the hook: the record leaves the update out */
} quality_seat;

/* Changes the updates of a round, or their sum. Hooks get the workers in the order of their index.
 * Rounds with hooks have no overlap and no parts. */
typedef struct quality_hooks {
    void *context;
    /* After the publications of round number round. */
    dp_status (*publications)(void *context, uint64_t round, quality_seat *seats, uint32_t n);
    /* NULL: the weighted sum, times the gain of the codec. Else fills g, which replaces it: as many
     * floats as a model has elements. */
    dp_status (*combine)(void *context, const dp_view *blobs, const uint32_t *q, uint32_t n_blobs,
                         float *g);
} quality_hooks;

/* A row of the table. */
typedef struct quality_plan {
    const char *name;
    quality_kind kind;
    quality_split split;
    const quality_hooks *hooks; /* NULL: none */
    dp_view start;              /* state bytes that the workers begin with; empty: a new model */
    dp_buf *end;                /* if not NULL, gets the state bytes at their end */
    uint32_t workers;
    uint32_t batches; /* QUALITY_AS_ONE: as many as it has nodes; 0: QUALITY_BATCHES */
    dp_codec_kind codec;
    uint32_t keep; /* sparse: one element of so many is sent; else 0 */
    /* sparse: down to one of so many; lines are slow in the middle half of the rounds, and free in
     * the others; 0: always keep */
    uint32_t keep_most;
    uint32_t beta_milli;   /* error feedback; 0: none */
    uint32_t alpha_milli;  /* outer step */
    uint32_t mu_milli;     /* its momentum */
    uint32_t drop_percent; /* of the publications are left out of their round */
    uint32_t overlap;      /* steps between publication and application */
    uint32_t every; /* gossip: each so many'th exchange is a round of all; 0: the last alone */
    bool parts;     /* rounds of parts; the codec keeps all elements */
    /* Owners add up sparse updates of their parts, and their sums keep one element of so many, with
     * error feedback of the owners; 0: every node fetches every update. Owners do not change. */
    uint32_t sums_keep;
    bool sums;   /* ... of two sites, which send their sums (site_sums of the manifest) */
    bool unlike; /* steps per round as 1 : 1/2 : 1/4 : 1 */
    /* the two slow ones of these are too late for every round that does not wait for them */
    bool slow_late;
    /* QUALITY_AWAY rounds in the middle are not decided: pairs exchange, and the last of these
     * rounds brings back their work */
    bool away;
    /* an update that was too late for a round counts in the next one, at half its clip */
    bool stale;
} quality_plan;

typedef struct quality_point {
    double tokens; /* of all workers */
    double bytes;  /* sent by one worker so far, one copy, per parameter */
    double loss;   /* nats per byte of the held-out text */
} quality_point;

typedef struct quality_result {
    dp_status status;
    char problem[128];
    double parameters;
    double tokens;
    double rounds;
    double before; /* loss in the middle of the run, ... */
    double back;   /* ... QUALITY_AWAY rounds later, */
    double after;  /* ... and QUALITY_AFTER rounds after these */
    double loss;   /* of the last model, over the whole held-out text that is asked for */
    double bytes;  /* per parameter and full-speed step: one copy of what one worker sends */
    /* ... and the bytes that it sends to all others: each update to each of them, or the parts to
     * their owners and the sum of its own part to each */
    double sent;
    double bytes_formula; /* the same from codec, density and size */
    double cpu_s;
    double eval_s; /* of cpu_s, for losses of held-out text: work that no node does */
    uint32_t n_points;
    quality_point points[QUALITY_POINTS_MAX];
} quality_result;

/* seed: of weights, batches and drops. Replicas must hold the same bytes after every round:
 * DP_DIVERGED otherwise. */
void quality_run(const quality_scale *scale, const quality_plan *plan, const quality_text *text,
                 uint64_t seed, quality_result *result);

/* The number of nodes that the plan represents. */
uint32_t quality_nodes(const quality_plan *plan);
/* Bytes of one publication of n parameters. Sparse: for entries at random places; clustered ones
 * take a little more or less. */
double quality_bytes_of(const quality_plan *plan, double n);

#endif
