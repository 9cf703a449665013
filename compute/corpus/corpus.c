#include "compute/corpus/corpus.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/data/shard.h"
#include "compute/machine/files.h"

enum { PACK_TOKENS = 4096 };

dp_status dp_corpus_open(dp_corpus *corpus, const dp_bpe *bpe, const char *folder,
                         uint64_t shard_tokens)
{
    dp_assert(shard_tokens > 0 && shard_tokens <= DP_CORPUS_SHARD_TOKENS_MAX);
    *corpus = (dp_corpus){.bpe = bpe,
                          .folder = folder,
                          .shard_tokens = shard_tokens,
                          .vocab = (uint32_t)dp_bpe_count(bpe)};
    dp_buf_init(&corpus->bytes, DP_OBJECT_BYTES_MAX);
    dp_buf_init(&corpus->begins, DP_OBJECT_BYTES_MAX);
    dp_buf_init(&corpus->losses, DP_OBJECT_BYTES_MAX);
    corpus->rows = dp_alloc(DP_SHARDS_MAX, sizeof *corpus->rows);
    return corpus->rows == NULL ? DP_NOMEM : DP_OK;
}

void dp_corpus_close(dp_corpus *corpus)
{
    dp_buf_close(&corpus->bytes);
    dp_buf_close(&corpus->begins);
    dp_buf_close(&corpus->losses);
    dp_free(corpus->rows);
    *corpus = (dp_corpus){0};
}

/* Tokens, and then the marks. */
static dp_status write_shard(dp_corpus *corpus, dp_why *why)
{
    char name[DP_PREPARED_NAME_MAX];
    if (corpus->n_rows == DP_SHARDS_MAX) {
        return dp_why_set(why, DP_TOOBIG, "there are more than %d shards; make them larger",
                          DP_SHARDS_MAX);
    }
    dp_prepared_shard(corpus->n_rows, name);
    dp_shard_header(corpus->bytes.data, corpus->vocab, corpus->tokens_here, corpus->text_here,
                    corpus->documents);
    DP_TRY(dp_buf_append(&corpus->bytes, dp_buf_view(&corpus->begins)));
    DP_TRY(dp_buf_append(&corpus->bytes, dp_buf_view(&corpus->losses)));
    const dp_view bytes = dp_buf_view(&corpus->bytes);
    DP_TRY(dp_file_write(corpus->folder, name, bytes, why));
    corpus->rows[corpus->n_rows] = (dp_shard_row){
        .root = dp_object_hash(bytes, NULL), .bytes = bytes.size, .tokens = corpus->tokens_here};
    corpus->n_rows++;
    corpus->tokens += corpus->tokens_here;
    corpus->text_bytes += corpus->text_here;
    corpus->tokens_here = 0;
    corpus->text_here = 0;
    dp_buf_clear(&corpus->bytes);
    dp_buf_clear(&corpus->begins);
    dp_buf_clear(&corpus->losses);
    return DP_OK;
}

/* At most PACK_TOKENS, which fit into the shard. */
static dp_status add_some(dp_corpus *corpus, const uint32_t *ids, size_t count, dp_why *why)
{
    const uint32_t token_bytes = dp_shard_token_bytes(corpus->vocab);
    uint8_t packed[PACK_TOKENS * 4];
    if (corpus->bytes.size == 0) {
        const uint8_t header[DP_SHARD_HEADER_BYTES] = {0};
        DP_TRY(dp_buf_append(&corpus->bytes, dp_view_of(header, sizeof header)));
    }
    uint64_t text_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (dp_bpe_token(corpus->bpe, ids[i]).size == 0) {
            return dp_why_set(why, DP_BADARG,
                              "token %" PRIu64 " is %u, which the tokenizer of %u tokens lacks",
                              corpus->tokens + corpus->tokens_here + i, ids[i], corpus->vocab);
        }
        text_bytes += dp_bpe_text_bytes(corpus->bpe, ids[i]);
    }
    dp_shard_pack(ids, count, token_bytes, packed);
    DP_TRY(dp_buf_append(&corpus->bytes, dp_view_of(packed, token_bytes * count)));
    corpus->tokens_here += count;
    corpus->losses_all += corpus->documents ? 0 : count;
    corpus->text_here += text_bytes;
    return DP_OK;
}

