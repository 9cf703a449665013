#include "compute/data/shard.h"

#include <string.h>

#include "base/assert.h"

enum {
    VERSION_U16 = 1,
    VERSION_U32 = 2,
    LLMC_U16 = 20240520,
    LLMC_U32 = 20240801,
    LLMC_VERSION_U16 = 1,
    LLMC_VERSION_U32 = 7,
    LLMC_HEADER_BYTES = 1024,
    BLOCK_TOKENS = 4096
};

static const uint8_t magic[4] = {'D', 'P', 'D', '1'};

const char *dp_shard_format_name(dp_shard_format format)
{
    static const char *const names[] = {"dpnode", "llm.c", "nanoGPT"};
    return names[format];
}

uint32_t dp_shard_token_bytes(uint32_t vocab)
{
    return vocab <= UINT16_MAX + 1U ? 2 : 4;
}

static uint32_t token_at(const dp_shard *shard, uint64_t index)
{
    const uint8_t *const at = shard->tokens + shard->token_bytes * index;
    const uint32_t low = (uint32_t)at[0] | (uint32_t)at[1] << 8;
    return shard->token_bytes == 2 ? low : low | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

void dp_shard_read(const dp_shard *shard, uint64_t first, size_t count, uint32_t *ids)
{
    dp_assert(first <= shard->n_tokens && count <= shard->n_tokens - first);
    for (size_t i = 0; i < count; i++) {
        ids[i] = token_at(shard, first + i);
    }
}

void dp_shard_header(uint8_t out[DP_SHARD_HEADER_BYTES], uint32_t vocab, uint64_t n_tokens,
                     uint64_t text_bytes)
{
    const bool wide = dp_shard_token_bytes(vocab) == 4;
    dp_writer writer = dp_writer_of(out, DP_SHARD_HEADER_BYTES);
    dp_write_bytes(&writer, magic, sizeof magic);
    dp_write_u16(&writer, wide ? VERSION_U32 : VERSION_U16);
    dp_write_u16(&writer, wide ? 4 : 0);
    dp_write_u32(&writer, vocab);
    dp_write_u32(&writer, 0);
    dp_write_u64(&writer, n_tokens);
    dp_write_u64(&writer, text_bytes);
    dp_assert(writer.size == DP_SHARD_HEADER_BYTES);
}

void dp_shard_pack(const uint32_t *ids, size_t count, uint32_t token_bytes, uint8_t *out)
{
    for (size_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < token_bytes; j++) {
            out[token_bytes * i + j] = (uint8_t)(ids[i] >> (8 * j));
        }
    }
}

dp_status dp_shard_write(const uint32_t *ids, size_t count, uint32_t vocab, uint64_t text_bytes,
                         dp_buf *out)
{
    const uint32_t token_bytes = dp_shard_token_bytes(vocab);
    uint8_t header[DP_SHARD_HEADER_BYTES];
    dp_shard_header(header, vocab, count, text_bytes);
    const size_t before = out->size;
    DP_TRY(dp_buf_append(out, dp_view_of(header, sizeof header)));
    uint8_t *room;
    const dp_status status = dp_buf_reserve(out, token_bytes * count, &room);
    if (status != DP_OK) {
        out->size = before;
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        dp_assert(ids[i] < vocab);
    }
    dp_shard_pack(ids, count, token_bytes, room);
    dp_buf_commit(out, token_bytes * count);
    return DP_OK;
}

/* Sets the tokens from the bytes after the header. */
static dp_status finish(dp_shard *shard, const dp_reader *reader, uint64_t n_tokens, dp_why *why)
{
    const size_t left = dp_reader_left(reader);
    if (reader->failed || left % shard->token_bytes != 0 || left / shard->token_bytes != n_tokens) {
        return dp_why_set(why, DP_BADMSG,
                          "the token shard is cut off or damaged: it should have %llu tokens of %u "
                          "bytes and has %zu bytes",
                          (unsigned long long)n_tokens, shard->token_bytes, left);
    }
    shard->n_tokens = n_tokens;
    shard->tokens = reader->at;
    return DP_OK;
}

static dp_status open_own(dp_shard *shard, dp_reader *reader, dp_why *why)
{
    const uint16_t version = dp_read_u16(reader);
    const uint16_t width = dp_read_u16(reader);
    *shard = (dp_shard){.format = DP_SHARD_OWN, .token_bytes = version == VERSION_U32 ? 4 : 2};
    shard->vocab = dp_read_u32(reader);
    const uint32_t zero = dp_read_u32(reader);
    const uint64_t n_tokens = dp_read_u64(reader);
    shard->text_bytes = dp_read_u64(reader);
    if (reader->failed) {
        return finish(shard, reader, n_tokens, why);
    }
    if (version != VERSION_U16 && version != VERSION_U32) {
        return dp_why_set(why, DP_VERSION,
                          "the token shard has version %u; this program reads %d and %d", version,
                          VERSION_U16, VERSION_U32);
    }
    /* Two ways to write the same tokens would be two hashes for them. */
    if (zero != 0 || width != (version == VERSION_U32 ? 4 : 0) ||
        dp_shard_token_bytes(shard->vocab) != shard->token_bytes) {
        return dp_why_set(why, DP_BADMSG,
                          "the token shard is damaged: version %u, token bytes %u, vocabulary %u",
                          version, width, shard->vocab);
    }
    return finish(shard, reader, n_tokens, why);
}

