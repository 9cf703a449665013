#include "compute/data/shard.h"

#include <string.h>

#include "base/assert.h"

enum {
    VERSION_U16 = 1,
    VERSION_U32 = 2,
    VERSION_DOCUMENTS = 2, /* more than the same without documents */
    VERSION_LAST = VERSION_U32 + VERSION_DOCUMENTS,
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
                     uint64_t text_bytes, bool documents)
{
    const bool wide = dp_shard_token_bytes(vocab) == 4;
    dp_writer writer = dp_writer_of(out, DP_SHARD_HEADER_BYTES);
    dp_write_bytes(&writer, magic, sizeof magic);
    dp_write_u16(&writer, (uint16_t)((wide ? VERSION_U32 : VERSION_U16) +
                                     (documents ? VERSION_DOCUMENTS : 0)));
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
    dp_shard_header(header, vocab, count, text_bytes, false);
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

static bool bit_at(const uint8_t *bits, uint64_t index)
{
    return (bits[index / 8] >> (index % 8) & 1) != 0;
}

/* Sets the tokens from the bytes after the header, and with documents their bits. */
static dp_status finish(dp_shard *shard, const dp_reader *reader, uint64_t n_tokens, bool documents,
                        dp_why *why)
{
    const size_t left = dp_reader_left(reader);
    const bool fits = !reader->failed && n_tokens <= left / shard->token_bytes;
    const uint64_t bits = fits && documents ? dp_shard_bits_bytes(n_tokens) : 0;
    if (!fits || left - n_tokens * shard->token_bytes != 2 * bits) {
        return dp_why_set(why, DP_BADMSG,
                          "the token shard is cut off or damaged: it should have %llu tokens of %u "
                          "bytes%s and has %zu bytes",
                          (unsigned long long)n_tokens, shard->token_bytes,
                          documents ? " and two bits for each" : "", left);
    }
    shard->n_tokens = n_tokens;
    shard->tokens = reader->at;
    if (documents) {
        shard->begins = reader->at + n_tokens * shard->token_bytes;
        shard->losses = shard->begins + bits;
    }
    return DP_OK;
}

/* Bits behind the last token, and the first document. */
static dp_status check_bits(const dp_shard *shard, dp_why *why)
{
    const uint64_t n = shard->n_tokens;
    const unsigned rest = n % 8 == 0 ? 0 : 0xffU << (n % 8) & 0xffU;
    if (shard->begins == NULL || n == 0) {
        return DP_OK;
    }
    if (!bit_at(shard->begins, 0)) {
        return dp_why_set(why, DP_BADMSG,
                          "the token shard is damaged: its first token begins no document");
    }
    const unsigned behind = shard->begins[(n - 1) / 8] | shard->losses[(n - 1) / 8];
    return (behind & rest) == 0 ? DP_OK
                                : dp_why_set(why, DP_BADMSG,
                                             "the token shard is damaged: it marks tokens behind "
                                             "its last one, number %llu",
                                             (unsigned long long)(n - 1));
}

static dp_status open_own(dp_shard *shard, dp_reader *reader, dp_why *why)
{
    const uint16_t version = dp_read_u16(reader);
    const uint16_t width = dp_read_u16(reader);
    const bool documents = version > VERSION_DOCUMENTS && version <= VERSION_LAST;
    const unsigned plain = documents ? version - VERSION_DOCUMENTS : version;
    *shard = (dp_shard){.format = DP_SHARD_OWN, .token_bytes = plain == VERSION_U32 ? 4 : 2};
    shard->vocab = dp_read_u32(reader);
    const uint32_t zero = dp_read_u32(reader);
    const uint64_t n_tokens = dp_read_u64(reader);
    shard->text_bytes = dp_read_u64(reader);
    if (reader->failed) {
        return finish(shard, reader, n_tokens, documents, why);
    }
    if (plain != VERSION_U16 && plain != VERSION_U32) {
        return dp_why_set(why, DP_VERSION,
                          "the token shard has version %u; this program reads %d to %d", version,
                          VERSION_U16, VERSION_LAST);
    }
    /* Two ways to write the same tokens would be two hashes for them. */
    if (zero != 0 || width != (plain == VERSION_U32 ? 4 : 0) ||
        dp_shard_token_bytes(shard->vocab) != shard->token_bytes) {
        return dp_why_set(why, DP_BADMSG,
                          "the token shard is damaged: version %u, token bytes %u, vocabulary %u",
                          version, width, shard->vocab);
    }
    DP_TRY(finish(shard, reader, n_tokens, documents, why));
    return check_bits(shard, why);
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
        return finish(shard, &reader, n_tokens, false, why);
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
    return finish(shard, &reader, n_tokens, false, why);
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

unsigned dp_shard_marks(const dp_shard *shard, uint64_t index)
{
    dp_assert(index < shard->n_tokens);
    if (shard->begins == NULL) {
        return DP_MARK_LOSS;
    }
    return (bit_at(shard->begins, index) ? DP_MARK_BEGINS : 0U) |
           (bit_at(shard->losses, index) ? DP_MARK_LOSS : 0U);
}

uint64_t dp_shard_losses(const dp_shard *shard, uint64_t first, uint64_t count)
{
    dp_assert(first <= shard->n_tokens && count <= shard->n_tokens - first);
    if (shard->losses == NULL) {
        return count;
    }
    uint64_t sum = 0;
    for (uint64_t i = first; i < first + count;) {
        if (i % 8 == 0 && first + count - i >= 8) {
            sum += (uint64_t)__builtin_popcount(shard->losses[i / 8]);
            i += 8;
        } else {
            sum += bit_at(shard->losses, i);
            i++;
        }
    }
    return sum;
}

/* No token that begins a document has a loss. */
static dp_status check_documents(const dp_shard *shard, dp_why *why)
{
    const uint64_t bytes = shard->begins == NULL ? 0 : dp_shard_bits_bytes(shard->n_tokens);
    for (uint64_t i = 0; i < bytes; i++) {
        const unsigned both = shard->begins[i] & shard->losses[i];
        if (both != 0) {
            return dp_why_set(
                why, DP_BADMSG,
                "the token shard is damaged: token %llu begins a document and has a loss",
                (unsigned long long)(8 * i + (unsigned)__builtin_ctz(both)));
        }
    }
    return DP_OK;
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
        return check_documents(shard, why);
    }
    return dp_why_set(why, shard->vocab != 0 ? DP_BADMSG : DP_BADARG,
                      "token %llu of the shard is %u, outside the vocabulary of %u",
                      (unsigned long long)bad, token_at(shard, bad), least);
}
