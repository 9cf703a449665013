/* A folder of token shards with its table, written by tokenizing and checked before a run:
 * tokenizer.json, tokens-00000.bin and so on (base/run/prepared.h), shards.bin. Tokens come from
 * tokenize.h. */
#ifndef DP_COMPUTE_TEXT_CORPUS_H
#define DP_COMPUTE_TEXT_CORPUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/run/prepared.h"
#include "compute/data/shard_table.h"
#include "compute/text/bpe.h"

#define DP_CORPUS_TABLE "shards.bin"
#define DP_CORPUS_TOKENIZER DP_PREPARED_TOKENIZER

enum {
    DP_CORPUS_SHARD_TOKENS = 100 * 1000 * 1000,     /* as llm.c cuts its data; 200 MB with u16 */
    DP_CORPUS_SHARD_TOKENS_MAX = 1000 * 1000 * 1000 /* an object holds 4 GiB */
};

/* A zeroed one may be closed. One shard is in memory at a time. */
typedef struct dp_corpus {
    const dp_bpe *bpe;
    const char *folder;
    uint64_t shard_tokens;
    uint32_t vocab;
    dp_buf bytes; /* of the current shard, with room for its header */
    uint64_t tokens_here;
    uint64_t text_here;
    dp_shard_row *rows;
    uint32_t n_rows;
    uint64_t tokens;
    uint64_t text_bytes;
} dp_corpus;

/* bpe and folder, which must exist, are borrowed until close. DP_NOMEM. */
DP_MUST dp_status dp_corpus_open(dp_corpus *corpus, const dp_bpe *bpe, const char *folder,
                                 uint64_t shard_tokens);
void dp_corpus_close(dp_corpus *corpus);
/* Appends tokens; writes each full shard. DP_BADARG (a token outside the tokenizer), DP_TOOBIG
 * (shards), DP_IO, DP_NOSPACE, DP_NOMEM. */
DP_MUST dp_status dp_corpus_add(dp_corpus *corpus, const uint32_t *ids, size_t count, dp_why *why);
/* Writes the last shard and the table. DP_BADARG: there are no tokens. *root: of the table as an
 * object. */
DP_MUST dp_status dp_corpus_finish(dp_corpus *corpus, dp_hash *root, dp_why *why);

typedef struct dp_corpus_sum {
    uint32_t shards;
    uint32_t vocab;
    uint64_t tokens;
    uint64_t text_bytes;
    dp_hash root;
} dp_corpus_sum;

/* Reads a whole folder: the table, each shard against its hash and its vocabulary, and the
 * tokenizer. DP_BADHASH, DP_BADMSG, DP_BADARG, DP_NOTFOUND, DP_IO, DP_NOMEM, with a sentence that
 * names the first bad file. */
DP_MUST dp_status dp_corpus_verify(const char *folder, dp_corpus_sum *sum, dp_why *why);

#endif
