/* Packs documents into windows of one length, so that each window holds whole documents; the rest
 * of a window is padding, a document without losses. A document that is longer than a window is
 * cut, and one without a loss is left out. Writes windows into a corpus (corpus.h).
 *
 * Best fit over a bounded number of windows that are open: a document goes into the one that it
 * fills most; if it fits into none, the fullest is written and a new one opened. Deterministic. */
#ifndef DP_COMPUTE_CORPUS_WINDOW_PACKER_H
#define DP_COMPUTE_CORPUS_WINDOW_PACKER_H

#include <stddef.h>
#include <stdint.h>

#include "compute/corpus/corpus.h"

enum { DP_WINDOWS_OPEN = 64 /* windows that are open; 64 of 16,384 tokens take 5 MiB */ };

typedef struct dp_window_packer {
    dp_corpus *corpus;
    size_t window; /* tokens */
    uint32_t pad;
    uint32_t *ids;  /* [DP_WINDOWS_OPEN][window] */
    uint8_t *marks; /* the same; dp_mark bits */
    size_t used[DP_WINDOWS_OPEN];
    size_t n_open;
    uint64_t cut;      /* documents that were longer than a window */
    uint64_t left_out; /* documents that have no loss, or none within a window */
    uint64_t padding;  /* tokens */
} dp_window_packer;

/* corpus, open, is borrowed until close. pad: a token of its tokenizer. DP_NOMEM. */
DP_MUST dp_status dp_window_packer_open(dp_window_packer *packer, dp_corpus *corpus, size_t window,
                                        uint32_t pad);
void dp_window_packer_close(dp_window_packer *packer); /* Accepts a zeroed one. */
/* Takes a document of count tokens, of which the first begins it. The statuses of
 * dp_corpus_add_marked. */
DP_MUST dp_status dp_window_packer_add(dp_window_packer *packer, const uint32_t *ids,
                                       const uint8_t *marks, size_t count, dp_why *why);
/* Takes the documents of the first n_shards of a folder of data (corpus.h), which was verified;
 * those of padding have no loss. DP_BADMSG: a shard keeps no documents apart; DP_IO, DP_NOMEM. */
DP_MUST dp_status dp_window_packer_add_folder(dp_window_packer *packer, const char *folder,
                                              uint32_t n_shards, dp_why *why);
/* Writes the open windows. */
DP_MUST dp_status dp_window_packer_finish(dp_window_packer *packer, dp_why *why);

/* Most tokens of the windows of documents with so many tokens. Two windows that were written
 * before the end hold more than one window's tokens together. */
uint64_t dp_window_packer_tokens_max(uint64_t tokens, size_t window);

#endif
