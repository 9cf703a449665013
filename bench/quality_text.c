#include "bench/quality_text.h"

#include <stdio.h>
#include <stdlib.h>

#include "compute/bpe.h"
#include "compute/files.h"
#include "compute/shard.h"

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
