#include "compute/model/state.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "compute/cpu/half.h"

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

dp_status dp_floats_check(dp_view bytes, size_t n)
{
    if (n > SIZE_MAX / sizeof(float) || bytes.size != n * sizeof(float)) {
        return DP_BADMSG;
    }
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite = finite && isfinite(load(bytes.data + 4 * i));
    }
    return finite ? DP_OK : DP_DIVERGED;
}

dp_status dp_floats_read(dp_view bytes, float *x, size_t n)
{
    DP_TRY(dp_floats_check(bytes, n));
    for (size_t i = 0; i < n; i++) {
        x[i] = load(bytes.data + 4 * i);
    }
    return DP_OK;
}

dp_status dp_state_write_header(uint64_t round, size_t n, uint32_t moments, dp_buf *out)
{
    dp_assert(moments <= DP_STATE_MOMENTS_MAX);
    uint8_t header[DP_STATE_HEADER_BYTES];
    dp_writer writer = dp_writer_of(header, sizeof header);
    dp_write_bytes(&writer, magic, sizeof magic);
    dp_write_u16(&writer, VERSION);
    dp_write_u16(&writer, (uint16_t)moments);
    dp_write_u64(&writer, n);
    dp_write_u64(&writer, round);
    dp_write_u64(&writer, 0);
    return dp_buf_append(out, dp_view_of(header, writer.size));
}

dp_status dp_state_write(uint64_t round, const float *theta, const float *m, size_t n, dp_buf *out)
{
    const size_t before = out->size;
    dp_status status = dp_state_write_header(round, n, m != NULL ? 1 : 0, out);
    if (status == DP_OK) {
        status = dp_floats_write(theta, n, out);
    }
    if (status == DP_OK && m != NULL) {
        status = dp_floats_write(m, n, out);
    }
    if (status != DP_OK) {
        out->size = before;
    }
    return status;
}

dp_status dp_state_open(dp_state *state, dp_view bytes)
{
    dp_reader reader = dp_reader_of(bytes);
    uint8_t start[sizeof magic];
    dp_read_bytes(&reader, start, sizeof start);
    const uint16_t version = dp_read_u16(&reader);
    const uint16_t follows = dp_read_u16(&reader);
    const uint64_t n = dp_read_u64(&reader);
    const uint64_t round = dp_read_u64(&reader);
    const uint64_t zero = dp_read_u64(&reader);
    if (reader.failed || memcmp(start, magic, sizeof magic) != 0) {
        return DP_BADMSG;
    }
    if (version != VERSION) {
        return DP_VERSION;
    }
    const size_t each = 4 * (1 + (size_t)follows);
    const size_t left = dp_reader_left(&reader);
    if (follows > DP_STATE_MOMENTS_MAX || zero != 0 || left % each != 0 || left / each != n) {
        return DP_BADMSG;
    }
    const size_t size = 4 * (size_t)n;
    *state = (dp_state){.round = round,
                        .elements = n,
                        .moments = follows,
                        .theta = dp_view_of(bytes.data + DP_STATE_HEADER_BYTES, size)};
    if (follows >= 1) {
        state->momentum = dp_view_of(bytes.data + DP_STATE_HEADER_BYTES + size, size);
    }
    if (follows >= 2) {
        state->second = dp_view_of(bytes.data + DP_STATE_HEADER_BYTES + 2 * size, size);
    }
    return DP_OK;
}

dp_status dp_state_read(dp_view bytes, uint64_t *round, float *theta, size_t n)
{
    dp_state state;
    DP_TRY(dp_state_open(&state, bytes));
    if (state.elements != n) {
        return DP_BADMSG;
    }
    DP_TRY(dp_floats_read(state.theta, theta, n));
    *round = state.round;
    return DP_OK;
}
