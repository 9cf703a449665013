#include "compute/data.h"

#include <string.h>

#include "base/assert.h"
#include "base/rng.h"

enum { VERSION = 1 };

static const uint8_t magic[4] = {'D', 'P', 'D', '1'};

static uint32_t token_at(const dp_data *data, uint64_t index)
{
    const uint8_t *const at = data->tokens + 2 * index;
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

dp_status dp_data_write(const uint32_t *ids, size_t count, uint32_t vocab, uint64_t text_bytes,
                        dp_buf *out)
{
    if (vocab > UINT16_MAX + 1) {
        return DP_TOOBIG;
    }
    uint8_t header[DP_DATA_HEADER_BYTES];
    dp_writer writer = dp_writer_of(header, sizeof header);
    dp_write_bytes(&writer, magic, sizeof magic);
    dp_write_u16(&writer, VERSION);
    dp_write_u16(&writer, 0);
    dp_write_u32(&writer, vocab);
    dp_write_u32(&writer, 0);
    dp_write_u64(&writer, count);
    dp_write_u64(&writer, text_bytes);
    const size_t before = out->size;
    DP_TRY(dp_buf_append(out, dp_view_of(header, writer.size)));
    uint8_t *room;
    const dp_status status = dp_buf_reserve(out, 2 * count, &room);
    if (status != DP_OK) {
        out->size = before;
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        dp_assert(ids[i] < vocab);
        room[2 * i] = (uint8_t)ids[i];
        room[2 * i + 1] = (uint8_t)(ids[i] >> 8);
    }
    dp_buf_commit(out, 2 * count);
    return DP_OK;
}

dp_status dp_data_open(dp_data *data, dp_view bytes, uint32_t vocab, uint32_t val_per_mille,
                       dp_why *why)
{
    dp_reader reader = dp_reader_of(bytes);
    uint8_t start[sizeof magic];
    dp_read_bytes(&reader, start, sizeof start);
    const uint16_t version = dp_read_u16(&reader);
    const uint16_t zero = dp_read_u16(&reader);
    dp_data read = {.vocab = dp_read_u32(&reader)};
    const uint32_t zero_too = dp_read_u32(&reader);
    read.n_tokens = dp_read_u64(&reader);
    read.text_bytes = dp_read_u64(&reader);
    if (reader.failed || memcmp(start, magic, sizeof magic) != 0) {
        return dp_why_set(why, DP_BADMSG, "the data is not a token shard");
    }
    if (version != VERSION) {
        return dp_why_set(why, DP_VERSION, "the token shard has version %u; this program reads %d",
                          version, VERSION);
    }
    const size_t left = dp_reader_left(&reader);
    if (zero != 0 || zero_too != 0 || left % 2 != 0 || left / 2 != read.n_tokens ||
        val_per_mille > 1000) {
        return dp_why_set(why, DP_BADMSG, "the token shard is cut off or damaged");
    }
    read.tokens = reader.at;
    for (uint64_t i = 0; i < read.n_tokens; i++) {
        if (token_at(&read, i) >= vocab) {
            return dp_why_set(why, DP_BADARG,
                              "token %llu of the shard is outside the model's vocabulary of %u",
                              (unsigned long long)i, vocab);
        }
    }
    const uint64_t n_val = (uint64_t)((unsigned __int128)read.n_tokens * val_per_mille / 1000);
    read.n_train = read.n_tokens - n_val;
    *data = read;
    return DP_OK;
}

static void copy_window(const dp_data *data, uint64_t start, size_t length, uint32_t *x,
                        uint32_t *y)
{
    for (size_t i = 0; i < length; i++) {
        x[i] = token_at(data, start + i);
        y[i] = token_at(data, start + i + 1);
    }
}

static uint64_t hash_place(const dp_data_place *place)
{
    uint64_t hash = dp_mix64(place->seed);
    for (size_t i = 0; i < 4; i++) {
        uint64_t part = 0;
        for (size_t j = 0; j < 8; j++) {
            part |= (uint64_t)place->member[8 * i + j] << (8 * j);
        }
        hash = dp_mix64(hash ^ part);
    }
    hash = dp_mix64(hash ^ place->round);
    hash = dp_mix64(hash ^ place->life);
    hash = dp_mix64(hash ^ place->step);
    return dp_mix64(hash ^ place->row);
}

dp_status dp_data_row(const dp_data *data, const dp_data_place *place, size_t length, uint32_t *x,
                      uint32_t *y)
{
    if (data->n_train <= length) {
        return DP_BADARG;
    }
    const uint64_t starts = data->n_train - length;
    /* The high half of the product: uniform to one part in 2^64 / starts. */
    const uint64_t start = (uint64_t)((unsigned __int128)hash_place(place) * starts >> 64);
    copy_window(data, start, length, x, y);
    return DP_OK;
}

uint64_t dp_data_val_windows(const dp_data *data, size_t length)
{
    const uint64_t n = data->n_tokens - data->n_train;
    if (n < 2 || length == 0) {
        return 0;
    }
    return n - 1 < length ? 1 : (n - 1) / length;
}

size_t dp_data_val_row(const dp_data *data, uint64_t index, size_t length, uint32_t *x, uint32_t *y)
{
    dp_assert(index < dp_data_val_windows(data, length));
    const uint64_t n = data->n_tokens - data->n_train;
    const size_t targets = n - 1 < length ? (size_t)(n - 1) : length;
    copy_window(data, data->n_train + index * length, targets, x, y);
    return targets;
}
