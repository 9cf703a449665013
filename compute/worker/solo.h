/* Training without peers, on a folder of its own: begun from a manifest and a text, taken up again
 * from its newest checkpoint, measured. The loop around a trainer that is alone (trainer.h); prints
 * nothing and knows no arguments (solo_tool.h).
 *
 *   FOLDER/manifest.bin        canonical bytes, unsigned, with the hashes of tokenizer and data;
 *                              times and keys are 0
 *   FOLDER/data/               tokenizer.json, shards and perhaps first weights, as prepare.h makes
 *                              them
 *   FOLDER/step-*.ckpt         checkpoints (solo_file.h)
 *   FOLDER/lock                held by the process that trains here
 *   FOLDER/model/              in Hugging Face's layout, once all steps are done, if transformers
 *                              have a class for it
 *
 * The same manifest, text, build and kind of processor give the same bits after as many steps,
 * whatever the number of threads and however often it was killed and taken up again: batches follow
 * from the number of the step, chance from the manifest's seed, and every micro-batch has the rows
 * that the first start chose, from the manifest alone unless a card is too small for them. Error
 * feedback has no part: nothing is published. */
#ifndef DP_COMPUTE_WORKER_SOLO_H
#define DP_COMPUTE_WORKER_SOLO_H

#include "compute/backend/plan.h"
#include "compute/format/export.h"
#include "compute/trainer/trainer.h"

typedef enum dp_solo_event_kind {
    DP_SOLO_PREPARED, /* tokens */
    DP_SOLO_PLAN,     /* plan; why where nothing fits */
    DP_SOLO_NOTE,     /* why: a checkpoint that cannot be used, a model that cannot be exported */
    DP_SOLO_START,    /* steps, target, rows, threads, parameters */
    DP_SOLO_STEP,     /* last, place, tokens_per_second, eta_s */
    DP_SOLO_SAVED,    /* place, hash, took_s */
    /* place, hash: of the last checkpoint; stopped; exported; train_s, tokens_per_second over
     * all */
    DP_SOLO_END
} dp_solo_event_kind;

typedef struct dp_solo_event {
    dp_solo_event_kind kind;
    uint64_t steps;  /* done or dropped so far */
    uint64_t target; /* how many there are to be */
    uint64_t tokens;
    uint64_t skipped;
    uint64_t spikes; /* of skipped */
    uint64_t parameters;
    uint32_t rows;
    uint32_t threads;
    dp_trainer_last last;
    double tokens_per_second; /* START: 0 */
    double eta_s;
    double train_s; /* of this process, in steps */
    double took_s;
    dp_hash hash;
    bool stopped;        /* by the caller, before the target */
    bool exported;       /* FOLDER/model was written */
    const dp_plan *plan; /* lent for the call, like why */
    const char *why;
} dp_solo_event;

typedef struct dp_solo_job {
    dp_view manifest; /* canonical; keys and hashes are not looked at */
    /* a text, or a folder of data (corpus.h); of no use to resume, then it may be NULL */
    const char *text;
    const char *weights; /* to start from (prepare.h); NULL: the seed. Of no use to resume */
    const char *folder;
    uint64_t steps; /* in all; 0: until the manifest's train.total_tokens */
    size_t threads; /* of all processes; 0: as many as the machine gives */
    /* processes that train together (team.h), each with its share of the threads; the bits depend
     * on its lanes. NULL: one */
    struct dp_team *team;
    /* of a micro-batch; 0: about 2,048 tokens, on a card 8,192 or what it holds. Of a run that is
     * taken up again: what it began with */
    uint32_t rows;
    uint64_t save_steps; /* between checkpoints; 0: by time alone */
    uint64_t save_s;     /* a checkpoint is due after so long, too; 0: never */
    bool resume;
    const dp_backend *backend; /* who computes; NULL: the CPU */
    uint32_t device;           /* of the backend's */
    void (*tell)(void *context, const dp_solo_event *event);
    bool (*stop)(void *context); /* asked after each micro-batch; true: save and end */
    void *context;
} dp_solo_job;

/* Until the target, or until stop says so. With resume: from the newest checkpoint that is whole.
 * DP_EXISTS: the folder holds a run and resume is not asked for; DP_NOTFOUND: nothing to resume;
 * DP_BADARG: the manifest is another one than it began with; DP_BUSY: another process trains there;
 * DP_TOOBIG: too little memory; DP_UNSUPPORTED: who is to compute cannot, or failed; what the parts
 * say. All with a sentence. */
DP_MUST dp_status dp_solo_train(const dp_solo_job *job, dp_why *why);

typedef struct dp_solo_look {
    const char *folder;
    const char *data; /* a text or a token shard to be measured on; NULL: what was held out */
    uint64_t tokens;  /* at most, rounded up to whole windows; 0: all */
    size_t threads;
} dp_solo_look;

/* Loss of the newest checkpoint that is whole; *steps: its. Takes no lock. DP_NOTFOUND and others,
 * with a sentence. */
DP_MUST dp_status dp_solo_eval(const dp_solo_look *look, dp_trainer_score *score, uint64_t *steps,
                               dp_why *why);

/* The newest checkpoint that is whole as files that other programs read; of to the folder, gguf and
 * llmc. *steps: its. As above. */
DP_MUST dp_status dp_solo_export(const dp_solo_look *look, const dp_export_job *to, uint64_t *steps,
                                 dp_why *why);

#endif
