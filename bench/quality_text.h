/* The text of bench_quality in the form of a run: a tokenizer of bytes and one token shard. Trains
 * nothing. */
#ifndef DP_BENCH_QUALITY_TEXT_H
#define DP_BENCH_QUALITY_TEXT_H

#include "base/bytes.h"
#include "compute/data/data.h"

enum { QUALITY_VOCAB = 256 /* the bytes */, QUALITY_WORKERS = 16, QUALITY_HELD_PER_MILLE = 50 };

typedef struct quality_text {
    dp_buf tokenizer; /* tokenizer.json */
    dp_buf shard;
    uint64_t tokens;
} quality_text;

/* path NULL: the King James Bible from Debian's bible-kjv. On failure why holds a sentence, and
 * text is closed. */
DP_MUST dp_status quality_text_open(quality_text *text, const char *path, dp_why *why);
void quality_text_close(quality_text *text);

/* The text that each worker reads. The held-out text is the last 5 % of the text in every case. */
typedef enum quality_split {
    QUALITY_ALIKE,   /* each worker the whole text, in its own order */
    QUALITY_PARTS,   /* worker i of n: part i of n of the training text */
    QUALITY_TONGUES, /* every second worker: the text with its letters rotated by 13 */
    QUALITY_MINORITY /* every fourth worker: the same */
} quality_split;

/* The shards of the workers and the held-out text of the evaluation. */
typedef struct quality_shards {
    dp_buf bytes[QUALITY_WORKERS];
    uint64_t tokens[QUALITY_WORKERS];
    uint32_t of[QUALITY_WORKERS]; /* the index of the shard that the worker reads */
    uint32_t n;
    uint32_t rotated_workers;
    dp_data held[2]; /* plain and rotated */
} quality_shards;

/* The caller must call quality_shards_close in every case. text is borrowed until then. */
DP_MUST dp_status quality_shards_open(quality_shards *shards, const quality_text *text,
                                      quality_split split, uint32_t workers, dp_why *why);
void quality_shards_close(quality_shards *shards);
dp_view quality_shard_of(const quality_shards *shards, const quality_text *text, uint32_t worker,
                         uint64_t *tokens);

#endif
