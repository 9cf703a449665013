/* The text of bench_quality as a run takes it: a tokenizer of bytes alone and one token shard. Trains nothing. */
#ifndef DP_BENCH_QUALITY_TEXT_H
#define DP_BENCH_QUALITY_TEXT_H

#include "base/bytes.h"

enum { QUALITY_VOCAB = 256 /* the bytes */ };

typedef struct quality_text {
    dp_buf tokenizer; /* tokenizer.json */
    dp_buf shard;
    uint64_t tokens;
} quality_text;

/* path NULL: the King James Bible from Debian's bible-kjv. On failure, with a sentence, text is closed. */
DP_MUST dp_status quality_text_open(quality_text *text, const char *path, dp_why *why);
void quality_text_close(quality_text *text);

#endif
