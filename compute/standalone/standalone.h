/* Standalone training, without peers, in a folder of its own: it begins with a manifest and a text,
 * resumes from its newest checkpoint, and is evaluated. The loop around a standalone trainer
 * (trainer.h); prints nothing and knows no arguments (standalone_tool.h).
 *
 *   FOLDER/manifest.bin        canonical bytes, unsigned, with the hashes of tokenizer and data;
 *                              times and keys are 0
 *   FOLDER/data/               tokenizer.json, shards and perhaps first weights, or with adapters
 *                              the base below them, as prepare.h makes them
 *   FOLDER/step-*.ckpt         checkpoints (standalone_file.h)
 *   FOLDER/best-*.ckpt         the checkpoint of the lowest held-out loss, and best.json with that
 *                              loss (standalone_val.h)
 *   FOLDER/options.json        how long it goes on, as the user said (standalone_options.h)
 *   FOLDER/lock                held by the process that trains here
 *   FOLDER/model/              in Hugging Face's layout, once all steps are done, if transformers
 *                              have a class for it; with adapters, those alone, as peft has them
 *
 * The same manifest, text, build and kind of processor give the same bits after the same number of
 * steps, for any number of threads, kills and resumes: batches follow from the number of the step,
 * random choices from the manifest's seed, and every micro-batch has the rows that the first start
 * chose, from the manifest alone unless a card is too small for them. There is no error feedback,
 * because nothing is published. */
#ifndef DP_COMPUTE_STANDALONE_STANDALONE_H
#define DP_COMPUTE_STANDALONE_STANDALONE_H

#include "compute/backend/plan.h"
#include "compute/corpus/document_counts.h"
#include "compute/format/export.h"
#include "compute/standalone/standalone_file.h"
#include "compute/standalone/standalone_val.h"
#include "compute/trainer/trainer.h"

typedef enum dp_standalone_event_kind {
    DP_STANDALONE_PREPARED, /* tokens, counts */
    DP_STANDALONE_PLAN,     /* plan; why if nothing fits */
    DP_STANDALONE_NOTE,     /* why: an unusable checkpoint, a model that cannot be exported */
    DP_STANDALONE_START,    /* steps, target, passes, rows, threads, parameters */
    DP_STANDALONE_STEP,     /* last, place, tokens_per_second, eta_s */
    DP_STANDALONE_SAVED,    /* place, hash, took_s */
    /* place; score of held-out text, its loss NaN if it is not finite; is_best; best; took_s */
    DP_STANDALONE_VALIDATED,
    /* place and hash of the last checkpoint; stopped; early; best; exported; train_s;
     * tokens_per_second of the whole process */
    DP_STANDALONE_END
} dp_standalone_event_kind;

typedef struct dp_standalone_event {
    dp_standalone_event_kind kind;
    uint64_t steps;  /* done or dropped so far */
    uint64_t target; /* steps in all */
    uint64_t tokens;
    uint64_t skipped;
    uint64_t spikes; /* of skipped */
    uint64_t parameters;
    uint32_t rows;
    uint32_t threads;
    dp_trainer_last last;
    double passes;            /* of all training sequences, up to the target */
    double tokens_per_second; /* START: 0 */
    double eta_s;
    double train_s; /* seconds of this process in steps */
    double took_s;
    dp_hash hash;
    dp_trainer_score score;
    dp_standalone_best best; /* may be unknown */
    bool is_best;            /* of score: none before was as good */
    bool early;              /* it ended before the target, because nothing got better */
    bool stopped;            /* the caller ended it before the target */
    bool exported;           /* FOLDER/model was written */
    const dp_plan *plan;     /* lent for the call, like counts and why */
    const dp_document_counts *counts;
    const char *why;
} dp_standalone_event;

typedef struct dp_standalone_job {
    dp_view manifest; /* canonical; keys and hashes are ignored */
    /* A text or other data (prepare.h); may be NULL with resume, which ignores it. */
    const char *text;
    const char *weights; /* first weights (prepare.h); NULL: from the seed; ignored with resume */
    bool skip_bad_lines; /* the same (prepare.h) */
    const char *folder;
    /* Those that are unset are the folder's with resume; the rest has the defaults. */
    dp_standalone_options options;
    size_t threads; /* of all processes; 0: the default of the machine */
    /* Process group (process_group.h), whose processes share the threads; the bits depend on its
     * gradient lanes. NULL: one process. */
    struct dp_process_group *team;
    /* Of a micro-batch; 0: about 2,048 tokens, on a card 8,192 or as many as fit. With resume: as
     * at the start of the run. */
    uint32_t rows;
    bool resume;
    const dp_backend *backend; /* NULL: the CPU */
    uint32_t device;           /* of the backend */
    void (*tell)(void *context, const dp_standalone_event *event);
    bool (*stop)(void *context); /* called after each micro-batch; true: save and end */
    void *context;
} dp_standalone_job;

/* Trains up to the target, or until stop returns true, or as options say. Measures the loss of
 * held-out text on the way, and a last time at the target, unless the run holds nothing out; a
 * checkpoint on the way that a full disk does not hold, and one of the best that cannot be saved,
 * are told by a note, and training goes on. With
 * resume: from the newest valid checkpoint. DP_EXISTS: the folder holds a run, and resume is
 * false; DP_NOTFOUND: nothing to resume; DP_BADARG: the run began with another manifest;
 * DP_BUSY: another process trains there; DP_TOOBIG: too little memory; DP_UNSUPPORTED: the
 * backend cannot do it, or has failed; else the statuses of the parts. All with a sentence. */
DP_MUST dp_status dp_standalone_train(const dp_standalone_job *job, dp_why *why);

typedef struct dp_standalone_look {
    const char *folder;
    /* text, JSON lines (tokenize.h) or a token shard to measure on; NULL: the held-out data */
    const char *data;
    uint64_t tokens; /* limit, rounded up to whole windows; 0: all */
    size_t threads;
    dp_standalone_which which;
} dp_standalone_look;

/* Loss of the newest valid checkpoint, or of the best; *steps: its steps. Takes no lock.
 * DP_NOTFOUND and others, with a sentence. */
DP_MUST dp_status dp_standalone_eval(const dp_standalone_look *look, dp_trainer_score *score,
                                     uint64_t *steps, dp_why *why);

/* Appends prompt and n tokens drawn after it with the weights of the newest valid checkpoint to
 * text (sample_text.h), on the CPU: the folder may be in training. threads and folder of look
 * count. *steps, lock and statuses as above; DP_TOOBIG: too little memory, or too many tokens. */
DP_MUST dp_status dp_standalone_sample(const dp_standalone_look *look, const dp_sampler *sampler,
                                       const char *prompt, size_t n, dp_buf *text, uint64_t *steps,
                                       dp_why *why);

enum { DP_STANDALONE_EXPORTED_MAX = 8 };
/* Names of files, NULL after the last. */
typedef const char *dp_standalone_files[DP_STANDALONE_EXPORTED_MAX + 1];

/* Exports the newest valid checkpoint for other programs: the fields folder, gguf, llmc and merged
 * of to. files: dp_export_files, and those of the chat template (chat_files.h) if the folder has
 * them and the export has a tokenizer.json; a GGUF file has the template in it. *steps, lock and
 * statuses as above. */
DP_MUST dp_status dp_standalone_export(const dp_standalone_look *look, const dp_export_job *to,
                                       uint64_t *steps, dp_standalone_files files, dp_why *why);

#endif
