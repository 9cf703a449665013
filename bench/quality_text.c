#include "bench/quality_text.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "compute/data/shard.h"
#include "compute/machine/files.h"
#include "compute/text/bpe.h"

enum { TEXT_BYTES_MAX = 64 << 20, PART = 1 << 16 };

static dp_status read_bible(dp_buf *out, dp_why *why)
{
    FILE *const from = popen("bible -f gen1:1-rev22:21 2>/dev/null",
                             "r"); /* NOLINT(cert-env33-c): a constant command */
    if (from == NULL) {
        return dp_why_set(why, DP_IO, "no process can be started");
    }
    dp_status status = DP_OK;
    size_t got = 1;
    while (status == DP_OK && got > 0) {
        uint8_t *room;
        status = dp_buf_reserve(out, PART, &room);
        if (status == DP_OK) {
            got = fread(room, 1, PART, from);
            dp_buf_commit(out, got);
        }
    }
    const bool good = pclose(from) == 0 && out->size > 0;
    if (status == DP_OK && !good) {
        return dp_why_set(why, DP_NOTFOUND,
                          "the program bible gave nothing: apt install bible-kjv, or --text FILE");
    }
    return status;
}

static dp_status make(quality_text *text, dp_view bytes, dp_why *why)
{
    dp_bpe *bpe;
    dp_tokens tokens = {0};
    DP_TRY(dp_bpe_train(&bpe, bytes, QUALITY_VOCAB, why));
    dp_status status = dp_bpe_encode(bpe, bytes, &tokens, why);
    if (status == DP_OK) {
        status = dp_bpe_save(bpe, &text->tokenizer);
    }
    if (status == DP_OK) {
        status = dp_shard_write(tokens.ids, tokens.count, QUALITY_VOCAB, bytes.size, &text->shard);
    }
    text->tokens = tokens.count;
    dp_tokens_close(&tokens);
    dp_bpe_close(bpe);
    return status;
}

dp_status quality_text_open(quality_text *text, const char *path, dp_why *why)
{
    dp_buf raw;
    dp_buf_init(&raw, TEXT_BYTES_MAX);
    dp_buf_init(&text->tokenizer, DP_BPE_JSON_BYTES_MAX);
    dp_buf_init(&text->shard, (size_t)4 * TEXT_BYTES_MAX);
    dp_status status = path != NULL ? dp_file_read(path, &raw, why) : read_bible(&raw, why);
    if (status == DP_OK) {
        status = make(text, dp_buf_view(&raw), why);
    }
    dp_buf_close(&raw);
    if (status != DP_OK) {
        quality_text_close(text);
    }
    return status;
}

void quality_text_close(quality_text *text)
{
    dp_buf_close(&text->shard);
    dp_buf_close(&text->tokenizer);
}

static uint32_t rotate(uint32_t byte)
{
    const uint32_t first = byte >= 'a' && byte <= 'z' ? 'a' : 'A';
    return byte >= first && byte < first + 26 ? first + (byte - first + 13) % 26 : byte;
}

/* Tokens first .. first + count - 1 as a shard. */
static dp_status cut(const quality_text *text, uint64_t first, uint64_t count, bool rotated,
                     dp_buf *out)
{
    dp_shard shard;
    DP_TRY(dp_shard_open(&shard, dp_buf_view(&text->shard), NULL));
    uint32_t *const ids = dp_alloc(count, sizeof *ids);
    if (ids == NULL) {
        return DP_NOMEM;
    }
    dp_shard_read(&shard, first, count, ids);
    for (uint64_t i = 0; rotated && i < count; i++) {
        ids[i] = rotate(ids[i]);
    }
    dp_buf_init(out, (size_t)4 * TEXT_BYTES_MAX);
    const dp_status status = dp_shard_write(ids, count, QUALITY_VOCAB, count, out);
    dp_free(ids);
    return status;
}

static bool is_rotated(quality_split split, uint32_t worker)
{
    return (split == QUALITY_TONGUES && worker % 2 == 1) ||
           (split == QUALITY_MINORITY && worker % 4 == 3);
}

/* Shard 0 is the whole plain text, which text holds; shard 1 the rotated one. */
static dp_status open_tongues(quality_shards *s, const quality_text *text, quality_split split,
                              uint32_t workers)
{
    s->n = 2;
    s->tokens[0] = s->tokens[1] = text->tokens;
    for (uint32_t i = 0; i < workers; i++) {
        s->of[i] = is_rotated(split, i);
        s->rotated_workers += s->of[i];
    }
    return split == QUALITY_ALIKE ? DP_OK : cut(text, 0, text->tokens, true, &s->bytes[1]);
}

static dp_status open_parts(quality_shards *s, const quality_text *text, uint32_t workers)
{
    const uint64_t part = text->tokens * (1000 - QUALITY_HELD_PER_MILLE) / 1000 / workers;
    for (uint32_t i = 0; i < workers; i++) {
        s->of[i] = s->n++;
        s->tokens[i] = part;
        DP_TRY(cut(text, part * i, part, false, &s->bytes[i]));
    }
    return DP_OK;
}

dp_status quality_shards_open(quality_shards *s, const quality_text *text, quality_split split,
                              uint32_t workers, dp_why *why)
{
    *s = (quality_shards){.n = 0};
    DP_TRY(split == QUALITY_PARTS ? open_parts(s, text, workers)
                                  : open_tongues(s, text, split, workers));
    DP_TRY(dp_data_open(&s->held[0], dp_buf_view(&text->shard), QUALITY_VOCAB,
                        QUALITY_HELD_PER_MILLE, why));
    if (s->rotated_workers == 0) {
        return DP_OK;
    }
    return dp_data_open(&s->held[1], dp_buf_view(&s->bytes[1]), QUALITY_VOCAB,
                        QUALITY_HELD_PER_MILLE, why);
}

void quality_shards_close(quality_shards *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        dp_buf_close(&s->bytes[i]);
    }
}

dp_view quality_shard_of(const quality_shards *s, const quality_text *text, uint32_t worker,
                         uint64_t *tokens)
{
    const uint32_t index = s->of[worker];
    *tokens = s->tokens[index];
    return s->bytes[index].size > 0 ? dp_buf_view(&s->bytes[index]) : dp_buf_view(&text->shard);
}