void dp_corpus_close_shards_with(dp_corpus *corpus, uint32_t token)
{
    dp_assert(corpus->tokens_here == 0);
    corpus->closes = true;
    corpus->closing = token;
}

/* The bits of tokens from tokens_here on. */
static dp_status add_bits(dp_corpus *corpus, const uint8_t *marks, size_t count)
{
    static const uint8_t zero = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t at = corpus->tokens_here + i;
        if (at % 8 == 0) {
            DP_TRY(dp_buf_append(&corpus->begins, dp_view_of(&zero, 1)));
            DP_TRY(dp_buf_append(&corpus->losses, dp_view_of(&zero, 1)));
        }
        const uint8_t bit = (uint8_t)(1U << (at % 8));
        corpus->begins.data[at / 8] |= (marks[i] & DP_MARK_BEGINS) != 0 ? bit : (uint8_t)0;
        corpus->losses.data[at / 8] |= (marks[i] & DP_MARK_LOSS) != 0 ? bit : (uint8_t)0;
        corpus->losses_all += (marks[i] & DP_MARK_LOSS) != 0;
    }
    return DP_OK;
}

static dp_status add_documents(dp_corpus *corpus, const uint32_t *ids, const uint8_t *marks,
                               size_t count, dp_why *why)
{
    DP_TRY(add_bits(corpus, marks, count));
    while (count > 0) {
        const size_t n = count < PACK_TOKENS ? count : PACK_TOKENS;
        DP_TRY(add_some(corpus, ids, n, why));
        ids += n;
        count -= n;
    }
    return DP_OK;
}

static dp_status end_shard(dp_corpus *corpus, dp_why *why)
{
    static const uint8_t begins = DP_MARK_BEGINS;
    if (corpus->closes) {
        DP_TRY(add_documents(corpus, &corpus->closing, &begins, 1, why));
    }
    return write_shard(corpus, why);
}

dp_status dp_corpus_add_marked(dp_corpus *corpus, const uint32_t *ids, const uint8_t *marks,
                               size_t count, dp_why *why)
{
    const uint64_t room = corpus->shard_tokens - (corpus->closes ? 1 : 0);
    dp_assert(count > 0 && (marks[0] & DP_MARK_BEGINS) != 0);
    dp_assert(corpus->documents || (corpus->n_rows == 0 && corpus->tokens_here == 0));
    corpus->documents = true;
    if (count > room) {
        return dp_why_set(why, DP_TOOBIG,
                          "a document of %zu tokens does not fit into a shard of %" PRIu64
                          ": give --shard-tokens more",
                          count, corpus->shard_tokens);
    }
    if (corpus->tokens_here > room - count) {
        DP_TRY(end_shard(corpus, why));
    }
    return add_documents(corpus, ids, marks, count, why);
}

dp_status dp_corpus_add(dp_corpus *corpus, const uint32_t *ids, size_t count, dp_why *why)
{
    dp_assert(!corpus->documents);
    while (count > 0) {
        const uint64_t room = corpus->shard_tokens - corpus->tokens_here;
        size_t n = count < PACK_TOKENS ? count : PACK_TOKENS;
        n = n < room ? n : (size_t)room;
        DP_TRY(add_some(corpus, ids, n, why));
        if (corpus->tokens_here == corpus->shard_tokens) {
            DP_TRY(write_shard(corpus, why));
        }
        ids += n;
        count -= n;
    }
    return DP_OK;
}

dp_status dp_corpus_finish(dp_corpus *corpus, dp_hash *root, dp_why *why)
{
    if (corpus->tokens_here > 0) {
        DP_TRY(corpus->documents ? end_shard(corpus, why) : write_shard(corpus, why));
    }
    if (corpus->n_rows == 0) {
        return dp_why_set(why, DP_BADARG, "there is no token in the input");
    }
    dp_buf table;
    dp_buf_init(&table, DP_SHARD_TABLE_BYTES_MAX);
    dp_status status = dp_shard_table_write(corpus->rows, corpus->n_rows, corpus->vocab,
                                            corpus->text_bytes, &table);
    if (status == DP_OK) {
        status = dp_file_write(corpus->folder, DP_CORPUS_TABLE, dp_buf_view(&table), why);
    }
    if (status == DP_OK) {
        *root = dp_object_hash(dp_buf_view(&table), NULL);
    }
    dp_buf_close(&table);
    return status;
}

