#include "compute/state.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "compute/half.h"

enum { VERSION = 1 };

static const uint8_t magic[4] = {'D', 'P', 'S', '1'};

static float load(const uint8_t *at)
{
    return dp_float_of_bits((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
                            (uint32_t)at[3] << 24);
}

dp_status dp_floats_write(const float *x, size_t n, dp_buf *out)
{
    if (n > SIZE_MAX / sizeof *x) {
        return DP_TOOBIG;
    }
    uint8_t *room;
    DP_TRY(dp_buf_reserve(out, n * sizeof *x, &room));
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = dp_float_bits(x[i]);
        room[4 * i] = (uint8_t)bits;
        room[4 * i + 1] = (uint8_t)(bits >> 8);
        room[4 * i + 2] = (uint8_t)(bits >> 16);
        room[4 * i + 3] = (uint8_t)(bits >> 24);
    }
    dp_buf_commit(out, n * sizeof *x);
    return DP_OK;
}

dp_status dp_floats_read(dp_view bytes, float *x, size_t n)
{
    if (n > SIZE_MAX / sizeof *x || bytes.size != n * sizeof *x) {
        return DP_BADMSG;
    }
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite = finite && isfinite(load(bytes.data + 4 * i));
    }
    if (!finite) {
        return DP_DIVERGED;
    }
    for (size_t i = 0; i < n; i++) {
        x[i] = load(bytes.data + 4 * i);
    }
    return DP_OK;
}

dp_status dp_state_write(uint64_t round, const float *theta, size_t n, dp_buf *out)
{
    uint8_t header[DP_STATE_HEADER_BYTES];
    dp_writer writer = dp_writer_of(header, sizeof header);
    dp_write_bytes(&writer, magic, sizeof magic);
    dp_write_u16(&writer, VERSION);
    dp_write_u16(&writer, 0);
    dp_write_u64(&writer, n);
    dp_write_u64(&writer, round);
    dp_write_u64(&writer, 0);
    const size_t before = out->size;
    DP_TRY(dp_buf_append(out, dp_view_of(header, writer.size)));
    const dp_status status = dp_floats_write(theta, n, out);
    if (status != DP_OK) {
        out->size = before;
    }
    return status;
}

dp_status dp_state_peek(dp_view bytes, uint64_t *round, uint64_t *elements)
{
    dp_reader reader = dp_reader_of(bytes);
    uint8_t start[sizeof magic];
    dp_read_bytes(&reader, start, sizeof start);
    const uint16_t version = dp_read_u16(&reader);
    const uint16_t reserved = dp_read_u16(&reader);
    const uint64_t n = dp_read_u64(&reader);
    const uint64_t at = dp_read_u64(&reader);
    const uint64_t zero = dp_read_u64(&reader);
    if (reader.failed || memcmp(start, magic, sizeof magic) != 0) {
        return DP_BADMSG;
    }
    if (version != VERSION) {
        return DP_VERSION;
    }
    const size_t left = dp_reader_left(&reader);
    if (reserved != 0 || zero != 0 || left % 4 != 0 || left / 4 != n) {
        return DP_BADMSG;
    }
    *round = at;
    *elements = n;
    return DP_OK;
}

dp_status dp_state_read(dp_view bytes, uint64_t *round, float *theta, size_t n)
{
    uint64_t at;
    uint64_t elements;
    DP_TRY(dp_state_peek(bytes, &at, &elements));
    if (elements != n) {
        return DP_BADMSG;
    }
    const dp_view values =
        dp_view_of(bytes.data + DP_STATE_HEADER_BYTES, bytes.size - DP_STATE_HEADER_BYTES);
    DP_TRY(dp_floats_read(values, theta, n));
    *round = at;
    return DP_OK;
}
