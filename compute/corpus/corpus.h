/* A folder of token shards with its table, written by tokenizing and checked before a run:
 * tokenizer.json, tokens-00000.bin and so on (base/run/prepared.h), shards.bin. Tokens come from
 * tokenize.h. */
#ifndef DP_COMPUTE_CORPUS_CORPUS_H
#define DP_COMPUTE_CORPUS_CORPUS_H

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
    bool documents; /* each kept in one shard, with marks */
    dp_buf begins;  /* of the current shard: bits as in shard.h */
    dp_buf losses;
    bool closes; /* each shard ends with token `closing`, which begins a document */
    uint32_t closing;
    dp_shard_row *rows;
    uint32_t n_rows;
    uint64_t tokens;
    uint64_t losses_all; /* tokens with a loss */
    uint64_t text_bytes;
} dp_corpus;

/* bpe and folder, which must exist, are borrowed until close. DP_NOMEM. */
DP_MUST dp_status dp_corpus_open(dp_corpus *corpus, const dp_bpe *bpe, const char *folder,
                                 uint64_t shard_tokens);
void dp_corpus_close(dp_corpus *corpus);
/* Appends tokens; writes each full shard. DP_BADARG (a token outside the tokenizer), DP_TOOBIG
 * (shards), DP_IO, DP_NOSPACE, DP_NOMEM. */
DP_MUST dp_status dp_corpus_add(dp_corpus *corpus, const uint32_t *ids, size_t count, dp_why *why);
/* Appends documents with their marks, dp_mark bits for each token, of which the first begins one;
 * they stay in one shard. All tokens of a corpus have marks, or none. The same statuses; DP_TOOBIG
 * also for more tokens than a shard may have. */
DP_MUST dp_status dp_corpus_add_marked(dp_corpus *corpus, const uint32_t *ids, const uint8_t *marks,
                                       size_t count, dp_why *why);
/* From now on each shard gets one more token, which closes it: then the tokens before it are
 * targets of whole windows (base/run/samples.h). */
void dp_corpus_close_shards_with(dp_corpus *corpus, uint32_t token);
/* Writes the last shard and the table. DP_BADARG: there are no tokens. *root: of the table as an
 * object. */
DP_MUST dp_status dp_corpus_finish(dp_corpus *corpus, dp_hash *root, dp_why *why);

typedef struct dp_corpus_sum {
    uint32_t shards;
    uint32_t vocab;
    uint64_t tokens;
    uint64_t text_bytes;
    uint64_t losses; /* tokens with a loss: without documents, all */
    bool documents;  /* of at least one shard */
    dp_hash root;
} dp_corpus_sum;

/* Reads a whole folder: the table, each shard against its hash and its vocabulary, and the
 * tokenizer. DP_BADHASH, DP_BADMSG, DP_BADARG, DP_NOTFOUND, DP_IO, DP_NOMEM, with a sentence that
 * names the first bad file. */
DP_MUST dp_status dp_corpus_verify(const char *folder, dp_corpus_sum *sum, dp_why *why);

#endif