/* ---- Checking a folder. */

static dp_status read_file(const char *folder, const char *name, dp_buf *out, dp_why *why)
{
    char path[PATH_MAX];
    const int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (size < 0 || (size_t)size >= sizeof path) {
        return dp_why_set(why, DP_BADARG, "the path %s is too long", folder);
    }
    dp_buf_clear(out);
    return dp_file_read(path, out, why);
}

static dp_status check_shard(dp_view bytes, const dp_shard_row *row, uint32_t vocab,
                             dp_corpus_sum *sum, dp_why *why)
{
    const dp_hash root = dp_object_hash(bytes, NULL);
    dp_shard shard;
    if (bytes.size != row->bytes || !dp_hash_equal(&root, &row->root)) {
        return dp_why_set(why, DP_BADHASH, "it is not what the table names");
    }
    DP_TRY(dp_shard_open(&shard, bytes, why));
    if (shard.n_tokens != row->tokens) {
        return dp_why_set(why, DP_BADMSG, "it has %" PRIu64 " tokens, the table says %" PRIu64,
                          shard.n_tokens, row->tokens);
    }
    sum->losses += dp_shard_losses(&shard, 0, shard.n_tokens);
    sum->documents = sum->documents || shard.begins != NULL;
    return dp_shard_check(&shard, vocab, why);
}

static dp_status check_shards(const char *folder, const dp_shard_table *table, dp_corpus_sum *sum,
                              dp_why *why)
{
    dp_buf bytes;
    dp_status status = DP_OK;
    dp_buf_init(&bytes, DP_OBJECT_BYTES_MAX);
    for (uint32_t i = 0; i < table->n_shards && status == DP_OK; i++) {
        char name[DP_PREPARED_NAME_MAX];
        dp_why inner = {{0}};
        const dp_shard_row row = dp_shard_table_row(table, i);
        dp_prepared_shard(i, name);
        status = read_file(folder, name, &bytes, &inner);
        if (status == DP_OK) {
            status = check_shard(dp_buf_view(&bytes), &row, table->vocab, sum, &inner);
        }
        if (status != DP_OK) {
            status = dp_why_set(why, status, "%s: %.400s", name, inner.text);
        }
    }
    dp_buf_close(&bytes);
    return status;
}

static dp_status check_tokenizer(const char *folder, uint32_t vocab, dp_why *why)
{
    dp_buf json;
    dp_bpe *bpe;
    dp_buf_init(&json, DP_BPE_JSON_BYTES_MAX);
    dp_status status = read_file(folder, DP_CORPUS_TOKENIZER, &json, why);
    if (status == DP_OK) {
        status = dp_bpe_load(&bpe, dp_buf_view(&json), why);
    }
    if (status == DP_OK) {
        const size_t count = dp_bpe_count(bpe);
        dp_bpe_close(bpe);
        if (count != vocab) {
            status = dp_why_set(why, DP_BADARG,
                                "the data was made for a vocabulary of %u tokens, %s has %zu",
                                vocab, DP_CORPUS_TOKENIZER, count);
        }
    }
    dp_buf_close(&json);
    return status;
}

dp_status dp_corpus_verify(const char *folder, dp_corpus_sum *sum, dp_why *why)
{
    dp_buf bytes;
    dp_shard_table table;
    dp_buf_init(&bytes, DP_SHARD_TABLE_BYTES_MAX);
    dp_status status = read_file(folder, DP_CORPUS_TABLE, &bytes, why);
    if (status == DP_OK) {
        status = dp_shard_table_open(&table, dp_buf_view(&bytes), why);
    }
    if (status == DP_OK) {
        status = check_tokenizer(folder, table.vocab, why);
    }
    dp_corpus_sum found = {0};
    if (status == DP_OK) {
        status = check_shards(folder, &table, &found, why);
    }
    if (status == DP_OK) {
        *sum = (dp_corpus_sum){.shards = table.n_shards,
                               .vocab = table.vocab,
                               .tokens = table.tokens,
                               .text_bytes = table.text_bytes,
                               .losses = found.losses,
                               .documents = found.documents,
                               .root = dp_object_hash(dp_buf_view(&bytes), NULL)};
    }
    dp_buf_close(&bytes);
    return status;
}