static dp_status open_llmc(dp_shard *shard, dp_view bytes, uint32_t number, dp_why *why)
{
    dp_reader reader = dp_reader_of(bytes);
    const bool wide = number == LLMC_U32;
    const uint32_t wanted = wide ? LLMC_VERSION_U32 : LLMC_VERSION_U16;
    (void)dp_read_u32(&reader);
    const uint32_t version = dp_read_u32(&reader);
    const uint32_t n_tokens = dp_read_u32(&reader);
    (void)dp_read_view(&reader, LLMC_HEADER_BYTES - 12);
    *shard = (dp_shard){.format = DP_SHARD_LLMC, .token_bytes = wide ? 4 : 2};
    if (reader.failed) {
        return finish(shard, &reader, n_tokens, why);
    }
    if (version != wanted) {
        return dp_why_set(why, DP_VERSION,
                          "the llm.c file has version %u; with its magic %u this program reads %u",
                          version, number, wanted);
    }
    if (n_tokens > INT32_MAX) {
        return dp_why_set(why, DP_BADMSG, "the llm.c file says that it has %d tokens",
                          (int)(int32_t)n_tokens);
    }
    return finish(shard, &reader, n_tokens, why);
}

dp_status dp_shard_open(dp_shard *shard, dp_view bytes, dp_why *why)
{
    dp_reader reader = dp_reader_of(bytes);
    const dp_view start = dp_read_view(&reader, sizeof magic);
    dp_shard read = {0};
    dp_status status;
    dp_reader number = dp_reader_of(start);
    const uint32_t first = dp_read_u32(&number);
    if (!number.failed && memcmp(start.data, magic, sizeof magic) == 0) {
        status = open_own(&read, &reader, why);
    } else if (first == LLMC_U16 || first == LLMC_U32) {
        status = open_llmc(&read, bytes, first, why);
    } else {
        return dp_why_set(why, DP_BADMSG, "the data is not a token shard");
    }
    if (status == DP_OK) {
        *shard = read;
    }
    return status;
}

dp_status dp_shard_open_nanogpt(dp_shard *shard, dp_view bytes, dp_why *why)
{
    if (bytes.size % 2 != 0) {
        return dp_why_set(why, DP_BADMSG,
                          "the file has %zu bytes; tokens of nanoGPT have two bytes each",
                          bytes.size);
    }
    *shard = (dp_shard){.format = DP_SHARD_NANOGPT,
                        .tokens = bytes.data,
                        .n_tokens = bytes.size / 2,
                        .token_bytes = 2};
    return DP_OK;
}

/* One more than the greatest of tokens first .. first + count - 1. The width is a constant to the
 * compiler in each loop. */
static uint64_t block_needs(const dp_shard *shard, uint64_t first, size_t count)
{
    const uint8_t *const at = shard->tokens + shard->token_bytes * first;
    uint32_t most = 0;
    if (shard->token_bytes == 2) {
        for (size_t i = 0; i < count; i++) {
            const uint32_t token = (uint32_t)at[2 * i] | (uint32_t)at[2 * i + 1] << 8;
            most = token > most ? token : most;
        }
    } else {
        for (size_t i = 0; i < count; i++) {
            const uint32_t token = (uint32_t)at[4 * i] | (uint32_t)at[4 * i + 1] << 8 |
                                   (uint32_t)at[4 * i + 2] << 16 | (uint32_t)at[4 * i + 3] << 24;
            most = token > most ? token : most;
        }
    }
    return count > 0 ? (uint64_t)most + 1 : 0;
}

static size_t block_size(const dp_shard *shard, uint64_t first)
{
    const uint64_t left = shard->n_tokens - first;
    return left < BLOCK_TOKENS ? (size_t)left : BLOCK_TOKENS;
}

uint64_t dp_shard_needs(const dp_shard *shard)
{
    uint64_t needs = 0;
    for (uint64_t i = 0; i < shard->n_tokens; i += BLOCK_TOKENS) {
        const uint64_t here = block_needs(shard, i, block_size(shard, i));
        needs = here > needs ? here : needs;
    }
    return needs;
}

static uint64_t first_above(const dp_shard *shard, uint32_t vocab)
{
    uint64_t i = 0;
    while (i < shard->n_tokens && block_needs(shard, i, block_size(shard, i)) <= vocab) {
        i += BLOCK_TOKENS;
    }
    while (i < shard->n_tokens && token_at(shard, i) < vocab) {
        i++;
    }
    return i < shard->n_tokens ? i : shard->n_tokens;
}

dp_status dp_shard_check(const dp_shard *shard, uint32_t vocab, dp_why *why)
{
    if (shard->vocab > vocab) {
        return dp_why_set(why, DP_BADARG,
                          "the data was made for a vocabulary of %u tokens, the model has %u",
                          shard->vocab, vocab);
    }
    const uint32_t least = shard->vocab != 0 ? shard->vocab : vocab;
    const uint64_t bad = first_above(shard, least);
    if (bad == shard->n_tokens) {
        return DP_OK;
    }
    return dp_why_set(why, shard->vocab != 0 ? DP_BADMSG : DP_BADARG,
                      "token %llu of the shard is %u, outside the vocabulary of %u",
                      (unsigned long long)bad, token_at(shard, bad), least);
}
